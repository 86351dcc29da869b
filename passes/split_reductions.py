"""split-reductions: a long reduction to few results becomes one to many, and one of these.

    %s = utensor.reduce add %x axes [0, 1] : tensor<4096x4096xf32> -> tensor<f32>
  =>
    %0 = utensor.reshape %x : tensor<4096x4096xf32> -> tensor<1024x4x4096xf32>
    %1 = utensor.reduce add %0 axes [1, 2] : tensor<1024x4x4096xf32> -> tensor<1024xf32>
    %s = utensor.reduce add %1 axes [0] : tensor<1024xf32> -> tensor<f32>

The parts are rows that threads can share. How many there are depends on the sizes alone, so the
order of a float sum is the same for any number of threads. Split is the first reduced axis, into
`parts`, or more so that none is longer than `longest`, or as many fewer as divide it, where fewer
results than `parts` take `min-elements` or more each. Sums of half types stay whole: their parts
would be rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from uopc.dialects.element_types import accumulator
from uopc.dialects.errors import UopcError
from uopc.dialects.sizes import sizes_of
from uopc.dialects.tensor import ReduceOp
from uopc.dialects.tensor_elementwise import element_of, tensor_of
from uopc.dialects.tensor_movement import ReshapeOp, int_values


@dataclass(frozen=True)
class SplitReductionsPass(ModulePass):
    """Cut long reductions to few results into parts that threads can share."""

    name = "split-reductions"

    parts: int = 64
    """So many parts at most; a reduction to as many results has rows enough."""
    min_elements: int = 1 << 18
    """Shorter reductions stay whole."""
    longest: int = 1 << 14
    """A part is to be no longer, however many elements there are: each sum is rounded to the digits
    of the total so far, which drifts the more the longer that grows."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for name in ("parts", "min_elements", "longest"):
            if getattr(self, name) < 2:
                shown = name.replace("_", "-")
                raise UopcError("bad-option", f"{shown} is {getattr(self, name)}",
                                hint="expected at least 2")  # fmt: skip
        for inner in list(op.walk()):
            if isinstance(inner, ReduceOp):
                self._split(inner)

    def _split(self, op: ReduceOp) -> None:
        row = element_of(tensor_of(op.operand))
        sizes = sizes_of(tensor_of(op.operand))
        axes = int_values(op.axes)
        if row.is_bool or accumulator(row) is not row or not axes:
            return
        if not all(isinstance(size, int) for size in sizes):
            return
        results, length = 1, 1
        for axis, size in enumerate(sizes):
            assert isinstance(size, int)
            if axis in axes:
                length *= size
            else:
                results *= size
        first = axes[0]
        count = self._count(sizes[first], max(self.parts, length // self.longest))
        if not 0 < results < self.parts or length < self.min_elements or count < 2:
            return
        size = sizes[first]
        assert isinstance(size, int)
        cut = ReshapeOp(op.operand, (*sizes[:first], count, size // count, *sizes[first + 1 :]))
        inner = ReduceOp(op.kind.data, cut, [axis + 1 for axis in axes])
        kept_before = sum(1 for axis in range(first) if axis not in axes)
        outer = ReduceOp(op.kind.data, inner, [kept_before])
        for made in (cut, inner, outer):
            made.location = op.location
        Rewriter.insert_op((cut, inner), InsertPoint.before(op))
        Rewriter.replace_op(op, outer)

    def _count(self, size: object, most: int) -> int:
        """The largest number of parts that divides a size, 1 for none."""
        assert isinstance(size, int)
        return next((n for n in range(min(most, size), 1, -1) if size % n == 0), 1)
