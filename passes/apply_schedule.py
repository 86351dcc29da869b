"""apply-schedule: a kernel's schedule attribute is carried out on its ranges.

    ukernel.kernel @r_64_64 … attributes {schedule = "contract; split i = i0 i1:4:unroll"} {
      %i = uloop.range 64
      …
      %c = uloop.reduce add %p over (%k) : f32
      uloop.store %c, %o[%i, %j] : memref<64x64xf32>
    }

becomes

    ukernel.kernel @r_64_64 … {
      %i0 = uloop.range 16
      %i1 = uloop.range 4 unroll
      …
      %c = uloop.reduce fma %a, %b over (%k) : f32
      uloop.store %c, %o[%i0 * 4 + %i1, %j] : memref<64x64xf32>
    }

The commands stand in dialects/schedule_text.py, what they do in schedule_commands.py. The
attribute goes: what it said is now the kernel itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects import kernel, loop
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import location_of
from uopc.dialects.schedule_text import (
    Capture,
    Command,
    Layout,
    Pad,
    Prefetch,
    Tile,
    bad_schedule,
    parse_schedule,
)
from uopc.passes.loop_checks import problem_of
from uopc.passes.loop_dag import LoopDag
from uopc.passes.range_input import check_module_over_ranges
from uopc.passes.schedule_commands import apply_command

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ApplySchedulePass(ModulePass):
    """Carry out the schedules of kernels over ranges."""

    name = "apply-schedule"
    level_after: ClassVar[str] = "uloop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_module_over_ranges(op, self.name)
        for kernel_op in op.body.block.ops:
            if isinstance(kernel_op, kernel.KernelOp) and kernel_op.schedule is not None:
                apply_schedule(kernel_op, kernel_op.schedule.data)
                del kernel_op.properties["schedule"]


def apply_schedule(op: kernel.KernelOp, schedule: str) -> None:
    """Apply a schedule to a kernel over ranges. Raises UopcError [bad-schedule]."""
    printed = _printed_names(op)
    name_values(op)
    in_text = _names_in_text(printed)
    try:
        dag = LoopDag(op)
        for command in parse_schedule(schedule):
            apply_command(dag, _as_named(command, printed))
            dag = LoopDag(op)
            problem = problem_of(dag)
            if problem is not None:
                raise bad_schedule(command, *problem)
    except UopcError as error:
        error.location = error.location or location_of(op)
        error.hint = _as_in_text(error.hint, in_text)
        error.message = f"kernel @{op.sym_name.data}: {_as_in_text(error.message, in_text)}"
        raise


def _names_in_text(printed: dict[str, SSAValue]) -> dict[str, str]:
    """For values of a name of their own that differs from the text's: the text's."""
    return {
        value.name_hint: name
        for name, value in printed.items()
        if isinstance(value, OpResult) and value.name_hint is not None and value.name_hint != name
    }


def _as_in_text(words: str, in_text: dict[str, str]) -> str:
    """What an error says, with values called as the text calls them."""
    return _WORD.sub(lambda found: in_text.get(found[0], found[0]), words)


def _printed_names(op: kernel.KernelOp) -> dict[str, SSAValue]:
    """The name that each value has in the kernel's text, where its hint was taken before."""
    names: dict[str, SSAValue] = {}
    for value in (*op.block.args, *(r for o in op.block.ops for r in o.results)):
        if value.name_hint is not None:
            name, number = value.name_hint, 0
            while name in names:
                number += 1
                name = f"{value.name_hint}_{number}"
            names[name] = value
    return names


def _as_named(command: Command, printed: dict[str, SSAValue]) -> Command:
    """A command with a value called as in the text: by its own name instead."""
    if isinstance(command, Tile | Capture | Layout | Pad | Prefetch):
        value = printed.get(command.value)
        if value is not None and value.name_hint is not None and isinstance(value, OpResult):
            return replace(command, value=value.name_hint)
    return command


def name_values(op: kernel.KernelOp) -> None:
    """Give every load and reduction a name of its own, which schedules refer to.

    A load is named after its buffer, a reduction after its value's hint or its kind.
    """
    taken = {a.name_hint for a in op.block.args if a.name_hint} | {
        o.result.name_hint for o in op.block.ops if isinstance(o, loop.RangeOp)
    }
    for inner in op.block.ops:
        if isinstance(inner, loop.RangeOp):
            continue
        for result in inner.results:
            hint = result.name_hint
            if isinstance(inner, loop.LoadOp):
                hint = f"{inner.buffer.name_hint or 'value'}_at" if hint is None else hint
            elif isinstance(inner, loop.ReduceOp) and hint is None:
                hint = inner.kind.data if inner.kind is not None else "reduced"
            if hint is None:
                continue
            name, number = hint, 1
            while name in taken:
                number += 1
                name = f"{hint}{number}"
            taken.add(name)
            result.name_hint = name
