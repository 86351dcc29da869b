"""a * b + c in one rounding, on numpy arrays.

f32 goes through f64: the product is exact there, the sum is rounded to odd, and no later rounding
to f32 can mistake such a sum for a tie. f64 follows Boldo and Melquiond, "Emulation of FMA and
correctly rounded sums" (IEEE Transactions on Computers, 2008): the product and two sums are split
into value and error without loss, and the tail is rounded to odd. Where an exponent is so extreme
that a split could lose bits, the element is computed in integers (fractions).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from uopc.dialects.rounding import Array
from uopc.interpreters.scalar_types import where

_SPLITTER = 134217729.0  # 2**27 + 1, Veltkamp's constant
_LOW_BITS, _HALF = np.int64((1 << 29) - 1), np.int64(1 << 28)
"""The bits that f64 has more than f32, and one half of f32's last place."""
_SMALL = 2.0**-125
_SAFE = 400
"""The splits lose nothing while every exponent (or a zero) is within this."""


def fma(a: Any, b: Any, c: Any) -> Array:
    """a * b + c of f32 or f64 arrays of one dtype, rounded once to nearest even."""
    if a.dtype == np.float32:
        product = a.astype(np.float64) * b.astype(np.float64)  # 48 bits at most: exact
        addend = c.astype(np.float64)
        total = np.asarray(product + addend)
        # Rounding twice goes wrong only for what looks like a tie of f32, or is a denormal of it.
        tie = (total.view(np.int64) & _LOW_BITS) == _HALF
        if tie.any() or (np.abs(total) < _SMALL).any():
            total = _odd_sum(product, addend)
        return total.astype(np.float32)
    a, b, c = np.broadcast_arrays(a, b, c)
    safe = _moderate(a) & _moderate(b) & _moderate(c)
    if safe.all():
        return _fused_f64(a, b, c)
    result = np.asarray(_fused_f64(where(safe, a, 0.0), where(safe, b, 0.0), c)).copy()
    flat, rest = result.reshape(-1), np.flatnonzero(~safe)
    for k, x, y, z in zip(rest, a[~safe], b[~safe], c[~safe], strict=True):
        flat[k] = _exact(float(x), float(y), float(z))
    return flat.reshape(result.shape)


def _moderate(x: Array) -> Array:
    _, exponent = np.frexp(x)
    return np.isfinite(x) & (np.abs(exponent) < _SAFE)


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _odd_sum(a: Any, b: Any) -> Any:
    """a + b in f64 rounded to odd: of the two neighbours of an inexact sum, the odd one."""
    total, error = _two_sum(a, b)
    bits = np.asarray(total).view(np.int64)
    # An even sum moves one step toward its error; in bits, away from zero is up for both signs.
    step = where((error > 0) == (total > 0), 1, -1)
    inexact = (error != 0) & np.isfinite(error) & ((bits & 1) == 0)
    return where(inexact, bits + step, bits).view(np.float64)


def _split(x: Any) -> tuple[Any, Any]:
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b and its error (Dekker)."""
    product = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _fused_f64(a: Any, b: Any, c: Any) -> Any:
    high, low = _two_product(a, b)
    total, tail = _two_sum(c, low)
    value, rest = _two_sum(high, total)
    result = value + _odd_sum(tail, rest)
    # Of zeros the sign counts, which the errors (all +0) would wash away.
    return where((high == 0) | (result == 0), high + c, result)


def _exact(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        with np.errstate(all="ignore"):
            # A finite product may overflow on the way, but not before an infinite c.
            if math.isfinite(a) and math.isfinite(b):
                return c
            return float(np.float64(a) * np.float64(b) + np.float64(c))
    if a == 0 or b == 0:
        return a * b + c
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value == 0:
        # x + -x is +0, unless both were -0, which a nonzero product is not.
        return 0.0
    try:
        return float(value)  # Fraction to float is int / int: correctly rounded, denormals too
    except OverflowError:
        return math.inf if value > 0 else -math.inf
