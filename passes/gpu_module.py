"""The gpu.module that holds a module's kernels, with the functions that they call."""

from __future__ import annotations

from xdsl.dialects import func, gpu
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.ir import Block, Region

from uopc.passes.symbol_names import SymbolNames


def add_to_gpu_module(module: ModuleOp, kernel: gpu.FuncOp) -> SymbolRefAttr:
    """Put a kernel into the module's gpu.module, which is made if need be; its symbol."""
    container = _container(module)
    container.body.block.add_op(kernel)
    _copy_callees(module, container, kernel)
    return SymbolRefAttr(container.sym_name.data, [kernel.sym_name.data])


def _container(module: ModuleOp) -> gpu.ModuleOp:
    for op in module.body.block.ops:
        if isinstance(op, gpu.ModuleOp):
            return op
    name = StringAttr(SymbolNames(module).unique("kernels"))
    made = gpu.ModuleOp.create(properties={"sym_name": name}, regions=[Region(Block())])
    first = module.body.block.first_op
    if first is None:
        module.body.block.add_op(made)
    else:
        module.body.block.insert_op_before(made, first)
    module.attributes["gpu.container_module"] = UnitAttr()
    return made


def _copy_callees(module: ModuleOp, container: gpu.ModuleOp, made: gpu.FuncOp) -> None:
    """Functions that a kernel calls stand beside it: a gpu.module sees no others."""
    there = {op.sym_name.data for op in container.body.block.ops if isinstance(op, func.FuncOp)}
    outside = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}
    for op in made.walk():
        if isinstance(op, func.CallOp):
            name = op.callee.string_value()
            if name not in there and name in outside:
                there.add(name)
                container.body.block.insert_op_before(outside[name].clone(), made)
