"""How many steps of a loop need no guard, where that is known at the call only: n // f of them."""

from __future__ import annotations

from uopc.dialects import loop
from uopc.dialects.index_expr import Expr, RangeVar, at_least, atom_expr, minimum
from uopc.passes.loop_dag import is_loop
from uopc.passes.loop_scopes import Scopes


def whole_steps(scopes: Scopes, range_op: loop.RangeOp, end: Expr) -> Expr | None:
    """How many first steps of a range need no guard, whatever the copies, lanes and loops inside
    of it do; None where there may be none, or where it is not linear."""
    leaf = scopes.leaf_of(range_op)
    steps: Expr | None = None
    for condition, ranges in scopes.dag.guard_ranges:
        if range_op not in ranges or all(map(is_loop, ranges)):
            continue
        expr = scopes.resolved(condition)
        slope = (expr - expr.substitute({leaf: 0})).substitute({leaf: 1}).as_int()
        least = _least_inside(scopes, expr - atom_expr(leaf) * (slope or 0))
        if slope is None or slope >= 0 or least is None:
            return None
        # least + slope * r >= 0 is r <= least / -slope
        found = least // -slope + 1
        steps = found if steps is None else minimum(steps, found)
    if steps is None or at_least(steps, 0) is not True:
        return None
    return steps if at_least(end, steps) is True else minimum(steps, end)


def _least_inside(scopes: Scopes, expr: Expr) -> Expr | None:
    """The least of an expression over all ranges that are not open; None if that is not linear."""
    result = expr
    for leaf in expr.leaves:
        key = leaf.key if isinstance(leaf, RangeVar) else None
        if not isinstance(key, loop.RangeOp) or key in scopes.open_ranges:
            continue
        base = result.substitute({leaf: 0})
        slope = (result - base).substitute({leaf: 1}).as_int()
        length = key.constant_end
        if slope is None or not length or result - base != atom_expr(leaf) * slope:
            return None
        result = base + min(slope, 0) * (length - 1)
    return result
