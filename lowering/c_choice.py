"""Comparisons, choices and casts of integers as C expressions.

A comparison that the bounds of its operands decide becomes 0 or 1: compilers warn of it. Casts
between widths follow C's promotions: 8 and 16 bits widen to int by themselves, 64 need a cast.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith

from uopc.lowering.c_integer import ARITHMETIC_RULES, is_small, literal, truth, wrap
from uopc.lowering.c_style import FunctionPrinter, combine
from uopc.lowering.c_types import (
    BIT_AND,
    CHOICE,
    COMPARE,
    EQUAL,
    I1,
    PRIMARY,
    SHIFT,
    UNARY,
    Expr,
    Scalar,
)

_PREDICATES: tuple[str, ...] = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


def compare(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    """arith.cmpi, folded where the bounds decide it: compilers warn of such comparisons."""
    predicate: int = op.predicate.value.data
    sign = _PREDICATES[predicate]
    is_unsigned = predicate >= 6
    if t.is_bool and not is_unsigned and predicate >= 2:  # signed, true is -1
        a, b = b, a
    if a.text == b.text:
        return literal(int(sign in ("==", "<=", ">=")), I1)
    left, right = _unsigned_bounds(a, b, t) if is_unsigned else ((a.low, a.high), (b.low, b.high))
    decided = _decide(sign, left, right)
    if decided is not None:
        return literal(decided, I1)
    level = EQUAL if predicate < 2 else COMPARE
    if is_unsigned and not t.is_bool and (a.low < 0 or b.low < 0):
        # Both sides in the unsigned type; under 32 bits both promote to int alike.
        return truth(f"{_cast(a, t)} {sign} {_cast(b, t)}", level, a, b)
    return truth(f"{a.at(SHIFT + 1)} {sign} {b.at(SHIFT + 1)}", level, a, b)


def _cast(e: Expr, t: Scalar) -> str:
    if e.is_literal:
        return f"{e.low & ((1 << t.bits) - 1)}u"
    return f"({t.unsigned}){e.at(UNARY)}"


def _unsigned_bounds(a: Expr, b: Expr, t: Scalar) -> tuple[tuple[int, int], tuple[int, int]]:
    def one(e: Expr) -> tuple[int, int]:
        if e.low >= 0:
            return e.low, e.high
        if e.high < 0:
            return e.low + (1 << t.bits), e.high + (1 << t.bits)
        return 0, (1 << t.bits) - 1

    return one(a), one(b)


def _decide(sign: str, a: tuple[int, int], b: tuple[int, int]) -> int | None:
    if sign in ("==", "!="):
        if a[0] == a[1] == b[0] == b[1]:
            return int(sign == "==")
        return int(sign == "!=") if a[1] < b[0] or b[1] < a[0] else None
    if sign in (">", ">="):
        a, b, sign = b, a, "<" if sign == ">" else "<="
    if sign == "<":
        return 1 if a[1] < b[0] else 0 if a[0] >= b[1] else None
    return 1 if a[1] <= b[0] else 0 if a[0] > b[1] else None


def select(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, c: Expr, a: Expr, b: Expr) -> Expr:
    """arith.select of numbers."""
    if c.is_literal:
        return a if c.low else b
    if a.text == b.text:
        return a
    text = f"{c.at(EQUAL)} ? {a.at(CHOICE + 1)} : {b.at(CHOICE + 1)}"
    if r.is_float:
        return combine(text, CHOICE, r, (c, a, b))
    low, high = min(a.low, b.low), max(a.high, b.high)
    if a.is_literal and b.is_literal and r.bits == 64:
        return combine(f"({r.ctype})({text})", UNARY, r, (c, a, b), low, high)
    made = combine(text, CHOICE, r, (c, a, b), low, high)
    made.sizelike = is_small(a) and is_small(b)
    return made


def extend_signed(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """arith.extsi; arith.index_cast to a wider type."""
    if a.is_literal:
        return literal(-a.low if t.is_bool else a.low, r)
    if t.is_bool:
        cast = f"({r.ctype})" if r.bits == 64 else ""
        return combine(f"-{cast}{a.at(UNARY)}", UNARY, r, (a,), -1, 0)
    if r.bits <= 32 or t.bits == r.bits:
        return _retyped(a, r)
    return combine(f"({r.ctype}){a.at(UNARY)}", UNARY, r, (a,), a.low, a.high)


def extend_unsigned(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """arith.extui."""
    if a.is_literal:
        return literal(a.low & ((1 << t.bits) - 1), r)
    if a.low >= 0:
        if r.bits <= 32:
            return _retyped(a, r)
        return combine(f"({r.ctype}){a.at(UNARY)}", UNARY, r, (a,), a.low, a.high)
    inner = f"({t.unsigned}){a.at(UNARY)}"
    text = f"({r.ctype}){inner}" if r.bits == 64 else inner
    return combine(text, UNARY, r, (a,), 0, (1 << t.bits) - 1)


def _retyped(a: Expr, r: Scalar) -> Expr:
    """The same C expression read as another integer type of at most 32 bits, or of its width."""
    made = Expr(a.text, a.level, r, a.low, a.high)
    made.depth, made.reads, made.mutable = a.depth, a.reads, a.mutable
    made.modular, made.modular_level, made.sizelike = "", PRIMARY, a.sizelike
    if a.type.bits == r.bits:
        made.modular, made.modular_level = a.modular, a.modular_level
    return made


def truncate(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """arith.trunci: modulo the width."""
    if a.is_literal:
        return literal(wrap(a.low, r), r)
    if r.is_bool:
        return (
            truth(f"{a.at(UNARY)} & 1", BIT_AND, a) if (a.low, a.high) != (0, 1) else _retyped(a, r)
        )
    inner = f"({a.modular})" if a.modular and a.modular_level < UNARY else a.modular
    fits = r.low <= a.low and a.high <= r.high
    bounds = (a.low, a.high) if fits else (r.low, r.high)
    made = combine(f"({r.ctype}){inner or a.at(UNARY)}", UNARY, r, (a,), *bounds)
    if r.bits == 32 and inner:
        made.modular, made.modular_level = f"(uint32_t){inner}", UNARY
    return made


def index_cast(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """arith.index_cast: sign-extends or truncates."""
    if t.bits == r.bits:
        return _retyped(a, r)
    return (extend_signed if t.bits < r.bits else truncate)(p, op, t, r, a)


INTEGER_RULES: dict[Any, Any] = ARITHMETIC_RULES | {
    arith.CmpiOp: compare,
    arith.SelectOp: select,
    arith.ExtSIOp: extend_signed,
    arith.ExtUIOp: extend_unsigned,
    arith.TruncIOp: truncate,
    arith.IndexCastOp: index_cast,
}
"""The rule of each integer op."""
