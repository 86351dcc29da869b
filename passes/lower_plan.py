"""lower-plan: a plan becomes the public function that calls the kernels.

    ukernel.plan @f ins(%x : memref<4x8xf32>) attributes {input_names = ["x"], workspace = 64} {
      %out0 = ukernel.output : memref<4x8xf32>
      %tmp0 = ukernel.temp at 0 : memref<4xf32>
      ukernel.launch @r_4 ins(%x : …) outs(%tmp0 : …)
      ukernel.launch @e_4_8 ins(%x, %tmp0 : …) outs(%out0 : …)
      ukernel.return %out0 : memref<4x8xf32>
    }

becomes

    func.func @f(%x : memref<4x8xf32> {llvm.noalias, llvm.readonly, uopc.name = "x"},
                 %out0 : memref<4x8xf32> {llvm.noalias}, %workspace : memref<64xi8>) {
      %c0 = arith.constant 0 : index
      %tmp0 = memref.view %workspace[%c0][] : memref<64xi8> to memref<4xf32>
      func.call @r_4(%x, %tmp0) : (memref<4x8xf32>, memref<4xf32>) -> ()
      func.call @e_4_8(%x, %tmp0, %out0) : …
      func.return
    }

Arguments are the sizes, the inputs, the outputs in the order of the results, and the workspace
if there are temporaries. A result that is an input, or an output that an earlier result has, is
no argument. An input that the plan writes over is `uopc.donated` instead of read-only, and
`uopc.result` tells which result is there afterwards. Constants are private globals. Integers are
signless, and the argument of a buffer of unsigned ones carries `uopc.unsigned`.

ukernel.while and ukernel.if become scf.while, whose carried values are buffers, and scf.if.

It runs after plan-memory, and after linearize has made functions of the kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from xdsl.context import Context
from xdsl.dialects import func, gpu, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from uopc.dialects import kernel as ukernel
from uopc.dialects import kernel_control as control
from uopc.dialects.element_types import element_type
from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_kernels import gpu_kernels
from uopc.dialects.index_expr import atom_expr
from uopc.dialects.kernel import KernelOp, PlanOp, linear_type
from uopc.dialects.locations import nearest_location
from uopc.dialects.sizes import Size, element_count
from uopc.dialects.source_text import printable
from uopc.passes.gpu_launch import launch_op
from uopc.passes.index_arith import IndexArith
from uopc.passes.plan_storage import (
    changed_inputs,
    element_bytes,
    returned_buffers,
    returned_outputs,
    storage_bytes,
    storage_of,
)
from uopc.passes.range_input import check_no_tensor_function
from uopc.passes.scalar_builder import ScalarBuilder
from uopc.passes.symbol_names import SymbolNames

Buffer = MemRefType[Attribute]


@dataclass(frozen=True)
class LowerPlanPass(ModulePass):
    """Turn plans into functions that call their kernels.

    Raises UopcError [not-over-ranges], [kernel-not-linear], [temp-not-placed] or [bad-result].
    """

    name = "lower-plan"
    level_after: ClassVar[str] = "linear"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_no_tensor_function(op, "kernelize, rangeify and linearize", self.name)
        plans = [p for p in op.body.block.ops if isinstance(p, PlanOp)]
        for each in op.body.block.ops:
            if isinstance(each, KernelOp):
                raise UopcError(
                    "kernel-not-linear",
                    f"kernel @{printable(each.sym_name.data)} is not lowered to loops",
                    location=nearest_location(each),
                    hint="run rangeify and linearize before lower-plan",
                )
        constants = _Constants(op)
        on_gpu = gpu_kernels(op)
        for plan in plans:
            function = _PlanFunction(plan, constants, on_gpu).build()
            constants.insert_new(plan)
            Rewriter.replace_op(plan, function, [])


class _Constants:
    """Globals for the constants of all plans, one for each distinct value."""

    def __init__(self, module: ModuleOp) -> None:
        self.names = SymbolNames(module)
        self.globals: dict[Attribute, memref.GlobalOp] = {}
        self._new: list[memref.GlobalOp] = []

    def global_of(self, op: ukernel.ConstantOp) -> memref.GlobalOp:
        found = self.globals.get(op.value)
        if found is None:
            buffer = cast(Buffer, linear_type(op.result.type))
            tensor = TensorType(buffer.element_type, buffer.get_shape())
            value = DenseIntOrFPElementsAttr(cast(Any, tensor), op.value.data)
            found = memref.GlobalOp.get(
                StringAttr(self.names.unique(f"const{len(self.globals)}")),
                buffer,
                value,
                constant=UnitAttr(),
            )
            found.location = op.location
            self.globals[op.value] = found
            self._new.append(found)
        return found

    def insert_new(self, anchor: Operation) -> None:
        """Put the globals made since the last call before an op."""
        cast(Block, anchor.parent).insert_ops_before(self._new, anchor)
        self._new = []


class _PlanFunction:
    """Builds the function of one plan."""

    def __init__(
        self,
        plan: PlanOp,
        constants: _Constants,
        on_gpu: Mapping[str, tuple[str, gpu.FuncOp]],
    ) -> None:
        self.plan = plan
        self.constants = constants
        self.on_gpu = on_gpu
        self.block = Block()
        self.attributes: list[DictionaryAttr] = []
        self.buffers: dict[SSAValue, SSAValue] = {}
        for old, symbol in zip(plan.size_arguments, plan.symbol_vars, strict=True):
            self.buffers[old] = self._argument(IndexType(), symbol.name, {})
        self.sizes = {
            symbol: self.buffers[old]
            for old, symbol in zip(plan.size_arguments, plan.symbol_vars, strict=True)
        }
        self._add_buffers()
        self.index = IndexArith(ScalarBuilder(self.block), self.sizes)

    def build(self) -> func.FuncOp:
        """The function. The plan is left as it is."""
        self._run(self.plan.block)
        inputs = [a.type for a in self.block.args]
        function = func.FuncOp(
            self.plan.sym_name.data,
            FunctionType.from_lists(inputs, []),
            Region(self.block),
            arg_attrs=ArrayAttr(self.attributes),
        )
        function.location = self.plan.location
        function.attributes.update(self.plan.attributes)
        return function

    def _run(self, block: Block) -> None:
        """The ops of a block of the plan."""
        for op in block.ops:
            match op:
                case ukernel.ConstantOp():
                    symbol = self.constants.global_of(op)
                    self._define(op, memref.GetGlobalOp(symbol.sym_name.data, symbol.type))
                case ukernel.TempOp():
                    self._define(op, self._view_of_workspace(op))
                case ukernel.ViewOp():
                    self._view(op)
                case ukernel.LaunchOp():
                    self._launch(op)
                case control.WhileOp():
                    self._while(op)
                case control.IfOp():
                    self._if(op)
                case control.ConditionOp():
                    taken = [self.buffers[a] for a in block.args]
                    self._append(op, scf.ConditionOp(self._flag(op, op.flag), *taken))
                case control.YieldOp():
                    self._append(op, scf.YieldOp(*(self.buffers[b] for b in op.buffers)))
                case ukernel.ReturnOp():
                    self._append(op, func.ReturnOp())
                case _:  # outputs are arguments
                    pass

    def _flag(self, op: Operation, flag: SSAValue) -> SSAValue:
        load = memref.LoadOp.get(self.buffers[flag], [])
        self._append(op, load)
        return load.res

    def _region(self, old: Block) -> Block:
        """A block of the plan inside a loop or branch, as a block of the function."""
        new = Block(arg_types=[linear_type(a.type) for a in old.args])
        for before, after in zip(old.args, new.args, strict=True):
            after.name_hint = before.name_hint
            self.buffers[before] = after
        outer, self.block = self.block, new
        index, self.index = self.index, IndexArith(ScalarBuilder(new), self.sizes)
        self._run(old)
        self.block, self.index = outer, index
        return new

    def _while(self, op: control.WhileOp) -> None:
        regions = [Region(self._region(r.block)) for r in (op.before, op.body)]
        carried = [self.buffers[b] for b in op.carried]
        loop = scf.WhileOp(carried, [v.type for v in carried], *regions)
        self._append(op, loop)
        for old, new in zip(op.results, loop.results, strict=True):
            new.name_hint = old.name_hint
            self.buffers[old] = new

    def _if(self, op: control.IfOp) -> None:
        flag = self._flag(op, op.flag)
        yes, no = (Region(self._region(r.block)) for r in (op.yes, op.no))
        self._append(op, scf.IfOp(flag, [], yes, no))

    def _launch(self, op: ukernel.LaunchOp) -> None:
        """A call of the kernel's function, or the launch of one that is for a GPU."""
        operands = [self.buffers[o] for o in op.operands]
        if not op.kernel.nested_references.data:
            self._append(op, func.CallOp(op.kernel.string_value(), operands, []))
            return
        container, kernel = self.on_gpu[op.kernel.nested_references.data[-1].data]
        symbols = dict(zip(self.plan.size_arguments, self.plan.symbol_vars, strict=True))
        sizes = [atom_expr(symbols[s]) for s in op.sizes]
        self._append(op, launch_op(kernel, container, sizes, operands, self.index))

    def _add_buffers(self) -> None:
        plan = self.plan
        names = plan.input_names
        changed = changed_inputs(plan)
        returned = [storage_of(value) for value in returned_buffers(plan)]
        results = {value: k for k, value in reversed(list(enumerate(returned)))}
        for position, old in enumerate(plan.buffers):
            name = names.data[position] if names else StringAttr(f"in{position}")
            attributes: dict[str, Attribute] = {"llvm.readonly": UnitAttr(), "uopc.name": name}
            if position in changed:
                attributes = {"uopc.donated": UnitAttr(), "uopc.name": name}
                if (result := results.get(old)) is not None:
                    attributes["uopc.result"] = IntegerAttr(result, i64)
            self.buffers[old] = self._buffer_argument(old, old.name_hint, attributes)
        for position, output in returned_outputs(plan).items():
            old = output.result
            self.buffers[old] = self._buffer_argument(old, f"out{position}", {})
        if any(isinstance(op, ukernel.TempOp) for op in plan.body.walk()):
            buffer = MemRefType(i8, [plan.workspace.value.data])
            self.workspace = self._argument(buffer, "workspace", {})

    def _buffer_argument(
        self, old: SSAValue, hint: str | None, attributes: dict[str, Attribute]
    ) -> SSAValue:
        attributes = {"llvm.noalias": UnitAttr(), **attributes}
        row = element_type(cast(Buffer, old.type).element_type)
        if row is not None and row.kind == "unsigned":
            attributes["uopc.unsigned"] = UnitAttr()
        return self._argument(linear_type(old.type), hint, attributes)

    def _argument(
        self, type_: Attribute, hint: str | None, attributes: dict[str, Attribute]
    ) -> SSAValue:
        argument = self.block.insert_arg(type_, len(self.block.args))
        argument.name_hint = hint
        self.attributes.append(DictionaryAttr(attributes))
        return argument

    def _append(self, old: Operation, new: Operation) -> None:
        new.location = old.location
        self.block.add_op(new)

    def _define(self, old: Operation, new: Operation) -> None:
        self._append(old, new)
        new.results[0].name_hint = old.results[0].name_hint
        self.buffers[old.results[0]] = new.results[0]

    def _view_of_workspace(self, op: ukernel.TempOp) -> memref.ViewOp:
        name = printable(self.plan.sym_name.data)
        if op.offset is None:
            raise UopcError(
                "temp-not-placed",
                f"a temporary of @{name} has no place in the workspace",
                location=nearest_location(op),
                hint="run plan-memory before lower-plan",
            )
        start, size = op.offset.value.data, storage_bytes(op)
        limit = self.plan.workspace.value.data
        if not 0 <= start <= start + size <= limit or start % element_bytes(op.result):
            raise UopcError(
                "temp-not-placed",
                f"a temporary of @{name} lies at byte {start} and has {size} bytes: expected a "
                f"multiple of its element's size, and its end within the workspace of {limit}",
                location=nearest_location(op),
                hint="let plan-memory place the temporaries",
            )
        buffer = cast(Buffer, linear_type(op.result.type))
        sizes = self._dynamic_sizes(buffer, op.sizes.data)
        return memref.ViewOp(self.workspace, self.index.constant(start), sizes, buffer)

    def _dynamic_sizes(self, buffer: Buffer, sizes: Sequence[Size]) -> list[SSAValue]:
        """The value of the one size of a linear buffer that may be dynamic: the first."""
        if DYNAMIC_INDEX not in buffer.get_shape():
            return []
        flat = buffer.get_num_dims() != len(sizes)
        return [self.index.index(element_count(sizes) if flat else sizes[0])]

    def _view(self, op: ukernel.ViewOp) -> None:
        """A view that a kernel takes; one that is only returned or viewed again is nothing."""
        idle = ukernel.ReturnOp | ukernel.ViewOp
        if all(isinstance(use.operation, idle) for use in op.result.uses):
            return
        source = self.buffers[storage_of(op.buffer)]
        buffer = cast(Buffer, linear_type(op.result.type))
        if source.type == buffer:
            self.buffers[op.result] = source
            return
        shape = buffer.get_shape()
        dynamic = iter(self._dynamic_sizes(buffer, op.sizes.data))
        sizes: list[SSAValue | int] = [next(dynamic) if n == DYNAMIC_INDEX else n for n in shape]
        strides = [1] * len(shape)
        for axis in reversed(range(len(shape) - 1)):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
        self._define(op, memref.ReinterpretCastOp.from_dynamic(source, [0], sizes, strides, buffer))
