"""Runs functions of upstream ops: func, scf, memref, arith, math, vector and gpu.

    run_linear(module, "softmax", [x, out, workspace])     # memrefs are changed in place

What such a module computes is fixed to the bit (docs/numerics.md), and so are these results: the
C of the same module gives the same, but for transcendental functions that expand-math has not
expanded yet. Memory is checked: a load, store or view outside of its buffer is an error that
names the op and the indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import func, gpu, memref
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation

from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_kernels import gpu_modules
from uopc.dialects.numbers import dense_array
from uopc.dialects.rounding import Array
from uopc.interpreters.gpu_blocks import Extents
from uopc.interpreters.lanes import Lanes, spread
from uopc.interpreters.linear_control import CONTROL_HANDLERS, run_function
from uopc.interpreters.linear_core import (
    CompiledFunction,
    Compiler,
    Handler,
    Machine,
    NotTogetherError,
    bad_program,
)
from uopc.interpreters.linear_gpu import GPU_HANDLERS, run_kernel
from uopc.interpreters.linear_memory import MEMORY_HANDLERS
from uopc.interpreters.linear_vectors import VECTOR_HANDLERS
from uopc.interpreters.memory import Arrays, MemRef, row_of_memref, unwritten_memory
from uopc.interpreters.scalar_types import row_of, vector_shape
from uopc.interpreters.scalars import number_of

HANDLERS: dict[type[Operation], Handler] = {
    **CONTROL_HANDLERS,
    **MEMORY_HANDLERS,
    **VECTOR_HANDLERS,
    **GPU_HANDLERS,
}
"""How each op that is not elementwise is run. Of arith and math: scalars.py."""

OnCall = Callable[[str, Sequence[Any]], None]


class LinearProgram:
    """The functions and globals of a module, ready to run; functions are prepared when called."""

    def __init__(self, module: ModuleOp, on_call: OnCall | None = None) -> None:
        self.functions: dict[str, func.FuncOp] = {}
        """What can be called from outside, and by name."""
        everything: dict[str, Operation] = {}
        self.machine = Machine(functions=everything, compile=_compile, on_call=on_call)
        for container in (module, *gpu_modules(module)):
            for op in container.body.block.ops:
                if isinstance(op, func.FuncOp):
                    self.functions.setdefault(op.sym_name.data, op)
                elif isinstance(op, gpu.FuncOp):
                    assert isinstance(container, gpu.ModuleOp)
                    everything[f"{container.sym_name.data}::{op.sym_name.data}"] = op
                    everything.setdefault(op.sym_name.data, op)
                elif isinstance(op, memref.GlobalOp):
                    self.machine.globals.setdefault(op.sym_name.data, _global(op))
        everything.update(self.functions)

    def run(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        """Call a function: arrays for memrefs, which are used in place, numbers for the rest.

        An array may have another shape of as many elements than its memref. Returns the results:
        numpy scalars, and arrays for vectors and memrefs.

        Raises UopcError [no-function], [bad-input], [not-interpreted], [out-of-bounds],
        [read-only], [bad-step] or [bad-cast].
        """
        op = self.functions.get(name)
        if op is None or not op.body.blocks:
            known = ", ".join(f"@{n}" for n, f in self.functions.items() if f.body.blocks)
            raise UopcError(
                "no-function",
                f"there is no function @{name} with a body",
                hint=f"there are {known}" if known else "the module has no functions",
            )
        types = [a.type for a in op.body.blocks[0].args]
        if len(types) != len(arguments):
            raise UopcError(
                "bad-input", f"@{name} takes {len(types)} arguments, got {len(arguments)}"
            )
        arrays = Arrays()
        values = [
            (_argument(arrays, name, k, type_, value), True)
            for k, (type_, value) in enumerate(zip(types, arguments, strict=True))
        ]
        with np.errstate(all="ignore"):
            try:
                results = run_function(self.machine, name, values, None)
            except NotTogetherError as stop:
                (inner,) = stop.args
                raise bad_program(
                    "not-interpreted", f"'{inner.name}' differs between iterations", inner
                ) from stop
            except RecursionError as error:
                raise UopcError(
                    "nesting-too-deep",
                    f"@{name} calls functions, or nests loops, deeper than can be interpreted",
                    hint="does a function call itself without end?",
                ) from error
            except MemoryError as error:
                raise UopcError(
                    "out-of-memory",
                    f"memory ran out while @{name} was interpreted",
                    hint="interpret a smaller program",
                ) from error
        return [v.array if isinstance(v, MemRef) else v for v, _ in results]

    def launch(
        self, kernel: str, grid: Extents, block: Extents, arguments: Sequence[Any], op: Operation
    ) -> None:
        """Run a gpu.func, named MODULE::KERNEL, as `run` does a function; `op` launches it."""
        function = self.machine.functions.get(kernel)
        if not isinstance(function, gpu.FuncOp):
            raise bad_program("not-interpreted", f"there is no gpu.func {kernel}", op)
        arrays = Arrays()
        types = function.function_type.inputs.data
        values = [
            _argument(arrays, kernel, k, type_, value)
            for k, (type_, value) in enumerate(zip(types, arguments, strict=True))
        ]
        with np.errstate(all="ignore"):
            run_kernel(self.machine, function, kernel, (grid, block), values, op)

    def elementwise(self, name: str, arrays: Sequence[Array]) -> list[Array]:
        """Call a function of numbers once for each element of arrays, which are broadcast."""
        together = np.broadcast_arrays(*arrays)
        shape = together[0].shape
        values = [(np.ascontiguousarray(a).reshape(-1), False) for a in together]
        lanes = Lanes(None, np.zeros(int(np.prod(shape, dtype=np.int64)), np.int64))
        if not lanes.count:
            types = self.functions[name].function_type.outputs.data
            return [np.zeros(shape, row_of(type_).numpy) for type_ in types]
        results = run_function(self.machine, name, values, lanes)
        return [spread(v, lanes.count, 0).reshape(shape) for v, _ in results]


def run_linear(module: ModuleOp, name: str, arguments: Sequence[Any]) -> list[Any]:
    """Run one function of a module once; see LinearProgram.run."""
    return LinearProgram(module).run(name, arguments)


def _compile(machine: Machine, name: str) -> CompiledFunction:
    op = machine.functions.get(name)
    if not isinstance(op, func.FuncOp | gpu.FuncOp) or not op.body.blocks:
        raise UopcError(
            "not-interpreted",
            f"@{name} is called and has no body",
            hint="only functions of the module can be called",
        )
    if len(op.body.blocks) != 1:
        raise bad_program(
            "not-interpreted",
            f"@{name} has {len(op.body.blocks)} blocks",
            op,
            "blocks that branch to each other are not interpreted: use scf",
        )
    compiler = Compiler(machine, HANDLERS, op)
    body = compiler.block(op.body.blocks[0])
    return CompiledFunction(name, body, len(compiler.slots), compiler.constants)


def _global(op: memref.GlobalOp) -> MemRef:
    type_ = op.type
    row, shape = row_of_memref(type_), type_.get_shape()
    if isinstance(op.initial_value, DenseIntOrFPElementsAttr):
        dense = cast("DenseIntOrFPElementsAttr[Any]", op.initial_value)
        array = np.array(np.broadcast_to(dense_array(dense), shape))
    else:
        array = unwritten_memory(int(np.prod(shape, dtype=np.int64)), row).reshape(shape)
    array.flags.writeable = op.constant is None
    return Arrays().memref(array, shape)


def _argument(arrays: Arrays, name: str, position: int, type_: Attribute, value: Any) -> Any:
    if not isinstance(type_, MemRefType):
        row = row_of(type_)
        if vector_shape(type_):
            return np.asarray(value, row.numpy)
        return number_of(np.asarray(value).item(), row)
    buffer = cast("MemRefType[Attribute]", type_)
    row = row_of_memref(buffer)
    if not isinstance(value, np.ndarray):
        raise UopcError("bad-input", f"argument {position} of @{name} is no array")
    array = cast(Array, value)
    if array.dtype.itemsize != row.bytes or (array.dtype.kind == "b") != row.is_bool:
        raise UopcError(
            "bad-input",
            f"argument {position} of @{name} has dtype {array.dtype}, expected {row.numpy}",
        )
    if not array.flags.c_contiguous:
        raise UopcError("bad-input", f"argument {position} of @{name} is not contiguous")
    return arrays.memref(array, _shape_for(name, position, buffer, array.shape))


def _shape_for(
    name: str, position: int, type_: MemRefType[Attribute], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape that a memref type gives an array."""
    stated = [max(n, -1) for n in type_.get_shape()]  # -1 where it is dynamic
    if len(stated) == len(shape) and all(n in (-1, m) for n, m in zip(stated, shape, strict=True)):
        return shape
    # Another shape of as many elements: a flat form, or a view that leaves out axes of size 1.
    count = int(np.prod(shape, dtype=np.int64))
    dynamic = [k for k, n in enumerate(stated) if n < 0]
    known = int(np.prod([n for n in stated if n >= 0], dtype=np.int64))
    if len(dynamic) <= 1:
        fitted = tuple((count // known if known else 0) if n < 0 else n for n in stated)
        if int(np.prod(fitted, dtype=np.int64)) == count:
            return fitted
    raise UopcError(
        "bad-input",
        f"argument {position} of @{name} has shape {shape}, expected that of {type_}",
    )
