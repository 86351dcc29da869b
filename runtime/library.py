"""C source to loaded code: one compilation a source, whatever threads and processes ask for it.

Shared objects stay mapped until the process ends, since code of theirs may be running in any
thread. The table of open ones holds them weakly: once the last Executable of a source is gone,
the next load looks into the cache again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakValueDictionary

from uopc.dialects.errors import UopcError
from uopc.runtime import environment
from uopc.runtime.cache import Cache, no_folder, open_cache
from uopc.runtime.compiler import (
    CompileOptions,
    Compiler,
    CompilerFailed,
    compile_error,
    compile_shared,
    find_compiler,
)
from uopc.runtime.packed_call import MAX_ARGUMENTS


class Library:
    """A loaded shared object."""

    def __init__(self, key: str, path: Path, compiled: bool) -> None:
        self.key = key
        self.path = path
        self.compiled = compiled
        """Whether this process compiled it, rather than found it in the cache."""
        self._handle = ctypes.CDLL(str(path))

    def function(self, name: str, integers: int, pointers: int) -> ctypes._NamedFuncPointer:  # pyright: ignore[reportPrivateUsage] (no public name for it)
        """The C function `void name(int64_t..., void *...)`.

        Raises `missing-symbol`, and `too-many-arguments` beyond what ctypes passes.
        """
        if integers + pointers > MAX_ARGUMENTS:
            raise UopcError(
                "too-many-arguments",
                f"{name!r} has {integers + pointers} parameters; at most {MAX_ARGUMENTS} can be "
                "passed one by one",
            )
        try:
            found = self._handle[name]
        except AttributeError:
            raise self._missing(name) from None
        found.argtypes = [ctypes.c_int64] * integers + [ctypes.c_void_p] * pointers
        found.restype = None
        return found

    def address(self, name: str) -> int:
        """Where the C object `name` lies. Raises `missing-symbol`."""
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(self._handle, name))
        except ValueError:
            raise self._missing(name) from None

    def _missing(self, name: str) -> UopcError:
        return UopcError(
            "missing-symbol",
            f"the compiled code has no visible {name!r}",
            hint="the plan's names and the C source do not belong together",
        )


@dataclass
class _Load:
    """A load in progress, for those who wait for it."""

    done: threading.Event = field(default_factory=threading.Event)
    library: Library | None = None
    error: UopcError | None = None


_open: WeakValueDictionary[str, Library] = WeakValueDictionary()
_loading: dict[str, _Load] = {}
_guard = threading.Lock()


def load_library(
    source: str, options: CompileOptions | None = None, units: Sequence[str] = ()
) -> Library:
    """Compile C `source`, or find it compiled, and load it. Safe from any thread.

    `units` are the source as several files, which compile in parallel.

    Raises `no-compiler`, `compile-failed`, `load-failed` and `no-cache-folder`.
    """
    options = options or CompileOptions()
    store = open_cache()
    compiler = find_compiler(store)
    key = compiler.key(source, options)
    while True:
        with _guard:
            if (known := _open.get(key)) is not None:
                return known
            load = _loading.get(key)
            mine = load is None
            if load is None:
                load = _loading[key] = _Load()
        if mine:
            build = _Build(store, compiler, tuple(units) or (source,), options, key)
            return _load_for_all(load, build)
        load.done.wait()
        if load.error is not None:
            raise load.error
        if load.library is not None:
            return load.library
        # Who built it was interrupted: take its place.


@dataclass(frozen=True)
class _Build:
    """What is to be compiled, and where it is kept."""

    store: Cache
    compiler: Compiler
    units: tuple[str, ...]
    options: CompileOptions
    key: str


def _load_for_all(load: _Load, build: _Build) -> Library:
    key = build.key
    try:
        load.library = _find_or_build(build)
        return load.library
    except UopcError as error:
        load.error = error
        raise
    finally:
        with _guard:
            if load.library is not None:
                _open[key] = load.library
            _loading.pop(key, None)
        load.done.set()


def _find_or_build(build: _Build) -> Library:
    store, key = build.store, build.key
    if (found := _find(store, key)) is not None:
        return found
    with store.building(key) as folder:
        # Another process may have published it while this one waited.
        if (found := _find(store, key)) is not None:
            return found
        try:
            product = compile_shared(build.compiler, build.units, build.options, folder)
        except CompilerFailed as failure:
            kept = store.keep_failed(key, failure.source)
            raise compile_error(build.compiler, failure, kept) from None
        except OSError as error:
            raise no_folder(error) from error
        path = store.write(key, ".so", product)
        try:
            return Library(key, path, compiled=True)
        except OSError as error:
            raise UopcError(
                "load-failed",
                f"the code compiled for this plan does not load: {error}",
                hint="a folder mounted noexec cannot hold code: "
                f"set {environment.CACHE.name} to another one",
            ) from None


def _find(store: Cache, key: str) -> Library | None:
    path = store.find(key, ".so")
    if path is None:
        return None
    # Dropped between the check and now, or made on another system: it is built again.
    with contextlib.suppress(OSError):
        return Library(key, path, compiled=False)
    return None


def _after_fork() -> None:
    # Threads that were loading do not exist in the child, nor does the one that held the lock.
    global _guard
    _guard = threading.Lock()
    _loading.clear()


os.register_at_fork(after_in_child=_after_fork)
