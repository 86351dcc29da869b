"""What schedules are refused for, in the words of the kernel's text."""

from __future__ import annotations

import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.dialects.registry import make_context
from uopc.passes.apply_schedule import ApplySchedulePass, apply_schedule
from uopc.passes.linearize import LinearizePass

KERNEL = """\
ukernel.kernel @k ins(%x : memref<8x4xf32>) outs(%o : memref<8xf32>) {schedule} {{
  %i = uloop.range 8
  %k = uloop.range 4 reduce
  %w = uloop.load %x[%i, %k] : memref<8x4xf32>
  %w_1 = math.exp %w : f32
  %s = uloop.reduce add %w_1 over (%k) : f32
  uloop.store %s, %o[%i] : memref<8xf32>
}}
"""


@pytest.mark.parametrize(
    ("schedule", "message", "hint"),
    [
        ("capture w_1 i as q", "in 'capture w_1 i as q': 'w_1' is not a tile", ""),
        ("tile u over k as q", "in 'tile u over k as q': there is no value 'u'",
         "the values are: w, w_1, s"),
    ],
)  # fmt: skip
def test_values_are_called_as_in_the_text(schedule: str, message: str, hint: str) -> None:
    (op,) = parse_text(KERNEL.format(schedule="")).body.block.ops
    assert isinstance(op, KernelOp)
    with pytest.raises(UopcError) as caught:
        apply_schedule(op, schedule)
    assert (caught.value.message, caught.value.hint) == (f"kernel @k: {message}", hint)


@pytest.mark.parametrize("kind", ["block", "lane"])
def test_ranges_of_a_gpu_are_no_loops_of_a_cpu(kind: str) -> None:
    text = KERNEL.format(schedule=f'attributes {{schedule = "mark i {kind}"}}')
    module, context = parse_text(text), make_context()
    ApplySchedulePass().apply(context, module)
    with pytest.raises(UopcError) as caught:
        LinearizePass().apply(context, module)
    assert caught.value.kind == "bad-schedule"
    assert caught.value.message == (
        f"kernel @k: 'i' is of kind {kind}, which a GPU has, and the kernel is for a CPU"
    )
    assert "gpu-map" in caught.value.hint
