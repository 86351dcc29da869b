"""Conversions between element types: the casts of docs/numerics.md on numpy arrays.

Every function takes an array and the rows of its element types, and gives a new array. None of
them warns.
"""

from __future__ import annotations

import numpy as np

from uopc.dialects.element_types import ElementType
from uopc.dialects.rounding import Array, round_floats, round_integers


def cast(values: Array, source: ElementType, target: ElementType) -> Array:
    """The same numbers in another element type.

    To a float: nearest even, once; beyond its range the infinities. From a float to an integer:
    truncated, saturated at the limits, NaN gives 0. Between integers: wrapped. To i1: whether
    unequal to 0, which a NaN is.
    """
    if source == target:
        return values
    if target.is_bool:
        return np.asarray(values != 0)
    if target.is_float:
        if source.is_float:
            return round_floats(_float_values(values), target)
        return round_integers(values.astype(np.uint8) if source.is_bool else values, target)
    if source.is_float:
        return _saturated(values.astype(np.float64), target)
    return values.astype(target.numpy)


def _float_values(values: Array) -> Array:
    """Floats as f64, or as f32 where that holds them."""
    return values if values.dtype.itemsize >= 4 else values.astype(np.float32)


def _saturated(values: Array, target: ElementType) -> Array:
    """f64 truncated to an integer type, the limits beyond it, 0 for NaN."""
    low, high = target.limits
    # float(high) rounds up to a power of two for 64 bits, so it is reached by what is too large.
    too_large = values >= float(high)
    too_small = values <= float(low)
    inside = ~(too_large | too_small | np.isnan(values))
    result = np.where(inside, values, 0.0).astype(target.numpy)
    result = np.where(too_large, target.numpy.type(high), result)
    return np.where(too_small, target.numpy.type(low), result).astype(target.numpy)


def bitcast(values: Array, target: ElementType) -> Array:
    """The same bits as another element type of the same width."""
    return np.ascontiguousarray(values).view(target.numpy).reshape(values.shape)


def widened(values: Array, row: ElementType) -> Array:
    """Halves as f32, in which their arithmetic is done; other types as they are."""
    return values.astype(np.float32) if row.is_float and row.bits == 16 else values


def as_f64(values: Array) -> Array:
    """Floats of any type as f64: exact."""
    return values.astype(np.float64)
