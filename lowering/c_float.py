"""Float arithmetic, casts and math functions as C expressions.

Each op rounds once. f16 and bf16 values are kept as their bits; an op on them widens to float
(exact), computes, and rounds back. A `float` op is never done in double, and nothing is fused:
what the IR says is what is computed.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect

from uopc.lowering import c_helpers as helpers
from uopc.lowering.c_choice import INTEGER_RULES
from uopc.lowering.c_integer import absolute, bit_count, power, truth
from uopc.lowering.c_style import FunctionPrinter, combine
from uopc.lowering.c_types import (
    ADD,
    AND,
    BF16,
    CHOICE,
    COMPARE,
    EQUAL,
    F16,
    F32,
    F64,
    I1,
    MULTIPLY,
    OR,
    PRIMARY,
    UNARY,
    Expr,
    Scalar,
)


def float_literal(p: FunctionPrinter, value: float, t: Scalar) -> Expr:
    """A float constant with exactly the bits of `value` in type `t`."""
    if t.is_half:
        return Expr(f"0x{half_bits(value, t):04x}", PRIMARY, t)
    if math.isfinite(value):
        text = f"{np.float32(value)!s}f" if t is F32 else repr(float(value))
        return Expr(text, UNARY if text[0] == "-" else PRIMARY, t)
    if math.isinf(value):
        name = _special(p, "INF", t)
        return Expr(f"-{name}" if value < 0 else name, UNARY if value < 0 else PRIMARY, t)
    return _nan(p, value, t)


def _special(p: FunctionPrinter, word: str, t: Scalar) -> str:
    name = f"{word}_{t.key.upper()}"
    suffix = "f" if t is F32 else ""
    builtin = {"INF": f"__builtin_inf{suffix}()", "NAN": f'__builtin_nan{suffix}("")'}[word]
    return p.prelude.need(name, lambda _: f"#define {name} {builtin}")


def _nan(p: FunctionPrinter, value: float, t: Scalar) -> Expr:
    wide = t is F64
    bits = struct.unpack("<Q" if wide else "<I", struct.pack("<d" if wide else "<f", value))[0]
    fraction = 51 if wide else 22
    payload = bits & ((1 << fraction) - 1)
    quiet = bits >> fraction & 1
    negative = bits >> (t.bits - 1)
    text = _special(p, "NAN", t)
    if payload or not quiet:
        kind = "nan" if quiet else "nans"
        text = f'__builtin_{kind}{"" if wide else "f"}("0x{payload:x}")'
    return Expr(f"-{text}" if negative else text, UNARY if negative else PRIMARY, t)


def half_bits(value: float, t: Scalar) -> int:
    """The 16 bits of a float that is exact in f16 or bf16."""
    if t is F16:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def widen(p: FunctionPrinter, e: Expr) -> Expr:
    """A half value as a float; other floats as they are."""
    if not e.type.is_half:
        return e
    name = helpers.half_to_float(p.prelude, e.type)
    return combine(f"{name}({e.text})", PRIMARY, F32, (e,))


def narrow(p: FunctionPrinter, e: Expr, t: Scalar) -> Expr:
    """A float rounded back to the half type `t`; for other types the float itself."""
    if not t.is_half:
        return e
    name = helpers.float_to_half(p.prelude, e.type, t)
    return combine(f"{name}({e.text})", PRIMARY, t, (e,))


def binary(sign: str, level: int) -> Any:
    """The rule of + - * /."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
        if t.is_half:
            x, y = widen(p, a), widen(p, b)
            return narrow(p, combine(f"{x.text} {sign} {y.text}", level, F32, (x, y)), t)
        made = combine(f"{a.at(level)} {sign} {b.at(level + 1)}", level, t, (a, b))
        made.compound = (a.text, sign, b.text)
        return made

    return rule


def negate(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """arith.negf: flips the sign, of a NaN too."""
    if t.is_half:
        return combine(f"(uint16_t)({a.at(UNARY)} ^ 0x8000)", UNARY, t, (a,))
    return combine(f"-({a.text})" if a.text[0] == "-" else f"-{a.at(UNARY)}", UNARY, t, (a,))


def extreme(kind: str) -> Any:
    """maximumf, minimumf (NaN wins), maxnumf and minnumf (NaN loses); -0 < +0."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
        x, y = widen(p, a), widen(p, b)
        simple = _extreme_of_constant(kind, x, y)
        if simple is None:
            name = helpers.float_extreme(p.prelude, x.type, kind)
            simple = combine(f"{name}({x.text}, {y.text})", PRIMARY, x.type, (x, y))
        return narrow(p, simple, t)

    return rule


def _extreme_of_constant(kind: str, a: Expr, b: Expr) -> Expr | None:
    """`a` against a constant, with NaN winning: a comparison that is false for NaN picks `b`.

    Where b is a zero, the comparison also has to send the other zero the right way: of +0 and -0
    the maximum is +0, so max(a, +0) is +0 unless a > 0, and max(a, -0) is a unless a < 0.
    """
    if is_number(a):
        a, b = b, a
    if "num" in kind or not a.is_atom or not is_number(b):
        return None
    value = float(b.text.rstrip("f"))
    sign = "<" if kind == "max" else ">"
    positive = math.copysign(1.0, value) > 0
    if value == 0 and positive == (kind == "max"):
        sign += "="
    text = f"{a.at(COMPARE + 1)} {sign} {b.text} ? {b.text} : {a.text}"
    return combine(text, CHOICE, a.type, (a, b))


def is_number(e: Expr) -> bool:
    """A decimal literal."""
    return e.is_atom and e.text.lstrip("-")[0].isdigit()


_ORDERED = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_UNORDERED = {9: "<=", 10: "<", 11: ">=", 12: ">"}
"""ugt is `!(a <= b)`, and so on."""


def compare(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr) -> Expr:
    """arith.cmpf with any predicate."""
    predicate = op.predicate.value.data
    a, b = widen(p, a), widen(p, b)
    if predicate in (0, 15):
        return Expr(str(int(predicate == 15)), PRIMARY, I1, predicate == 15, predicate == 15)
    x, y = a.at(ADD), b.at(ADD)
    if predicate in _ORDERED:
        level = EQUAL if predicate in (1, 13) else COMPARE
        return truth(f"{x} {_ORDERED[predicate]} {y}", level, a, b)
    if predicate in _UNORDERED:
        return truth(f"!({x} {_UNORDERED[predicate]} {y})", UNARY, a, b)
    if predicate == 6:
        return truth(f"{x} < {y} || {x} > {y}", OR, a, b)
    if predicate == 8:
        return truth(f"!({x} < {y} || {x} > {y})", UNARY, a, b)
    if predicate in (7, 14) and x == y:
        return truth(f"{x} {'==' if predicate == 7 else '!='} {x}", EQUAL, a)
    if predicate == 7:
        return truth(f"{x} == {x} && {y} == {y}", AND, a, b)
    return truth(f"{x} != {x} || {y} != {y}", OR, a, b)


def needs_atoms(op: Any) -> bool:
    """Whether the comparison writes its operands twice."""
    return op.predicate.value.data in (6, 7, 8, 14)


def to_float(signed: bool) -> Any:
    """arith.sitofp and uitofp: to nearest even, in one rounding."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
        if r is BF16 and t.bits == 64:
            name = helpers.long_to_bf16(p.prelude, signed)
            return combine(f"{name}({a.text})", PRIMARY, r, (a,))
        # Every integer that a double cannot hold is infinite in f16: no second rounding matters.
        via = r if not r.is_half else F32 if t.bits <= 16 else F64
        inner = a.at(UNARY)
        if not signed and not t.is_bool and a.low < 0:
            inner = f"({t.unsigned}){inner}"
        if signed and t.is_bool:
            inner = f"-{inner}"
        return narrow(p, combine(f"({via.ctype}){inner}", UNARY, via, (a,)), r)

    return rule


def from_float(signed: bool) -> Any:
    """arith.fptosi and fptoui: truncate, saturate, NaN gives 0."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
        x = widen(p, a)
        if r.is_bool:  # the signed values are -1 and 0, the unsigned 0 and 1
            return truth(f"{x.at(ADD)} {'<= -1' if signed else '>= 1'}", COMPARE, x)
        name = helpers.float_to_integer(p.prelude, x.type, r, signed)
        return combine(f"{name}({x.text})", PRIMARY, r, (x,), r.low, r.high)

    return rule


def extend(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """arith.extf: exact."""
    x = widen(p, a)
    return x if x.type is r else combine(f"({r.ctype}){x.at(UNARY)}", UNARY, r, (x,))


def round_to(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """arith.truncf: to nearest even, in one rounding."""
    x = widen(p, a)
    if r.is_half:
        return narrow(p, x, r)
    return x if x.type is r else combine(f"({r.ctype}){x.at(UNARY)}", UNARY, r, (x,))


def bitcast(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """arith.bitcast between types of one width."""
    if t.bits != r.bits:
        p.fail(op, f"{t.key} and {r.key} have different widths", "index has 64 bits in C")
    if t.is_half or r.is_half:
        if t.is_half and r.is_half:
            made = combine(a.text, a.level, r, (a,))
            made.depth = a.depth
            return made
        low, high = (0, 0) if r.is_half else (r.low, r.high)
        return combine(f"({r.ctype}){a.at(UNARY)}", UNARY, r, (a,), low, high)
    if t.is_float:
        name = helpers.bits_of_float(p.prelude, t)
        return combine(f"{name}({a.text})", PRIMARY, r, (a,), r.low, r.high)
    if r.is_float:
        name = helpers.float_of_bits(p.prelude, r)
        return combine(f"{name}({a.text})", PRIMARY, r, (a,))
    made = combine(a.text, a.level, r, (a,), a.low, a.high)
    made.depth = a.depth
    return made


def call(function: str) -> Any:
    """The rule of a math op that a function of <math.h> computes."""

    def rule(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, *operands: Expr) -> Expr:
        p.prelude.header("math.h")
        wide = [widen(p, e) for e in operands]
        compute = wide[0].type
        name = f"{function}f" if compute is F32 else function
        text = f"{name}({', '.join(e.text for e in wide)})"
        return narrow(p, combine(text, PRIMARY, compute, wide), r)

    return rule


def sign_op(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, *rest: Expr) -> Expr:
    """math.absf and copysign change the sign bit only, of half types without widening."""
    if not t.is_half:
        return call("copysign" if rest else "fabs")(p, op, t, r, a, *rest)
    text = f"{a.at(UNARY)} & 0x7fff"
    if rest:
        text = f"({text}) | ({rest[0].at(UNARY)} & 0x8000)"
    return combine(f"(uint16_t)({text})", UNARY, t, (a, *rest))


def reciprocal_root(p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr) -> Expr:
    """math.rsqrt: one over the root, each rounded."""
    root = call("sqrt")(p, op, F32, widen(p, a).type, widen(p, a))
    one = "1.0" if root.type is F64 else "1.0f"
    return narrow(p, combine(f"{one} / {root.text}", MULTIPLY, root.type, (root,)), t)


def integer_power_of_float(
    p: FunctionPrinter, op: Any, t: Scalar, r: Scalar, a: Expr, b: Expr
) -> Expr:
    """math.fpowi."""
    x = widen(p, a)
    name = helpers.float_power(p.prelude, x.type)
    exponent = f"-{b.at(UNARY)}" if b.type.is_bool else b.text
    return narrow(p, combine(f"{name}({x.text}, {exponent})", PRIMARY, x.type, (x, b)), t)


FLOAT_RULES: dict[Any, Any] = {
    arith.AddfOp: binary("+", ADD),
    arith.SubfOp: binary("-", ADD),
    arith.MulfOp: binary("*", MULTIPLY),
    arith.DivfOp: binary("/", MULTIPLY),
    arith.NegfOp: negate,
    arith.MaximumfOp: extreme("max"),
    arith.MinimumfOp: extreme("min"),
    arith.MaxnumfOp: extreme("maxnum"),
    arith.MinnumfOp: extreme("minnum"),
    arith.CmpfOp: compare,
    arith.SIToFPOp: to_float(True),
    arith.UIToFPOp: to_float(False),
    arith.FPToSIOp: from_float(True),
    arith.FPToUIOp: from_float(False),
    arith.ExtFOp: extend,
    arith.TruncFOp: round_to,
    arith.BitcastOp: bitcast,
    math_dialect.AbsFOp: sign_op,
    math_dialect.CopySignOp: sign_op,
    math_dialect.RsqrtOp: reciprocal_root,
    math_dialect.FPowIOp: integer_power_of_float,
    math_dialect.AbsIOp: absolute,
    math_dialect.CountLeadingZerosOp: bit_count("clz"),
    math_dialect.CountTrailingZerosOp: bit_count("ctz"),
    math_dialect.CtPopOp: bit_count("popcount"),
    math_dialect.IPowIOp: power,
    math_dialect.RoundEvenOp: call("rint"),
    math_dialect.PowFOp: call("pow"),
} | {
    cls: call(cls.name.removeprefix("math."))
    for cls in (
        *(math_dialect.AcosOp, math_dialect.AcoshOp, math_dialect.AsinOp, math_dialect.AsinhOp),
        *(math_dialect.AtanhOp, math_dialect.Atan2Op, math_dialect.AtanOp, math_dialect.CbrtOp),
        *(math_dialect.CeilOp, math_dialect.CosOp, math_dialect.CoshOp, math_dialect.ErfOp),
        *(math_dialect.Exp2Op, math_dialect.ExpM1Op, math_dialect.ExpOp, math_dialect.FloorOp),
        *(math_dialect.FmaOp, math_dialect.Log10Op, math_dialect.Log1pOp, math_dialect.Log2Op),
        *(math_dialect.LogOp, math_dialect.RoundOp, math_dialect.SinOp, math_dialect.SinhOp),
        *(math_dialect.SqrtOp, math_dialect.TanOp, math_dialect.TanhOp, math_dialect.TruncOp),
    )
}

SCALAR_RULES: dict[Any, Any] = INTEGER_RULES | FLOAT_RULES
"""The rule of every elementwise op, by its class."""

ATOM_OPERANDS: frozenset[Any] = frozenset({math_dialect.AbsIOp})
"""Ops whose operand is written twice."""
