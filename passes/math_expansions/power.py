"""powf, cbrt and rsqrt."""

from __future__ import annotations

from uopc.passes.math_expansions.coefficients import ATANH, EXP2, LOG, LOG2_E, THIRD
from uopc.passes.math_expansions.emit import F32, F64, Emitter, Float
from uopc.passes.math_expansions.exponentials import (
    binary_limits,
    power_of_two,
    scale,
    split_binary,
)
from uopc.passes.math_expansions.logarithms import INFINITY, NAN, reduce, split_exponent
from uopc.passes.math_expansions.turns import exact_product


def rsqrt(e: Emitter, x: Float) -> Float:
    """1 / sqrt x, error below 1.5 ulp: two roundings."""
    return 1.0 / x.sqrt()


def cbrt(e: Emitter, x: Float) -> Float:
    """Cube root, error below 1 ulp.

    A third of the exponent, taken off the encoding as an integer, gives 1 / cbrt a to 4 %.
    Steps y (1 + r/3 + 2 r^2/9) with r = 1 - a y^3 triple the digits each; t = a y^2 is then
    corrected by its exact residual a - t^3. Both ends of the range are moved to the middle.
    """
    format = e.format
    a = abs(x)
    places = 8 if format is F32 else 18
    small = a < format.smallest_normal * 2.0 ** (3 * places)
    large = a > 2.0 ** (format.bias - 3 * places)
    lift = e.where(small, 2.0 ** (3 * places), e.where(large, 2.0 ** (-3 * places), 1.0))
    back = e.where(small, 2.0**-places, e.where(large, 2.0**places, 1.0))
    a = a * lift
    start = round((4 / 3 * format.bias - 0.056) * 2.0**format.fraction)
    y = (start - a.bits().unsigned_quotient(3)).floats()
    for _ in range(2 if format is F32 else 3):
        r = e.fma(-(a * y), y * y, 1.0)
        y = e.fma(y * r, e.fma(r, 2 / 9, 1 / 3), y)
    t = (a * y) * y
    square, square_low = exact_product(e, t, t)
    cube, cube_low = exact_product(e, square, t)
    residual = (a - cube) - e.fma(square_low, t, cube_low)
    root = e.fma(residual * (y * y), 1 / 3, t) * back
    inside = (abs(x) > 0.0) & (abs(x) < INFINITY)
    return e.where(inside, root, abs(x)).with_sign_bits(x.sign_bits())


def powf(e: Emitter, x: Float, y: Float) -> Float:
    """x^y, error below 2 ulp (f32: 0.51), with the special cases of C's Annex F; f32 by way of f64.

    2^(y log2 |x|), then: the sign of x for odd y; NaN for finite x < 0 and y not whole; 1 for y = 0
    or x = 1, and for x = -1 with y infinite.
    """
    a = abs(x)
    size = power_of_float(e, a, y) if e.format is F32 else power_of_double(e, a, y)
    size = e.where(a.equals(1.0), 1.0, size)
    rounded = y.round_even()
    half = y * 0.5
    odd = rounded.equals(y) & half.round_even().differs(half)
    signed = size.with_sign_bits(e.where_int(odd, x.sign_bits(), 0))
    undefined = rounded.differs(y) & (x < 0.0) & (x > -INFINITY)
    result = e.where(undefined, NAN, signed)
    return e.where(y.equals(0.0) | x.equals(1.0), 1.0, result)


def at_ends(e: Emitter, a: Float, logarithm: Float) -> Float:
    """The logarithm of a >= 0 with zero, infinity and NaN put right."""
    return e.where(a.equals(0.0), -INFINITY, e.where(a < INFINITY, logarithm, a))


def power_of_float(e: Emitter, a: Float, y: Float) -> Float:
    """a^y for f32 a >= 0: in f64 with a relative error of 2^-34, then rounded once."""
    wide = e.at(F64)
    base = a.converted(wide)
    k, m = split_exponent(wide, base)
    f = m - 1.0
    natural = wide.fma(f * f, wide.polynomial(f, LOG["f32_in_f64"]), f)
    logarithm = at_ends(wide, base, wide.fma(natural, LOG2_E["f64"][0], k.to_float()))
    low, high = binary_limits(F32)
    exponent = (y.converted(wide) * logarithm).at_least(low).at_most(high)
    t = split_binary(wide, exponent)
    fraction = wide.fma(t.r, wide.polynomial(t.r, EXP2["f32_in_f64"]), 1.0)
    return (fraction * power_of_two(wide, t.n)).converted(e)


def power_of_double(e: Emitter, a: Float, y: Float) -> Float:
    """a^y for f64 a >= 0: the logarithm is a sum of two numbers with an error of 2^-64."""
    high, low = double_log2(e, a)
    high = at_ends(e, a, high)
    bottom, top = binary_limits(F64)
    product = y * high
    exponent = product.at_least(bottom).at_most(top)
    inside = abs(high) < INFINITY
    rest = e.fma(y, low, e.fma(y, high, -product))
    rest = e.where(inside & exponent.equals(product), rest, 0.0)
    s = split_binary(e, exponent)
    r = s.r + rest
    return scale(e, e.fma(r, e.polynomial(r, EXP2["f64"]), 1.0), s.n)


def double_log2(e: Emitter, a: Float) -> tuple[Float, Float]:
    """high + low = log2 a for positive finite a.

    log(1 + f) = 2 atanh s with s = f / (2 + f), and atanh s = s + s^3/3 + s^5 P(s^2): the first two
    terms as sums of two numbers each, the rest (below 2^-12 of s, as |s| < 0.172) as one.
    """
    reduced = reduce(e, a, 0.5**0.5)
    f = reduced.f
    d = 2.0 + f
    d_low = f - (d - 2.0)
    s = f / d
    s_low = e.fma(-s, d_low, e.fma(-s, d, f)) / d
    z, z_low = exact_product(e, s, s)
    z_low = e.fma(s + s, s_low, z_low)
    cube, cube_low = exact_product(e, z, s)
    cube_low = cube_low + e.fma(z, s_low, z_low * s)
    third, third_low = THIRD["f64"]
    t, t_low = exact_product(e, cube, e.number(third))
    t_low = t_low + e.fma(cube, third_low, cube_low * third)
    tail = (cube * z) * e.polynomial(z, ATANH["f64"])
    head = s + t
    rest = ((s - head) + t) + (s_low + (t_low + tail))
    total = head + rest
    total_low = (head - total) + rest
    factor, factor_low = (2.0 * part for part in LOG2_E["f64"])
    p, p_low = exact_product(e, total, e.number(factor))
    p_low = p_low + e.fma(total, factor_low, total_low * factor)
    k = reduced.k.to_float()
    high = k + p
    return high, ((k - high) + p) + p_low
