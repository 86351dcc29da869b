"""What fusing a reduction costs where its reader's loops would compute it several times.

With a kernel of its own it is computed once, and its elements travel to memory and back. In its
reader's loops nothing travels, and it is computed `evaluations` times:

    again = (evaluations - 1) * elements that it reduces * operations an element
    saved = bytes of its elements, written and read + LAUNCH_BYTES
    fused if again <= balance * saved

`balance` is the machine's: operations done in the time in which one byte travels. Sizes known at
the call count at their upper bounds. For f32, where s is a sum of x over axis 0, and divides x:

    x : 2x65536     again  1 * 131072 * 9    balance * saved  4 * (8 * 65536 + 8192): fused
    x : 8x65536     again  7 * 524288 * 9                     the same:               cut
    x : 8x64        again  7 * 512 * 9                        4 * (8 * 64 + 8192):    fused

Operations an element: one for the reduction, READ_OPERATIONS for each value it is made of that is
read from a buffer, and those of the elementwise ops on the way.

This holds where lanes compute it as they compute its reader, so all else is cut: a reader that
reduces too, a reduction of a reduction, and reads that are not along the innermost range, as of a
sum over the last axis that is repeated along the first (1.1 to 6 times slower, at any size).

Attention as one kernel computes nothing again, and saves what its scores and weights would travel,
16 bytes for each query and key. It costs where a block's rows do not stay in the level 2 cache, so
that they travel after all, or where lanes, which lie across the queries, have none. So it is fused
from 8 queries on, with rows of weights of up to 20 KiB.

The constants are measured, best of many calls, on an AMD EPYC with AVX-512: x / x.sum(axis) and
y * x.sum(axis) for 2 to 8 summed, 2 to 8 repeated and 64 to 2**20 kept elements, fused and cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.dialects.index_expr import RangeVar
from uopc.dialects.sizes import element_count_upper
from uopc.dialects.tensor import ArgreduceOp, ReduceOp
from uopc.passes.kernel_cut.accesses import Access, Loops, operand_access, ranges_of, shape_of

Ranges = frozenset[RangeVar]

BALANCE = 4
"""Of the machine above: a vector of 16 elements in the time of 4 bytes."""

LAUNCH_BYTES = 1 << 13
"""A launch costs 0.3 us, in which 8 KiB travel."""

READ_OPERATIONS = 8
"""Reading an element again, from a cache. Of large arrays, sums over 2 elements repeated 2 times
are faster fused (1.1 to 2.3 times), over 4 repeated 2 times slower (0.85), over 3 repeated 3 times
mostly (0.79 to 0.95)."""

FUNCTION_OPERATIONS = 16
"""A sum of two exp, computed twice, is no faster from 16,384 results on."""

_CHEAP = (
    e.NotOp, e.NegOp, e.AbsOp, e.SignOp, e.FloorOp, e.CeilOp, e.TruncOp, e.RoundOp, e.SqrtOp,
    e.RsqrtOp, e.RecipOp, e.AddOp, e.SubOp, e.MulOp, e.DivOp, e.MaxOp, e.MinOp, e.AndOp, e.OrOp,
    e.XorOp, e.ShlOp, e.ShrOp, *e.COMPARE_OPS, e.WhereOp, e.CastOp, e.BitcastOp,
)  # fmt: skip
"""One instruction or a few; the other elementwise ops are functions of many."""

OP_LIMIT = 64
"""A kernel of more ops than this is not looked through; what it repeats is cut."""


FEWEST_QUERIES = 8
"""Lanes lie across the queries of attention."""
MOST_KEYS_BYTES = 20 << 10
"""A row of attention's weights; a block of 16 rows in three tiles of it takes 1 MiB."""


def attention_pays(queries: int, keys: int) -> bool:
    """Whether attention of so many queries and keys had better be one kernel."""
    return queries >= FEWEST_QUERIES and keys * 4 <= MOST_KEYS_BYTES


@dataclass(frozen=True)
class Costs:
    """Answers for one block; `is_buffer` says whether a value is read from a buffer."""

    loops: Loops
    is_buffer: Callable[[SSAValue], bool]
    balance: int

    def repeating_pays(self, op: ReduceOp, access: Access, reader: SSAValue, nest: Access) -> bool:
        """Whether a reduction read at `access` had better be computed in its reader's loops.

        The kernel of `reader` has the loops `nest`, and `access` mentions no others.
        """
        lanes = _innermost(nest)
        each = self._operations(op, access, lanes) if lanes & ranges_of(access) else None
        if each is None:
            return False
        evaluations = self.loops.evaluations(op.result, access)
        again = (evaluations - 1) * element_count_upper(shape_of(op.operand)) * each
        elements = element_count_upper(shape_of(op.result))
        width = e.element_of(e.tensor_of(op.result)).bytes
        saved = 2 * elements * width + LAUNCH_BYTES
        return again <= self.balance * saved and self._is_alone(op, reader)

    def _operations(self, op: ReduceOp, access: Access, lanes: Ranges) -> int | None:
        """Operations for each reduced element; None where lanes would not read side by side."""
        count = 1
        pending = [(op.operand, self.loops.reduced(op, access))]
        seen = set(pending)
        while pending:
            value, at = pending.pop()
            if self.is_buffer(value):
                if not _is_along(value, at, lanes):
                    return None
                count += READ_OPERATIONS
                continue
            owner = value.owner
            if not isinstance(owner, Operation) or isinstance(owner, ReduceOp | ArgreduceOp):
                return None
            count += _own_operations(owner)
            for position, operand in enumerate(owner.operands):
                inner = operand_access(self.loops, owner, position, at)
                if inner is None or len(seen) > OP_LIMIT:
                    return None
                if (operand, inner) not in seen:
                    seen.add((operand, inner))
                    pending.append((operand, inner))
        return count

    def _is_alone(self, op: ReduceOp, reader: SSAValue) -> bool:
        """Whether the reader's kernel has no other reduction, and so lanes along its result."""
        pending = [reader]
        seen = {reader, op.result}
        while pending:
            owner = pending.pop().owner
            if not isinstance(owner, Operation) or isinstance(owner, ReduceOp | ArgreduceOp):
                return False
            for operand in owner.operands:
                if operand not in seen and not self.is_buffer(operand):
                    seen.add(operand)
                    pending.append(operand)
            if len(seen) > OP_LIMIT:
                return False
        return True


def _own_operations(op: Operation) -> int:
    """What an op takes for each element, without those it reads."""
    if isinstance(op, _CHEAP):
        return 1
    return FUNCTION_OPERATIONS if isinstance(op, e.ELEMENTWISE_OPS) else 0


def _innermost(nest: Access) -> Ranges:
    """The range of the last axis that has one: lanes run along it."""
    return next((index.ranges for index in reversed(nest) if index.ranges), Ranges())


def _is_along(value: SSAValue, access: Access, lanes: Ranges) -> bool:
    """Whether neighbours along the lanes' range lie side by side, or are one element."""
    wide = [index for index, size in zip(access, shape_of(value), strict=True) if size != 1]
    return not any(lanes & index.ranges for index in wide[:-1]) and (
        not wide or not lanes & wide[-1].ranges or wide[-1].leaf in lanes
    )
