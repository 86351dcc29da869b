"""Float arithmetic of docs/numerics.md on numpy arrays of f32 or f64.

Halves come here as f32 and are rounded by the caller. Transcendental functions of f32 are computed
in f64 and rounded, so that they are right to the last bit but for rare ties; those of f64 are
numpy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from uopc.dialects.rounding import Array

Ufunc = Callable[..., Any]


def larger(x: Array, y: Array) -> Array:
    """The larger; a NaN wins, and 0 is above -0."""
    return _extremum(np.maximum, np.bitwise_and, x, y)


def smaller(x: Array, y: Array) -> Array:
    """The smaller; a NaN wins, and -0 is below 0."""
    return _extremum(np.minimum, np.bitwise_or, x, y)


def _extremum(chosen: Ufunc, of_sign: Ufunc, x: Array, y: Array) -> Array:
    # Equal floats have equal bits but for zeros, whose sign bit then decides.
    bits = f"u{x.dtype.itemsize}"
    equal: Array = of_sign(x.view(bits), y.view(bits)).view(x.dtype)
    return np.where(x == y, equal, chosen(x, y))


def remainder(x: Array, y: Array) -> Array:
    """The exact remainder of truncating division, with the sign of x."""
    return np.fmod(x, y)


def modulo(x: Array, y: Array) -> Array:
    """fmod(x, y), plus y where that is not 0 and has not the sign of y; a zero has y's sign."""
    rest = np.fmod(x, y)
    moved = np.where((rest < 0) != (y < 0), rest + y, rest)
    return np.where(rest != 0, moved, np.copysign(np.zeros_like(y), y))


def floor_divide(x: Array, y: Array) -> Array:
    """floor(x / y) as numpy rounds it; x / y for y = 0.

    q = (x - fmod(x, y)) / y, less 1 where mod moved fmod by y; then the integer nearest below,
    or above if q is more than a half beyond.
    """
    half, one = x.dtype.type(0.5), x.dtype.type(1)
    rest = np.fmod(x, y)
    quotient = (x - rest) / y
    quotient = np.where((rest != 0) & ((rest < 0) != (y < 0)), quotient - one, quotient)
    below = np.floor(quotient)
    whole = np.where(quotient - below > half, below + one, below)
    plain = x / y
    result = np.where(quotient != 0, whole, np.copysign(np.zeros_like(x), plain))
    return np.where(y == 0, plain, result)


def sign(x: Array) -> Array:
    """-1 or 1; NaN and the zeros as they are."""
    one = x.dtype.type(1)
    return np.where(x > 0, one, np.where(x < 0, -one, x))


def reciprocal(x: Array) -> Array:
    """1 / x."""
    return x.dtype.type(1) / x


def reciprocal_root(x: Array) -> Array:
    """1 / sqrt(x), the root and the quotient each rounded."""
    return x.dtype.type(1) / np.sqrt(x)


def error_function(x: Array) -> Array:
    """erf, which numpy does not have."""
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


def through_f64(function: Ufunc) -> Ufunc:
    """A function computed in f64 and rounded to the type of its operands."""

    def compute(*operands: Array) -> Array:
        wide = function(*(x.astype(np.float64) for x in operands))
        return wide.astype(operands[0].dtype)

    return compute


def _keys(x: Array) -> Array:
    """Integers in the order of the floats, -0 below 0. NaNs must be handled by the caller."""
    signed = x.view(f"i{x.dtype.itemsize}")
    return signed ^ ((signed >> (8 * x.dtype.itemsize - 1)) & np.iinfo(signed.dtype).max)


def order_keys(x: Array, *, nan_is_largest: bool) -> Array:
    """Integers in the order of the floats, -0 below 0, and NaNs all at one end."""
    limits = np.iinfo(f"i{x.dtype.itemsize}")
    end = limits.max if nan_is_largest else limits.min
    return np.where(np.isnan(x), limits.dtype.type(end), _keys(x))


def of_order_keys(keys: Array) -> Array:
    """The floats of `order_keys`."""
    bits = keys ^ ((keys >> (8 * keys.dtype.itemsize - 1)) & np.iinfo(keys.dtype).max)
    return bits.view(f"f{keys.dtype.itemsize}")
