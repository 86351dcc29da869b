"""uloop's ops on elements of buffers: load, read, store, update.

An access has one index expression a dimension and an optional list of conditions, all over the
same operands.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, IndexType, MemRefType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineMap,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.element_types import element_type
from uopc.dialects.index_text import parse_expression_list, print_expression_list

_UPDATED = ("add", "mul", "max", "min", "umax", "umin", "and", "or", "xor")
COMBINE_KINDS = (*_UPDATED, "fma", "dot")
"""Integers are signless: max and min compare signed numbers, umax and umin unsigned ones."""
UPDATE_KINDS = ("set", *_UPDATED)
PRODUCT_KINDS = ("fma", "dot")
"""Kinds that sum products of two values."""

BIT_KINDS = ("and", "or", "xor")
"""Kinds that floats do not have."""

Operands = list[SSAValue]

_DIVISIONS = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv, AffineBinaryOpKind.Mod)


def buffer_of(value: SSAValue) -> MemRefType[Attribute]:
    """The memref type of a value. Raises VerifyException for any other type."""
    if not isinstance(value.type, MemRefType):
        raise VerifyException(f"expected a memref, got {value.type}")
    return cast("MemRefType[Attribute]", value.type)


def check_map(map_: AffineMapAttr, operands: Sequence[SSAValue], results: int | None) -> None:
    data = map_.data
    if data.num_symbols or data.num_dims != len(operands):
        raise VerifyException(
            f"the map {data} needs {data.num_dims} operands and no symbols, got {len(operands)}"
        )
    pending = list(data.results)
    while pending:
        part = pending.pop()
        if isinstance(part, AffineBinaryOpExpr):
            divisor = part.rhs
            known = divisor.value if isinstance(divisor, AffineConstantExpr) else 1
            if part.kind in _DIVISIONS and known < 1:
                raise VerifyException(f"expected a positive divisor, got {known}")
            pending += (part.lhs, divisor)
    if results is not None and len(data.results) != results:
        raise VerifyException(
            f"expected {results} index expressions, one a dimension, got {len(data.results)}"
        )


def check_combination(kind: str, kinds: Sequence[str], element: Attribute) -> None:
    """Verify a kind of reduction or update, and that the element type has it."""
    check_kind(kind, kinds)
    row = element_type(element)
    if row is None:
        raise VerifyException(f"element type {element} is not supported")
    if kind == "dot" and row.name != "i32":
        raise VerifyException(f"kind dot is for pairs of bf16, each an i32, got {element}")
    if row.is_float and kind in (*BIT_KINDS, "umax", "umin"):
        raise VerifyException(f"kind {kind} is for integers, got {element}")


def check_kind(kind: str, kinds: Sequence[str]) -> None:
    if kind not in kinds:
        raise VerifyException(f"unknown kind '{kind}': expected one of {', '.join(kinds)}")


class AccessOp(IRDLOperation, ABC):
    """An element of a buffer by one index expression a dimension, valid where all of `where` are
    at least 0. The expressions of both maps are over `indices`."""

    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    where = opt_prop_def(AffineMapAttr)

    def verify_access(self) -> None:
        """Verify the maps against the buffer."""
        check_map(self.map, self.indices, buffer_of(self.buffer).get_num_dims())
        if self.where is not None:
            check_map(self.where, self.indices, None)

    def print_access(self, printer: Printer, prefetch: AffineMapAttr | None = None) -> None:
        printer.print_ssa_value(self.buffer)
        print_expression_list(printer, self.map.data, self.indices, "[]")
        if self.where is not None:
            printer.print_string(" where ")
            print_expression_list(printer, self.where.data, self.indices, "()")
        if prefetch is not None:
            printer.print_string(" prefetch ")
            print_expression_list(printer, prefetch.data, self.indices, "[]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)


class Access:
    """What `print_access` prints, parsed; `prefetch` stands for whether that may be there."""

    def __init__(self, parser: Parser, *, prefetch: bool = False) -> None:
        unresolved = parser.parse_unresolved_operand()
        self.indices: Operands = []
        results = parse_expression_list(parser, self.indices, parser.Delimiter.SQUARE)
        valid = None
        if parser.parse_optional_keyword("where"):
            valid = parse_expression_list(parser, self.indices, parser.Delimiter.PAREN)
        ahead = None
        if prefetch and parser.parse_optional_keyword("prefetch"):
            ahead = parse_expression_list(parser, self.indices, parser.Delimiter.SQUARE)
        self.attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, MemRefType):
            parser.raise_error(f"expected a memref type, got {type_}", position)
        self.type = cast("MemRefType[Attribute]", type_)
        self.buffer: SSAValue = parser.resolve_operand(unresolved, self.type)
        count = len(self.indices)
        self.map = AffineMap(count, 0, tuple(results))
        self.where = None if valid is None else AffineMap(count, 0, tuple(valid))
        self.prefetch = None if ahead is None else AffineMap(count, 0, tuple(ahead))


def maps(map_: AffineMap, where: AffineMap | None) -> dict[str, Attribute | None]:
    return {
        "map": AffineMapAttr(map_),
        "where": None if where is None else AffineMapAttr(where),
    }


class ElementOp(AccessOp, ABC):
    """An access that gives the element."""

    result = result_def()
    traits = traits_def(Pure())

    def __init__(
        self,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        map_: AffineMap,
        where: AffineMap | None = None,
    ):
        super().__init__(
            operands=[buffer, list(indices)],
            result_types=[buffer_of(buffer).element_type],
            properties=maps(map_, where),
        )

    def verify_(self) -> None:
        self.verify_access()
        element = buffer_of(self.buffer).element_type
        if self.result.type != element:
            raise VerifyException(f"{self.name}: expected {element}, got {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_access(printer)

    @classmethod
    def parse(cls, parser: Parser) -> ElementOp:
        access = Access(parser)
        op = cls(access.buffer, access.indices, access.map, access.where)
        op.attributes.update(access.attributes)
        return op


@irdl_op_definition
class LoadOp(ElementOp):
    """`%v = uloop.load %x[%i, %j - 1] where (%j - 1) : memref<4x8xf32>`: 0 where not valid.

    `%v = uloop.load %x[%i, %k] prefetch [%i + 1, %k] : …` asks for a place that a later step reads,
    or the nearest one that the buffer has: a hint, on which no value depends."""

    name = "uloop.load"
    prefetch = opt_prop_def(AffineMapAttr)

    def __init__(
        self,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        map_: AffineMap,
        where: AffineMap | None = None,
        prefetch: AffineMap | None = None,
    ):
        super().__init__(buffer, indices, map_, where)
        if prefetch is not None:
            self.prefetch = AffineMapAttr(prefetch)

    def verify_(self) -> None:
        super().verify_()
        if self.prefetch is None:
            return
        try:
            check_map(self.prefetch, self.indices, buffer_of(self.buffer).get_num_dims())
        except VerifyException as error:
            raise VerifyException(f"prefetch: {error}") from error
        around = _dims(self.map) | (set[int]() if self.where is None else _dims(self.where))
        if _dims(self.prefetch) - around:
            raise VerifyException("prefetch: expected ranges and sizes that the load depends on")
        if self.prefetch == self.map:
            raise VerifyException("prefetch: expected another place than the load's own")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self.print_access(printer, self.prefetch)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        access = Access(parser, prefetch=True)
        op = cls(access.buffer, access.indices, access.map, access.where, access.prefetch)
        op.attributes.update(access.attributes)
        return op


def _dims(map_: AffineMapAttr) -> set[int]:
    """The dimensions that the results of a map use."""
    return {dim for result in map_.data.results for dim in result.used_dims()}


@irdl_op_definition
class ReadOp(ElementOp):
    """`%v = uloop.read %t[%i, %j] : memref<4x8xf32>`: the value a tile holds at some indices."""

    name = "uloop.read"

    def verify_(self) -> None:
        super().verify_()
        owner = self.buffer.owner
        if not isinstance(owner, Operation) or owner.name != "uloop.tile":
            raise VerifyException("uloop.read reads a uloop.tile; a buffer is read by uloop.load")


class WritingOp(AccessOp, ABC):
    """An access that changes the element."""

    value = operand_def()

    def verify_writing(self) -> None:
        self.verify_access()
        element = buffer_of(self.buffer).element_type
        if self.value.type != element:
            raise VerifyException(f"{self.name}: expected {element}, got {self.value.type}")


@irdl_op_definition
class StoreOp(WritingOp):
    """`uloop.store %v, %x[%i] : memref<4xf32>`: the element set, at most once for each.

    `uloop.store nontemporal %v, …` asks for vectors of it to be written past the caches: what is
    stored is more than these hold."""

    name = "uloop.store"
    nontemporal = opt_prop_def(UnitAttr)

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        map_: AffineMap,
        where: AffineMap | None = None,
        *,
        nontemporal: bool = False,
    ):
        super().__init__(
            operands=[value, buffer, list(indices)],
            properties={
                **maps(map_, where),
                "nontemporal": UnitAttr() if nontemporal else None,
            },
        )

    def verify_(self) -> None:
        self.verify_writing()

    def print(self, printer: Printer) -> None:
        printer.print_string(" " if self.nontemporal is None else " nontemporal ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        self.print_access(printer)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        nontemporal = parser.parse_optional_keyword("nontemporal") is not None
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        access = Access(parser)
        resolved = parser.resolve_operand(value, access.type.element_type)
        op = cls(
            resolved,
            access.buffer,
            access.indices,
            access.map,
            access.where,
            nontemporal=nontemporal,
        )
        op.attributes.update(access.attributes)
        return op


@irdl_op_definition
class UpdateOp(WritingOp):
    """`uloop.update add %v, %x[%k] : memref<4xf32>`: the element combined with a value, in the
    order of the ranges; after every store to the buffer that stands before it.

    It happens once for each index of the ranges that the value, the place and the conditions
    depend on: one that is in none of them is written as a condition, `where (%i)`."""

    name = "uloop.update"
    kind = prop_def(StringAttr)

    def __init__(
        self,
        kind: str,
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        map_: AffineMap,
        where: AffineMap | None = None,
    ):
        super().__init__(
            operands=[value, buffer, list(indices)],
            properties={"kind": StringAttr(kind), **maps(map_, where)},
        )

    def verify_(self) -> None:
        self.verify_writing()
        check_combination(self.kind.data, UPDATE_KINDS, self.value.type)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        self.print_access(printer)

    @classmethod
    def parse(cls, parser: Parser) -> UpdateOp:
        kind = parser.parse_identifier()
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        access = Access(parser)
        resolved = parser.resolve_operand(value, access.type.element_type)
        op = cls(kind, resolved, access.buffer, access.indices, access.map, access.where)
        op.attributes.update(access.attributes)
        return op
