"""Integer arithmetic as C expressions that mean the same at every width and on every compiler.

Each rule gets the printer, the op, the operands' type and the result's type, and the operands as
expressions, and returns an expression. An operation that cannot overflow, by the bounds that
expressions carry, is printed plainly; any other goes through the unsigned type of its width:

    a + b    on i32    (int32_t)((uint32_t)a + (uint32_t)b)
    a + b    on i8     (int8_t)(a + b)       int arithmetic, which 8 and 16 bits cannot overflow
    i*8 + j  on index  as it stands, where i and j are sizes or counters and the sum an address
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith

from uopc.lowering import c_helpers as helpers
from uopc.lowering.c_style import FunctionPrinter, combine
from uopc.lowering.c_types import (
    ADD,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    CHOICE,
    COMPARE,
    I1,
    INDEX,
    MULTIPLY,
    PRIMARY,
    SHIFT,
    UNARY,
    Expr,
    Scalar,
)

SMALL = 1 << 40
"""Sizes, counters and constants below this are taken for addresses' parts."""


def wrap(value: int, t: Scalar) -> int:
    """The value modulo the width of `t`, as C holds it."""
    value &= (1 << t.bits) - 1
    return value - (1 << t.bits) if value > t.high else value


def literal(value: int, t: Scalar) -> Expr:
    """An integer constant; `value` is in the range of `t`."""
    text = str(value)
    if value == t.low and t.bits >= 32 and t.signed:
        text = helpers.integer_minimum(t)
    elif value > 0x7FFFFFFFFFFFFFFF:
        text += "u"
    made = Expr(text, UNARY if text[0] == "-" else PRIMARY, t, value, value)
    made.sizelike = -SMALL <= value <= SMALL
    return made


def truth(text: str, level: int, *operands: Expr) -> Expr:
    """An i1 expression, 0 or 1."""
    return combine(text, level, I1, operands, 0, 1)


def unsigned_operand(e: Expr, level: int = UNARY) -> str:
    """The operand as an expression of the unsigned type of its width, value modulo 2**bits."""
    if e.modular:
        return e.modular if e.modular_level >= level else f"({e.modular})"
    if e.is_literal:
        value = e.low & ((1 << e.type.bits) - 1)
        return f"{value}u" if e.type.bits <= 32 else f"({e.type.unsigned}){value}u"
    if not e.type.signed:
        return e.at(level)
    return f"({e.type.unsigned}){e.at(UNARY)}"


def is_small(e: Expr) -> bool:
    return e.sizelike or (e.low >= -SMALL and e.high <= SMALL)


def modular(
    p: FunctionPrinter, op: Any, t: Scalar, a: Expr, sign: str, b: Expr, bounds: tuple[int, int]
) -> Expr:
    """`a sign b` for +, - and *, wrapped to the width unless `bounds` show that it fits."""
    low, high = bounds
    if a.is_literal and b.is_literal:
        return literal(wrap(low, t), t)
    level = MULTIPLY if sign == "*" else ADD
    fits = t.low <= low and high <= t.high
    if not fits and t is INDEX and is_small(a) and is_small(b):
        fits = op is not None and op.results[0] not in p.live.data
        low, high = t.low, t.high
    if fits or t.bits < 32:
        right = b
        if b.is_literal and b.low < 0 and sign in "+-" and b.low != t.low:
            sign, right = "-" if sign == "+" else "+", literal(-b.low, t)
        spaced = "*" if sign == "*" and t is INDEX else f" {sign} "
        text = f"{a.at(level)}{spaced}{right.at(level + 1)}"
        if not fits:
            return combine(f"({t.ctype})({text})", UNARY, t, (a, b), t.low, t.high)
        made = combine(text, level, t, (a, b), low, high)
        made.compound = (a.text, sign, right.text)
        made.sizelike = t is INDEX and is_small(a) and is_small(b)
        return made
    sign, left, right = _modular_texts(t, a, sign, b, level)
    text = f"{left} {sign} {right}"
    made = combine(f"({t.ctype})({text})", UNARY, t, (a, b), t.low, t.high)
    made.modular, made.modular_level = text, level
    return made


def _modular_texts(t: Scalar, a: Expr, sign: str, b: Expr, level: int) -> tuple[str, str, str]:
    """Sign and operands in the unsigned type; one of a and b is no literal, and is cast."""
    if b.is_literal and -0x7FFFFFFF <= b.low <= 0x7FFFFFFF:
        if b.low < 0 and sign != "*":
            return "-" if sign == "+" else "+", unsigned_operand(a, level), str(-b.low)
        if b.low >= 0:
            return sign, unsigned_operand(a, level), str(b.low)
    return sign, unsigned_operand(a, level), unsigned_operand(b, level + 1)


def add(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    if t.is_bool:
        return bit_xor(p, op, t, r, a, b)
    if b.is_literal and b.low == 0:
        return a
    if a.is_literal and a.low == 0:
        return b
    return modular(p, op, t, a, "+", b, (a.low + b.low, a.high + b.high))


def subtract(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    if t.is_bool:
        return bit_xor(p, op, t, r, a, b)
    if b.is_literal and b.low == 0:
        return a
    return modular(p, op, t, a, "-", b, (a.low - b.high, a.high - b.low))


def multiply(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    if t.is_bool:
        return bit_and(p, op, t, r, a, b)
    if b.is_literal and b.low == 1:
        return a
    corners = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
    return modular(p, op, t, a, "*", b, (min(corners), max(corners)))


def _helper(name: str, t: Scalar, *operands: Expr) -> Expr:
    text = f"{name}({', '.join(e.text for e in operands)})"
    return combine(text, PRIMARY, t, operands, t.low, t.high)


def _divide(
    p: FunctionPrinter, t: Scalar, a: Expr, b: Expr, kind: str, sign: str = "/"
) -> Expr | None:
    """A plain quotient or remainder by a constant or of positive numbers, else None."""
    if t.is_bool:
        return None
    if a.low >= 0 and b.low > 0:
        if kind.startswith("ceil"):
            high = a.high + b.high - 1
            if not b.is_literal or high > t.high:
                return None
            if b.low == 1:
                return a
            text = f"({a.at(ADD)} + {b.low - 1}) / {b.text}"
            return combine(text, MULTIPLY, t, (a, b), -(-a.low // b.low), -(-a.high // b.low))
        text = f"{a.at(MULTIPLY)} {sign} {b.at(MULTIPLY + 1)}"
        bounds = (0, min(a.high, b.high - 1)) if sign == "%" else (a.low // b.high, a.high // b.low)
        return combine(text, MULTIPLY, t, (a, b), *bounds)
    if b.is_literal and b.low not in (0, -1) and kind in ("div", "rem"):
        text = f"{a.at(MULTIPLY)} {sign} {b.at(MULTIPLY + 1)}"
        if sign == "%":
            return combine(text, MULTIPLY, t, (a, b), 1 - abs(b.low), abs(b.low) - 1)
        ends = [
            abs(v) // abs(b.low) * (1 if (v < 0) == (b.low < 0) else -1) for v in (a.low, a.high)
        ]
        return combine(text, MULTIPLY, t, (a, b), min(0, *ends), max(0, *ends))
    if b.is_literal and b.low > 0 and kind in ("divu", "remu"):
        inner = f"({t.unsigned}){a.at(UNARY)} {sign} {b.low}"
        high = min(((1 << t.bits) - 1) // b.low if sign == "/" else b.low - 1, t.high)
        return combine(f"({t.ctype})({inner})", UNARY, t, (a, b), t.low if b.low == 1 else 0, high)
    return None


def division(kind: str, sign: str = "/") -> Any:
    """The rule of a division: `kind` names the helper for operands of any value."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
        if t.is_bool:  # x / 0 is all ones, x % 0 is x, x / 1 is x by wrapping
            if sign == "%":
                return truth(f"{a.at(UNARY)} & !{b.at(UNARY)}", BIT_AND, a, b)
            return truth(f"{a.at(UNARY)} | !{b.at(UNARY)}", BIT_OR, a, b)
        if b.is_literal and b.low == 0:
            return a if sign == "%" else literal(-1, t)
        plain = _divide(p, t, a, b, kind, sign)
        return plain or _helper(helpers.divide(p.prelude, t, kind), t, a, b)

    return rule


def _bitwise(sign: str, level: int, a: Expr, b: Expr, t: Scalar) -> Expr:
    left = a.text if a.level == level and not a.is_literal else a.at(UNARY)
    low, high = t.low, t.high
    if a.low >= 0 and b.low >= 0:
        low, high = 0, min(a.high, b.high)
        if sign != "&":
            high = min((1 << max(a.high, b.high).bit_length()) - 1, t.high)
    elif sign == "&" and (a.low >= 0 or b.low >= 0):
        low, high = 0, a.high if a.low >= 0 else b.high
    made = combine(f"{left} {sign} {b.at(UNARY)}", level, t, (a, b), low, high)
    made.compound = (a.text, sign, b.text)
    return made


def _fold_bits(a: Expr, b: Expr, t: Scalar, value: int) -> Expr | None:
    return literal(wrap(value, t), t) if a.is_literal and b.is_literal else None


def bit_and(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    return _fold_bits(a, b, t, a.low & b.low) or _bitwise("&", BIT_AND, a, b, t)


def bit_or(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    return _fold_bits(a, b, t, a.low | b.low) or _bitwise("|", BIT_OR, a, b, t)


def bit_xor(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    folded = _fold_bits(a, b, t, a.low ^ b.low)
    if folded:
        return folded
    if b.is_literal:
        if t.is_bool:
            return a if b.low == 0 else truth(f"!{a.at(UNARY)}", UNARY, a)
        if b.low == -1:
            return combine(f"~{a.at(UNARY)}", UNARY, t, (a,), ~a.high, ~a.low)
    return _bitwise("^", BIT_XOR, a, b, t)


def shift(kind: str) -> Any:
    """shl, shru or shr: the amount is unsigned; the width or more shifts everything out."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
        if t.is_bool:
            return a if kind == "shr" else truth(f"{a.at(UNARY)} & !{b.at(UNARY)}", BIT_AND, a, b)
        if not b.is_literal:
            return _helper(helpers.shift(p.prelude, t, kind), t, a, b)
        amount = b.low & ((1 << t.bits) - 1)
        if amount >= t.bits:
            if kind != "shr":
                return literal(0, t)
            amount = t.bits - 1
        return _constant_shift(kind, t, a, amount) if amount else a

    return rule


def _constant_shift(kind: str, t: Scalar, a: Expr, amount: int) -> Expr:
    if a.is_literal:
        value = a.low & ((1 << t.bits) - 1)
        shifted = {"shl": value << amount, "shru": value >> amount, "shr": a.low >> amount}
        return literal(wrap(shifted[kind], t), t)
    low, high = a.low << amount, a.high << amount
    if kind == "shr" or (kind == "shru" and a.low >= 0):
        bounds = a.low >> amount, a.high >> amount
        return combine(f"{a.at(UNARY)} >> {amount}", SHIFT, t, (a,), *bounds)
    if kind == "shru":
        inner = f"({t.unsigned}){a.at(UNARY)} >> {amount}"
        high = ((1 << t.bits) - 1) >> amount
        return combine(f"({t.ctype})({inner})", UNARY, t, (a,), 0, high)
    if low >= 0 and high <= t.high:
        return combine(f"{a.at(UNARY)} << {amount}", SHIFT, t, (a,), low, high)
    if t.bits < 32:
        inner = f"(uint32_t){a.at(UNARY)} << {amount}"
        return combine(f"({t.ctype})({inner})", UNARY, t, (a,), t.low, t.high)
    inner = f"{unsigned_operand(a)} << {amount}"
    made = combine(f"({t.ctype})({inner})", UNARY, t, (a,), t.low, t.high)
    made.modular, made.modular_level = inner, SHIFT
    return made


def extreme(kind: str) -> Any:
    """min, max, minu or maxu."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
        if t.is_bool:  # signed, true is -1
            pick_or = kind in ("min", "maxu")
            return (bit_or if pick_or else bit_and)(p, op, t, r, a, b)
        is_min = kind.startswith("min")
        if not kind.endswith("u") or (a.low >= 0 and b.low >= 0):
            if a.high <= b.low:
                return a if is_min else b
            if b.high <= a.low:
                return b if is_min else a
            pick = min if is_min else max
            made = _helper(helpers.integer_extreme(p.prelude, t, kind[:3]), t, a, b)
            made.low, made.high = pick(a.low, b.low), pick(a.high, b.high)
            made.sizelike = is_small(a) and is_small(b)
            return made
        return _helper(helpers.integer_extreme(p.prelude, t, kind), t, a, b)

    return rule


def multiply_extended(signed: bool) -> Any:
    """The handler of mului_extended and mulsi_extended: low and high word."""

    def handle(p: FunctionPrinter, op: Any) -> None:
        t = p.scalar(op.lhs.type, op)
        a, b = p.atom(op.lhs), p.atom(op.rhs)
        p.define(op.low, multiply(p, None, t, t, a, b))
        if t.is_bool:
            p.define(op.high, literal(0, I1))
        else:
            p.define(op.high, _helper(helpers.multiply_high(p.prelude, t, signed), t, a, b))

    return handle


def add_extended(p: FunctionPrinter, op: Any) -> None:
    """The handler of addui_extended: the sum and its carry."""
    t = p.scalar(op.lhs.type, op)
    a, b = p.atom(op.lhs), p.atom(op.rhs)
    if t.is_bool:
        p.define(op.sum, bit_xor(p, op, t, t, a, b))
        p.define(op.overflow, bit_and(p, op, t, t, a, b))
        return
    if a.is_literal and b.is_literal:
        mask = (1 << t.bits) - 1
        p.define(op.sum, literal(wrap(a.low + b.low, t), t))
        p.define(op.overflow, literal(((a.low & mask) + (b.low & mask)) >> t.bits, I1))
        return
    if a.is_literal:
        a, b = b, a
    total = p.settle(add(p, None, t, t, a, b))
    p.define(op.sum, total)
    if b.is_literal and b.low == 0:
        p.define(op.overflow, literal(0, I1))
        return
    cast = t.unsigned
    p.define(op.overflow, truth(f"({cast}){total.at(UNARY)} < ({cast}){a.text}", COMPARE, total, a))


def absolute(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """math.absi; of the least value, the least value."""
    if t.is_bool or a.low >= 0:
        return a
    zero = literal(0, t)
    negated = modular(p, None, t, zero, "-", a, (-a.high, -a.low))
    text = f"{a.at(COMPARE)} < 0 ? {negated.at(CHOICE + 1)} : {a.text}"
    return combine(text, CHOICE, t, (a,), t.low, t.high)


def bit_count(kind: str) -> Any:
    """math.ctlz, cttz and ctpop."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
        if t.is_bool:
            return a if kind == "popcount" else truth(f"!{a.at(UNARY)}", UNARY, a)
        made = _helper(helpers.bit_count(p.prelude, t, kind), t, a)
        made.low, made.high = 0, t.bits
        return made

    return rule


def power(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    """math.ipowi."""
    if t.is_bool:
        return literal(1, I1)
    return _helper(helpers.integer_power(p.prelude, t), t, a, b)


def constant_value(value: Any, t: Scalar) -> Expr:
    """The literal of an IntegerAttr of type `t`."""
    return literal(wrap(value.value.data, t), t)


ARITHMETIC_RULES: dict[Any, Any] = {
    arith.AddiOp: add,
    arith.SubiOp: subtract,
    arith.MuliOp: multiply,
    arith.DivSIOp: division("div"),
    arith.DivUIOp: division("divu"),
    arith.FloorDivSIOp: division("floordiv"),
    arith.CeilDivSIOp: division("ceildiv"),
    arith.CeilDivUIOp: division("ceildivu"),
    arith.RemSIOp: division("rem", "%"),
    arith.RemUIOp: division("remu", "%"),
    arith.AndIOp: bit_and,
    arith.OrIOp: bit_or,
    arith.XOrIOp: bit_xor,
    arith.ShLIOp: shift("shl"),
    arith.ShRUIOp: shift("shru"),
    arith.ShRSIOp: shift("shr"),
    arith.MinSIOp: extreme("min"),
    arith.MaxSIOp: extreme("max"),
    arith.MinUIOp: extreme("minu"),
    arith.MaxUIOp: extreme("maxu"),
}
"""The rule of each op that computes integers from integers of one type."""
