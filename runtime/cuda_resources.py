"""What kernels take of a GPU, and what GPUs have: known without a GPU.

Registers, spills and shared memory come from the report of the assembler (`nvcc -Xptxas -v`);
occupancy follows from them by the rules of NVIDIA's occupancy calculator: registers are given to
a warp in steps of 256, warps to one of four parts of a multiprocessor, shared memory to a block in
steps of 128 bytes after 1 KiB that the system takes (7.5: steps of 256, none taken).
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import KernelCall, LaunchConfig, Plan, Size
from uopc.runtime.cache import no_folder
from uopc.runtime.cuda_compile import run_nvcc
from uopc.runtime.cuda_library import nvcc_program
from uopc.runtime.debug import printable

WARP = 32
STATIC_SHARED_LIMIT = 48 << 10
"""Bytes of `__shared__` arrays that a kernel may declare, on all targets."""
_REGISTERS_OF_A_MULTIPROCESSOR = 65536
_REGISTER_STEP = 256
_PARTS = 4


@dataclass(frozen=True)
class Target:
    """A compute capability: the limits of its multiprocessors and blocks. Sizes in bytes."""

    capability: tuple[int, int]
    shared_per_block: int
    """At most, where a launch asks for more than 48 KiB."""
    shared_per_multiprocessor: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    shared_taken_per_block: int = 1024
    shared_step: int = 128

    @property
    def architecture(self) -> str:
        """`sm_90`."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
TARGETS: tuple[Target, ...] = (
    Target((7, 5), 64 << 10, 64 << 10, 1024, 16, shared_taken_per_block=0, shared_step=256),
    Target((8, 0), 163 << 10, 164 << 10, 2048, 32),
    Target((8, 6), 99 << 10, 100 << 10, 1536, 16),
    Target((8, 7), 163 << 10, 164 << 10, 1536, 16),
    Target((8, 9), 99 << 10, 100 << 10, 1536, 24),
    Target((9, 0), 227 << 10, 228 << 10, 2048, 32),
    Target((10, 0), 227 << 10, 228 << 10, 2048, 32),
)


def find_target(capability: tuple[int, int] | str) -> Target:
    """The target of a capability, `(9, 0)` or `sm_90`. Raises `unknown-target`."""
    for target in TARGETS:
        if capability in (target.capability, target.architecture):
            return target
    name = capability if isinstance(capability, str) else f"sm_{capability[0]}{capability[1]}"
    raise UopcError(
        "unknown-target",
        f"no GPU {printable(name)[:40]!r} is known",
        hint=f"known are {', '.join(target.architecture for target in TARGETS)}",
    )


@dataclass(frozen=True)
class KernelResources:
    """What the assembler reports of one kernel. Sizes in bytes."""

    kernel: str
    registers: int
    """A thread."""
    spill_stores: int
    spill_loads: int
    stack: int
    """Local memory of a thread, spills among it."""
    shared: int
    """Static, a block."""
    barriers: int = 0


def occupancy(
    target: Target, registers: int, threads: int, shared_bytes: int = 0
) -> tuple[int, float]:
    """Blocks that run on one multiprocessor at a time, and the part of its warps they fill.

    `registers` are a thread's, `threads` and `shared_bytes` (static and dynamic) a block's.
    """
    warps = -(-threads // WARP)
    if warps < 1:
        raise ValueError("a block has at least one thread")
    most_warps = target.threads_per_multiprocessor // WARP
    limits = [target.blocks_per_multiprocessor, most_warps // warps]
    if registers:
        a_warp = _rounded(registers * WARP, _REGISTER_STEP)
        in_a_part = _REGISTERS_OF_A_MULTIPROCESSOR // _PARTS // a_warp
        limits.append(in_a_part * _PARTS // warps)
    taken = _rounded(shared_bytes, target.shared_step) + target.shared_taken_per_block
    if taken:
        limits.append(target.shared_per_multiprocessor // taken)
    blocks = min(limits)
    return blocks, blocks * warps / most_warps


def _rounded(value: int, step: int) -> int:
    return -(-value // step) * step


# -- the assembler's report ------------------------------------------------------------------------

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_report(text: str) -> tuple[KernelResources, ...]:
    """The kernels of a report that `ptxas -v` wrote, in its order."""
    found: list[KernelResources] = []
    kernel = ""
    stack = stores = loads = 0
    for line in text.splitlines():
        if match := _ENTRY.search(line):
            kernel, stack, stores, loads = match[1], 0, 0, 0
        elif kernel and (match := _SPILLS.search(line)):
            stack, stores, loads = (int(match[i]) for i in (1, 2, 3))
        elif kernel and (match := _REGISTERS.search(line)):
            barriers, shared = _BARRIERS.search(line), _SHARED.search(line)
            found.append(
                KernelResources(
                    kernel,
                    int(match[1]),
                    stores,
                    loads,
                    stack,
                    int(shared[1]) if shared else 0,
                    int(barriers[1]) if barriers else 0,
                )
            )
            kernel = ""
    return tuple(found)


def assembled_resources(source: str, target: Target) -> tuple[KernelResources, ...]:
    """What the kernels of CUDA `source` take on `target`. Needs nvcc, no GPU.

    Raises `no-nvcc` and `compile-failed`.
    """
    if (nvcc := nvcc_program()) is None:
        raise UopcError(
            "no-nvcc",
            "registers and spills are told by nvcc: looked for it on PATH, in CUDA_HOME and in "
            "/usr/local/cuda",
        )
    arguments = ["-cubin", f"-arch={target.architecture}", "-std=c++17", "-fmad=false"]
    arguments += ["-Xptxas", "-v", "-o", "plan.cubin"]
    with contextlib.ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="uopc-")))
        except OSError as error:
            raise no_folder(error) from error
        status, output = run_nvcc(nvcc, source, arguments, folder)
    if status != 0:
        shown = "\n    ".join(output.splitlines()[:12])
        raise UopcError(
            "compile-failed",
            f"{nvcc} did not compile the CUDA source for {target.architecture} "
            f"(exit status {status})",
            hint=f"the compiler said:\n    {shown}",
        )
    return parse_report(output)


# -- what a plan asks for --------------------------------------------------------------------------


def check_shared_memory(
    plan: Plan,
    launches: Mapping[str, LaunchConfig],
    limit: int,
    architecture: str,
    symbols: Mapping[str, int] | None = None,
) -> None:
    """Refuse kernels that ask for more than `limit` bytes of shared memory a block.

    Sizes that depend on symbols are looked at where `symbols` has their values.
    Raises `too-much-shared-memory`, before anything is compiled.
    """
    for step, call in enumerate(plan.kernels, 1):
        config = launches.get(call.symbol)
        if config is None:
            continue
        static = config.static_shared_bytes
        dynamic = _known_value(config.shared_bytes, symbols) or 0
        if static > STATIC_SHARED_LIMIT:
            what = f"{static} bytes of static shared memory"
            raise _too_much(plan, call, step, what, f"{STATIC_SHARED_LIMIT} on every GPU")
        if static + dynamic > limit:
            what = f"{static + dynamic} bytes of shared memory"
            raise _too_much(plan, call, step, what, f"{limit} on {architecture}")


def _known_value(size: Size, symbols: Mapping[str, int] | None) -> int | None:
    if isinstance(size, int):
        return size
    return None if symbols is None else int(size.evaluate_named(dict(symbols)))


def _too_much(plan: Plan, call: KernelCall, step: int, what: str, limit: str) -> UopcError:
    return UopcError(
        "too-much-shared-memory",
        f"kernel `{printable(call.name)}` (step {step} of {len(plan.kernels)} of plan "
        f"`{printable(plan.name)}`) asks for {what} a block; the limit is {limit}",
        hint="smaller tiles, fewer stages, or a GPU with more",
    )
