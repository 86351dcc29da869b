"""The units of a C file make the same shared object as the file."""

from __future__ import annotations

import ctypes
import itertools
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from uopc.dialects.locations import parse_text
from uopc.lowering import c_file
from uopc.lowering.c import CSource, emit_c
from uopc.runtime.library import load_library

SOME = """\
"memref.global"() <{sym_name = "steps", type = memref<3xf32>,
  initial_value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>,
  sym_visibility = "private", constant}> : () -> ()
"memref.global"() <{sym_name = "seen", type = memref<2xf32>,
  initial_value = dense<[4.0, 5.0]> : tensor<2xf32>,
  sym_visibility = "public", constant}> : () -> ()
func.func @whole(%m: memref<4xf32>) {
  func.call @a(%m) : (memref<4xf32>) -> ()
  func.call @b(%m) : (memref<4xf32>) -> ()
  func.call @c(%m) : (memref<4xf32>) -> ()
  func.return
}
func.func private @twice(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  func.return %y : f32
}
func.func private @a(%m: memref<4xf32>) {
  %zero = arith.constant 0 : index
  %x = memref.load %m[%zero] : memref<4xf32>
  %y = func.call @twice(%x) : (f32) -> f32
  memref.store %y, %m[%zero] : memref<4xf32>
  func.return
}
func.func private @b(%m: memref<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = memref.get_global @steps : memref<3xf32>
  %x = memref.load %steps[%one] : memref<3xf32>
  memref.store %x, %m[%one] : memref<4xf32>
  func.return
}
func.func private @part(%i: index, %m: memref<4xf32>) {
  %two = arith.constant 2 : index
  %at = arith.addi %i, %two : index
  %x = memref.load %m[%at] : memref<4xf32>
  %y = func.call @twice(%x) : (f32) -> f32
  memref.store %y, %m[%at] : memref<4xf32>
  func.return
}
func.func private @c(%m: memref<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  "scf.parallel"(%zero, %two, %one) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    func.call @part(%i, %m) : (index, memref<4xf32>) -> ()
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}
"""


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CSource:
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path / "cache"))  # what is in no cache compiles
    monkeypatch.setattr(c_file, "UNIT_CHARACTERS", 1)
    return emit_c(parse_text(SOME))


def defined(unit: str) -> set[str]:
    """The functions of SOME that a unit defines."""
    return set(
        re.findall(r"^(?:\w+ )+\*?(twice|a|b|c|part|whole)\([^;]*\)\n\{", unit, re.MULTILINE)
    )


def test_each_function_is_in_one_unit(source: CSource):
    for count in range(2, 9):
        units = source.file.units(count)
        assert 2 <= len(units) <= count
        functions = [defined(unit) for unit in units]
        assert set().union(*functions) == {"twice", "a", "b", "c", "part", "whole"}
        assert not any(x & y for x, y in itertools.combinations(functions, 2))
        # The array that @b names has internal linkage.
        assert {"whole", "b"} <= functions[0]
        assert next(f for f in functions if "c" in f) >= {"part"}


def test_one_unit_is_none(source: CSource):
    assert source.file.units(1) == ()


def test_short_files_stay_whole():
    assert emit_c(parse_text(SOME)).file.units(8) == ()


@pytest.mark.parametrize("count", [2, 3, 8])
def test_units_do_what_the_file_does(source: CSource, count: int):
    units = source.file.units(count)
    # Another text for each count: the process knows what the whole text compiles to.
    library = load_library(f"{source.text}/* {count} */\n", None, units)
    assert library.compiled
    x = np.arange(1, 5, dtype=np.float32)
    library.function("whole", 0, 1)(x.ctypes.data)
    assert x.tolist() == [2.0, 2.0, 6.0, 8.0]


def test_only_what_is_public_is_seen(source: CSource):
    library = load_library(f"{source.text}/* seen */\n", None, source.file.units(3))
    found = subprocess.run(
        ["nm", "--dynamic", "--defined-only", library.path],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.split()[-1] for line in found.stdout.splitlines()}
    assert names >= {"whole", "whole_use_threads", "seen"}
    assert not names & {"twice", "a", "b", "c", "part", "steps", "run_parts"}


def test_a_pool_runs_parts_of_all_units(source: CSource):
    library = load_library(f"{source.text}/* pool */\n", None, source.file.units(4))
    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    counts = list[int]()

    @ctypes.CFUNCTYPE(None, ctypes.c_int64, body, ctypes.c_void_p)
    def run(count: int, function: object, context: int) -> None:
        counts.append(count)
        for part in reversed(range(count)):
            function(context, part)  # type: ignore[operator]

    plug_in = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address(source.use_threads))
    plug_in(ctypes.cast(run, ctypes.c_void_p))
    x = np.arange(1, 5, dtype=np.float32)
    library.function("whole", 0, 1)(x.ctypes.data)
    assert counts == [2]
    assert x.tolist() == [2.0, 2.0, 6.0, 8.0]


def test_units_compile_without_warnings(source: CSource, tmp_path: Path):
    for index, unit in enumerate(source.file.units(3)):
        path = tmp_path / f"unit_{index}.c"
        path.write_text(unit)
        for compiler in filter(shutil.which, ("gcc", "clang")):
            command = [compiler, "-std=c11", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror"]
            subprocess.run([*command, "-fsyntax-only", path], check=True)
