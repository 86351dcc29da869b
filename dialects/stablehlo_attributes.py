"""The attributes of StableHLO and CHLO: words, structs and a convolution's axes.

    #stablehlo<comparison_direction LT>                        a word of an enumeration
    #stablehlo.dot<lhs_contracting_dimensions = [1], ...>      a struct: names with values
    #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>            what each axis of a convolution is

Source of names and forms: StableHLO's specification and what its printer writes.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.dialects.builtin import i64 as i64_type
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

_T = TypeVar("_T", bound=ParametrizedAttribute)


class WordAttr(ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, ABC):
    """A word of an enumeration; printed as `#stablehlo<comparison_type FLOAT>`."""

    WORDS: ClassVar[tuple[str, ...]] = ()
    word: StringAttr

    @classmethod
    def of(cls, word: str) -> WordAttr:
        """The attribute of one of WORDS. Raises VerifyException for another word."""
        return cls(StringAttr(word))  # pyright: ignore[reportCallIssue] -- made by irdl_attr_definition

    def verify(self) -> None:
        if self.word.data not in self.WORDS:
            expected = ", ".join(self.WORDS)
            raise VerifyException(f"{self.name}: expected one of {expected}, got {self.word.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return [StringAttr(parser.parse_identifier())]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(self.word.data)


class StructAttr(ParametrizedAttribute, ABC):
    """Names with values; printed as `#stablehlo.dot<lhs_contracting_dimensions = [1]>`."""

    fields: DictionaryAttr

    @classmethod
    def of(cls, fields: Mapping[str, Attribute]) -> StructAttr:
        """The attribute with these fields; see `axes_attr` for a list of axes."""
        return cls(DictionaryAttr(fields))  # pyright: ignore[reportCallIssue] -- made by irdl_attr_definition

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        pairs = parser.parse_comma_separated_list(
            parser.Delimiter.ANGLE, lambda: _parse_field(parser)
        )
        return [DictionaryAttr(dict(pairs))]

    def print_parameters(self, printer: Printer) -> None:
        parts = [f"{name} = {field_text(value)}" for name, value in self.fields.data.items()]
        printer.print_string(f"<{', '.join(parts)}>")

    def axes(self, name: str) -> tuple[int, ...]:
        """A list of axes; empty if it is not there."""
        value = self.fields.data.get(name)
        return int_list(value) if value is not None else ()

    def integer(self, name: str, default: int) -> int:
        """A number, or what it is where it is not there."""
        value = self.fields.data.get(name)
        return value.value.data if isinstance(value, IntegerAttr) else default


def _parse_field(parser: AttrParser) -> tuple[str, Attribute]:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    return name, parse_field_value(parser)


def parse_field_value(parser: AttrParser) -> Attribute:
    """A value of a struct: `[1, 2]`, a number, `true`, a type, or a word."""
    axes = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parser.parse_integer()
    )
    if axes is not None:
        return axes_attr(axes)
    number = parser.parse_optional_integer()
    if number is not None:
        return IntegerAttr(int(number), i64_type)
    attribute = parser.parse_optional_attribute()
    return attribute if attribute is not None else StringAttr(parser.parse_identifier())


def axes_attr(axes: Sequence[int]) -> Attribute:
    """A list of axes, as structs and ops hold it."""
    return DenseArrayBase.from_list(i64_type, axes)


def int_list(attribute: Attribute) -> tuple[int, ...]:
    """The integers of an array or of a dense attribute. Raises VerifyException for others."""
    if isinstance(attribute, DenseArrayBase):
        return tuple(int(v) for v in cast("DenseArrayBase[Any]", attribute).get_values())
    if isinstance(attribute, ArrayAttr):
        items = cast("ArrayAttr[Attribute]", attribute).data
        if all(isinstance(item, IntegerAttr) for item in items):
            return tuple(cast("IntegerAttr[Any]", item).value.data for item in items)
    if isinstance(attribute, DenseIntOrFPElementsAttr):  # the older form
        dense = cast("DenseIntOrFPElementsAttr[Any]", attribute)
        values = tuple(int(value) for value in dense.get_values())
        return values * len(dense) if len(values) == 1 else values
    raise VerifyException(f"expected a list of integers, got {attribute}")


def field_text(value: Attribute) -> str:
    """A struct's value as its text."""
    if isinstance(value, DenseArrayBase):
        return "[" + ", ".join(map(str, int_list(cast(Attribute, value)))) + "]"
    if isinstance(value, IntegerAttr):
        return str(cast("IntegerAttr[Any]", value).value.data)
    return value.data if isinstance(value, StringAttr) else str(value)


_CONV_AXES = ("input", "kernel", "output")
_CONV_LETTERS = {
    "input": {"b": "input_batch_dimension", "f": "input_feature_dimension"},
    "kernel": {"i": "kernel_input_feature_dimension", "o": "kernel_output_feature_dimension"},
    "output": {"b": "output_batch_dimension", "f": "output_feature_dimension"},
}


@irdl_attr_definition
class ConvAttr(StructAttr):
    """What each axis of a convolution's input, kernel and result is: batch `b`, features `f`, `i`
    and `o`, or a spatial axis by its number. Also read in its raw form, with names."""

    name = "stablehlo.conv"

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        parser.parse_punctuation("<")
        if parser.parse_optional_keyword("raw"):
            pairs = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, lambda: _parse_field(parser)
            )
            fields = dict(pairs)
        else:
            fields = parse_conv_axes(parser)
        parser.parse_punctuation(">")
        return [DictionaryAttr(fields)]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.text()}>")

    def text(self) -> str:
        """`[b, 0, f]x[0, i, o]->[b, 0, f]`"""
        parts: list[str] = []
        for which in _CONV_AXES:
            spatial = self.axes(f"{which}_spatial_dimensions")
            names = ["?"] * (len(spatial) + 2)
            for number, axis in enumerate(spatial):
                names[axis] = str(number)
            for letter, field in _CONV_LETTERS[which].items():
                names[self.integer(field, 0)] = letter
            parts.append("[" + ", ".join(names) + "]")
        return f"{parts[0]}x{parts[1]}->{parts[2]}"


def parse_conv_axes(parser: AttrParser) -> dict[str, Attribute]:
    """Parse `[b, 0, f]x[0, i, o]->[b, 0, f]`."""
    fields: dict[str, Attribute] = {}
    for which, separator in zip(_CONV_AXES, ("x", "->", ""), strict=True):
        position = parser.pos
        names = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE,
            lambda: parser.parse_optional_identifier() or parser.parse_integer(),
        )
        letters = _CONV_LETTERS[which]
        spatial: dict[int, int] = {}
        for axis, name in enumerate(names):
            if isinstance(name, int):
                spatial[name] = axis
            elif name in letters:
                fields[letters[name]] = IntegerAttr(axis, i64_type)
            else:
                expected = ", ".join(letters)
                parser.raise_error(f"axis '{name}': expected {expected} or a number", position)
        if sorted(spatial) != list(range(len(names) - len(letters))):
            expected = ", ".join(letters)
            parser.raise_error(
                f"the axes of the {which}: expected {expected} and the numbers from 0, each once",
                position,
            )
        axes = [spatial[number] for number in sorted(spatial)]
        fields[f"{which}_spatial_dimensions"] = axes_attr(axes)
        if separator == "x":
            parser.parse_keyword("x")
        elif separator:
            parser.parse_punctuation("->")
    return fields


def _word(name: str, words: Sequence[str]) -> type[WordAttr]:
    members = {
        "__module__": __name__,
        "__doc__": f"One of {', '.join(words)}.",
        "__annotations__": {"WORDS": ClassVar[tuple[str, ...]]},
        "name": name,
        "WORDS": tuple(words),
    }
    return _define(WordAttr, name, members)


def _struct(name: str) -> type[StructAttr]:
    members = {"__module__": __name__, "__doc__": f"The struct {name}.", "name": name}
    return _define(StructAttr, name, members)


def _define(base: type[_T], name: str, members: dict[str, Any]) -> type[_T]:
    parts = name.replace(".", "_").split("_")
    class_name = "".join(part.capitalize() for part in parts) + "Attr"
    return irdl_attr_definition(cast("type[_T]", type(class_name, (base,), members)))


_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
_COMPARISONS = ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
_PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")

ComparisonDirectionAttr = _word("stablehlo.comparison_direction", _DIRECTIONS)
ComparisonTypeAttr = _word("stablehlo.comparison_type", _COMPARISONS)
PrecisionAttr = _word("stablehlo.precision", _PRECISIONS)
RngAlgorithmAttr = _word("stablehlo.rng_algorithm", ("DEFAULT", "THREE_FRY", "PHILOX"))
RngDistributionAttr = _word("stablehlo.rng_distribution", ("UNIFORM", "NORMAL"))
FftTypeAttr = _word("stablehlo.fft_type", ("FFT", "IFFT", "RFFT", "IRFFT"))
TransposeAttr = _word(
    "stablehlo.transpose", ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
)
DotAttr = _struct("stablehlo.dot")
DotAlgorithmAttr = _struct("stablehlo.dot_algorithm")
GatherAttr = _struct("stablehlo.gather")
ScatterAttr = _struct("stablehlo.scatter")

STABLEHLO_ATTRIBUTES: tuple[type[ParametrizedAttribute], ...] = (
    ComparisonDirectionAttr, ComparisonTypeAttr, PrecisionAttr, RngAlgorithmAttr,
    RngDistributionAttr, FftTypeAttr, TransposeAttr, DotAttr, DotAlgorithmAttr, GatherAttr,
    ScatterAttr, ConvAttr, _struct("stablehlo.channel_handle"),
    _struct("stablehlo.output_operand_alias"), _struct("stablehlo.result_accuracy"),
    _word("stablehlo.result_accuracy_mode", ("DEFAULT", "HIGHEST", "TOLERANCE")),
)  # fmt: skip

ChloComparisonDirectionAttr = _word("chlo.comparison_direction", _DIRECTIONS)
ChloComparisonTypeAttr = _word("chlo.comparison_type", _COMPARISONS)
RaggedDotAttr = _struct("chlo.ragged_dot")

CHLO_ATTRIBUTES: tuple[type[ParametrizedAttribute], ...] = (
    ChloComparisonDirectionAttr, ChloComparisonTypeAttr, RaggedDotAttr,
    _word("chlo.precision", _PRECISIONS),
)  # fmt: skip
