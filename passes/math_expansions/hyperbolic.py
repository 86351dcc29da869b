"""sinh, cosh, tanh and their inverses, by way of the exponential and the logarithm."""

from __future__ import annotations

from uopc.passes.math_expansions.coefficients import LOG2_E, SINH, TANH
from uopc.passes.math_expansions.emit import Emitter, Float
from uopc.passes.math_expansions.exponentials import (
    exp_of_rest,
    natural_limits,
    power_of_two,
    split_natural,
)
from uopc.passes.math_expansions.logarithms import INFINITY, NAN, log_of, reduce_sum


def tanh(e: Emitter, x: Float) -> Float:
    """Hyperbolic tangent, error below 2 ulp.

    a + a^3 P(a^2) with the minimax polynomial TANH below 0.5625, 1 - 2 / (e^2a + 1) from there on.
    """
    saturated = 0.5 * (e.format.precision + 4) / LOG2_E["f64"][0]
    a = abs(x).at_most(saturated)
    s = split_natural(e, a + a)
    far = 1.0 - 2.0 / e.fma(exp_of_rest(e, s.r), power_of_two(e, s.n), 1.0)
    z = a * a
    near = e.fma(a * z, e.polynomial(z, TANH[e.format.name]), a)
    return e.where(a < 0.5625, near, far).with_sign_bits(x.sign_bits())


def quarter_exponentials(e: Emitter, a: Float) -> tuple[Float, Float]:
    """e^a / 4 and e^-a / 4: a quarter, so that the ends of sinh and cosh do not overflow early."""
    s = split_natural(e, a.at_most(natural_limits(e.format)[1]))
    grown = exp_of_rest(e, s.r) * power_of_two(e, s.n - 2)
    return grown, 0.0625 / grown


def cosh(e: Emitter, x: Float) -> Float:
    """Hyperbolic cosine, error below 2 ulp: 2 (e^a / 4 + e^-a / 4)."""
    grown, shrunk = quarter_exponentials(e, abs(x))
    return 2.0 * (grown + shrunk)


def sinh(e: Emitter, x: Float) -> Float:
    """Hyperbolic sine, error below 2 ulp.

    2 (e^a / 4 - e^-a / 4) from 1 on; below, a + a^3 P(a^2) with the minimax polynomial SINH.
    """
    a = abs(x)
    grown, shrunk = quarter_exponentials(e, a)
    z = a * a
    small = e.fma(a * z, e.polynomial(z, SINH[e.format.name]), a)
    result = e.where(a < 1.0, small, 2.0 * (grown - shrunk))
    return result.with_sign_bits(x.sign_bits())


def asinh(e: Emitter, x: Float) -> Float:
    """Inverse hyperbolic sine, error below 2 ulp.

    log1p(a + a^2 / (1 + sqrt(1 + a^2))); log a + log 2 where a^2 swallows the 1.
    """
    a = abs(x)
    huge = a >= 2.0**e.format.precision
    square = a * a
    sum_less_one = e.where(huge, a, a + square / (1.0 + (1.0 + square).sqrt()))
    s = reduce_sum(e, sum_less_one)
    result = log_of(e, s.k + e.where_int(huge, 1, 0), s.f)
    return e.where(a < INFINITY, result, a).with_sign_bits(x.sign_bits())


def acosh(e: Emitter, x: Float) -> Float:
    """Inverse hyperbolic cosine, error below 2 ulp.

    log1p(t + sqrt(t^2 + 2 t)) with t = x - 1; log x + log 2 where x^2 swallows the 1. What the sum
    y in there loses in rounding is put back where it weighs, for y < 1: it times 1/(1 + y) or so.
    """
    huge = x >= 2.0**e.format.precision
    t = x - 1.0
    root = e.fma(t, t, t + t).sqrt()
    y = root + t
    lost = (t - (y - root)) * (1.0 - y)
    s = reduce_sum(e, e.where(huge, x, y))
    result = log_of(e, s.k + e.where_int(huge, 1, 0), s.f, e.where(y < 1.0, lost, 0.0))
    result = e.where(x < INFINITY, result, x)
    return e.where(x < 1.0, NAN, result)


def atanh(e: Emitter, x: Float) -> Float:
    """Inverse hyperbolic tangent, error below 2 ulp.

    log1p(2 a / (1 - a)) / 2. What the quotient q lacks, (2 a - q (1 - a)) / (1 - a), changes the
    logarithm by that numerator times 1 / (1 + a), for which 1 - a / 2 is near enough.
    """
    a = abs(x)
    d = 1.0 - a
    d_low = (1.0 - d) - a
    q = (a + a) / d
    remainder = e.fma(-q, d_low, e.fma(-q, d, a + a))
    s = reduce_sum(e, q)
    result = 0.5 * log_of(e, s.k, s.f, remainder * e.fma(a, -0.5, 1.0))
    result = e.where(a < 1.0, result, a)
    result = e.where(a.equals(1.0), INFINITY, result)
    return e.where(a > 1.0, NAN, result).with_sign_bits(x.sign_bits())
