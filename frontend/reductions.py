"""Functions of many elements: sums, extremes, statistics, running totals, softmax.

`axis` is one axis, several, or None for all; `keepdim` keeps reduced axes with size 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from uopc.dialects.tensor_build import number_text
from uopc.frontend import nodes
from uopc.frontend.core import (
    HALVES,
    Axes,
    DTypeLike,
    all_axes,
    bad,
    in_single,
    one_axis,
    type_name,
    wrap,
)
from uopc.frontend.elementwise import limits_of, where
from uopc.frontend.extents import count_of, is_symbolic
from uopc.frontend.graph import Node, apply
from uopc.frontend.promotion import float_type, sum_type

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def _reduced(kind: str, x: Node, axis: Axes, keepdim: bool) -> Tensor:
    axes = all_axes(axis, len(x.shape))
    result = nodes.reduce(kind, x, axes)
    return wrap(nodes.reshape(result, nodes.kept(x.shape, axes)) if keepdim else result)


def _number(size: int, type_: str) -> Tensor:
    """The value of a symbolic size."""
    return wrap(nodes.constant(size, (), type_))


def _count(x: Tensor, axis: Axes) -> int:
    return count_of([x.shape[a] for a in all_axes(axis, x.ndim)])


def sum(
    x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None
) -> Tensor:
    """The sum, in the type of promotion.py's table or in `dtype`."""
    type_ = type_name(dtype) if dtype is not None else sum_type(x.node.type)
    return _reduced("add", nodes.cast(x.node, type_), axis, keepdim)


def prod(
    x: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None
) -> Tensor:
    """The product, in the type of promotion.py's table or in `dtype`."""
    type_ = type_name(dtype) if dtype is not None else sum_type(x.node.type)
    return _reduced("mul", nodes.cast(x.node, type_), axis, keepdim)


def _nonempty(x: Tensor, axis: Axes, what: str) -> None:
    for a in all_axes(axis, x.ndim):
        if x.shape[a] == 0:
            raise bad(
                "empty-reduction",
                f"{what} over axis {a}, which has no elements, is not defined",
                "give it at least one element, or use where and a value of your choice",
            )


def max(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The largest; NaN if there is one. Raises UopcError [empty-reduction] over no elements."""
    _nonempty(x, axis, "max")
    return _reduced("max", x.node, axis, keepdim)


def min(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The smallest; NaN if there is one. Raises UopcError [empty-reduction] over no elements."""
    _nonempty(x, axis, "min")
    return _reduced("min", x.node, axis, keepdim)


def any(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether one element is not zero."""
    return _reduced("or", x.cast("i1").node, axis, keepdim)


def all(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Whether no element is zero."""
    return _reduced("and", x.cast("i1").node, axis, keepdim)


def mean(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The mean, in floats; NaN over no elements."""
    type_ = float_type(x.node.type)
    count = _count(x, axis)
    # Halves are added up in f32 anyway; dividing there too avoids an overflow of the sum.
    wide = "f32" if type_ in HALVES else type_
    total = sum(x.cast(wide), axis, keepdim)
    if is_symbolic(count):
        return (total / _number(count, wide)).cast(type_)
    scaled = total * (1.0 / count) if count & (count - 1) == 0 and count else total / float(count)
    return scaled.cast(type_)


@in_single
def var(x: Tensor, axis: Axes = None, keepdim: bool = False, correction: int = 0) -> Tensor:
    """The mean squared deviation, over n - correction; 0 is numpy's, 1 is torch's habit."""
    centred = x - mean(x, axis, keepdim=True)
    count = _count(x, axis) - correction
    total = sum(centred * centred, axis, keepdim)
    if is_symbolic(count):
        return total / _number(count, total.element).maximum(0)
    return total * (1.0 / count) if count > 0 else total / float(builtin_max(count, 0))


def builtin_max(a: int, b: int) -> int:
    """The larger of two ints."""
    return a if a > b else b


@in_single
def std(x: Tensor, axis: Axes = None, keepdim: bool = False, correction: int = 0) -> Tensor:
    """The root of `var`."""
    return var(x, axis, keepdim, correction).sqrt()


@in_single
def norm(x: Tensor, p: float = 2.0, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The p-norm: (sum |x|^p)^(1/p); the largest magnitude for p = inf."""
    if p == math.inf:
        return max(x.abs(), axis, keepdim)
    if p == 2.0:
        return sum(x * x, axis, keepdim).sqrt()
    if p == 1.0:
        return sum(x.abs(), axis, keepdim)
    return sum(x.abs() ** p, axis, keepdim) ** (1.0 / p)


def count_nonzero(x: Tensor, axis: Axes = None) -> Tensor:
    """How many elements are not zero."""
    return sum(x.cast("i1"), axis)


def _arg(kind: str, x: Tensor, axis: int | None, keepdim: bool) -> Tensor:
    flat = x.flatten() if axis is None else x
    at = 0 if axis is None else one_axis(axis, x.ndim)
    _nonempty(flat, at, f"arg{kind}")
    positions = wrap(apply("argreduce", (flat.node,), (kind, at, "i32")))
    if not keepdim:
        return positions
    shape = (1,) * x.ndim if axis is None else nodes.kept(x.shape, (at,))
    return positions.reshape(shape)


def argmax(x: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """The position of the first largest element, or of the first NaN; of the flat tensor without
    an axis."""
    return _arg("max", x, axis, keepdim)


def argmin(x: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """The position of the first smallest element, or of the first NaN."""
    return _arg("min", x, axis, keepdim)


# -- softmax and what goes with it -----------------------------------------------------------------


def _top(x: Tensor, axis: Axes) -> Tensor:
    """The largest, to be taken away before exp; it changes no result, so no gradient flows."""
    return wrap(nodes.detach(_reduced("max", x.node, axis, True).node))


def _as_float(x: Tensor) -> Tensor:
    return x.cast(float_type(x.node.type))


@in_single
def logsumexp(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))), without overflow."""
    x = _as_float(x)
    top = _top(x, axis)
    # An infinite top would make infinity minus infinity.
    safe = where(top.isfinite(), top, 0.0)
    total = sum((x - safe).exp(), axis, True).log() + safe
    if keepdim:
        return total
    axes = all_axes(axis, x.ndim)
    return total.reshape(tuple(n for k, n in enumerate(x.shape) if k not in axes))


@in_single
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) times 1 / sum(exp(x)): one division a row. A row of nothing but -inf is NaN, and so is
    its gradient; other rows are untouched (see scaled_dot_product_attention, where such a row is
    0)."""
    if x.ndim == 0:
        return x.reshape(1).softmax(0).reshape(())
    x = _as_float(x)
    e = (x - _top(x, axis)).exp()
    return e * sum(e, axis, True).reciprocal()


@in_single
def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """log(softmax(x)), without loss of digits."""
    if x.ndim == 0:
        return x.reshape(1).log_softmax(0).reshape(())
    x = _as_float(x)
    centred = x - _top(x, axis)
    return centred - sum(centred.exp(), axis, True).log()


def softmin(x: Tensor, axis: int = -1) -> Tensor:
    """softmax(-x)."""
    return softmax(-x, axis)


# -- running totals --------------------------------------------------------------------------------


def running(kind: str, x: Tensor, axis: int) -> Tensor:
    """Element i combines elements 0 to i: by doubling, log2(n) steps of n operations each."""
    if x.ndim == 0:
        return x
    at = one_axis(axis, x.ndim)
    low_limit, high_limit = limits_of(x.node.type)
    identity = {"add": 0, "mul": 1, "max": low_limit, "min": high_limit}[kind]
    node = x.node
    distance, size = 1, x.shape[at]
    text = number_text(identity)
    while distance < size:
        low = tuple(distance if k == at else 0 for k in range(x.ndim))
        ends = tuple(n - distance if k == at else n for k, n in enumerate(x.shape))
        kept = nodes.shrink(node, (0,) * x.ndim, ends)
        shifted = nodes.pad(kept, low, (0,) * x.ndim, text)
        # Each step in a buffer: written out into the next it would double the work each time.
        node = apply("stage", (nodes.binary(kind, node, shifted),), ("contiguous",))
        distance *= 2
    return wrap(node)


def cumsum(x: Tensor, axis: int = 0) -> Tensor:
    """Running sums along an axis, in the type of sums."""
    return running("add", x.cast(sum_type(x.node.type)), axis)


def cumprod(x: Tensor, axis: int = 0) -> Tensor:
    """Running products along an axis, in the type of sums."""
    return running("mul", x.cast(sum_type(x.node.type)), axis)


def cummax(x: Tensor, axis: int = 0) -> Tensor:
    """The largest so far along an axis; NaN from the first NaN on."""
    return running("max", x, axis)


def cummin(x: Tensor, axis: int = 0) -> Tensor:
    """The smallest so far along an axis; NaN from the first NaN on."""
    return running("min", x, axis)


@in_single
def logcumsumexp(x: Tensor, axis: int = 0) -> Tensor:
    """log(cumsum(exp(x))), held against the largest of the axis."""
    if x.ndim == 0:
        return _as_float(x)
    x = _as_float(x)
    top = _top(x, axis)
    safe = where(top.isfinite(), top, 0.0)
    return cumsum((x - safe).exp(), axis).log() + safe
