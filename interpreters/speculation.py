"""Whether the iterations of a loop may run together, found out while they do.

The test is that of Rauchwerger and Padua ("The LRPD test", PLDI 1995): for each element that the
loop touches it is noted which iteration wrote it and which read it. Where one iteration writes
what another reads or writes, the loop's order matters: the stores are undone and the iterations
run one by one. Buffers that a loop only reads, or writes at one place only, need no notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from uopc.dialects.rounding import Array
from uopc.interpreters.lanes import Context, Lanes
from uopc.interpreters.memory import Buffer, MemRef

_NOBODY, _SEVERAL = -1, -2


class Conflict(Exception):
    """Iterations of a loop on trial touch one element, and one of them writes it."""

    def __init__(self, speculation: Speculation) -> None:
        super().__init__()
        self.speculation = speculation
        self.op: Operation | None = None
        """The second access."""


class Speculation:
    """One run of a loop's iterations together."""

    def __init__(self, tracked: Iterable[Buffer], written: Iterable[MemRef], unit: int) -> None:
        self.unit = unit
        self.lanes: Lanes | None = None
        self.tracked = {buffer: self._notes(buffer) for buffer in tracked}
        kept = [m.data for m in written if self.tracked and m.data.flags.writeable]
        self._saved = [(data, data.copy()) for data in kept]

    def _notes(self, buffer: Buffer) -> tuple[Array, Array]:
        """For each `unit` bytes who wrote and who read them."""
        size = buffer.size // self.unit + 1
        return np.full(size, _NOBODY, np.int32), np.full(size, _NOBODY, np.int32)

    def start(self, lanes: Lanes) -> None:
        """Begin with these iterations; what earlier ones did is in order."""
        self.lanes = lanes
        for notes in self.tracked.values():
            for each in notes:
                each.fill(_NOBODY)

    def undo(self) -> None:
        """Set all memory back to what it was when the loop began."""
        for data, saved in self._saved:
            data[...] = saved

    def _of(
        self, memref: MemRef, place: Any, context: Context, active: Array | None
    ) -> tuple[Array, Array]:
        """The units that an access touches and the iteration of each."""
        item = memref.data.itemsize
        assert context is not None and self.lanes is not None
        if context is self.lanes:
            lanes = np.arange(context.count, dtype=np.int32)
        else:
            lanes = context.map_to(self.lanes).astype(np.int32)
        places = np.asarray(place)
        if places.ndim == 0:
            places = np.broadcast_to(places, lanes.shape)
        lanes = np.broadcast_to(lanes.reshape(-1, *[1] * (places.ndim - 1)), places.shape)
        if active is not None:
            mask = np.broadcast_to(active, places.shape)
            places, lanes = places[mask], lanes[mask]
        starts = (memref.shift + places * item) // self.unit
        units = starts[..., np.newaxis] + np.arange(max(1, item // self.unit))
        lanes = np.broadcast_to(lanes[..., np.newaxis], units.shape)
        return units.reshape(-1), lanes.reshape(-1)

    def read(
        self, memref: MemRef, place: Any, context: Context, active: Array | None = None
    ) -> None:
        """Note a load, of the places where `active` is set. Raises Conflict."""
        writers, readers = self.tracked[memref.buffer]
        units, lanes = self._of(memref, place, context, active)
        self._check(writers[units], lanes)
        before = readers[units]
        readers[units] = np.where((before == _NOBODY) | (before == lanes), lanes, _SEVERAL)
        shared = (readers[units] != lanes) | ((before != _NOBODY) & (before != lanes))
        readers[units[shared]] = _SEVERAL

    def write(
        self, memref: MemRef, place: Any, context: Context, active: Array | None = None
    ) -> None:
        """Note a store, to the places where `active` is set. Raises Conflict."""
        writers, readers = self.tracked[memref.buffer]
        units, lanes = self._of(memref, place, context, active)
        self._check(writers[units], lanes)
        self._check(readers[units], lanes)
        writers[units] = lanes
        if (writers[units] != lanes).any():
            raise Conflict(self)

    def _check(self, owners: Array, lanes: Array) -> None:
        if ((owners != _NOBODY) & (owners != lanes)).any():
            raise Conflict(self)
