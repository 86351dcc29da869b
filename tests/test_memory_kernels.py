"""Kernels of half types and those bound by memory, at odd sizes, against the interpreter's bits.

What linearize and expand-math leave fixes every bit, so the interpreter of that IR, gcc at -O0
and -O3, clang, and any number of threads have to agree; and all have to be near numpy.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import uopc
from uopc.dialects.locations import parse_text
from uopc.frontend.compile import CompileRequest, lower
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program

RNG = np.random.default_rng(11)
DTYPES: dict[str, Any] = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i64": np.int64,
    "i8": np.int8,
    "ui8": np.uint8,
}
Array = np.ndarray[Any, np.dtype[Any]]


def product(name: str, m: int, n: int, k: int, element: str, *, ta: bool) -> str:
    """A matrix product, its first factor given transposed or not."""
    a = f"{k}x{m}" if ta else f"{m}x{k}"
    turn = f"%at = utensor.permute %a [1, 0] : tensor<{a}x{element}>" if ta else ""
    left, cube = ("%at" if ta else "%a"), f"tensor<{m}x{n}x{k}x{element}>"
    return f"""
func.func @{name}(%a: tensor<{a}x{element}>, %b: tensor<{k}x{n}x{element}>)
    -> tensor<{m}x{n}x{element}> {{
  {turn}
  %bt = utensor.permute %b [1, 0] : tensor<{k}x{n}x{element}>
  %a3 = utensor.reshape {left} : tensor<{m}x{k}x{element}> -> tensor<{m}x1x{k}x{element}>
  %ae = utensor.expand %a3 : tensor<{m}x1x{k}x{element}> -> {cube}
  %b3 = utensor.reshape %bt : tensor<{n}x{k}x{element}> -> tensor<1x{n}x{k}x{element}>
  %be = utensor.expand %b3 : tensor<1x{n}x{k}x{element}> -> {cube}
  %p = utensor.mul %ae, %be : {cube}
  %c = utensor.reduce add %p axes [2] : {cube}
  func.return %c : tensor<{m}x{n}x{element}>
}}"""


def run_every_way(
    texts: Iterable[str],
    inputs: dict[str, list[Array]],
    monkeypatch: pytest.MonkeyPatch,
    pipeline: str = "uopc-cpu-native",
    interpreted: Callable[[str], bool] = lambda name: True,
) -> dict[str, Array]:
    """Each function's result, the same bits in every way to run it."""
    text = "\n".join(texts)
    program = lower(parse_text(text), CompileRequest(pipeline=pipeline)).program()
    ways: list[tuple[str, dict[str, Any]]] = []
    for level in (0, 3):
        options = CompileOptions(opt_level=level)
        loaded = {p.name: load_program(program, p.name, options=options) for p in program.plans}
        ways.append((f"-O{level}", loaded))
    if shutil.which("clang"):
        monkeypatch.setenv("UOPC_CC", "clang")
        loaded = {p.name: load_program(program, p.name) for p in program.plans}
        ways.append(("clang", loaded))
        monkeypatch.delenv("UOPC_CC")
    ways.append(
        (
            "interpreter",
            {
                name: uopc.compile(text, "interpreter:linear", function=name, pipeline=pipeline)
                for name in inputs
                if interpreted(name)
            },
        )
    )
    results: dict[str, Array] = {}
    for name, arrays in inputs.items():
        for way, functions in ways:
            if name not in functions:
                continue
            got = functions[name](*arrays)
            expected = results.setdefault(name, got)
            assert same(got, expected), (name, way)
    return results


def same(a: Array, b: Array) -> bool:
    """Whether two arrays hold the same bits, or NaN both."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    equal = a.view(bits) == b.view(bits)
    return bool((equal | ((a != a) & (b != b))).all())


def numbers(shape: tuple[int, ...], element: str) -> Array:
    if element in ("f64", "f32", "f16", "bf16"):
        return (RNG.standard_normal(shape) * 3).astype(DTYPES[element])
    info = np.iinfo(DTYPES[element])
    return RNG.integers(max(info.min, -99), min(info.max, 99), shape).astype(DTYPES[element])


PRODUCTS = [(2, 16, 3), (9, 17, 5), (11, 67, 33)]


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_products_of_halves(element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    inputs: dict[str, list[Array]] = {}
    for m, n, k in PRODUCTS:
        for ta in (False, True):
            name = f"p{m}_{n}_{k}_{int(ta)}"
            texts.append(product(name, m, n, k, element, ta=ta))
            inputs[name] = [numbers((k, m) if ta else (m, k), element), numbers((k, n), element)]
    special = np.array([np.inf, np.nan, 6e-8, -0.0, 1e-41, 65504, 3e38, 5e-6], np.float32)
    with np.errstate(over="ignore"):
        inputs["p11_67_33_0"][1][2, 3:11] = special.astype(DTYPES[element])
    results = run_every_way(
        texts, inputs, monkeypatch, interpreted=lambda n: not n.startswith("p11")
    )
    tolerance = 1e-2 if element == "f16" else 1e-1
    for name, (a, b) in inputs.items():
        left = a.T if name.endswith("_1") else a
        with np.errstate(invalid="ignore", over="ignore"):
            expected = left.astype(np.float32) @ b.astype(np.float32)
            expected = expected.astype(DTYPES[element]).astype(np.float32)
            got = results[name].astype(np.float32)
        assert (np.isnan(got) == np.isnan(expected)).all(), name
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=name)


def position(name: str, kind: str, m: int, n: int, axis: int, element: str) -> str:
    """Where a matrix has its extreme along an axis."""
    kept = n if axis == 0 else m
    return f"""
func.func @{name}(%x: tensor<{m}x{n}x{element}>) -> tensor<{kept}xi32> {{
  %r = utensor.argreduce {kind} %x axis {axis} : tensor<{m}x{n}x{element}> -> tensor<{kept}xi32>
  func.return %r : tensor<{kept}xi32>
}}"""


def with_equals(m: int, n: int, element: str) -> Array:
    """Few values, so that the best is there several times; floats with NaN and infinities."""
    values = [-3, 0, 2, 2, 5]
    if element not in ("f64", "f32", "f16"):
        return RNG.choice(values, (m, n)).astype(DTYPES[element])
    x = RNG.choice([*values, -0.0, -np.inf, np.inf], (m, n))
    x[0] = -np.inf
    x[-1] = np.nan
    x[1 % m, n // 2 :] = np.nan
    return x.astype(DTYPES[element])


@pytest.mark.parametrize("element", ["f32", "f16", "i64"])
def test_positions_of_extremes(element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [(3, 1), (4, 16), (3, 67), (18, 70)]
    cases = {
        f"{kind}_{m}_{n}_{axis}": (kind, m, n, axis)
        for m, n in shapes
        for kind, axis in (("max", 1), ("min", 1), ("max", 0))
    }
    texts = [position(name, *case, element) for name, case in cases.items()]
    inputs = {name: [with_equals(m, n, element)] for name, (_, m, n, _) in cases.items()}
    interpreted = ("max_3_67_1", "max_18_70_0")
    results = run_every_way(texts, inputs, monkeypatch, interpreted=lambda n: n in interpreted)
    for name, (kind, _, _, axis) in cases.items():
        (x,) = inputs[name]
        expected = (np.argmax if kind == "max" else np.argmin)(x, axis=axis)
        np.testing.assert_array_equal(results[name], expected, err_msg=name)


def test_a_position_is_found_in_any_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"p": [np.zeros((67 * 2, 67), np.float32)]}
    (x,) = inputs["p"]
    for place in range(67):
        x[place, place:] = 1
        x[67 + place, place] = np.nan
    results = run_every_way(
        [position("p", "max", 134, 67, 1, "f32")], inputs, monkeypatch, interpreted=lambda n: False
    )
    np.testing.assert_array_equal(results["p"], [*range(67), *range(67)])


TURNED = [((16, 16), (1, 0)), ((17, 35), (1, 0)), ((3, 18, 20), (0, 2, 1)),
          ((20, 2, 33), (2, 1, 0)), ((2, 19, 3, 17), (0, 3, 2, 1))]  # fmt: skip


def test_a_nan_wins_in_every_lane() -> None:
    largest = uopc.jit(lambda x: x.max(1))
    for place in range(67):
        x = np.ones((1, 67), np.float32)
        x[0, place] = np.nan
        assert np.isnan(largest(uopc.Tensor(x)).numpy()).all(), place


def test_axes_change_places(monkeypatch: pytest.MonkeyPatch) -> None:
    element = "bf16"
    texts: list[str] = []
    inputs: dict[str, list[Array]] = {}
    for number, (shape, axes) in enumerate(TURNED):
        turned = [shape[a] for a in axes]
        source, target = (f"tensor<{'x'.join(map(str, s))}x{element}>" for s in (shape, turned))
        texts.append(f"""
func.func @t{number}(%x: {source}, %y: {target}) -> {target} {{
  %r = utensor.permute %x {list(axes)} : {source}
  %s = utensor.add %r, %y : {target}
  func.return %s : {target}
}}""")
        inputs[f"t{number}"] = [numbers(shape, element), numbers(tuple(turned), element)]
    results = run_every_way(texts, inputs, monkeypatch, interpreted=lambda n: n in ("t0", "t4"))
    for number, (_, axes) in enumerate(TURNED):
        x, y = inputs[f"t{number}"]
        assert same(results[f"t{number}"], np.ascontiguousarray(x.transpose(axes) + y)), number
