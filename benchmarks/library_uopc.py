"""uopc as a library to be measured: the functions of `programs.py`, and its kernels one by one."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import programs
from works import GPT, Array, Work

import uopc
from uopc import Tensor
from uopc.lowering.plan import Plan, Program
from uopc.runtime import executable
from uopc.runtime.debug import KernelTime
from uopc.runtime.library import Library
from uopc.runtime.stepper import KernelStepper

LEAST_RUNS = 3


class Uopc:
    """uopc as a library to be measured."""

    version = uopc.__version__

    def function(self, work: Work) -> tuple[Callable[[], Any], Callable[[Any], Array]] | None:
        """See `worker.Library`."""
        element = "bf16" if work.element == "bf16" else None
        xs = [Tensor(x, dtype=element).realize() for x in work.inputs()]
        jitted = uopc.jit(programs.FUNCTIONS[work.kind])
        for _ in range(2):  # the second call verifies the first one's trace
            jitted(*xs)

        def value(result: Tensor) -> Array:
            return result.cast("f32").numpy() if result.is_floating_point() else result.numpy()

        return lambda: jitted(*xs), value

    def training(self, gpt: GPT) -> Callable[[], float] | None:
        """See `worker.Library`."""
        tokens, targets = gpt.data()
        return programs.gpt_training(gpt.parameters(), tokens, targets, gpt)

    def decoding(self, gpt: GPT) -> Callable[[int, int], Array] | None:
        """See `worker.Library`."""
        return programs.gpt_decoding(gpt.parameters(), gpt)


class _Recorder(KernelStepper):
    """Keeps what each kernel of a run took."""

    kept: list[tuple[Plan, list[KernelTime]]] = []

    def __init__(self, program: Program, plan: Plan, library: Library) -> None:
        super().__init__(program, plan, library)
        self.plan = plan

    def run(
        self, sizes: Sequence[int], pointers: Sequence[int | None], again: bool
    ) -> list[KernelTime]:
        times = super().run(sizes, pointers, again)
        self.kept.append((self.plan, times))
        return times


@contextlib.contextmanager
def _recording() -> Generator[list[tuple[Plan, list[KernelTime]]]]:
    """Inside, calls run kernel by kernel, and each run is appended to what this gives."""
    plain: Any = executable.KernelStepper
    executable.KernelStepper = _Recorder
    _Recorder.kept = []
    try:
        with uopc.debug(3), contextlib.redirect_stderr(io.StringIO()):
            yield _Recorder.kept
    finally:
        executable.KernelStepper = plain


def kernels(call: Callable[[], Any], seconds: float) -> list[dict[str, Any]]:
    """The kernels of a call's last plan: name, what it computes, the compiler's estimates of
    operations and bytes, and the shortest seconds of runs for so long, at least three."""
    with _recording() as kept:
        call()  # compiles anew, with kernels that can be called
        end, count = time.perf_counter() + seconds, 0
        while count < LEAST_RUNS or time.perf_counter() < end:
            call()
            count += 1
    if not kept:
        return []
    plan = kept[-1][0]
    found: list[dict[str, Any]] = []
    for number, kernel in enumerate(plan.kernels):
        times = [times[number] for ran, times in kept if ran is plan]
        seconds = min(min(t.seconds, t.again or t.seconds) for t in times)
        found.append({"kernel": kernel.name, "computes": kernel.doc, "seconds": seconds,
                      "operations": kernel.flops, "bytes": kernel.bytes})  # fmt: skip
    return found
