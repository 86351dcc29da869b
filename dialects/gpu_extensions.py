"""What xDSL 0.75's gpu dialect lacks of MLIR's: shuffles and the address spaces of buffers.

    memref<32xf32, #gpu.address_space<workgroup>>      the threads of a block share it

    %other, %valid = "gpu.shuffle"(%v, %offset, %width)
        <{mode = #gpu<shuffle_mode xor>}> : (f32, i32, i32) -> (f32, i1)

`install()` adds the op and its attribute to the dialect in place, once, for the whole process, as
MLIR spells them. A candidate for sending upstream; to be dropped when the pinned version has it.
"""

from __future__ import annotations

import functools
from enum import auto

from xdsl.dialects import gpu
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i1, i32, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Dialect, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum


class ShuffleModeEnum(StrEnum):
    Xor = auto()
    Up = auto()
    Down = auto()
    Idx = auto()


@irdl_attr_definition
class ShuffleModeAttr(EnumAttribute[ShuffleModeEnum], SpacedOpaqueSyntaxAttribute):
    name = "gpu.shuffle_mode"


class AddressSpaceEnum(StrEnum):
    Global = auto()
    Workgroup = auto()
    Private = auto()


@irdl_attr_definition
class AddressSpaceAttr(EnumAttribute[AddressSpaceEnum]):
    """`#gpu.address_space<workgroup>`: where a buffer lies."""

    name = "gpu.address_space"

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AddressSpaceEnum:
        with parser.in_angle_brackets():
            return parser.parse_str_enum(AddressSpaceEnum)


WORKGROUP = AddressSpaceAttr(AddressSpaceEnum.Workgroup)
"""What the threads of a block share."""
NVVM_SHARED = 3
"""The same as the NVVM dialect numbers it."""


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value that another thread of the subgroup has; all of its threads take part."""

    name = "gpu.shuffle"
    value = operand_def()
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(ShuffleModeAttr)
    shuffle_result = result_def()
    valid = result_def(i1)

    def __init__(self, value: SSAValue, offset: SSAValue, width: SSAValue, mode: ShuffleModeEnum):
        super().__init__(
            operands=[value, offset, width],
            result_types=[value.type, i1],
            properties={"mode": ShuffleModeAttr(mode)},
        )

    def verify_(self) -> None:
        if self.value.type != self.shuffle_result.type:
            raise VerifyException(
                f"gpu.shuffle gives a value of its operand's type: expected {self.value.type}, "
                f"got {self.shuffle_result.type}"
            )


@functools.cache
def install() -> None:
    """Add the op, the attributes, and MLIR's syntax. A second call does nothing."""
    from uopc.dialects import gpu_syntax

    gpu_syntax.install()
    gpu.GPU._operations.append(ShuffleOp)  # pyright: ignore[reportPrivateUsage] -- a dialect has no call for it
    gpu.GPU._attributes.extend([ShuffleModeAttr, AddressSpaceAttr])  # pyright: ignore[reportPrivateUsage]


def extended_gpu() -> Dialect:
    """xDSL's gpu dialect with shuffles."""
    install()
    return gpu.GPU


def is_workgroup(type_: Attribute) -> bool:
    """Whether a memref lies in the memory that the threads of a block share."""
    if not isinstance(type_, MemRefType):
        return False
    space: Attribute = type_.memory_space
    return space in (WORKGROUP, IntegerAttr(NVVM_SHARED, i64), IntegerAttr(NVVM_SHARED, i32))
