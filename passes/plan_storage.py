"""What passes over plans share: which storage a buffer names, and how large it is."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects.element_types import element_type
from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import ConstantOp, LaunchOp, OutputOp, PlanOp, ReturnOp, StorageOp, ViewOp
from uopc.dialects.kernel_control import carrying_loop
from uopc.dialects.locations import nearest_location
from uopc.dialects.sizes import element_count_upper
from uopc.dialects.source_text import printable


def storage_of(buffer: SSAValue) -> SSAValue:
    """The buffer that a chain of views shows: a plan's input, temp, output or constant.

    What a loop carries, its argument or its result, stands for itself: see storages_of.
    """
    while isinstance(buffer.owner, ViewOp):
        buffer = buffer.owner.buffer
    return buffer


def storages_of(buffer: SSAValue) -> tuple[SSAValue, ...]:
    """The buffers that a value may name: several where a loop changes their places."""
    found: dict[SSAValue, None] = {}
    pending = [buffer]
    while pending:
        storage = storage_of(pending.pop())
        carried = carrying_loop(storage)
        if carried is None:
            found[storage] = None
        else:
            loop, place = carried
            pending.extend(loop.carried[k] for k in loop.group(place))
    return tuple(found)


def element_bytes(buffer: SSAValue) -> int:
    """The size of one element of a buffer in memory."""
    row = element_type(cast("MemRefType[Attribute]", buffer.type).element_type)
    assert row is not None, buffer.type
    return row.bytes


def storage_bytes(storage: StorageOp) -> int:
    """Bytes of a temp or output, at the upper bounds of its sizes."""
    return element_count_upper(storage.sizes.data) * element_bytes(storage.result)


def donated_inputs(plan: PlanOp) -> tuple[int, ...]:
    """The positions of the inputs that a plan may write over."""
    return () if plan.donated is None else tuple(k.value.data for k in plan.donated.data)


def changed_inputs(plan: PlanOp) -> tuple[int, ...]:
    """The positions of the inputs that a plan does write over."""
    written = {
        storage
        for op in plan.body.walk()
        if isinstance(op, LaunchOp)
        for output in op.outputs
        for storage in storages_of(output)
    }
    return tuple(k for k, buffer in enumerate(plan.buffers) if buffer in written)


def returned_buffers(plan: PlanOp) -> tuple[SSAValue, ...]:
    """The buffers that hold the results, perhaps views, in order."""
    assert isinstance(plan.block.last_op, ReturnOp)
    return tuple(plan.block.last_op.values)


def returned_outputs(plan: PlanOp) -> dict[int, OutputOp]:
    """The outputs that the caller gives, each by the position of the first result that it is.

    Other results are inputs, constants, or outputs that an earlier result is. Raises UopcError
    [bad-result] for a result that is none of these, and for an output that is no result.
    """
    found: dict[OutputOp, int] = {}
    for position, value in enumerate(returned_buffers(plan)):
        owner = storage_of(value).owner
        if isinstance(owner, OutputOp):
            found.setdefault(owner, position)
        elif isinstance(owner, Operation) and not isinstance(owner, ConstantOp):
            raise _bad_result(plan, owner, f"result {position} is a '{owner.name}'")
    for op in plan.block.ops:
        if isinstance(op, OutputOp) and op not in found:
            raise _bad_result(plan, op, "an output is not returned")
    return {position: output for output, position in found.items()}


def _bad_result(plan: PlanOp, op: Operation, words: str) -> UopcError:
    return UopcError(
        "bad-result",
        f"plan @{printable(plan.sym_name.data)}: {words}",
        location=nearest_location(op),
        hint="a plan returns each of its outputs, and besides them inputs and constants",
    )
