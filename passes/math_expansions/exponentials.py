"""exp, exp2 and expm1.

All three split x = n ln 2 + r (or n + r) with n whole and |r| at most half of that step, take a
polynomial of r, and multiply by 2^n. n comes from adding `Format.rounder`, which rounds to nearest
and leaves n in the low bits of the sum: no conversion, and defined for NaN too.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from uopc.passes.math_expansions.coefficients import EXP, EXP2, LN2, LOG2_E
from uopc.passes.math_expansions.emit import (
    Emitter,
    Float,
    Format,
    Int,
    constant_number,
    format_of,
)


@dataclass(frozen=True)
class Split:
    """x = n step + r."""

    n: Int
    """Equal to n in as many low bits as a sign and an exponent have, and in one more."""
    r: Float


def split_binary(e: Emitter, x: Float) -> Split:
    """x = n + r, exactly; |x| below 2^(fraction - 1)."""
    moved = x + e.format.rounder
    n_float = moved - e.format.rounder
    return Split(moved.bits(), x - n_float)


def split_natural(e: Emitter, x: Float) -> Split:
    """x = n ln 2 + r, where r has the rounding error of one sum (Cody and Waite's reduction)."""
    high, low = LN2[e.format.name]
    moved = e.fma(x, LOG2_E[e.format.name][0], e.format.rounder)
    n_float = moved - e.format.rounder
    r = e.fma(n_float, -low, e.fma(n_float, -high, x))
    return Split(moved.bits(), r)


def power_of_two(e: Emitter, n: Int) -> Float:
    """2^n for n from 1 - bias to bias; the bits of n past its exponent are shifted out."""
    return ((n + e.format.bias) << e.format.fraction).floats()


def scale(e: Emitter, x: Float, n: Int) -> Float:
    """x 2^n rounded once, for x near 1 and |n| up to twice the bias: n is applied in halves."""
    half = n >> 1
    return x * power_of_two(e, half) * power_of_two(e, n - half)


def scaling(op: arith.MulfOp) -> tuple[SSAValue, SSAValue] | None:
    """Of the last op that `scale` makes: x, and the sum with `Format.rounder` that n stands in the
    low bits of. None for any other multiplication."""
    first, second = op.lhs.owner, _shifted_bits(op.rhs)
    if not isinstance(first, arith.MulfOp) or second is None:
        return None
    half = _shifted_bits(first.rhs)
    rest = second.owner
    if half is None or not isinstance(rest, arith.SubiOp) or rest.rhs is not half:
        return None
    shift, bits = half.owner, rest.lhs.owner
    if not isinstance(shift, arith.ShRSIOp) or shift.lhs is not rest.lhs:
        return None
    if constant_number(shift.rhs) != 1 or not isinstance(bits, arith.BitcastOp):
        return None
    moved = bits.input
    format = format_of(moved.type)
    if format is None or not _is_rounded(moved, format):
        return None
    return first.lhs, moved


def _shifted_bits(value: SSAValue) -> SSAValue | None:
    """The n of `power_of_two`."""
    bits = value.owner
    shift = bits.input.owner if isinstance(bits, arith.BitcastOp) else None
    biased = shift.lhs.owner if isinstance(shift, arith.ShLIOp) else None
    format = format_of(value.type)
    if not isinstance(biased, arith.AddiOp) or shift is None or format is None:
        return None
    assert isinstance(shift, arith.ShLIOp)
    fits = constant_number(shift.rhs) == format.fraction
    return biased.lhs if fits and constant_number(biased.rhs) == format.bias else None


def _is_rounded(value: SSAValue, format: Format) -> bool:
    """Whether a value is a sum with the format's rounder, and no more than half of it."""
    owner = value.owner
    if isinstance(owner, arith.AddfOp):
        return constant_number(owner.rhs) == format.rounder
    return isinstance(owner, math.FmaOp) and constant_number(owner.c) == format.rounder


def binary_limits(format: Format) -> tuple[float, float]:
    """The last argument for which 2^x is zero, half of the least number that there is, and one for
    which it is infinite for certain; x stops there."""
    return float(-format.bias - format.precision + 1), format.bias + 2.4


def natural_limits(format: Format) -> tuple[float, float]:
    """The same for e^x."""
    low, high = (limit / LOG2_E["f64"][0] for limit in binary_limits(format))
    return format.round(low * (1 + 2.0**-format.precision)), format.round(high)


def scaled_above(e: Emitter, x: Float, low: float, power: Float, n: Int) -> Float:
    """power 2^n, and zero for x up to `low`: by itself, as what underflows takes some processors a
    hundred times as long, and what a softmax masks does."""
    return scale(e, e.where(x <= low, 0.0, power), n)


def exp2(e: Emitter, x: Float) -> Float:
    """2^x, error below 1 ulp; exact for whole x.

    x = n + r; 2^r = 1 + r P(r); P is the minimax polynomial EXP2.
    """
    low, high = binary_limits(e.format)
    s = split_binary(e, x.at_least(low).at_most(high))
    power = e.fma(s.r, e.polynomial(s.r, EXP2[e.format.name]), 1.0)
    return scaled_above(e, x, low, power, s.n)


def exp(e: Emitter, x: Float) -> Float:
    """e^x, error below 1 ulp.

    x = n ln 2 + r; e^r = 1 + r + r^2 P(r); P is the minimax polynomial EXP.
    """
    low, high = natural_limits(e.format)
    s = split_natural(e, x.at_least(low).at_most(high))
    return scaled_above(e, x, low, exp_of_rest(e, s.r), s.n)


def exp_of_rest(e: Emitter, r: Float) -> Float:
    """e^r for |r| at most ln 2 / 2."""
    return e.polynomial(r, (1.0, 1.0, *EXP[e.format.name]))


def expm1_of_rest(e: Emitter, r: Float) -> Float:
    """e^r - 1 for |r| at most ln 2 / 2, error relative to itself."""
    return e.fma(r * r, e.polynomial(r, EXP[e.format.name]), r)


def expm1(e: Emitter, x: Float) -> Float:
    """e^x - 1, error below 2 ulp.

    e^x - 1 = 2 (h q + (h - 1/2)) with q = e^r - 1 and h = 2^(n - 1), which is finite to the end
    of the range. A tiny x is its own result, with its sign.
    """
    low = -0.7 * (e.format.precision + 2)
    high = (e.format.bias + 1.4) / LOG2_E["f64"][0]
    s = split_natural(e, x.at_least(low).at_most(high))
    half = power_of_two(e, s.n - 1)
    result = 2.0 * e.fma(half, expm1_of_rest(e, s.r), half - 0.5)
    return e.where(abs(x) < 2.0**-e.format.precision, x, result)
