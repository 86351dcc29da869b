"""How StableHLO's ops are written: in MLIR's generic form, and most in one of their own.

A form of one's own is a row of items with commas between, then attributes in braces and the types:

    form  ::= item (`, ` item)*
    item  ::= `%`               the operands
            | `=NAME`           a word of an enumeration: the property NAME
            | `KEY:NAME`        `KEY = value`: the property NAME, a list, a number or a word
    types ::= one for all operands and results | each operand's (-> the results')? | a function type

So `%, dims:permutation` reads `%x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>`. A form
in brackets is one item with parentheses around: `(%, k:k)`. Forms of other shapes are functions:
stablehlo_forms.py.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, UnitAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, var_operand_def, var_region_def, var_result_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.stablehlo_attributes import WordAttr, field_text, parse_field_value

Properties = dict[str, Attribute]


class HloOp(IRDLOperation, ABC):
    """An op of StableHLO or CHLO: any operands, results and regions, and the properties of its
    row. What they must be is checked where the op is converted."""

    arguments = var_operand_def()
    outputs = var_result_def()
    bodies = var_region_def()

    WORDS: ClassVar[dict[str, type[WordAttr]]] = {}
    """The properties that are words, and of which enumeration."""
    PROPERTIES: ClassVar[frozenset[str]] = frozenset()
    """The names of the properties."""
    ARITY: ClassVar[int | None] = None
    """How many operands there are, of ops with one result; None if that differs."""

    def verify_(self) -> None:
        if self.ARITY is None:
            return
        if len(self.operands) != self.ARITY or len(self.results) != 1:
            raise VerifyException(
                f"expected {self.ARITY} operands and 1 result, got {len(self.operands)} and "
                f"{len(self.results)}"
            )


@dataclass(frozen=True)
class Form:
    """How an op is written where it is not in generic form."""

    parse: Callable[[type[HloOp], Parser], HloOp]
    print: Callable[[HloOp, Printer], None]


class WrittenOp(HloOp, ABC):
    """An op with a form of its own."""

    FORM: ClassVar[Form]

    @classmethod
    def parse(cls, parser: Parser) -> HloOp:
        return cls.FORM.parse(cls, parser)

    def print(self, printer: Printer) -> None:
        self.FORM.print(self, printer)


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Parse `%a, %b`, up to what is no operand; a comma after it is taken."""
    operands: list[UnresolvedOperand] = []
    while (operand := parser.parse_optional_unresolved_operand()) is not None:
        operands.append(operand)
        if parser.parse_optional_punctuation(",") is None:
            break
    return operands


def parse_tail(parser: Parser, cls: type[HloOp], properties: Properties) -> Properties:
    """Parse `{…}`, the properties among it moved to `properties`; the others are returned."""
    attributes = parser.parse_optional_attr_dict()
    for name in list(attributes):
        if name in cls.PROPERTIES:
            properties[name] = attributes.pop(name)
    return attributes


def parse_types(
    parser: Parser, operands: Sequence[UnresolvedOperand]
) -> tuple[list[SSAValue], list[Attribute]]:
    """Parse `: types`; the operands resolved, and the results' types."""
    parser.parse_punctuation(":")
    position = parser.pos
    function = parser.parse_optional_function_type()
    if function is not None:
        types: list[Attribute] = list(function.inputs.data)
        results: list[Attribute] = list(function.outputs.data)
    else:
        types = list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))
        if parser.parse_optional_punctuation("->"):
            results = _parse_results(parser)
        else:
            results = types[-1:] if len(types) < max(2, len(operands)) else list(types)
            types = _spread(types, len(operands))
    resolved: list[SSAValue] = [*parser.resolve_operands(operands, types, position)]
    return resolved, results


def _parse_results(parser: Parser) -> list[Attribute]:
    many = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return list(many) if many is not None else [parser.parse_type()]


def _spread(types: list[Attribute], count: int) -> list[Attribute]:
    """One type stands for all operands; the last of two for all but the first (select)."""
    if not count:
        return []
    return types if len(types) >= count else types + types[-1:] * (count - len(types))


def print_types(op: Operation, printer: Printer) -> None:
    """Print `: types`: one for all where they are alike, a function type otherwise."""
    printer.print_string(" : ")
    operands = [operand.type for operand in op.operands]
    results = [result.type for result in op.results]
    if len(results) == 1 and all(each == results[0] for each in operands):
        printer.print_attribute(results[0])
    elif not results:
        printer.print_list(operands, printer.print_attribute)
    else:
        printer.print_function_type(operands, results)


def print_tail(op: HloOp, printer: Printer, shown: Sequence[str] = ()) -> None:
    """Print in braces the attributes, and the properties that the form does not show."""
    left = {name: value for name, value in op.properties.items() if name not in shown}
    printer.print_op_attributes(op.attributes | left)


def build(
    cls: type[HloOp],
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    properties: Properties,
    attributes: Properties,
    regions: Sequence[Any] = (),
) -> HloOp:
    """The op of these parts."""
    return cls.create(
        operands=operands,
        result_types=results,
        properties=properties,
        attributes=attributes,
        regions=regions,
    )


@dataclass(frozen=True)
class _Item:
    key: str
    """What stands before `=`; empty for a bare word."""
    name: str
    """The property."""


def items_form(text: str) -> Form:
    """The form of a row of items; see the head of this file."""
    bracketed = text.startswith("(")
    parts = text.strip("()").split(", ")
    items = [_Item(*part.split(":")) for part in parts if ":" in part]
    leading = [_Item("", part[1:]) for part in parts[: parts.index("%")] if part.startswith("=")]
    trailing = [_Item("", part[1:]) for part in parts if part.startswith("=")][len(leading) :]

    def parse(cls: type[HloOp], parser: Parser) -> HloOp:
        properties: Properties = {}
        if bracketed:
            parser.parse_punctuation("(")
        for item in leading:
            properties[item.name] = cls.WORDS[item.name].of(parser.parse_identifier())
            parser.parse_punctuation(",")
        operands = parse_operands(parser)
        _parse_items(cls, parser, properties)
        if bracketed:
            parser.parse_punctuation(")")
        attributes = parse_tail(parser, cls, properties)
        values, results = parse_types(parser, operands)
        if cls.name.endswith(".return"):
            results = []
        return build(cls, values, results, properties, attributes)

    def _parse_items(cls: type[HloOp], parser: Parser, properties: Properties) -> None:
        by_key = {item.key: item for item in items}
        while (word := parser.parse_optional_identifier()) is not None:
            if word in by_key:
                parser.parse_punctuation("=")
                name = by_key[word].name
                properties[name] = _parse_value(cls, parser, name)
            elif trailing:
                properties[trailing[0].name] = cls.WORDS[trailing[0].name].of(word)
            else:
                expected = ", ".join(by_key) or "a type"
                parser.raise_error(f"'{word}' in {cls.name}: expected {expected}")
            if parser.parse_optional_punctuation(",") is None:
                break

    def show(op: HloOp, printer: Printer) -> None:
        parts: list[Callable[[], object]] = []
        for item in leading:
            parts.append(lambda item=item: printer.print_string(_text(op, item)))
        parts += [lambda o=operand: printer.print_ssa_value(o) for operand in op.operands]
        for item in [*items, *trailing]:
            if item.name in op.properties:
                parts.append(lambda item=item: printer.print_string(_text(op, item)))
        printer.print_string("(" if bracketed else " ")
        printer.print_list(parts, lambda part: part())
        printer.print_string(")" if bracketed else "")
        print_tail(op, printer, [item.name for item in (*leading, *items, *trailing)])
        print_types(op, printer)

    return Form(parse, show)


def _text(op: HloOp, item: _Item) -> str:
    value = op.properties[item.name]
    if isinstance(value, WordAttr):
        text = value.word.data
    elif _is_flag(value):
        text = "true" if integer_of(value) else "false"
    else:
        text = field_text(value)
    return f"{item.key} = {text}" if item.key else text


def _parse_value(cls: type[HloOp], parser: Parser, name: str) -> Attribute:
    if name in cls.WORDS:
        return cls.WORDS[name].of(parser.parse_identifier())
    flag = parser.parse_optional_boolean()
    if flag is not None:
        return BoolAttr.from_bool(flag)
    return parse_field_value(parser)


def integer_of(attribute: Attribute | None, default: int = 0) -> int:
    """A number, or `default` where it is not there; of a flag 0 or 1."""
    if isinstance(attribute, UnitAttr):
        return 1
    if not isinstance(attribute, IntegerAttr):
        return default
    number = cast("IntegerAttr[Any]", attribute)
    value = int(number.value.data)
    return int(value != 0) if _is_flag(number) else value


def _is_flag(attribute: Attribute) -> bool:
    return isinstance(attribute, IntegerAttr) and cast("IntegerAttr[Any]", attribute).type == i1


def list_attr(values: Sequence[int]) -> Attribute:
    """A list of integers, as the ops hold it."""
    return DenseArrayBase.from_list(i64, values)
