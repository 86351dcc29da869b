"""Which values one kernel computes together, each into its own buffer.

An optimizer's step makes three values of each parameter; what they are made of would be read three
times, by three launches. Values of equal sizes are computed together where each is elementwise in
what it reads (no reduction, no scatter), and either reads another one of them, or a buffer of its
own size that another one reads too, both at the element that is computed:

    m1 = b*m + c*g        m1, v1 and p1 read g; p1 reads m1 and v1: one kernel, that reads
    v1 = d*v + e*g*g      m, v, g, p and writes m1, v1, p1
    p1 = p - m1 / sqrt(v1)

The kernel stands where its last value did. So nothing before that may read one of its values: a
kernel, loop or branch that does ends the group, and so does a scatter or loop, which may write in
place of what the group reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from uopc.dialects.tensor import ArgreduceOp, GatherOp, ReduceOp, ScatterOp
from uopc.dialects.tensor_elementwise import ELEMENTWISE_OPS
from uopc.dialects.tensor_movement import ReshapeOp
from uopc.passes.kernel_cut.accesses import shape_of
from uopc.passes.kernel_cut.control import CONTROL_OPS
from uopc.passes.kernel_cut.graph import TensorBlock

MOST_VALUES = 4
"""Each is a stream of stores, beside those of loads; processors follow about a dozen."""
_OPEN = 8
"""So many groups may still grow: those begun last."""

_SAME_PLACE = frozenset[type[Operation]]((*ELEMENTWISE_OPS, ReshapeOp))
"""These keep the order of elements: each is made from those at its own number."""
_ALONE = (ReduceOp, ArgreduceOp, GatherOp, ScatterOp)


@dataclass
class _Group:
    sizes: tuple[object, ...]
    values: list[SSAValue] = field(default_factory=list[SSAValue])
    buffers: set[SSAValue] = field(default_factory=set[SSAValue])
    """Those that are read at the element that is computed."""


def values_together(
    tensors: TensorBlock, points: Sequence[SSAValue], is_in_buffer: Callable[[SSAValue], bool]
) -> dict[SSAValue, tuple[SSAValue, ...]]:
    """For each value that is computed together with others: all of them, in order."""
    wanted = set(points)
    groups: list[_Group] = []
    open_: list[_Group] = []
    for op in tensors.ops:
        if isinstance(op, (ScatterOp, *CONTROL_OPS)):
            open_.clear()
        if isinstance(op, CONTROL_OPS) or op.results[0] not in wanted:
            continue
        value = op.results[0]
        reads = _Reads(tensors, op, is_in_buffer)
        open_ = [g for g in open_ if reads.elsewhere.isdisjoint(g.values)]
        sizes = shape_of(value)
        group = None
        if not reads.is_alone:
            group = next((g for g in reversed(open_) if _belongs(g, sizes, reads.here)), None)
        # Whoever else holds a value that is read here has to be launched before.
        open_ = [g for g in open_ if g is group or reads.here.isdisjoint(g.values)]
        if reads.is_alone:
            continue
        if group is None:
            group = _Group(sizes)
            groups.append(group)
            open_ = [*open_, group][-_OPEN:]
        group.values.append(value)
        group.buffers |= reads.here
    return {v: tuple(g.values) for g in groups if len(g.values) > 1 for v in g.values}


def _belongs(group: _Group, sizes: tuple[object, ...], here: Iterable[SSAValue]) -> bool:
    if group.sizes != sizes or len(group.values) == MOST_VALUES:
        return False
    return any(v in group.buffers or v in group.values for v in here)


class _Reads:
    """What the kernel of a value reads from buffers, and how."""

    def __init__(
        self, tensors: TensorBlock, op: Operation, is_in_buffer: Callable[[SSAValue], bool]
    ) -> None:
        self.here: set[SSAValue] = set()
        """Of as many elements, and at the one that is computed only."""
        self.elsewhere: set[SSAValue] = set()
        self.is_alone = isinstance(op, _ALONE)
        seen: set[tuple[SSAValue, bool]] = set()
        pending = [(o, type(op) in _SAME_PLACE) for o in op.operands]
        while pending:
            value, same_place = pending.pop()
            value = tensors.unstaged.get(value, value)
            if (value, same_place) in seen:
                continue
            seen.add((value, same_place))
            owner = value.owner
            if is_in_buffer(value) or not isinstance(owner, Operation):
                (self.here if same_place else self.elsewhere).add(value)
                continue
            self.is_alone |= isinstance(owner, _ALONE)
            below = same_place and type(owner) in _SAME_PLACE
            pending.extend((o, below) for o in owner.operands)
        self.here -= self.elsewhere
