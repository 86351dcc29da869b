"""stage-shared-reads: gives a buffer to a value that several kernels would gather anew.

What stands between two buffers is computed again in every kernel that needs it. That is right for
a few operations, and wrong for a sum that grows: in x1 = x0 + f1, x2 = x1 + f2, … every reader of
x9 would read ten buffers and add them up. The rule: a value computed elementwise, used more than
once, that reads `reads` buffers or more, and takes `min-work` operations or more, is staged. After
it the count starts again.

    %3 = utensor.add %2, %f : tensor<64x64xf32>       (reads %a, %b, …, six buffers; used twice)
  =>
    %3 = utensor.add %2, %f : tensor<64x64xf32>
    %4 = utensor.stage contiguous %3 : tensor<64x64xf32>
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects.errors import UopcError
from uopc.dialects.sizes import element_count_upper, sizes_of
from uopc.dialects.tensor import ConstantOp, GatherOp, IotaOp
from uopc.dialects.tensor_elementwise import ELEMENTWISE_OPS, tensor_of
from uopc.dialects.tensor_movement import MOVEMENT_OPS
from uopc.passes.stage_broadcast_compute import fused_operations, stage_values

_ELEMENTWISE = frozenset(ELEMENTWISE_OPS)
_FUSED = _ELEMENTWISE | frozenset(MOVEMENT_OPS) | {GatherOp}
_FREE = frozenset({IotaOp})
"""Ops that read nothing."""


@dataclass(frozen=True)
class StageSharedReadsPass(ModulePass):
    """Put a buffer where several kernels would read many to compute the same."""

    name = "stage-shared-reads"

    reads: int = 6
    """As many buffers make a value one to stage."""
    min_work: int = 4096
    """Fewer operations than this are computed again."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.reads < 2:
            raise UopcError("bad-option", f"reads is {self.reads}", hint="expected at least 2")
        stage_values(values_to_stage(op, self.reads, self.min_work))


def values_to_stage(root: Operation, reads: int, min_work: int) -> list[OpResult]:
    """The values inside `root` that the rule stages, in order."""
    read: dict[SSAValue, frozenset[SSAValue]] = {}  # never more than `reads` of them
    chosen: list[OpResult] = []
    for op in root.walk():
        kind = type(op)
        if kind in _FREE or (isinstance(op, ConstantOp) and op.splat is not None):
            read[op.results[0]] = frozenset()
            continue
        if kind not in _FUSED:
            continue
        result = op.results[0]
        found: set[SSAValue] = set()
        for operand in op.operands:
            found |= read.get(operand, frozenset((operand,)))
        if (
            kind in _ELEMENTWISE
            and len(found) >= reads
            and result.has_more_than_one_use()
            and _work(result, min_work) >= min_work
        ):
            chosen.append(result)
            found = {result}
        read[result] = frozenset(list(found)[:reads])
    return chosen


def _work(value: SSAValue, enough: int) -> int:
    """The operations that computing a value takes, at least as far as `enough`."""
    elements = element_count_upper(sizes_of(tensor_of(value)))
    if not elements:
        return 0
    return fused_operations(value, -(-enough // elements)) * elements
