"""Index expressions as text over SSA values: `%i * 8 + %j floordiv 3 - 1`.

An op holds an affine map whose dimensions are its operands; here the map's expressions are
printed and parsed with the operands in their places.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

_SUM, _PRODUCT, _LEAF = 1, 2, 3

_ADD = AffineBinaryOpKind.Add
_DIVISIONS = (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.CeilDiv, AffineBinaryOpKind.Mod)

OPERATOR_LIMIT = 256
"""How many operators one level of brackets may have: xDSL walks affine maps recursively."""

_OPERATORS: dict[AffineBinaryOpKind, tuple[str, int]] = {
    AffineBinaryOpKind.Add: ("+", _SUM),
    AffineBinaryOpKind.Mul: ("*", _PRODUCT),
    AffineBinaryOpKind.FloorDiv: ("floordiv", _PRODUCT),
    AffineBinaryOpKind.CeilDiv: ("ceildiv", _PRODUCT),
    AffineBinaryOpKind.Mod: ("mod", _PRODUCT),
}


def affine_map(dims: int, results: Sequence[AffineExpr | int]) -> AffineMap:
    """A map over `dims` dimensions; ints become constants."""
    exprs = [AffineExpr.constant(r) if isinstance(r, int) else r for r in results]
    return AffineMap(dims, 0, tuple(exprs))


def print_index_expression(
    printer: Printer, expr: AffineExpr, operands: Sequence[SSAValue], precedence: int = _SUM
) -> None:
    """Print an expression with its dimensions replaced by operands."""
    if isinstance(expr, AffineDimExpr):
        printer.print_ssa_value(operands[expr.position])
        return
    if isinstance(expr, AffineConstantExpr):
        printer.print_string(str(expr.value))
        return
    if not isinstance(expr, AffineBinaryOpExpr):
        printer.print_string(str(expr))
        return
    word, own = _OPERATORS[expr.kind]
    if own < precedence:
        printer.print_string("(")
    left, right = expr.lhs, expr.rhs
    if _negated(left) and isinstance(right, AffineConstantExpr) and own == _SUM and right.value > 0:
        left, right = right, left  # 7 - %i, not %i * -1 + 7
    print_index_expression(printer, left, operands, own)
    if own == _SUM and (negated := _negated(right)) is not None:
        printer.print_string(" - ")
        print_index_expression(printer, negated, operands, _PRODUCT)
    else:
        printer.print_string(f" {word} ")
        print_index_expression(printer, right, operands, own + 1)
    if own < precedence:
        printer.print_string(")")


def _negated(expr: AffineExpr) -> AffineExpr | None:
    """-expr, for a negative constant or a product with one."""
    if isinstance(expr, AffineConstantExpr) and expr.value < 0:
        return AffineConstantExpr(-expr.value)
    if (
        isinstance(expr, AffineBinaryOpExpr)
        and expr.kind is AffineBinaryOpKind.Mul
        and isinstance(expr.rhs, AffineConstantExpr)
        and expr.rhs.value < 0
    ):
        if expr.rhs.value == -1:
            return expr.lhs
        return AffineBinaryOpExpr(
            AffineBinaryOpKind.Mul, expr.lhs, AffineConstantExpr(-expr.rhs.value)
        )
    return None


def print_expression_list(
    printer: Printer, map_: AffineMap, operands: Sequence[SSAValue], delimiters: str
) -> None:
    """Print the results of a map between two delimiters."""
    printer.print_string(delimiters[0])
    printer.print_list(map_.results, lambda expr: print_index_expression(printer, expr, operands))
    printer.print_string(delimiters[1])


def parse_expression_list(
    parser: Parser, operands: list[SSAValue], delimiter: Parser.Delimiter
) -> list[AffineExpr]:
    """Parse what `print_expression_list` prints; new operands are added to the list."""
    return parser.parse_comma_separated_list(
        delimiter, lambda: parse_index_expression(parser, operands)
    )


def parse_index_expression(
    parser: Parser, operands: list[SSAValue], precedence: int = _SUM
) -> AffineExpr:
    """Parse an expression; the operands it names are added to the list, each once.

    What is built is what xDSL's parser of affine maps builds, so that the generic form of an op
    reads back to the same: constants stand on the right and are folded.
    """
    left = _parse_leaf(parser, operands)
    count = 0
    while True:
        position = parser.pos
        if precedence <= _PRODUCT and (kind := _parse_product_operator(parser)):
            right = parse_index_expression(parser, operands, _LEAF)
        elif precedence <= _SUM and parser.parse_optional_punctuation("+"):
            kind, right = _ADD, parse_index_expression(parser, operands, _PRODUCT)
        elif precedence <= _SUM and parser.parse_optional_punctuation("-"):
            kind, right = _ADD, parse_index_expression(parser, operands, _PRODUCT)
            right = _combined(AffineBinaryOpKind.Mul, right, AffineConstantExpr(-1))
        else:
            return left
        count += 1
        if count > OPERATOR_LIMIT:
            parser.raise_error(f"an index expression of more than {OPERATOR_LIMIT} operators")
        if kind in _DIVISIONS and isinstance(right, AffineConstantExpr) and right.value < 1:
            parser.raise_error(f"expected a positive divisor, got {right.value}", position)
        left = _combined(kind, left, right)


def _combined(kind: AffineBinaryOpKind, left: AffineExpr, right: AffineExpr) -> AffineExpr:
    """`left kind right`, folded where xDSL can: it has no products and divisions of variables."""
    constant = isinstance(right, AffineConstantExpr) or (
        kind is AffineBinaryOpKind.Mul and isinstance(left, AffineConstantExpr)
    )
    if kind is _ADD or constant:
        return AffineExpr.binary(kind, left, right)
    return AffineBinaryOpExpr(kind, left, right)


def _parse_product_operator(parser: Parser) -> AffineBinaryOpKind | None:
    if parser.parse_optional_characters("*"):
        return AffineBinaryOpKind.Mul
    for kind in (
        AffineBinaryOpKind.FloorDiv,
        AffineBinaryOpKind.CeilDiv,
        AffineBinaryOpKind.Mod,
    ):
        if parser.parse_optional_keyword(_OPERATORS[kind][0]):
            return kind
    return None


def _parse_leaf(parser: Parser, operands: list[SSAValue]) -> AffineExpr:
    if parser.parse_optional_punctuation("("):
        inner = parse_index_expression(parser, operands)
        parser.parse_punctuation(")")
        return inner
    unresolved = parser.parse_optional_unresolved_operand()
    if unresolved is None:
        return AffineConstantExpr(parser.parse_integer(allow_boolean=False, allow_negative=True))
    value = parser.resolve_operand(unresolved, IndexType())
    if value not in operands:
        operands.append(value)
    return AffineDimExpr(operands.index(value))
