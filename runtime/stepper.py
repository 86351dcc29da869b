"""The kernels of a plan called one by one and timed, for the debug levels from 2 on.

The plan's own C entry calls all kernels at once. Here each is called by its own C name, in the
plan's order, with its sizes and the addresses of its buffers: the caller's arrays, constants in
the shared object, temporaries at their offsets in the workspace.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import KernelCall, Plan, Program
from uopc.runtime.debug import KernelTime, kernel_source
from uopc.runtime.library import Library


@dataclass(frozen=True)
class _Step:
    call: KernelCall
    function: Callable[..., None]
    sizes: tuple[int, ...]
    """Which of the plan's symbols it takes."""
    repeatable: bool
    """It reads none of what it writes, so that a second run changes nothing."""


def with_visible_kernels(program: Program) -> Program:
    """The same C program, its kernels callable from outside: what KernelStepper needs."""
    symbols = {call.symbol for plan in program.plans for call in plan.kernels}
    names = sorted(re.escape(program.names.get(symbol, symbol)) for symbol in symbols)
    heads = rf"^static (?=void (?:{'|'.join(names)})\()"
    source = re.sub(heads, "", program.source, flags=re.MULTILINE) if names else program.source
    # As one file: functions of units see one another, but nothing outside sees them.
    return dataclasses.replace(program, source=source, units=())


class KernelStepper:
    """A plan's kernels, found in a library that shows them."""

    def __init__(self, program: Program, plan: Plan, library: Library) -> None:
        """Raises `missing-symbol` where a kernel or constant is not visible from outside, and
        where the plan has loops or branches."""
        if plan.has_control:
            raise UopcError(
                "missing-symbol", "the plan has loops or branches, whose kernels run from C only"
            )
        self._plan = plan
        self._program = program
        self._library = library
        self._constants: dict[str, int] = {
            ref: library.address(program.names.get(ref, ref))
            for ref in {ref for call in plan.kernels for ref in call.refs}
            if any(ref == constant.ref for constant in plan.constants)
        }
        self._aliases = {buffer.ref: buffer.alias for buffer in plan.outputs if buffer.alias}
        self._written = [buffer.ref for buffer in plan.outputs if not buffer.alias]
        self._steps = [self._step(call) for call in plan.kernels]

    def _step(self, call: KernelCall) -> _Step:
        order = {symbol.name: index for index, symbol in enumerate(self._plan.symbols)}
        name = self._program.names.get(call.symbol, call.symbol)
        reads = call.refs[: len(call.refs) - call.writes]
        writes = call.refs[len(call.refs) - call.writes :]
        return _Step(
            call,
            self._library.function(name, len(call.symbols), len(call.refs)),
            tuple(order[symbol] for symbol in call.symbols),
            not call.rewrites and set(map(self._owner, reads)).isdisjoint(map(self._owner, writes)),
        )

    def _owner(self, ref: str) -> str:
        while ref in self._aliases:
            ref = self._aliases[ref]
        return ref

    def run(
        self, sizes: Sequence[int], pointers: Sequence[int | None], again: bool
    ) -> list[KernelTime]:
        """Run the plan. `pointers` are the C entry's: inputs, outputs, workspace.

        With `again` each kernel runs a second time right after the first, where that is harmless.
        """
        addresses = self._addresses(pointers)
        times: list[KernelTime] = []
        for step in self._steps:
            arguments = [sizes[index] for index in step.sizes]
            buffers = [addresses[self._owner(ref)] for ref in step.call.refs]
            first = _timed(step.function, *arguments, *buffers)
            second = None
            if again and step.repeatable:
                second = _timed(step.function, *arguments, *buffers)
            times.append(KernelTime(step.call.name, step.call.flops, first, second))
        return times

    def _addresses(self, pointers: Sequence[int | None]) -> dict[str, int | None]:
        refs = [*(buffer.ref for buffer in self._plan.inputs), *self._written]
        addresses: dict[str, int | None] = dict(zip(refs, pointers, strict=False))
        addresses.update(self._constants)
        workspace = pointers[-1] if len(pointers) > len(refs) else None
        for buffer in self._plan.temps:
            if workspace is None or buffer.offset < 0:
                raise UopcError(
                    "missing-symbol", f"temporary {buffer.ref} has no place in a workspace"
                )
            addresses[buffer.ref] = workspace + buffer.offset
        return addresses

    def sources(self) -> list[str]:
        """The C of each kernel, each once, as lines."""
        names = dict.fromkeys(call.symbol for call in self._plan.kernels)
        return [
            kernel_source(self._program.source, self._program.names.get(name, name))
            for name in names
        ]


def _timed(function: Callable[..., None], *arguments: int | None) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start
