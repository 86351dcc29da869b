"""Schedules of kernels that read one way and write another, as a transpose does.

Where neighbours of the result are far apart in an input, a square of elements is read as vectors
along the input's neighbours and exchanged in registers, then written along the result's:

    split i = i0 i1:16:unroll; split j = j0 j1:16:vector
    tile x over i1 j1 as p q in register; mark q unroll; mark p vector
    order i0 j0

A result larger than the caches is written past them, and then whole rows of the input are read
one after the other, two squares beside each other: two lines of each row of the result.

    split j = j0 jb:2 j1:16:vector; …; order j0 i0 jb; stream

Lengths below a square's side are left to plain loops.
"""

from __future__ import annotations

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.schedule_text import Command, Mark, Order, Part, Split, Stream, Tile
from uopc.passes.cpu_targets import CpuTarget
from uopc.passes.loop_dag import LoopDag
from uopc.passes.schedule_facts import (
    in_order,
    is_evenly_guarded,
    is_fixed,
    is_gathered,
    is_neighbours,
    length,
    loads_of,
    name_of,
    stored_bytes,
    stores,
)

_MOST_SIDE = 16
"""A square of more rows would not stay in registers."""
STREAM_FROM_BYTES = 1 << 24
"""On two cores with 1 MiB of level 2 each, 16 MiB take half the time so, and 1 MiB a tenth more."""


def block_schedule(dag: LoopDag, target: CpuTarget) -> list[Command]:
    """The commands for a kernel without reductions; none where it reads as it writes."""
    written = stores(dag)
    if len(written) != 1 or any(isinstance(s, loop.UpdateOp) for s in dag.statements):
        return []
    store = written[0]
    free = in_order(dag, dag.free_of_statement[store])
    row = element_type(store.value.type)
    across = next((r for r in free if is_neighbours(dag, store, r)), None)
    if across is None or row is None or row.is_bool:
        return []
    loads = loads_of(dag, [store.value])
    turned = [(o, d) for o in loads if (d := _far_range(dag, o, across)) is not None]
    if not turned or len({d for _, d in turned}) != 1:
        return []
    down = turned[0][1]
    for side_range in (down, across):  # lengths known only at the call are left to plain loops
        if side_range.constant_end is None or is_gathered(dag, side_range):
            return []
        if not is_evenly_guarded(dag, side_range):
            return []
    # What is not turned has to be read along the result's neighbours, or at one place.
    others = [o for o in loads if all(o is not t for t, _ in turned)]
    if not all(is_fixed(dag, o, across) or is_neighbours(dag, o, across) for o in others):
        return []
    rows = [row, *(r for o in loads if (r := element_type(o.result.type)) is not None)]
    side = min(target.vector_bytes // max(r.bytes for r in rows), _MOST_SIDE)
    if side < 2 or min(length(dag, down), length(dag, across)) < side:
        return []
    if any(r.is_bool for r in rows):
        return []
    streams = stored_bytes(store) >= STREAM_FROM_BYTES and length(dag, across) >= 2 * side
    return _squares(free, [o for o, _ in turned], down, across, side, streams=streams)


def _far_range(dag: LoopDag, load: loop.LoadOp, across: loop.RangeOp) -> loop.RangeOp | None:
    """The range along which an input lies that is not read along the result's neighbours."""
    if is_fixed(dag, load, across) or is_neighbours(dag, load, across):
        return None
    ranges = in_order(dag, dag.free[load.result])
    return next((r for r in ranges if r is not across and is_neighbours(dag, load, r)), None)


def _squares(
    free: list[loop.RangeOp],
    turned: list[loop.LoadOp],
    down: loop.RangeOp,
    across: loop.RangeOp,
    side: int,
    *,
    streams: bool,
) -> list[Command]:
    i, j = name_of(down), name_of(across)
    pair = [Part(f"{j}b", 2, None)] if streams else []
    found: list[Command] = [
        Split(i, (Part(f"{i}0", None, None), Part(f"{i}1", side, "unroll"))),
        Split(j, (Part(f"{j}0", None, None), *pair, Part(f"{j}1", side, "vector"))),
    ]
    for number, load in enumerate(turned):
        p, q = (f"{n}{number or ''}" for n in ("p", "q"))
        assert load.result.name_hint is not None
        found.append(Tile(load.result.name_hint, (f"{i}1", f"{j}1"), (p, q), "register"))
        found += [Mark(q, "unroll"), Mark(p, "vector")]
    others = [name_of(r) for r in free if r not in (down, across)]
    if streams:
        return [*found, Order((*others, f"{j}0", f"{i}0", f"{j}b")), Stream()]
    return [*found, Order((*others, f"{i}0", f"{j}0"))]
