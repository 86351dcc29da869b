"""Schedules that cannot be applied are refused in words."""

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.dialects.schedule_text import parse_schedule, schedule_text
from uopc.frontend.compile import compile
from uopc.passes.apply_schedule import apply_schedule
from uopc.passes.linearize import linearize_kernel

KERNEL = """
ukernel.kernel @k ins(%x : memref<4x64xf32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %k = uloop.range 64 reduce
  %v = uloop.load %x[%i, %k] : memref<4x64xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[%i] : memref<4xf32>
}
"""


@pytest.mark.parametrize(
    ("schedule", "message", "hint"),
    [
        ("splt k = a b:2", "in 'splt k = a b:2': there is no command 'splt'",
         "expected one of: contract, pair, split, tile, capture, layout, merge, fuse, bound, pad, "
         "stream, prefetch, mark, order"),
        ("split k a b:2", "in 'split k a b:2': it is not well formed",
         "expected split R = R0 R1:N:KIND …"),
        ("split z = a b:2", "in 'split z = a b:2': there is no range 'z'", "the ranges are: i, k"),
        ("split k = i b:2", "in 'split k = i b:2': the name 'i' is taken",
         "the ranges are: i, k"),
        ("split k = a b:0", "in 'split k = a b:0': a part of 0 steps", "expected at least 1"),
        ("split k = a b:6:vector", "in 'split k = a b:6:vector': a vector of 6 lanes",
         "expected a power of two"),
        ("split k = a b:4096:unroll", "in 'split k = a b:4096:unroll': 4096 copies",
         "expected at most 1024"),
        ("split k = a b:2:warp", "in 'split k = a b:2:warp': there is no kind 'warp'", None),
        ("tile w over k as p", "in 'tile w over k as p': there is no value 'w'",
         "the values are: v, s"),
        ("tile s over k as p", "in 'tile s over k as p': 's' does not depend on 'k'", ""),
        ("tile v over k as p q", "in 'tile v over k as p q': a tile has a new range for each "
         "that it is over", ""),
        ("capture v i as q", "in 'capture v i as q': 'v' is not a tile", ""),
        ("order i i", "in 'order i i': a range stands in it twice", ""),
        ("fuse k into i", "in 'fuse k into i': the ranges end at 64 and 4", ""),
        ("merge i k as m", "in 'merge i k as m': the ranges belong to different loops", ""),
        ("split k = k0 k1:8:unroll k2:4:unroll; merge k1 k2 as m",
         "in 'merge k1 k2 as m': the ranges belong to different loops", ""),
        ("tile v over k as p; tile v over i as q", "in 'tile v over i as q': 'v' is a tile already",
         ""),
        ("mark i vector; mark k vector", "in 'mark k vector': 'v' varies along the vectors i, k",
         "expected at most one range of kind vector around a value"),
    ],
)  # fmt: skip
def test_wrong_schedules(schedule: str, message: str, hint: str | None) -> None:
    (op,) = parse_text(KERNEL).body.block.ops
    assert isinstance(op, KernelOp)
    with pytest.raises(UopcError) as caught:
        apply_schedule(op, schedule)
    assert caught.value.kind == "bad-schedule"
    assert caught.value.message == f"kernel @k: {message}"
    if hint is not None:
        assert caught.value.hint == hint
    assert caught.value.location is not None


REFUSED = {
    # Each of these was once carried out, and gave wrong values.
    "split k = k0:vector k1:5": "is a vector of 13 lanes",
    "split k = k0 k1:8:vector chain": "a chain has no lanes",
    "tile v over k as p; capture v p as q": "'v' does not depend on 'p'",
    "fuse i4 into i": "both ranges run around the same computation",
    "merge k k as m": "a range cannot be merged with itself",
    "split k = k0 k1:99999999999999999999": "a part of 99999999999999999999 steps",
    "split k = k0 k1:1024:unroll k2:1024:unroll": "would be written out",
    "order k i": "the reduction over 'k' would run around 'i'",
    "mark i unroll; tile v over k as p": "would be filled for each copy of 'i' in one buffer",
    "mark k thread": "'s' runs across the threads of 'k'",
    "split k = k0::thread k1:8": "'s' runs across the threads of 'k0'",
    "contract; mark k vector": "runs along the lanes of 'k' and a loop",
}


@pytest.mark.parametrize("schedule", REFUSED)
def test_schedules_without_a_meaning(schedule: str) -> None:
    text = KERNEL.replace("%v = uloop.load", "%i4 = uloop.range 4 reduce\n  %v = uloop.load")
    text = text.replace(
        "%s = uloop.reduce add %v over (%k)",
        "%p = arith.mulf %v, %v : f32\n  %s = uloop.reduce add %p over (%k, %i4)",
    )
    (op,) = parse_text(text).body.block.ops
    assert isinstance(op, KernelOp)
    with pytest.raises(UopcError) as caught:
        apply_schedule(op, schedule)
    assert caught.value.kind == "bad-schedule"
    assert REFUSED[schedule] in caught.value.message


def reduced(kind: str, length: int, schedule: str, x: np.ndarray) -> np.ndarray:
    """A row reduction compiled with a schedule of ours."""
    text = f"""
    ukernel.kernel @k ins(%x : memref<1x{length}xf32>) outs(%o : memref<1xf32>)
        attributes {{schedule = "{schedule}"}} {{
      %k = uloop.range {length} reduce
      %v = uloop.load %x[0, %k] : memref<1x{length}xf32>
      %s = uloop.reduce {kind} %v over (%k) : f32
      uloop.store %s, %o[0] : memref<1xf32>
    }}
    ukernel.plan @p ins(%x : memref<1x{length}xf32>) {{
      %o = ukernel.output : memref<1xf32>
      ukernel.launch @k ins(%x : memref<1x{length}xf32>) outs(%o : memref<1xf32>)
      ukernel.return %o : memref<1xf32>
    }}"""
    return compile(text, pipeline="apply-schedule,linearize,lower-plan,expand-math")(x)


@pytest.mark.parametrize(
    "schedule",
    ["split k = k0:unroll k1:4:vector", "split k = k0:unroll k1:4:unroll", "split k = k0 k1:4",
     "split k = k0 k1:2:unroll k2:2:vector", "split k = k0 k1:2:unroll chain", "mark k unroll"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["add", "mul", "max", "min"])
def test_a_rest_counts_as_nothing(kind: str, schedule: str) -> None:
    x = np.array([[-1, -2, -3]], np.float32)
    expected = {"add": -6, "mul": -6, "max": -1, "min": -3}[kind]
    assert reduced(kind, 3, schedule, x).tolist() == [expected]


def test_values_go_by_their_names_in_the_text() -> None:
    text = KERNEL.replace("%x", "%v").replace("%v = uloop.load %v[", "%v_1 = uloop.load %v[")
    text = text.replace("reduce add %v", "reduce add %v_1")
    (op,) = parse_text(text).body.block.ops
    assert isinstance(op, KernelOp)
    apply_schedule(op, "tile v_1 over k as p")
    assert "uloop.tile" in str(op)


def test_text_reads_back() -> None:
    text = (
        "contract; split j = j0::thread jj:16; tile b over k jj as pk pj; capture b i as q; "
        "layout b q pk pj; merge i j as m; fuse a into b; mark i unroll; order j0 k; "
        "split k = k0 k1:4 chain"
    )
    again = schedule_text(parse_schedule(text))
    assert parse_schedule(again) == parse_schedule(text)
    assert parse_schedule("contract # why\n\n order i") == parse_schedule("contract;order i")


def test_a_tile_in_registers_is_read_by_whole_rows():
    module = parse_text("""
    ukernel.kernel @part ins(%x : memref<4x4xf32>) outs(%o : memref<2x2xf32>) {
      %i = uloop.range 2 unroll
      %j = uloop.range 2 vector
      %p = uloop.range 4 vector
      %q = uloop.range 4 unroll
      %v = uloop.load %x[%q, %p] : memref<4x4xf32>
      %t = uloop.tile %v over (%p, %q) register : memref<4x4xf32>
      %r = uloop.read %t[%i, %j] : memref<4x4xf32>
      uloop.store %r, %o[%i, %j] : memref<2x2xf32>
    }""")
    kernel_op = module.body.block.first_op
    assert isinstance(kernel_op, KernelOp)
    with pytest.raises(UopcError) as caught:
        linearize_kernel(kernel_op)
    assert caught.value.kind == "no-linear-form"
    assert caught.value.message == "'t' is in registers and not read row by row"
