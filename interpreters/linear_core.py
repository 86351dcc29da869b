"""Functions of upstream ops made into Python closures: what all ops share.

Each value of a function has a slot of its frame; each op becomes a step, a closure that reads
slots and sets slots, for all lanes that run. linear_*.py have a handler an op, which makes its
step; linear.py puts them together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_text
from uopc.interpreters.gpu_blocks import Blocks
from uopc.interpreters.lanes import Context, Frame
from uopc.interpreters.memory import MemRef
from uopc.interpreters.scalar_types import vector_shape
from uopc.interpreters.scalars import constant_value, not_interpreted, scalar_function
from uopc.interpreters.speculation import Speculation

Step = Callable[[Frame, Context], None]
WHERE = "among loops and scalars"


@dataclass
class Machine:
    """What all functions of a running program share."""

    functions: Mapping[str, Operation] = field(default_factory=dict[str, Operation])
    compiled: dict[str, CompiledFunction] = field(default_factory=dict[str, "CompiledFunction"])
    globals: dict[str, MemRef] = field(default_factory=dict[str, MemRef])
    speculations: list[Speculation] = field(default_factory=list[Speculation])
    """The loops whose iterations run together on trial, outermost first."""
    compile: Callable[[Machine, str], CompiledFunction] | None = None
    on_call: Callable[[str, Sequence[Any]], None] | None = None
    """Told of each call that has returned, with the callee's name and its arguments."""
    blocks: Blocks | None = None
    """The blocks of a GPU that run."""

    def function(self, name: str) -> CompiledFunction:
        """A function made into steps, at its first use."""
        found = self.compiled.get(name)
        if found is None:
            assert self.compile is not None
            found = self.compiled[name] = self.compile(self, name)
        return found


class Body:
    """The steps of a block, and the slots of what its terminator gives."""

    __slots__ = ("arguments", "results", "steps")

    def __init__(self, steps: list[Step], arguments: list[int], results: list[int]) -> None:
        self.steps = steps
        self.arguments = arguments
        self.results = results

    def run(self, frame: Frame, context: Context) -> None:
        for step in self.steps:
            step(frame, context)


@dataclass
class CompiledFunction:
    """A function as steps. Constants are set once a frame."""

    name: str
    body: Body
    slots: int
    constants: list[tuple[int, Any]]

    def frame(self) -> Frame:
        frame = Frame(self.slots)
        for slot, value in self.constants:
            frame.values[slot] = value
        return frame


Handler = Callable[["Compiler", Any], "Step | None"]
"""Makes an op's step; None where there is nothing to do when it runs."""


class Compiler:
    """Makes the steps of one function."""

    def __init__(
        self, machine: Machine, handlers: Mapping[type[Operation], Handler], function: Operation
    ) -> None:
        self.machine = machine
        self.handlers = handlers
        self.slots: dict[SSAValue, int] = {}
        self.constants: list[tuple[int, Any]] = []
        # Blocks are made into steps when they first run: slots and constants must be there.
        for op in function.walk():
            for region in op.regions:
                for block in region.blocks:
                    self._add(block.args)
            self._add(op.results)
            if isinstance(op, arith.ConstantOp):
                value = constant_value(op.value, op.result.type)
                self.constants.append((self.slots[op.result], value))
            elif type(op) in _HOISTED:
                handlers[type(op)](self, op)

    def _add(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            self.slots[value] = len(self.slots)

    def slot(self, value: SSAValue) -> int:
        return self.slots[value]

    def all(self, values: Sequence[SSAValue]) -> list[int]:
        return [self.slot(value) for value in values]

    def block(self, block: Block) -> Body:
        """A block's steps; its terminator's operands are its results."""
        ops = list(block.ops)
        if not ops:
            return Body([], self.all(block.args), [])
        return self.part(block, ops, ops[-1].operands)

    def part(self, block: Block, ops: Sequence[Operation], results: Sequence[SSAValue]) -> Body:
        """The steps of some ops of a block, terminators left out."""
        arguments = self.all(block.args)
        steps: list[Step] = []
        for op in ops:
            if op.next_op is None and op.name in _TERMINATORS:
                continue
            step = self.step(op)
            if step is not None:
                steps.append(step)
        return Body(steps, arguments, self.all(results))

    def step(self, op: Operation) -> Step | None:
        """An op's step. Raises UopcError [not-interpreted] for an op without a meaning here."""
        if type(op) in _HOISTED or isinstance(op, arith.ConstantOp):
            return None
        handler = self.handlers.get(type(op))
        if handler is not None:
            return handler(self, op)
        function = scalar_function(op)
        if function is None:
            raise not_interpreted(op, WHERE)
        return elementwise(self, op, function)


_TERMINATORS = frozenset(
    ("scf.yield", "scf.condition", "scf.reduce", "scf.reduce.return", "func.return",
     "memref.alloca_scope.return", "gpu.return", "gpu.terminator")
)  # fmt: skip


_HOISTED: frozenset[type[Operation]] = frozenset((memref.GetGlobalOp, memref.RankOp))
"""Ops whose results are known before the function starts."""


def elementwise(c: Compiler, op: Operation, function: Callable[..., Any]) -> Step:
    """The step of an op that computes each lane of its result from that lane of its operands."""
    if len(op.results) != 1:
        return _several_results(c, op, function)
    out = c.slot(op.results[0])
    if len(op.operands) == 2:
        return _binary(c.slot(op.operands[0]), c.slot(op.operands[1]), out, function)
    operands = c.all(op.operands)

    def step(frame: Frame, context: Context) -> None:
        contexts = frame.contexts
        get = frame.get
        frame.values[out] = function(*[get(slot, context) for slot in operands])
        contexts[out] = next((context for s in operands if contexts[s] is not None), None)

    return step


def _binary(a: int, b: int, out: int, function: Callable[..., Any]) -> Step:
    def step(frame: Frame, context: Context) -> None:
        values, contexts = frame.values, frame.contexts
        of_a, of_b = contexts[a], contexts[b]
        if of_a is None and of_b is None:
            values[out] = function(values[a], values[b])
            contexts[out] = None
            return
        x = values[a] if of_a is None or of_a is context else frame.get(a, context)
        y = values[b] if of_b is None or of_b is context else frame.get(b, context)
        values[out] = function(x, y)
        contexts[out] = context

    return step


def _several_results(c: Compiler, op: Operation, function: Callable[..., Any]) -> Step:
    operands, outs = c.all(op.operands), c.all(op.results)

    def step(frame: Frame, context: Context) -> None:
        results = function(*[frame.get(slot, context) for slot in operands])
        uniform = all(frame.is_uniform(s) for s in operands)
        for slot, value in zip(outs, results, strict=True):
            frame.set(slot, value, None if uniform else context)

    return step


def uniform_int(frame: Frame, slot: int, op: Operation) -> int:
    """An index that is one for all lanes.

    Raises NotTogether where lanes differ: the loop around is then run one by one.
    """
    if not frame.is_uniform(slot):
        raise NotTogetherError(op)
    return int(frame.values[slot])


class TimeLimit:
    """Until when loops may run. Programs made by cutting others up may never end."""

    until: ClassVar[float] = math.inf

    @classmethod
    @contextmanager
    def seconds(cls, seconds: float) -> Generator[None]:
        """Within the block, loops that run longer raise UopcError [took-too-long]."""
        before = cls.until
        cls.until = min(before, time.monotonic() + seconds)
        try:
            yield
        finally:
            cls.until = before

    @classmethod
    def check(cls, op: Operation) -> None:
        if time.monotonic() > cls.until:
            raise bad_program("took-too-long", "the time for interpreting a loop is over", op)


class NotTogetherError(Exception):
    """An op cannot be done for many lanes at once."""


def rank_of(value: SSAValue) -> int:
    """How many axes a value has apart from lanes; those of a memref are its own affair."""
    return len(vector_shape(value.type))


def is_memref(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType)


def bad_program(kind: str, message: str, op: Operation, hint: str = "") -> UopcError:
    """An error that running the program met, with its op and place."""
    return UopcError(kind, message, op_text=op_text(op), location=nearest_location(op), hint=hint)
