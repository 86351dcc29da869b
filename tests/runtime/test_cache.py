from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from uopc.dialects.errors import UopcError
from uopc.runtime import cache as cache_module
from uopc.runtime import compiler as compiler_module
from uopc.runtime import library as library_module
from uopc.runtime.cache import Cache, open_cache, prune
from uopc.runtime.compiler import CompileOptions, find_compiler
from uopc.runtime.library import load_library

SOURCE = "void answer(long long *out) { *out = 42; }\n"
KEY = "ab" * 32

# Loads SOURCE and prints what it computes and whether it was compiled here.
CHILD = """
import ctypes, sys
from uopc.runtime.library import load_library
library = load_library(sys.argv[1])
out = ctypes.c_int64()
library.function("answer", 0, 1)(ctypes.addressof(out))
print(out.value, library.compiled)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of this test's own."""
    path = tmp_path / "cache of mine"
    monkeypatch.setenv("UOPC_CACHE", str(path))
    return path


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start as a fresh process does: nothing open, no folder known."""
    monkeypatch.setattr(library_module, "_open", type(library_module._open)())
    monkeypatch.setattr(cache_module, "_caches", {})
    monkeypatch.setattr(cache_module, "_private", None)


def start_child(folder: Path, source: str = SOURCE, **variables: str) -> subprocess.Popen[str]:
    root = Path(library_module.__file__).parents[1]
    path = [str(root / "src"), str(root.parent)]
    environment = {**os.environ, "UOPC_CACHE": str(folder), **variables}
    environment["PYTHONPATH"] = os.pathsep.join(path)
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, source],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(child: subprocess.Popen[str]) -> str:
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    return out.strip()


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.so"))


def test_found_by_the_next_process(folder: Path):
    assert outcome(start_child(folder)) == "42 True"
    assert outcome(start_child(folder)) == "42 False"
    assert len(entries(folder)) == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(folder.glob("build-*")) + list(folder.glob("*.lock"))


def test_sixteen_processes_one_compilation(folder: Path):
    children = [start_child(folder) for _ in range(16)]
    outcomes = [outcome(child) for child in children]
    assert sorted(outcomes) == ["42 False"] * 15 + ["42 True"]
    assert len(entries(folder)) == 1


SLOW_COMPILER = """#!/bin/sh
# Writes half of the product, says so, and takes its time over the rest.
case "$*" in
  *--version*|*-Werror*) exec cc "$@" ;;
esac
cc "$@" || exit 1
head -c 500 plan.so > half && cp half plan.so
touch "$UOPC_TEST_MARK"
sleep 5
"""


def test_killed_in_mid_build(folder: Path, tmp_path: Path):
    compiler = tmp_path / "slow cc"
    compiler.write_text(SLOW_COMPILER)
    compiler.chmod(0o755)
    mark = tmp_path / "mark"
    victim = start_child(folder, UOPC_CC=str(compiler), UOPC_TEST_MARK=str(mark))
    deadline = time.monotonic() + 30
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert mark.exists()
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert entries(folder) == []
    leftovers = list(folder.glob("build-*"))
    assert leftovers
    # The lock went with its holder: the same key can be built at once, by a compiler that works.
    compiler.write_text('#!/bin/sh\nexec cc "$@"\n')
    began = time.monotonic()
    assert outcome(start_child(folder, UOPC_CC=str(compiler))) == "42 True"
    assert time.monotonic() - began < 4.5
    for leftover in leftovers:
        os.utime(leftover, (0, 0))
    prune(folder)
    assert not list(folder.glob("build-*"))
    assert len(entries(folder)) == 1


@pytest.mark.parametrize("damage", ["cut", "empty", "changed", "longer", "foreign", "folder"])
def test_a_damaged_entry_is_built_again(folder: Path, damage: str):
    load_library(SOURCE)
    (path,) = entries(folder)
    data = path.read_bytes()
    load_library(SOURCE + "/* other */")
    other = next(entry for entry in entries(folder) if entry != path)
    damaged = {
        "cut": data[: len(data) // 2],
        "empty": b"",
        "changed": data[:5000] + bytes([data[5000] ^ 1]) + data[5001:],
        "longer": data + b"x",
        "foreign": other.read_bytes(),
    }
    # The old file stays mapped in this process: replace it as an editor does, never in place.
    path.unlink()
    if damage == "folder":
        (path / "inside").mkdir(parents=True)
        # It cannot be replaced, so what is built goes to a private folder.
        assert outcome(start_child(folder)) == "42 True"
        return
    path.write_bytes(damaged[damage])
    path.chmod(0o600)
    assert outcome(start_child(folder)) == "42 True"
    assert path.stat().st_size == len(data)
    assert outcome(start_child(folder)) == "42 False"


def test_entries_that_others_could_write_are_not_trusted(folder: Path):
    load_library(SOURCE)
    (path,) = entries(folder)
    path.chmod(0o666)
    assert open_cache().find(path.stem, ".so") is None
    path.chmod(0o600)
    assert open_cache().find(path.stem, ".so") == path
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
        assert open_cache().find(path.stem, ".so") is None


def test_symbolic_links_and_pipes_are_not_entries(folder: Path):
    path = load_library(SOURCE).path
    moved = path.with_name("moved")
    path.rename(moved)
    path.symlink_to(moved)
    assert open_cache().find(path.stem, ".so") is None
    path.unlink()
    os.mkfifo(path)
    assert open_cache().find(path.stem, ".so") is None


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_everyone_may_write_to_is_not_used(folder: Path, mode: int):
    folder.mkdir()
    folder.chmod(mode)
    library = load_library(SOURCE)
    assert library.path.parent == cache_module.private_folder()
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_someone_else_is_not_used(folder: Path):
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    assert load_library(SOURCE).path.parent == cache_module.private_folder()
    assert list(folder.iterdir()) == []


def test_no_folder_can_be_made(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.setenv("UOPC_CACHE", "/proc/uopc cache")
    monkeypatch.setenv("UOPC_DEBUG", "1")
    first = load_library(SOURCE)
    assert first.compiled
    private = cache_module.private_folder()
    assert first.path.parent == private
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    load_library(SOURCE + "/* more */")
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("uopc: /proc/uopc cache is not written to (")
    assert "set UOPC_CACHE" in said[0]


def test_home_is_used_without_uopc_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("UOPC_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert load_library(SOURCE).path.parent == tmp_path / ".cache" / "uopc"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert open_cache().writable_folder == tmp_path / "xdg" / "uopc"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert open_cache().writable_folder == tmp_path / ".cache" / "uopc"


def refuse_writes(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make `folder` read-only, for root too, whom modes do not stop."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
        return

    def refusing(real: Callable[..., object]) -> Callable[..., object]:
        def make(*arguments: object, **named: object) -> object:
            if named.get("dir") == folder:
                raise OSError(30, "Read-only file system")
            return real(*arguments, **named)

        return make

    for name in ("mkdtemp", "mkstemp"):
        real = getattr(cache_module.tempfile, name)
        monkeypatch.setattr(cache_module.tempfile, name, refusing(real))


def test_a_read_only_folder_gives_what_it_has(folder: Path, monkeypatch: pytest.MonkeyPatch):
    held = load_library(SOURCE).path
    monkeypatch.setattr(library_module, "_open", type(library_module._open)())
    monkeypatch.setattr(cache_module, "_caches", {})
    before = sorted(folder.iterdir())
    refuse_writes(monkeypatch, folder)
    found = load_library(SOURCE)
    assert not found.compiled
    assert found.path == held
    new = load_library(SOURCE + "/* new */")
    assert new.compiled
    assert new.path.parent == cache_module.private_folder()
    # And from then on both folders are looked into.
    monkeypatch.setattr(library_module, "_open", type(library_module._open)())
    assert not load_library(SOURCE + "/* new */").compiled
    assert not load_library(SOURCE).compiled
    assert sorted(folder.iterdir()) == before
    folder.chmod(0o700)


def test_thirty_two_threads_one_compilation_a_source(folder: Path, monkeypatch: pytest.MonkeyPatch):
    compiled: list[str] = []
    real = compiler_module.compile_shared

    def counting(compiler: object, units: Sequence[str], *rest: object) -> bytes:
        compiled.extend(units)
        return real(compiler, units, *rest)

    monkeypatch.setattr(library_module, "compile_shared", counting)
    sources = [f"{SOURCE}/* {number} */" for number in range(4)]
    start = threading.Barrier(32)
    loaded: list[tuple[str, object]] = []

    def work(number: int) -> None:
        start.wait()
        source = sources[number % 4]
        loaded.append((source, load_library(source)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(compiled) == sources
    assert len(loaded) == 32
    assert len(set(loaded)) == 4


def test_all_threads_get_the_error(folder: Path):
    errors: list[UopcError] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        try:
            load_library("this is not C")
        except UopcError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [error.kind for error in errors] == ["compile-failed"] * 4
    load_library(SOURCE)


def test_an_interrupted_builder_is_replaced(folder: Path, monkeypatch: pytest.MonkeyPatch):
    real = compiler_module.compile_shared
    waiting = threading.Event()
    calls: list[int] = []

    def interrupted_first(*arguments: object) -> bytes:
        calls.append(1)
        if len(calls) == 1:
            waiting.wait(10)
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(library_module, "compile_shared", interrupted_first)
    results: list[object] = []

    def work() -> None:
        try:
            results.append(load_library(SOURCE))
        except KeyboardInterrupt:
            results.append("interrupted")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    waiting.set()
    for thread in threads:
        thread.join()
    assert results.count("interrupted") == 1
    assert len(calls) == 2
    assert len(set(results)) == 2


def test_open_libraries_are_held_weakly(folder: Path):
    library = load_library(SOURCE)
    assert load_library(SOURCE) is library
    del library
    assert not list(library_module._open.values())
    assert not load_library(SOURCE).compiled


def test_key_depends_on_all_that_matters(folder: Path):
    compiler = find_compiler(open_cache())
    keys = {
        compiler.key(source, options)
        for source in (SOURCE, SOURCE + " ")
        for options in (
            CompileOptions(),
            CompileOptions(opt_level=3),
            CompileOptions(native=False),
            CompileOptions(sanitize=("undefined",)),
        )
    }
    assert len(keys) == 8
    assert compiler.key(SOURCE, CompileOptions()) == compiler.key(SOURCE, CompileOptions())


def test_key_depends_on_the_processor(folder: Path, monkeypatch: pytest.MonkeyPatch):
    compiler = find_compiler(open_cache())
    native, portable = CompileOptions(), CompileOptions(native=False)
    before = compiler.key(SOURCE, native), compiler.key(SOURCE, portable)
    monkeypatch.setattr(compiler_module, "processor", lambda: "another")
    after = compiler.key(SOURCE, native), compiler.key(SOURCE, portable)
    assert after[0] != before[0]
    assert after[1] == before[1]


class TestLimits:
    @pytest.fixture
    def full(self, tmp_path: Path) -> Path:
        store = Cache(tmp_path)
        now = time.time()
        for number in range(10):
            path = store.write(f"{number:064x}", ".so", bytes(1000 - 48))
            os.utime(path, (now - 1000 + number * 10,) * 2)
        return tmp_path

    def names(self, folder: Path) -> list[int]:
        return [int(path.stem, 16) for path in sorted(folder.glob("*.so"))]

    def test_least_recently_used_go_first(self, full: Path):
        prune(full, limit_bytes=4500)
        assert self.names(full) == [6, 7, 8, 9]

    def test_old_ones_go(self, full: Path):
        prune(full, limit_age=935)
        assert self.names(full) == [7, 8, 9]

    def test_foreign_files_stay(self, full: Path):
        kept = [full / "README", full / "notes.so", full / ("g" * 63 + ".so")]
        for path in kept:
            path.write_text("x")
            os.utime(path, (0, 0))
        prune(full, limit_bytes=0)
        assert sorted(full.iterdir()) == sorted(kept)

    def test_a_use_is_noted(self, full: Path):
        path = full / f"{0:064x}.so"
        os.utime(path, (time.time() - 7200,) * 2)
        assert Cache(full).find(path.stem, ".so") == path
        assert time.time() - path.stat().st_mtime < 60

    def test_young_leftovers_stay(self, full: Path):
        young, old = full / "build-young", full / "build-old"
        for path in (young, old):
            path.mkdir()
            (path / "plan.c").write_text("x")
        lock = full / f"{KEY}.lock"
        lock.touch()
        for path in (old, lock):
            os.utime(path, (0, 0))
        prune(full)
        assert young.exists()
        assert not old.exists()
        assert not lock.exists()
        assert len(self.names(full)) == 10

    def test_writing_prunes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        (tmp_path / "build-old").mkdir()
        os.utime(tmp_path / "build-old", (0, 0))
        Cache(tmp_path).write(KEY, ".so", b"x")
        assert not (tmp_path / "build-old").exists()
