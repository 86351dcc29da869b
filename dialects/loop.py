"""uloop: a kernel's body as a DAG over index ranges, before any loop order is chosen.

    range    ::= %i = range E (max N)? KIND?        an index from 0 up to, without, E
    load     ::= %v = load %b[E, …] WHERE? : M      an element of a buffer; 0 where not valid
    read     ::= %v = read %t[E, …] : M             an element of a tile
    store    ::= store %v, %b[E, …] WHERE? : M      at most once an element
    update   ::= update OP %v, %b[E, …] WHERE? : M  combine into the element, in order of ranges
    reduce   ::= %r = reduce OP %v over (%j, …) : T
               | %r:n = reduce %a, … init %x, … over (%j, …) { ^(acc…, new…): … yield } : T, …
    tile     ::= %t = tile %v over (%i, …) SPACE : M   the values at all %i, in a local buffer
    index    ::= %x = index E : T                   an index as a number
    value    ::= %i = value %x : T in L to E (max N)?   a number as an index, clamped to L..E
    valid    ::= %c = valid (E, …)                  true where all E >= 0
    guard    ::= guard E                            nothing happens where E < 0
    WHERE    ::= where (E, …)                       every E >= 0
    E        ::= affine over %ranges, sizes, and values: %i * 8 + %j floordiv 3 - 1
    KIND     ::= loop | reduce | unroll | vector | thread | block | lane
    OP       ::= add | mul | max | min | umax | umin | and | or | xor | fma   (update: also set)

Scalar arith and math stand between. A reduction's range is its own; a value's free ranges say
where it varies. linearize chooses the loops.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.element_types import element_type
from uopc.dialects.index_text import (
    affine_map,
    parse_expression_list,
    parse_index_expression,
    print_expression_list,
    print_index_expression,
)

RANGE_KINDS = ("loop", "reduce", "unroll", "vector", "thread", "block", "lane")
COMBINE_KINDS = ("add", "mul", "max", "min", "umax", "umin", "and", "or", "xor", "fma")
"""Integers are signless: max and min compare signed numbers, umax and umin unsigned ones."""
UPDATE_KINDS = ("set", *COMBINE_KINDS[:-1])
TILE_SPACES = ("local", "register", "shared")

Operands = list[SSAValue]


def buffer_of(value: SSAValue) -> MemRefType[Attribute]:
    """The memref type of a value. Raises VerifyException for any other type."""
    if not isinstance(value.type, MemRefType):
        raise VerifyException(f"expected a memref, got {value.type}")
    return cast("MemRefType[Attribute]", value.type)


def _check_map(map_: AffineMapAttr, operands: Sequence[SSAValue], results: int | None) -> None:
    data = map_.data
    if data.num_symbols or data.num_dims != len(operands):
        raise VerifyException(
            f"the map {data} needs {data.num_dims} operands and no symbols, got {len(operands)}"
        )
    if results is not None and len(data.results) != results:
        raise VerifyException(
            f"expected {results} index expressions, one a dimension, got {len(data.results)}"
        )


@irdl_op_definition
class RangeOp(IRDLOperation):
    """`%i = uloop.range 8 vector`: an index that runs from 0 up to, without, its end."""

    name = "uloop.range"
    operands_ = var_operand_def(IndexType)
    end = prop_def(AffineMapAttr)
    kind = prop_def(StringAttr)
    maximum = opt_prop_def(IntegerAttr)
    """The largest end, where it is not a number."""
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(
        self,
        end: AffineMap | int,
        operands: Sequence[SSAValue] = (),
        kind: str = "loop",
        maximum: int | None = None,
    ):
        map_ = end if isinstance(end, AffineMap) else affine_map(0, [end])
        super().__init__(
            operands=[list(operands)],
            result_types=[IndexType()],
            properties={
                "end": AffineMapAttr(map_),
                "kind": StringAttr(kind),
                "maximum": None if maximum is None else IntegerAttr(maximum, i64),
            },
        )

    @property
    def constant_end(self) -> int | None:
        """The end, if it is a number."""
        map_ = self.end.data
        return None if map_.num_dims else map_.eval([], [])[0]

    def verify_(self) -> None:
        _check_map(self.end, self.operands_, 1)
        if self.kind.data not in RANGE_KINDS:
            raise VerifyException(
                f"unknown kind '{self.kind.data}': expected one of {', '.join(RANGE_KINDS)}"
            )
        end = self.constant_end
        if end is not None and end < 0:
            raise VerifyException(f"a range ends at 0 or later, got {end}")
        if end is None and self.maximum is None:
            raise VerifyException("a range whose end is not a number needs 'max N'")
        if end is None and self.kind.data in ("unroll", "vector"):
            raise VerifyException(f"the end of a range of kind {self.kind.data} is a number")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_index_expression(printer, self.end.data.results[0], self.operands_)
        if self.maximum is not None:
            printer.print_string(f" max {self.maximum.value.data}")
        if self.kind.data != "loop":
            printer.print_string(f" {self.kind.data}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> RangeOp:
        operands: Operands = []
        end = parse_index_expression(parser, operands)
        maximum = None
        if parser.parse_optional_keyword("max"):
            maximum = parser.parse_integer(allow_boolean=False)
        kind = next((k for k in RANGE_KINDS if parser.parse_optional_keyword(k)), "loop")
        op = cls(AffineMap(len(operands), 0, (end,)), operands, kind, maximum)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op


class AccessOp(IRDLOperation, ABC):
    """An element of a buffer by one index expression a dimension, valid where all of `where` are
    at least 0. The expressions of both maps are over `indices`."""

    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    where = opt_prop_def(AffineMapAttr)

    def verify_access(self) -> None:
        """Verify the maps against the buffer."""
        _check_map(self.map, self.indices, buffer_of(self.buffer).get_num_dims())
        if self.where is not None:
            _check_map(self.where, self.indices, None)

    def print_access(self, printer: Printer) -> None:
        printer.print_ssa_value(self.buffer)
        print_expression_list(printer, self.map.data, self.indices, "[]")
        if self.where is not None:
            printer.print_string(" where ")
            print_expression_list(printer, self.where.data, self.indices, "()")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)


class _Access:
    """What `print_access` prints, parsed."""

    def __init__(self, parser: Parser) -> None:
        unresolved = parser.parse_unresolved_operand()
        self.indices: Operands = []
        results = parse_expression_list(parser, self.indices, parser.Delimiter.SQUARE)
        valid = None
        if parser.parse_optional_keyword("where"):
            valid = parse_expression_list(parser, self.indices, parser.Delimiter.PAREN)
        self.attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, MemRefType):
            parser.raise_error(f"expected a memref type, got {type_}", position)
        self.type = cast("MemRefType[Attribute]", type_)
        self.buffer = parser.resolve_operand(unresolved, type_)
        count = len(self.indices)
        self.map = AffineMap(count, 0, tuple(results))
        self.where = None if valid is None else AffineMap(count, 0, tuple(valid))


def _maps(map_: AffineMap, where: AffineMap | None) -> dict[str, Attribute | None]:
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
            properties=_maps(map_, where),
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
        access = _Access(parser)
        op = cls(access.buffer, access.indices, access.map, access.where)
        op.attributes.update(access.attributes)
        return op


@irdl_op_definition
class LoadOp(ElementOp):
    """`%v = uloop.load %x[%i, %j - 1] where (%j - 1) : memref<4x8xf32>`: 0 where not valid."""

    name = "uloop.load"


@irdl_op_definition
class ReadOp(ElementOp):
    """`%v = uloop.read %t[%i, %j] : memref<4x8xf32>`: the value a tile holds at some indices."""

    name = "uloop.read"

    def verify_(self) -> None:
        super().verify_()
        if not isinstance(self.buffer.owner, TileOp):
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
    """`uloop.store %v, %x[%i] : memref<4xf32>`: the element set, at most once for each."""

    name = "uloop.store"

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        map_: AffineMap,
        where: AffineMap | None = None,
    ):
        super().__init__(operands=[value, buffer, list(indices)], properties=_maps(map_, where))

    def verify_(self) -> None:
        self.verify_writing()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(", ")
        self.print_access(printer)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        access = _Access(parser)
        resolved = parser.resolve_operand(value, access.type.element_type)
        op = cls(resolved, access.buffer, access.indices, access.map, access.where)
        op.attributes.update(access.attributes)
        return op


@irdl_op_definition
class UpdateOp(WritingOp):
    """`uloop.update add %v, %x[%k] : memref<4xf32>`: the element combined with a value, in the
    order of the ranges; after every store to the buffer that stands before it."""

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
            properties={"kind": StringAttr(kind), **_maps(map_, where)},
        )

    def verify_(self) -> None:
        self.verify_writing()
        _check_kind(self.kind.data, UPDATE_KINDS)

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
        access = _Access(parser)
        resolved = parser.resolve_operand(value, access.type.element_type)
        op = cls(kind, resolved, access.buffer, access.indices, access.map, access.where)
        op.attributes.update(access.attributes)
        return op


def _check_kind(kind: str, kinds: Sequence[str]) -> None:
    if kind not in kinds:
        raise VerifyException(f"unknown kind '{kind}': expected one of {', '.join(kinds)}")


def _check_ranges(ranges: Sequence[SSAValue], what: str) -> None:
    for value in ranges:
        if not isinstance(value.owner, RangeOp):
            raise VerifyException(f"{what}: expected the result of a uloop.range")
    if len(set(ranges)) != len(ranges):
        raise VerifyException(f"{what}: expected distinct ranges")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Combine values over ranges, from the kind's identity, or by a region from `init`.

    %m = uloop.reduce max %x over (%j) : f32
    %v, %i = uloop.reduce %x, %k init %v0, %i0 over (%j) {
    ^bb0(%va: f32, %ia: i32, %vb: f32, %ib: i32):
      …
      uloop.yield %v1, %i1 : f32, i32
    } : f32, i32
    """

    name = "uloop.reduce"
    kind = opt_prop_def(StringAttr)
    values = var_operand_def()
    init = var_operand_def()
    over = var_operand_def(IndexType)
    results_ = var_result_def()
    combiner = region_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        kind: str | None,
        values: Sequence[SSAValue],
        over: Sequence[SSAValue],
        init: Sequence[SSAValue] = (),
        combiner: Region | None = None,
    ):
        types = [values[0].type] if kind is not None else [v.type for v in init]
        super().__init__(
            operands=[list(values), list(init), list(over)],
            result_types=[types],
            properties={"kind": None if kind is None else StringAttr(kind)},
            regions=[combiner or Region()],
        )

    def verify_(self) -> None:
        _check_ranges(self.over, "the ranges of uloop.reduce")
        types = [v.type for v in self.values]
        if self.kind is not None:
            _check_kind(self.kind.data, COMBINE_KINDS)
            count = 2 if self.kind.data == "fma" else 1
            if len(types) != count or len(set(types)) != 1:
                raise VerifyException(
                    f"reduce {self.kind.data}: expected {count} values of one type, got "
                    f"{', '.join(map(str, types))}"
                )
            if self.init or self.combiner.blocks:
                raise VerifyException("a reduce of a kind has no init and no region")
            expected = types[:1]
        else:
            if not self.combiner.blocks:
                raise VerifyException("a reduce without a kind needs a region")
            expected = [v.type for v in self.init]
            arguments = [a.type for a in self.combiner.block.args]
            if arguments != expected + types:
                raise VerifyException(
                    "the region of uloop.reduce takes the accumulators and the values: expected "
                    f"{', '.join(map(str, expected + types))}, got {', '.join(map(str, arguments))}"
                )
            last = self.combiner.block.last_op
            if not isinstance(last, YieldOp) or [v.type for v in last.values] != expected:
                raise VerifyException("the region of uloop.reduce yields the new accumulators")
        if [r.type for r in self.results_] != expected:
            raise VerifyException(
                f"expected results {', '.join(map(str, expected))}, got "
                f"{', '.join(str(r.type) for r in self.results_)}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.kind is not None:
            printer.print_string(f"{self.kind.data} ")
        printer.print_list(self.values, printer.print_ssa_value)
        if self.init:
            printer.print_string(" init ")
            printer.print_list(self.init, printer.print_ssa_value)
        printer.print_string(" over (")
        printer.print_list(self.over, printer.print_ssa_value)
        printer.print_string(")")
        if self.combiner.blocks:
            printer.print_string(" ")
            printer.print_region(self.combiner)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        types = [v.type for v in self.values] if self.kind is None else [self.values[0].type]
        printer.print_list(types, printer.print_attribute)
        if self.init:
            printer.print_string(" -> ")
            printer.print_list([v.type for v in self.init], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        none, paren = parser.Delimiter.NONE, parser.Delimiter.PAREN
        kind = parser.parse_optional_identifier()
        values = parser.parse_comma_separated_list(none, parser.parse_unresolved_operand)
        init: list[object] = []
        if parser.parse_optional_keyword("init"):
            init = list(parser.parse_comma_separated_list(none, parser.parse_unresolved_operand))
        parser.parse_keyword("over")
        over = [
            parser.resolve_operand(u, IndexType())
            for u in parser.parse_comma_separated_list(paren, parser.parse_unresolved_operand)
        ]
        combiner = parser.parse_optional_region()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(none, parser.parse_type)
        if kind is not None:
            types = types * len(values)
        init_types: list[Attribute] = []
        if init:
            parser.parse_punctuation("->")
            init_types = parser.parse_comma_separated_list(none, parser.parse_type)
        if len(types) != len(values) or len(init_types) != len(init):
            parser.raise_error("expected as many types as values")
        op = cls(
            kind,
            parser.resolve_operands(values, types, parser.pos),
            over,
            parser.resolve_operands(init, init_types, parser.pos),  # pyright: ignore[reportArgumentType]  # the parser's own opaque type
            combiner,
        )
        op.attributes.update(attributes)
        return op


@irdl_op_definition
class YieldOp(IRDLOperation):
    """`uloop.yield %v, %i : f32, i32`: the new accumulators of a combiner."""

    name = "uloop.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict $values `:` type($values)"

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[list(values)])


@irdl_op_definition
class TileOp(IRDLOperation):
    """`%t = uloop.tile %v over (%p, %q) local : memref<4x8xf32>`: the values of %v at all %p and
    %q in a buffer of the kernel, filled where its other ranges are known."""

    name = "uloop.tile"
    value = operand_def()
    over = var_operand_def(IndexType)
    space = prop_def(StringAttr)
    result = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(
        self,
        value: SSAValue,
        over: Sequence[SSAValue],
        shape: Sequence[int],
        space: str = "local",
    ):
        super().__init__(
            operands=[value, list(over)],
            result_types=[MemRefType(value.type, shape)],
            properties={"space": StringAttr(space)},
        )

    def verify_(self) -> None:
        _check_ranges(self.over, "the ranges of uloop.tile")
        _check_kind(self.space.data, TILE_SPACES)
        type_ = buffer_of(self.result)
        if type_.element_type != self.value.type:
            raise VerifyException(f"a tile of {self.value.type} cannot be {type_}")
        if len(self.over) != type_.get_num_dims():
            raise VerifyException(
                f"a tile has one dimension a range: expected {len(self.over)}, got {type_}"
            )
        for axis, (value, length) in enumerate(zip(self.over, type_.get_shape(), strict=True)):
            owner = value.owner
            if not isinstance(owner, RangeOp):
                continue
            end = owner.constant_end
            if end is None and owner.maximum is not None:
                end = owner.maximum.value.data
            if end is not None and length < end:
                raise VerifyException(
                    f"dimension {axis} of the tile has {length} places for a range of {end}"
                )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" over (")
        printer.print_list(self.over, printer.print_ssa_value)
        printer.print_string(f") {self.space.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> TileOp:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("over")
        over = [
            parser.resolve_operand(u, IndexType())
            for u in parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_unresolved_operand
            )
        ]
        space = parser.parse_identifier()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        if not isinstance(type_, MemRefType):
            parser.raise_error(f"expected a memref type, got {type_}")
        typed = cast("MemRefType[Attribute]", type_)
        return cls.create(
            operands=[parser.resolve_operand(value, typed.element_type), *over],
            result_types=[typed],
            properties={"space": StringAttr(space)},
            attributes=attributes,
        )


class ExpressionOp(IRDLOperation, ABC):
    """An op over index expressions only."""

    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)


@irdl_op_definition
class IndexOp(ExpressionOp):
    """`%x = uloop.index %i * 2 + 1 : i32`: an index as a number (an integer wraps)."""

    name = "uloop.index"
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, indices: Sequence[SSAValue], map_: AffineMap, type_: Attribute):
        super().__init__(
            operands=[list(indices)],
            result_types=[type_],
            properties={"map": AffineMapAttr(map_)},
        )

    def verify_(self) -> None:
        _check_map(self.map, self.indices, 1)
        row = element_type(self.result.type)
        if row is None or not isinstance(self.result.type, IntegerType):
            raise VerifyException(f"uloop.index gives an integer, got {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_index_expression(printer, self.map.data.results[0], self.indices)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        operands: Operands = []
        expression = parse_index_expression(parser, operands)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(operands, AffineMap(len(operands), 0, (expression,)), parser.parse_type())
        op.attributes.update(attributes)
        return op


@irdl_op_definition
class ValueOp(IRDLOperation):
    """`%i = uloop.value %x : i32 in 0 to %n - 1 max 63`: a number as an index, clamped.

    Both bounds belong to it; `max` gives the largest upper bound where that is not a number.
    `unsigned` after the type says that the bits are those of an unsigned number.
    """

    name = "uloop.value"
    operand = operand_def(IntegerType)
    indices = var_operand_def(IndexType)
    lower = prop_def(IntegerAttr)
    upper = prop_def(AffineMapAttr)
    maximum = opt_prop_def(IntegerAttr)
    signedness = prop_def(StringAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(
        self,
        operand: SSAValue,
        lower: int,
        upper: AffineMap | int,
        indices: Sequence[SSAValue] = (),
        maximum: int | None = None,
        *,
        unsigned: bool = False,
    ):
        map_ = upper if isinstance(upper, AffineMap) else affine_map(0, [upper])
        super().__init__(
            operands=[operand, list(indices)],
            result_types=[IndexType()],
            properties={
                "lower": IntegerAttr(lower, i64),
                "upper": AffineMapAttr(map_),
                "maximum": None if maximum is None else IntegerAttr(maximum, i64),
                "signedness": StringAttr("unsigned" if unsigned else "signed"),
            },
        )

    @property
    def constant_upper(self) -> int | None:
        """The upper bound, if it is a number."""
        map_ = self.upper.data
        return None if map_.num_dims else map_.eval([], [])[0]

    def verify_(self) -> None:
        _check_map(self.upper, self.indices, 1)
        _check_kind(self.signedness.data, ("signed", "unsigned"))
        upper = self.constant_upper
        if upper is None:
            if self.maximum is None:
                raise VerifyException("an upper bound that is not a number needs 'max N'")
            upper = self.maximum.value.data
        if self.lower.value.data > upper:
            raise VerifyException(
                f"the bounds of uloop.value: expected {self.lower.value.data} <= {upper}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        if self.signedness.data != "signed":
            printer.print_string(f" {self.signedness.data}")
        printer.print_string(f" in {self.lower.value.data} to ")
        print_index_expression(printer, self.upper.data.results[0], self.indices)
        if self.maximum is not None:
            printer.print_string(f" max {self.maximum.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> ValueOp:
        unresolved = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(unresolved, parser.parse_type())
        unsigned = parser.parse_optional_keyword("unsigned") is not None
        parser.parse_keyword("in")
        lower = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("to")
        operands: Operands = []
        upper = parse_index_expression(parser, operands)
        maximum = None
        if parser.parse_optional_keyword("max"):
            maximum = parser.parse_integer(allow_boolean=False)
        map_ = AffineMap(len(operands), 0, (upper,))
        op = cls(operand, lower, map_, operands, maximum, unsigned=unsigned)
        op.attributes.update(attributes)
        return op


class ConditionOp(ExpressionOp, ABC):
    """An op over conditions `E >= 0`."""

    def verify_(self) -> None:
        _check_map(self.map, self.indices, None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_expression_list(printer, self.map.data, self.indices, "()")
        printer.print_op_attributes(self.attributes)


def _parse_conditions(parser: Parser) -> tuple[Operands, AffineMap, dict[str, Attribute]]:
    operands: Operands = []
    results = parse_expression_list(parser, operands, parser.Delimiter.PAREN)
    attributes = parser.parse_optional_attr_dict()
    return operands, AffineMap(len(operands), 0, tuple(results)), attributes


@irdl_op_definition
class ValidOp(ConditionOp):
    """`%c = uloop.valid (%i - 1, 8 - %i)`: true where every expression is at least 0."""

    name = "uloop.valid"
    result = result_def(IntegerType)
    traits = traits_def(Pure())

    def __init__(self, indices: Sequence[SSAValue], map_: AffineMap):
        super().__init__(
            operands=[list(indices)], result_types=[i1], properties={"map": AffineMapAttr(map_)}
        )

    @classmethod
    def parse(cls, parser: Parser) -> ValidOp:
        operands, map_, attributes = _parse_conditions(parser)
        op = cls(operands, map_)
        op.attributes.update(attributes)
        return op


@irdl_op_definition
class GuardOp(ConditionOp):
    """`uloop.guard (388 - %j0 * 48 - %j1)`: where an expression is below 0 nothing is stored, a
    load gives 0 and a reduction its identity."""

    name = "uloop.guard"

    def __init__(self, indices: Sequence[SSAValue], map_: AffineMap):
        super().__init__(operands=[list(indices)], properties={"map": AffineMapAttr(map_)})

    @classmethod
    def parse(cls, parser: Parser) -> GuardOp:
        operands, map_, attributes = _parse_conditions(parser)
        op = cls(operands, map_)
        op.attributes.update(attributes)
        return op


ULoop = Dialect(
    "uloop",
    [
        RangeOp, LoadOp, ReadOp, StoreOp, UpdateOp, ReduceOp, YieldOp, TileOp, IndexOp, ValueOp,
        ValidOp, GuardOp,
    ],
    [],
)  # fmt: skip
