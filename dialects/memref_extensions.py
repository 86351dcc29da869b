"""What xDSL 0.75's memref dialect lacks of MLIR's: the hint that a place is about to be read.

    memref.prefetch %x[%i, %j], read, locality<3>, data : memref<400x400xf32>

`install()` adds the op to the dialect in place, once, for the whole process, as MLIR spells it. A
candidate for sending upstream; to be dropped when the pinned version has it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, MemRefType, i32
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

MOST_LOCAL = 3
"""To be kept in all caches; 0 is for what is used once."""


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """A place that is about to be read or written: caches may get it. No value depends on it."""

    name = "memref.prefetch"
    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    isWrite = prop_def(BoolAttr)
    localityHint = prop_def(IntegerAttr)
    isDataCache = prop_def(BoolAttr)

    def __init__(
        self,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        *,
        write: bool = False,
        locality: int = MOST_LOCAL,
        data: bool = True,
    ):
        super().__init__(
            operands=[buffer, list(indices)],
            properties={
                "isWrite": BoolAttr.from_bool(write),
                "localityHint": IntegerAttr(locality, i32),
                "isDataCache": BoolAttr.from_bool(data),
            },
        )

    def verify_(self) -> None:
        type_ = self.memref.type
        assert isinstance(type_, MemRefType)
        if type_.get_num_dims() != len(self.indices):
            raise VerifyException(
                f"memref.prefetch: expected {type_.get_num_dims()} indices, one a dimension, "
                f"got {len(self.indices)}"
            )
        locality = self.localityHint.value.data
        if not 0 <= locality <= MOST_LOCAL:
            raise VerifyException(
                f"memref.prefetch: a locality is 0 to {MOST_LOCAL}, got {locality}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        printer.print_string(", write" if self.isWrite.value.data else ", read")
        printer.print_string(f", locality<{self.localityHint.value.data}>")
        printer.print_string(", data" if self.isDataCache.value.data else ", instr")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        buffer = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
        write = _one_of(parser, "read", "write")
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer(allow_boolean=False)
        data = not _one_of(parser, "data", "instr")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        resolved = parser.resolve_operand(buffer, parser.parse_type())
        places = [parser.resolve_operand(i, IndexType()) for i in indices]
        op = cls(resolved, places, write=write, locality=locality, data=data)
        op.attributes.update(attributes)
        return op


def _one_of(parser: Parser, first: str, second: str) -> bool:
    """Parse `, first` or `, second`: whether it is the second."""
    parser.parse_punctuation(",")
    if parser.parse_optional_keyword(first):
        return False
    parser.parse_keyword(second)
    return True


@functools.cache
def install() -> None:
    """Add the op to the dialect. A second call does nothing."""
    memref.MemRef._operations.append(PrefetchOp)  # pyright: ignore[reportPrivateUsage] -- a dialect has no call for it


def extended_memref() -> Dialect:
    """xDSL's memref dialect with prefetch."""
    install()
    return memref.MemRef
