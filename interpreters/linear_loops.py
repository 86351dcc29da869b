"""Loops: scf.for, whose iterations run together where nothing forbids it, and scf.parallel.

A loop that carries nothing is tried with all iterations as lanes (speculation.py tells whether
that was right). Of a loop that carries values, the part that does not depend on them is computed
for many iterations at once, and what does is done in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects import arith, func, gpu, memref, scf, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_extensions import is_workgroup
from uopc.dialects.rounding import Array
from uopc.interpreters.gpu_blocks import COLLECTIVE, LAUNCHES
from uopc.interpreters.lanes import LANE_LIMIT, Context, Frame, Lanes, spread, take
from uopc.interpreters.linear_core import (
    Body,
    Compiler,
    NotTogetherError,
    Step,
    TimeLimit,
    bad_program,
    rank_of,
)
from uopc.interpreters.linear_memory import VIEWS
from uopc.interpreters.memory import MemRef, row_of_memref
from uopc.interpreters.speculation import Conflict, Speculation

_LOADS = (memref.LoadOp, vector.LoadOp, vector.MaskedLoadOp, memref.AtomicRMWOp)
_STORES = (memref.StoreOp, vector.StoreOp, vector.MaskedStoreOp, memref.AtomicRMWOp)
_ALLOCATIONS = (memref.AllocOp, memref.AllocaOp, gpu.AllocOp)
_IMPURE = (
    *_STORES, memref.CopyOp, gpu.MemcpyOp, *_ALLOCATIONS, *COLLECTIVE, *LAUNCHES
)  # fmt: skip
_REPEATING = (scf.ForOp, scf.WhileOp, scf.ParallelOp)


Place = int | str
"""The slot of a memref that is there before a loop, `PRIVATE` or `UNKNOWN`."""
PRIVATE, UNKNOWN = "private", "unknown"


class LoopMemory:
    """What a loop's body, and what it calls, does to memory that is there before the loop."""

    def __init__(self, c: Compiler, block: Block) -> None:
        self.together = True
        """Whether nothing in the body needs iterations one by one."""
        self.writes = False
        self.loads: list[int] = []
        self.stores: list[tuple[int, bool]] = []
        """Slots of memrefs outside, and whether the store runs several times an iteration."""
        self.unit = 8
        self._functions = c.machine.functions
        self._calls: list[str] = []
        inside = set(block.walk())

        def place(value: SSAValue) -> Place:
            root = root_of(value)
            owner = root.owner
            if isinstance(owner, _ALLOCATIONS) and owner in inside:
                return PRIVATE
            op = owner.parent_op() if isinstance(owner, Block) else owner
            if op in inside and not isinstance(op, memref.GetGlobalOp):
                return UNKNOWN
            return c.slot(root)

        self._scan(block, place, repeated=False)

    def _scan(self, block: Block, place: Callable[[SSAValue], Place], *, repeated: bool) -> None:
        for op in block.ops:
            self._visit(op, place, repeated=repeated)
            again = repeated or isinstance(op, _REPEATING)
            for region in op.regions:
                for inner in region.blocks:
                    self._scan(inner, place, repeated=again)

    def _visit(self, op: Operation, place: Callable[[SSAValue], Place], *, repeated: bool) -> None:
        if isinstance(op, _LOADS):
            self._touch(_memref_of(op), place, None)
        if isinstance(op, _STORES):
            self.writes = True
            self._touch(_memref_of(op), place, repeated)
        if isinstance(op, (memref.CopyOp, gpu.MemcpyOp, *COLLECTIVE, *LAUNCHES)):
            self.writes, self.together = True, False
        if isinstance(op, memref.AllocaOp) and is_workgroup(op.memref.type):
            self.together = False
        if any(isinstance(v.type, MemRefType) for v in op.results) and isinstance(
            op, scf.IfOp | scf.ForOp | scf.WhileOp | func.CallOp
        ):
            self.together = False
        if isinstance(op, func.CallOp) and any(isinstance(v.type, MemRefType) for v in op.operands):
            self._call(op, place, repeated=repeated)

    def _touch(
        self, value: SSAValue, place: Callable[[SSAValue], Place], stored: bool | None
    ) -> None:
        """Note a load (None) or a store of a memref's element."""
        self.unit = min(self.unit, row_of_memref(value.type).bytes)
        found = place(value)
        in_global = isinstance(root_of(value).owner, memref.GetGlobalOp)
        if found == UNKNOWN or (in_global and stored is not None):
            self.together = False
        elif isinstance(found, int):
            if stored is None:
                self.loads.append(found)
            else:
                self.stores.append((found, stored))

    def _call(self, op: func.CallOp, outer: Callable[[SSAValue], Place], *, repeated: bool) -> None:
        """What a called function does to the memrefs that it is given."""
        name = op.callee.string_value()
        callee = self._functions.get(name)
        if name in self._calls or not isinstance(callee, func.FuncOp) or not callee.body.blocks:
            self.writes, self.together = True, False
            return
        entry = callee.body.blocks[0]
        given: dict[SSAValue, SSAValue] = dict(zip(entry.args, op.operands, strict=True))

        def place(value: SSAValue) -> Place:
            root = root_of(value)
            if root in given:
                return outer(given[root])
            if isinstance(root.owner, _ALLOCATIONS):
                return PRIVATE
            return PRIVATE if isinstance(root.owner, memref.GetGlobalOp) else UNKNOWN

        self._calls.append(name)
        self._scan(entry, place, repeated=repeated)
        self._calls.pop()

    def speculation(self, frame: Frame, context: Context) -> Speculation:
        """A trial of the loop, with notes on the buffers where order may matter."""
        uses: dict[Any, list[int]] = {}
        written: list[MemRef] = []
        for slot in self.loads:
            m: MemRef = frame.get(slot, context)
            uses.setdefault(m.buffer, [0, 0])[0] += 1
        for slot, repeated in self.stores:
            m = frame.get(slot, context)
            written.append(m)
            uses.setdefault(m.buffer, [0, 0])[1] += 2 if repeated else 1
        tracked = [b for b, (read, write) in uses.items() if write > 1 or (write and read)]
        return Speculation(tracked, written, self.unit)


def root_of(value: SSAValue) -> SSAValue:
    """The memref that a view, a part or a cast is made of."""
    while isinstance(value.owner, Operation) and type(value.owner) in VIEWS:
        value = value.owner.operands[0]
    return value


def _memref_of(op: Any) -> SSAValue:
    in_memref = isinstance(op, memref.LoadOp | memref.StoreOp | memref.AtomicRMWOp)
    return op.memref if in_memref else op.base


def is_pure(op: Operation) -> bool:
    """Whether doing an op more often, or earlier, changes nothing but its results."""
    for inner in op.walk():
        if isinstance(inner, _IMPURE):
            return False
        if isinstance(inner, func.CallOp) and any(
            isinstance(v.type, MemRefType) for v in inner.operands
        ):
            return False
    return True


def operands_within(op: Operation) -> Iterable[SSAValue]:
    """The operands of an op and of all ops inside of it."""
    for inner in op.walk():
        yield from inner.operands


class Split:
    """The body of a loop that carries values: what depends on them, and what does not."""

    def __init__(self, c: Compiler, block: Block, carried: Sequence[SSAValue]) -> None:
        tainted: set[SSAValue] = set(carried)
        dependent: list[Operation] = []
        independent: list[Operation] = []
        for op in list(block.ops)[:-1]:
            if is_pure(op) and not any(v in tainted for v in operands_within(op)):
                independent.append(op)
            else:
                dependent.append(op)
                tainted.update(op.results)
        last = block.last_op
        assert last is not None
        made = {r for op in independent for r in op.results} | {block.args[0]}
        read = [v for op in (*dependent, last) for v in operands_within(op)]
        self.exports = [(c.slot(v), rank_of(v)) for v in dict.fromkeys(read) if v in made]
        memrefs = any(isinstance(v.type, MemRefType) for v in made)
        self.useful = any(type(op) is not arith.ConstantOp for op in independent) and not memrefs
        self._make = lambda: (
            c.part(block, independent, []),
            c.part(block, dependent, last.operands),
        )
        self._parts: tuple[Body, Body] | None = None

    @property
    def parts(self) -> tuple[Body, Body]:
        """The independent part and the dependent one, made when they are first asked for."""
        if self._parts is None:
            self._parts = self._make()
        return self._parts


class Trip(NamedTuple):
    """A loop's bounds: numbers, or one a lane."""

    lower: Any
    step: Any
    count: Any
    """How many iterations."""
    most: int
    """The largest count."""


Carried = list[tuple[Any, bool]]
"""The values that a loop carries, and whether each is uniform."""


class Iterations:
    """A loop's body, and the ways to run it for all indices when nothing is carried."""

    def __init__(self, c: Compiler, op: Operation, block: Block) -> None:
        self.op = op
        self.machine = c.machine
        self.memory = LoopMemory(c, block)
        self.in_order = not self.memory.together
        self._make = lambda: c.block(block)
        self._body: Body | None = None

    @property
    def body(self) -> Body:
        if self._body is None:
            self._body = self._make()
        return self._body

    def set_index(self, frame: Frame, index: Any, context: Context) -> None:
        """Set the block's arguments for an index, or one a lane."""
        raise NotImplementedError

    def run(self, frame: Frame, context: Context, trip: Trip) -> None:
        if self.in_order or trip.most < 2 or not self._together(frame, context, trip):
            self.one_by_one(frame, context, trip, [])

    def _together(self, frame: Frame, context: Context, trip: Trip) -> bool:
        """Run all iterations as lanes; false, and nothing done, if their order matters."""
        speculations = self.machine.speculations
        before = len(speculations)
        trial = self.memory.speculation(frame, context)
        if trial.tracked:
            speculations.append(trial)
        try:
            for lanes, index in iterations(context, trip):
                trial.start(lanes)
                self.set_index(frame, index, lanes)
                self.body.run(frame, lanes)
                frame.leave(lanes)
        except (Conflict, NotTogetherError, UopcError) as stop:
            del speculations[before:]
            others = isinstance(stop, Conflict) and stop.speculation is not trial
            if others or (isinstance(stop, UopcError) and not trial.tracked):
                raise
            # Without notes nothing was read that was written: the same stores come again.
            trial.undo()
            self.in_order = True
            return False
        del speculations[before:]
        return True

    arguments: Sequence[int] = ()
    """The slots of the values that are carried."""
    ranks: Sequence[int] = ()

    def one_by_one(self, frame: Frame, context: Context, trip: Trip, carried: Carried) -> Carried:
        """Run the iterations in order; the carried values after the last."""
        lower, step, count, most = trip
        same = np.ndim(count) == 0 or int(np.min(count)) == most
        uniform = np.ndim(lower) == 0 and np.ndim(step) == 0
        body = self.body
        for k in range(most):
            TimeLimit.check(self.op)
            index = lower + k * step
            if not same:
                active = np.flatnonzero(count > k)
                if len(active) < len(count):
                    self._some(frame, context, active, index, carried)
                    continue
            self.set_index(frame, index, None if uniform else context)
            for slot, (value, is_uniform) in zip(self.arguments, carried, strict=True):
                frame.set(slot, value, None if is_uniform else context)
            body.run(frame, context)
            if carried:
                carried = [(frame.get(s, context), frame.is_uniform(s)) for s in body.results]
        return carried

    def _some(
        self, frame: Frame, context: Context, active: Array, index: Any, carried: Carried
    ) -> None:
        """One iteration of those lanes that are not done; `carried` is changed in place."""
        assert context is not None
        lanes = Lanes(context, active)
        self.set_index(frame, np.broadcast_to(index, context.count)[active], lanes)
        for slot, (value, uniform) in zip(self.arguments, carried, strict=True):
            frame.set(slot, value if uniform else take(value, active), None if uniform else lanes)
        self.body.run(frame, lanes)
        for k, slot in enumerate(self.body.results[: len(carried)]):
            if isinstance(carried[k][0], MemRef):
                raise NotTogetherError(self.op)
            whole = np.array(spread(carried[k][0], context.count, self.ranks[k]))
            whole[active] = frame.get(slot, lanes)
            carried[k] = (whole, False)
        frame.leave(lanes)


class For(Iterations):
    """The step of an scf.for."""

    def __init__(self, c: Compiler, op: scf.ForOp) -> None:
        block = op.body.block
        super().__init__(c, op, block)
        self.bounds = c.all([op.lb, op.ub, op.step])
        self.initial = c.all(op.iter_args)
        self.ranks = [rank_of(v) for v in op.iter_args]
        self.results = c.all(op.res)
        self.induction, *self.arguments = c.all(block.args)
        self.split: Split | None = None
        if self.initial and not self.memory.writes:
            split = Split(c, block, block.args[1:])
            self.split = split if split.useful else None

    def set_index(self, frame: Frame, index: Any, context: Context) -> None:
        frame.set(self.induction, index, context)

    def __call__(self, frame: Frame, context: Context) -> None:
        lower, upper, step = (frame.get(s, context) for s in self.bounds)
        if np.any(np.asarray(step) <= 0):
            raise bad_program("bad-step", "a loop's step is not positive", self.op)
        count = np.maximum(-((lower - upper) // step), 0)
        trip = Trip(lower, step, count, int(np.max(count)))
        if not self.initial:
            self.run(frame, context, trip)
            return
        carried = [(frame.get(s, context), frame.is_uniform(s)) for s in self.initial]
        chunk = LANE_LIMIT // (1 if context is None else context.count)
        if self.split is not None and np.ndim(count) == 0 and min(chunk, trip.most) >= 4:
            carried = self._in_parts(self.split, frame, context, trip, carried)
        else:
            carried = self.one_by_one(frame, context, trip, carried)
        for slot, (value, is_uniform) in zip(self.results, carried, strict=True):
            frame.set(slot, value, None if is_uniform else context)

    def _in_parts(
        self, split: Split, frame: Frame, context: Context, trip: Trip, carried: Carried
    ) -> Carried:
        """Compute for many iterations at once what is not carried, and the rest in order."""
        count = 1 if context is None else context.count
        independent, dependent = split.parts
        chunk = min(trip.most, LANE_LIMIT // count)
        for start in range(0, trip.most, chunk):
            length = min(chunk, trip.most - start)
            lanes, index = part_of(context, start, length, trip)
            frame.set(self.induction, index, lanes)
            independent.run(frame, lanes)
            exports: list[tuple[int, Any]] = []
            for slot, rank in split.exports:
                if not frame.is_uniform(slot):
                    value = np.asarray(frame.get(slot, lanes))
                    shaped = value.reshape(count, length, *value.shape[value.ndim - rank :])
                    exports.append((slot, shaped[0] if context is None else shaped.swapaxes(0, 1)))
            frame.leave(lanes)
            TimeLimit.check(self.op)
            for k in range(length):
                for slot, value in exports:
                    frame.set(slot, value[k], context)
                for slot, (value, uniform) in zip(self.arguments, carried, strict=True):
                    frame.set(slot, value, None if uniform else context)
                dependent.run(frame, context)
                carried = [(frame.get(s, context), frame.is_uniform(s)) for s in dependent.results]
        return carried


def part_of(context: Context, start: int, length: int, trip: Trip) -> tuple[Lanes, Array]:
    """Iterations `start` to `start + length` of each lane as lanes, and their indices."""
    count = 1 if context is None else context.count
    origin = np.repeat(np.arange(count), length)
    number = np.tile(np.arange(start, start + length), count)
    return Lanes(context, origin), _indices(trip, count, origin, number)


def _indices(trip: Trip, count: int, origin: Array, number: Array) -> Array:
    lower, step = trip.lower, trip.step
    if np.ndim(lower) or np.ndim(step):
        lower, step = (np.broadcast_to(x, count)[origin] for x in (lower, step))
    return (lower + number * step).astype(np.asarray(trip.lower).dtype)


def iterations(context: Context, trip: Trip) -> Iterable[tuple[Lanes, Array]]:
    """All iterations of a loop as lanes in order, with their indices; in parts if they are many.

    There are never no lanes: what is the same for all of them may run then.
    """
    count = 1 if context is None else context.count
    if np.ndim(trip.count) == 0:
        chunk = max(1, LANE_LIMIT // count)
        for start in range(0, trip.most, chunk):
            yield part_of(context, start, min(chunk, trip.most - start), trip)
        return
    origin = np.repeat(np.arange(count), trip.count)
    number = np.arange(len(origin)) - np.repeat(np.cumsum(trip.count) - trip.count, trip.count)
    if len(origin):
        yield Lanes(context, origin), _indices(trip, count, origin, number)


def for_loop(c: Compiler, op: scf.ForOp) -> Step:
    return For(c, op)
