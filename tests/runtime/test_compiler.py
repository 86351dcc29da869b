from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from uopc.dialects.errors import UopcError
from uopc.runtime import compiler as compiler_module
from uopc.runtime.cache import open_cache
from uopc.runtime.compiler import CompileOptions, find_compiler
from uopc.runtime.library import load_library

ROOT = Path(compiler_module.__file__).parents[1]


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_module, "_probes", {})


def failure(source: str = "void f(void) {}") -> UopcError:
    with pytest.raises(UopcError) as caught:
        load_library(source)
    return caught.value


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_no_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    error = failure()
    assert str(error) == (
        f"error: no C compiler: tried cc, gcc, clang on PATH ({tmp_path}); set UOPC_CC to one, "
        "or go on without by --target interpreter [no-compiler]"
    )
    monkeypatch.setenv("PATH", "")
    assert "on PATH (which is empty)" in str(failure())


@pytest.mark.parametrize("value", ["/nowhere/cc", "no such compiler", "'unbalanced", "$(touch x)"])
def test_uopc_cc_that_is_nothing(monkeypatch: pytest.MonkeyPatch, value: str):
    monkeypatch.setenv("UOPC_CC", value)
    error = failure()
    assert error.kind == "no-compiler"
    assert f"UOPC_CC is {value!r}" in error.message


def test_uopc_cc_that_does_not_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("UOPC_CC", str(script(tmp_path / "cc", "echo license expired; exit 3")))
    assert "does not work: license expired" in failure().message
    # As tcc does: vector types are ignored without a word.
    drop = (
        'sed "s/__attribute__((.*))//" plan.c > x.c; exec cc -std=c11 -fPIC -shared x.c -o plan.so'
    )
    monkeypatch.setenv("UOPC_CC", str(script(tmp_path / "tcc", drop)))
    assert failure().kind == "no-compiler"


def test_a_broken_cc_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    script(tmp_path / "cc", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = find_compiler(open_cache())
    assert Path(found.command[0]).name == "gcc" or Path(found.command[0]).name == "clang"


def test_paths_with_spaces_and_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    path = script(tmp_path / "my dir" / "my cc", 'exec cc "$@"')
    monkeypatch.setenv("UOPC_CC", str(path))
    assert find_compiler(open_cache()).command == (str(path),)
    load_library("void spaced(void) {}")
    monkeypatch.setenv("UOPC_CC", "env LC_ALL=C cc")
    command = find_compiler(open_cache()).command
    assert Path(command[0]).name == "env"
    assert command[1:] == ("LC_ALL=C", "cc")
    load_library("void worded(void) {}")


@pytest.mark.parametrize("name", ["gcc", "clang"])
def test_flags_are_probed(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv("UOPC_CC", name)
    if compiler_module.shutil.which(name) is None:
        pytest.skip(f"no {name}")
    arguments = find_compiler(open_cache()).arguments(CompileOptions())
    assert arguments[0] == "-O2"
    for flag in ("-std=c11", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno"):
        assert flag in arguments
    # clang warns that it ignores gcc's cost model.
    assert ("-fvect-cost-model=dynamic" in arguments) == (name == "gcc")
    assert "-Ofast" not in arguments
    assert not any("fast-math" in argument for argument in arguments)
    load_library(f"void probed_by_{name}(void) {{}}")


def test_flags_that_are_not_taken_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    body = (
        'case "$*" in *vect*|*march*) echo "unrecognized option"; exit 1;; esac\n'
        'for a; do shift; [ "$a" = -mcpu=native ] || set -- "$@" "$a"; done\nexec cc "$@"'
    )
    monkeypatch.setenv("UOPC_CC", str(script(tmp_path / "cc", body)))
    found = find_compiler(open_cache())
    assert found.native_flag == "-mcpu=native"
    assert found.flags[3:] == ("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")


def test_probing_is_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    log = tmp_path / "log"
    path = script(tmp_path / "cc", f'echo run >> "{log}"\nexec cc "$@"')
    monkeypatch.setenv("UOPC_CC", str(path))
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path / "cache"))
    first = find_compiler(open_cache())
    runs = len(log.read_text().split())
    assert runs == 3
    monkeypatch.setattr(compiler_module, "_probes", {})
    assert find_compiler(open_cache()) == first
    assert len(log.read_text().split()) == runs
    # Another program at the same path is asked again.
    script(path, f'echo run >> "{log}"\n\nexec cc "$@"')
    monkeypatch.setattr(compiler_module, "_probes", {})
    find_compiler(open_cache())
    assert len(log.read_text().split()) > runs


def test_a_source_that_does_not_compile():
    source = "void f(void) { return 1 +; }\n" + "int x[-1];\n" * 30
    error = failure(source)
    assert error.kind == "compile-failed"
    assert "(exit status 1)" in error.message
    kept = Path(error.message.rsplit("kept in ", 1)[1])
    assert kept.read_text() == source
    lines = error.hint.splitlines()
    assert len(lines) == 14
    assert "plan.c:1:" in error.hint
    assert lines[-1].endswith("more lines")


def test_the_unit_that_does_not_compile_is_kept():
    units = ["int first(void) { return 1; }", "void second(void) { third(", "int fourth;"]
    with pytest.raises(UopcError) as caught:
        load_library("/* as units */", units=units)
    kept = Path(caught.value.message.rsplit("kept in ", 1)[1])
    assert kept.read_text() == units[1]
    assert "plan_1.c" in (caught.value.hint or "")


def test_a_compiler_that_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    body = 'case "$*" in *Werror*|*version*) exec cc "$@";; esac\nkill -9 $$'
    monkeypatch.setenv("UOPC_CC", str(script(tmp_path / "cc", body)))
    assert "killed by signal 9" in failure("void killed(void) {}").message


def test_a_compiler_that_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    body = 'case "$*" in *Werror*|*version*) exec cc "$@";; esac\nexec sleep 20'
    monkeypatch.setenv("UOPC_CC", str(script(tmp_path / "cc", body)))
    find_compiler(open_cache())
    monkeypatch.setattr(compiler_module, "COMPILE_SECONDS", 0.2)
    assert "no end after 0.2 seconds" in failure("void hangs(void) {}").hint


def test_control_characters_of_a_compiler_are_not_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    body = 'case "$*" in *Werror*|*version*) exec cc "$@";; esac\nprintf "\\033[2Jbad\\n"; exit 1'
    monkeypatch.setenv("UOPC_CC", str(script(tmp_path / "cc", body)))
    assert "\033" not in str(failure("void coloured(void) {}"))


def test_a_shared_object_that_does_not_load():
    error = failure("void nowhere_to_be_found(void); void f(void) { nowhere_to_be_found(); }")
    assert error.kind == "load-failed"
    assert "nowhere_to_be_found" in error.message


def test_lone_surrogates_do_no_harm():
    load_library("/* \udc80 \ud800 */ void surrogate(void) {}")


def test_options_are_checked():
    for wrong in ({"opt_level": 4}, {"opt_level": -1}, {"sanitize": ("thread; rm",)}):
        with pytest.raises(UopcError) as caught:
            CompileOptions(**wrong)
        assert caught.value.kind == "bad-option"


OVERFLOW = """
import ctypes
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.library import load_library
source = '''#include <stdint.h>
void add(int64_t n, int32_t *out) { *out += (int32_t)n; }'''
library = load_library(source, CompileOptions(sanitize=("undefined",)))
value = ctypes.c_int32(2147483647)
library.function("add", 1, 1)(1, ctypes.addressof(value))
print("survived")
"""


def test_sanitizers():
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT.parent)])
    done = subprocess.run(
        [sys.executable, "-c", OVERFLOW],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "survived" not in done.stdout
    assert "signed integer overflow" in done.stderr
