"""What a compiled program is, in plain data: the description that the runtime works from.

A Plan is read off a `ukernel.plan` op and holds no IR and no tensor. It names every buffer a
program touches, in the order of the C entry's parameters:

    sizes (int64_t, one a symbol), inputs, outputs, workspace

Buffers are referred to by short names: `in0`, `const0`, `tmp0`, `out0`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


class SizeExpr(Protocol):
    """A size that depends on symbols: a linear form, product or quotient of them."""

    def evaluate_named(self, symbols: dict[str, int], /) -> int:
        """The value of the size when each symbol has the given value."""
        ...


Size = int | SizeExpr
"""An extent: a plain number, or an expression over the plan's symbols."""


@dataclass(frozen=True)
class Symbol:
    """A size known at the call: `lower <= value <= upper`."""

    name: str
    lower: int
    upper: int


@dataclass(frozen=True)
class Buffer:
    """One array of a plan, contiguous in row-major order."""

    ref: str
    """`in0`, `const0`, `tmp0` or `out0`."""
    name: str
    """The name the program's author gave it, or the ref."""
    dtype: str
    """As the IR spells element types: f64 f32 f16 bf16 i1 i8..i64 ui8..ui64."""
    shape: tuple[Size, ...]
    offset: int = -1
    """Byte offset in the workspace, for temporaries; -1 elsewhere."""
    alias: str = ""
    """For an output that is an input or another output: that buffer's ref."""
    changed: bool = False
    """Of an input: whether the program writes over it."""


@dataclass(frozen=True)
class KernelCall:
    """One launch: which kernel, on which buffers, at which cost."""

    name: str
    """`r_4_8`, `e_3`: r for a body with a reduction, then the output's shape."""
    symbol: str
    """The kernel's symbol in the IR; launches of equal kernels share it."""
    refs: tuple[str, ...]
    """The buffers in the order of the kernel's parameters, outputs last."""
    writes: int
    """How many of `refs`, counted from the end, are written."""
    flops: int
    bytes: int
    """Estimates: operations, and bytes read plus written; at the symbols' upper bounds."""
    symbols: tuple[str, ...] = ()
    """The sizes that the kernel takes, as its first parameters."""
    doc: str = ""
    """Which tensor ops it computes."""
    rewrites: tuple[str, ...] = ()
    """Those of the written buffers that it reads too: run twice it gives something else."""
    inside: tuple[str, ...] = ()
    """The loops and branches around it, outermost first: `while`, `do`, `if`, `else`."""


@dataclass(frozen=True)
class Plan:
    """A program as a list of kernel launches over buffers.

    A buffer that changes hands in a loop has the refs of all that it may be: `tmp0|tmp1`.
    """

    name: str
    symbols: tuple[Symbol, ...] = ()
    inputs: tuple[Buffer, ...] = ()
    constants: tuple[Buffer, ...] = ()
    temps: tuple[Buffer, ...] = ()
    outputs: tuple[Buffer, ...] = ()
    kernels: tuple[KernelCall, ...] = ()
    workspace_bytes: int = 0
    """Storage that the temporaries need together, 64-byte aligned."""

    @property
    def has_control(self) -> bool:
        """Whether what runs depends on data: `kernels` is then no sequence of launches."""
        return any(call.inside for call in self.kernels)


def alias_sources(plan: Plan) -> list[tuple[int, str, int]]:
    """For each output that is another buffer: its position, the other's kind and position.

    Outputs that are inputs come first, so that no alias of an alias is read before it is set.
    """
    places = {
        buffer.ref: (kind, position)
        for kind, buffers in (
            ("in", plan.inputs),
            ("const", plan.constants),
            ("out", plan.outputs),
        )
        for position, buffer in enumerate(buffers)
    }
    refs = {buffer.ref: buffer for buffer in plan.outputs}
    found: list[tuple[int, str, int]] = []
    for position, output in enumerate(plan.outputs):
        if not output.alias:
            continue
        ref = output.alias
        while ref in refs and refs[ref].alias:
            ref = refs[ref].alias
        found.append((position, *places[ref]))
    return found


@dataclass(frozen=True)
class LaunchConfig:
    """How a CUDA kernel is launched: extents x, y, z, over the plan's symbols.

    A kernel whose grid has an extent of zero is not launched.
    """

    grid: tuple[Size, Size, Size]
    """Blocks."""
    block: tuple[Size, Size, Size]
    """Threads of a block."""
    shared_bytes: Size = 0
    """Dynamic shared memory of a block."""
    static_shared_bytes: int = 0
    """What the kernel's own `__shared__` arrays take."""


@dataclass(frozen=True)
class Program:
    """Emitted source with the plans it implements."""

    source: str
    language: str
    """`c` or `cuda`."""
    plans: tuple[Plan, ...]
    names: dict[str, str] = field(default_factory=dict[str, str])
    """IR symbol to the identifier it has in the source."""
    launches: dict[str, LaunchConfig] = field(default_factory=dict[str, LaunchConfig])
    """For CUDA: kernel symbol to how it is launched."""
    use_threads: str = ""
    """The C function that plugs in a thread pool; empty where nothing is parallel."""
    units: tuple[str, ...] = ()
    """The source as files that make the same shared object, the plans in the first; empty where
    one is enough."""
