"""Which loop of a kernel threads share: the outermost one, if the work pays for it.

    mark j0 thread                     few steps, each with work enough
    split i = i0::thread i1:16         many small steps: several of them are a part
    split i = it::thread i0:64 i1:16:vector       of one that is split already

A part writes places of its own. Kernels whose outermost loop is a reduction, and those that
update in order, stay with one thread. Where a size is known at the call only, parts are of a size
that pays for a thread, so that a small call is one part; or the least call pays as well.
"""

from __future__ import annotations

from math import prod

from uopc.dialects import kernel, loop
from uopc.dialects.element_types import element_type
from uopc.dialects.index_expr import as_expr
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.schedule_text import Command, Mark, Order, Part, Split
from uopc.passes.loop_dag import LoopDag
from uopc.passes.schedule_facts import in_order, length, name_of, stores

OPERATIONS_A_SECOND = 20e9
BYTES_A_SECOND = 10e9
PAYS_FROM_SECONDS = 40e-6
"""Waking a thread costs a few microseconds; below this much work it gains nothing."""
PART_SECONDS = 8e-6
"""What a part should take at least: claiming one costs a tenth of a microsecond."""
MOST_PARTS = 256


def thread_commands(dag: LoopDag, chosen: list[Command]) -> list[Command]:
    """What makes the outermost loop of a kernel, as scheduled so far, one for threads; where that
    is a part of a split among `chosen`, it is the split that changes."""
    op = dag.kernel
    seconds = max(op.flops.value.data / OPERATIONS_A_SECOND, op.bytes.value.data / BYTES_A_SECOND)
    if seconds < PAYS_FROM_SECONDS or dag.guard_ranges:
        return []
    written = stores(dag)
    if not written or any(isinstance(s, loop.UpdateOp) for s in dag.statements):
        return []
    if len({dag.free_of_statement[store] for store in written}) != 1:
        return []
    order = next((c for c in chosen if isinstance(c, Order)), None)
    free = in_order(dag, dag.free_of_statement[written[0]])
    least = _least_seconds(op) if op.symbols.data else seconds
    if order is not None:
        if least < PAYS_FROM_SECONDS:
            return []
        first = order.names[0]
        split = next((c for c in chosen if isinstance(c, Split) and c.parts[0].name == first), None)
        if split is not None:
            return [Mark(first, "thread")]  # of a split: a panel of columns is a part
        outer = next((r for r in free if name_of(r) == first), None)
    else:
        outer = free[0] if free else None
    if outer is None:
        return []
    part_seconds = PART_SECONDS
    if least < PAYS_FROM_SECONDS:
        if outer.constant_end is not None:
            return []
        part_seconds = PAYS_FROM_SECONDS / 2  # so that what pays for no thread is one part
    wanted = max(1, min(MOST_PARTS, int(seconds / part_seconds)))
    name = name_of(outer)
    for place, command in enumerate(chosen):
        if isinstance(command, Split) and command.range == name:
            if order is None:
                chosen[place] = _shared(command, length(dag, outer), wanted)
            return []
    steps = length(dag, outer)
    if steps < 2:
        return []
    size = -(-steps // min(wanted, steps))
    if size == 1:
        return [Mark(name, "thread")]
    parts = (Part(f"{name}0", None, "thread"), Part(f"{name}1", size, None))
    return [Split(name, parts)]


def _least_seconds(op: kernel.KernelOp) -> float:
    """About how long the least call takes: its sizes at their lower bounds."""
    shares = (max(v.lower, 1) / max(v.upper, 1) for v in op.symbol_vars)
    operations = op.flops.value.data * prod(shares, start=1.0)
    moved = 0
    for position, buffer in enumerate(op.buffers):
        row = element_type(buffer_of(buffer).element_type)
        sizes = (as_expr(size).bounds[0] for size in op.sizes_of_buffer(position))
        moved += prod(sizes) * (row.bytes if row is not None else 1)
    return max(operations / OPERATIONS_A_SECOND, moved / BYTES_A_SECOND)


def _shared(command: Split, steps: int, wanted: int) -> Split:
    """The split of so many steps, its outermost loop cut once more, into parts for threads; as it
    is where that has too few."""
    first, *others = command.parts
    steps = -(-steps // prod(part.size or 1 for part in others))
    if first.kind is not None or wanted < 2 or steps < 2:
        return command
    size = -(-steps // min(wanted, steps))
    parts = (Part(f"{command.range}t", None, "thread"), Part(first.name, size, None), *others)
    return Split(command.range, parts)
