"""Tensor shapes whose sizes are numbers or expressions over bounded symbols.

A size that depends on a symbol is `?` in the tensor's shape and an expression in its encoding:

    tensor<4x8xf32>                                                   static
    tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>>          n + 1 rows, n in 1..64
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.index_expr import Expr, SymbolVar, as_expr, symbol

Size = int | Expr
"""An extent. An Expr that is constant is always written as the int (see `size`)."""

MAX_ELEMENTS = 1 << 40
"""A tensor may not hold more elements than this (at its symbols' upper bounds)."""


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


def parse_sizes(parser: AttrParser) -> tuple[Size, ...]:
    """Parse what `print_sizes` prints. The bounds of symbols follow their use."""
    trees = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_sum(parser))
    symbols: dict[str, Expr] = {}
    while parser.parse_optional_punctuation(","):
        name = parser.parse_identifier()
        parser.parse_punctuation("=")
        lower = parser.parse_integer(allow_boolean=False)
        parser.parse_keyword("to")
        upper = parser.parse_integer(allow_boolean=False)
        if not 0 <= lower <= upper:
            parser.raise_error(f"expected 0 <= lower <= upper for '{name}', got {lower}, {upper}")
        symbols[name] = symbol(name, lower, upper)

    def build(tree: _Tree) -> Expr:
        match tree:
            case int():
                return as_expr(tree)
            case str():
                if tree not in symbols:
                    parser.raise_error(
                        f"the size '{tree}' has no bounds: expected ', {tree} = LOW to HIGH'"
                    )
                return symbols[tree]
            case (operator, left, right):
                a, b = build(left), build(right)
                if operator in ("floordiv", "mod") and b.bounds[0] < 1:
                    parser.raise_error(f"expected a positive divisor, got {b}")
                return {
                    "+": lambda: a + b,
                    "-": lambda: a - b,
                    "*": lambda: a * b,
                    "floordiv": lambda: a // b,
                    "mod": lambda: a % b,
                }[operator]()

    return tuple(size(build(t)) for t in trees)


def parse_symbol(parser: AttrParser) -> Expr:
    """Parse `n = 1 to 64`."""
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    lower = parser.parse_integer(allow_boolean=False)
    parser.parse_keyword("to")
    upper = parser.parse_integer(allow_boolean=False)
    if not 0 <= lower <= upper:
        parser.raise_error(f"expected 0 <= lower <= upper for '{name}', got {lower}, {upper}")
    return symbol(name, lower, upper)


_Tree = int | str | tuple[str, "_Tree", "_Tree"]


def _parse_sum(parser: AttrParser) -> _Tree:
    left = _parse_product(parser)
    while True:
        if parser.parse_optional_punctuation("+"):
            left = ("+", left, _parse_product(parser))
        elif parser.parse_optional_punctuation("-"):
            left = ("-", left, _parse_product(parser))
        else:
            return left


def _parse_product(parser: AttrParser) -> _Tree:
    left = _parse_leaf(parser)
    while True:
        if parser.parse_optional_punctuation("*"):
            left = ("*", left, _parse_leaf(parser))
        elif parser.parse_optional_keyword("floordiv"):
            left = ("floordiv", left, _parse_leaf(parser))
        elif parser.parse_optional_keyword("mod"):
            left = ("mod", left, _parse_leaf(parser))
        else:
            return left


def _parse_leaf(parser: AttrParser) -> _Tree:
    if parser.parse_optional_punctuation("("):
        tree = _parse_sum(parser)
        parser.parse_punctuation(")")
        return tree
    name = parser.parse_optional_identifier()
    return name if name is not None else parser.parse_integer(allow_boolean=False)


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
    the tensor is larger than MAX_ELEMENTS.
    """
    shape = tensor.get_shape()
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
