"""Schedules of reductions that are no products.

Along neighbours in memory (a row's sum) the reduced range is cut into copies and lanes, each with
its own accumulator; across them (a column's sum) the range of the neighbours is.

    split k = k0 k1:4:unroll k2:8:vector        row: 32 partial sums, combined as a tree
    split j = j0 j1:12:unroll j2:8:vector       column: as many at a time as registers hold
"""

from __future__ import annotations

from xdsl.dialects import arith

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.schedule_text import Command, Contract, Order
from uopc.passes.cpu_targets import CpuTarget
from uopc.passes.loop_dag import LoopDag, own_ranges
from uopc.passes.schedule_facts import (
    in_order,
    is_arg_reduction,
    is_evenly_guarded,
    is_fixed,
    is_gathered,
    is_neighbours,
    length,
    loads_of,
    name_of,
    split_in_lanes,
    stores,
)

_ROW_COPIES = 4
_EXTREME_COPIES = 8
"""A maximum takes twice as long as a sum to be there for the next."""


def reduction_schedule(dag: LoopDag, reduction: loop.ReduceOp, target: CpuTarget) -> list[Command]:
    """The commands for the one reduction of a kernel."""
    rows = [element_type(r.type) for r in reduction.results]
    if any(r is None or r.is_bool for r in rows):
        return []
    loads = loads_of(dag, reduction.values)
    lanes = target.vector_bytes * 8 // max(_widest(loads), *(r.bits for r in rows if r is not None))
    if lanes < 2:
        return []
    along = _neighbour_range(dag, loads, own_ranges(reduction))
    if along is not None and reduction.kind is None and not is_arg_reduction(dag, reduction):
        return []  # a region's order is its author's
    if along is not None:
        steps = length(dag, along)
        kind = "" if reduction.kind is None else reduction.kind.data
        floats = all(r is not None and r.is_float for r in rows)
        most = _EXTREME_COPIES if floats and kind in ("max", "min") else _ROW_COPIES
        copies = min(most, steps // lanes)
        if copies < 1:
            return []
        return [split_in_lanes(along, copies, lanes)]
    free = dag.free[reduction.results[0]]
    across = _neighbour_range(dag, loads, free)
    written = stores(dag)
    if across is None or len(written) != 1 or not is_neighbours(dag, written[0], across):
        return []
    copies = _copies(length(dag, across) // lanes, target)
    if copies < 1:
        return []
    outer = [name_of(r) for r in in_order(dag, free - {across})]
    own = [name_of(r) for r in in_order(dag, own_ranges(reduction))]
    split = split_in_lanes(across, copies, lanes)
    contract = [Contract()] if target.fused_multiply_add and _is_product(reduction) else []
    return [*contract, split, Order((*outer, split.parts[0].name, *own))]


def _copies(vectors: int, target: CpuTarget) -> int:
    """As many accumulators as registers hold, or fewer so that the strips are of equal width and
    even in number: threads share them."""
    most = target.registers * 3 // 4
    strips = -(-vectors // most)
    strips += strips % 2
    return -(-vectors // strips) if vectors > 1 else vectors


def _is_product(reduction: loop.ReduceOp) -> bool:
    """Whether products are summed, as of a row and a matrix."""
    is_sum = reduction.kind is not None and reduction.kind.data == "add"
    return is_sum and isinstance(reduction.values[0].owner, arith.MulfOp)


def _widest(loads: list[loop.LoadOp]) -> int:
    rows = [element_type(o.result.type) for o in loads]
    return max((r.bits for r in rows if r is not None), default=8)


def _neighbour_range(
    dag: LoopDag, loads: list[loop.LoadOp], ranges: frozenset[loop.RangeOp]
) -> loop.RangeOp | None:
    """A range along which every load is of neighbours, or of one place; at least one moves."""
    for range_op in reversed(in_order(dag, ranges)):
        moving = [o for o in loads if not is_fixed(dag, o, range_op)]
        if moving and all(is_neighbours(dag, o, range_op) for o in moving):
            even = is_evenly_guarded(dag, range_op) and not is_gathered(dag, range_op)
            return range_op if even else None
    return None
