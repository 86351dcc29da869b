"""The programs of a module at any level, called alike: arrays in, results by position.

    for program in programs(module):
        results = program.run(inputs, {"n": 5}).results       # {0: array, 1: array}

A program is a func.func on tensors, a ukernel.plan, or a public func.func on memrefs. Of the
last kind, what lower-plan makes takes its inputs as `llvm.readonly` arguments, and the buffers of
its results, named out0, out1 and so on, as `llvm.noalias` ones; any other function changes its
memrefs in place, and all of them are both inputs and results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects import kernel as k
from uopc.dialects.element_types import ElementType, element_type, element_type_named
from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_kernels import gpu_kernels
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.rounding import Array
from uopc.dialects.sizes import Size, sizes_of, symbols_in
from uopc.dialects.tensor_elementwise import tensor_of
from uopc.interpreters.kernel import run_plan, unwritten
from uopc.interpreters.linear import LinearProgram
from uopc.interpreters.memory import MemRef
from uopc.interpreters.symbols import bind_symbols
from uopc.interpreters.tensor import run_function

Shapes = Mapping[int, tuple[int, ...]]
_OUTPUT = re.compile(r"out(\d+)")


@dataclass(frozen=True)
class Input:
    """An input of a program. A size is None where only a call tells it."""

    name: str
    row: ElementType
    sizes: tuple[Size | None, ...]


@dataclass(frozen=True)
class Launch:
    """A kernel that ran: its sizes, and its buffers as they were afterwards."""

    kernel: str
    sizes: tuple[int, ...]
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


@dataclass
class Outcome:
    """What a run gave: the results by position, and the kernels that ran on the way."""

    results: dict[int, Array]
    launches: list[Launch] = field(default_factory=list[Launch])


@dataclass(frozen=True)
class Program:
    """A program of a module, ready to run."""

    name: str
    level: str
    """`utensor`, `ukernel` or `linear`."""
    op: Operation
    symbols: tuple[tuple[str, int, int], ...]
    """Sizes that a call may choose: name, and the bounds."""
    inputs: tuple[Input, ...]
    runner: Callable[[Sequence[Array], Mapping[str, int], Shapes], Outcome]
    written: tuple[Input, ...] = ()
    """The results of a linear program, by position."""

    def run(
        self,
        inputs: Sequence[Array],
        symbols: Mapping[str, int] | None = None,
        shapes: Shapes | None = None,
    ) -> Outcome:
        """Run on arrays. `shapes` are those of the results, for a linear program of dynamic ones.

        Raises UopcError, as the interpreter of the program's level does.
        """
        return self.runner(inputs, symbols or {}, shapes or {})


def programs(module: ModuleOp, name: str | None = None) -> list[Program]:
    """The programs of a module, in order; or only the one of a name."""
    found: list[Program] = []
    for op in module.body.block.ops:
        if name is not None and getattr(op, "sym_name", None) != StringAttr(name):
            continue
        if isinstance(op, k.PlanOp):
            found.append(_plan(module, op))
        elif isinstance(op, func.FuncOp) and op.body.blocks and not _is_private(op):
            types = [a.type for a in op.body.blocks[0].args]
            if any(isinstance(t, MemRefType) for t in types):
                found.append(_linear(module, op))
            elif all(isinstance(t, TensorType) for t in types):
                found.append(_tensor(module, op))
    return found


def _is_private(op: func.FuncOp) -> bool:
    return op.sym_visibility is not None and op.sym_visibility.data == "private"


def _bounds(sizes: Sequence[Size]) -> tuple[tuple[str, int, int], ...]:
    return tuple((s.name, s.lower, s.upper) for s in symbols_in(sizes))


def _row(element: Attribute) -> ElementType:
    row = element_type(element)
    if row is None:
        raise UopcError("not-interpreted", f"there are no arrays of {element}")
    return row


def _named(op: Operation, position: int, value: SSAValue) -> str:
    attributes = getattr(op, "arg_attrs", None)
    if attributes is not None:
        name = attributes.data[position].data.get("uopc.name")
        if isinstance(name, StringAttr):
            return name.data
    return value.name_hint or f"in{position}"


# Tensors and plans.


def _tensor(module: ModuleOp, op: func.FuncOp) -> Program:
    name = op.sym_name.data
    values: list[SSAValue] = list(op.body.block.args)
    inputs = tuple(
        Input(_named(op, n, v), _row(tensor_of(v).element_type), sizes_of(tensor_of(v)))
        for n, v in enumerate(values)
    )
    everything = [v for inner in op.walk() for v in inner.results] + values
    sizes = [
        s for v in everything if isinstance(v.type, TensorType) for s in sizes_of(tensor_of(v))
    ]

    def run(arrays: Sequence[Array], symbols: Mapping[str, int], shapes: Shapes) -> Outcome:
        return Outcome(dict(enumerate(run_function(module, name, arrays, symbols))))

    return Program(name, "utensor", op, _bounds(sizes), inputs, run)


def _plan(module: ModuleOp, op: k.PlanOp) -> Program:
    name = op.sym_name.data
    names = op.input_names
    inputs: list[Input] = []
    for position, value in enumerate(op.buffers):
        shown = names.data[position].data if names else value.name_hint or f"in{position}"
        row = _row(buffer_of(value).element_type)
        inputs.append(Input(shown, row, tuple(op.sizes_of_buffer(position))))
    symbols = tuple((s.name, s.lower, s.upper) for s in op.symbol_vars)

    def run(arrays: Sequence[Array], given: Mapping[str, int], shapes: Shapes) -> Outcome:
        launches: list[Launch] = []
        buffer_sizes = [s.data for s in op.buffer_sizes.data]
        sizes = bind_symbols(name, buffer_sizes, [a.shape for a in arrays], given)

        def note(launch: k.LaunchOp, buffers: Sequence[Array]) -> None:
            copies = tuple(np.array(b) for b in buffers)
            count = len(launch.inputs)
            numbers = tuple(sizes[symbol_of[s]] for s in launch.sizes)
            kernel = launch.kernel.string_value()
            launches.append(Launch(kernel, numbers, copies[:count], copies[count:]))

        results = run_plan(module, name, arrays, sizes, on_launch=note)
        return Outcome(dict(enumerate(results)), launches)

    symbol_of: dict[SSAValue, str] = {
        value: s.name for value, s in zip(op.size_arguments, op.symbol_vars, strict=True)
    }
    return Program(name, "ukernel", op, symbols, tuple(inputs), run)


# Functions on memrefs.


@dataclass(frozen=True)
class _Argument:
    """An argument of a linear function and what it is for."""

    position: int
    role: str
    """`size`, `input`, `output` or `both`; a workspace is an `output` without a result."""
    row: ElementType
    shape: tuple[int, ...]
    name: str
    result: int | None = None


def _as_input(argument: _Argument) -> Input:
    shape = tuple(None if n < 0 else n for n in argument.shape)
    return Input(argument.name, argument.row, shape)


def _linear(module: ModuleOp, op: func.FuncOp) -> Program:
    arguments = _arguments(op)
    inputs = tuple(_as_input(a) for a in arguments if a.role in ("input", "both"))
    symbols = tuple((a.name, 1, 1 << 30) for a in arguments if a.role == "size")

    def run(arrays: Sequence[Array], sizes: Mapping[str, int], shapes: Shapes) -> Outcome:
        return _run_linear(module, op, arguments, (arrays, sizes, shapes))

    written = [_as_input(a) for a in arguments if a.result is not None]
    returned = enumerate(op.function_type.outputs.data, len(written))
    written += [Input(f"out{n}", _row(t), ()) for n, t in returned if _is_number(t)]
    return Program(op.sym_name.data, "linear", op, symbols, inputs, run, tuple(written))


def _is_number(type_: Attribute) -> bool:
    return not isinstance(type_, MemRefType) and element_type(type_) is not None


def _arguments(op: func.FuncOp) -> list[_Argument]:
    attributes: list[Any] = [DictionaryAttr({})] * len(op.body.block.args)
    if op.arg_attrs is not None:
        attributes = list(op.arg_attrs.data)
    found: list[_Argument] = []
    results = 0
    for position, value in enumerate(op.body.block.args):
        own: dict[str, Attribute] = attributes[position].data
        name = _named(op, position, value)
        if not isinstance(value.type, MemRefType):
            role = "size" if isinstance(value.type, IndexType) else "input"
            row = element_type_named("i64") if role == "size" else _row(value.type)
            found.append(_Argument(position, role, row, (), name))
            continue
        buffer = buffer_of(value)
        row = _row(buffer.element_type)
        if "uopc.unsigned" in own:
            row = element_type_named(f"u{row.name}")
        shape = tuple(max(n, -1) for n in buffer.get_shape())
        if "llvm.readonly" in own:
            found.append(_Argument(position, "input", row, shape, name))
            continue
        if "uopc.donated" in own:
            result = own.get("uopc.result")
            number = result.value.data if isinstance(result, IntegerAttr) else None
            found.append(_Argument(position, "both", row, shape, name, number))
            continue
        last = position == len(op.body.block.args) - 1
        if last and value.name_hint == "workspace" and row.name == "i8":
            found.append(_Argument(position, "output", row, shape, name))
            continue
        role = "output" if "llvm.noalias" in own else "both"
        match = _OUTPUT.fullmatch(value.name_hint or "")
        number = int(match.group(1)) if match else results
        results = number + 1
        found.append(_Argument(position, role, row, shape, name, number))
    return found


def _run_linear(
    module: ModuleOp,
    op: func.FuncOp,
    arguments: Sequence[_Argument],
    given: tuple[Sequence[Array], Mapping[str, int], Shapes],
) -> Outcome:
    arrays, sizes, shapes = given
    remaining = iter(arrays)
    values: list[Any] = []
    for a in arguments:
        if a.role == "size":
            if a.name not in sizes:
                raise UopcError(
                    "index-unbound", f"nothing tells the size '{a.name}' of @{op.sym_name.data}"
                )
            values.append(sizes[a.name])
        elif a.role == "input":
            array = np.ascontiguousarray(next(remaining)).view()
            array.flags.writeable = False
            values.append(array)
        elif a.role == "both":  # a copy: the caller's own stays as it is
            values.append(np.array(next(remaining)))
        else:
            shape = shapes.get(-1 if a.result is None else a.result, a.shape)
            if any(n < 0 for n in shape):
                raise UopcError(
                    "index-unbound",
                    f"nothing tells the shape of '{a.name}', which @{op.sym_name.data} writes",
                    hint="run the module before it is lowered, or give its sizes as numbers",
                )
            values.append(unwritten(shape, a.row, {}))
    launches: list[Launch] = []
    writes = _written_arguments(module)

    def note(name: str, passed: Sequence[Any]) -> None:
        buffers = [(n, v) for n, v in enumerate(passed) if isinstance(v, MemRef)]
        if buffers:
            numbers = tuple(int(v) for v in passed if not isinstance(v, MemRef))
            read = tuple(np.array(v.array) for n, v in buffers if n not in writes[name])
            wrote = tuple(np.array(v.array) for n, v in buffers if n in writes[name])
            launches.append(Launch(name, numbers, read, wrote))

    returned = LinearProgram(module, note).run(op.sym_name.data, values)
    results = {a.result: values[a.position] for a in arguments if a.result is not None}
    first = len(results)
    results.update({first + n: np.asarray(v) for n, v in enumerate(returned)})
    return Outcome({n: np.array(v) for n, v in sorted(results.items())}, launches)


def _written_arguments(module: ModuleOp) -> dict[str, set[int]]:
    """For each function the arguments that it may write to."""
    found: dict[str, set[int]] = {}
    kernels = [op for _, op in gpu_kernels(module).values()]
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    for op in (*kernels, *functions):
        stated = op.properties.get("arg_attrs", op.attributes.get("arg_attrs"))
        attributes = cast("ArrayAttr[DictionaryAttr]", stated or ArrayAttr([])).data
        readonly = {n for n, a in enumerate(attributes) if "llvm.readonly" in a.data}
        found[op.sym_name.data] = set(range(len(op.function_type.inputs))) - readonly
    return found
