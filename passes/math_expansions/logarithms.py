"""log, log2, log10 and log1p.

x = 2^k m with m in [3/4, 3/2), f = m - 1, and log(1 + f) = f + f^2 P(f) with the minimax
polynomial LOG. Near x = 1, k is zero and f exact, so that the error stays relative to the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from uopc.passes.math_expansions.coefficients import LN2, LOG, LOG2_E, LOG10_2, LOG10_E
from uopc.passes.math_expansions.emit import Emitter, Float, Int

INFINITY = float("inf")
NAN = float("nan")


@dataclass(frozen=True)
class Reduced:
    """x = 2^k (1 + f)."""

    k: Int
    f: Float


def reduce(e: Emitter, x: Float, least: float = 0.75) -> Reduced:
    """Splits a positive finite x, numbers below the smallest normal one included.

    Those are first multiplied by a power of two that makes them normal.
    """
    small = x < e.format.smallest_normal
    lift = e.format.fraction + 1
    lifted = e.where(small, x * 2.0**lift, x)
    k, m = split_exponent(e, lifted, least)
    return Reduced(k - e.where_int(small, lift, 0), m - 1.0)


def split_exponent(e: Emitter, x: Float, least: float = 0.75) -> tuple[Int, Float]:
    """k and m of x = 2^k m, m in [least, 2 least), for a positive normal x."""
    bits = x.bits()
    k = (bits - e.format.bits_of(least)) >> e.format.fraction
    return k, (bits - (k << e.format.fraction)).floats()


def tail(e: Emitter, f: Float) -> Float:
    """log(1 + f) - f for f in [-1/4, 1/2]."""
    return (f * f) * e.polynomial(f, LOG[e.format.name])


def finish(e: Emitter, x: Float, result: Float) -> Float:
    """What log of zero, of infinity, of NaN and of less than zero is; else `result`."""
    result = e.where(x < INFINITY, result, x)
    result = e.where(x.equals(0.0), -INFINITY, result)
    return e.where(x < 0.0, NAN, result)


def log_of(e: Emitter, k: Int, f: Float, small: Float | None = None) -> Float:
    """log(2^k (1 + f)), plus a `small` correction that is added where it is not rounded away."""
    high, low = LN2[e.format.name]
    n = k.to_float()
    rest = e.fma(n, low, tail(e, f))
    return e.fma(n, high, f + (rest if small is None else rest + small))


def log(e: Emitter, x: Float) -> Float:
    """Natural logarithm, error below 1.5 ulp."""
    s = reduce(e, x)
    return finish(e, x, log_of(e, s.k, s.f))


def log2(e: Emitter, x: Float) -> Float:
    """Logarithm to base 2, error below 2 ulp; exact for powers of two.

    log2(1 + f) = f + (f (log2 e - 1) + log2 e (f^2 P(f))): the largest part is exact.
    """
    s = reduce(e, x)
    log2_e = LOG2_E["f64"][0]
    rest = e.fma(tail(e, s.f), log2_e, s.f * (log2_e - 1.0))
    return finish(e, x, (s.k.to_float() + s.f) + rest)


def log10(e: Emitter, x: Float) -> Float:
    """Logarithm to base 10, error below 2 ulp."""
    s = reduce(e, x)
    high, low = LOG10_E[e.format.name]
    two_high, two_low = LOG10_2[e.format.name]
    n = s.k.to_float()
    rest = e.fma(n, two_low, e.fma(tail(e, s.f), high, s.f * low))
    return finish(e, x, e.fma(n, two_high, e.fma(s.f, high, rest)))


def log1p(e: Emitter, x: Float) -> Float:
    """log(1 + x), error below 2 ulp.

    k comes from the rounded sum 1 + x, but f = 2^-k x + (2^-k - 1) from x itself, rounded once.
    From x = 2^precision on, 1 + x is x. A tiny x is its own result, with its sign.
    """
    return e.where(abs(x) < 2.0 ** -(e.format.precision + 1), x, finish(e, 1.0 + x, log1p_of(e, x)))


def log1p_of(e: Emitter, x: Float) -> Float:
    """log(1 + x) for finite x above -1."""
    s = reduce_sum(e, x)
    return log_of(e, s.k, s.f)


def reduce_sum(e: Emitter, x: Float) -> Reduced:
    """Splits 1 + x, for finite x above -1, with f rounded once from the exact sum."""
    k, m = split_exponent(e, 1.0 + x)
    shrink = ((e.format.bias - k) << e.format.fraction).floats()
    exact = e.fma(x, shrink, shrink - 1.0)
    return Reduced(k, e.where(x < 2.0**e.format.precision, exact, m - 1.0))
