"""Reference semantics of a ukernel.plan, whose kernels are at any level.

A kernel holds utensor ops (run here), or ranges (loop.py), or is a function of loops (linear.py).
A buffer is a numpy array of its memref's shape. Temporaries start out as a pattern of bytes that
is no likely number: who reads one before it is written sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import gpu
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from uopc.dialects import kernel as k
from uopc.dialects.element_types import ElementType, element_type
from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_kernels import block_of, gpu_kernels, grid_of
from uopc.dialects.index_expr import as_expr
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.numbers import dense_array
from uopc.dialects.op_text import op_text
from uopc.dialects.rounding import Array
from uopc.dialects.sizes import Size, tensor_type
from uopc.interpreters.symbols import bind_symbols, concrete
from uopc.interpreters.tensor import Symbols, check_dtypes, run_block

if TYPE_CHECKING:
    from uopc.interpreters.linear import LinearProgram

UNWRITTEN = 0xA5
"""The byte that fills what was not written."""

OnLaunch = Callable[[k.LaunchOp, Sequence[Array]], None]


def find_plan(module: ModuleOp, name: str) -> k.PlanOp:
    """The plan with this name. Raises UopcError [no-function] if there is none."""
    plans = [op for op in module.body.block.ops if isinstance(op, k.PlanOp)]
    for plan in plans:
        if plan.sym_name.data == name:
            return plan
    known = ", ".join(f"@{plan.sym_name.data}" for plan in plans)
    raise UopcError(
        "no-function",
        f"there is no plan @{name}",
        hint=f"there are {known}" if known else "the module has no plans",
    )


def run_plan(
    module: ModuleOp,
    name: str,
    inputs: Sequence[Array],
    symbols: Symbols | None = None,
    *,
    on_launch: OnLaunch | None = None,
) -> list[Array]:
    """Run a ukernel.plan on arrays; the arrays that it returns.

    Inputs and sizes are as for `run_function`. `on_launch` is told of each launch that is done,
    with its buffers, inputs first.

    Raises UopcError [bad-input], [index-unbound], [symbol-out-of-bounds], [no-function], and
    [not-interpreted] for an op that has no meaning here.
    """
    plan = find_plan(module, name)
    arrays = [np.asarray(array) for array in inputs]
    if plan.donated is not None:  # the caller keeps what it has all the same
        for position in plan.donated.data:
            arrays[position.value.data] = arrays[position.value.data].copy()
    sizes = [s.data for s in plan.buffer_sizes.data]
    types = [
        tensor_type(buffer_of(value).element_type, tuple(s))
        for value, s in zip(plan.buffers, sizes, strict=True)
    ]
    check_dtypes(name, types, arrays)
    bound = bind_symbols(name, sizes, [array.shape for array in arrays], symbols or {})
    sizes_given = [concrete((s,), bound)[0] for s in plan.symbols.data]
    machine = _Plan(module, bound, on_launch)
    results = run_block(plan.block, [*sizes_given, *arrays], bound, machine.run)
    return [np.array(array) for array in results]


class _Plan:
    """The ops of a plan, run on arrays."""

    def __init__(self, module: ModuleOp, symbols: Symbols, on_launch: OnLaunch | None) -> None:
        self.module = module
        self.symbols = symbols
        self.on_launch = on_launch
        self.kernels: dict[str, k.KernelOp | FuncOp | gpu.FuncOp] = {
            op.sym_name.data: op
            for op in module.body.block.ops
            if isinstance(op, k.KernelOp | FuncOp)
        }
        self.kernels.update((name, op) for name, (_, op) in gpu_kernels(module).items())

    def run(self, op: Operation, operands: list[Any]) -> Sequence[Any]:
        match op:
            case k.TempOp() | k.OutputOp():
                return (self._storage(op),)
            case k.ConstantOp():
                return (dense_array(op.value),)
            case k.ViewOp():
                return (operands[0].reshape(concrete(op.sizes.data, self.symbols)),)
            case k.LaunchOp():
                self._launch(op, operands)
                return ()
            case k.ReturnOp():
                return ()
            case _:
                raise _unknown(op, "in a plan")

    def _storage(self, op: k.StorageOp) -> Array:
        row = _row(op.result.type)
        return unwritten(op.sizes.data, row, self.symbols)

    def _launch(self, op: k.LaunchOp, operands: list[Any]) -> None:
        nested = op.kernel.nested_references.data
        kernel = self.kernels[nested[-1].data if nested else op.kernel.string_value()]
        count = len(op.sizes)
        buffers: list[Array] = []
        for position, array in enumerate(operands[count:]):
            view = array.view()
            if position < len(op.inputs):
                view.flags.writeable = False
            buffers.append(view)
        if isinstance(kernel, gpu.FuncOp):
            self._launch_on_gpu(op, kernel, operands[:count], buffers)
        elif isinstance(kernel, FuncOp):
            self._program.run(kernel.sym_name.data, [*operands[:count], *buffers])
        else:
            names = [s.name for s in kernel.symbol_vars]
            run_kernel(kernel, dict(zip(names, operands[:count], strict=True)), buffers)
        if self.on_launch is not None:
            self.on_launch(op, buffers)

    def _launch_on_gpu(
        self, op: k.LaunchOp, kernel: gpu.FuncOp, sizes: Sequence[int], buffers: Sequence[Array]
    ) -> None:
        extents = grid_of(kernel, [as_expr(int(n)) for n in sizes])
        x, y, z = (n if isinstance(n, int) else int(n.bounds[1]) for n in extents)
        container = op.kernel.root_reference.data
        self._program.launch(
            f"{container}::{kernel.sym_name.data}",
            (x, y, z),
            block_of(kernel),
            [*sizes, *buffers],
            op,
        )

    @cached_property
    def _program(self) -> LinearProgram:
        from uopc.interpreters.linear import LinearProgram

        return LinearProgram(self.module)


def run_kernel(kernel: k.KernelOp, sizes: Mapping[str, int], buffers: Sequence[Array]) -> None:
    """Run a kernel on its buffers, the inputs first, and write the outputs in place.

    Raises UopcError [not-interpreted] and [out-of-bounds].
    """
    from uopc.interpreters.loop import is_over_ranges, run_loop_kernel

    typed: list[Array] = []
    for array, argument in zip(buffers, kernel.buffers, strict=True):
        row = _row(argument.type)
        # A kernel's buffer may have another signedness than the plan's: the bits are shared.
        typed.append(array if array.dtype == row.numpy else array.view(row.numpy))
    run = run_loop_kernel if is_over_ranges(kernel) else run_tensor_kernel
    run(kernel, sizes, typed)


def unwritten(sizes: Sequence[Size], row: ElementType, symbols: Symbols) -> Array:
    """A buffer whose contents nobody has written yet."""
    shape = concrete(sizes, symbols)
    raw = np.full(int(np.prod(shape, dtype=np.int64)) * row.bytes, UNWRITTEN, np.uint8)
    return (raw & np.uint8(1) if row.is_bool else raw).view(row.numpy).reshape(shape)


def run_tensor_kernel(
    kernel: k.KernelOp, sizes: Mapping[str, int], buffers: Sequence[Array]
) -> None:
    """Run a kernel at the level of utensor: reads, tensor ops, writes.

    All reads see the buffers as they were before the launch. Raises UopcError [not-interpreted].
    """
    written: list[tuple[Array, Array]] = []

    def run(op: Operation, operands: list[Any]) -> Sequence[Any]:
        match op:
            case k.ReadOp():
                return (operands[0],)
            case k.WriteOp():
                written.append((operands[1], operands[0]))
                return ()
            case _:
                raise _unknown(op, "in a kernel at the level of utensor")

    arguments = [*(sizes[s.name] for s in kernel.symbol_vars), *buffers]
    run_block(kernel.block, arguments, sizes, run)
    values = [np.array(value) for _, value in written]  # a buffer may be read and written
    for (buffer, _), value in zip(written, values, strict=True):
        buffer[...] = value


def _row(type_: Any) -> ElementType:
    row = element_type(type_.element_type)
    assert row is not None, f"the verifier lets no {type_} through"
    return row


def _unknown(op: Operation, where: str) -> UopcError:
    return UopcError(
        "not-interpreted",
        f"'{op.name}' has no meaning {where}",
        op_text=op_text(op),
        hint="run the module before the pass that made this op, or by the next level's interpreter",
    )
