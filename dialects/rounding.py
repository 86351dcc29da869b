"""Numbers rounded once, to nearest even, into an element type.

numpy rounds f64 to f32 and f16 once, but what goes to bfloat16 passes through f32 and is rounded
twice. Rounding to odd on the way cures that: an inexact value keeps its last bit set, which no
later rounding to a type of fewer digits (by at least two) can mistake for a tie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from uopc.dialects.element_types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]

_LOW_BITS = 12
"""How many low bits of a 64-bit integer are folded into one so that f64 holds the rest."""


def round_floats(values: Array, row: ElementType) -> Array:
    """Floats of f64 or f32, of any shape, rounded once to a float type; overflow gives inf."""
    with np.errstate(all="ignore"):
        if row.name == "bf16" and values.dtype == np.float64:
            values = round_to_odd(values)
        return values.astype(row.numpy)


def round_to_odd(values: Array) -> Array:
    """f64 to f32: exact values as they are, others to the neighbour whose last bit is one."""
    nearest = values.astype(np.float32)
    wide = nearest.astype(np.float64)
    bits = nearest.view(np.uint32)
    beyond = np.abs(wide) > np.abs(values)  # rounded away from zero: one step back
    inexact = (wide != values) & ~np.isnan(values)
    odd = (bits - beyond.astype(np.uint32)) | np.uint32(1)
    return np.where(inexact, odd, bits).astype(np.uint32).view(np.float32)


def round_integers(values: Array, row: ElementType) -> Array:
    """Integers of any numpy type rounded once to a float type; overflow gives inf."""
    with np.errstate(all="ignore"):
        if row.name in ("f64", "f32") or values.dtype.itemsize < 8:
            return (
                round_floats(values.astype(np.float64), row)
                if row.bits == 16
                else (values.astype(row.numpy))
            )
        mask = values.dtype.type((1 << _LOW_BITS) - 1)
        sticky = ((values & mask) != 0).astype(values.dtype) << values.dtype.type(_LOW_BITS - 1)
        large = (
            (values > (1 << 52)) | (values < -(1 << 52))
            if values.dtype.kind == "i"
            else (values > (1 << 52))
        )
        exact = np.where(large, (values & ~mask) | sticky, values).astype(np.float64)
        return round_floats(exact, row)
