"""Loops and branches between tensor ops, as kernelize takes them.

    %r = scf.while (%x = %init) : (tensor<4xf32>) -> tensor<4xf32> {
      %more = … : tensor<i1>
      %flag = tensor.extract %more[] : tensor<i1>
      scf.condition(%flag) %x : tensor<4xf32>
    } do {
    ^bb0(%x : tensor<4xf32>):
      …
      scf.yield %y : tensor<4xf32>
    }

A flag is the one element of a tensor<i1>; a loop's condition hands on what the loop carries, as it
is. Before a function is cut, what a loop carries and never changes is read from outside, and what
costs nothing (movement, numbers that are all alike, positions) is written again where it is used.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_text
from uopc.dialects.tensor import ConstantOp, IotaOp, StageOp
from uopc.dialects.tensor_movement import MOVEMENT_OPS

_FLAG: Attribute = TensorType(i1, [])
CONTROL_OPS = (scf.WhileOp, scf.IfOp)
_FREE = frozenset[type[Operation]]((*MOVEMENT_OPS, IotaOp, StageOp))


def refuse_control(op: Operation, reason: str, hint: str) -> UopcError:
    """A loop or branch that a plan cannot have."""
    return UopcError(
        "unsupported-op",
        f"'{op.name}' cannot be part of a plan: {reason}",
        location=nearest_location(op),
        op_text=op_text(op),
        hint=hint,
    )


def is_flag(op: Operation) -> bool:
    """Whether an op takes the one element of a tensor<i1>."""
    if not isinstance(op, tensor.ExtractOp) or op.indices:
        return False
    return op.tensor.type == _FLAG


def flag_tensor(op: Operation, flag: SSAValue) -> SSAValue:
    """The tensor that a flag is the element of. Raises UopcError [unsupported-op]."""
    if isinstance(flag.owner, tensor.ExtractOp) and is_flag(flag.owner):
        return flag.owner.tensor
    raise refuse_control(
        op, "its flag is no element of a tensor", "write tensor.extract %more[] : tensor<i1>"
    )


def yielded(block: Block) -> tuple[SSAValue, ...]:
    """What the last op of a region hands on, without the flag of a condition."""
    last = cast(Operation, block.last_op)
    return tuple(last.operands[isinstance(last, scf.ConditionOp) :])


def tested(loop: scf.WhileOp) -> SSAValue:
    """The tensor of a loop's flag."""
    last = cast(scf.ConditionOp, loop.before_region.block.last_op)
    return flag_tensor(loop, last.condition)


def captures(op: Operation) -> list[SSAValue]:
    """The tensors from outside of an op that its regions use, in order."""
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
            for value in inner.operands:
                if value in inside:
                    continue
                if isinstance(value.owner, tensor.ExtractOp) and is_flag(value.owner):
                    value = value.owner.tensor
                found[value] = None
    return list(found)


def uses_of(op: Operation) -> list[SSAValue]:
    """The tensors that a loop or branch reads: where it starts from, its flag, its captures."""
    if isinstance(op, scf.WhileOp):
        return [*op.arguments, *captures(op)]
    assert isinstance(op, scf.IfOp)
    return [flag_tensor(op, op.cond), *captures(op)]


def prepare_control(block: Block) -> None:
    """Check the loops and branches inside a block, and make them cheap to cut. See above."""
    for op in list(block.walk()):
        if isinstance(op, scf.WhileOp):
            _check_while(op)
            _read_unchanged_from_outside(op)
        elif isinstance(op, scf.IfOp):
            _check_if(op)
    for op in list(block.walk()):
        if isinstance(op, CONTROL_OPS):
            for region in op.regions:
                for inner in region.blocks:
                    _sink(op, inner)


def _check_while(op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    ends = isinstance(before.last_op, scf.ConditionOp) and isinstance(after.last_op, scf.YieldOp)
    if not ends:
        raise refuse_control(op, "its regions end otherwise", "end them in condition and yield")
    tested(op)
    if yielded(before) != tuple(before.args):
        raise refuse_control(
            op,
            "its condition hands on something else than what the loop carries",
            "write scf.condition(%flag) of the first region's arguments in order",
        )
    types = [v.type for v in op.arguments]
    if [v.type for v in yielded(after)] != types:
        raise refuse_control(op, "it yields other types than it carries", "yield the same types")


def _check_if(op: scf.IfOp) -> None:
    flag_tensor(op, op.cond)
    if op.results and not op.false_region.blocks:
        raise refuse_control(op, "it has results and no second region", "write the else region")
    for region in op.regions:
        if region.blocks and [v.type for v in yielded(region.block)] != list(op.result_types):
            raise refuse_control(op, "it yields other types than it gives", "yield the same types")


def _read_unchanged_from_outside(op: scf.WhileOp) -> None:
    """What a loop carries and never changes becomes a capture."""
    before, after = op.before_region.block, op.after_region.block
    kept: list[int] = []
    given = yielded(after)
    for k, init in enumerate(op.arguments):
        if given[k] is after.args[k]:
            for value in (before.args[k], after.args[k], op.results[k]):
                value.replace_all_uses_with(init)
        else:
            kept.append(k)
    if len(kept) == len(op.arguments):
        return
    flag = cast(scf.ConditionOp, before.last_op).condition
    given = yielded(after)  # as they are now
    for block in (before, after):
        last = cast(Operation, block.last_op)
        block.erase_op(last)
        for k in reversed(range(len(block.args))):
            if k not in kept:
                block.erase_arg(block.args[k])
    before.add_op(scf.ConditionOp(flag, *before.args))
    after.add_op(scf.YieldOp(*(given[k] for k in kept)))
    regions = [op.detach_region(region) for region in list(op.regions)]
    new = scf.WhileOp(
        [op.arguments[k] for k in kept], [op.result_types[k] for k in kept], *cast(Any, regions)
    )
    new.location = op.location
    for k, result in zip(kept, new.results, strict=True):
        result.name_hint = op.results[k].name_hint
        op.results[k].replace_all_uses_with(result)
    parent = cast(Block, op.parent)
    parent.insert_op_before(new, op)
    parent.erase_op(op)


def _sink(op: Operation, block: Block) -> None:
    """Write again inside a region what it uses from outside and is free to compute."""
    made: dict[SSAValue, SSAValue] = {}
    pending = [v for v in _used_in(block) if _is_free(v) and not _is_within(v, op)]
    while pending:
        value = pending.pop()
        owner = cast(OpResult, value).op
        if value in made:
            continue
        clone = owner.clone()
        clone.location = owner.location
        clone.results[0].name_hint = value.name_hint
        first = block.first_op
        assert first is not None
        block.insert_op_before(clone, first)
        made[value] = clone.results[0]
        value.replace_uses_with_if(clone.results[0], lambda use: _is_in_block(use.operation, block))
        pending.extend(v for v in clone.operands if _is_free(v) and not _is_within(v, op))


def _used_in(block: Block) -> list[SSAValue]:
    return list(dict.fromkeys(v for inner in block.walk() for v in inner.operands))


def _is_free(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, ConstantOp):
        return owner.splat is not None
    return isinstance(owner, Operation) and (type(owner) in _FREE or is_flag(owner))


def _is_within(value: SSAValue, op: Operation) -> bool:
    parent: Operation | None = cast(Operation, value.owner).parent_op()
    while parent is not None:
        if parent is op:
            return True
        parent = parent.parent_op()
    return False


def _is_in_block(op: Operation, block: Block) -> bool:
    at: Block | None = op.parent
    while at is not None:
        if at is block:
            return True
        parent = at.parent_op()
        at = parent.parent if parent is not None else None
    return False


def tensor_of_value(value: SSAValue) -> TensorType[Attribute]:
    """The type of a tensor."""
    return cast("TensorType[Attribute]", value.type)
