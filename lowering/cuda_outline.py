"""The kernels and device functions of a module, as functions that the printer of C takes.

    func.func @f(%x: memref<8xf32>) {                    func.func @f_kernel(%x: memref<8xf32>) {
      gpu.launch blocks(…) threads(%tx, …) {               %tx = gpu.thread_id x
        … memref.store %v, %x[%tx]                =>       … memref.store %v, %x[%tx]
        gpu.terminator                                     func.return
      }                                                  }
    }

A gpu.func of any gpu.module becomes such a function as it is. What a gpu.launch uses from around it
becomes a parameter; constants are written again inside. The module that is read stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import arith, func, gpu, memref
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_kernels import INDEX_BITS
from uopc.dialects.locations import nearest_location


@dataclass
class Kernel:
    """One kernel of a module."""

    symbol: str
    function: func.FuncOp
    """Its body, as a function."""
    block_size: tuple[int, int, int] | None = None
    """Threads of a block, where the module says so."""
    source: Operation | None = None
    """The gpu.func it comes from."""


@dataclass
class Outlined:
    """What a CUDA file is printed from."""

    module: ModuleOp
    """Globals, device functions and kernels."""
    kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])


def outline(module: ModuleOp) -> Outlined:
    """The kernels of a module. Raises UopcError [unsupported-in-cuda] if there are none."""
    return _Outline(module).outlined()


class _Outline:
    def __init__(self, module: ModuleOp) -> None:
        self.source = module
        self.ops: list[Operation] = []
        self.kernels: dict[str, Kernel] = {}
        self.taken: set[str] = set()
        self.functions: set[str] = set()

    def outlined(self) -> Outlined:
        for op in self.source.body.block.ops:
            if isinstance(op, memref.GlobalOp):
                self.keep(op.sym_name.data, op.clone())
            elif isinstance(op, gpu.ModuleOp):
                for inner in op.body.block.ops:
                    self.member(inner)
            elif isinstance(op, func.FuncOp):
                self.launches(op)
        if not self.kernels:
            raise UopcError(
                "unsupported-in-cuda",
                "the module has no kernel",
                hint="expected gpu.func … kernel in a gpu.module, or gpu.launch; "
                "run the pipeline uopc-cuda",
                location=nearest_location(self.source),
            )
        return Outlined(ModuleOp(self.ops), self.kernels)

    def keep(self, symbol: str, op: Operation) -> None:
        self.taken.add(symbol)
        self.ops.append(op)

    def fresh(self, symbol: str) -> str:
        name, number = symbol, 0
        while name in self.taken:
            number += 1
            name = f"{symbol}_{number}"
        return name

    def member(self, op: Operation) -> None:
        """An op of a gpu.module."""
        if isinstance(op, gpu.FuncOp):
            self.gpu_function(op)
        elif isinstance(op, func.FuncOp):
            if op.sym_name.data not in self.functions:
                self.functions.add(op.sym_name.data)
                copy = op.clone()
                copy.properties["sym_visibility"] = StringAttr("private")
                self.keep(op.sym_name.data, copy)
        else:
            self.keep("", op.clone())  # the printer says what it does not take

    def gpu_function(self, op: gpu.FuncOp) -> None:
        body = op.body.clone()
        block = body.blocks[0]
        last = block.last_op
        if isinstance(last, gpu.ReturnOp):
            values = list(last.args)
            last.detach()
            block.add_op(func.ReturnOp(*values))
            last.erase()
        symbol = op.sym_name.data if op.kernel is None else self.fresh(op.sym_name.data)
        made = _function(symbol, op.function_type, body, op)
        self.keep(symbol, made)
        if op.kernel is not None:
            known: Any = op.known_block_size
            size = tuple(known.get_values()) if isinstance(known, DenseArrayBase) else None
            self.kernels[symbol] = Kernel(symbol, made, size, op)  # pyright: ignore[reportArgumentType] -- three numbers

    # gpu.launch

    def launches(self, op: func.FuncOp) -> None:
        for inner in op.walk():
            if isinstance(inner, gpu.LaunchOp):
                self.launch(inner, self.fresh(f"{op.sym_name.data}_kernel"))

    def launch(self, op: gpu.LaunchOp, symbol: str) -> None:
        if len(op.body.blocks) != 1:
            raise UopcError(
                "unsupported-in-cuda",
                f"'gpu.launch' for {symbol} has branches between blocks",
                hint="keep structured control flow: scf.if, scf.for, scf.while",
                location=nearest_location(op),
            )
        captured = _captured(op)
        constants = [v for v in captured if isinstance(v.owner, arith.ConstantOp)]
        parameters = [v for v in captured if v not in constants]
        block = Block(arg_types=[v.type for v in parameters])
        mapping: dict[SSAValue, SSAValue] = dict(zip(parameters, block.args, strict=True))
        for old, new in mapping.items():
            new.name_hint = old.name_hint
        for old in constants:
            assert isinstance(old.owner, Operation)
            copy = old.owner.clone()
            block.add_op(copy)
            mapping[old] = copy.results[0]
        source = op.body.blocks[0]
        # Block ids, thread ids, grid sizes, block sizes: the order of MLIR's gpu.launch.
        kinds = (gpu.BlockIdOp, gpu.ThreadIdOp, gpu.GridDimOp, gpu.BlockDimOp)
        for position, argument in enumerate(source.args):
            axis = list(gpu.DimensionEnum)[position % 3]
            number = kinds[position // 3](gpu.DimensionAttr(axis))
            block.add_op(number)
            number.result.name_hint = argument.name_hint
            mapping[argument] = number.result
        for inner in source.ops:
            if not isinstance(inner, gpu.TerminatorOp):
                block.add_op(inner.clone(mapping))
        block.add_op(func.ReturnOp())
        type_ = FunctionType.from_lists([v.type for v in parameters], [])
        made = _function(symbol, type_, Region(block), op)
        self.keep(symbol, made)
        self.kernels[symbol] = Kernel(symbol, made)


def _captured(op: gpu.LaunchOp) -> list[SSAValue]:
    """What a launch's body uses from outside, in the order of first use."""
    inside: set[SSAValue] = set()
    found: dict[SSAValue, None] = {}
    for region in op.regions:
        for block in region.blocks:
            inside.update(block.args)
        for inner in region.walk():
            inside.update(inner.results)
            for nested in inner.regions:
                for block in nested.blocks:
                    inside.update(block.args)
    for region in op.regions:
        for inner in region.walk():
            found.update(dict.fromkeys(o for o in inner.operands if o not in inside))
    return list(found)


def _function(symbol: str, type_: FunctionType, body: Region, like: Operation) -> func.FuncOp:
    made = func.FuncOp(symbol, type_, body, visibility="private")
    attributes = like.attributes.get("arg_attrs") or like.properties.get("arg_attrs")
    if attributes is not None:
        made.properties["arg_attrs"] = attributes
    for name in ("uopc.doc", INDEX_BITS):
        fact = like.attributes.get(name)
        if fact is not None:
            made.attributes[name] = fact
    made.location = like.location
    return made
