"""A module that passes have lowered in part already: how far it is, and which passes remain.

`uopc-opt -p kernelize,rangeify f.mlir -o r.mlir` leaves kernels over ranges. A whole pipeline
cannot start from there; what follows rangeify in it can.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp, PlanOp, TempOp
from uopc.dialects.loop import RangeOp

_TO_RANGES = frozenset({"kernelize", "rangeify"})
"""The passes that take kernels on tensors: a pipeline that has them starts too early."""


def check_start(module: ModuleOp, passes: Sequence[ModulePass]) -> None:
    """Raise UopcError [already-lowered] if the module is further than where the passes start.

    The hint gives those that remain.
    """
    if not any(isinstance(op, PlanOp | KernelOp) for op in module.body.block.ops):
        return
    names = [each.name for each in passes]
    found = _state(module)
    if found is None or _TO_RANGES.isdisjoint(names):
        return
    state, done, next_pass = found
    if done not in names and next_pass not in names:
        return  # no passes that end in loops: told as [incomplete-pipeline]
    start = names.index(done) + 1 if done in names else names.index(next_pass)
    left = ",".join(str(each.pipeline_pass_spec()) for each in passes[start:])
    raise UopcError(
        "already-lowered",
        f"the kernels are {state} already, and the pipeline starts on tensors",
        hint=f'give the passes that remain: pipeline="{left}"',
    )


def kernels_are_linear(module: ModuleOp) -> bool:
    """Whether the module has plans, and functions of loops for all kernels that they launch."""
    ops = list(module.body.block.ops)
    if not any(isinstance(op, PlanOp) for op in ops):
        return False
    return not any(isinstance(op, KernelOp) or _on_tensors(op) for op in ops)


def nothing_left(module: ModuleOp) -> UopcError | None:
    """The error for a module that has been lowered to the end, or None if it was not."""
    for op in module.body.block.ops:
        if not isinstance(op, FuncOp) or not op.body.blocks or is_private(op):
            continue
        if any(isinstance(a.type, MemRefType) for a in op.body.blocks[0].args):
            return UopcError(
                "already-lowered",
                f"@{op.sym_name.data} is a function over buffers already, and no pass remains",
                hint="uopc-opt FILE -t c prints it as C, and target='interpreter' runs it",
            )
    return None


def _state(module: ModuleOp) -> tuple[str, str, str] | None:
    """What the kernels are in words, the last pass that they are known to have been through, and
    the pass that has to come at the latest; None where they are on tensors."""
    ops = list(module.body.block.ops)
    if any(map(_on_tensors, ops)):
        return None
    kernels = [op for op in ops if isinstance(op, KernelOp)]
    if not kernels:
        return "linear", "linearize", "lower-plan"
    ranges = [inner for op in kernels for inner in op.walk() if isinstance(inner, RangeOp)]
    if not ranges:
        return None
    if any(each.kind.data not in ("loop", "reduce") for each in ranges):
        return "over ranges and scheduled", "apply-schedule", "linearize"
    temps = [inner for op in ops for inner in op.walk() if isinstance(inner, TempOp)]
    if any(temp.offset is not None for temp in temps):
        return "over ranges", "plan-memory", "linearize"
    return "over ranges", "rangeify", "linearize"


def _on_tensors(op: Operation) -> bool:
    if not isinstance(op, FuncOp):
        return False
    types = (*op.function_type.inputs.data, *op.function_type.outputs.data)
    return any(isinstance(each, TensorType) for each in types)


def is_private(op: FuncOp) -> bool:
    """Whether a function is for others of the module only."""
    return op.sym_visibility is not None and op.sym_visibility.data == "private"
