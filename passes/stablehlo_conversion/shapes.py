"""Ops that move elements: they become utensor's movement ops, which cost nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from uopc.dialects.numbers import scalar
from uopc.passes.stablehlo_conversion.builder import (
    Builder,
    element_of,
    number_of,
    shape_of,
    tensor,
)
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    axes_of,
    invalid,
    number,
    result_type,
)

Values = Sequence[SSAValue]


def check_axes(op: Operation, axes: Sequence[int], rank: int) -> None:
    """Axes are in range and distinct. Raises UopcError."""
    if any(not 0 <= axis < rank for axis in axes) or len(set(axes)) != len(axes):
        raise invalid(op, f"has axes {list(axes)}, expected distinct ones from 0 to {rank - 1}")


def check_length(op: Operation, values: Sequence[int], rank: int, what: str) -> None:
    """There is one number for each axis. Raises UopcError."""
    if len(values) != rank:
        raise invalid(op, f"has {len(values)} {what}, expected {rank}")


def _broadcast_in_dim(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    if c.lift is not None:
        return x[:1]
    _, shape = result_type(op)
    axes = axes_of(op, "broadcast_dimensions")
    check_length(op, axes, len(shape_of(x[0])), "broadcast_dimensions")
    check_axes(op, axes, len(shape))
    for axis, size in zip(axes, shape_of(x[0]), strict=True):
        if size not in (1, shape[axis]):
            raise invalid(op, f"repeats size {size} along an axis of size {shape[axis]}")
    return [c.build.spread(x[0], shape, axes)]


def _broadcast(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    sizes, shape = axes_of(op, "broadcast_sizes"), shape_of(x[0])
    axes = range(len(sizes), len(sizes) + len(shape))
    return [c.build.spread(x[0], (*sizes, *shape), list(axes))]


def _reshape(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    if c.lift is not None:
        return x[:1]
    _, shape = result_type(op)
    if math.prod(shape) != math.prod(shape_of(x[0])):
        raise invalid(op, f"gives {list(shape)} the elements of {list(shape_of(x[0]))}")
    return [c.build.reshape(x[0], shape)]


def _transpose(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    order = axes_of(op, "permutation")
    check_length(op, order, len(shape_of(x[0])), "axes")
    check_axes(op, order, len(order))
    return [c.build.permute(x[0], order)]


def _reverse(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    axes = axes_of(op, "dimensions")
    check_axes(op, axes, len(shape_of(x[0])))
    return [c.build.flip(x[0], axes)]


def _slice(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    shape = shape_of(x[0])
    starts, limits = axes_of(op, "start_indices"), axes_of(op, "limit_indices")
    steps = axes_of(op, "strides", (1,) * len(shape))
    for values in (starts, limits, steps):
        check_length(op, values, len(shape), "numbers")
    for n, start, limit, step in zip(shape, starts, limits, steps, strict=True):
        if not 0 <= start <= limit <= n or step < 1:
            raise invalid(op, f"has no elements {start} to {limit} step {step} in size {n}")
    return [c.build.shrink(x[0], starts, limits, steps)]


def _concatenate(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    axis = number(op, "dimension")
    if not x:
        raise invalid(op, "has no operands")
    check_axes(op, (axis,), len(shape_of(x[0])))
    others = [(len(shape_of(v)), [n for k, n in enumerate(shape_of(v)) if k != axis]) for v in x]
    if any(each != others[0] for each in others):
        raise invalid(op, f"joins {', '.join(str(list(shape_of(v))) for v in x)} along {axis}")
    return [c.build.concatenate(x, axis)]


def _iota(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    element, shape = result_type(op)
    axis = number(op, "iota_dimension")
    check_axes(op, (axis,), len(shape))
    return [c.build.iota(axis, shape, element)]


def dilate(b: Builder, x: SSAValue, interior: Sequence[int], fill: SSAValue) -> SSAValue:
    """`interior` elements of a value between each two along an axis."""
    for axis, count in enumerate(interior):
        shape = shape_of(x)
        n = shape[axis]
        if count and n > 1:
            apart = b.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
            widths = [0] * (len(shape) + 1)
            widths[axis + 1] = count
            wide = pad_with(b, apart, [0] * len(widths), widths, fill)
            wide = b.reshape(wide, (*shape[:axis], n * (count + 1), *shape[axis + 1 :]))
            x = b.slice_axis(wide, axis, 0, n * (count + 1) - count)
    return x


def pad_with(
    b: Builder, x: SSAValue, low: Sequence[int], high: Sequence[int], fill: SSAValue
) -> SSAValue:
    """Elements of a value, known or not, added around; a negative number takes elements away."""
    begins = [max(0, -a) for a in low]
    ends = [n - max(0, -a) for n, a in zip(shape_of(x), high, strict=True)]
    low, high = [max(0, a) for a in low], [max(0, a) for a in high]
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if end < begin:  # more is taken away than there is: the rest comes off the padding
            over = begin - end
            begins[axis] = ends[axis] = min(begin, shape_of(x)[axis])
            if low[axis] >= over:
                low[axis] -= over
            else:
                high[axis] -= over
    x = b.shrink(x, begins, ends)
    if not any(low) and not any(high):
        return x
    known = number_of(fill)
    if known is not None:
        return b.pad(x, low, high, known)
    inside = b.pad(b.constant(1, i1, shape_of(x)), low, high, scalar(0, i1))
    padded = b.pad(x, low, high, scalar(0, element_of(x)))
    return b.where(inside, padded, b.spread(fill, shape_of(padded)))


def _pad(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    low, high = axes_of(op, "edge_padding_low"), axes_of(op, "edge_padding_high")
    interior = axes_of(op, "interior_padding", (0,) * len(low))
    for values in (low, high, interior):
        check_length(op, values, len(shape_of(x[0])), "amounts")
    if any(count < 0 for count in interior):
        raise invalid(op, f"has interior padding {list(interior)}")
    return [pad_with(c.build, dilate(c.build, x[0], interior, x[1]), low, high, x[1])]


def _get_dimension_size(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    axis = number(op, "dimension")
    check_axes(op, (axis,), len(shape_of(x[0])))
    return [c.build.constant(tensor(x[0]).get_shape()[axis], result_type(op)[0])]


SHAPE_RULES: dict[str, Rule] = {
    "stablehlo.broadcast": _broadcast,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.get_dimension_size": _get_dimension_size,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
LIFTABLE_SHAPES = frozenset({"stablehlo.broadcast_in_dim", "stablehlo.reshape"})
"""Of scalars they are the identity."""
