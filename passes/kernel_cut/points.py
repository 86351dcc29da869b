"""Materialization points: which values of a graph get a buffer, and so a kernel of their own.

Always
  * what a returned value, or a `stage contiguous`, stands for (graph.py: its base), unless it is
    an argument, which has a buffer;
  * a scatter: its kernel copies, and then updates, over another index space;
  * the flag of a branch, and what loops and branches use from outside.
Reductions (reduce, argreduce)
  * fuse-reduce=none: always. A reduction is then never inside another's loops.
  * fuse-reduce=all: never by themselves. `(A@B)@C` computes each element of A@B many times.
  * fuse-reduce=auto: where one kernel alone reads it, at one place, and computes it there once:
    accesses.py tells. Its loops must be those that it depends on, so it may not stand in the
    loop of an expanded axis, nor in that of another reduction, which could then be cut for
    neither threads nor lanes. A short one may stand in the loop of an expanded axis where
    computing it again costs less than what would travel otherwise: costs.py. Where fewer than
    `ENOUGH_ROWS` rows would be left for threads and a row is long, nothing is fused.

      softmax      max and sum depend on the row; the row loop is the outermost: fused, 1 kernel
      (A@B)@C      out[i,j] = sum_k AB[i,k] C[k,j]: AB[i,k] would stand in the loop over j: 2
      softmax over axis 0: max depends on j, and i is outside of it: 3
      relu(A@B)    AB[i,j] at (i,j): fused
      sum(sqrt(row sums))  a row's sum would stand in the loop of another reduction: 2
      x / (sum of x over axis 0): the sum over i stands in the loop over i: fused if x has 2 rows
      AB in a softmax: three readers in three loops: a kernel of its own, then one for softmax
    Attention (attention.py) is one kernel: its scores are read in three loops, from a tile.
"""

from __future__ import annotations

from typing import Literal, cast

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from uopc.dialects.sizes import element_count_upper
from uopc.dialects.tensor import ArgreduceOp, ConstantOp, ReduceOp, ScatterOp, StageOp
from uopc.passes.kernel_cut.accesses import (
    Access,
    Loops,
    operand_access,
    ranges_of,
    shape_of,
)
from uopc.passes.kernel_cut.attention import attentions
from uopc.passes.kernel_cut.control import CONTROL_OPS, uses_of
from uopc.passes.kernel_cut.costs import BALANCE, Costs
from uopc.passes.kernel_cut.graph import TensorBlock

FuseReduce = Literal["none", "all", "auto"]

ENOUGH_ROWS = 16
SHORT_ROW = 1 << 15
"""Elements that one thread reduces in about the time that it takes to wake another."""

ACCESS_LIMIT = 8
"""A value read at more places than this is not followed further; reductions below it are cut."""


def materialization_points(
    function: TensorBlock, fuse: FuseReduce, balance: int = BALANCE
) -> list[SSAValue]:
    """The values that get kernels, in the order of their ops. `balance`: costs.py."""
    points = _required_points(function)
    if fuse == "none":
        points |= {op.results[0] for op in function.ops if isinstance(op, ReduceOp | ArgreduceOp)}
    elif fuse == "auto":
        points |= _Readers(function, points, balance).unfused()
    return [
        op.results[0]
        for op in function.ops
        if not isinstance(op, CONTROL_OPS) and op.results[0] in points
    ]


def _leaves_rows(value: SSAValue) -> bool:
    """Whether a fused reduction leaves rows enough for threads to share, or is short."""
    rows = element_count_upper(shape_of(value))
    operand = cast(Operation, value.owner).operands[0]
    length = element_count_upper(shape_of(operand)) // max(rows, 1)
    return rows >= ENOUGH_ROWS or length * rows <= SHORT_ROW


def _required_points(function: TensorBlock) -> set[SSAValue]:
    points = set(map(function.base_of, function.results))
    for op in function.ops:
        if isinstance(op, StageOp) and op.kind.data == "contiguous":
            base = function.base_of(op.operand)
            if not isinstance(base.owner, ConstantOp):
                points.add(base)
        elif isinstance(op, ScatterOp):
            points.add(op.result)
        elif isinstance(op, CONTROL_OPS):
            starts = len(op.arguments) if isinstance(op, scf.WhileOp) else 0
            read = map(function.base_of, uses_of(op)[starts:])
            points.update(v for v in read if not isinstance(v.owner, ConstantOp))
    return points.difference(function.arguments)


class _Readers:
    """Which kernel reads each value, and at which accesses; found from the results upwards."""

    def __init__(self, function: TensorBlock, points: set[SSAValue], balance: int) -> None:
        self.function = function
        self.points = points
        self.loops = Loops()
        self.found: set[SSAValue] = set()
        """Reductions that must be materialized, of the ops looked at."""
        self.costs = Costs(self.loops, self._is_buffer, balance)
        self.nests: dict[SSAValue, Access] = {}
        """The ranges over the elements of what a kernel computes."""
        self.readers: dict[SSAValue, tuple[SSAValue, frozenset[Access]] | None] = {}
        """The kernel, by the value it computes, and its accesses; None for too many of either."""

    def unfused(self) -> set[SSAValue]:
        """The reductions that must be materialized."""
        kept = {r for each in attentions(self.function.ops) for r in each.reductions}
        for op in reversed(self.function.ops):
            if isinstance(op, CONTROL_OPS):
                self.readers.update(dict.fromkeys(uses_of(op)))
                continue
            value = op.results[0]
            reader = self.readers.get(value)
            cut = value in self.points
            fuses = cut or value in kept or not isinstance(op, ReduceOp | ArgreduceOp)
            if not fuses and not self._fuses(value):
                self.found.add(value)
                cut = True
            if cut:
                nest = self.loops.nest(shape_of(value))
                self.nests[value] = nest
                reader = (value, frozenset((nest,)))
            self._follow(op, reader)
        return self.found

    def _fuses(self, value: SSAValue) -> bool:
        reader = self.readers[value]
        if reader is None or len(reader[1]) != 1:
            return False
        (access,) = reader[1]
        kernel, nest = reader[0], self.nests[reader[0]]
        if not ranges_of(access) <= ranges_of(nest) or not _leaves_rows(value):
            return False
        if self.loops.evaluates_once(value, access):
            return True
        op = value.owner
        return isinstance(op, ReduceOp) and self.costs.repeating_pays(op, access, kernel, nest)

    def _is_buffer(self, value: SSAValue) -> bool:
        """Whether kernels read a value from a buffer, as far as is decided."""
        if value in self.points or value in self.found or not self.function.computes(value):
            return True
        owner = value.owner
        is_table = isinstance(owner, ConstantOp) and owner.splat is None
        return is_table or isinstance(owner, CONTROL_OPS)

    def _follow(self, op: Operation, reader: tuple[SSAValue, frozenset[Access]] | None) -> None:
        for position, operand in enumerate(op.operands):
            if reader is None:
                self.readers[operand] = None
                continue
            kernel, accesses = reader
            found = {operand_access(self.loops, op, position, access) for access in accesses}
            self._note(operand, kernel, found)

    def _note(self, value: SSAValue, kernel: SSAValue, accesses: set[Access | None]) -> None:
        known = self.readers.get(value, (kernel, frozenset[Access]()))
        if known is None or known[0] is not kernel or None in accesses:
            self.readers[value] = None
            return
        union = known[1].union(a for a in accesses if a is not None)
        self.readers[value] = (kernel, union) if len(union) <= ACCESS_LIMIT else None
