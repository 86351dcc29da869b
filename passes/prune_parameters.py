"""prune-parameters: a kernel takes what it uses, and a plan runs what is read.

    launch @k sizes(%n) ins(%x, %y) outs(%o)           launch @k ins(%y) outs(%o)
    ukernel.kernel @k sizes(%n) ins(%x, %y) outs(%o) {   ukernel.kernel @k ins(%y) outs(%o) {
      %a = uloop.load %x[%i]       // not used      =>     %b = uloop.load %y[%i]
      %b = uloop.load %y[%i]                               uloop.store %b, %o[%i]
      uloop.store %b, %o[%i]                             }
    }

Simplification may delete a read (an integer times 0), so parameters are derived from the body as
it is now, at whatever level, and every launch passes just those. Then launches whose results
nobody reads go, with the temps, views and constants that only they touched, and the kernels that
only they launched. A plan keeps all of its inputs: they are its interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, FunctionType, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects import kernel as ukernel
from uopc.dialects.kernel import KernelOp, LaunchOp, PlanOp
from uopc.dialects.kernel_control import IfOp, WhileOp
from uopc.dialects.sizes import SizesAttr, element_count_upper, symbols_in
from uopc.dialects.verification import walk_operations
from uopc.passes.dce import erase_dead_ops
from uopc.passes.kernel_cut.graph import sizes_attributes
from uopc.passes.plan_storage import element_bytes, storages_of

Kernel = KernelOp | FuncOp


@dataclass(frozen=True)
class PruneParametersPass(ModulePass):
    """Drop parameters that kernels do not use, and launches that nobody needs.

    A module without kernels stays as it is.
    """

    name = "prune-parameters"
    level_after: ClassVar[str] = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        plans = [p for p in op.body.block.ops if isinstance(p, PlanOp)]
        launched = _launched(plans)
        kernels = _kernels(op, launched)
        kept: dict[str, list[int]] = {}
        for kernel in kernels:
            erase_dead_ops(kernel)
            used = _used_parameters(kernel)
            if len(used) < len(_block(kernel).args):
                kept[kernel.sym_name.data] = used
                keep_parameters(kernel, used)
        for launch in _launches(plans):
            used = kept.get(launch.kernel.string_value())
            if used is not None:
                keep_operands(launch, used)
        for plan in plans:
            remove_dead_launches(plan)
        gone = launched - _launched(plans)
        for kernel in kernels:
            if kernel.sym_name.data in gone:
                op.body.block.erase_op(kernel)


def _launches(plans: Sequence[PlanOp]) -> list[LaunchOp]:
    return [op for plan in plans for op in plan.body.walk() if isinstance(op, LaunchOp)]


def _launched(plans: Sequence[PlanOp]) -> set[str]:
    return {launch.kernel.string_value() for launch in _launches(plans)}


def _kernels(module: ModuleOp, launched: set[str]) -> list[Kernel]:
    """The kernels, and the functions that linearize made of kernels: launched, never called."""
    called = {op.callee.string_value() for op in walk_operations(module) if isinstance(op, CallOp)}
    return [
        op
        for op in module.body.block.ops
        if isinstance(op, KernelOp)
        or (
            isinstance(op, FuncOp)
            and op.sym_name.data in launched - called
            and op.sym_visibility is not None
            and op.sym_visibility.data == "private"
            and len(op.body.blocks) > 0
        )
    ]


def _block(kernel: Kernel) -> Block:
    return cast(Block, kernel.body.blocks.first)


def _used_parameters(kernel: Kernel) -> list[int]:
    """The positions of the parameters that the body needs.

    In a KernelOp, a size is needed too where a type or an op's list of sizes mentions it.
    """
    used = {k for k, a in enumerate(_block(kernel).args) if a.first_use is not None}
    if isinstance(kernel, KernelOp) and kernel.symbols.data:
        offset = len(kernel.symbols.data)
        sizes: list[SizesAttr] = [
            s for k, s in enumerate(kernel.buffer_sizes.data) if k + offset in used
        ]
        for op in walk_operations(kernel):
            if op is not kernel:
                sizes.extend(sizes_attributes(op))
        needed = {symbol for s in sizes for symbol in symbols_in(s.data)}
        used.update(k for k, symbol in enumerate(kernel.symbol_vars) if symbol in needed)
    return sorted(used)


def keep_parameters(kernel: Kernel, used: Sequence[int]) -> None:
    """Drop the parameters of a kernel that are at none of some positions, and have no use."""
    block = _block(kernel)
    if isinstance(kernel, KernelOp):
        _keep_signature(kernel, used)
    elif kernel.arg_attrs is not None:
        kernel.properties["arg_attrs"] = ArrayAttr([kernel.arg_attrs.data[k] for k in used])
    kept = set(used)
    for position in reversed(range(len(block.args))):
        if position not in kept:
            block.erase_arg(block.args[position])
    if isinstance(kernel, FuncOp):
        inputs = [a.type for a in block.args]
        kernel.properties["function_type"] = FunctionType.from_lists(
            inputs, kernel.function_type.outputs.data
        )


def _keep_signature(kernel: KernelOp, used: Sequence[int]) -> None:
    """Restrict what a kernel says of its parameters to those used. Changes no argument."""
    kept = set(used)
    offset, buffers = len(kernel.symbols.data), kernel.buffers
    first_output = offset + kernel.inputs_count
    moved = kernel.bytes.value.data
    for k, buffer in enumerate(buffers):
        if k + offset not in kept:
            moved -= element_count_upper(kernel.sizes_of_buffer(k)) * element_bytes(buffer)
    outputs = sum(k >= first_output for k in used)
    kernel.properties["symbols"] = SizesAttr(
        tuple(s for k, s in enumerate(kernel.symbols.data) if k in kept)
    )
    kernel.properties["buffer_sizes"] = ArrayAttr(
        [s for k, s in enumerate(kernel.buffer_sizes.data) if k + offset in kept]
    )
    kernel.properties["outputs"] = IntegerAttr(outputs, i64)
    kernel.properties["bytes"] = IntegerAttr(max(moved, 0), i64)


def keep_operands(launch: LaunchOp, used: Sequence[int]) -> None:
    """Pass only the operands at some positions, in order. The launch is replaced."""
    sizes, inputs = len(launch.sizes), len(launch.inputs)
    groups: tuple[list[SSAValue], list[SSAValue], list[SSAValue]] = ([], [], [])
    operands = tuple(launch.operands)
    for k in used:
        groups[(k >= sizes) + (k >= sizes + inputs)].append(operands[k])
    new = LaunchOp(launch.kernel.string_value(), *groups)
    new.attributes.update(launch.attributes)
    new.location = launch.location
    block = cast(Block, launch.parent)
    block.insert_op_before(new, launch)
    block.erase_op(launch)


def remove_dead_launches(plan: PlanOp) -> None:
    """Remove the launches that write nothing that is read later, and buffers without a use.

    What is written to an output or an input counts as read, and so does what a loop or branch
    reads. Linear in the size of the plan.
    """
    read: set[SSAValue] = set()
    for op in reversed(list(plan.block.ops)):
        if isinstance(op, LaunchOp):
            if any(_is_wanted(o, read) for o in op.outputs):
                read.update(s for o in op.inputs for s in storages_of(o))
            else:
                plan.block.erase_op(op)
        elif isinstance(op, WhileOp | IfOp):
            for inner in op.walk():
                read.update(s for o in _read_by(inner) for s in storages_of(o))
        elif isinstance(op, ukernel.ReturnOp):
            read.update(s for o in op.operands for s in storages_of(o))
        elif isinstance(op, ukernel.ViewOp | ukernel.TempOp | ukernel.ConstantOp) and (
            op.result.first_use is None
        ):
            plan.block.erase_op(op)


def _read_by(op: Operation) -> Sequence[SSAValue]:
    return op.inputs if isinstance(op, LaunchOp) else op.operands


def _is_wanted(buffer: SSAValue, read: set[SSAValue]) -> bool:
    return any(s in read or not isinstance(s.owner, ukernel.TempOp) for s in storages_of(buffer))
