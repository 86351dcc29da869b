"""stage-broadcast-compute: computes once what a broadcast would compute again for every copy.

Kernels are cut at reductions, so elementwise work that is broadcast into a reduction would be
done anew for each copy: a layer norm that feeds a matrix product, once a column. The rule: take
every `expand` that multiplies the elements by `factor` or more, and go down through movement ops
to the value that is copied. If that is computed elementwise (no bare cast, no scalar), and
computing it takes `min-work` operations or more, put a `stage contiguous` on it, which all its
users then read. The work is the number of elementwise ops down to inputs, reductions, stages and
constants, each counted once, times the elements of the value. A mask of positions (a few operations
on iota and constants) is never staged. Symbolic sizes count at their
upper bounds. Stages already there stay, and no value is staged twice.

    %0 = utensor.exp %x : tensor<64x64xf32>
    %1 = utensor.reshape %0 : tensor<64x64xf32> -> tensor<64x1x64xf32>
    %2 = utensor.expand %1 : tensor<64x1x64xf32> -> tensor<64x8x64xf32>
  =>
    %0 = utensor.exp %x : tensor<64x64xf32>
    %1 = utensor.stage contiguous %0 : tensor<64x64xf32>
    %2 = utensor.reshape %1 : tensor<64x64xf32> -> tensor<64x1x64xf32>
    %3 = utensor.expand %2 : tensor<64x1x64xf32> -> tensor<64x8x64xf32>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects.sizes import element_count_upper, sizes_of
from uopc.dialects.tensor import ConstantOp, GatherOp, IotaOp, ReduceOp, StageOp
from uopc.dialects.tensor_elementwise import (
    ELEMENTWISE_OPS,
    BitcastOp,
    CastOp,
    tensor_of,
)
from uopc.dialects.tensor_movement import MOVEMENT_OPS, ExpandOp, int_values
from uopc.passes.kernel_cut.attention import attentions

_ELEMENTWISE = frozenset(ELEMENTWISE_OPS)
_MOVEMENT = frozenset(MOVEMENT_OPS)
_FUSED = _ELEMENTWISE | _MOVEMENT | {GatherOp}
"""Ops that become part of the kernel of whoever uses them."""

_FREE = frozenset({IotaOp, ConstantOp})
FEW_OPERATIONS = 2
"""What is computed from positions alone by no more operations is not staged."""

_CONVERSIONS = frozenset({CastOp, BitcastOp})


def fused_operations(value: SSAValue, limit: int | None = None) -> int:
    """How many elementwise ops one element of `value` takes, each counted once.

    Down to inputs, reductions, stages and constants. Counting stops at `limit`.
    """
    count = 0
    seen = {value}
    pending = [value]
    while pending:
        op = _owner(pending.pop())
        if op is None or type(op) not in _FUSED:
            continue
        if type(op) in _ELEMENTWISE:
            count += 1
            if count == limit:
                break
        for operand in op.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return count


def fused_work(value: SSAValue) -> int:
    """The operations that computing `value` anew takes, at the upper bounds of its sizes."""
    return fused_operations(value) * _count(value)


def values_to_stage(
    root: Operation, factor: int, min_work: int, *, rows: bool = True
) -> list[OpResult]:
    """The values inside `root` that the rule stages; without `rows` not those of whole rows,
    nor the weights of attention, which stay in the kernel that reads them."""
    bases: dict[SSAValue, SSAValue] = {}  # of a movement op's result: what it moves
    chains: dict[SSAValue, int] = {}  # the longest chain of elementwise ops, a lower bound
    chosen: dict[OpResult, bool] = {}
    for op in root.walk():
        cls = type(op)
        if cls not in _FUSED:
            continue
        operands, result = op.operands, op.results[0]
        chain = max(chains.get(operand, 0) for operand in operands)
        chains[result] = chain + (cls in _ELEMENTWISE)
        if cls not in _MOVEMENT:
            continue
        base = bases[result] = bases.get(operands[0], operands[0])
        if (
            cls is ExpandOp
            and isinstance(base, OpResult)
            and base not in chosen
            and _count(result) >= factor * _count(operands[0])
            and (rows or not (isinstance(op, ExpandOp) and _is_along_rows(op)))
        ):
            chosen[base] = _is_dear(base, chains.get(base, 0), min_work)
    kept = set[SSAValue]() if rows else {each.weights for each in attentions(root.walk())}
    return [base for base, dear in chosen.items() if dear and base not in kept]


def _is_dear(base: OpResult, chain: int, min_work: int) -> bool:
    """Whether the value is one to stage. Looks at no more ops than the answer needs."""
    cls = type(base.op)
    elements = _count(base)
    if cls not in _ELEMENTWISE or cls in _CONVERSIONS or not sizes_of(tensor_of(base)):
        return False
    if not elements or _reads_nothing(base):
        return False
    if chain * elements >= min_work:
        return True
    needed = -(-min_work // elements)
    return fused_operations(base, needed) >= needed


def _is_along_rows(op: ExpandOp) -> bool:
    """Whether an expand repeats along the last axes only, in loops inside of those over its own.

    Then it is computed once before them. A sum over its own axes, as a product's, runs innermost.
    """
    before, after = sizes_of(tensor_of(op.operand)), sizes_of(tensor_of(op.result))
    repeated = [k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    kept = [k for k, size in enumerate(before) if size != 1]
    if kept and max(kept) > min(repeated):
        return False
    seen: set[SSAValue] = set()
    pending: list[SSAValue] = [op.result]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.operation
            if isinstance(user, ReduceOp) and not set(kept).isdisjoint(int_values(user.axes)):
                return False
            if type(user) in _ELEMENTWISE:
                pending.append(user.results[0])
    return True


def _reads_nothing(value: SSAValue) -> bool:
    """Whether a value comes from positions and constants alone by a few operations, as a mask does:
    reading it takes as long as computing it."""
    count = 0
    seen = {value}
    pending = [value]
    while pending:
        op = _owner(pending.pop())
        if op is None or type(op) not in _FUSED | _FREE:
            return False
        if type(op) in _ELEMENTWISE:
            count += 1
            if count > FEW_OPERATIONS:
                return False
        for operand in op.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return True


def _owner(value: SSAValue) -> Operation | None:
    return value.op if isinstance(value, OpResult) else None


def _count(value: SSAValue) -> int:
    return element_count_upper(sizes_of(tensor_of(value)))


def _is_stage(op: Operation) -> bool:
    kind = op.properties.get("kind")
    return type(op) is StageOp and isinstance(kind, StringAttr) and kind.data == "contiguous"


def stage_values(values: Sequence[OpResult]) -> list[StageOp]:
    """Stage each value, and have all its users read the stage. The stages, one a value."""
    replaced: dict[SSAValue, SSAValue] = {}
    users: dict[Operation, None] = {}  # in the order met
    stages: list[StageOp] = []
    obsolete: list[Operation] = []
    for value in values:
        stage = StageOp(value)
        stage.location = value.op.location
        stage.results[0].name_hint = value.name_hint
        stages.append(stage)
        replaced[value] = stage.results[0]
        for use in value.uses:
            user = use.operation
            if user is stage:
                continue
            if _is_stage(user):  # there was one, for some of the users
                replaced[user.results[0]] = stage.results[0]
                users.update((each.operation, None) for each in user.results[0].uses)
                obsolete.append(user)
            else:
                users[user] = None
    for user in users:
        user.operands = [replaced.get(operand, operand) for operand in user.operands]
    for op in obsolete:
        op.detach()
        op.erase()
    for stage in stages:
        owner = cast(OpResult, stage.operand).op
        assert owner.parent is not None
        owner.parent.insert_op_after(stage, owner)
    return stages


@dataclass(frozen=True)
class StageBroadcastComputePass(ModulePass):
    """Put a buffer where a broadcast would compute the same again for every copy.

    `factor`: an expand by at least this is a broadcast; `min_work`: fewer operations than this
    are computed again.
    """

    name = "stage-broadcast-compute"

    factor: int = 4
    min_work: int = 4096
    rows: bool = True
    """Whether values that are the same for whole rows count too. Loops over rows compute them once
    where their reductions are fused, so there they had better not."""

    def __post_init__(self) -> None:
        for name in ("factor", "min_work"):
            if getattr(self, name) < 1:
                shown = name.replace("_", "-")
                raise ValueError(f"{shown} must be at least 1, got {getattr(self, name)}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        stage_values(values_to_stage(op, self.factor, self.min_work, rows=self.rows))
