"""What a schedule is chosen by: lengths of ranges, and how accesses move along them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from types import UnionType

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.index_expr import Expr, RangeVar, as_expr, atom_expr
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.schedule_text import Part, Split
from uopc.passes.loop_dag import LoopDag
from uopc.passes.reductions import merging


def name_of(op: loop.RangeOp) -> str:
    """A range's name in schedules."""
    name = op.result.name_hint
    assert name is not None
    return name


def length(dag: LoopDag, op: loop.RangeOp) -> int:
    """The largest number of steps of a range."""
    leaf = dag.index[op.result].leaf
    assert isinstance(leaf, RangeVar)
    return max(leaf.end.bounds[1], 0)


def in_order(dag: LoopDag, ranges: Iterable[loop.RangeOp]) -> list[loop.RangeOp]:
    """Ranges as they stand in the kernel."""
    return sorted(ranges, key=dag.position.__getitem__)


def steps_along(dag: LoopDag, op: loop.AccessOp, along: loop.RangeOp) -> list[int | None]:
    """By how much each index of an access grows with a range; None where unevenly."""
    leaf = dag.index[along.result].leaf
    assert isinstance(leaf, RangeVar)
    found: list[int | None] = []
    for expr in dag.expressions(op.map, op.indices):
        found.append(_step(expr, leaf))
    return found


def _step(expr: Expr, leaf: RangeVar) -> int | None:
    if leaf not in expr.leaves:
        return 0
    base = expr.substitute({leaf: 0})
    step = (expr - base).substitute({leaf: 1}).as_int()
    if step is None or expr - base - step * atom_expr(leaf) != as_expr(0):
        return None
    return step


def is_neighbours(dag: LoopDag, op: loop.AccessOp, along: loop.RangeOp) -> bool:
    """Whether successive steps of a range are successive places in memory.

    They are where the last index grows by one, or one before it with only sizes of 1 behind.
    """
    steps = steps_along(dag, op, along)
    sizes = buffer_of(op.buffer).get_shape()
    while len(steps) > 1 and steps[-1] == 0 and sizes[len(steps) - 1] == 1:
        steps.pop()
    neighbours = bool(steps) and steps[-1] == 1 and not any(steps[:-1]) and None not in steps
    return neighbours and _evenly_masked(dag, op, along)


def is_fixed(dag: LoopDag, op: loop.AccessOp, along: loop.RangeOp) -> bool:
    """Whether an access is at one place for all steps of a range."""
    fixed = along not in dag.free_in(dag.expressions(op.map, op.indices))
    return fixed and _evenly_masked(dag, op, along)


def _evenly_masked(dag: LoopDag, op: loop.AccessOp, along: loop.RangeOp) -> bool:
    """Whether lanes along a range can tell by their number whether an access happens."""
    return _all_even(dag.conditions(op), dag, along)


def is_evenly_guarded(dag: LoopDag, along: loop.RangeOp) -> bool:
    """Whether lanes along a range can tell by their number which conditions of values hold."""
    return all(
        _all_even(dag.expressions(op.map, op.indices), dag, along)
        for op in dag.position
        if isinstance(op, loop.ValidOp)
    )


def is_gathered(dag: LoopDag, along: loop.RangeOp) -> bool:
    """Whether an index of some access is a loaded value that differs along a range.

    Such a range stays a loop: there are no gathers by lanes or copies.
    """
    return any(isinstance(op, loop.ValueOp) and along in dag.free[op.result] for op in dag.position)


def _all_even(conditions: Iterable[Expr], dag: LoopDag, along: loop.RangeOp) -> bool:
    leaf = dag.index[along.result].leaf
    assert isinstance(leaf, RangeVar)
    return all(_step(condition, leaf) is not None for condition in conditions)


def loads_of(dag: LoopDag, values: Iterable[SSAValue]) -> list[loop.LoadOp]:
    """The loads that some values are computed from, not those inside of reductions."""
    return [o for o in _sources(values, loop.LoadOp) if isinstance(o, loop.LoadOp)]


def accesses_of(dag: LoopDag, values: Iterable[SSAValue]) -> list[loop.AccessOp]:
    """The loads, and the reads of tiles, that some values are computed from, not those inside of
    reductions."""
    return _sources(values, loop.LoadOp | loop.ReadOp)


def _sources(values: Iterable[SSAValue], kinds: type | UnionType) -> list[loop.AccessOp]:
    """The accesses of some kinds that values are computed from, in the order met."""
    found: dict[loop.AccessOp, None] = {}
    seen: set[Operation] = set()
    stack = list(values)
    while stack:
        owner = stack.pop().owner
        if not isinstance(owner, Operation) or owner in seen:
            continue
        seen.add(owner)
        if isinstance(owner, loop.AccessOp) and isinstance(owner, kinds):
            found[owner] = None
        elif not isinstance(owner, loop.ReduceOp | loop.RangeOp):
            stack.extend(owner.operands)
    return list(found)


def split_in_lanes(op: loop.RangeOp, copies: int, lanes: int) -> Split:
    """A range as steps of copies, if these are several, of lanes."""
    name = name_of(op)
    parts = [Part(f"{name}0", None, None)]
    if copies > 1:
        parts.append(Part(f"{name}1", copies, "unroll"))
    parts.append(Part(f"{name}2", lanes, "vector"))
    return Split(name, tuple(parts))


def stored_bytes(store: loop.StoreOp) -> int:
    """The size of a result that vectors may be stored to; of other types and open sizes 0."""
    shape = buffer_of(store.buffer).get_shape()
    row = element_type(store.value.type)
    if row is None or row.is_bool or min(shape, default=1) < 0:
        return 0
    return prod(shape) * row.bytes


def stores(dag: LoopDag) -> list[loop.StoreOp]:
    return [o for o in dag.statements if isinstance(o, loop.StoreOp)]


def product_of(op: loop.ReduceOp) -> arith.MulfOp | None:
    """The multiplication that a reduction sums; of halves the one that is widened to f32 for it,
    whose rounding may be left out. In a sum of f64 it may not, and it is no product of f64."""
    if op.kind is None or op.kind.data != "add":
        return None
    owner = op.values[0].owner
    if isinstance(owner, arith.ExtFOp) and owner.result.type == f32:
        owner = owner.input.owner
    return owner if isinstance(owner, arith.MulfOp) else None


def widened_name(factor: SSAValue) -> str | None:
    """How `contract` calls a factor that it widens; a factor without a name gives none."""
    return None if factor.name_hint is None else f"{factor.name_hint}_wide"


def paired_name(factor: SSAValue) -> str | None:
    """How `pair` calls the pairs of a factor; a factor without a name gives none."""
    return None if factor.name_hint is None else f"{factor.name_hint}_pair"


def is_arg_reduction(dag: LoopDag, op: loop.ReduceOp) -> bool:
    """Whether a reduction by a region finds an element's position along its one range.

    Then it may run in any order, if of equal elements the smaller position wins at the end.
    """
    if op.kind is not None or len(op.over) != 1 or merging(op) is None:
        return False
    position = op.values[1].owner
    leaf = dag.index[op.over[0]].leaf
    if not isinstance(position, loop.IndexOp) or not isinstance(leaf, RangeVar):
        return False
    step = _step(dag.expressions(position.map, position.indices)[0], leaf)
    return step is not None and step > 0
