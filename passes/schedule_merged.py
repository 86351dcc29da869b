"""Products whose results are rows of an image: several rows as one range of columns.

A row of 56 pixels is three vectors of 16 and a half. Two rows are seven whole ones, and lie behind
one another in the result and in a panel packed for both:

    split y = y0 y1:2;  tile b over k y1 x as pk py px;  merge y1 x as s;  split s = s0 s1:3 s2:16
"""

from __future__ import annotations

from math import prod

from uopc.dialects import loop
from uopc.dialects.kernel_signature import buffer_of
from uopc.passes.loop_dag import LoopDag
from uopc.passes.schedule_facts import length, loads_of, steps_along, stores

_GAIN = 1.05
"""Rows are merged from this gain on: what a panel of one row computes beyond its edge."""


def rows_to_merge(
    dag: LoopDag, across: loop.RangeOp, fixed: frozenset[loop.RangeOp], lanes: int, most: int
) -> tuple[loop.RangeOp, int] | None:
    """The range of rows whose columns `across` counts, and how many to merge for whole vectors.

    `fixed` are the ranges that may not be cut, and `most` is how many columns a panel has room for.
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
        best = max(choices, key=lambda n: (_share(n * columns, lanes), -n), default=1)
        if _share(best * columns, lanes) > _GAIN * _share(columns, lanes):
            return rows, best
    return None


def _share(columns: int, lanes: int) -> float:
    """Which part of the lanes of its vectors some columns fill."""
    return columns / (-(-columns // lanes) * lanes)


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
