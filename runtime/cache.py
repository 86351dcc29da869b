"""A folder of checked files by content hash, shared by any number of processes.

    KEY.so       a shared object, then a trailer of 48 bytes
    KEY.cubin    kernels for a GPU, then a trailer
    KEY.json     what is known of a compiler, then a trailer
    KEY.program  what a tensor graph became (frontend/kept_programs.py), then a trailer
    KEY.schedule  what a search for a fast schedule found (frontend/measuring.py), then a trailer
    failed-*.c   sources that a compiler refused, for the report; failed-*.cu too
    build-*/     where a compiler is at work; KEY.lock: held while one works for KEY

The trailer is `UOPC` with the format version, the payload's length and the SHA-256 of key and
payload; loaders ignore bytes after an ELF file's end. A file becomes visible by one rename and is
trusted only if its trailer fits, so a reader meets a whole entry or none: an entry that was cut
short, changed or renamed counts as missing and is built again.

Limits: entries are dropped, least recently used first, beyond 512 MiB in all or after 90 days
without use. Leftovers of killed processes go after an hour.

A folder is used if this user or root owns it and not everyone may write to it. Where it cannot be
written, what it holds is used all the same, and new entries go to a private folder that lives as
long as the process.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from pathlib import Path

from uopc.dialects.errors import UopcError
from uopc.runtime import environment
from uopc.runtime.debug import say_once

FORMAT_VERSION = 1
LIMIT_BYTES = 512 << 20
LIMIT_AGE_SECONDS = 90 * 86400
STALE_SECONDS = 3600
"""Leftovers of unfinished builds older than this belong to nobody."""
TOUCH_SECONDS = 3600
"""A use is noted in the file's time at most this often."""
LOCK_PATIENCE_SECONDS = 120
"""How long to wait for another process that builds the same entry, before building too."""
PUBLISHES_PER_PRUNE = 64

_TRAILER = struct.Struct("<8sQ32s")
_MAGIC = b"UOPC" + struct.pack("<I", FORMAT_VERSION)


class Cache:
    """The entries of one folder, with a private folder to write to where that one refuses."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._trouble = ""
        self._publishes = 0
        if folder is None:
            self._give_up("no home folder is known")
            return
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            self._give_up(f"{error.strerror}")
            return
        if reason := _distrust(folder):
            self._folder = None
            self._give_up(reason)

    @property
    def writable_folder(self) -> Path:
        """Where new entries go."""
        if self._folder is None or self._trouble:
            return private_folder()
        return self._folder

    def find(self, key: str, suffix: str) -> Path | None:
        """The file of an entry that was checked, or None."""
        for folder in self._folders():
            path = folder / f"{key}{suffix}"
            if _checked_payload(path, key) is not None:
                _note_use(path)
                return path
        return None

    def read(self, key: str, suffix: str) -> bytes | None:
        """The payload of an entry, or None."""
        for folder in self._folders():
            payload = _checked_payload(folder / f"{key}{suffix}", key)
            if payload is not None:
                return payload
        return None

    def write(self, key: str, suffix: str, payload: bytes) -> Path:
        """Publish an entry, replacing what may be there. Raises `no-cache-folder`."""
        trailer = _TRAILER.pack(_MAGIC, len(payload), _checksum(key, payload))
        path = self._publish(f"{key}{suffix}", payload + trailer)
        if self._publishes % PUBLISHES_PER_PRUNE == 0:
            prune(path.parent)
        self._publishes += 1
        return path

    def keep_failed(self, key: str, source: str, suffix: str = ".c") -> Path:
        """Keep a source that did not compile; returns its path."""
        return self._publish(
            f"failed-{key[:16]}{suffix}", source.encode("utf-8", "backslashreplace")
        )

    @contextlib.contextmanager
    def building(self, key: str) -> Generator[Path]:
        """An empty folder to build an entry in, held alone among processes for this key.

        After a wait the entry may have come to be: look again inside.
        """
        place = self._build_folder()
        try:
            with _alone(place.parent / f"{key}.lock"):
                yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _build_folder(self) -> Path:
        if self._folder is not None and not self._trouble:
            try:
                return Path(tempfile.mkdtemp(prefix="build-", dir=self._folder))
            except OSError as error:
                self._give_up(f"{error.strerror}")
        try:
            return Path(tempfile.mkdtemp(prefix="build-", dir=private_folder()))
        except OSError as error:
            raise no_folder(error) from error

    def _publish(self, name: str, data: bytes) -> Path:
        if self._folder is not None and not self._trouble:
            try:
                return _write_atomically(self._folder, name, data)
            except OSError as error:
                self._give_up(f"{error.strerror}")
        try:
            return _write_atomically(private_folder(), name, data)
        except OSError as error:
            raise no_folder(error) from error

    def _give_up(self, reason: str) -> None:
        self._trouble = reason
        where = self._folder or environment.cache_directory() or "the cache"
        say_once(
            f"uopc: {where} is not written to ({reason}): what is compiled lasts as long as this "
            f"process; set {environment.CACHE.name} to a folder of your own"
        )

    def _folders(self) -> Iterator[Path]:
        if self._folder is not None:
            yield self._folder
        if (self._folder is None or self._trouble) and _private is not None:
            yield _private


_caches: dict[Path | None, Cache] = {}
_private: Path | None = None
_lock = threading.RLock()


def open_cache() -> Cache:
    """The cache that the environment names now."""
    folder = environment.cache_directory()
    with _lock:
        if (known := _caches.get(folder)) is None:
            known = _caches[folder] = Cache(folder)
        return known


def private_folder() -> Path:
    """A folder only this user can enter, removed at the process's end; `no-cache-folder`."""
    global _private
    with _lock:
        if _private is None or not _private.is_dir():
            try:
                _private = Path(tempfile.mkdtemp(prefix="uopc-"))
            except OSError as error:
                raise no_folder(error) from error
            atexit.register(_remove_private, _private, os.getpid())
        return _private


def _remove_private(folder: Path, owner: int) -> None:
    # A forked child shares its parent's folder and must leave it alone.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _after_fork() -> None:
    # The thread that held the lock does not exist in the child.
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def no_folder(error: OSError) -> UopcError:
    """That there is nowhere to put compiled code."""
    return UopcError(
        "no-cache-folder",
        f"no folder to put compiled code in: tried {environment.cache_directory()} and "
        f"{tempfile.gettempdir() if tempfile.tempdir else 'the temporary folder'} "
        f"({error.strerror})",
        hint=f"set {environment.CACHE.name} or TMPDIR to a folder that can be written",
    )


# -- one file --------------------------------------------------------------------------------------


def _checksum(key: str, payload: bytes | memoryview) -> bytes:
    state = hashlib.sha256(key.encode("ascii"))
    state.update(payload)
    return state.digest()


def _checked_payload(path: Path, key: str) -> bytes | None:
    try:
        # O_NONBLOCK: a pipe of that name must not hang the reader.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _writable_by_others(status):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    size = len(data) - _TRAILER.size
    if size < 0:
        return None
    magic, length, checksum = _TRAILER.unpack_from(data, size)
    if magic != _MAGIC or length != size or checksum != _checksum(key, memoryview(data)[:size]):
        return None
    return data[:size]


def _write_atomically(folder: Path, name: str, data: bytes) -> Path:
    descriptor, temporary = tempfile.mkstemp(prefix="build-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        target = folder / name
        os.replace(temporary, target)  # noqa: PTH105 (a plain string here)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    return target


def _note_use(path: Path) -> None:
    # Read-only folders and entries that were just dropped are both fine.
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > TOUCH_SECONDS:
            os.utime(path)


def _distrust(folder: Path) -> str:
    """Empty, or why nothing in the folder may be believed."""
    try:
        status = folder.stat()
    except OSError as error:
        return f"{error.strerror}"
    if not stat.S_ISDIR(status.st_mode):
        return "it is no folder"
    if status.st_uid not in (os.geteuid(), 0):
        return f"user {status.st_uid} owns it"
    if status.st_mode & stat.S_IWOTH:
        return "every user may write to it"
    if status.st_mode & stat.S_IWGRP and status.st_uid != os.geteuid():
        return "its group may write to it"
    return ""


def _writable_by_others(status: os.stat_result) -> bool:
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid not in (os.geteuid(), 0) or bool(status.st_mode & others)


@contextlib.contextmanager
def _alone(path: Path) -> Generator[None]:
    """Hold the lock file, which the system lets go when its holder dies.

    Only work is saved by it, never correctness: where locks do not work, two build the same.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        _wait_for_lock(descriptor)
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _wait_for_lock(descriptor: int) -> None:
    deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return


# -- limits ----------------------------------------------------------------------------------------


def prune(
    folder: Path, limit_bytes: int = LIMIT_BYTES, limit_age: float = LIMIT_AGE_SECONDS
) -> None:
    """Remove leftovers, then entries that are too old, then the least recently used ones.

    Only names that this module gives are touched. Safe while other processes use the folder: who
    loses an entry between finding and loading it builds it again.
    """
    now = time.time()
    entries: list[tuple[float, int, Path]] = []
    for path in _children(folder):
        try:
            status = path.lstat()
        except OSError:
            continue
        age = now - status.st_mtime
        if path.name.startswith("build-") or path.suffix == ".lock":
            if age > STALE_SECONDS:
                _remove(path)
        elif _is_entry(path):
            if age > limit_age:
                _remove(path)
            else:
                entries.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit_bytes:
            break
        _remove(path)
        total -= size


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_entry(path: Path) -> bool:
    if path.name.startswith("failed-") and path.suffix in (".c", ".cu"):
        return True
    return (
        path.suffix in (".so", ".cubin", ".json", ".program")
        and len(path.stem) == 64
        and path.stem.isalnum()
    )


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
