"""Schedules of kernels that read one way and write another, as a transpose does.

Where neighbours of the result are far apart in an input, the loops go block by block, so that the
lines of memory that a block touches are used whole before they are dropped.

    split i = i0 i1:16; split j = j0 j1:16; order i0 j0 i1 j1
"""

from __future__ import annotations

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.schedule_text import Command, Order, Part, Split
from uopc.passes.cpu_targets import CpuTarget
from uopc.passes.loop_dag import LoopDag
from uopc.passes.schedule_facts import (
    in_order,
    is_fixed,
    is_neighbours,
    length,
    loads_of,
    name_of,
    stores,
)

_LINE_BYTES = 64
_SIDES = (16, 8, 4)
"""Sides of a block that are tried; one has to divide the lengths, so that nothing is guarded."""


def block_schedule(dag: LoopDag, target: CpuTarget) -> list[Command]:
    """The commands for a kernel without reductions; none where it reads as it writes."""
    written = stores(dag)
    if len(written) != 1:
        return []
    store = written[0]
    free = in_order(dag, dag.free_of_statement[store])
    row = element_type(store.value.type)
    across = next((r for r in free if is_neighbours(dag, store, r)), None)
    if across is None or row is None:
        return []
    down = _far_range(dag, store, across)
    if down is None:
        return []
    elements = 1
    for range_op in free:
        elements *= length(dag, range_op)
    if elements * row.bytes <= target.level2_bytes:
        return []
    most = max(_LINE_BYTES // row.bytes, 4)
    for side in _SIDES:
        whole = all(r.constant_end is not None and r.constant_end % side == 0
                    for r in (down, across))  # fmt: skip
        if side <= most and whole:
            return _blocks(free, down, across, side)
    return []


def _far_range(dag: LoopDag, store: loop.StoreOp, across: loop.RangeOp) -> loop.RangeOp | None:
    """The range along which an input lies that is not read along the result's neighbours."""
    for load in loads_of(dag, [store.value]):
        if is_fixed(dag, load, across) or is_neighbours(dag, load, across):
            continue
        for range_op in in_order(dag, dag.free[load.result]):
            if range_op is not across and is_neighbours(dag, load, range_op):
                return range_op
    return None


def _blocks(
    free: list[loop.RangeOp], down: loop.RangeOp, across: loop.RangeOp, side: int
) -> list[Command]:
    i, j = name_of(down), name_of(across)
    others = [name_of(r) for r in free if r not in (down, across)]
    return [
        Split(i, (Part(f"{i}0", None, None), Part(f"{i}1", side, None))),
        Split(j, (Part(f"{j}0", None, None), Part(f"{j}1", side, None))),
        Order((*others, f"{i}0", f"{j}0", f"{i}1", f"{j}1")),
    ]
