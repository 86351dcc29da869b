"""One call's worth of a loaded CUDA plan: its memory, its stream, its launches.

A frame belongs to one set of sizes and serves one call at a time. All its addresses stay, so the
second call through it captures copies and launches in a graph, and later calls replay that.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Buffer, KernelCall, LaunchConfig, Plan, Program, Size
from uopc.runtime import environment
from uopc.runtime.buffers import numpy_dtype
from uopc.runtime.cuda_driver import (
    Arguments,
    CudaError,
    Device,
    Event,
    Extents,
    Function,
    Graph,
)
from uopc.runtime.cuda_resources import STATIC_SHARED_LIMIT, check_shared_memory
from uopc.runtime.debug import KernelTime, printable

STAGED_BYTES = 4 << 20
"""Inputs and outputs of up to so many bytes together go through pinned memory, inside the graph.
Larger ones go straight from and to the caller's arrays, which saves a copy by the host."""
ALIGNMENT = 64
MOST = (1 << 31) - 1
NAN_BYTE = 0xFF
"""Repeated, it is a NaN of every float type."""


@dataclass(frozen=True)
class _Step:
    number: int
    call: KernelCall
    function: Function
    grid: Extents
    block: Extents
    shared_bytes: int
    arguments: Arguments
    repeatable: bool
    """It reads none of what it writes, so that a second run changes nothing."""


@dataclass(frozen=True)
class _Place:
    """Where one input or output lies."""

    address: int
    size: int
    staged: int
    """Its address in pinned memory, if that is used."""


class StepError(UopcError):
    """That a step of a plan failed, and how."""

    def __init__(
        self, plan: Plan, number: int, did: str, error: CudaError, shape: str = ""
    ) -> None:
        call = plan.kernels[number - 1]
        super().__init__(
            "kernel-failed",
            f"kernel `{printable(call.name)}` (step {number} of {len(plan.kernels)} of plan "
            f"`{printable(plan.name)}`) {did} with {error.name}: {error.text}"
            + (f" ({shape})" if shape else ""),
            hint=f"compiled with CudaOptions(check=True) and run by {environment.CUDA.name}="
            "emulator, it names block, thread and line, and races too",
        )
        self.breaks_context = error.breaks_context


class LoadedCode:
    """A plan's kernels in one context of the device."""

    def __init__(self, device: Device, cubin: bytes, kernels: Mapping[str, str]) -> None:
        """`kernels`: the symbols with their names in the source. Raises `missing-symbol`."""
        self.device = device
        self.generation = device.generation
        self.module = device.load(cubin)
        self.functions: dict[str, Function] = {
            symbol: self.module.function(name) for symbol, name in kernels.items()
        }


class Frame:
    """See above. All methods need the device in use."""

    def __init__(
        self, code: LoadedCode, program: Program, plan: Plan, sizes: Sequence[int], check: bool
    ) -> None:
        """Take memory and make the launches ready; `check` as in CudaOptions.

        Raises `too-much-shared-memory`, `out-of-memory`, `missing-symbol`.
        """
        self.device: Device = code.device
        self._plan = plan
        self._check = check
        self._symbols = dict(zip((symbol.name for symbol in plan.symbols), sizes, strict=True))
        device = self.device
        check_shared_memory(
            plan, program.launches, device.shared_limit, device.architecture, self._symbols
        )
        self._owned: list[tuple[int, int]] = []
        self._pinned: list[tuple[int, int]] = []
        self._poisoned: list[tuple[int, int]] = []
        self._graph: Graph | None = None
        self._runs = 0
        self._stream = device.stream()
        try:
            self._prepare(code, program)
        except BaseException:
            self.release()
            raise

    def _prepare(self, code: LoadedCode, program: Program) -> None:
        plan, names = self._plan, program.names
        self._addresses: dict[str, int] = {}
        self._take_temporaries()
        self._inputs, self._outputs = self._take_arguments()
        for buffer in plan.constants:
            if any(buffer.ref in call.refs for call in plan.kernels):
                name = names.get(buffer.ref, buffer.ref)
                self._addresses[buffer.ref] = code.module.address(name)
        self._aliases = {buffer.ref: buffer.alias for buffer in plan.outputs if buffer.alias}
        self._steps: list[_Step] = []
        for number, call in enumerate(plan.kernels, 1):
            config = program.launches[call.symbol]
            step = self._step(number, call, code.functions[call.symbol], config)
            if step is not None:
                self._steps.append(step)

    # -- memory --------------------------------------------------------------------------------

    def _bytes(self, buffer: Buffer) -> int:
        shape = (self._value(size) for size in buffer.shape)
        return math.prod(shape) * numpy_dtype(buffer.dtype).itemsize

    def _value(self, size: Size) -> int:
        return size if isinstance(size, int) else int(size.evaluate_named(self._symbols))

    def _take(self, size: int) -> int:
        address = self.device.memory.take(size)
        self._owned.append((address, size))
        return address

    def _take_temporaries(self) -> None:
        plan = self._plan
        if self._check:
            # Each apart, so that an access past one's end does not fall into the next.
            for buffer in plan.temps:
                size = self._bytes(buffer)
                self._addresses[buffer.ref] = self._take(size)
                self._poisoned.append((self._addresses[buffer.ref], size))
            return
        workspace = self._take(plan.workspace_bytes)
        for buffer in plan.temps:
            if buffer.offset < 0:
                raise UopcError(
                    "missing-symbol", f"temporary {buffer.ref} has no place in a workspace"
                )
            self._addresses[buffer.ref] = workspace + buffer.offset

    def _take_arguments(self) -> tuple[list[_Place], list[_Place]]:
        """The places of the inputs, and of the outputs that are no alias."""
        written = [buffer for buffer in self._plan.outputs if not buffer.alias]
        buffers = [*self._plan.inputs, *written]
        sizes = [self._bytes(buffer) for buffer in buffers]
        offsets = [0]
        for size in sizes:
            offsets.append(offsets[-1] + -(-size // ALIGNMENT) * ALIGNMENT)
        staging = 0
        if 0 < offsets[-1] <= STAGED_BYTES:
            staging = self.device.pinned.take(offsets[-1])
            self._pinned.append((staging, offsets[-1]))
        places: list[_Place] = []
        for buffer, size, offset in zip(buffers, sizes, offsets, strict=False):
            address = self._addresses[buffer.ref] = self._take(size)
            places.append(_Place(address, size, staging + offset if staging else 0))
        count = len(self._plan.inputs)
        if self._check:
            self._poisoned += [(place.address, place.size) for place in places[count:]]
        return places[:count], places[count:]

    def release(self) -> None:
        """Give all memory and handles back."""
        if self._graph is not None:
            self._graph.destroy()
        self._stream.destroy()
        for address, size in self._owned:
            self.device.memory.give(address, size)
        for address, size in self._pinned:
            self.device.pinned.give(address, size)

    # -- launches ------------------------------------------------------------------------------

    def _owner(self, ref: str) -> str:
        while ref in self._aliases:
            ref = self._aliases[ref]
        return ref

    def _step(
        self, number: int, call: KernelCall, function: Function, config: LaunchConfig
    ) -> _Step | None:
        """The launch, or None where there is nothing to do."""
        grid, block = self._extents(config.grid), self._extents(config.block)
        shared_bytes = self._value(config.shared_bytes)
        for value in (*grid, *block, shared_bytes):
            # The driver takes 32 bits and would not see what is beyond them.
            if not 0 <= value <= MOST:
                raise UopcError(
                    "bad-launch",
                    f"kernel `{printable(call.name)}` (step {number} of {len(self._plan.kernels)} "
                    f"of plan `{printable(self._plan.name)}`) would be launched with grid "
                    f"{list(grid)}, block {list(block)}, {shared_bytes} bytes of shared memory; "
                    f"each may be 0 to {MOST}",
                )
        if 0 in grid:
            return None
        if shared_bytes + config.static_shared_bytes > STATIC_SHARED_LIMIT:
            function.allow_shared_bytes(shared_bytes)
        owners = [self._owner(ref) for ref in call.refs]
        reads, writes = owners[: len(owners) - call.writes], owners[len(owners) - call.writes :]
        arguments = Arguments(
            [self._symbols[name] for name in call.symbols],
            [self._addresses[owner] for owner in owners],
        )
        repeatable = not set(reads) & set(writes)
        return _Step(number, call, function, grid, block, shared_bytes, arguments, repeatable)

    def _extents(self, extents: tuple[Size, Size, Size]) -> Extents:
        x, y, z = (self._value(size) for size in extents)
        return x, y, z

    def _launch(self, step: _Step) -> None:
        try:
            self._stream.launch(
                step.function, step.grid, step.block, step.arguments, step.shared_bytes
            )
        except CudaError as error:
            if error.breaks_context:
                raise
            raise StepError(
                self._plan, step.number, "cannot be launched", error, self._shape_text(step)
            ) from None

    def _shape_text(self, step: _Step) -> str:
        grid, block = ("x".join(map(str, extents)) for extents in (step.grid, step.block))
        return f"grid {grid}, block {block}, {step.shared_bytes} bytes of dynamic shared memory"

    # -- a call --------------------------------------------------------------------------------

    def run(
        self, inputs: Sequence[int | None], outputs: Sequence[int | None], graphs: bool
    ) -> None:
        """Run the plan on host addresses of inputs and outputs, to the end."""
        self._fill_staging(inputs)
        self._runs += 1
        if self._graph is None and self._runs == 2 and graphs and self._can_capture():
            self._graph = self._stream.capture(lambda: self._queue_staged(self._launch_all))
        if self._graph is not None:
            self._copy_in_unstaged(inputs)
            self._stream.replay(self._graph)
        else:
            self._copy_in_unstaged(inputs)
            self._queue_staged(self._launch_all)
        self._copy_out_unstaged(outputs)
        self._stream.synchronize()
        self._empty_staging(outputs)

    def run_stepwise(
        self, inputs: Sequence[int | None], outputs: Sequence[int | None], again: bool = False
    ) -> list[KernelTime]:
        """The same kernel by kernel, each waited for and timed.

        Raises `kernel-failed` with the step at fault. With `again` each kernel runs a second time
        right after the first, where that is harmless.
        """
        times: list[KernelTime] = []
        self._fill_staging(inputs)
        self._copy_in_unstaged(inputs)
        self._queue_staged(lambda: times.extend(self._timed(step, again) for step in self._steps))
        self._copy_out_unstaged(outputs)
        self._stream.synchronize()
        self._empty_staging(outputs)
        return times

    def _can_capture(self) -> bool:
        return self.device.libraries.graphs and bool(self._steps)

    def _launch_all(self) -> None:
        for step in self._steps:
            self._launch(step)

    def _timed(self, step: _Step, again: bool) -> KernelTime:
        runs = 2 if again and step.repeatable else 1
        seconds: list[float] = []
        events = [Event(self.device), Event(self.device)]
        try:
            for _ in range(runs):
                self._stream.record(events[0])
                self._launch(step)
                self._stream.record(events[1])
                self._stream.synchronize()
                seconds.append(events[1].seconds_since(events[0]))
        except CudaError as error:
            raise StepError(self._plan, step.number, "failed", error) from None
        for event in events:
            event.destroy()
        second = seconds[1] if runs == 2 else None
        return KernelTime(step.call.name, step.call.flops, seconds[0], second)

    def _queue_staged(self, launch: Callable[[], None]) -> None:
        """What may be captured: copies from and to pinned memory, and the launches."""
        for place in self._inputs:
            if place.staged and place.size:
                self._stream.copy_in(place.address, place.staged, place.size)
        for address, size in self._poisoned:
            if size:
                self._stream.fill(address, NAN_BYTE, size)
        launch()
        for place in self._outputs:
            if place.staged and place.size:
                self._stream.copy_out(place.staged, place.address, place.size)

    def _fill_staging(self, inputs: Sequence[int | None]) -> None:
        for place, source in zip(self._inputs, inputs, strict=True):
            if place.staged and place.size:
                ctypes.memmove(place.staged, source or 0, place.size)

    def _empty_staging(self, outputs: Sequence[int | None]) -> None:
        for place, target in zip(self._outputs, outputs, strict=True):
            if place.staged and place.size:
                ctypes.memmove(target or 0, place.staged, place.size)

    def _copy_in_unstaged(self, inputs: Sequence[int | None]) -> None:
        for place, source in zip(self._inputs, inputs, strict=True):
            if not place.staged and place.size:
                self._stream.copy_in(place.address, source, place.size)

    def _copy_out_unstaged(self, outputs: Sequence[int | None]) -> None:
        for place, target in zip(self._outputs, outputs, strict=True):
            if not place.staged and place.size:
                self._stream.copy_out(target, place.address, place.size)
