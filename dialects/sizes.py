"""Tensor shapes whose sizes are numbers or expressions over bounded symbols.

A size that depends on a symbol is `?` in the tensor's shape and an expression in its encoding:

    tensor<4x8xf32>                                                   static
    tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>>          n + 1 rows, n in 1..64
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.lexer import Position

from uopc.dialects.index_expr import Expr, SymbolVar, as_expr, maximum, minimum, symbol

Size = int | Expr
"""An extent. An Expr that is constant is always written as the int (see `size`)."""

MAX_ELEMENTS = 1 << 40
"""A tensor may not hold more elements than this (at its symbols' upper bounds)."""

MAX_RANK = 32
"""What numpy's arrays had before numpy 2."""

RESERVED_NAMES = frozenset({"floordiv", "mod", "min", "max", "to"})
"""What a symbol cannot be called: the words of size expressions."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


def size(value: Size) -> Size:
    """`value` with constant expressions turned into ints."""
    if isinstance(value, int):
        return value
    constant = value.as_int()
    return value if constant is None else constant


def size_upper(value: Size) -> int:
    """The largest value that a size takes."""
    return value if isinstance(value, int) else value.bounds[1]


def symbols_in(sizes: Iterable[Size]) -> list[SymbolVar]:
    """The symbols of some sizes, each once, in order of name."""
    found = {
        leaf
        for value in sizes
        if isinstance(value, Expr)
        for leaf in value.leaves
        if isinstance(leaf, SymbolVar)
    }
    return sorted(found, key=lambda s: (s.name, s.lower, s.upper))


@irdl_attr_definition
class SizesAttr(Data[tuple[Size, ...]]):
    """A list of sizes, as a tensor's encoding and as the operands of movement ops."""

    name = "utensor.sizes"

    def verify(self) -> None:
        """One name means one symbol, and each can be written."""
        names: dict[str, SymbolVar] = {}
        for value in self.data:
            if not isinstance(value, Expr):
                continue
            for leaf in value.leaves:
                if not isinstance(leaf, SymbolVar):
                    raise VerifyException(f"size {value}: expected symbols only, got {leaf.name}")
                if not _NAME.fullmatch(leaf.name) or leaf.name in RESERVED_NAMES:
                    raise VerifyException(f"a size cannot have the name {leaf.name!r}")
                if names.setdefault(leaf.name, leaf) is not leaf:
                    raise VerifyException(f"the symbol '{leaf.name}' has its bounds twice")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Size, ...]:
        with parser.in_angle_brackets():
            return parse_sizes(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_sizes(printer, self.data)


def print_sizes(printer: Printer, sizes: Sequence[Size]) -> None:
    """Print `[n + 1, 8], n = 1 to 64`; the part after the bracket only if there are symbols."""
    printer.print_string("[" + ", ".join(map(str, sizes)) + "]")
    for s in symbols_in(sizes):
        printer.print_string(f", {s.name} = {s.lower} to {s.upper}")


def parse_sizes(parser: AttrParser, known: Mapping[str, Expr] | None = None) -> tuple[Size, ...]:
    """Parse what `print_sizes` prints. The bounds of symbols follow their use, unless the symbols
    are `known` from elsewhere."""
    codes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_code(parser))
    symbols: Mapping[str, Expr] = _parse_bounds(parser) if known is None else known
    return tuple(size(_run(parser, code, symbols)) for code in codes)


def _parse_bounds(parser: AttrParser) -> dict[str, Expr]:
    """Parse `, n = 1 to 64, m = 0 to 8`."""
    symbols: dict[str, Expr] = {}
    while parser.parse_optional_punctuation(","):
        position = parser.pos
        parsed = parse_symbol(parser)
        if str(parsed) in symbols:
            parser.raise_error(f"the symbol '{parsed}' has its bounds twice", position, parser.pos)
        symbols[str(parsed)] = parsed
    return symbols


def parse_symbol(parser: AttrParser) -> Expr:
    """Parse `n = 1 to 64`."""
    position = parser.pos
    name = parser.parse_identifier()
    if name in RESERVED_NAMES:
        parser.raise_error(f"a size cannot have the name '{name}'", position, parser.pos)
    parser.parse_punctuation("=")
    position = parser.pos
    lower = parser.parse_integer(allow_boolean=False)
    parser.parse_keyword("to")
    upper = parser.parse_integer(allow_boolean=False)
    if not 0 <= lower <= upper <= MAX_ELEMENTS:
        parser.raise_error(
            f"expected bounds 0 <= lower <= upper <= {MAX_ELEMENTS} for '{name}', got {lower} to "
            f"{upper}",
            position,
            parser.pos,
        )
    return symbol(name, lower, upper)


class _Step(NamedTuple):
    """A step of a size's text in postfix order: bounds follow the text, so it is built later."""

    word: str | int
    """A number, a symbol's name, or an operator with two operands."""
    is_operator: bool
    position: Position


_Code = list[_Step]

_OPERATORS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": minimum,
    "max": maximum,
}


def _run(parser: AttrParser, code: _Code, symbols: Mapping[str, Expr]) -> Expr:
    """The expression that a text spells."""
    stack: list[Expr] = []
    for word, is_operator, position in code:
        if isinstance(word, int):
            stack.append(as_expr(word))
        elif is_operator:
            right, left = stack.pop(), stack.pop()
            if word in ("floordiv", "mod") and right.lower < 1:
                parser.raise_error(f"expected a positive divisor, got {right}", position)
            stack.append(_OPERATORS[word](left, right))
        elif word in symbols:
            stack.append(symbols[word])
        else:
            known = f"; known are {', '.join(symbols)}" if symbols else ""
            parser.raise_error(
                f"the size '{word}' has no bounds: expected '{word} = LOW to HIGH'{known}",
                position,
            )
    return stack[0]


def _parse_code(parser: AttrParser) -> _Code:
    code: _Code = []
    _parse_sum(parser, code)
    return code


def _parse_sum(parser: AttrParser, code: _Code) -> None:
    position = parser.pos
    if parser.parse_optional_punctuation("-"):
        code.append(_Step(0, False, position))
        _parse_product(parser, code)
        code.append(_Step("-", True, position))
    else:
        _parse_product(parser, code)
    while True:
        position = parser.pos
        if parser.parse_optional_punctuation("+"):
            sign = "+"
        elif parser.parse_optional_punctuation("-"):
            sign = "-"
        else:
            return
        _parse_product(parser, code)
        code.append(_Step(sign, True, position))


def _parse_product(parser: AttrParser, code: _Code) -> None:
    _parse_leaf(parser, code)
    while True:
        position = parser.pos
        word: str | None = parser.parse_optional_punctuation("*")
        word = word or parser.parse_optional_keyword_in(("floordiv", "mod"))
        if word is None:
            return
        _parse_leaf(parser, code)
        code.append(_Step(word, True, position))


def _parse_leaf(parser: AttrParser, code: _Code) -> None:
    position = parser.pos
    if parser.parse_optional_punctuation("("):
        _parse_sum(parser, code)
        parser.parse_punctuation(")")
    elif word := parser.parse_optional_keyword_in(("min", "max")):
        parser.parse_punctuation("(")
        _parse_sum(parser, code)
        while parser.parse_optional_punctuation(","):
            _parse_sum(parser, code)
            code.append(_Step(word, True, position))
        parser.parse_punctuation(")")
    else:
        name = parser.parse_optional_identifier()
        word_or_number = parser.parse_integer(allow_boolean=False) if name is None else name
        code.append(_Step(word_or_number, False, position))


@lru_cache(maxsize=4096)
def tensor_type(element: Attribute, sizes: tuple[Size, ...]) -> TensorType[Attribute]:
    """The tensor type with these sizes; symbolic ones go to the encoding."""
    sizes = tuple(size(s) for s in sizes)
    if all(isinstance(s, int) for s in sizes):
        return TensorType(element, cast(tuple[int, ...], sizes))
    shape = [s if isinstance(s, int) else DYNAMIC_INDEX for s in sizes]
    return TensorType(element, shape, SizesAttr(sizes))


@lru_cache(maxsize=4096)
def sizes_of(tensor: TensorType[Attribute]) -> tuple[Size, ...]:
    """The sizes of a tensor type.

    Raises VerifyException where a `?` has no expression, an encoding contradicts the shape, or
    the tensor is larger than MAX_ELEMENTS or has more dimensions than MAX_RANK.
    """
    shape = tensor.get_shape()
    if len(shape) > MAX_RANK:
        raise VerifyException(f"a tensor of rank {len(shape)} is beyond the limit of {MAX_RANK}")
    encoding = tensor.encoding
    if isinstance(encoding, SizesAttr):
        sizes = encoding.data
        if len(sizes) != len(shape):
            raise VerifyException(
                f"{tensor} has {len(shape)} dimensions, its encoding {len(sizes)} sizes"
            )
        for position, (dim, value) in enumerate(zip(shape, sizes, strict=True)):
            if dim != (value if isinstance(value, int) else DYNAMIC_INDEX):
                raise VerifyException(
                    f"dimension {position} of {tensor} contradicts its encoding's {value}"
                )
            if isinstance(value, Expr) and value.bounds[0] < 0:
                raise VerifyException(f"size {value} of {tensor} may be negative")
    elif isinstance(encoding, NoneAttr):
        sizes = shape
        if DYNAMIC_INDEX in shape:
            raise VerifyException(
                f"{tensor} has a dynamic size without bounds: expected an encoding such as "
                "#utensor.sizes<[n], n = 1 to 64>"
            )
        if any(s < 0 for s in shape):
            raise VerifyException(f"{tensor} has a negative size")
    else:
        raise VerifyException(f"{tensor} has an encoding that is not #utensor.sizes")
    if element_count_upper(sizes) > MAX_ELEMENTS:
        raise VerifyException(
            f"{tensor} has {element_count_upper(sizes)} elements, more than the limit of "
            f"{MAX_ELEMENTS}"
        )
    return sizes


def element_count(sizes: Iterable[Size]) -> Size:
    """The number of elements, 1 for rank 0."""
    total: Size = 1
    for s in sizes:
        total = size(total * s)
    return total


def element_count_upper(sizes: Iterable[Size]) -> int:
    """The number of elements at the symbols' upper bounds."""
    total = 1
    for s in sizes:
        total *= size_upper(s)
    return total


def shape_text(sizes: Sequence[Size]) -> str:
    """`4x8`, `n+1x8`, or `scalar` for rank 0: for messages."""
    return "x".join(str(s).replace(" ", "") for s in sizes) or "scalar"
