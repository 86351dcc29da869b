"""What passes over plans share: which storage a buffer names, and how large it is."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from uopc.dialects.element_types import element_type
from uopc.dialects.kernel import StorageOp, ViewOp
from uopc.dialects.sizes import element_count_upper


def storage_of(buffer: SSAValue) -> SSAValue:
    """The buffer that a chain of views shows: a plan's input, temp, output or constant."""
    while isinstance(buffer.owner, ViewOp):
        buffer = buffer.owner.buffer
    return buffer


def element_bytes(buffer: SSAValue) -> int:
    """The size of one element of a buffer in memory."""
    row = element_type(cast("MemRefType[Attribute]", buffer.type).element_type)
    assert row is not None, buffer.type
    return row.bytes


def storage_bytes(storage: StorageOp) -> int:
    """Bytes of a temp or output, at the upper bounds of its sizes."""
    return element_count_upper(storage.sizes.data) * element_bytes(storage.result)
