"""Elementwise ops of utensor in StableHLO: a table, and what takes several ops.

Where StableHLO leaves a case to the implementation (an integer divided by 0) the case is written
out. exp2, log2 and log10 are made of what there is: their last bits may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.dialects.element_types import element_type_named
from uopc.passes.stablehlo_export.builder import HloBuilder, row_of, shape_of

Rule = Callable[[HloBuilder, list[SSAValue]], SSAValue]

_SAME: dict[type[Operation], str] = {
    e.AbsOp: "abs", e.AddOp: "add", e.AndOp: "and", e.Atan2Op: "atan2", e.CbrtOp: "cbrt",
    e.CeilOp: "ceil", e.CosOp: "cosine", e.ClzOp: "count_leading_zeros", e.DivOp: "divide",
    e.ExpOp: "exponential", e.Expm1Op: "exponential_minus_one", e.FloorOp: "floor",
    e.LogOp: "log", e.Log1pOp: "log_plus_one", e.MaxOp: "maximum", e.MinOp: "minimum",
    e.MulOp: "multiply", e.NegOp: "negate", e.NotOp: "not", e.OrOp: "or",
    e.PopcountOp: "popcnt", e.PowOp: "power", e.RoundOp: "round_nearest_even",
    e.RsqrtOp: "rsqrt", e.ShlOp: "shift_left", e.SignOp: "sign", e.SinOp: "sine",
    e.SqrtOp: "sqrt", e.SubOp: "subtract", e.TanOp: "tan", e.TanhOp: "tanh", e.XorOp: "xor",
    e.AsinOp: "chlo.asin", e.AcosOp: "chlo.acos", e.AtanOp: "chlo.atan",
    e.SinhOp: "chlo.sinh", e.CoshOp: "chlo.cosh", e.AsinhOp: "chlo.asinh",
    e.AcoshOp: "chlo.acosh", e.AtanhOp: "chlo.atanh", e.ErfOp: "chlo.erf",
}  # fmt: skip
_ON_BOOL: dict[type[Operation], str] = {
    e.AddOp: "xor", e.MulOp: "and", e.MaxOp: "or", e.MinOp: "and",
}  # fmt: skip
_COMPARED: dict[type[Operation], str] = {
    e.CmpltOp: "LT", e.CmpleOp: "LE", e.CmpeqOp: "EQ", e.CmpneOp: "NE",
}  # fmt: skip


def _recip(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    return b.op("divide", [b.like(x[0], 1), x[0]])


def _in_f32(rule: Rule) -> Rule:
    """Halves are computed in f32, and rounded once."""

    def wide(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
        row = row_of(x[0])
        if row.bits > 16:
            return rule(b, x)
        f32 = element_type_named("f32").attribute
        return b.convert(rule(b, [b.convert(v, f32) for v in x]), row.attribute)

    return wide


def _exp2(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    return b.op("power", [b.like(x[0], 2), x[0]])


def _log_to(base: float) -> Rule:
    def rule(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
        return b.op("multiply", [b.op("log", [x[0]]), b.like(x[0], 1 / math.log(base))])

    return rule


def _trunc(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    """Rounded up below 0, down from 0 on; the sign of zero stays."""
    below = b.compare("LT", x[0], b.like(x[0], 0))
    return b.select(below, b.op("ceil", [x[0]]), b.op("floor", [x[0]]))


def _safe_divisor(b: HloBuilder, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Where y is 0, and a divisor that is never that nor what overflows."""
    zero = b.compare("EQ", y, b.like(y, 0))
    return zero, b.select(zero, b.like(y, 1), y)


def _truncdiv(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    """All ones for y = 0; -x for y = -1, which wraps."""
    zero, y = _safe_divisor(b, *x)
    if row_of(y).kind == "signed":
        minus = b.compare("EQ", y, b.like(y, -1))
        y = b.select(minus, b.like(y, 1), y)
        quotient = b.op("divide", [x[0], y])
        quotient = b.select(minus, b.op("negate", [x[0]]), quotient)
    else:
        quotient = b.op("divide", [x[0], y])
    return b.select(zero, b.like(y, -1), quotient)


def _rem(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    """x for y = 0, 0 for y = -1."""
    if row_of(x[0]).is_float:
        return b.op("remainder", x)
    zero, y = _safe_divisor(b, *x)
    if row_of(y).kind == "signed":
        y = b.select(b.compare("EQ", y, b.like(y, -1)), b.like(y, 1), y)
    return b.select(zero, x[0], b.op("remainder", [x[0], y]))


def _wants_step(b: HloBuilder, r: SSAValue, y: SSAValue) -> SSAValue:
    """Where a remainder is not 0 and has not the divisor's sign."""
    zero = b.like(r, 0)
    negative = [b.compare("LT", v, zero) for v in (r, y)]
    return b.op("and", [b.compare("NE", r, zero), b.op("xor", negative)])


def _mod(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    r = _rem(b, x)
    row = row_of(r)
    if row.kind == "unsigned":
        return r
    stepped = b.select(_wants_step(b, r, x[1]), b.op("add", [r, x[1]]), r)
    if not row.is_float:
        return b.select(b.compare("EQ", x[1], b.like(r, 0)), x[0], stepped)
    zero = b.like(r, 0)
    # A zero has the sign of y: of 1 / y where y is 0 too, but then the remainder is NaN.
    signed = b.select(b.compare("LT", x[1], zero), b.op("negate", [zero]), zero)
    return b.select(b.compare("EQ", r, zero), signed, stepped)


def _floordiv(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    row = row_of(x[0])
    if row.kind == "unsigned":
        return _truncdiv(b, x)
    r = _rem(b, x)
    if not row.is_float:
        quotient = _truncdiv(b, x)
        less = b.op("subtract", [quotient, b.like(r, 1)])
        zero = b.compare("EQ", x[1], b.like(r, 0))
        return b.select(zero, b.like(r, -1), b.select(_wants_step(b, r, x[1]), less, quotient))
    zero, one = b.like(r, 0), b.like(r, 1)
    plain = b.op("divide", x)
    q = b.op("divide", [b.op("subtract", [x[0], r]), x[1]])
    q = b.select(_wants_step(b, r, x[1]), b.op("subtract", [q, one]), q)
    down = b.op("floor", [q])
    up = b.compare("GT", b.op("subtract", [q, down]), b.like(r, 0.5))
    whole = b.select(up, b.op("add", [down, one]), down)
    # -0 * |…|: a zero with the sign of the quotient of the operands.
    none = b.op("multiply", [zero, b.op("sign", [plain])])
    whole = b.select(b.compare("EQ", q, zero), none, whole)
    return b.select(b.compare("EQ", x[1], zero), plain, whole)


def _unsigned_sign(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    return b.op("minimum", [x[0], b.like(x[0], 1)])


def _pow(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    """Of integers: what is left of 1 / x^|y| is 0, but for x = 1 and x = -1."""
    if row_of(x[0]).kind != "signed":
        return b.op("power", x)
    base, exponent = x
    zero, one = b.like(base, 0), b.like(base, 1)
    below = b.compare("LT", exponent, zero)
    raised = b.op("power", [base, b.select(below, zero, exponent)])
    odd = b.compare("NE", b.op("and", [exponent, one]), zero)
    minus = b.select(odd, b.like(base, -1), one)
    small = b.select(b.compare("EQ", base, b.like(base, -1)), minus, zero)
    small = b.select(b.compare("EQ", base, one), one, small)
    return b.select(below, small, raised)


def _shift(left: bool) -> Rule:
    """By the width and more: 0, or the sign."""

    def rule(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
        value, by = x
        row = row_of(value)
        last = b.like(by, row.bits - 1)
        far = b.compare("GT", by, last)
        if row.kind == "signed":  # read as unsigned
            far = b.op("or", [far, b.compare("LT", by, b.like(by, 0))])
        near = b.select(far, last, by)
        if left:
            return b.select(far, b.like(value, 0), b.op("shift_left", [value, near]))
        if row.kind == "signed":
            return b.op("shift_right_arithmetic", [value, near])
        return b.select(far, b.like(value, 0), b.op("shift_right_logical", [value, near]))

    return rule


_FORMULAS: dict[type[Operation], Rule] = {
    e.Exp2Op: _in_f32(_exp2),
    e.FloordivOp: _floordiv,
    e.Log10Op: _in_f32(_log_to(10)),
    e.Log2Op: _in_f32(_log_to(2)),
    e.ModOp: _mod,
    e.RecipOp: _recip,
    e.RemOp: _rem,
    e.ShlOp: _shift(left=True),
    e.ShrOp: _shift(left=False),
    e.TruncOp: _trunc,
    e.TruncdivOp: _truncdiv,
}


def elementwise(b: HloBuilder, op: Operation, x: list[SSAValue]) -> SSAValue:
    """An elementwise op of utensor, but for casts and where."""
    cls = type(op)
    row = row_of(x[0])
    if cls in _COMPARED:
        return b.compare(_COMPARED[cls], *x)
    if row.is_bool and cls in _ON_BOOL:
        return b.op(_ON_BOOL[cls], x)
    if row.kind == "unsigned" and cls is e.AbsOp:
        return x[0]
    if row.kind == "unsigned" and cls is e.SignOp:
        return _unsigned_sign(b, x)
    if cls is e.PowOp and not row.is_float:
        return _pow(b, x)
    if cls in (e.FloordivOp, e.RsqrtOp) and row.is_float:
        rule = _floordiv if cls is e.FloordivOp else _rsqrt
        return _in_f32(rule)(b, x)
    if cls in _FORMULAS:
        return _FORMULAS[cls](b, x)
    return b.op(_SAME[cls], x)


def _rsqrt(b: HloBuilder, x: list[SSAValue]) -> SSAValue:
    return b.op("rsqrt", x)


def cast(b: HloBuilder, op: e.CastOp, x: SSAValue) -> SSAValue:
    """The numbers in another type. A float to an integer: NaN is 0, what is beyond is the limit."""
    source, target = row_of(x), row_of(op.result)
    if target.is_bool:
        return x if source.is_bool else b.compare("NE", x, b.like(x, 0))
    if not source.is_float or target.is_float:
        return b.convert(x, target.attribute)
    if source.bits < 32:
        x = b.convert(x, element_type_named("f32").attribute)
        source = row_of(x)
    low, high = target.limits
    # The first float beyond the limit: a power of two, exact in each type.
    beyond = b.compare("GE", x, b.like(x, float(high + 1)))
    below = b.compare("LE", x, b.like(x, float(low)))
    shape = shape_of(x)
    unfit = b.op("or", [b.op("or", [beyond, below]), b.is_nan(x)])
    inside = b.convert(b.select(unfit, b.like(x, 0), x), target.attribute)
    result = b.select(beyond, b.number(high, target, shape), inside)
    return b.select(below, b.number(low, target, shape), result)


ELEMENTWISE = frozenset((*_SAME, *_COMPARED, *_FORMULAS))
"""The ops that `elementwise` takes."""
