"""kernelize: cut a tensor function into kernels, and write the plan that launches them.

    func.func @f(%x : tensor<4x8xf32>) -> tensor<4xf32> {
      %e = utensor.exp %x : tensor<4x8xf32>
      %s = utensor.reduce add %e axes [1] : tensor<4x8xf32> -> tensor<4xf32>
      %r = utensor.sqrt %s : tensor<4xf32>
      func.return %r : tensor<4xf32>
    }

becomes

    ukernel.plan @f ins(%x : memref<4x8xf32>) attributes {input_names = ["x"]} {
      %out0 = ukernel.output : memref<4xf32>
      %tmp0 = ukernel.temp : memref<4xf32>
      ukernel.launch @r_4 ins(%x : memref<4x8xf32>) outs(%tmp0 : memref<4xf32>)
      ukernel.launch @e_4 ins(%tmp0 : memref<4xf32>) outs(%out0 : memref<4xf32>)
      ukernel.return %out0 : memref<4xf32>
    }
    ukernel.kernel @r_4 … { read, exp, reduce, write }
    ukernel.kernel @e_4 … { read, sqrt, write }

Where a value gets a buffer is told in kernel_cut/points.py, what `balance` weighs in
kernel_cut/costs.py. All other ops are cloned into each
kernel that needs them: elementwise and movement ops, constants of one value, iota, gather. A
constant of many values is a buffer of the plan. With `multi-output` a kernel may write several
values of equal sizes: kernel_cut/multi_output.py. A result that is an argument, or another result,
perhaps under another shape, is that buffer and costs no kernel.

scf.while and scf.if become ukernel.while and ukernel.if: kernel_cut/control.py says which, and
kernel_cut/storage.py what is written in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from uopc.dialects import kernel as ukernel
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import atom_expr
from uopc.dialects.kernel_signature import buffer_type
from uopc.dialects.locations import nearest_location
from uopc.dialects.sizes import Size, sizes_of
from uopc.dialects.source_text import printable
from uopc.passes.kernel_cut.costs import BALANCE
from uopc.passes.kernel_cut.graph import TensorFunction, is_tensor_function
from uopc.passes.kernel_cut.planner import BlockPlanner, Shared
from uopc.passes.kernel_cut.points import FuseReduce
from uopc.passes.kernel_cut.storage import cut_block
from uopc.passes.symbol_names import SymbolNames


@dataclass(frozen=True)
class KernelizePass(ModulePass):
    """Cut tensor functions into kernels over buffers, launched by a plan.

    Raises UopcError [not-a-tensor-function], [unsupported-op], [size-bounds-differ],
    [bad-input-name] or [bad-option].
    """

    name = "kernelize"
    level_after: ClassVar[str] = "ukernel"

    fuse_reduce: FuseReduce = "none"
    """Whether reductions become part of the kernels that read them; see kernel_cut/points.py."""
    balance: int = BALANCE
    """For `auto`: operations that the machine does in the time in which one byte travels to memory
    or back. A positive integer; see kernel_cut/costs.py."""
    multi_output: bool = False
    """Whether values of equal sizes made from the same buffers share a kernel; see
    kernel_cut/multi_output.py."""
    donated: bool = False
    """Whether results may take the place of arguments with the attribute `uopc.donated`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.balance < 1:
            raise UopcError(
                "bad-option",
                f"balance: expected a positive integer, got {self.balance}",
                hint=f"{BALANCE} is measured: operations in the time in which one byte travels",
            )
        symbols = SymbolNames(op)
        for each in list(op.body.block.ops):
            if isinstance(each, func.FuncOp) and is_tensor_function(each):
                plan, kernels = _Planner(each, self, symbols).build()
                Rewriter.replace_op(each, [plan, *kernels], [])


class _Planner:
    """Builds the plan of one function."""

    def __init__(self, function: func.FuncOp, options: KernelizePass, symbols: SymbolNames) -> None:
        self.options = options
        self.function = TensorFunction(function)
        if options.donated:
            arguments = function.body.block.args
            self.function.donated.update(arguments[k] for k in donated_arguments(function))
        self.cut = cut_block(
            self.function,
            options.fuse_reduce,
            options.balance,
            multi_output=options.multi_output,
        )
        self.outputs: dict[SSAValue, ukernel.OutputOp] = {}
        self.block = Block(arg_types=[IndexType() for _ in self.function.symbols])
        for symbol, argument in zip(self.function.symbols, self.block.args, strict=True):
            argument.name_hint = symbol.name
        sizes = dict(zip(self.function.symbols, self.block.args, strict=True))
        self.shared = Shared(symbols, sizes)
        self.buffers = self.shared.buffers
        for argument in self.function.arguments:
            tensor = _tensor(argument)
            buffer = buffer_type(tensor.element_type, sizes_of(tensor))
            self.buffers[argument] = self.block.insert_arg(buffer, len(self.block.args))
            self.buffers[argument].name_hint = argument.name_hint

    def build(self) -> tuple[ukernel.PlanOp, list[ukernel.KernelOp]]:
        """The plan and its kernels, in the order of their first launches."""
        self._make_outputs()
        destinations = [(value, output.result) for value, output in self.outputs.items()]
        steps = BlockPlanner(self.shared, self.cut, destinations).plan()
        returned = [self._returned(value, steps) for value in self.function.results]
        self.block.add_ops([*self.shared.constant_ops, *self.outputs.values(), *steps])
        self.block.add_op(ukernel.ReturnOp(returned))
        return self._plan(), self.shared.kernels

    def _make_outputs(self) -> None:
        for position, value in enumerate(self.function.results):
            base = self.function.base_of(value)
            if base in self.outputs or not self.function.computes(base):
                continue
            if self.function.computes(self.cut.root(base)):  # else it takes over an argument
                tensor = _tensor(base)
                output = ukernel.OutputOp(tensor.element_type, sizes_of(tensor))
                output.result.name_hint = f"out{position}"
                output.location = cast(Operation, base.owner).location
                self.outputs[base] = output

    def _returned(self, value: SSAValue, steps: list[Operation]) -> SSAValue:
        """The buffer of a result, under the result's shape."""
        base = self.function.base_of(value)
        output = self.outputs.get(base)
        buffer = self.buffers[base] if output is None else output.result
        sizes = sizes_of(_tensor(value))
        if sizes == sizes_of(_tensor(base)):
            return buffer
        view = ukernel.ViewOp(buffer, sizes)
        view.location = cast(Operation, value.owner).location
        steps.append(view)
        return view.result

    def _plan(self) -> ukernel.PlanOp:
        function = self.function.function
        sizes: list[Sequence[Size]] = [
            sizes_of(_tensor(argument)) for argument in self.function.arguments
        ]
        plan = ukernel.PlanOp(
            function.sym_name.data,
            [atom_expr(s) for s in self.function.symbols],
            sizes,
            self.block,
            input_names(function),
        )
        if self.options.donated and (donated := donated_arguments(function)):
            plan.properties["donated"] = ArrayAttr([IntegerAttr(k, i64) for k in donated])
        plan.location = function.location
        plan.attributes.update(function.attributes)
        return plan


def _tensor(value: SSAValue) -> TensorType[Attribute]:
    return cast("TensorType[Attribute]", value.type)


def donated_arguments(function: func.FuncOp) -> list[int]:
    """The positions of the arguments with the attribute `uopc.donated`: the caller needs them no
    more, so that a result may take their place."""
    given: Sequence[DictionaryAttr] = function.arg_attrs.data if function.arg_attrs else ()
    return [k for k, attributes in enumerate(given) if "uopc.donated" in attributes.data]


def input_names(function: func.FuncOp) -> list[str]:
    """What the inputs are called: attribute `uopc.name`, or the name in the text, or `in0`.

    Raises UopcError [bad-input-name] for a `uopc.name` that is no string.
    """
    given: Sequence[DictionaryAttr] = function.arg_attrs.data if function.arg_attrs else ()
    names: list[str] = []
    for position, argument in enumerate(function.body.block.args):
        name = given[position].data.get("uopc.name") if position < len(given) else None
        if name is None:
            names.append(argument.name_hint or f"in{position}")
        elif isinstance(name, StringAttr):
            names.append(name.data)
        else:
            raise UopcError(
                "bad-input-name",
                f"uopc.name of argument {position} of @{printable(function.sym_name.data)}: "
                f"expected a string, got {printable(str(name))[:100]}",
                location=nearest_location(function),
                hint='write {uopc.name = "x"}',
            )
    return names
