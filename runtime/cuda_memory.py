"""Memory of a device and pinned memory of the host, kept for use again.

Allocating takes the driver as long as many kernels run, and waits for all of them. A program's
buffers have the same sizes at every call, so blocks are kept by their exact size and never cut: a
block's end is the buffer's end, and an access past it can be seen for what it is.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable
from ctypes import c_size_t, c_uint64, c_void_p
from typing import Any

from uopc.dialects.errors import UopcError

KEPT_FRACTION = 4
"""Idle blocks may take one part in so many of a device's memory."""
KEPT_PINNED_BYTES = 256 << 20

Call = Callable[..., Any]
OUT_OF_MEMORY = 2


class _Pool:
    """Idle blocks by size, least recently used first."""

    def __init__(self) -> None:
        self._idle: OrderedDict[int, list[int]] = OrderedDict()
        self._lock = threading.Lock()
        self.idle_bytes = 0

    def pop(self, size: int) -> int | None:
        with self._lock:
            blocks = self._idle.get(size)
            if not blocks:
                return None
            self.idle_bytes -= size
            block = blocks.pop()
            if not blocks:
                del self._idle[size]
            return block

    def push(self, size: int, block: int) -> None:
        with self._lock:
            self._idle.setdefault(size, []).append(block)
            self._idle.move_to_end(size)
            self.idle_bytes += size

    def evict(self, limit: int) -> list[int]:
        """Blocks to free, so that no more than `limit` bytes stay idle."""
        evicted: list[int] = []
        with self._lock:
            while self.idle_bytes > limit and self._idle:
                size, blocks = next(iter(self._idle.items()))
                evicted.append(blocks.pop())
                self.idle_bytes -= size
                if not blocks:
                    del self._idle[size]
        return evicted

    def clear(self) -> None:
        with self._lock:
            self._idle.clear()
            self.idle_bytes = 0


class DeviceMemory:
    """Blocks of device memory, by address. All methods need a current context."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._pool = _Pool()
        self.allocations = 0
        """How often the driver was asked."""

    @property
    def idle_bytes(self) -> int:
        """What is kept and not in use."""
        return self._pool.idle_bytes

    def take(self, size: int) -> int:
        """The address of a block of `size` bytes; 0 for none. Raises `out-of-memory`."""
        if size == 0:
            return 0
        if (block := self._pool.pop(size)) is not None:
            return block
        address = c_uint64()
        try:
            self._call("cuMemAlloc_v2", ctypes.byref(address), size)
        except UopcError as error:
            if getattr(error, "status", 0) != OUT_OF_MEMORY:
                raise
            self.free_idle()
            self._call_or_explain(address, size)
        self.allocations += 1
        return address.value

    def _call_or_explain(self, address: c_uint64, size: int) -> None:
        try:
            self._call("cuMemAlloc_v2", ctypes.byref(address), size)
        except UopcError as error:
            if getattr(error, "status", 0) != OUT_OF_MEMORY:
                raise
            free, total = self.free_and_total()
            raise UopcError(
                "out-of-memory",
                f"the device does not give {size} bytes: {free} of its {total} are free",
                hint="smaller sizes, or a device with more memory",
            ) from None

    def give(self, address: int, size: int) -> None:
        """Put a block back; the work that uses it must be done."""
        if size == 0:
            return
        self._pool.push(size, address)
        self._free(self._pool.evict(self.free_and_total()[1] // KEPT_FRACTION))

    def free_idle(self) -> None:
        """Give all idle blocks back to the driver."""
        self._free(self._pool.evict(0))

    def free_and_total(self) -> tuple[int, int]:
        """Bytes of the device."""
        free, total = c_size_t(), c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def _free(self, blocks: list[int]) -> None:
        for block in blocks:
            self._call("cuMemFree_v2", block)

    def forget(self) -> None:
        """After a reset: the blocks are gone."""
        self._pool.clear()


class PinnedMemory:
    """Blocks of host memory that the device copies to and from while the host goes on."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._pool = _Pool()

    def take(self, size: int) -> int:
        """The address of a block; 0 for none."""
        if size == 0:
            return 0
        if (block := self._pool.pop(size)) is not None:
            return block
        start = c_void_p()
        self._call("cuMemHostAlloc", ctypes.byref(start), size, 0)
        return start.value or 0

    def give(self, address: int, size: int) -> None:
        """Put a block back."""
        if size == 0:
            return
        self._pool.push(size, address)
        for block in self._pool.evict(KEPT_PINNED_BYTES):
            self._call("cuMemFreeHost", block)

    def forget(self) -> None:
        """After a reset: the blocks are gone."""
        self._pool.clear()
