"""reduce, argreduce and scatter of utensor on numpy arrays.

Sums and products of floats are the one place where docs/numerics.md leaves the order open; here
they are taken with more digits than any order could show. All else is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uopc.dialects import tensor_elementwise as t
from uopc.dialects.element_types import ElementType
from uopc.dialects.rounding import Array, round_floats
from uopc.interpreters.elementwise import elementwise
from uopc.interpreters.floats import of_order_keys, order_keys
from uopc.interpreters.rounding import widened

Ufunc = Callable[..., Any]

_INTEGER: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_BOOLEAN: dict[str, np.ufunc] = {
    "add": np.logical_xor,
    "mul": np.logical_and,
    "max": np.logical_or,
    "min": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def identity(kind: str, row: ElementType) -> float | int:
    """What a reduction over no elements gives."""
    low, high = (-np.inf, np.inf) if row.is_float else row.limits
    table: dict[str, float | int] = {
        "add": 0,
        "mul": 1,
        "max": low,
        "min": high,
        "and": high if row.kind != "signed" else -1,
        "or": 0,
        "xor": 0,
    }
    return table[kind]


def reduce(kind: str, values: Array, axes: tuple[int, ...], row: ElementType) -> Array:
    """Combine along axes, which are dropped; from the kind's identity."""
    with np.errstate(all="ignore"):
        if row.is_bool:
            initial = bool(identity(kind, row))
            return np.asarray(_BOOLEAN[kind].reduce(values, axis=axes, initial=initial))
        if not row.is_float:
            result = _INTEGER[kind].reduce(
                values, axis=axes, dtype=values.dtype, initial=identity(kind, row)
            )
            return np.asarray(result)
        if kind in ("max", "min"):
            return np.asarray(_extremum(kind, values, axes, row))
        return np.asarray(round_floats(_accumulated(kind, values, axes, row), row))


def _extremum(kind: str, values: Array, axes: tuple[int, ...], row: ElementType) -> Array:
    keys = order_keys(widened(values, row), nan_is_largest=kind == "max")
    start = np.asarray(identity(kind, row), f"f{keys.dtype.itemsize}")
    initial = order_keys(start, nan_is_largest=True).item()
    best = np.asarray(_INTEGER[kind].reduce(keys, axis=axes, initial=initial))
    return of_order_keys(best).astype(row.numpy)


def _accumulated(kind: str, values: Array, axes: tuple[int, ...], row: ElementType) -> Array:
    """A sum or product as f64, of more digits than the type has."""
    wide = values.astype(np.float64)
    if kind == "mul":
        return np.asarray(np.multiply.reduce(wide, axis=axes, initial=1.0))
    if row.name == "f64":
        return _compensated_sum(wide, axes)
    return np.asarray(np.add.reduce(wide, axis=axes, initial=0.0))


def _compensated_sum(values: Array, axes: tuple[int, ...]) -> Array:
    """The sum of f64 as if it had twice the digits: Knuth's two-sum along a binary tree.

    s = a + b, and the error of s is (a - (s - b')) + (b - b') for b' = s - a, exactly.
    """
    kept = tuple(k for k in range(values.ndim) if k not in axes)
    order = np.transpose(values, (*axes, *kept))
    sums = (
        order.reshape(-1, *(values.shape[k] for k in kept))
        if values.size
        else np.zeros((0, *(values.shape[k] for k in kept)))
    )
    errors = np.zeros_like(sums)
    while len(sums) > 1:
        odd = len(sums) % 2
        a, b = sums[: len(sums) - odd : 2], sums[1::2]
        total = a + b
        part = total - a
        lost = (a - (total - part)) + (b - part)
        lost = lost + errors[: len(sums) - odd : 2] + errors[1::2]
        sums = np.concatenate([total, sums[len(sums) - odd :]])
        errors = np.concatenate([lost, errors[len(errors) - odd :]])
    if not len(sums):
        return np.zeros(sums.shape[1:])
    last: Array = np.asarray(sums[0])
    result = np.where(np.isfinite(last), last + errors[0], last)
    return result + np.float64(0.0)  # a sum starts from 0, so it is never -0


def argreduce(
    kind: str, values: Array, axis: int, row: ElementType, positions: ElementType
) -> Array:
    """The position of the first largest (smallest) along an axis; of the first NaN if any.

    0 and -0 are equal here.
    """
    wide = widened(values, row)
    found = np.argmax(wide, axis=axis) if kind == "max" else np.argmin(wide, axis=axis)
    return np.asarray(found).astype(positions.numpy)


def gather(values: Array, indices: Array, axis: int) -> Array:
    """Elements at positions along an axis; positions outside go to the nearest end."""
    inside = np.clip(indices, 0, values.shape[axis] - 1).astype(np.int64)
    return np.take(values, inside, axis=axis)


_COMBINE: dict[str, type[t.BinaryOp]] = {
    "add": t.AddOp,
    "mul": t.MulOp,
    "max": t.MaxOp,
    "min": t.MinOp,
    "and": t.AndOp,
    "or": t.OrOp,
    "xor": t.XorOp,
}


def scatter(
    kind: str, values: Array, indices: Array, updates: Array, axis: int, row: ElementType
) -> Array:
    """Updates combined at positions of an axis, in row-major order; others are dropped.

    Each step is the elementwise op of the kind, rounded as that is.
    """
    result = np.moveaxis(values, axis, 0).copy()
    flat = indices.reshape(-1)
    moved = np.moveaxis(updates, range(axis, axis + indices.ndim), range(indices.ndim))
    rows = moved.reshape(flat.size, *result.shape[1:])
    kept = (flat >= 0) & (flat < result.shape[0])
    positions = flat[kept].astype(np.int64)
    with np.errstate(all="ignore"):
        _apply(kind, result, positions, rows[kept], row)
    return np.moveaxis(result, 0, axis)


def _apply(kind: str, result: Array, positions: Array, rows: Array, row: ElementType) -> None:
    exact = row.bits > 16 or not row.is_float
    if kind in ("add", "mul") and exact and not row.is_bool:
        _INTEGER[kind].at(result, positions, rows)
        return
    for position, update in zip(positions.tolist(), rows, strict=True):
        if kind == "set":
            result[position] = update
        else:
            operands = (result[position : position + 1], update[np.newaxis])
            result[position] = elementwise(_COMBINE[kind], operands, row)[0]
