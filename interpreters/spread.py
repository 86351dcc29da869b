"""Values over ranges: an array with one axis for each range that it varies over.

Axes are the numbers of ranges, ascending, so that two values meet by putting axes of size 1 where
one of them does not vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from uopc.dialects.rounding import Array


@dataclass(frozen=True)
class Spread:
    """A value at all indices of some ranges."""

    data: Array
    axes: tuple[int, ...] = ()

    def at(self, axes: Sequence[int]) -> Array:
        """The array under more axes, of size 1 where the value does not vary."""
        if tuple(axes) == self.axes:
            return self.data
        sizes = dict(zip(self.axes, self.data.shape, strict=True))
        return self.data.reshape([sizes.get(axis, 1) for axis in axes])


def union(values: Sequence[Spread]) -> tuple[int, ...]:
    """All axes that some values have."""
    return tuple(sorted({axis for value in values for axis in value.axes}))


def uniform(value: Any) -> Spread:
    """A value that varies nowhere."""
    return Spread(np.asarray(value))


def together(function: Any, *values: Spread) -> Spread:
    """A function of arrays, of values over different ranges."""
    axes = union(values)
    return Spread(np.asarray(function(*(v.at(axes) for v in values))), axes)


def full(value: Spread, axes: Sequence[int], extents: Sequence[int]) -> Array:
    """The array with all of its axes at their extents."""
    return np.broadcast_to(value.at(axes), [extents[axis] for axis in axes])


def all_of(*conditions: Any) -> Any:
    """Where all conditions hold; everywhere for none."""
    result: Any = np.True_
    for condition in conditions:
        result = np.logical_and(result, condition)
    return result


def affine_value(expr: AffineExpr, dims: Sequence[Spread]) -> Spread:
    """The values of an affine expression."""
    values: list[Spread] = []
    stack: list[AffineExpr | AffineBinaryOpKind] = [expr]
    while stack:
        node = stack.pop()
        match node:
            case AffineBinaryOpKind():
                right, left = values.pop(), values.pop()
                values.append(together(_APPLY[node], left, right))
            case AffineBinaryOpExpr():
                stack += (node.kind, node.rhs, node.lhs)
            case AffineDimExpr():
                values.append(dims[node.position])
            case _:
                assert isinstance(node, AffineConstantExpr)
                values.append(uniform(np.int64(node.value)))
    return values[0]


def _ceil_divide(a: Any, b: Any) -> Any:
    return -(-a // b)


_APPLY: dict[AffineBinaryOpKind, Any] = {
    AffineBinaryOpKind.Add: np.add,
    AffineBinaryOpKind.Mul: np.multiply,
    AffineBinaryOpKind.FloorDiv: np.floor_divide,
    AffineBinaryOpKind.Mod: np.remainder,
    AffineBinaryOpKind.CeilDiv: _ceil_divide,
}
