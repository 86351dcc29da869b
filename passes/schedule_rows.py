"""Schedules of kernels that go over each row several times, as softmax and normalizations do.

Every sweep (a reduction along the row, the filling of a tile that keeps it, the final store) is
cut into copies and lanes alike, so that lanes of a tile are read as they were written:

    split l = l0 l1:4:unroll l2:16:vector        the maximum
    split k = k0 k1:4:unroll k2:16:vector        the row of exp(x - max), kept in a tile
    split m = m0 m1:4:unroll m2:16:vector        its sum
    split j = j0 j1:4:unroll j2:16:vector        the result
    prefetch x_at along i                        of a large x, the next row while exp takes its time
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.schedule_text import Command, Part, Split
from uopc.passes.cpu_targets import CpuTarget
from uopc.passes.loop_dag import NO_RANGES, LoopDag, Ranges, own_ranges
from uopc.passes.schedule_facts import (
    accesses_of,
    in_order,
    is_evenly_guarded,
    is_fixed,
    is_gathered,
    is_neighbours,
    length,
    name_of,
)
from uopc.passes.schedule_prefetch import prefetch_commands


def row_schedule(dag: LoopDag, target: CpuTarget) -> list[Command]:
    """The commands for a kernel of several sweeps over a row; none where lanes do not fit."""
    found: list[Command] = []
    copies = 4 if target.registers >= 32 else 2
    lanes = _lanes(dag, target)
    if lanes < 2:
        return []
    done: set[loop.RangeOp] = set()
    chosen: dict[Operation, loop.RangeOp] = {}
    for statement in dag.statements:
        along = _along(dag, statement)
        if along is None or along in done or length(dag, along) < lanes:
            continue
        inside = _ranges_around(dag, statement)
        if inside & done or any(along in _ranges_around(dag, other) for other in chosen):
            continue  # a value has lanes along one range
        done.add(along)
        chosen[statement] = along
        name = name_of(along)
        parts = (
            Part(f"{name}0", None, None),
            Part(f"{name}1", min(copies, length(dag, along) // lanes), "unroll"),
            Part(f"{name}2", lanes, "vector"),
        )
        found.append(Split(name, parts))
    return found + prefetch_commands(dag, chosen)


def _lanes(dag: LoopDag, target: CpuTarget) -> int:
    """As many lanes as the widest type of what varies in a sweep leaves room for; what is the same
    for all rows is a scalar."""
    widest = 8
    for op in dag.position:
        for result in op.results:
            row = element_type(result.type)
            if row is not None and dag.free.get(result):
                widest = max(widest, row.bits)
    return target.vector_bytes * 8 // widest


def _ranges_around(dag: LoopDag, statement: Operation) -> Ranges:
    """What the result of a statement varies along."""
    return dag.free[statement.results[0]] if statement.results else NO_RANGES


def _along(dag: LoopDag, statement: Operation) -> loop.RangeOp | None:
    """The range of a statement's own along which all that it reads and writes lies."""
    match statement:
        case loop.ReduceOp():
            if statement.kind is None:
                return None
            values: list[SSAValue] = list(statement.values)
            ranges = own_ranges(statement)
        case loop.TileOp():
            values = [statement.value]
            ranges = own_ranges(statement)
            if statement.over[-1].owner not in ranges:
                return None
        case loop.StoreOp():
            values = [statement.value]
            ranges = dag.free_of_statement[statement]
        case _:
            return None
    accesses: list[loop.AccessOp] = [*accesses_of(dag, values)]
    if isinstance(statement, loop.StoreOp):
        accesses.append(statement)
    for range_op in reversed(in_order(dag, ranges)):
        if isinstance(statement, loop.TileOp) and range_op.result is not statement.over[-1]:
            continue
        moving = [a for a in accesses if not is_fixed(dag, a, range_op)]
        together = all(is_neighbours(dag, a, range_op) for a in moving)
        if together and (moving or isinstance(statement, loop.TileOp)):
            even = is_evenly_guarded(dag, range_op) and not is_gathered(dag, range_op)
            return range_op if even else None
    return None
