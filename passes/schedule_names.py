"""What a schedule's commands call ranges and values: looking them up, refusing in words."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects.schedule_text import Command, bad_schedule


def ranges_by_name(op: kernel.KernelOp) -> dict[str, loop.RangeOp]:
    return {
        o.result.name_hint: o
        for o in op.block.ops
        if isinstance(o, loop.RangeOp) and o.result.name_hint
    }


def find_range(op: kernel.KernelOp, name: str, command: Command) -> loop.RangeOp:
    ranges = ranges_by_name(op)
    found = ranges.get(name)
    if found is None:
        known = ", ".join(ranges) or "none"
        raise bad_schedule(command, f"there is no range '{name}'", f"the ranges are: {known}")
    return found


def find_value(op: kernel.KernelOp, name: str, command: Command) -> SSAValue:
    named = {
        r.name_hint: r
        for o in op.block.ops
        if not isinstance(o, loop.RangeOp)
        for r in o.results
        if r.name_hint
    }
    found = named.get(name)
    if found is None:
        known = ", ".join(named) or "none"
        raise bad_schedule(command, f"there is no value '{name}'", f"the values are: {known}")
    return found


def check_fresh(op: kernel.KernelOp, names: tuple[str, ...], command: Command) -> None:
    taken = ranges_by_name(op)
    for position, name in enumerate(names):
        if name in taken or name in names[:position]:
            raise bad_schedule(
                command, f"the name '{name}' is taken", f"the ranges are: {', '.join(taken)}"
            )


class FreshNames:
    """Names that are not taken, each given once."""

    def __init__(self, taken: Iterable[str | None]) -> None:
        self.taken = set(taken)

    def fresh(self, base: str) -> str:
        """A name like `base`."""
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}{number}"
        self.taken.add(name)
        return name
