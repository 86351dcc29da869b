"""Kernels of sizes known at the call have schedules too: one compiled kernel for every length, from
none up, with the bits of the interpreter of the same linear IR."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from compiled_programs import bits

from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.interpreters.programs import programs
from uopc.passes import schedule_threads
from uopc.passes.pipelines import PIPELINES
from uopc.runtime.executable import load_program

RNG = np.random.default_rng(11)
MOST = 90
Array = np.ndarray[Any, np.dtype[Any]]


def tensor(element: str, *sizes: str) -> str:
    """A tensor type whose sizes are symbols, or numbers."""
    shape = "x".join("?" if s.isalpha() else s for s in sizes)
    symbols = ", ".join(f"{s} = 0 to {MOST}" for s in dict.fromkeys(sizes) if s.isalpha())
    return f"tensor<{shape}x{element}, #utensor.sizes<[{', '.join(sizes)}], {symbols}>>"


def product(element: str) -> str:
    cube, a, b, c = (tensor(element, *s) for s in ("mnk", "mk", "kn", "mn"))
    a3, b3, bt = (tensor(element, *s) for s in (("m", "1", "k"), ("1", "n", "k"), ("n", "k")))
    return f"""
func.func @f(%a: {a}, %b: {b}) -> {c} {{
  %bt = utensor.permute %b [1, 0] : {b}
  %a3 = utensor.reshape %a : {a} -> {a3}
  %ae = utensor.expand %a3 : {a3} -> {cube}
  %b3 = utensor.reshape %bt : {bt} -> {b3}
  %be = utensor.expand %b3 : {b3} -> {cube}
  %p = utensor.mul %ae, %be : {cube}
  %c = utensor.reduce add %p axes [2] : {cube}
  func.return %c : {c}
}}"""


def reduction(kind: str, axis: int, element: str) -> str:
    return f"""
func.func @f(%x: {tensor(element, "m", "n")}) -> {tensor(element, "n" if axis == 0 else "m")} {{
  %r = utensor.reduce {kind} %x axes [{axis}] : {tensor(element, "m", "n")}
  func.return %r : {tensor(element, "n" if axis == 0 else "m")}
}}"""


class Both:
    """A program compiled once, called at any sizes, and held against the interpreter."""

    def __init__(self, text: str, family: str = "native") -> None:
        lowered = lower(read_program(text), CompileRequest(target_cpu=family))
        self.compiled = load_program(lowered.program(), lowered.chosen(None))
        (self.linear,) = programs(lowered.module)

    def __call__(self, *arrays: Array) -> Array:
        result = self.compiled(*arrays)
        sizes = dict(zip("mnk", self.sizes(*arrays), strict=False))
        found = self.linear.run(arrays, sizes, {0: result.shape}).results[0]
        np.testing.assert_array_equal(bits(found), bits(result))
        return result

    @staticmethod
    def sizes(*arrays: Array) -> tuple[int, ...]:
        if len(arrays) == 1:
            return arrays[0].shape
        return arrays[0].shape[0], arrays[1].shape[1], arrays[1].shape[0]


SIZES = [(0, 0, 0), (1, 1, 1), (0, 5, 3), (3, 0, 5), (3, 5, 0), (2, 3, 1), (7, 17, 9),
         (8, 48, 16), (9, 49, 33), (16, 47, 2), (17, 63, 64), (1, 90, 90), (90, 1, 67),
         (67, 90, 31)]  # fmt: skip


@pytest.mark.parametrize(("element", "family"), [("f32", "native"), ("f64", "avx2")])
def test_products(element: str, family: str) -> None:
    from uopc.passes.cpu_targets import cpu_target

    if missing := cpu_target(family).misses():
        pytest.skip(missing)
    run = Both(product(element), family)
    dtype = np.dtype(np.float32 if element == "f32" else np.float64)
    for m, n, k in SIZES:
        a, b = (RNG.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(run(a, b), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("kind", "element"), [("add", "f32"), ("max", "f32"), ("min", "i8")])
def test_reductions(kind: str, element: str, axis: int) -> None:
    run = Both(reduction(kind, axis, element))
    dtype = np.dtype(np.float32 if element == "f32" else np.int8)
    for m, n in {(m, n) for m, n, _ in SIZES} | {(2, 64), (64, 2), (3, 79), (79, 90)}:
        x = (RNG.standard_normal((m, n)) * 10).astype(dtype)
        got = run(x)
        if x.shape[axis]:
            function = {"add": np.sum, "max": np.max, "min": np.min}[kind]
            wide = x.astype(np.float64) if element == "f32" else x
            np.testing.assert_allclose(got, function(wide, axis=axis), rtol=1e-5, atol=1e-5)


def softmax() -> str:
    """exp(x - max) over its sum, along rows."""
    square, column, row = tensor("f32", "m", "n"), tensor("f32", "m", "1"), tensor("f32", "m")
    return f"""
func.func @f(%x: {square}) -> {square} {{
  %m = utensor.reduce max %x axes [1] : {square}
  %mc = utensor.reshape %m : {row} -> {column}
  %me = utensor.expand %mc : {column} -> {square}
  %d = utensor.sub %x, %me : {square}
  %e = utensor.exp %d : {square}
  %s = utensor.reduce add %e axes [1] : {square}
  %sc = utensor.reshape %s : {row} -> {column}
  %se = utensor.expand %sc : {column} -> {square}
  %r = utensor.div %e, %se : {square}
  func.return %r : {square}
}}"""


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize(
    ("text", "pays"),
    [(softmax(), 2e-6), (reduction("max", 1, "f32"), 2e-7), (product("f32"), 0.0)],
    ids=["softmax", "reduction", "product"],
)
def test_threads(text: str, pays: float, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts whose number is known at the call only: around whole ones, none, and one."""
    monkeypatch.setattr(schedule_threads, "PAYS_FROM_SECONDS", pays)
    monkeypatch.setenv("UOPC_THREADS", str(threads))
    run = Both(text)
    assert "_use_threads" in run.compiled.source
    for m, n, k in SIZES if "axes [2]" in text else [(m, 31, 0) for m in range(MOST + 1)]:
        shapes = [(m, k), (k, n)] if "axes [2]" in text else [(m, n)]
        run(*(RNG.standard_normal(s).astype(np.float32) for s in shapes))


def test_the_parts_of_an_open_number_of_rows() -> None:
    """A part is as much work as pays for a thread, so that few rows are one part."""
    wide = "tensor<?x512xf32, #utensor.sizes<[m, 512], m = 0 to 4096>>"
    text = f"""
func.func @f(%x: {wide}) -> {wide} {{
  %e = utensor.exp %x : {wide}
  func.return %e : {wide}
}}"""
    (chosen,) = schedules(text)
    part = re.search(r"split i = i0:thread i1:(\d+)", chosen)
    assert part is not None and 20 < int(part[1]) < 500, chosen
    few = text.replace("m = 0 to 4096", f"m = 0 to {int(part[1])}")
    assert "thread" not in schedules(few)[0]


def schedules(text: str) -> list[str]:
    from xdsl.context import Context

    from uopc.dialects.registry import make_context
    from uopc.passes.manager import run_passes
    from uopc.passes.registry import pass_factories
    from uopc.passes.resolve import resolve_pipeline

    module = parse_text(text)
    names = PIPELINES["uopc-cpu-native"]
    passes = ",".join(names[: names.index("schedule")]) + ",schedule{target=avx512}"
    context: Context = make_context()
    run_passes(context, module, resolve_pipeline(passes, pass_factories()))
    ops = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
    return [op.schedule.data if op.schedule else "" for op in ops]


def test_what_is_chosen() -> None:
    (chosen,) = schedules(product("f32"))
    assert "contract" in chosen and "split j = j0 jj:48" in chosen and "i1:8:unroll" in chosen
    assert schedules(reduction("add", 1, "f32")) == ["split j = j0 j1:4:unroll j2:16:vector"]
    deep = product("f32").replace(f"k = 0 to {MOST}", "k = 0 to 4000000")
    (unpacked,) = schedules(deep)
    assert "tile" not in unpacked  # a panel of so many rows has no place
