"""Storage of results that the caller has dropped, kept for the results of later calls.

The kernel gives memory page by page, and clears each page: for 64 MB that takes longer than most
programs do. So a large result lies in a block that comes back here when the last array on it is
gone, and the next result of about that size lies there again.

    bounded       at most UOPC_RECYCLE MiB are kept, 256 unless it says so; 0 keeps none. What is
                  beyond it is freed, the block kept longest first.
    never waits   blocks come back from whichever thread drops them, even inside of the garbage
                  collector. Where another thread is busy here a block is freed, and a result gets
                  new memory.
    huge pages    numpy asks for them (madvise) where an allocation is big enough to gain.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from uopc.runtime import environment

Bytes = np.ndarray[Any, np.dtype[Any]]

_BYTE: np.dtype[Any] = np.dtype(np.uint8)

RECYCLED_FROM = 256 << 10
"""Bytes: smaller results are malloc's business, which recycles those itself."""


class Recycler:
    """Blocks of memory that nobody uses, by size."""

    def __init__(self, limit: int | None = None) -> None:
        """`limit` is the most bytes kept; None asks UOPC_RECYCLE, at each result."""
        self._chosen = limit
        self._limit = limit or 0
        self._idle: OrderedDict[int, list[Bytes]] = OrderedDict()
        """By size; the size that something came back of last stands at the end."""
        self._kept = 0
        self._lock = threading.Lock()

    @property
    def kept(self) -> int:
        """Bytes kept now."""
        return self._kept

    def storage(self, size: int) -> Bytes:
        """An array of at least `size` bytes that comes back when the last array on it is gone.

        Raises MemoryError, and `bad-environment` for a wrong UOPC_RECYCLE.
        """
        if self._chosen is None:
            self._limit = environment.recycled_bytes()
        rounded = rounded_size(size)
        found = self._take(rounded)
        if found is None:
            found = np.empty(rounded, _BYTE)
        return np.asarray(Block(self, found))

    def _take(self, size: int) -> Bytes | None:
        if not self._lock.acquire(blocking=False):
            return None
        try:
            blocks = self._idle.get(size)
            if not blocks:
                return None
            self._kept -= size
            return blocks.pop()
        finally:
            self._lock.release()

    def give(self, block: Bytes) -> None:
        """Take a block back, or let it go."""
        size, limit = block.nbytes, self._limit
        if size > limit or not self._lock.acquire(blocking=False):
            return
        try:
            while self._kept + size > limit:
                oldest = next(iter(self._idle))
                if self._idle[oldest]:
                    self._idle[oldest].pop(0)
                    self._kept -= oldest
                else:
                    del self._idle[oldest]
            self._idle.setdefault(size, []).append(block)
            self._idle.move_to_end(size)
            self._kept += size
        finally:
            self._lock.release()

    def clear(self) -> None:
        """Free all that is kept."""
        with self._lock:
            self._idle.clear()
            self._kept = 0

    def after_fork(self) -> None:
        """In a forked child: the thread that was busy here does not exist."""
        self._lock = threading.Lock()


class Block:
    """What an array's memory belongs to: gives it back at the end."""

    __slots__ = ("_memory", "_recycler")

    def __init__(self, recycler: Recycler, memory: Bytes) -> None:
        self._recycler = recycler
        self._memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._memory.__array_interface__

    def __del__(self) -> None:
        self._recycler.give(self._memory)


def rounded_size(size: int) -> int:
    """A size rounded up, by less than an eighth: results of about one size share blocks."""
    step = 1 << max(size.bit_length() - 4, 0)
    return -(-size // step) * step


results = Recycler()
"""Where the results of all programs of this process lie."""

os.register_at_fork(after_in_child=results.after_fork)
