"""Schedules at odd sizes: right values, and the same bits at -O0, -O3 and from clang.

Every size of a module is compiled in one C file. The canaries around outputs are those of the
bounds that ASan checks in test_examples.py; here a store past a row would show in the values of
the next output, since outputs are compared whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable

import numpy as np
import pytest

from uopc.dialects.locations import parse_text
from uopc.frontend.compile import CompileRequest, lower
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program

RNG = np.random.default_rng(7)


def product(name: str, m: int, n: int, k: int, *, ta: bool = False, tb: bool = False) -> str:
    """A matrix product with either factor given transposed."""
    a, b = (f"{k}x{m}" if ta else f"{m}x{k}"), (f"{n}x{k}" if tb else f"{k}x{n}")
    turn_a = f"%at = utensor.permute %a [1, 0] : tensor<{a}xf32>" if ta else ""
    turn_b = "" if tb else f"%bt = utensor.permute %b [1, 0] : tensor<{b}xf32>"
    left, right = ("%at" if ta else "%a"), ("%b" if tb else "%bt")
    cube = f"tensor<{m}x{n}x{k}xf32>"
    return f"""
func.func @{name}(%a: tensor<{a}xf32>, %b: tensor<{b}xf32>) -> tensor<{m}x{n}xf32> {{
  {turn_a}
  {turn_b}
  %a3 = utensor.reshape {left} : tensor<{m}x{k}xf32> -> tensor<{m}x1x{k}xf32>
  %ae = utensor.expand %a3 : tensor<{m}x1x{k}xf32> -> {cube}
  %b3 = utensor.reshape {right} : tensor<{n}x{k}xf32> -> tensor<1x{n}x{k}xf32>
  %be = utensor.expand %b3 : tensor<1x{n}x{k}xf32> -> {cube}
  %p = utensor.mul %ae, %be : {cube}
  %c = utensor.reduce add %p axes [2] : {cube}
  func.return %c : tensor<{m}x{n}xf32>
}}"""


def reduction(name: str, kind: str, m: int, n: int, axis: int, element: str) -> str:
    """A reduction of a matrix along one axis."""
    kept = n if axis == 0 else m
    return f"""
func.func @{name}(%x: tensor<{m}x{n}x{element}>) -> tensor<{kept}x{element}> {{
  %r = utensor.reduce {kind} %x axes [{axis}] : tensor<{m}x{n}x{element}>
  func.return %r : tensor<{kept}x{element}>
}}"""


def executables(texts: Iterable[str]) -> list[dict[str, object]]:
    """The functions of a module, by name, once for each way to compile it."""
    lowered = lower(parse_text("\n".join(texts)), CompileRequest(pipeline="uopc-cpu-native"))
    program = lowered.program()
    ways = [CompileOptions(opt_level=0), CompileOptions(opt_level=3)]
    return [
        {p.name: load_program(program, p.name, options=way) for p in program.plans} for way in ways
    ]


def clang_executables(texts: Iterable[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.setenv("UOPC_CC", "clang")
    lowered = lower(parse_text("\n".join(texts)), CompileRequest(pipeline="uopc-cpu-native"))
    program = lowered.program()
    return {p.name: load_program(program, p.name) for p in program.plans}


SIZES = [(1, 1, 2), (2, 3, 5), (6, 16, 8), (7, 17, 9), (13, 33, 31), (24, 47, 64), (25, 15, 1),
         (31, 48, 40), (37, 67, 23), (1, 67, 33), (67, 1, 33), (5, 64, 128)]  # fmt: skip


def test_products_of_odd_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = {
        f"p{m}_{n}_{k}_{int(ta)}{int(tb)}": (m, n, k, ta, tb)
        for m, n, k in SIZES
        for ta, tb in [(False, False), (True, True)]
    }
    texts = [product(name, m, n, k, ta=ta, tb=tb) for name, (m, n, k, ta, tb) in cases.items()]
    ways = executables(texts)
    if shutil.which("clang"):
        ways.append(clang_executables(texts, monkeypatch))
    for name, (m, n, k, ta, tb) in cases.items():
        a = RNG.standard_normal((k, m) if ta else (m, k)).astype(np.float32)
        b = RNG.standard_normal((n, k) if tb else (k, n)).astype(np.float32)
        left, right = (a.T if ta else a), (b.T if tb else b)
        expected = left.astype(np.float64) @ right.astype(np.float64)
        results = [way[name](a, b) for way in ways]
        np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-4, err_msg=name)
        for other in results[1:]:
            assert other.tobytes() == results[0].tobytes(), name


@pytest.mark.parametrize("element", ["f32", "f64", "i32", "f16", "i8"])
def test_reductions_of_odd_sizes(element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from uopc.dialects.element_types import element_type_named

    dtype = element_type_named(element).numpy
    kinds = ["add", "max"] if element != "i8" else ["add", "min"]
    shapes = [(3, n) for n in (1, 7, 8, 31, 67, 130)] + [(67, 5), (70, 67)]
    cases = {
        f"r{kind}_{m}_{n}_{axis}": (kind, m, n, axis)
        for kind in kinds
        for m, n in shapes
        for axis in (0, 1)
    }
    texts = [
        reduction(name, kind, m, n, axis, element) for name, (kind, m, n, axis) in cases.items()
    ]
    ways = executables(texts)
    if shutil.which("clang"):
        ways.append(clang_executables(texts, monkeypatch))
    functions = {"add": np.sum, "max": np.max, "min": np.min}
    for name, (kind, m, n, axis) in cases.items():
        x = (RNG.standard_normal((m, n)) * 10).astype(dtype)
        wide = x.astype(np.float64) if dtype.kind == "f" else x.astype(np.int64)
        expected = functions[kind](wide, axis=axis).astype(dtype)
        results = [way[name](x) for way in ways]
        tolerance = {"f": np.finfo(dtype).eps * 64 if dtype.kind == "f" else 0}.get(dtype.kind, 0)
        np.testing.assert_allclose(
            results[0].astype(np.float64),
            expected.astype(np.float64),
            rtol=tolerance,
            atol=tolerance * 100,
            err_msg=name,
        )
        for other in results[1:]:
            assert other.tobytes() == results[0].tobytes(), name


def test_nan_wins_in_every_lane() -> None:
    (way, _) = executables([reduction("worst", "max", 1, 67, 1, "f32")])
    for place in range(67):
        x = np.ones((1, 67), np.float32)
        x[0, place] = np.nan
        assert np.isnan(way["worst"](x)).all(), place
