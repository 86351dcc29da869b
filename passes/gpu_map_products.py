"""Sums of products on a GPU: a tile of the output a block, panels of both factors in shared memory.

    o[z, i, j] = sum over k of a[z, i, k] * b[z, k, j]

    split i = i0:block iu:4:unroll i1:16:lane     a block has 64 x 64 results, a thread 4 x 4
    split j = j0:block ju:4:unroll j1:16:lane     of them, 16 apart: neighbours read neighbours
    split k = k0 k1:16
    tile a_at over iu i1 k1 as … in shared        filled by all threads, a step of k0 at a time
    tile b_at over k1 ju j1 as … in shared
    order z i0 j0 i1 j1

Outputs of fewer than 64 rows or columns get tiles of 16 x 16 and a result a thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from uopc.dialects import loop
from uopc.dialects.index_expr import RangeVar
from uopc.dialects.schedule_text import Command, Contract, Mark, Merge, Order, Part, Split, Tile
from uopc.passes.loop_dag import LoopDag, own_ranges
from uopc.passes.schedule_facts import in_order, is_neighbours, length, loads_of, name_of

LANES = 16
COPIES = 4
DEPTH = 16
SMALLEST = 16
"""Rows and columns, from which on a tile pays."""
MOST_BLOCKS = 65535
"""Of the second and third dimension of a grid."""


def can_merge(dag: LoopDag, ranges: Sequence[loop.RangeOp]) -> bool:
    """Whether ranges can be one: the inner ones are divided by, so they are never empty."""
    return all(shortest(dag, r) >= 1 for r in ranges[1:])


def shortest(dag: LoopDag, op: loop.RangeOp) -> int:
    """The least number of steps of a range."""
    leaf = dag.index[op.result].leaf
    assert isinstance(leaf, RangeVar)
    return leaf.end.bounds[0]


def product_schedule(dag: LoopDag, stores: Sequence[loop.StoreOp]) -> list[Command]:
    """The commands for a sum of products; none where the kernel is no such sum, or too small."""
    reductions = [o for o in dag.statements if isinstance(o, loop.ReduceOp)]
    if len(stores) != 1 or len(reductions) != 1:
        return []
    (store,), (reduction,) = stores, reductions
    if reduction.kind is None or reduction.kind.data not in ("add", "fma"):
        return []
    loads = loads_of(dag, reduction.values)
    outputs = dag.free_of_statement[store]
    if len(loads) != 2 or dag.free[reduction.results[0]] != outputs:
        return []
    return _tiled(dag, store, reduction, loads)


def _tiled(
    dag: LoopDag, store: loop.StoreOp, reduction: loop.ReduceOp, loads: Sequence[loop.LoadOp]
) -> list[Command]:
    own = own_ranges(reduction)
    outputs = dag.free_of_statement[store]
    free = [dag.free[load.result] for load in loads]
    rows, columns = (in_order(dag, (free[k] - free[1 - k]) & outputs) for k in (0, 1))
    deep = in_order(dag, own & free[0] & free[1])
    if not rows or not columns or not deep:
        return []
    i, j, k = rows[-1], columns[-1], deep[-1]
    a, b = loads
    if is_neighbours(dag, store, i):
        i, j, a, b = j, i, b, a
    if min(length(dag, i), length(dag, j)) < SMALLEST or length(dag, k) < DEPTH // 2:
        return []
    others = in_order(dag, outputs - {i, j})
    copies = COPIES if min(length(dag, i), length(dag, j)) >= LANES * COPIES else 1
    tile = LANES * copies
    blocks = 1
    for r in others:
        blocks *= length(dag, r)
    if not can_merge(dag, others):
        return []
    if max(blocks, -(-length(dag, i) // tile)) > MOST_BLOCKS:
        return []
    commands: list[Command] = [Contract()]
    order: list[str] = []
    if others:
        first, *rest = map(name_of, others)
        commands += [Merge(first, other, first) for other in rest]
        commands.append(Mark(first, "block"))
        order.append(first)
    return [*commands, *_tile_commands(dag, (i, j, k), (a, b), copies, order)]


def _tile_commands(
    dag: LoopDag,
    ranges: tuple[loop.RangeOp, loop.RangeOp, loop.RangeOp],
    loads: tuple[loop.LoadOp, loop.LoadOp],
    copies: int,
    order: list[str],
) -> list[Command]:
    taken = {name_of(o) for o in dag.position if isinstance(o, loop.RangeOp)}
    i, j, k = map(name_of, ranges)

    def fresh(base: str) -> str:
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}{number}"
        taken.add(name)
        return name

    commands: list[Command] = []
    inner: list[tuple[str, ...]] = []
    for name in (i, j):
        block, lane = fresh(f"{name}0"), fresh(f"{name}1")
        parts = [Part(block, None, "block"), Part(lane, LANES, "lane")]
        if copies > 1:
            parts.insert(1, Part(fresh(f"{name}u"), copies, "unroll"))
        commands.append(Split(name, tuple(parts)))
        inner.append(tuple(p.name for p in parts[1:]))
        order.append(block)
    k0, k1 = fresh(f"{k}0"), fresh(f"{k}1")
    commands.append(Split(k, (Part(k0, None, None), Part(k1, DEPTH, None))))
    for load, over in ((loads[0], (*inner[0], k1)), (loads[1], (k1, *inner[1]))):
        value = load.result.name_hint
        assert value is not None
        filled = tuple(fresh(f"p{name}") for name in over)
        commands.append(Tile(value, over, filled, "shared"))
        commands.append(Mark(filled[over.index(k1)], "lane"))
    order += [inner[0][-1], inner[1][-1]]
    commands.append(Order(tuple(order)))
    return commands
