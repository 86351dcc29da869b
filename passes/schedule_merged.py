"""Ranges of products that are better one: the rows of an image, and those that a sum is over.

    merge k l as kl           a sum over a batch of rows: one over all rows, if each batch follows
                              the one before it in memory; the same for rows of the result

Where results are rows of an image, several rows are one range of columns: a row of 56 pixels is
three vectors of 16 and a half. Two rows are seven whole ones, four are fourteen, of which panels of
three leave two and not one; and rows lie behind one another in the result and in a panel for them:

    split y = y0 y1:4;  tile b over k y1 x as pk py px;  merge y1 x as s;  split s = s0 s1:3 s2:16
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from uopc.dialects import loop
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.schedule_text import Command, Merge
from uopc.passes.loop_dag import LoopDag, own_ranges
from uopc.passes.schedule_facts import (
    in_order,
    length,
    loads_of,
    name_of,
    product_of,
    steps_along,
    stores,
)
from uopc.passes.schedule_names import FreshNames

_GAIN = 1.05
"""Rows are merged from this gain on: what a panel of one row computes beyond its edge."""


def rows_to_merge(
    dag: LoopDag,
    across: loop.RangeOp,
    fixed: frozenset[loop.RangeOp],
    lanes: int,
    wide: int,
    most: int,
) -> tuple[loop.RangeOp, int] | None:
    """The range of rows whose columns `across` counts, and how many to merge for whole vectors.

    `fixed` are the ranges that may not be cut, `wide` is how many vectors a panel of the register
    tile has, and `most` how many columns a packed one has room for.
    None where rows are no neighbours, or nothing is gained.
    """
    columns = length(dag, across)
    if columns < 2 or _is_asked_about(dag, across):
        return None
    (store,) = stores(dag)
    for rows in dag.free_of_statement[store] - fixed - {across}:
        if _is_asked_about(dag, rows) or not _follow_one_another(dag, across, rows):
            continue
        count = length(dag, rows)
        choices = [n for n in range(1, count + 1) if count % n == 0 and n * columns <= most]
        best = max(choices, key=lambda n: (_share(n * columns, lanes, wide), -n), default=1)
        if _share(best * columns, lanes, wide) > _GAIN * _share(columns, lanes, wide):
            return rows, best
    return None


def merged_ranges(dag: LoopDag) -> list[Command]:
    """What makes the ranges of a sum of products one where they count neighbours, and the ranges
    of rows that only one factor has."""
    reductions = [o for o in dag.statements if isinstance(o, loop.ReduceOp)]
    product = product_of(reductions[0]) if len(reductions) == 1 else None
    if product is None:
        return []
    own = own_ranges(reductions[0])
    left, right = (dag.free[factor] - own for factor in product.operands)
    accesses = [o for o in dag.position if isinstance(o, loop.LoadOp | loop.StoreOp)]
    found: list[Command] = []
    for ranges in (own, left - right, right - left):
        found += merged_chain(dag, accesses, in_order(dag, ranges))[0]
    return found


def merged_chain(
    dag: LoopDag, accesses: Iterable[loop.AccessOp], ranges: Iterable[loop.RangeOp]
) -> tuple[list[Command], list[str]]:
    """What makes one of successive ranges where some accesses count neighbours by them; and the
    names of the ranges that there are then."""
    found: list[Command] = []
    names: list[str] = []
    fresh = FreshNames(op.result.name_hint for op in dag.position if isinstance(op, loop.RangeOp))
    last = None
    for inner in ranges:
        name = name_of(inner)
        if last is not None and _count_neighbours(dag, accesses, last, inner):
            outer, inner_name = names.pop(), name
            name = fresh.fresh(f"{outer}{inner_name}")
            found.append(Merge(outer, inner_name, name))
        names.append(name)
        last = inner
    return found, names


def _count_neighbours(
    dag: LoopDag, accesses: Iterable[loop.AccessOp], outer: loop.RangeOp, inner: loop.RangeOp
) -> bool:
    """Whether two ranges together count what one could."""
    if _is_asked_about(dag, outer) or _is_asked_about(dag, inner):
        return False
    return all(_is_one_walk(dag, access, outer, inner) for access in accesses)


def _is_one_walk(
    dag: LoopDag, load: loop.AccessOp, outer: loop.RangeOp, inner: loop.RangeOp
) -> bool:
    """Whether an access moves on from one step of the outer range to the next as it does within."""
    step, between = (_flat_step(dag, load, r) for r in (inner, outer))
    if step is None or between is None or dag.conditions(load):
        return False
    return between == step * length(dag, inner)


def _share(columns: int, lanes: int, wide: int) -> float:
    """Which part of the vectors of its panels some columns fill: those of a narrower panel at the
    end count for more, since it loads more for each product."""
    vectors = -(-columns // lanes)
    rest = vectors % wide
    slower = (1 - rest / wide) ** 2 if rest else 0.0
    return columns / ((vectors + slower) * lanes)


def _is_asked_about(dag: LoopDag, range_op: loop.RangeOp) -> bool:
    """Whether a condition or a number depends on a range: merged lanes do not count evenly."""
    return range_op.constant_end is None or any(
        isinstance(op, loop.ValidOp | loop.IndexOp | loop.ValueOp)
        and range_op in dag.free[op.results[0]]
        for op in dag.position
    )


def _follow_one_another(dag: LoopDag, across: loop.RangeOp, rows: loop.RangeOp) -> bool:
    """Whether successive rows of the result are successive in memory, and whatever is read beside
    the product as well."""
    (store,) = stores(dag)
    accesses: list[loop.AccessOp] = [store, *loads_of(dag, [store.value])]
    for access in accesses:
        step, between = (_flat_step(dag, access, r) for r in (across, rows))
        if (step, between) == (0, 0) and not dag.conditions(access):
            continue
        if step != 1 or between != length(dag, across) or dag.conditions(access):
            return False
    return True


def _flat_step(dag: LoopDag, access: loop.AccessOp, along: loop.RangeOp) -> int | None:
    """By how many elements an access moves in memory with a range; None where unevenly."""
    shape = buffer_of(access.buffer).get_shape()
    if min(shape, default=1) < 0:
        return None
    total = 0
    for axis, step in enumerate(steps_along(dag, access, along)):
        if step is None:
            return None
        total += step * prod(shape[axis + 1 :])
    return total
