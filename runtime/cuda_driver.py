"""A GPU by the calls of its driver: context, modules, launches, streams, events, copies, graphs.

    device = current_device()
    with device.in_use():
        module = device.load(cubin)
        kernel = module.function("add")
        memory = device.memory.take(4096)
        stream = device.stream()
        stream.launch(kernel, grid=(8, 1, 1), block=(128, 1, 1), arguments=Arguments([n], [memory]))
        stream.synchronize()

A kernel that faults breaks the device's context: all that was made in it is lost. `reset` makes a
new one, and `generation` tells those who keep handles that theirs are of an older one.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Generator, Sequence
from ctypes import c_char_p, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from uopc.dialects.errors import UopcError
from uopc.runtime.cuda_library import Calls, CudaLibraries, cuda_libraries
from uopc.runtime.cuda_memory import DeviceMemory, PinnedMemory

Extents = tuple[int, int, int]

# As the driver numbers them.
CAPTURE_THREAD_LOCAL = 1
STREAM_NON_BLOCKING = 1
DYNAMIC_SHARED_LIMIT = 8
FUNCTION_ATTRIBUTES = {"shared_bytes": 1, "local_bytes": 3, "registers": 4}
DEVICE_ATTRIBUTES = {
    "threads_per_block": 1,
    "static_shared_bytes": 8,
    "multiprocessors": 16,
    "capability_major": 75,
    "capability_minor": 76,
    "shared_bytes": 97,
}
BREAKING = frozenset({700, 702, 709, 710, *range(714, 720)})
"""Statuses after which the context is of no use: faults, timeouts, asserts."""


class CudaError(UopcError):
    """A call that the driver refused, or the fault of an earlier launch that it told of."""

    def __init__(self, call: str, status: int, name: str, text: str) -> None:
        detail = f": {text}" if text else ""
        super().__init__("cuda-error", f"{call} failed with {name} ({status}){detail}")
        self.status = status
        self.name = name
        self.text = text

    @property
    def breaks_context(self) -> bool:
        """Whether nothing more can be done in the context."""
        return self.status in BREAKING


class Arguments:
    """The parameters of a launch: 64-bit integers, then addresses."""

    def __init__(self, integers: Sequence[int], addresses: Sequence[int]) -> None:
        values = [*map(c_int64, integers), *map(c_uint64, addresses)]
        self._values = values
        self.pointer = (c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))


class Function:
    """A kernel of a loaded module."""

    def __init__(self, device: Device, handle: c_void_p, name: str) -> None:
        self._device = device
        self.handle = handle
        self.name = name

    def allow_shared_bytes(self, count: int) -> None:
        """Let launches ask for so much dynamic shared memory; the default is 48 KiB."""
        self._device.call("cuFuncSetAttribute", self.handle, DYNAMIC_SHARED_LIMIT, count)

    def attribute(self, name: str) -> int:
        """One of FUNCTION_ATTRIBUTES."""
        value = c_int()
        code = FUNCTION_ATTRIBUTES[name]
        self._device.call("cuFuncGetAttribute", ctypes.byref(value), code, self.handle)
        return value.value


class Module:
    """Loaded code."""

    def __init__(self, device: Device, cubin: bytes) -> None:
        self._device = device
        self.handle = c_void_p()
        device.call("cuModuleLoadData", ctypes.byref(self.handle), cubin)

    def function(self, name: str) -> Function:
        """A kernel by name. Raises `missing-symbol`."""
        handle = c_void_p()
        with self._missing(name):
            self._device.call(
                "cuModuleGetFunction", ctypes.byref(handle), self.handle, name.encode()
            )
        return Function(self._device, handle, name)

    def address(self, name: str) -> int:
        """Where a `__device__` variable lies. Raises `missing-symbol`."""
        address, size = c_uint64(), c_size_t()
        with self._missing(name):
            self._device.call(
                "cuModuleGetGlobal_v2",
                ctypes.byref(address),
                ctypes.byref(size),
                self.handle,
                name.encode(),
            )
        return address.value

    def unload(self) -> None:
        """Give the code up."""
        self._device.call("cuModuleUnload", self.handle)

    @contextlib.contextmanager
    def _missing(self, name: str) -> Generator[None]:
        try:
            yield
        except CudaError as error:
            if error.name != "CUDA_ERROR_NOT_FOUND":
                raise
            raise UopcError(
                "missing-symbol",
                f"the compiled CUDA code has no {name!r}",
                hint='kernels and constants must be extern "C", with the names of the program',
            ) from None


class Graph:
    """Work that was captured once and can be started again by one call."""

    def __init__(self, device: Device, captured: c_void_p) -> None:
        self._device = device
        self.handle = c_void_p()
        try:
            device.call("cuGraphInstantiateWithFlags", ctypes.byref(self.handle), captured, 0)
        finally:
            device.call("cuGraphDestroy", captured)

    def destroy(self) -> None:
        """Give it up."""
        self._device.call("cuGraphExecDestroy", self.handle)


class Event:
    """A point in a stream's work."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.handle = c_void_p()
        device.call("cuEventCreate", ctypes.byref(self.handle), 0)

    def seconds_since(self, earlier: Event) -> float:
        """The time between two events that were recorded and reached."""
        milliseconds = c_float()
        self._device.call(
            "cuEventElapsedTime", ctypes.byref(milliseconds), earlier.handle, self.handle
        )
        return milliseconds.value / 1e3

    def destroy(self) -> None:
        """Give it up."""
        self._device.call("cuEventDestroy_v2", self.handle)


class Stream:
    """A queue of work that runs in order."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.handle = c_void_p()
        device.call("cuStreamCreate", ctypes.byref(self.handle), STREAM_NON_BLOCKING)

    def launch(
        self,
        function: Function,
        grid: Extents,
        block: Extents,
        arguments: Arguments,
        shared_bytes: int = 0,
    ) -> None:
        """Queue a kernel. The arguments' values are read now."""
        self._device.call(
            "cuLaunchKernel",
            function.handle,
            *grid,
            *block,
            shared_bytes,
            self.handle,
            arguments.pointer,
            None,
        )

    def copy_in(self, to: int, source: int | None, size: int) -> None:
        """Queue a copy from host memory, which is read later if it is pinned."""
        self._device.call("cuMemcpyHtoDAsync_v2", to, source, size, self.handle)

    def copy_out(self, to: int | None, source: int, size: int) -> None:
        """Queue a copy to host memory."""
        self._device.call("cuMemcpyDtoHAsync_v2", to, source, size, self.handle)

    def copy(self, to: int, source: int, size: int) -> None:
        """Queue a copy inside the device."""
        self._device.call("cuMemcpyDtoDAsync_v2", to, source, size, self.handle)

    def fill(self, start: int, byte: int, size: int) -> None:
        """Queue the setting of each byte."""
        self._device.call("cuMemsetD8Async", start, byte, size, self.handle)

    def record(self, event: Event) -> None:
        """Queue the passing of an event."""
        self._device.call("cuEventRecord", event.handle, self.handle)

    def wait_for(self, event: Event) -> None:
        """Hold later work until the event, of any stream, has passed."""
        self._device.call("cuStreamWaitEvent", self.handle, event.handle, 0)

    def synchronize(self) -> None:
        """Wait until all is done. Raises the fault of whatever failed."""
        self._device.call("cuStreamSynchronize", self.handle)

    def capture(self, work: Callable[[], None]) -> Graph:
        """What `work` queues here, as a graph; nothing of it runs yet."""
        self._device.call("cuStreamBeginCapture_v2", self.handle, CAPTURE_THREAD_LOCAL)
        captured = c_void_p()
        try:
            work()
        except BaseException:
            self._device.calls("cuStreamEndCapture", self.handle, ctypes.byref(captured))
            raise
        self._device.call("cuStreamEndCapture", self.handle, ctypes.byref(captured))
        return Graph(self._device, captured)

    def replay(self, graph: Graph) -> None:
        """Queue all the work of a graph."""
        self._device.call("cuGraphLaunch", graph.handle, self.handle)

    def destroy(self) -> None:
        """Give it up."""
        self._device.call("cuStreamDestroy_v2", self.handle)


class Device:
    """The first GPU that the driver names."""

    def __init__(self, libraries: CudaLibraries) -> None:
        self.libraries = libraries
        self.calls: Calls = libraries.driver
        self.generation = 0
        """Of the context; handles of an earlier one are void."""
        self._number = c_int()
        self._context = c_void_p()
        self._users = 0
        self._turn = threading.Condition()
        self._discarded: list[tuple[int, Callable[[], None]]] = []
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(self._number), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._number)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), self._number)
        self.name = name.value.decode("utf-8", "replace")
        self.capability = (self.attribute("capability_major"), self.attribute("capability_minor"))
        self.architecture = f"sm_{self.capability[0]}{self.capability[1]}"
        self.shared_limit = self.attribute("shared_bytes")
        """Bytes that a block may have, if a launch asks for them."""
        self.memory = DeviceMemory(self.call)
        self.pinned = PinnedMemory(self.call)

    def call(self, name: str, *arguments: Any) -> None:
        """A call of the driver. Raises CudaError unless it succeeds."""
        status = self.calls(name, *arguments)
        if status != 0:
            raise self.error(name, status)

    def error(self, call: str, status: int) -> CudaError:
        """What the driver says of a status."""
        name, text = c_char_p(), c_char_p()
        self.calls("cuGetErrorName", status, ctypes.byref(name))
        self.calls("cuGetErrorString", status, ctypes.byref(text))
        return CudaError(
            call,
            status,
            (name.value or b"an unknown error").decode("utf-8", "replace"),
            (text.value or b"").decode("utf-8", "replace"),
        )

    def attribute(self, name: str) -> int:
        """One of DEVICE_ATTRIBUTES."""
        value = c_int()
        code = DEVICE_ATTRIBUTES[name]
        self.call("cuDeviceGetAttribute", ctypes.byref(value), code, self._number)
        return value.value

    def load(self, cubin: bytes) -> Module:
        """Load compiled code."""
        return Module(self, cubin)

    def stream(self) -> Stream:
        """A new stream."""
        return Stream(self)

    # -- whose turn it is ----------------------------------------------------------------------

    @contextlib.contextmanager
    def in_use(self) -> Generator[None]:
        """The context made current for this thread, and safe from a reset by another."""
        with self._turn:
            self._turn.wait_for(lambda: self._users >= 0)
            self._users += 1
        try:
            self.call("cuCtxSetCurrent", self._context)
            if self._discarded:
                self._give_back()
            yield
        finally:
            with self._turn:
                self._users -= 1
                self._turn.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Generator[None]:
        """The same, with no other thread in it."""
        with self._turn:
            self._turn.wait_for(lambda: self._users == 0)
            self._users = -1
        try:
            self.call("cuCtxSetCurrent", self._context)
            yield
        finally:
            with self._turn:
                self._users = 0
                self._turn.notify_all()

    def reset(self) -> None:
        """Give the context up, with all that was made in it, and begin a new one.

        To be called from inside `alone`.
        """
        self.generation += 1
        self._discarded.clear()
        self.memory.forget()
        self.pinned.forget()
        self.call("cuDevicePrimaryCtxReset_v2", self._number)
        self.call("cuDevicePrimaryCtxRelease_v2", self._number)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._number)
        self.call("cuCtxSetCurrent", self._context)

    def discard(self, generation: int, release: Callable[[], None]) -> None:
        """Have `release` called at the next use, if the generation still lasts.

        Safe at any time and in any thread, so that finalizers may call it.
        """
        self._discarded.append((generation, release))

    def _give_back(self) -> None:
        while self._discarded:
            try:
                generation, release = self._discarded.pop()
            except IndexError:  # another thread was quicker
                return
            if generation == self.generation:
                release()


_devices: dict[str, Device] = {}
_lock = threading.Lock()


def current_device() -> Device:
    """The device that UOPC_CUDA asks for. Raises what `cuda_libraries` raises, and CudaError."""
    libraries = cuda_libraries()
    with _lock:
        if (known := _devices.get(libraries.driver.path)) is None:
            known = _devices[libraries.driver.path] = Device(libraries)
        return known
