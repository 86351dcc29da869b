"""Where a kernel reads each value: index expressions over the ranges of its loops.

A kernel computes its value in a nest of loops, one range an output axis in row-major order; each
reduction adds a range an axis it reduces. An access of a value is one expression an axis. From
the access of an op's result follow those of its operands:

    add %a, %b        at (i, j)     %a at (i, j), %b at (i, j)
    permute %a [1, 0] at (i, j)     %a at (j, i)
    expand 4x1 -> 4x8 at (i, j)     %a at (i, 0)
    reduce %a axes [1] at (i)       %a at (i, k), k a new range

A range runs **inside** others: an output range in those of the axes before it, a reduction's in
all that its value depends on. A value is computed in the loops of the ranges that its access
mentions, and of all that those run inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects.index_expr import Expr, RangeVar, as_expr, new_range, total
from uopc.dialects.sizes import Size, element_count_upper, size_upper, sizes_of
from uopc.dialects.tensor import ArgreduceOp, GatherOp, ReduceOp, ScatterOp
from uopc.dialects.tensor_movement import (
    ExpandOp,
    FlipOp,
    PadOp,
    PermuteOp,
    ReshapeOp,
    ShrinkOp,
    int_values,
)

Access = tuple[Expr, ...]
ZERO = as_expr(0)


def shape_of(value: SSAValue) -> tuple[Size, ...]:
    """The sizes of a value of tensor type."""
    return sizes_of(cast("TensorType[Attribute]", value.type))


class Loops:
    """The ranges of the kernels of one function, and which run inside which."""

    def __init__(self) -> None:
        self._inside: dict[RangeVar, frozenset[RangeVar]] = {}

    def nest(self, sizes: Iterable[Size], outer: frozenset[RangeVar] = frozenset()) -> Access:
        """New ranges, each inside those before it and inside `outer`; 0 for an axis of size 1."""
        access: list[Expr] = []
        for size in sizes:
            if size == 1:
                access.append(ZERO)
                continue
            index = new_range("i", size)
            variable = cast(RangeVar, index.leaf)
            self._inside[variable] = outer
            outer = outer | {variable}
            access.append(index)
        return tuple(access)

    def opened(self, access: Access) -> frozenset[RangeVar]:
        """The loops in which a value with this access is computed."""
        mentioned = ranges_of(access)
        return mentioned.union(*(self._inside[r] for r in mentioned))

    def reduced(self, op: ReduceOp | ArgreduceOp, access: Access) -> Access:
        """The access of a reduction's operand, with new ranges for the reduced axes."""
        axes = int_values(op.axes) if isinstance(op, ReduceOp) else (op.axis.value.data,)
        sizes = shape_of(op.operand)
        new = iter(self.nest((sizes[k] for k in axes), self.opened(access)))
        kept = iter(access)
        return tuple(next(new) if k in axes else next(kept) for k in range(len(sizes)))

    def evaluations(self, value: SSAValue, access: Access) -> int:
        """How often each element is computed at this access, where its ranges run freely."""
        points = math.prod(size_upper(r.end) for r in self.opened(access))
        return max(1, -(-points // max(1, element_count_upper(shape_of(value)))))

    def evaluates_once(self, value: SSAValue, access: Access) -> bool:
        """Whether computing the value at this access computes no element twice.

        That is so where its loops are just the ranges that it depends on, and they have no more
        points than the value has elements.
        """
        ranges = ranges_of(access)
        if self.opened(access) != ranges:
            return False
        points = math.prod(size_upper(r.end) for r in ranges)
        return points <= max(1, element_count_upper(shape_of(value)))


def ranges_of(access: Access) -> frozenset[RangeVar]:
    """The ranges that an access depends on."""
    return frozenset[RangeVar]().union(*(e.ranges for e in access))


def operand_access(loops: Loops, op: Operation, position: int, access: Access) -> Access | None:
    """The access of an operand where the op's result has this one.

    None where it depends on data, or reads one element for several: no range tells then how
    often an element is computed.
    """
    match op:
        case ReduceOp() | ArgreduceOp():
            return loops.reduced(op, access)
        case PermuteOp():
            back = {axis: k for k, axis in enumerate(int_values(op.order))}
            return tuple(access[back[axis]] for axis in range(len(access)))
        case ExpandOp():
            sizes = shape_of(op.operand)
            return tuple(ZERO if n == 1 else e for n, e in zip(sizes, access, strict=True))
        case FlipOp():
            sizes, axes = shape_of(op.operand), int_values(op.axes)
            return tuple(
                as_expr(sizes[k]) - 1 - e if k in axes else e for k, e in enumerate(access)
            )
        case ShrinkOp():
            steps = int_values(op.steps)
            return tuple(
                e * step + begin
                for e, begin, step in zip(access, op.begins.data, steps, strict=True)
            )
        case ReshapeOp():
            return reshaped(access, shape_of(op.result), shape_of(op.operand))
        case GatherOp() if position == 1:
            axis, rank = op.axis.value.data, len(shape_of(op.indices))
            return access[axis : axis + rank]
        case GatherOp() | ScatterOp() | PadOp():
            return None
        case _:
            return access


def behind(
    loops: Loops, value: SSAValue, access: Access | None, kinds: tuple[type[Operation], ...]
) -> tuple[SSAValue, Access | None, list[Operation]]:
    """What is behind ops of some kinds that move elements, its access, and these ops.

    The access is None behind an op that has none to give; nothing is followed past that.
    """
    chain: list[Operation] = []
    while isinstance(value.owner, kinds) and access is not None:
        chain.append(value.owner)
        access = operand_access(loops, value.owner, 0, access)
        value = value.owner.operands[0]
    return value, access, chain


def reshaped(access: Access, sizes: Sequence[Size], operand_sizes: Sequence[Size]) -> Access | None:
    """The access of a reshape's operand; None where a size may be 0, as no element is read."""
    if any((n if isinstance(n, int) else n.lower) < 1 for n in (*sizes, *operand_sizes)):
        return None
    wide = [(e, n) for e, n in zip(access, sizes, strict=True) if n != 1]
    if [n for _, n in wide] == [n for n in operand_sizes if n != 1]:  # only axes of size 1 moved
        kept = iter(e for e, _ in wide)
        return tuple(ZERO if n == 1 else next(kept) for n in operand_sizes)
    parts: list[Expr] = []
    stride = as_expr(1)
    for index, n in reversed(list(zip(access, sizes, strict=True))):
        parts.append(index * stride)
        stride = stride * n
    rest = total(parts)
    result: list[Expr] = []
    for n in reversed(operand_sizes):
        result.append(rest % n)
        rest = rest // n
    return tuple(reversed(result))
