"""A program run by an interpreter: slow, exact, and in need of no compiler.

Either the program as it is written, by the reference semantics, or what passes made of it, by the
interpreter of its level.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import PlanOp
from uopc.dialects.sizes import sizes_of, symbols_in
from uopc.dialects.tensor_elementwise import element_of, tensor_of
from uopc.frontend.resume import is_private
from uopc.interpreters.programs import Input, Program, programs
from uopc.interpreters.tensor import find_function, run_function
from uopc.lowering.describe import describe_plan
from uopc.lowering.plan import Buffer, Plan, Symbol
from uopc.runtime import debug as debug_output
from uopc.runtime import environment
from uopc.runtime.shapes import ShapeBinder
from uopc.runtime.signature import Signature


class InterpretedExecutable:
    """A program that can be called on numpy arrays, as an Executable can: a function on tensors, a
    plan of kernels at any level, or a function of loops."""

    source = ""

    def __init__(
        self, module: ModuleOp, function: str | None = None, *, debug: int | None = None
    ) -> None:
        self._module = module
        self._lowered: tuple[ModuleOp, tuple[Plan, ...]] | None = None
        name = _chosen(module, function)
        (program,) = programs(module, name) or (None,)
        self._own = program if program is not None and program.level != "utensor" else None
        """The program where it is written as a plan or in loops already."""
        if self._own is not None and isinstance(self._own.op, PlanOp):
            self.plan = describe_plan(self._own.op, module)
        elif self._own is not None:
            self.plan = describe_linear(self._own)
        else:
            self.plan = describe_function(find_function(module, name))
        self.debug = environment.debug_level() if debug is None else debug
        self._binder = ShapeBinder(self.plan)
        self._signature = Signature(self.plan, self._binder.free)

    def use(self, module: ModuleOp, plans: tuple[Plan, ...]) -> None:
        """From now on run what passes made of the program."""
        if plans:
            self._own = None
            self._lowered = (module, plans)

    def __call__(self, *arrays: object, **named: object) -> Any:
        """Run on arrays given in order or by name; see Executable.__call__."""
        start = time.perf_counter()
        sizes: dict[str, int] = {}
        values: Any = arrays
        if named:
            values, sizes = self._signature.by_name(arrays, named)
        inputs, shapes, _ = self._signature.admit(values)
        binding = self._binder.bind(shapes, sizes)
        symbols = dict(zip((s.name for s in self.plan.symbols), binding.sizes, strict=True))
        if self._own is not None:
            found = self._own.run(inputs, symbols).results
            results = [found[n] for n in range(len(self.plan.outputs))]
        elif self._lowered is None:
            results = run_function(self._module, self.plan.name, inputs, symbols)
        else:
            results = self._run_lowered(*self._lowered, inputs, symbols)
        if self.debug:
            elapsed = time.perf_counter() - start
            debug_output.say(debug_output.run_line(self.plan.name, 0, 0.0, elapsed))
        return results[0] if len(results) == 1 else tuple(results)

    def _run_lowered(
        self,
        module: ModuleOp,
        plans: tuple[Plan, ...],
        inputs: Sequence[Any],
        symbols: dict[str, int],
    ) -> list[Any]:
        plan = next(p for p in plans if p.name == self.plan.name)
        (program,) = programs(module, plan.name)
        shapes = {
            n: tuple(s if isinstance(s, int) else s.evaluate_named(symbols) for s in b.shape)
            for n, b in enumerate(plan.outputs)
        }
        found = program.run(inputs, symbols, shapes).results
        known = {b.ref: a for b, a in zip(plan.inputs, inputs, strict=True)}
        # A result that is an input, or an earlier result, has no buffer of its own.
        for n, buffer in enumerate(plan.outputs):
            value = found[n] if n in found else np.array(known[buffer.alias]).reshape(shapes[n])
            known[buffer.ref] = value
        return [known[b.ref] for b in plan.outputs]


def _chosen(module: ModuleOp, function: str | None) -> str:
    if function is not None:
        return function
    names = [
        op.sym_name.data
        for op in module.body.block.ops
        if isinstance(op, PlanOp)
        or (isinstance(op, FuncOp) and op.body.blocks and not is_private(op))
    ]
    if len(names) == 1:
        return names[0]
    raise UopcError(
        "no-such-function",
        f"the module has {len(names)} programs",
        hint=f"choose one with function=…: {', '.join(names)}"
        if names
        else "expected a func.func on tensors",
    )


def describe_function(op: FuncOp) -> Plan:
    """A function's arguments and results as a plan without kernels."""
    last = op.body.block.last_op
    results = list(last.operands) if isinstance(last, ReturnOp) else []
    inputs = tuple(
        _buffer(f"in{k}", _argument_name(op, k, value), value)
        for k, value in enumerate(op.body.block.args)
    )
    outputs = tuple(_buffer(f"out{k}", f"out{k}", value) for k, value in enumerate(results))
    sizes = [
        size
        for inner in op.walk()
        for value in (*inner.results, *op.body.block.args)
        if isinstance(value.type, TensorType)  # the flag of a loop is none
        for size in sizes_of(tensor_of(value))
    ]
    symbols = tuple(Symbol(s.name, s.lower, s.upper) for s in symbols_in(sizes))
    return Plan(op.sym_name.data, symbols, inputs=inputs, outputs=outputs)


def describe_linear(program: Program) -> Plan:
    """What a function of loops takes and writes, as a plan without kernels.

    Raises UopcError [index-unbound] where a buffer's shape is known to a caller only.
    """

    def buffer(ref: str, value: Input) -> Buffer:
        sizes = [n for n in value.sizes if n is not None]
        if len(sizes) != len(value.sizes):
            raise UopcError(
                "index-unbound",
                f"nothing tells the sizes of '{value.name}' of @{program.name}",
                hint="give its sizes as numbers, or run the program before it is lowered",
            )
        return Buffer(ref, value.name, value.row.name, tuple(sizes))

    inputs = tuple(buffer(f"in{n}", value) for n, value in enumerate(program.inputs))
    outputs = tuple(buffer(f"out{n}", value) for n, value in enumerate(program.written))
    symbols = tuple(Symbol(*symbol) for symbol in program.symbols)
    return Plan(program.name, symbols, inputs=inputs, outputs=outputs)


def _argument_name(op: FuncOp, position: int, value: SSAValue) -> str:
    if op.arg_attrs is not None:
        name = op.arg_attrs.data[position].data.get("uopc.name")
        if isinstance(name, StringAttr):
            return name.data
    return value.name_hint or f"in{position}"


def _buffer(ref: str, name: str, value: SSAValue) -> Buffer:
    tensor = tensor_of(value)
    return Buffer(ref, name, element_of(tensor).name, sizes_of(tensor))
