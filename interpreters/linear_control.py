"""Branches, general loops and calls: scf.if, while, parallel, index_switch, and func.call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import func, memref, scf
from xdsl.ir import Block, Operation, Region

from uopc.dialects.rounding import Array
from uopc.interpreters.lanes import LANE_LIMIT, Context, Frame, Lanes, spread, take
from uopc.interpreters.linear_core import (
    Body,
    Compiler,
    Handler,
    NotTogetherError,
    Step,
    TimeLimit,
    bad_program,
    rank_of,
    uniform_int,
)
from uopc.interpreters.linear_loops import Iterations, Trip, for_loop, part_of
from uopc.interpreters.memory import MemRef


def _whole(value: Any, count: int, rank: int, op: Operation) -> Array:
    """A value with one entry a lane that may be changed."""
    if isinstance(value, MemRef):
        raise NotTogetherError(op)
    return np.array(spread(value, count, rank))


class Lazy:
    """A block's steps, made when it first runs."""

    def __init__(self, c: Compiler, block: Block | None) -> None:
        self._make = lambda: Body([], [], []) if block is None else c.block(block)
        self._body: Body | None = None

    @property
    def body(self) -> Body:
        if self._body is None:
            self._body = self._make()
        return self._body


def _single(region: Region, op: Operation) -> Block | None:
    if len(region.blocks) > 1:
        raise bad_program(
            "not-interpreted", f"'{op.name}' has {len(region.blocks)} blocks", op,
            "blocks that branch to each other are not interpreted: use scf",
        )  # fmt: skip
    return region.blocks.first


class Branch:
    """One of several blocks, chosen by a number in each lane."""

    def __init__(self, c: Compiler, op: Operation, regions: Sequence[Region]) -> None:
        self.op = op
        self.blocks = [Lazy(c, _single(region, op)) for region in regions]
        self.outs = c.all(op.results)
        self.ranks = [rank_of(v) for v in op.results]

    def run(self, frame: Frame, context: Context, chosen: Any) -> None:
        """Run block number `chosen`, or in each lane its own."""
        if np.ndim(chosen) == 0:
            body = self.blocks[int(chosen)].body
            body.run(frame, context)
            for out, slot in zip(self.outs, body.results, strict=True):
                value = frame.get(slot, context)
                frame.set(out, value, None if frame.is_uniform(slot) else context)
            return
        assert context is not None
        merged: list[Any] = [None] * len(self.outs)
        for number, lazy in enumerate(self.blocks):
            active = np.flatnonzero(chosen == number)
            if not len(active):
                continue
            body, lanes = lazy.body, Lanes(context, active)
            body.run(frame, lanes)
            for k, slot in enumerate(body.results):
                value = frame.get(slot, lanes)
                if merged[k] is None:
                    first = value[:1] if not frame.is_uniform(slot) else value
                    whole = _whole(first, 1, self.ranks[k], self.op)
                    merged[k] = np.repeat(whole, context.count, axis=0)
                merged[k][active] = value
            frame.leave(lanes)
        for out, value in zip(self.outs, merged, strict=True):
            frame.set(out, value, context)


def if_else(c: Compiler, op: scf.IfOp) -> Step:
    condition = c.slot(op.cond)
    branch = Branch(c, op, [op.false_region, op.true_region])

    def step(frame: Frame, context: Context) -> None:
        branch.run(frame, context, frame.get(condition, context))

    return step


def index_switch(c: Compiler, op: scf.IndexSwitchOp) -> Step:
    argument = c.slot(op.arg)
    cases = [int(v) for v in op.cases.get_values()]
    branch = Branch(c, op, [op.default_region, *op.case_regions])

    def step(frame: Frame, context: Context) -> None:
        value = frame.get(argument, context)
        chosen = np.zeros(np.shape(value), np.int64)
        for number, case in reversed(list(enumerate(cases, 1))):
            chosen = np.where(value == case, number, chosen)
        branch.run(frame, context, chosen)

    return step


def execute_region(c: Compiler, op: scf.ExecuteRegionOp | memref.AllocaScopeOp) -> Step:
    branch = Branch(c, op, [op.regions[0]])
    return lambda frame, context: branch.run(frame, context, 0)


class While:
    """The step of an scf.while: lanes leave when their condition is false."""

    def __init__(self, c: Compiler, op: scf.WhileOp) -> None:
        self.op = op
        self.initial = c.all(op.arguments)
        self.outs = c.all(op.res)
        self.ranks = [rank_of(v) for v in op.res]
        before, after = op.before_region.block, op.after_region.block
        self.tested, self.looped = c.all(before.args), c.all(after.args)
        self.before, self.after = Lazy(c, before), Lazy(c, after)

    def __call__(self, frame: Frame, context: Context) -> None:
        values = [(frame.get(s, context), frame.is_uniform(s)) for s in self.initial]
        self._run(frame, context, values, first=True)

    def _set(self, frame: Frame, context: Context, slots: Sequence[int], values: Any) -> None:
        for slot, (value, uniform) in zip(slots, values, strict=True):
            frame.set(slot, value, None if uniform else context)

    def _run(self, frame: Frame, context: Context, values: Any, *, first: bool) -> None:
        """Run until all lanes are done; the results are set in `context`."""
        while True:
            TimeLimit.check(self.op)
            self._set(frame, context, self.tested, values)
            before = self.before.body
            before.run(frame, context)
            condition, *forwarded = before.results
            going = frame.get(condition, context)
            passed = [(frame.get(s, context), frame.is_uniform(s)) for s in forwarded]
            if np.ndim(going):
                if going.all():
                    going = True
                elif not going.any():
                    going = False
                else:
                    self._part(frame, context, going, passed)
                    return
            if not going:
                self._set(frame, context, self.outs, passed)
                return
            self._set(frame, context, self.looped, passed)
            after = self.after.body
            after.run(frame, context)
            values = [(frame.get(s, context), frame.is_uniform(s)) for s in after.results]

    def _part(self, frame: Frame, context: Context, going: Array, passed: Any) -> None:
        """Some lanes are done: the others go on by themselves, and all meet again here."""
        assert context is not None
        results = [
            _whole(value, context.count, rank, self.op)
            for (value, _), rank in zip(passed, self.ranks, strict=True)
        ]
        active = np.flatnonzero(going)
        while len(active):
            TimeLimit.check(self.op)
            lanes = Lanes(context, active)
            taken = [take(value, active) for value in results]
            self._set(frame, lanes, self.looped, [(value, False) for value in taken])
            after = self.after.body
            after.run(frame, lanes)
            values = [(frame.get(s, lanes), frame.is_uniform(s)) for s in after.results]
            self._set(frame, lanes, self.tested, values)
            before = self.before.body
            before.run(frame, lanes)
            condition, *forwarded = before.results
            for result, slot in zip(results, forwarded, strict=True):
                result[active] = frame.get(slot, lanes)
            still = np.broadcast_to(frame.get(condition, lanes), len(active))
            frame.leave(lanes)
            active = active[still]
        self._set(frame, context, self.outs, [(value, False) for value in results])


def while_loop(c: Compiler, op: scf.WhileOp) -> Step:
    return While(c, op)


class Parallel(Iterations):
    """The step of an scf.parallel: one index for all ranges, row-major, then its reductions."""

    def __init__(self, c: Compiler, op: scf.ParallelOp) -> None:
        block = op.body.block
        super().__init__(c, op, block)
        last = cast(scf.ReduceOp, block.last_op)
        self.bounds = [c.all(b) for b in (op.lowerBound, op.upperBound, op.step)]
        self.initial, self.outs = c.all(op.initVals), c.all(op.res)
        self.induction, self.given = c.all(block.args), c.all(last.args)
        self.combined_ranks = [rank_of(v) for v in last.args]
        self.combiners = [Lazy(c, region.block) for region in last.reductions]
        self.extents: list[tuple[int, int, int]] = []

    def set_index(self, frame: Frame, index: Any, context: Context) -> None:
        rest = index
        for slot, (lower, count, step) in zip(
            reversed(self.induction), reversed(self.extents), strict=True
        ):
            frame.set(slot, lower + rest % count * step, context)
            rest = rest // count

    def __call__(self, frame: Frame, context: Context) -> None:
        lower, upper, step = ([uniform_int(frame, s, self.op) for s in b] for b in self.bounds)
        if any(s <= 0 for s in step):
            raise bad_program("bad-step", "a loop's step is not positive", self.op)
        counts = [max(0, -((lo - up) // s)) for lo, up, s in zip(lower, upper, step, strict=True)]
        outside, self.extents = self.extents, list(zip(lower, counts, step, strict=True))
        total = int(np.prod(counts, dtype=np.int64))
        trip = Trip(np.int64(0), np.int64(1), np.int64(total), total)
        if not self.initial:
            self.run(frame, context, trip)
        else:
            self._reduce(frame, context, trip)
        self.extents = outside

    def _reduce(self, frame: Frame, context: Context, trip: Trip) -> None:
        carried = [(frame.get(s, context), frame.is_uniform(s)) for s in self.initial]
        count = 1 if context is None else context.count
        chunk = 1 if self.memory.writes else max(1, LANE_LIMIT // count)
        for start in range(0, trip.most, chunk):
            length = min(chunk, trip.most - start)
            lanes, index = part_of(context, start, length, trip)
            self.set_index(frame, index, lanes)
            self.body.run(frame, lanes)
            values: list[Any] = []
            for slot, rank in zip(self.given, self.combined_ranks, strict=True):
                value = spread(frame.get(slot, lanes), lanes.count, rank)
                shaped = value.reshape(count, length, *value.shape[1:])
                values.append(shaped[0] if context is None else shaped.swapaxes(0, 1))
            frame.leave(lanes)
            for k in range(length):
                carried = self._combined(frame, context, carried, [v[k] for v in values])
        for slot, (value, uniform) in zip(self.outs, carried, strict=True):
            frame.set(slot, value, None if uniform else context)

    def _combined(
        self, frame: Frame, context: Context, carried: Any, values: Sequence[Any]
    ) -> list[tuple[Any, bool]]:
        results: list[tuple[Any, bool]] = []
        for lazy, (old, uniform), new in zip(self.combiners, carried, values, strict=True):
            body = lazy.body
            frame.set(body.arguments[0], old, None if uniform else context)
            frame.set(body.arguments[1], new, context)
            body.run(frame, context)
            (slot,) = body.results
            results.append((frame.get(slot, context), frame.is_uniform(slot)))
        return results


def call(c: Compiler, op: func.CallOp) -> Step:
    name = op.callee.string_value()
    operands, outs = c.all(op.operands), c.all(op.results)
    machine = c.machine

    def step(frame: Frame, context: Context) -> None:
        values = [(frame.get(s, context), frame.is_uniform(s)) for s in operands]
        results = run_function(machine, name, values, context, op)
        for slot, (value, uniform) in zip(outs, results, strict=True):
            frame.set(slot, value, None if uniform else context)
        if machine.on_call is not None and context is None:
            machine.on_call(name, [value for value, _ in values])

    return step


def run_function(
    machine: Any, name: str, values: Sequence[tuple[Any, bool]], context: Context, op: Any = None
) -> list[tuple[Any, bool]]:
    """Run a function in some lanes; its results, and whether each is uniform."""
    function = machine.function(name)
    frame = function.frame()
    for slot, (value, uniform) in zip(function.body.arguments, values, strict=True):
        frame.set(slot, value, None if uniform else context)
    function.body.run(frame, context)
    return [(frame.get(s, context), frame.is_uniform(s)) for s in function.body.results]


CONTROL_HANDLERS: Mapping[type[Operation], Handler] = {
    scf.ForOp: for_loop,
    scf.IfOp: if_else,
    scf.IndexSwitchOp: index_switch,
    scf.ExecuteRegionOp: execute_region,
    memref.AllocaScopeOp: execute_region,
    scf.WhileOp: while_loop,
    scf.ParallelOp: lambda c, op: Parallel(c, op),
    func.CallOp: call,
}
