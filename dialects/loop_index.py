"""uloop's ops between indices and numbers: index, value, valid, guard."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap
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
from uopc.dialects.index_text import (
    affine_map,
    parse_expression_list,
    parse_index_expression,
    print_expression_list,
    print_index_expression,
)
from uopc.dialects.loop_access import Operands, check_kind, check_map


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
        check_map(self.map, self.indices, 1)
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
        check_map(self.upper, self.indices, 1)
        check_kind(self.signedness.data, ("signed", "unsigned"))
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
        check_map(self.map, self.indices, None)

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
