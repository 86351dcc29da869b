"""Whether two values of a kernel are the same computation on the same elements.

rangeify writes a value out once for each place that it is read at: softmax has its scores three
times, over ranges of their own. Here two of them are held side by side, each at a place that says
what its ranges are, down to the loads.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation, SSAValue

from uopc.dialects import loop
from uopc.dialects.index_expr import Expr, Leaf, RangeVar, atom_expr, same
from uopc.passes.loop_dag import LoopDag

Where = Mapping[Leaf, Expr]
"""What some leaves of index expressions are; the others are themselves."""

MOST_PAIRS = 20_000


def leaf_of(dag: LoopDag, range_value: SSAValue) -> RangeVar:
    """The leaf that a range is in index expressions."""
    leaf = dag.index[range_value].leaf
    assert isinstance(leaf, RangeVar)
    return leaf


def through_tile(dag: LoopDag, op: loop.ReadOp, where: Where) -> Where:
    """Where the value of a tile is computed that a read at `where` reads."""
    tile = op.buffer.owner
    assert isinstance(tile, loop.TileOp)
    at = [e.substitute(where) for e in dag.expressions(op.map, op.indices)]
    return {**where, **{leaf_of(dag, o): e for o, e in zip(tile.over, at, strict=True)}}


def same_value(dag: LoopDag, a: SSAValue, at_a: Where, b: SSAValue, at_b: Where) -> bool:
    """Whether a at one place is b at another, to the bit. False where it is not proved."""
    pairs = [(a, at_a, b, at_b)]
    seen: set[tuple[SSAValue, int, SSAValue, int]] = set()
    places: list[Where] = [at_a, at_b]  # kept, since `seen` knows them by identity
    while pairs:
        pair = pairs.pop()
        left, at_left, right, at_right = pair
        key = (left, id(at_left), right, id(at_right))
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > MOST_PAIRS:
            return False
        found = _parts(dag, left, at_left, right, at_right)
        if found is None:
            return False
        places.extend(where for part in found for where in (part[1], part[3]))
        pairs.extend(found)
    return True


_Pairs = list[tuple[SSAValue, Where, SSAValue, Where]]


def _parts(dag: LoopDag, a: SSAValue, at_a: Where, b: SSAValue, at_b: Where) -> _Pairs | None:
    """What has to be the same for a and b to be; None where they differ or may differ."""
    if a is b and _same_places(dag, a, at_a, at_b):
        return []
    one, other = a.owner, b.owner
    if isinstance(one, loop.ReadOp) and isinstance(one.buffer.owner, loop.TileOp):
        return [(one.buffer.owner.value, through_tile(dag, one, at_a), b, at_b)]
    if isinstance(other, loop.ReadOp) and isinstance(other.buffer.owner, loop.TileOp):
        return [(a, at_a, other.buffer.owner.value, through_tile(dag, other, at_b))]
    if not isinstance(one, Operation) or not isinstance(other, Operation):
        return None
    if type(one) is not type(other) or a.type != b.type:
        return None
    if isinstance(one, loop.LoadOp) and isinstance(other, loop.LoadOp):
        unchanged = one.buffer is other.buffer and one.buffer not in dag.written
        return [] if unchanged and _same_indices(dag, one, at_a, other, at_b) else None
    if isinstance(one, loop.IndexOp | loop.ValidOp):
        assert isinstance(other, loop.IndexOp | loop.ValidOp)
        return [] if _same_indices(dag, one, at_a, other, at_b) else None
    if isinstance(one, loop.ReduceOp) and isinstance(other, loop.ReduceOp):
        return _same_reductions(dag, one, at_a, other, at_b)
    plain = not one.regions and not isinstance(one, loop.ValueOp | loop.RangeOp)
    if not plain or one.properties != other.properties or one.attributes != other.attributes:
        return None
    if len(one.operands) != len(other.operands):
        return None
    return [(x, at_a, y, at_b) for x, y in zip(one.operands, other.operands, strict=True)]


def _same_places(dag: LoopDag, value: SSAValue, at_a: Where, at_b: Where) -> bool:
    """Whether two places are the same for a value: whatever it varies along is."""
    leaves = [leaf_of(dag, r.result) for r in dag.free[value]]
    return all(
        same(at_a.get(leaf, atom_expr(leaf)), at_b.get(leaf, atom_expr(leaf))) is True
        for leaf in leaves
    )


def _same_indices(
    dag: LoopDag,
    a: loop.LoadOp | loop.IndexOp | loop.ValidOp,
    at_a: Where,
    b: loop.LoadOp | loop.IndexOp | loop.ValidOp,
    at_b: Where,
) -> bool:
    left = [e.substitute(at_a) for e in _indices(dag, a)]
    right = [e.substitute(at_b) for e in _indices(dag, b)]
    return len(left) == len(right) and all(
        same(x, y) is True for x, y in zip(left, right, strict=True)
    )


def _indices(dag: LoopDag, op: loop.LoadOp | loop.IndexOp | loop.ValidOp) -> list[Expr]:
    conditions = dag.conditions(op) if isinstance(op, loop.LoadOp) else []
    return [*dag.expressions(op.map, op.indices), *conditions]


def _same_reductions(
    dag: LoopDag, a: loop.ReduceOp, at_a: Where, b: loop.ReduceOp, at_b: Where
) -> _Pairs | None:
    """Alike if of one kind, over equally long ranges of equal kinds, of the same values."""
    if a.kind is None or b.kind is None or a.kind != b.kind or len(a.over) != len(b.over):
        return None
    ranges_a, ranges_b = (sorted(o.over, key=lambda r: dag.position[r.owner]) for o in (a, b))  # pyright: ignore[reportArgumentType]  # a range's owner is an op
    own: dict[Leaf, Expr] = {}
    renamed: dict[Leaf, Expr] = {}
    for x, y in zip(ranges_a, ranges_b, strict=True):
        left, right = leaf_of(dag, x), leaf_of(dag, y)
        ends = left.end.substitute(at_a), right.end.substitute(at_b)
        kinds = [o.owner.kind for o in (x, y) if isinstance(o.owner, loop.RangeOp)]
        if same(*ends) is not True or kinds[0] != kinds[1]:
            return None
        own[left] = renamed[right] = dag.index[x]
    for condition, _ in dag.guard_ranges:
        if condition.leaves & (own.keys() | renamed.keys()):
            return None
    here, there = {**at_a, **own}, {**at_b, **renamed}
    return [(x, here, y, there) for x, y in zip(a.values, b.values, strict=True)]
