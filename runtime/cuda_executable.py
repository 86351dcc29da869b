"""A compiled CUDA plan that can be called on numpy arrays, as runtime/executable.py for C.

    exe = load_cuda_program(program)
    result = exe(a, b)

It takes a Program whose language is `cuda`, and which keeps this contract:

* The source is one translation unit of CUDA C++17 that nvcc and NVRTC compile; it includes no more
  than cuda_fp16.h, cuda_bf16.h, cuda_pipeline.h and mma.h. INFINITY, NAN and <stdint.h> are not
  there under NVRTC.
* A kernel of symbol `s` is `extern "C" __global__ void NAME(...)` with NAME = names.get(s, s). Its
  parameters are one `long long` for each of KernelCall.symbols, then one pointer for each of
  KernelCall.refs, in their order. Buffers are contiguous; each starts on 16 bytes at least, and
  inside the workspace on what its offset is a multiple of.
* `launches[s]` says how it is launched. Extents may depend on the plan's symbols; a launch with an
  empty grid is left out. Above 48 KiB of dynamic and static shared memory together the limit is
  raised; what the GPU does not have is refused before anything is compiled. Dynamic shared memory
  is declared inside the kernel: `extern __shared__ __align__(16) float tile[];`.
* A constant of ref `c` that a kernel takes is a variable of that name, in a block so that the
  linkage is C's and the variable is not internal:
  `extern "C" { __device__ float const0[3] = {1.0f, 2.0f, 3.0f}; }`.
* Each of the plan's kernels sees the writes of those before it. No kernel reads what the same
  launch writes elsewhere.

What only a device can compile (inline PTX) needs a twin for the emulator under
`#ifdef UOPC_EMULATOR`. A barrier must be reached by every thread of the block, at one line.

Calls from several threads run at the same time, each in a frame of its own. When a kernel faults,
the device is reset and the plan is run once more, kernel by kernel, so that the error names the
step; what others keep on the device is loaded anew at their next call.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Program
from uopc.runtime import debug as debug_output
from uopc.runtime.buffers import Array, Shape, empty_aligned, numpy_dtype
from uopc.runtime.cuda_compile import CudaOptions, compile_cuda
from uopc.runtime.cuda_driver import CudaError, Device, current_device
from uopc.runtime.cuda_frame import Frame, LoadedCode, StepError
from uopc.runtime.cuda_resources import check_shared_memory
from uopc.runtime.executable import PlanExecutable
from uopc.runtime.shapes import Binding

IDLE_FRAMES = 16
"""Frames kept for calls to come; one more, and the one that waited longest goes."""


class _Loaded(LoadedCode):
    """The plan's code in one context, and the frames that are not in use."""

    def __init__(self, device: Device, cubin: bytes, kernels: dict[str, str]) -> None:
        super().__init__(device, cubin, kernels)
        self.idle: list[tuple[tuple[int, ...], Frame]] = []
        self._lock = threading.Lock()

    def take(self, sizes: tuple[int, ...]) -> Frame | None:
        with self._lock:
            for position, (known, frame) in enumerate(self.idle):
                if known == sizes:
                    del self.idle[position]
                    return frame
        return None

    def give(self, sizes: tuple[int, ...], frame: Frame) -> None:
        with self._lock:
            self.idle.append((sizes, frame))
            dropped = self.idle.pop(0)[1] if len(self.idle) > IDLE_FRAMES else None
        if dropped is not None:
            dropped.release()

    def release(self) -> None:
        for _, frame in self.idle:
            frame.release()
        self.idle.clear()
        self.module.unload()


class CudaExecutable(PlanExecutable):
    """One plan of a CUDA program, compiled for the device that UOPC_CUDA asks for, and loaded."""

    def __init__(
        self,
        program: Program,
        plan_name: str | None = None,
        *,
        options: CudaOptions | None = None,
        debug: int | None = None,
    ) -> None:
        """Compile `program` unless the cache has it, and load it.

        Raises `wrong-language`, `unknown-plan`, `no-cuda`, `no-cuda-compiler`, `compile-failed`,
        `too-much-shared-memory`, `missing-launch` and `missing-symbol`.
        """
        start = time.perf_counter()
        if program.language != "cuda":
            raise UopcError(
                "wrong-language",
                f"the program is in {program.language}; this runtime takes cuda",
            )
        super().__init__(program, plan_name, debug)
        self.options: CudaOptions = options or CudaOptions()
        for call in self.plan.kernels:
            if call.symbol not in program.launches:
                raise UopcError(
                    "missing-launch", f"the program does not say how {call.symbol!r} is launched"
                )
        self.device: Device = current_device()
        check_shared_memory(
            self.plan, program.launches, self.device.shared_limit, self.device.architecture
        )
        self.cubin: bytes = compile_cuda(
            program.source, self.device.architecture, self.device.libraries, self.options
        )
        self._lock = threading.Lock()
        self._finalizer: weakref.finalize[..., CudaExecutable] | None = None
        self._sources_shown = False
        with self.device.in_use():
            self._loaded = self._load()
        self.schedule_seconds = time.perf_counter() - start

    def _load(self) -> _Loaded:
        symbols = dict.fromkeys(call.symbol for call in self.plan.kernels)
        names = {symbol: self.program.names.get(symbol, symbol) for symbol in symbols}
        loaded = _Loaded(self.device, self.cubin, names)
        if self._finalizer is not None:
            self._finalizer.detach()
        self._finalizer = weakref.finalize(
            self, self.device.discard, loaded.generation, loaded.release
        )
        # At the process's end the driver gives all back by itself.
        self._finalizer.atexit = False
        return loaded

    def _current(self) -> _Loaded:
        """What is loaded, loaded anew after a reset of the device."""
        with self._lock:
            if self._loaded.generation != self.device.generation:
                self._loaded = self._load()
            return self._loaded

    def _frame(self, loaded: _Loaded, sizes: tuple[int, ...]) -> Frame:
        known = loaded.take(sizes)
        return known or Frame(loaded, self.program, self.plan, sizes, self.options.check)

    # -- running -----------------------------------------------------------------------------------

    def _launch(self, binding: Binding, pointers: list[int | None], start: float) -> None:
        count = len(self.plan.inputs)
        inputs, outputs = pointers[:count], pointers[count:]
        began = time.perf_counter() if self.debug else 0.0
        kernels: list[debug_output.KernelTime] = []
        try:
            with self.device.in_use():
                loaded = self._current()
                frame = self._frame(loaded, binding.sizes)
                kernels = self._run(frame, inputs, outputs)
                loaded.give(binding.sizes, frame)
        except (CudaError, StepError) as error:
            if not error.breaks_context:
                raise
            raise self._located(error, binding, inputs, outputs) from None
        if self.debug:
            self._say_run(self._shown_sources(), kernels, start, began)

    def _run(
        self, frame: Frame, inputs: Sequence[int | None], outputs: Sequence[int | None]
    ) -> list[debug_output.KernelTime]:
        try:
            if self.debug >= 2:
                return frame.run_stepwise(inputs, outputs, again=self.debug >= 3)
            frame.run(inputs, outputs, self.options.graphs)
            return []
        except (CudaError, StepError) as error:
            # In a broken context there is nothing left to give back.
            if not error.breaks_context:
                frame.release()
            raise

    def _located(
        self,
        error: CudaError | StepError,
        binding: Binding,
        inputs: Sequence[int | None],
        outputs: Sequence[int | None],
    ) -> UopcError:
        """The error of a broken context with the step that broke it; the device works again."""
        with self.device.alone():
            self.device.reset()
            if not isinstance(error, CudaError):
                return error
            try:
                self._frame(self._current(), binding.sizes).run_stepwise(inputs, outputs)
            except StepError as found:
                self.device.reset()
                return found
            return UopcError(
                "kernel-failed",
                f"plan `{debug_output.printable(self.plan.name)}` failed with {error.name}: "
                f"{error.text}; run kernel by kernel it did not fail again",
                hint="a race, maybe: CudaOptions(check=True) on the emulator reports races",
            )

    def _shown_sources(self) -> list[str]:
        if self.debug < 4 or self._sources_shown:
            return []
        self._sources_shown = True
        names = dict.fromkeys(call.symbol for call in self.plan.kernels)
        return [
            debug_output.kernel_source(self.source, self.program.names.get(name, name))
            for name in names
        ]

    def _constant(self, index: int, shape: Shape) -> Array:
        buffer = self.plan.constants[index]
        result = empty_aligned(shape, numpy_dtype(buffer.dtype))
        with self.device.in_use():
            address = self._current().module.address(self.program.names.get(buffer.ref, buffer.ref))
            stream = self.device.stream()
            stream.copy_out(result.ctypes.data, address, result.nbytes)
            stream.synchronize()
            stream.destroy()
        return result


def load_cuda_program(
    program: Program,
    plan_name: str | None = None,
    *,
    options: CudaOptions | None = None,
    debug: int | None = None,
) -> CudaExecutable:
    """Compile and load one plan of `program`; see CudaExecutable. Safe from any thread."""
    return CudaExecutable(program, plan_name, options=options, debug=debug)
