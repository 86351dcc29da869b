"""Integer arithmetic of docs/numerics.md, every case defined, on numpy arrays.

Operands have one dtype and one shape. numpy's own integers wrap; what it leaves to the processor
(division by zero, the smallest number by -1, long shifts) is spelled out here.
"""

from __future__ import annotations

import numpy as np

from uopc.dialects.element_types import ElementType
from uopc.dialects.rounding import Array


def _divisor(x: Array, y: Array, row: ElementType) -> tuple[Array, Array, Array]:
    """A divisor that is safe everywhere, where y is 0, and where x / y does not fit."""
    by_zero = y == 0
    if row.kind != "signed":
        return np.where(by_zero, y.dtype.type(1), y), by_zero, np.zeros_like(by_zero)
    overflows = (x == row.limits[0]) & (y == -1)
    return np.where(by_zero | overflows, y.dtype.type(1), y), by_zero, overflows


def floordiv(x: Array, y: Array, row: ElementType) -> Array:
    """floor(x / y); all ones for y = 0; the smallest number by -1 is itself."""
    safe, by_zero, _ = _divisor(x, y, row)  # the smallest number by 1 is what it wraps to
    return np.where(by_zero, ~np.zeros_like(x), np.floor_divide(x, safe))


def mod(x: Array, y: Array, row: ElementType) -> Array:
    """x - floor(x / y) * y, with the divisor's sign; x for y = 0."""
    safe, by_zero, _ = _divisor(x, y, row)
    return np.where(by_zero, x, np.remainder(x, safe))


def truncdiv(x: Array, y: Array, row: ElementType) -> Array:
    """x / y rounded toward zero; all ones for y = 0; the smallest number by -1 is itself."""
    safe, by_zero, _ = _divisor(x, y, row)
    quotient = np.floor_divide(x, safe)
    if row.kind == "signed":
        inexact = np.remainder(x, safe) != 0
        quotient = quotient + (inexact & ((x < 0) != (safe < 0))).astype(x.dtype)
    return np.where(by_zero, ~np.zeros_like(x), quotient)


def rem(x: Array, y: Array, row: ElementType) -> Array:
    """x - truncdiv(x, y) * y, with the sign of x; x for y = 0."""
    safe, by_zero, _ = _divisor(x, y, row)
    return np.where(by_zero, x, np.fmod(x, safe))


def power(x: Array, y: Array, row: ElementType) -> Array:
    """x to the power y, wrapped; for y < 0 what truncation leaves of 1 / x**-y, and 0 for x = 0."""
    result, square = np.ones_like(x), x.copy()
    exponent = y.astype(f"u{y.dtype.itemsize}")
    for bit in range(row.bits - (row.kind == "signed")):
        taken = (exponent >> exponent.dtype.type(bit)) & exponent.dtype.type(1)
        result = np.where(taken != 0, result * square, result)
        square = square * square
    if row.kind != "signed":
        return result
    odd = (y & y.dtype.type(1)).astype(bool)
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0)).astype(x.dtype)
    return np.where(y < 0, inverse, result)


def shift_left(x: Array, y: Array, row: ElementType) -> Array:
    """x shifted by y read as unsigned; 0 from the width on."""
    inside, amount = _amount(y, row)
    return np.where(inside, np.left_shift(x, amount), x.dtype.type(0))


def shift_right(x: Array, y: Array, row: ElementType) -> Array:
    """x shifted by y read as unsigned, filled with the sign of a signed type."""
    inside, amount = _amount(y, row)
    if row.kind == "signed":
        return np.right_shift(x, np.where(inside, amount, x.dtype.type(row.bits - 1)))
    return np.where(inside, np.right_shift(x, amount), x.dtype.type(0))


def _amount(y: Array, row: ElementType) -> tuple[Array, Array]:
    inside = y.astype(f"u{y.dtype.itemsize}") < row.bits
    return inside, np.where(inside, y, y.dtype.type(0))


_BYTE_BITS = np.array([value.bit_count() for value in range(256)], np.uint8)


def popcount(x: Array, row: ElementType) -> Array:
    """The number of bits that are one."""
    parts = np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8)
    return _BYTE_BITS[parts].sum(axis=1, dtype=np.uint8).astype(x.dtype).reshape(x.shape)


def count_leading_zeros(x: Array, row: ElementType) -> Array:
    """The number of zero bits above the highest one; the width for 0."""
    rest = x.astype(f"u{x.dtype.itemsize}").astype(np.uint64)
    zeros = np.full(x.shape, row.bits, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        above = rest >> np.uint64(step)
        zeros = np.where(above != 0, zeros - step, zeros)
        rest = np.where(above != 0, above, rest)
    return (zeros - (rest != 0)).astype(x.dtype)


def sign(x: Array, row: ElementType) -> Array:
    """-1, 0 or 1."""
    if row.kind == "unsigned":
        return (x != 0).astype(x.dtype)
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def absolute(x: Array, row: ElementType) -> Array:
    """The magnitude; the smallest number is itself."""
    return x if row.kind == "unsigned" else np.where(x < 0, np.negative(x), x)
