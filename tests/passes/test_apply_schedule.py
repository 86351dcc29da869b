"""Schedules that cannot be applied are refused in words."""

import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.dialects.schedule_text import parse_schedule, schedule_text
from uopc.passes.apply_schedule import apply_schedule

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
         "expected one of: contract, split, tile, capture, layout, merge, fuse, mark, order"),
        ("split k a b:2", "in 'split k a b:2': it is not well formed",
         "expected split R = R0 R1:N:KIND …"),
        ("split z = a b:2", "in 'split z = a b:2': there is no range 'z'", "the ranges are: i, k"),
        ("split k = i b:2", "in 'split k = i b:2': the name 'i' is taken", ""),
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
        ("mark i vector; mark k vector", "'v' varies along the vectors i, k",
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


def test_text_reads_back() -> None:
    text = (
        "contract; split j = j0::thread jj:16; tile b over k jj as pk pj; capture b i as q; "
        "layout b q pk pj; merge i j as m; fuse a into b; mark i unroll; order j0 k; "
        "split k = k0 k1:4 chain"
    )
    again = schedule_text(parse_schedule(text))
    assert parse_schedule(again) == parse_schedule(text)
    assert parse_schedule("contract # why\n\n order i") == parse_schedule("contract;order i")
