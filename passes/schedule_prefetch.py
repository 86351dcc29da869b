"""prefetch: where a load will read in the next step of a loop is asked for while this one runs.

    %x_at = uloop.load %x[%i, %k] : …
                     prefetch x_at along i
    %x_at = uloop.load %x[%i, %k] prefetch [%i + 1, %k] : …

It is kept as a place, not as a range: what later commands make of `i` they make of `i + 1`.

The rule takes it for rows that are read from memory and that take long to compute: while exp is
taken of one row, memory brings the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.ir import Operation, SSAValue

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.index_expr import Expr, atom_expr
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.schedule_text import Command, Prefetch, bad_schedule
from uopc.passes.expand_math import EXPANSIONS
from uopc.passes.loop_dag import LoopDag
from uopc.passes.loop_rewriter import LoopRewriter
from uopc.passes.schedule_facts import in_order, is_fixed, is_neighbours, length, loads_of, name_of
from uopc.passes.schedule_names import find_range, find_value

PREFETCH_FROM_BYTES = 8 << 20
"""More than a core's own caches hold: what is smaller lies there from one call to the next."""
LEAST_ROW_BYTES = 4 << 10
"""Shorter rows follow one another as one stream, which a machine asks for by itself."""
MOST_ROW_BYTES = 256 << 10
"""Of longer rows the beginning may be gone again before it is read."""

_LOOPS = ("loop", "reduce", "thread")


class ApplyPrefetch(LoopRewriter):
    """load x[i, k] -> load x[i, k] prefetch [i + 1, k]."""

    def __init__(self, dag: LoopDag, command: Prefetch) -> None:
        super().__init__(dag)
        op = dag.kernel
        load = find_value(op, command.value, command).owner
        if not isinstance(load, loop.LoadOp):
            raise bad_schedule(
                command,
                f"'{command.value}' is not a load",
                "expected what a uloop.load gives; one that gets a tile is named before that",
            )
        if load.prefetch is not None:
            raise bad_schedule(command, f"'{command.value}' has a prefetch already")
        along = find_range(op, command.range, command)
        if along.kind.data not in _LOOPS:
            raise bad_schedule(
                command,
                f"'{command.range}' is of kind {along.kind.data}, which is no loop",
                f"expected a range of kind {', '.join(_LOOPS)}",
            )
        here = self.dag.expressions(load.map, load.indices)
        leaf = self.dag.index[along.result].leaf
        there = here if leaf is None else [e.substitute({leaf: atom_expr(leaf) + 1}) for e in here]
        if there == here:
            raise bad_schedule(
                command,
                f"where '{command.value}' reads does not move with '{command.range}'",
                "expected a range that its index depends on",
            )
        self.load, self.there = load, there

    def ahead(self, op: loop.LoadOp) -> list[Expr]:
        return [self.expr(e) for e in self.there] if op is self.load else super().ahead(op)


def prefetch_commands(dag: LoopDag, sweeps: Mapping[Operation, loop.RangeOp]) -> list[Command]:
    """What a kernel of several sweeps over a row asks for: the inputs of those that take long to
    compute, where an earlier sweep has read them. `sweeps` tells the range that each runs along."""
    found: dict[str, Command] = {}
    swept: set[SSAValue] = set()
    for statement, along in sweeps.items():
        loads = loads_of(dag, _values_of(statement))
        for load in loads if _takes_long(dag, statement, along) else []:
            rows = _rows(dag, load, along) if load.buffer in swept else None
            name = load.result.name_hint
            if rows is not None and name is not None:
                found.setdefault(name, Prefetch(name, name_of(rows)))
        swept.update(load.buffer for load in loads)
    return list(found.values())


def _takes_long(dag: LoopDag, statement: Operation, along: loop.RangeOp) -> bool:
    """Whether a sweep computes a function, as exp, at each element, and so leaves memory idle. What
    a tile keeps does, or it would not be kept."""
    if isinstance(statement, loop.TileOp):
        return True
    pending = _values_of(statement) if isinstance(statement, loop.ReduceOp) else []
    seen: set[Operation] = set()
    while pending:
        value = pending.pop()
        owner = value.owner
        if not isinstance(owner, Operation) or owner in seen or along not in dag.free[value]:
            continue
        if type(owner) in EXPANSIONS:
            return True
        seen.add(owner)
        pending.extend(owner.operands)
    return False


def _values_of(statement: Operation) -> list[SSAValue]:
    match statement:
        case loop.ReduceOp():
            return list(statement.values)
        case loop.TileOp() | loop.StoreOp():
            return [statement.value]
        case _:
            return []


def _rows(dag: LoopDag, load: loop.LoadOp, along: loop.RangeOp) -> loop.RangeOp | None:
    """The range of the rows that a load reads along a range, if asking for the next one pays."""
    shape = buffer_of(load.buffer).get_shape()
    row = element_type(load.result.type)
    if row is None or min(shape, default=-1) < 0 or prod(shape) * row.bytes < PREFETCH_FROM_BYTES:
        return None
    if not LEAST_ROW_BYTES <= length(dag, along) * row.bytes <= MOST_ROW_BYTES:
        return None
    if load.where is not None or not is_neighbours(dag, load, along):
        return None
    around = in_order(dag, dag.free[load.result] - {along})
    moving = [r for r in around if r.kind.data == "loop" and not is_fixed(dag, load, r)]
    return moving[-1] if moving else None
