"""The movement ops of utensor on numpy arrays; sizes are ints here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uopc.dialects.element_types import ElementType
from uopc.dialects.rounding import Array
from uopc.interpreters.rounding import cast


def shrink(
    values: Array, begins: Sequence[int], ends: Sequence[int], steps: Sequence[int]
) -> Array:
    """The elements from begin up to end along each axis, each step-th."""
    return values[tuple(map(slice, begins, ends, steps))]


def pad(values: Array, low: Sequence[int], high: Sequence[int], value: float | int) -> Array:
    """Elements of one value before and after each axis."""
    shape = [a + n + b for a, n, b in zip(low, values.shape, high, strict=True)]
    result = np.full(shape, value, values.dtype)
    result[tuple(slice(a, a + n) for a, n in zip(low, values.shape, strict=True))] = values
    return result


def iota(shape: Sequence[int], axis: int, row: ElementType, wide: ElementType) -> Array:
    """Each element its position along an axis, cast from `wide` (i64)."""
    positions = cast(np.arange(shape[axis], dtype=np.int64), wide, row)
    return np.broadcast_to(
        positions.reshape([-1 if k == axis else 1 for k in range(len(shape))]), shape
    )
