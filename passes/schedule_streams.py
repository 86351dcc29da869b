"""Results larger than the caches: vectors of them are written past these.

An ordinary store first reads what it overwrites into the cache, and drives out what is there. For
results of `STREAM_FROM_BYTES` or more neither is of use: who reads it next finds it in memory.

    split j = j0 j1:2:unroll j2:16:vector; stream          # plain loops get vectors for it
"""

from __future__ import annotations

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.schedule_text import Command, Mark, Split, Stream, Tile
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
    split_in_lanes,
    stored_bytes,
    stores,
)

STREAM_FROM_BYTES = 1 << 25
"""About what the last cache of a server keeps for two cores."""
_COPIES = 2


def stream_commands(dag: LoopDag, chosen: list[Command], target: CpuTarget) -> list[Command]:
    """What to add to a kernel's schedule for its result to go past the caches; none for small
    ones, and where nothing is a vector."""
    written = stores(dag)
    if not written or any(isinstance(s, loop.UpdateOp) for s in dag.statements):
        return []
    sizes = [stored_bytes(store) for store in written]
    if not all(sizes) or sum(sizes) < STREAM_FROM_BYTES:
        return []
    row = element_type(written[0].value.type)
    assert row is not None
    if any(isinstance(c, Tile) and c.space == "register" for c in chosen):
        return []  # squares of a transpose: so many rows at a time are slower past the caches
    if any(_makes_vectors(command) for command in chosen):
        return [Stream()]
    if chosen or dag.guard_ranges or len(dag.statements) != len(written):
        return []
    along = neighbours_along(dag, written)
    lanes = target.vector_bytes // row.bytes
    if along is None or length(dag, along) < lanes * _COPIES:
        return []
    return [split_in_lanes(along, _COPIES, lanes), Stream()]


def _makes_vectors(command: Command) -> bool:
    if isinstance(command, Mark):
        return command.kind == "vector"
    return isinstance(command, Split) and any(part.kind == "vector" for part in command.parts)


def neighbours_along(dag: LoopDag, written: list[loop.StoreOp]) -> loop.RangeOp | None:
    """The range along which an elementwise kernel writes and reads neighbours of one width."""
    bits = {
        row.bits
        for op in dag.position
        if not isinstance(op, loop.RangeOp | loop.IndexOp)
        for result in op.results
        if (row := element_type(result.type)) is not None and not row.is_bool
    }
    if len(bits) != 1 or not bits <= {32, 64}:
        return None
    if len({dag.free_of_statement[store] for store in written}) != 1:
        return None
    loads = loads_of(dag, [store.value for store in written])
    for along in in_order(dag, dag.free_of_statement[written[0]]):
        together = all(is_neighbours(dag, o, along) or is_fixed(dag, o, along) for o in loads)
        if all(is_neighbours(dag, store, along) for store in written) and together:
            even = is_evenly_guarded(dag, along) and not is_gathered(dag, along)
            return along if even and along.constant_end is not None else None
    return None
