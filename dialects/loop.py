"""uloop: a kernel's body as a DAG over index ranges, before any loop order is chosen.

    range    ::= %i = range E (max N)? KIND?        an index from 0 up to, without, E
               | %i = range min(E, E…) max N KIND?  up to the least of several
    load     ::= %v = load %b[E, …] WHERE? ASK? : M an element of a buffer; 0 where not valid
    read     ::= %v = read %t[E, …] : M             an element of a tile
    store    ::= store %v, %b[E, …] WHERE? : M      at most once an element
    update   ::= update OP %v, %b[E, …] WHERE? : M  combine into the element, in order of ranges
    pair     ::= %p = pair %v, %w : bf16            two of bf16 in an i32, the first below
    reduce   ::= %r = reduce OP %v over (%j, …) : T
               | %r = reduce dot %p, %q over (%j, …) : i32 -> f32
               | %r:n = reduce %a, … init %x, … over (%j, …) { ^(acc…, new…): … yield } : T, …
    tile     ::= %t = tile %v over (%i, …) SPACE : M   the values at all %i, in a local buffer
    index    ::= %x = index E : T                   an index as a number
    value    ::= %i = value %x : T in L to E (max N)?   a number as an index, clamped to L..E
    valid    ::= %c = valid (E, …)                  true where all E >= 0
    guard    ::= guard E                            nothing happens where E < 0
    WHERE    ::= where (E, …)                       every E >= 0
    ASK      ::= prefetch [E, …]                    a place that a later step reads: a hint
    E        ::= affine over %ranges, sizes, and values: %i * 8 + %j floordiv 3 - 1
    KIND     ::= loop | reduce | unroll | vector | thread | block | lane
    OP       ::= add | mul | max | min | umax | umin | and | or | xor | fma   (update: set, no fma)

Scalar arith and math stand between. A reduction's range is its own; a value's free ranges say
where it varies. linearize chooses the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    bf16,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
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

from uopc.dialects.index_text import (
    affine_map,
    parse_expression_list,
    parse_index_expression,
    print_expression_list,
    print_index_expression,
)
from uopc.dialects.loop_access import COMBINE_KINDS as COMBINE_KINDS
from uopc.dialects.loop_access import PRODUCT_KINDS as PRODUCT_KINDS
from uopc.dialects.loop_access import UPDATE_KINDS as UPDATE_KINDS
from uopc.dialects.loop_access import AccessOp as AccessOp
from uopc.dialects.loop_access import ElementOp as ElementOp
from uopc.dialects.loop_access import LoadOp as LoadOp
from uopc.dialects.loop_access import Operands as Operands
from uopc.dialects.loop_access import ReadOp as ReadOp
from uopc.dialects.loop_access import StoreOp as StoreOp
from uopc.dialects.loop_access import UpdateOp as UpdateOp
from uopc.dialects.loop_access import WritingOp as WritingOp
from uopc.dialects.loop_access import buffer_of as buffer_of
from uopc.dialects.loop_access import check_combination, check_kind, check_map
from uopc.dialects.loop_index import ConditionOp as ConditionOp
from uopc.dialects.loop_index import ExpressionOp as ExpressionOp
from uopc.dialects.loop_index import GuardOp as GuardOp
from uopc.dialects.loop_index import IndexOp as IndexOp
from uopc.dialects.loop_index import ValidOp as ValidOp
from uopc.dialects.loop_index import ValueOp as ValueOp

RANGE_KINDS = ("loop", "reduce", "unroll", "vector", "thread", "block", "lane")
MAX_END = 1 << 48
"""No loop counts further: at a nanosecond a step, three days."""
TILE_SPACES = ("local", "register", "shared")


@irdl_op_definition
class RangeOp(IRDLOperation):
    """`%i = uloop.range 8 vector`: an index that runs from 0 up to, without, its end.

    The end is the least result of the map: `%k = uloop.range min(%i + 1, 5) max 5 reduce`.
    """

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
        return None if map_.num_dims else min(map_.eval([], []))

    def verify_(self) -> None:
        check_map(self.end, self.operands_, None)
        if not self.end.data.results:
            raise VerifyException("expected a range to have an end")
        if self.kind.data not in RANGE_KINDS:
            raise VerifyException(
                f"unknown kind '{self.kind.data}': expected one of {', '.join(RANGE_KINDS)}"
            )
        if self.maximum is not None and not 0 <= self.maximum.value.data <= MAX_END:
            raise VerifyException(f"max is 0 to {MAX_END}, got {self.maximum.value.data}")
        end = self.constant_end
        if end is not None and not 0 <= end <= MAX_END:
            raise VerifyException(f"a range ends at 0 to {MAX_END}, got {end}")
        if end is None and self.maximum is None:
            raise VerifyException("a range whose end is not a number needs 'max N'")
        if end is None and self.kind.data in ("unroll", "vector"):
            raise VerifyException(f"the end of a range of kind {self.kind.data} is a number")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if len(self.end.data.results) == 1:
            print_index_expression(printer, self.end.data.results[0], self.operands_)
        else:
            printer.print_string("min")
            print_expression_list(printer, self.end.data, self.operands_, "()")
        if self.maximum is not None:
            printer.print_string(f" max {self.maximum.value.data}")
        if self.kind.data != "loop":
            printer.print_string(f" {self.kind.data}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> RangeOp:
        operands: Operands = []
        if parser.parse_optional_keyword("min"):
            ends = parse_expression_list(parser, operands, parser.Delimiter.PAREN)
        else:
            ends = [parse_index_expression(parser, operands)]
        maximum = None
        if parser.parse_optional_keyword("max"):
            maximum = parser.parse_integer(allow_boolean=False)
        kind = next((k for k in RANGE_KINDS if parser.parse_optional_keyword(k)), "loop")
        op = cls(AffineMap(len(operands), 0, tuple(ends)), operands, kind, maximum)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op


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
        types = [v.type for v in init] if kind is None else [_sum_type(kind, values[0].type)]
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
            check_kind(self.kind.data, COMBINE_KINDS)
            if types:
                check_combination(self.kind.data, COMBINE_KINDS, types[0])
            count = 2 if self.kind.data in PRODUCT_KINDS else 1
            if len(types) != count or len(set(types)) != 1:
                raise VerifyException(
                    f"reduce {self.kind.data}: expected {count} values of one type, got "
                    f"{', '.join(map(str, types))}"
                )
            if self.init or self.combiner.blocks:
                raise VerifyException("a reduce of a kind has no init and no region")
            expected = [_sum_type(self.kind.data, types[0])]
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
        elif self.kind is not None and self.kind.data == "dot":
            printer.print_string(" -> ")
            printer.print_attribute(self.results_[0].type)

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
        # A dictionary of attributes looks like a region: only a reduce without a kind has one.
        combiner = parser.parse_region() if kind is None else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(none, parser.parse_type)
        if kind is not None:
            types = types * len(values)
        if kind == "dot":
            parser.parse_punctuation("->")
            position = parser.pos
            if (sum_type := parser.parse_type()) != f32:
                parser.raise_error(f"a sum of pairs of bf16 is f32, got {sum_type}", position)
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


def _sum_type(kind: str, value: Attribute) -> Attribute:
    """What a reduction of a kind gives: the type that it combines, of pairs of bf16 f32."""
    return f32 if kind == "dot" else value


@irdl_op_definition
class PairOp(IRDLOperation):
    """`%p = uloop.pair %v, %w : bf16`: two numbers of bf16 in an i32, the first in its low half.

    `reduce dot` takes them, one of each factor: it adds two products a step."""

    T: ClassVar[VarConstraint[Attribute]] = VarConstraint("T", AnyAttr())

    name = "uloop.pair"
    low = operand_def(T)
    high = operand_def(T)
    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$low `,` $high attr-dict `:` type($low)"

    def __init__(self, low: SSAValue, high: SSAValue):
        super().__init__(operands=[low, high], result_types=[i32])

    def verify_(self) -> None:
        if self.low.type != bf16:
            raise VerifyException(f"a pair is of bf16, got {self.low.type}")


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
        check_kind(self.space.data, TILE_SPACES)
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


ULoop = Dialect(
    "uloop",
    [
        RangeOp, LoadOp, ReadOp, StoreOp, UpdateOp, PairOp, ReduceOp, YieldOp, TileOp, IndexOp,
        ValueOp, ValidOp, GuardOp,
    ],
    [],
)  # fmt: skip
