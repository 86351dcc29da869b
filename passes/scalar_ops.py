"""What each elementwise tensor op is on scalars, as arith and math ops.

The tables give one row an op. Where arith leaves a case undefined (division by zero, a shift by
the width or more, a float beyond an integer's range) the row spells out docs/numerics.md in ops,
so that every consumer of the IR computes the same. Unsigned numbers are signless here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects import tensor_elementwise as t
from uopc.dialects.element_types import ElementType, element_type_named
from uopc.dialects.numbers import scalar_value
from uopc.passes.scalar_builder import ScalarBuilder

Binary = Callable[[ScalarBuilder, ElementType, SSAValue, SSAValue], SSAValue]
Unary = Callable[[ScalarBuilder, ElementType, SSAValue], SSAValue]


def known_constant(value: SSAValue) -> int | None:
    """The integer that a value is known to be, if an arith.constant made it."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        attribute = cast("IntegerAttr[Attribute]", owner.value)  # pyright: ignore[reportInvalidTypeArguments]  # only the number is used
        return int(scalar_value(attribute))
    return None


def _by_kind(
    *,
    floating: type[Operation] | None = None,
    signed: type[Operation] | None = None,
    unsigned: type[Operation] | None = None,
    boolean: type[Operation] | None = None,
) -> Binary:
    """A row that is one op for each kind of element type."""
    table = {
        "float": floating,
        "signed": signed,
        "unsigned": unsigned or signed,
        "bool": boolean,
    }

    def build(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
        op = table[row.kind]
        assert op is not None, f"the verifier lets no {row.name} through"
        return b.op(op, x, y)

    return build


def _checked_division(
    op_signed: type[Operation], op_unsigned: type[Operation], *, remainder: bool
) -> Binary:
    """Integer division with every case defined.

    x / 0 is all ones and x % 0 is x; the smallest number / -1 wraps and its remainder is 0. The
    op itself only ever sees divisors for which it is defined.
    """

    def build(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
        signed = row.kind == "signed"
        op = op_signed if signed else op_unsigned
        known = known_constant(y)
        if known is not None and known != 0 and not (signed and known == -1):
            return b.op(op, x, y)
        zero, one = b.constant(0, row), b.constant(1, row)
        by_zero = b.cmpi("eq", y, zero)
        if signed:
            by_minus_one = b.cmpi("eq", y, b.constant(-1, row))
            undefined = b.op(arith.OrIOp, by_zero, by_minus_one)
            wrapped = zero if remainder else b.negate(x, row)
            result = b.op(op, x, b.select(undefined, one, y))
            result = b.select(by_minus_one, wrapped, result)
        else:
            result = b.op(op, x, b.select(by_zero, one, y))
        return b.select(by_zero, x if remainder else b.constant(-1, row), result)

    return build


_TRUNCDIV = _checked_division(arith.DivSIOp, arith.DivUIOp, remainder=False)
_REM = _checked_division(arith.RemSIOp, arith.RemUIOp, remainder=True)


def _differ_in_sign(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
    if row.is_float:
        zero = b.constant(0.0, row)
        return b.op(arith.XOrIOp, b.cmpf("olt", x, zero), b.cmpf("olt", y, zero))
    return b.cmpi("slt", b.op(arith.XOrIOp, x, y), b.constant(0, row))


def _in_f32(compute: Binary) -> Binary:
    """Halves are computed in f32 and rounded once."""
    f32 = element_type_named("f32")

    def build(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
        if row.name not in ("f16", "bf16"):
            return compute(b, row, x, y)
        wide = compute(b, f32, b.extend_to_f32(x), b.extend_to_f32(y))
        return b.op(arith.TruncFOp, wide, result=row.attribute)

    return build


def _rem(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.fmod(x, y, row) if row.is_float else _REM(b, row, x, y)


def _mod(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
    # r = rem(x, y);  mod = r + y where r is not 0 and differs in sign from y, else r
    r = _rem(b, row, x, y)
    if row.kind == "unsigned":
        return r
    zero = b.constant(0, row)
    if row.is_float:
        signed_zero = b.op(math.CopySignOp, zero, y)
        nonzero = b.cmpf("une", r, zero)
        moved = b.op(arith.AddfOp, r, y)
    else:
        signed_zero = zero
        nonzero = b.cmpi("ne", r, zero)
        moved = b.op(arith.AddiOp, r, y)
    return b.select(nonzero, b.select(_differ_in_sign(b, row, r, y), moved, r), signed_zero)


def _floordiv_integer(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
    # q = truncdiv(x, y);  floordiv = q - 1 where x - q*y is not 0 and differs in sign from y
    q = _TRUNCDIV(b, row, x, y)
    if row.kind == "unsigned":
        return q
    zero = b.constant(0, row)
    r = b.op(arith.SubiOp, x, b.op(arith.MuliOp, q, y))
    lower = b.op(arith.AndIOp, b.cmpi("ne", r, zero), _differ_in_sign(b, row, r, y))
    if known_constant(y) in (None, 0):
        lower = b.op(arith.AndIOp, lower, b.cmpi("ne", y, zero))
    return b.select(lower, b.op(arith.SubiOp, q, b.constant(1, row)), q)


def _floordiv_float(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
    # numpy's floor_divide: (x - mod) / y is within rounding of an integer; take that integer.
    zero, one, half = b.constant(0.0, row), b.constant(1.0, row), b.constant(0.5, row)
    r = b.fmod(x, y, row)
    quotient = b.op(arith.DivfOp, b.op(arith.SubfOp, x, r), y)
    lower = b.op(arith.AndIOp, b.cmpf("une", r, zero), _differ_in_sign(b, row, r, y))
    quotient = b.select(lower, b.op(arith.SubfOp, quotient, one), quotient)
    floor = b.op(math.FloorOp, quotient)
    short = b.cmpf("ogt", b.op(arith.SubfOp, quotient, floor), half)
    rounded = b.select(short, b.op(arith.AddfOp, floor, one), floor)
    plain = b.op(arith.DivfOp, x, y)
    nonzero = b.cmpf("une", quotient, zero)
    result = b.select(nonzero, rounded, b.op(math.CopySignOp, zero, plain))
    return b.select(b.cmpf("oeq", y, zero), plain, result)


def _floordiv(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
    build = _in_f32(_floordiv_float) if row.is_float else _floordiv_integer
    return build(b, row, x, y)


def _shift(left: bool) -> Binary:
    """A shift by the width or more gives 0, or the sign where a signed number shifts right."""

    def build(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
        arithmetic = not left and row.kind == "signed"
        op = arith.ShLIOp if left else arith.ShRSIOp if arithmetic else arith.ShRUIOp
        known = known_constant(y)
        if known is not None and 0 <= known < row.bits:
            return b.op(op, x, y)
        inside = b.cmpi("ult", y, b.constant(row.bits, row))
        if arithmetic:
            return b.op(op, x, b.select(inside, y, b.constant(row.bits - 1, row)))
        zero = b.constant(0, row)
        return b.select(inside, b.op(op, x, b.select(inside, y, zero)), zero)

    return build


def _power(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
    if row.is_float:
        return b.op(math.PowFOp, x, y)
    # Square and multiply over the bits of y; a negative power is 1 / x**-y, truncated.
    one = b.constant(1, row)
    signed = row.kind == "signed"
    known = known_constant(y)
    bits = row.bits - 1 if signed else row.bits
    if known is not None and known >= 0:
        bits = known.bit_length()
    result, square = one, x
    for k in range(bits):
        bit = b.op(arith.AndIOp, b.op(arith.ShRUIOp, y, b.constant(k, row)), one)
        taken = b.cmpi("ne", bit, b.constant(0, row))
        result = b.select(taken, b.op(arith.MuliOp, result, square), result)
        if k + 1 < bits:
            square = b.op(arith.MuliOp, square, square)
    if not signed or (known is not None and known >= 0):
        return result
    zero, minus_one = b.constant(0, row), b.constant(-1, row)
    odd = b.cmpi("ne", b.op(arith.AndIOp, y, one), zero)
    inverse = b.select(b.cmpi("eq", x, one), one, zero)
    inverse = b.select(b.cmpi("eq", x, minus_one), b.select(odd, minus_one, one), inverse)
    return b.select(b.cmpi("slt", y, zero), inverse, result)


def _compare(floating: str, integer: str) -> Binary:
    """A comparison; `integer` without its sign letter where the order has none."""

    def build(b: ScalarBuilder, row: ElementType, x: SSAValue, y: SSAValue) -> SSAValue:
        if row.is_float:
            return b.cmpf(floating, x, y)
        if integer in ("eq", "ne"):
            return b.cmpi(integer, x, y)
        return b.cmpi(("s" if row.kind == "signed" else "u") + integer, x, y)

    return build


BINARY: dict[type[Operation], Binary] = {
    t.AddOp: _by_kind(floating=arith.AddfOp, signed=arith.AddiOp, boolean=arith.XOrIOp),
    t.SubOp: _by_kind(floating=arith.SubfOp, signed=arith.SubiOp),
    t.MulOp: _by_kind(floating=arith.MulfOp, signed=arith.MuliOp, boolean=arith.AndIOp),
    t.DivOp: _by_kind(floating=arith.DivfOp),
    t.FloordivOp: _floordiv,
    t.TruncdivOp: _TRUNCDIV,
    t.ModOp: _mod,
    t.RemOp: _rem,
    t.PowOp: _power,
    t.Atan2Op: _by_kind(floating=math.Atan2Op),
    t.MaxOp: _by_kind(
        floating=arith.MaximumfOp,
        signed=arith.MaxSIOp,
        unsigned=arith.MaxUIOp,
        boolean=arith.OrIOp,
    ),
    t.MinOp: _by_kind(
        floating=arith.MinimumfOp,
        signed=arith.MinSIOp,
        unsigned=arith.MinUIOp,
        boolean=arith.AndIOp,
    ),
    t.AndOp: _by_kind(signed=arith.AndIOp, boolean=arith.AndIOp),
    t.OrOp: _by_kind(signed=arith.OrIOp, boolean=arith.OrIOp),
    t.XorOp: _by_kind(signed=arith.XOrIOp, boolean=arith.XOrIOp),
    t.ShlOp: _shift(left=True),
    t.ShrOp: _shift(left=False),
    t.CmpltOp: _compare("olt", "lt"),
    t.CmpleOp: _compare("ole", "le"),
    t.CmpeqOp: _compare("oeq", "eq"),
    t.CmpneOp: _compare("une", "ne"),
}


def _math(op: type[Operation]) -> Unary:
    return lambda b, row, x: b.op(op, x)


def _not(b: ScalarBuilder, row: ElementType, x: SSAValue) -> SSAValue:
    return b.op(arith.XOrIOp, x, b.constant(1 if row.is_bool else -1, row))


def _negative(b: ScalarBuilder, row: ElementType, x: SSAValue) -> SSAValue:
    return b.negate(x, row)


def _absolute(b: ScalarBuilder, row: ElementType, x: SSAValue) -> SSAValue:
    if row.is_float:
        return b.op(math.AbsFOp, x)
    if row.kind == "unsigned":
        return x
    return b.select(b.cmpi("slt", x, b.constant(0, row)), b.negate(x, row), x)


def _sign(b: ScalarBuilder, row: ElementType, x: SSAValue) -> SSAValue:
    zero, one = b.constant(0, row), b.constant(1, row)
    if row.is_float:
        minus_one = b.constant(-1.0, row)
        negative = b.select(b.cmpf("olt", x, zero), minus_one, x)
        return b.select(b.cmpf("ogt", x, zero), one, negative)
    if row.kind == "unsigned":
        return b.select(b.cmpi("ne", x, zero), one, zero)
    negative = b.select(b.cmpi("slt", x, zero), b.constant(-1, row), zero)
    return b.select(b.cmpi("sgt", x, zero), one, negative)


def _reciprocal(b: ScalarBuilder, row: ElementType, x: SSAValue) -> SSAValue:
    return b.op(arith.DivfOp, b.constant(1.0, row), x)


UNARY: dict[type[Operation], Unary] = {
    t.NotOp: _not,
    t.PopcountOp: _math(math.CtPopOp),
    t.ClzOp: _math(math.CountLeadingZerosOp),
    t.NegOp: _negative,
    t.AbsOp: _absolute,
    t.SignOp: _sign,
    t.FloorOp: _math(math.FloorOp),
    t.CeilOp: _math(math.CeilOp),
    t.TruncOp: _math(math.TruncOp),
    t.RoundOp: _math(math.RoundEvenOp),
    t.SqrtOp: _math(math.SqrtOp),
    t.RsqrtOp: _math(math.RsqrtOp),
    t.RecipOp: _reciprocal,
    t.CbrtOp: _math(math.CbrtOp),
    t.ExpOp: _math(math.ExpOp),
    t.Exp2Op: _math(math.Exp2Op),
    t.Expm1Op: _math(math.ExpM1Op),
    t.LogOp: _math(math.LogOp),
    t.Log2Op: _math(math.Log2Op),
    t.Log10Op: _math(math.Log10Op),
    t.Log1pOp: _math(math.Log1pOp),
    t.SinOp: _math(math.SinOp),
    t.CosOp: _math(math.CosOp),
    t.TanOp: _math(math.TanOp),
    t.AsinOp: _math(math.AsinOp),
    t.AcosOp: _math(math.AcosOp),
    t.AtanOp: _math(math.AtanOp),
    t.SinhOp: _math(math.SinhOp),
    t.CoshOp: _math(math.CoshOp),
    t.TanhOp: _math(math.TanhOp),
    t.AsinhOp: _math(math.AsinhOp),
    t.AcoshOp: _math(math.AcoshOp),
    t.AtanhOp: _math(math.AtanhOp),
    t.ErfOp: _math(math.ErfOp),
}


def cast_scalar(
    b: ScalarBuilder, source: ElementType, target: ElementType, x: SSAValue
) -> SSAValue:
    """x of type `source` as `target`: the casts of docs/numerics.md."""
    if source == target:
        return x
    if target.is_bool:
        zero = b.constant(0, source)
        return b.cmpf("une", x, zero) if source.is_float else b.cmpi("ne", x, zero)
    if source.is_float and target.is_float:
        return _cast_float(b, source, target, x)
    if source.is_float:
        return _saturate(b, source, target, x)
    if target.is_float:
        op = arith.SIToFPOp if source.kind == "signed" else arith.UIToFPOp
        return b.op(op, x, result=target.attribute, properties={})
    if target.bits < source.bits:
        properties: dict[str, Attribute] = {}
        return b.op(arith.TruncIOp, x, result=_plain(target), properties=properties)
    if target.bits == source.bits:
        return x
    op = arith.ExtSIOp if source.kind == "signed" else arith.ExtUIOp
    return b.op(op, x, result=_plain(target), properties={})


def _plain(row: ElementType) -> Attribute:
    return element_type_named(row.name.removeprefix("u")).attribute


def _cast_float(
    b: ScalarBuilder, source: ElementType, target: ElementType, x: SSAValue
) -> SSAValue:
    if source.bits == target.bits:  # f16 and bf16: neither holds the other
        return b.op(arith.TruncFOp, b.extend_to_f32(x), result=target.attribute)
    if source.bits < target.bits:
        return b.op(arith.ExtFOp, x, result=target.attribute)
    return b.op(arith.TruncFOp, x, result=target.attribute)


def _saturate(b: ScalarBuilder, source: ElementType, target: ElementType, x: SSAValue) -> SSAValue:
    """Truncated toward zero; beyond the limits the nearest limit, a NaN gives 0."""
    if source.name in ("f16", "bf16"):
        return _saturate(b, element_type_named("f32"), target, b.extend_to_f32(x))
    low, high = target.limits
    # Floats of `source` at or above 2**k, and at or below -2**k (unsigned: -1), are out of range.
    below = b.cmpf("ole", x, b.constant(float(low) if low else -1.0, source))
    above = b.cmpf("oge", x, b.constant(float(high + 1), source))
    zero = b.constant(0.0, source)
    outside = b.op(arith.OrIOp, b.op(arith.OrIOp, below, above), b.is_nan(x))
    op = arith.FPToSIOp if target.kind == "signed" else arith.FPToUIOp
    inside = b.op(op, b.select(outside, zero, x), result=_plain(target), properties={})
    result = b.select(below, b.constant(low, target), inside)
    return b.select(above, b.constant(high, target), result)


def bitcast_scalar(
    b: ScalarBuilder, source: ElementType, target: ElementType, x: SSAValue
) -> SSAValue:
    """The same bits as another type of the width."""
    if _plain(source) == _plain(target):
        return x
    return b.op(arith.BitcastOp, x, result=_plain(target), properties={})


__all__ = [
    "BINARY",
    "UNARY",
    "bitcast_scalar",
    "cast_scalar",
    "known_constant",
]
