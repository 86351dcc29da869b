"""Where the values of a block live: which of them get buffers, and which take over another's.

A value may be written **in place** of another, if it is that one changed here and there (a
scatter; what a loop carries and changes in place), and nobody reads the old one afterwards. A
loop's carried value whose old contents are dead when the new ones are computed has one buffer; any
other has two, that change places after each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from uopc.dialects.tensor import ConstantOp, IotaOp, ScatterOp
from uopc.passes.kernel_cut.control import CONTROL_OPS, tested, uses_of, yielded
from uopc.passes.kernel_cut.costs import BALANCE
from uopc.passes.kernel_cut.graph import TensorBlock
from uopc.passes.kernel_cut.multi_output import values_together
from uopc.passes.kernel_cut.points import FuseReduce, materialization_points
from uopc.passes.kernel_cut.splat import splat_form

_AT_THE_END = 1 << 60


@dataclass(frozen=True)
class _Read:
    position: int
    """Of the op that reads, in the block."""
    place: tuple[Operation, int] | None = None
    """The loop, and which of the values that it starts from."""


@dataclass
class Loop:
    """A loop that is cut: its regions, and which carried values have two buffers."""

    test: Cut
    body: Cut
    swapped: tuple[bool, ...]


@dataclass
class Cut:
    """A block that is cut. Built by `cut_block`."""

    tensors: TensorBlock
    points: list[SSAValue]
    """The values that kernels compute, in order."""
    same: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """For what is written in place: the value whose buffer it takes over."""
    loops: dict[Operation, Loop] = field(default_factory=dict[Operation, Loop])
    branches: dict[Operation, tuple[Cut, Cut]] = field(
        default_factory=dict[Operation, "tuple[Cut, Cut]"]
    )
    together: dict[SSAValue, tuple[SSAValue, ...]] = field(
        default_factory=dict[SSAValue, tuple[SSAValue, ...]]
    )
    """For a value that a kernel computes beside others: all of them, in order."""
    not_read: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that each kernel computes for itself, though a result's buffer has them."""

    def is_in_buffer(self, value: SSAValue) -> bool:
        """Whether kernels read a value from a buffer, rather than compute it."""
        if value in self.not_read:
            return False
        return value in self._points or not self.tensors.computes(value)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, SSAValue) and self.is_in_buffer(cast(SSAValue, value))

    def __post_init__(self) -> None:
        self._points = set(self.points)
        results = set(map(self.tensors.base_of, self.tensors.results))
        for op in self.tensors.ops:
            if isinstance(op, ConstantOp):
                if splat_form(op) is None:
                    self._points.add(op.result)
                else:
                    self.not_read.add(op.result)
            elif isinstance(op, IotaOp) and op.result in results:
                self.not_read.add(op.result)
            elif isinstance(op, CONTROL_OPS):
                self._points.update(op.results)

    def root(self, value: SSAValue) -> SSAValue:
        """The value whose buffer a value has, at the end of a chain of `same`."""
        while value in self.same:
            value = self.same[value]
        return value

    def reads(self, roots: list[SSAValue]) -> set[SSAValue]:
        """The values that a computation of some values reads from buffers."""
        found: set[SSAValue] = set()
        seen: set[SSAValue] = set()
        pending = list(roots)
        while pending:
            value = pending.pop()
            value = self.tensors.unstaged.get(value, value)
            if value in seen:
                continue
            seen.add(value)
            if self.is_in_buffer(value):
                found.add(value)
            elif isinstance(value.owner, Operation):
                pending.extend(value.owner.operands)
        return found


def cut_block(
    tensors: TensorBlock, fuse: FuseReduce, balance: int = BALANCE, *, multi_output: bool = False
) -> Cut:
    """Decide where the values of a block, and of the blocks inside, live."""

    def cut_inner(block: TensorBlock) -> Cut:
        return cut_block(block, fuse, balance, multi_output=multi_output)

    cut = Cut(tensors, materialization_points(tensors, fuse, balance))
    if multi_output:
        cut.together.update(values_together(tensors, cut.points, cut.is_in_buffer))
    for op in tensors.ops:
        if isinstance(op, scf.IfOp):
            cut.branches[op] = (
                cut_inner(tensors.inner(op.true_region.block)),
                cut_inner(
                    tensors.inner(op.false_region.block)
                    if op.false_region.blocks
                    else tensors.nothing()
                ),
            )
        elif isinstance(op, scf.WhileOp):
            test = tensors.inner(op.before_region.block, (tested(op),))
            body = tensors.inner(op.after_region.block)
            inner = cut_inner(body)
            cut.loops[op] = Loop(cut_inner(test), inner, _Places(inner).swapped(op))
    if any(isinstance(op, (ScatterOp, *CONTROL_OPS)) for op in tensors.ops):
        cut.same.update(_Places(cut).in_place())
    return cut


class _Places:
    """Who reads which value when, in one block."""

    def __init__(self, cut: Cut) -> None:
        self.cut = cut
        self.tensors = cut.tensors
        self.position = {op: k for k, op in enumerate(cut.tensors.ops)}
        self.reads: dict[SSAValue, list[_Read]] = {}
        base_of = cut.tensors.base_of
        for point in cut.points:
            owner = point.owner
            assert isinstance(owner, Operation)
            for value in cut.reads(list(owner.operands)):
                self._note(base_of(value), self._launched(point))
        for op in cut.tensors.ops:
            if isinstance(op, CONTROL_OPS):
                starts = op.arguments if isinstance(op, scf.WhileOp) else ()
                for k, value in enumerate(uses_of(op)):
                    if k < len(starts):
                        for read in cut.reads([value]):
                            place = (op, k) if base_of(read) is base_of(value) else None
                            self._note(base_of(read), self.position[op], place)
                    else:
                        self._note(base_of(value), self.position[op])
        for value in cut.tensors.results:
            self._note(base_of(value), _AT_THE_END)

    def _launched(self, point: SSAValue) -> int:
        """Where the kernel of a value runs: with the last of those that it computes."""
        last = self.cut.together.get(point, (point,))[-1].owner
        assert isinstance(last, Operation)
        return self.position[last]

    def _note(
        self, value: SSAValue, position: int, place: tuple[Operation, int] | None = None
    ) -> None:
        self.reads.setdefault(value, []).append(_Read(position, place))

    def in_place(self) -> dict[SSAValue, SSAValue]:
        """For each value that can be: the one whose buffer it takes over."""
        same: dict[SSAValue, SSAValue] = {}
        taken: set[SSAValue] = set()
        for op in self.tensors.ops:
            for value, old, place in self._candidates(op):
                if old not in taken and self._may_change(op, old, place):
                    same[value] = old
                    taken.add(old)
        for value in list(same):
            if not self._fits(value, same):
                del same[value]
        return same

    def _candidates(
        self, op: Operation
    ) -> list[tuple[SSAValue, SSAValue, tuple[Operation, int] | None]]:
        base_of = self.tensors.base_of
        if isinstance(op, ScatterOp):
            old = base_of(op.operand)
            if old in self.cut.reads([op.indices, op.updates]):
                return []
            return [(op.result, old, None)]
        if isinstance(op, scf.WhileOp):
            swapped = self.cut.loops[op].swapped
            return [
                (op.results[k], base_of(init), (op, k))
                for k, init in enumerate(op.arguments)
                if not swapped[k]
            ]
        return []

    def _may_change(
        self, op: Operation, old: SSAValue, place: tuple[Operation, int] | None
    ) -> bool:
        """Whether a value's buffer may change at an op: nobody else reads it from there on."""
        if not self.cut.is_in_buffer(old) or isinstance(old.owner, ConstantOp):
            return False
        if isinstance(old, BlockArgument):
            if not self.tensors.owns(old):
                return False
        elif not self.tensors.computes(old):
            return False
        at = self.position[op]
        return all(
            r.position < at or (r.position == at and r.place == place and self._alone(op, old))
            for r in self.reads.get(old, ())
        )

    def _alone(self, op: Operation, old: SSAValue) -> bool:
        """Whether an op reads a value at one place only."""
        at = self.position[op]
        return sum(r.position == at for r in self.reads.get(old, ())) == 1

    def _fits(self, value: SSAValue, same: dict[SSAValue, SSAValue]) -> bool:
        """A chain that starts in a buffer that is given may not end in another that is given."""
        if self._is_given(same[value]) is None or not self.tensors.is_nested:
            return True  # a function's result may be any buffer of its caller's
        end = value
        while (following := next((v for v, old in same.items() if old is end), None)) is not None:
            end = following
        wanted = [k for k, v in enumerate(self.tensors.results) if self.tensors.base_of(v) is end]
        return not wanted or wanted == [self._is_given(same[value])]

    def _is_given(self, value: SSAValue) -> int | None:
        """For what has a buffer from elsewhere: the number of the argument, -1 for a result."""
        if isinstance(value, BlockArgument):
            return value.index
        assert isinstance(value, OpResult)
        loop = self.cut.loops.get(value.op)
        return -1 if loop is not None and loop.swapped[value.index] else None

    def swapped(self, op: scf.WhileOp) -> tuple[bool, ...]:
        """Of a loop's body: which of the carried values need two buffers."""
        return tuple(
            not self._changes_in_place(k, value)
            for k, value in enumerate(yielded(op.after_region.block))
        )

    def _changes_in_place(self, place: int, value: SSAValue) -> bool:
        tensors = self.tensors
        base = tensors.base_of(value)
        argument = tensors.block.args[place]
        if sum(tensors.base_of(v) is base for v in tensors.results) > 1:
            return False
        if not isinstance(base.owner, Operation) or not tensors.computes(base):
            return False
        root = self.cut.root(base)
        if root is argument:
            return True
        owner = root.owner
        if not isinstance(owner, Operation) or isinstance(owner, CONTROL_OPS):
            return False
        if not tensors.computes(root):
            return False
        written = self._launched(root)
        old = [v for v in (argument, *self.cut.same) if self.cut.root(v) is argument]
        return all(r.position < written for v in old for r in self.reads.get(v, ()))
