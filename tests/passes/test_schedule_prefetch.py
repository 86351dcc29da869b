"""Asking for the next row: a hint that changes no bit and stays inside of its buffer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compiled_programs import bits
from sanitized import Call, run_sanitized
from scheduled_kernels import PIPELINE, Scheduled, with_plan
from xdsl.dialects.builtin import ModuleOp

from uopc.dialects import loop
from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.dialects.memref_extensions import PrefetchOp
from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.passes.apply_schedule import apply_schedule

Array = np.ndarray[Any, np.dtype[Any]]

SOFTMAX = """
ukernel.kernel @softmax ins(%x : memref<7x37xf32>) outs(%o : memref<7x37xf32>) {
  %i = uloop.range 7
  %j = uloop.range 37
  %k = uloop.range 37
  %v = uloop.load %x[%i, %k] : memref<7x37xf32>
  %l = uloop.range 37 reduce
  %v2 = uloop.load %x[%i, %l] : memref<7x37xf32>
  %max = uloop.reduce max %v2 over (%l) : f32
  %1 = arith.subf %v, %max : f32
  %2 = math.exp %1 : f32
  %row = uloop.tile %2 over (%k) local : memref<37xf32>
  %3 = uloop.read %row[%j] : memref<37xf32>
  %m = uloop.range 37 reduce
  %4 = uloop.read %row[%m] : memref<37xf32>
  %add = uloop.reduce add %4 over (%m) : f32
  %5 = arith.divf %3, %add : f32
  uloop.store %5, %o[%i, %j] : memref<7x37xf32>
}
"""
VECTORS = "; ".join(f"split {r} = {r}0 {r}1:2:unroll {r}2:4:vector" for r in "lkmj")
SYMBOLIC = """
ukernel.kernel @columns sizes(%n = n = 0 to 9) ins(%x : memref<?x37xf32> of [n, 37]) \
outs(%o : memref<37xf32>) {
  %j = uloop.range 37
  %k = uloop.range %n max 9 reduce
  %v = uloop.load %x[%k, 36 - %j] : memref<?x37xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[%j] : memref<37xf32>
}
"""


def applied(kernel: str, schedule: str) -> KernelOp:
    (op,) = parse_text(kernel).body.block.ops
    assert isinstance(op, KernelOp)
    apply_schedule(op, schedule)
    return op


def asked(op: KernelOp) -> list[str]:
    """What the loads of a kernel ask for, as printed."""
    return re.findall(r"prefetch (\[.*?\])", str(op))


def random(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "schedule",
    [
        "prefetch v along i",
        f"{VECTORS}; prefetch v along i",
        f"prefetch v along i; {VECTORS}",
        f"{VECTORS}; prefetch v along i; prefetch v2 along i; split i = i0:thread i1:2",
        f"{VECTORS}; split i = i0 i1:2; prefetch v along i1; prefetch v2 along l0",
    ],
)
def test_no_bit_changes(schedule: str) -> None:
    """Compiled and interpreted, the kernel computes what it does without the hint."""
    without = "; ".join(c for c in schedule.split("; ") if not c.startswith("prefetch"))
    x = random(7, 37)
    hinted, plain = Scheduled(SOFTMAX, schedule), Scheduled(SOFTMAX, without)
    np.testing.assert_array_equal(bits(hinted(x)), bits(plain(x)))


def test_it_is_in_the_loops() -> None:
    lowered = lower(
        read_program(with_plan(SOFTMAX, f"{VECTORS}; prefetch v along i")),
        CompileRequest(pipeline=PIPELINE),
    )
    hints = [op for op in lowered.module.walk() if isinstance(op, PrefetchOp)]
    assert len(hints) == 2 + 2  # two copies in the loop of whole steps, and two in the last one
    assert "__builtin_prefetch(&x[" in lowered.program().source


@pytest.mark.parametrize(
    ("kernel", "schedule", "inputs", "sizes"),
    [
        (SOFTMAX, f"{VECTORS}; prefetch v along i; prefetch v2 along l0", [random(7, 37)], {}),
        (SOFTMAX, f"{VECTORS}; prefetch v along i; split i = i0:thread i1:2", [random(7, 37)], {}),
        (SOFTMAX, "prefetch v along k; prefetch v2 along i", [random(7, 37)], {}),
        (SYMBOLIC, "split j = j0 j1:4:vector; order j0 k; prefetch v along k", [random(9, 37)],
         {"n": 9}),
        (SYMBOLIC, "prefetch v along j; order j k", [random(1, 37)], {"n": 1}),
        (SYMBOLIC, "prefetch v along k", [random(0, 37)], {"n": 0}),
    ],
)  # fmt: skip
def test_nothing_outside_is_asked_for(tmp_path, kernel, schedule, inputs, sizes) -> None:
    """Each hint made a read: the checks of compilers would see one that lies outside."""
    request = CompileRequest(pipeline=PIPELINE)
    program = lower(read_program(with_plan(kernel, schedule)), request).program()
    assert "__builtin_prefetch(" in program.source
    read = "#define __builtin_prefetch(p, w, l) ((void)*(volatile const char *)(p))\n"
    hinted = replace(program, source=read + program.source)
    plain = lower(
        read_program(with_plan(kernel, re.sub(r"prefetch \w+ along \w+(; )?", "", schedule))),
        request,
    ).program()
    found, wanted = (
        run_sanitized(each, [Call("run", inputs, sizes)], tmp_path) for each in (hinted, plain)
    )
    np.testing.assert_array_equal(bits(found[0][0]), bits(wanted[0][0]))


@pytest.mark.parametrize(
    ("schedule", "places"),
    [
        ("prefetch v along i", ["[%i + 1, %k]"]),
        ("prefetch v along i; split i = a b:2", ["[%a * 2 + %b + 1, %k]"]),
        ("split i = a b:2; prefetch v along b", ["[%a * 2 + %b + 1, %k]"]),
        ("split i = a b:2; prefetch v along a", ["[%a * 2 + %b + 2, %k]"]),
        ("prefetch v along i; tile v over k as p", ["[%i + 1, %p]"]),
        ("prefetch v along k; capture row i as r", ["[%r, %k + 1]"]),
    ],
)
def test_it_stays_a_row_further(schedule: str, places: list[str]) -> None:
    """Whatever becomes of the range, what is asked for is the place that was meant."""
    assert asked(applied(SOFTMAX, schedule)) == places


def test_a_load_that_no_longer_moves_asks_for_nothing() -> None:
    """x[i floordiv 4] moves with i; with i cut into fours it stays for all steps of the inner."""
    kernel = """
    ukernel.kernel @k ins(%x : memref<3xf32>) outs(%o : memref<12xf32>) {
      %i = uloop.range 12
      %v = uloop.load %x[%i floordiv 4] : memref<3xf32>
      uloop.store %v, %o[%i] : memref<12xf32>
    }"""
    assert asked(applied(kernel, "prefetch v along i")) == ["[(%i + 1) floordiv 4]"]
    op = applied(kernel, "prefetch v along i; split i = a b:4")
    (load,) = [o for o in op.walk() if isinstance(o, loop.LoadOp)]
    assert load.prefetch is None
    op.verify()


@pytest.mark.parametrize(
    ("schedule", "message", "hint"),
    [
        ("prefetch w along i", "there is no value 'w'", None),
        ("prefetch max along i", "'max' is not a load",
         "expected what a uloop.load gives; one that gets a tile is named before that"),
        ("prefetch v along z", "there is no range 'z'", "the ranges are: i, j, k, l, m"),
        ("prefetch v along j", "where 'v' reads does not move with 'j'",
         "expected a range that its index depends on"),
        ("prefetch v along i; prefetch v along i", "'v' has a prefetch already", ""),
        ("split k = c d:4:vector; prefetch v along d", "'d' is of kind vector, which is no loop",
         "expected a range of kind loop, reduce, thread"),
        ("mark l unroll; prefetch v2 along l", "'l' is of kind unroll, which is no loop", None),
        ("mark i block; prefetch v along i", "'i' is of kind block, which is no loop", None),
        ("prefetch v i", "it is not well formed", "expected prefetch V along R"),
    ],
)  # fmt: skip
def test_what_is_refused(schedule: str, message: str, hint: str | None) -> None:
    with pytest.raises(UopcError) as caught:
        applied(SOFTMAX, schedule)
    command = schedule.rpartition("; ")[2]
    assert caught.value.kind == "bad-schedule"
    assert caught.value.message == f"kernel @softmax: in '{command}': {message}"
    if hint is not None:
        assert caught.value.hint == hint


def test_equal_programs_without_a_hint_are_untouched() -> None:
    """The command is the only thing that asks."""
    module = read_program(with_plan(SOFTMAX, VECTORS))
    assert isinstance(module, ModuleOp)
    assert "prefetch" not in lower(module, CompileRequest(pipeline=PIPELINE)).program().source
