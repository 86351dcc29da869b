"""scatter-rows: a row written into an array that the caller gives away is written, not the array.

    %at = utensor.iota axis 1 : tensor<6x256x64xi32>
    %here = utensor.cmpeq %at, %p : tensor<6x256x64xi32>        (%p: one number, expanded)
    %r = utensor.where %here, %k, %cache : tensor<6x256x64xf32>
  =>
    %i = utensor.reshape %p : tensor<i32> -> tensor<1xi32>
    %u = utensor.shrink %k … -> tensor<6x1x64xf32>
    %r = utensor.scatter set %cache, %i, %u axis 1

where %cache is an argument with `uopc.donated`, %r a result of the function, and %k the same all
along the axis. kernelize lets the scatter change the argument in place: a step of a model with a
cache of keys costs one row of it, not the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from uopc.dialects.index_expr import Leaf
from uopc.dialects.sizes import element_count, sizes_of
from uopc.dialects.tensor import ConstantOp, IotaOp, ScatterOp, StageOp
from uopc.dialects.tensor_elementwise import (
    ELEMENTWISE_OPS,
    CastOp,
    CmpeqOp,
    WhereOp,
    element_of,
    tensor_of,
)
from uopc.dialects.tensor_movement import MOVEMENT_OPS, ReshapeOp, ShrinkOp
from uopc.passes.kernel_cut.accesses import Access, Loops, behind, operand_access, ranges_of
from uopc.passes.kernelize import donated_arguments

_ELEMENTWISE = frozenset[type[Operation]](ELEMENTWISE_OPS)
_FOLLOWED: tuple[type[Operation], ...] = (*MOVEMENT_OPS, StageOp)


@dataclass(frozen=True)
class ScatterRowsPass(ModulePass):
    """Turn selections by position into donated arguments into scatters."""

    name = "scatter-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp) and (donated := donated_arguments(function)):
                block = function.body.block
                for found in list(_rows(block, {block.args[k] for k in donated})):
                    found.rewrite()


@dataclass
class _Row:
    """A row that is written: by which op, along which axis, at which position."""

    op: WhereOp
    axis: int
    position: SSAValue

    def rewrite(self) -> None:
        sizes = sizes_of(tensor_of(self.op.result))
        ends = [1 if k == self.axis else n for k, n in enumerate(sizes)]
        row = ShrinkOp(self.op.on_true, [0] * len(sizes), ends)
        index = ReshapeOp(self.position, (1,))
        scatter = ScatterOp("set", self.op.on_false, index, row, self.axis)
        for made in (row, index, scatter):
            made.location = self.op.location
        scatter.result.name_hint = self.op.result.name_hint
        Rewriter.insert_op((row, index), InsertPoint.before(self.op))
        Rewriter.replace_op(self.op, scatter)


def _rows(block: Block, donated: set[BlockArgument]) -> Iterator[_Row]:
    last = block.last_op
    returned = set(last.operands) if last is not None else set[SSAValue]()
    for op in block.ops:
        if not isinstance(op, WhereOp) or op.result not in returned:
            continue
        if op.on_false not in donated or op.on_false.type != op.result.type:
            continue
        sizes = sizes_of(tensor_of(op.result))
        if any(not isinstance(n, int) or n < 1 for n in sizes):
            continue
        loops = Loops()
        nest = loops.nest(sizes)
        found = _tested_position(loops, op.condition, nest)
        if found is None:
            continue
        leaf, position = found
        axis = next((k for k, e in enumerate(nest) if e.leaf is leaf), None)
        if axis is not None and not _varies(loops, op.on_true, nest, leaf):
            yield _Row(op, axis, position)


def _tested_position(
    loops: Loops, condition: SSAValue, nest: Access
) -> tuple[Leaf, SSAValue] | None:
    """The range, and the number, that a condition compares with one another."""
    tested, access, _ = behind(loops, condition, nest, _FOLLOWED)
    if not isinstance(tested.owner, CmpeqOp) or access is None:
        return None
    for one, other in (tested.owner.operands, reversed(tested.owner.operands)):
        leaf = _position_along(loops, one, access)
        number, at, _ = behind(loops, other, access, _FOLLOWED)
        if leaf is None or at is None:
            continue
        if element_count(sizes_of(tensor_of(number))) == 1:
            if not element_of(tensor_of(number)).is_integer:
                return None
            return leaf, number
    return None


def _position_along(loops: Loops, value: SSAValue, access: Access) -> Leaf | None:
    """The range that a value is the number of, as an integer that has room for it."""
    found, at, _ = behind(loops, value, access, _FOLLOWED)
    row = element_of(tensor_of(found))
    if isinstance(found.owner, CastOp) and row.is_integer:
        found, at, _ = behind(loops, found.owner.operand, at, _FOLLOWED)
    if not isinstance(found.owner, IotaOp) or at is None:
        return None
    own = element_of(tensor_of(found))
    axis = found.owner.axis.value.data
    length = sizes_of(tensor_of(found))[axis]
    fits = isinstance(length, int) and all(
        r.is_integer and length - 1 <= r.limits[1] for r in (row, own)
    )
    return at[axis].leaf if fits else None


def _varies(loops: Loops, value: SSAValue, access: Access, leaf: Leaf) -> bool:
    """Whether a value may differ along a range."""
    pending: list[tuple[SSAValue, Access | None]] = [(value, access)]
    while pending:
        current, at = pending.pop()
        if at is None:
            return True
        if all(r is not leaf for r in ranges_of(at)):
            continue
        owner = current.owner
        if isinstance(owner, ConstantOp) and owner.splat is not None:
            continue
        if not isinstance(owner, _FOLLOWED) and type(owner) not in _ELEMENTWISE:
            return True
        assert isinstance(owner, Operation)
        pending += [(o, operand_access(loops, owner, k, at)) for k, o in enumerate(owner.operands)]
    return False
