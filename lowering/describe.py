"""Reads the description that the runtime works from (plan.py) off a `ukernel.plan`.

The module is at the level of kernels, after plan-memory: what the plan launches are ukernel
kernels, whose bodies may be at any level, or the functions that linearize made of them. Of these
it is not known how much they compute, so that debug output shows no rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects import kernel as ukernel
from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp, LaunchOp, PlanOp
from uopc.dialects.kernel_control import WhileOp
from uopc.dialects.locations import location_of
from uopc.dialects.sizes import Size
from uopc.lowering.plan import Buffer, KernelCall, Plan, Symbol
from uopc.passes.plan_storage import (
    changed_inputs,
    returned_buffers,
    returned_outputs,
    storage_of,
    storages_of,
)

_STORES = frozenset({"memref.store", "vector.store"})


def describe_plans(module: ModuleOp) -> tuple[Plan, ...]:
    """All plans of a module, in order."""
    return tuple(describe_plan(p, module) for p in module.body.block.ops if isinstance(p, PlanOp))


def describe_plan(plan: PlanOp, module: ModuleOp) -> Plan:
    """The plan as plain data. Its symbolic sizes are index expressions.

    Raises UopcError [bad-result] for a plan that returns its temporaries or keeps an output, and
    [already-lowered] where it launches a kernel of a GPU that is linear already.
    """
    return _Description(plan, module).describe()


class _Description:
    def __init__(self, plan: PlanOp, module: ModuleOp) -> None:
        self.plan = plan
        self.kernels = {
            op.sym_name.data: op
            for op in module.body.block.ops
            if isinstance(op, KernelOp | FuncOp)
        }
        self.refs: dict[SSAValue, str] = {}

    def describe(self) -> Plan:
        plan = self.plan
        inputs = self._inputs()
        constants: list[Buffer] = []
        temps: list[Buffer] = []
        for op in plan.body.walk():
            if isinstance(op, ukernel.ConstantOp):
                ref = f"const{len(constants)}"
                constants.append(self._buffer(ref, op.result, op.value.type.get_shape()))
            elif isinstance(op, ukernel.TempOp):
                offset = -1 if op.offset is None else op.offset.value.data
                ref = f"tmp{len(temps)}"
                temps.append(self._buffer(ref, op.result, op.sizes.data, offset=offset))
        outputs = self._outputs()
        return Plan(
            name=plan.sym_name.data,
            symbols=tuple(Symbol(s.name, s.lower, s.upper) for s in plan.symbol_vars),
            inputs=inputs,
            constants=tuple(constants),
            temps=tuple(temps),
            outputs=outputs,
            kernels=tuple(self._call(op) for op in plan.body.walk() if isinstance(op, LaunchOp)),
            workspace_bytes=plan.workspace.value.data,
        )

    def _inputs(self) -> tuple[Buffer, ...]:
        names = self.plan.input_names
        changed = changed_inputs(self.plan)
        return tuple(
            self._buffer(
                f"in{position}",
                value,
                self.plan.sizes_of_buffer(position),
                name=names.data[position].data if names else "",
                changed=position in changed,
            )
            for position, value in enumerate(self.plan.buffers)
        )

    def _outputs(self) -> tuple[Buffer, ...]:
        """A buffer a result. One that other results or inputs hold already is an alias."""
        written = returned_outputs(self.plan)
        results: list[Buffer] = []
        for position, value in enumerate(returned_buffers(self.plan)):
            ref, storage = f"out{position}", storage_of(value)
            sizes = self._sizes(value)
            if position in written:
                results.append(self._buffer(ref, storage, sizes))
            else:
                alias = self.refs[storage]
                results.append(Buffer(ref, ref, _dtype(value), sizes, alias=alias))
        return tuple(results)

    def _sizes(self, value: SSAValue) -> tuple[Size, ...]:
        owner = value.owner
        if isinstance(owner, ukernel.ViewOp | ukernel.OutputOp):
            return owner.sizes.data
        if isinstance(owner, ukernel.ConstantOp):
            return owner.value.type.get_shape()
        return self.plan.sizes_of_buffer(list(self.plan.buffers).index(value))

    def _buffer(
        self,
        ref: str,
        value: SSAValue,
        sizes: Sequence[Size],
        *,
        name: str = "",
        offset: int = -1,
        changed: bool = False,
    ) -> Buffer:
        self.refs[value] = ref
        return Buffer(ref, name or ref, _dtype(value), tuple(sizes), offset, changed=changed)

    def _call(self, launch: LaunchOp) -> KernelCall:
        symbol = launch.kernel.string_value()
        kernel = self.kernels.get(symbol)
        if kernel is None:
            raise UopcError(
                "already-lowered",
                f"kernel @{symbol} is a GPU's and linear already: how it is launched was read "
                "before",
                hint="start from the module before linearize",
                location=location_of(launch),
            )
        known = kernel if isinstance(kernel, KernelOp) else None
        symbols = dict(zip(self.plan.size_arguments, self.plan.symbol_vars, strict=True))
        return KernelCall(
            name=symbol.partition("$")[0] if known is None else known.display_name,
            symbol=symbol,
            refs=tuple(map(self._ref, (*launch.inputs, *launch.outputs))),
            writes=len(launch.outputs),
            flops=0 if known is None else known.flops.value.data,
            bytes=0 if known is None else known.bytes.value.data,
            symbols=tuple(symbols[s].name for s in launch.sizes),
            doc=_doc(kernel),
            rewrites=tuple(map(self._ref, _rewritten(kernel, launch))),
            inside=_inside(launch),
        )

    def _ref(self, buffer: SSAValue) -> str:
        return "|".join(sorted(self.refs[storage] for storage in storages_of(buffer)))


def _doc(kernel: KernelOp | FuncOp) -> str:
    doc = kernel.doc if isinstance(kernel, KernelOp) else kernel.attributes.get("uopc.doc")
    return doc.data if isinstance(doc, StringAttr) else ""


def _rewritten(kernel: KernelOp | FuncOp, launch: LaunchOp) -> list[SSAValue]:
    """The buffers that a kernel reads and writes, or of which it changes some of what is there."""
    if isinstance(kernel, FuncOp):
        arguments = kernel.body.block.args[len(kernel.body.block.args) - len(launch.outputs) :]
        return [
            given
            for argument, given in zip(arguments, launch.outputs, strict=True)
            if any(use.operation.name not in _STORES for use in argument.uses)
        ]
    found: list[SSAValue] = []
    written = list(kernel.buffers)[kernel.inputs_count :]
    for buffer, given in zip(written, launch.outputs, strict=True):
        kinds = {type(use.operation) for use in buffer.uses}
        changes = loop.UpdateOp in kinds and loop.StoreOp not in kinds
        if changes or not kinds.isdisjoint((loop.LoadOp, ukernel.ReadOp)):
            found.append(given)
    return found


def _inside(op: Operation) -> tuple[str, ...]:
    """The loops and branches around a launch, outermost first."""
    found: list[str] = []
    while op.parent is not None and not isinstance(around := op.parent_op(), PlanOp | None):
        first = op.parent is around.regions[0].block
        words = ("while", "do") if isinstance(around, WhileOp) else ("if", "else")
        found.append(words[not first])
        op = around
    return tuple(reversed(found))


def _dtype(value: SSAValue) -> str:
    row = element_type(cast("MemRefType[Attribute]", value.type).element_type)
    assert row is not None, value.type
    return row.name
