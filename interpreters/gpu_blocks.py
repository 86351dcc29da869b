"""The blocks of a GPU that run together: each of their threads is a lane.

All threads take each step together, so a barrier has nothing to wait for; it ends a phase. Within a
phase no thread may touch an element of shared memory that another one writes: on a GPU the outcome
would be open, and here it is an error (`Races`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import gpu
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from uopc.dialects.gpu_extensions import ShuffleOp
from uopc.dialects.rounding import Array
from uopc.interpreters.lanes import Context, Lanes
from uopc.interpreters.memory import Buffer, MemRef, allocate
from uopc.interpreters.speculation import Speculation

Extents = tuple[int, int, int]
WARP = 32

COLLECTIVE = (gpu.BarrierOp, ShuffleOp)
"""Ops that threads come to together: no loop around them runs its iterations at once."""
LAUNCHES = (gpu.LaunchOp, gpu.LaunchFuncOp)


class Races(Speculation):
    """Which thread touched what of the shared memory since the last barrier."""

    def __init__(self, lanes: Lanes, threads: int, unit: int) -> None:
        super().__init__([], [], unit)
        self.lanes = lanes
        self.threads = threads

    def watch(self, buffer: Buffer) -> None:
        """From now on mind this memory, of which each block has an equal part."""
        self.tracked[buffer] = self._notes(buffer)

    def new_phase(self, blocks: Array | None) -> None:
        """The threads of these blocks have met; None for all blocks."""
        assert self.lanes is not None
        if blocks is None:
            self.start(self.lanes)
            return
        count = self.lanes.count // self.threads
        for notes in self.tracked.values():
            for each in notes:
                part = (len(each) - 1) // count
                each[: part * count].reshape(count, part)[blocks] = -1


class Blocks:
    """Some blocks of a launch, from number `first` on."""

    def __init__(self, grid: Extents, block: Extents, first: int, count: int, unit: int) -> None:
        self.grid = grid
        self.block = block
        self.threads = int(np.prod(block))
        self.count = count
        self.lanes = Lanes(None, np.zeros(count * self.threads, np.int64))
        self.numbers = np.arange(count * self.threads)
        """For each lane its number among all threads here."""
        self.first = first
        self.races = Races(self.lanes, self.threads, unit)

    def threads_of(self, context: Context) -> Array:
        """For each lane of a context, the number of its thread."""
        if context is self.lanes:
            return self.numbers
        assert context is not None, "a kernel runs in lanes"
        return context.map_to(self.lanes)

    def thread(self, axis: int) -> Array | int:
        """The index of each thread in its block along x, y or z."""
        inner = int(np.prod(self.block[:axis]))
        return (
            self.numbers % self.threads // inner % self.block[axis] if self.block[axis] > 1 else 0
        )

    def thread_number(self) -> Array:
        """The number of each thread in its block, x running fastest."""
        return self.numbers % self.threads

    def block_index(self, axis: int) -> Array | int:
        """The index of each thread's block along x, y or z."""
        inner, extent = int(np.prod(self.grid[:axis])), self.grid[axis]
        if self.count == 1 or extent == 1:
            return self.first // inner % extent
        return (self.first + self.numbers // self.threads) // inner % extent

    def shared(
        self, type_: MemRefType[Attribute], sizes: Sequence[int], context: Context
    ) -> tuple[MemRef, Context]:
        """Memory that the threads of a block share; and its context."""
        made = allocate(type_, sizes, self.count)
        self.races.watch(made.buffer)
        if self.count == 1:
            return _at(made, 0), None
        return _at(made, made.offset[self.threads_of(context) // self.threads]), context

    def whole(self, context: Context, size: int) -> tuple[Array, int, int] | None:
        """Where a context has a part of a group of `size` threads of a block: the counts of the
        groups, the number of the first that is not whole, and its size; None if all are whole."""
        threads = self.threads_of(context)
        groups = -(-self.threads // size)
        group = threads // self.threads * groups + threads % self.threads // size
        counts = np.bincount(group, minlength=self.count * groups)
        sizes = np.full((self.count, groups), size)
        sizes[:, -1] = self.threads - (groups - 1) * size
        wrong = (counts != 0) & (counts != sizes.reshape(-1))
        if not wrong.any():
            return None
        first = int(np.flatnonzero(wrong)[0])
        return counts, first, int(sizes.reshape(-1)[first])


def _at(made: MemRef, offset: Any) -> MemRef:
    return MemRef(made.buffer, made.data, made.shift, offset, made.shape, made.strides)
