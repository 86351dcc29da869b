"""Search: a kernel's schedule is varied, and the fastest of what was measured stays.

    schedule{beam=4}    from the rule's choice on, the 4 best of each round are varied again

Varied are copies (rows and vectors of a register tile, partial sums), sides of blocks and shares of
threads, each halved and doubled; whether a panel is packed, or a next row asked for; the order of
neighbouring loops; and plain loops are tried too. Vectors are not: their width is the target's.

Who measures is told from outside (`measure_with`), since passes know no machine. A measurer also
keeps winners, by kernel, target and options, so that a search happens once a machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from uopc.dialects import kernel
from uopc.dialects import schedule_text as text
from uopc.dialects.errors import UopcError
from uopc.dialects.schedule_text import Command, parse_schedule, schedule_text
from uopc.passes.apply_schedule import apply_schedule
from uopc.passes.cpu_targets import CpuTarget

MOST_BEAM = 64
ROUNDS = 3
MOST_CANDIDATES = 12
"""How many candidates a round measures for each of the beam's schedules, at most."""
MOST_PART = 4096


def check_beam(beam: int) -> None:
    """Raise UopcError [bad-option] for a beam that is too narrow or too wide."""
    if not 0 <= beam <= MOST_BEAM:
        raise UopcError("bad-option", f"beam is {beam}", hint=f"expected 0 to {MOST_BEAM}")


class Measurer(Protocol):
    """Runs candidates on the machine, and remembers winners."""

    def find(self, key: str) -> str | None:
        """The schedule kept under a key."""
        ...

    def keep(self, key: str, schedule: str) -> None:
        """Keep a schedule under a key."""
        ...

    def seconds(
        self, op: kernel.KernelOp, schedules: Sequence[str], what: str
    ) -> Sequence[float] | None:
        """How long a kernel takes with each schedule; infinity for one that does not compile.

        None for a kernel that cannot be run by itself. `what` is for a progress bar.
        """
        ...


_factory: Callable[[], Measurer] | None = None


def measure_with(factory: Callable[[], Measurer] | None) -> None:
    """Say who measures from now on, in this process; None for nobody."""
    global _factory
    _factory = factory


def measurer() -> Measurer:
    """Who measures. Raises UopcError [no-measurer] where nobody does."""
    if _factory is None:
        raise UopcError(
            "no-measurer",
            "schedule{beam=…} measures candidates on the machine, and nothing here can run them",
            hint="compile by uopc.compile, uopc-run or uopc-opt, or leave beam out",
        )
    return _factory()


def search_key(op: kernel.KernelOp, target: CpuTarget, options: str) -> str:
    """The name of a search: 64 hex digits of the kernel's text, the target and the options."""
    facts = (str(op), repr(target), options)
    state = hashlib.sha256()
    for fact in facts:
        state.update(f"{len(fact)}:{fact}".encode())
    return state.hexdigest()


def best_schedule(
    op: kernel.KernelOp, chosen: str, target: CpuTarget, beam: int, who: Measurer
) -> str:
    """The fastest schedule that a search finds, starting from the rule's choice."""
    key = search_key(op, target, f"beam={beam} from {chosen}")
    kept = who.find(key)
    if kept is not None and fits(op, kept):
        return kept
    times: dict[str, float] = {}
    wave = list(dict.fromkeys([chosen, ""]))
    for number in range(1, ROUNDS + 1):
        name = op.sym_name.data
        measured = who.seconds(op, wave, f"@{name}, round {number}")
        if measured is None:
            return chosen
        times.update(zip(wave, measured, strict=True))
        ranked = sorted(times, key=times.__getitem__)[:beam]
        wave = list[str]()
        for schedule in ranked:
            fresh = [v for v in variations(schedule) if v not in times and v not in wave]
            wave.extend([v for v in fresh if fits(op, v)][:MOST_CANDIDATES])
        if not wave:
            break
    best = min(times, key=times.__getitem__)
    who.keep(key, best)
    return best


def fits(op: kernel.KernelOp, schedule: str) -> bool:
    """Whether a schedule can be applied to a kernel."""
    copy = op.clone()
    try:
        apply_schedule(copy, schedule)
        copy.verify()
    except UopcError:
        return False
    return True


def variations(schedule: str) -> Iterator[str]:
    """Schedules that differ from one in one respect, the likeliest first."""
    commands = parse_schedule(schedule)
    for position, command in enumerate(commands):
        for varied in _varied(commands, position, command):
            yield schedule_text(varied)


def _varied(commands: list[Command], position: int, command: Command) -> Iterator[list[Command]]:
    before, after = commands[:position], commands[position + 1 :]
    match command:
        case text.Split(parts=parts):
            for index, part in enumerate(parts):
                if part.size is None or part.kind == "vector":
                    continue
                for size in (part.size // 2, part.size * 2):
                    if 1 <= size <= MOST_PART and not (part.kind == "unroll" and size > 16):
                        changed = (*parts[:index], replace(part, size=size), *parts[index + 1 :])
                        yield [*before, replace(command, parts=changed), *after]
        case text.Tile(names=names):
            yield [*before, *_without(after, set(names))]
        case text.Prefetch():
            yield [*before, *after]
        case text.Order(names=names):
            for k in range(len(names) - 1):
                swapped = (*names[:k], names[k + 1], names[k], *names[k + 2 :])
                yield [*before, text.Order(swapped), *after]
        case _:
            pass


def _without(commands: list[Command], gone: set[str]) -> list[Command]:
    """Commands without those on ranges that are not there, nor on parts of them."""
    kept: list[Command] = []
    for command in commands:
        match command:
            case text.Split(range=name, parts=parts) if name in gone:
                gone = gone | {part.name for part in parts}
            case text.Order(names=names):
                kept.append(text.Order(tuple(n for n in names if n not in gone)))
            case text.Mark(range=name) if name in gone:
                pass
            case _:
                kept.append(command)
    return kept
