"""More functions of many elements: those that leave NaN out, middles, spreads, angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from uopc.frontend.core import HALVES, Axes, Operand, bad, in_single, one_axis, tensor
from uopc.frontend.elementwise import where
from uopc.frontend.promotion import float_type

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def std_mean(
    x: Tensor, axis: Axes = None, keepdim: bool = False, correction: int = 0
) -> tuple[Tensor, Tensor]:
    """`std` and `mean`."""
    return x.std(axis, keepdim, correction), x.mean(axis, keepdim)


def var_mean(
    x: Tensor, axis: Axes = None, keepdim: bool = False, correction: int = 0
) -> tuple[Tensor, Tensor]:
    """`var` and `mean`."""
    return x.var(axis, keepdim, correction), x.mean(axis, keepdim)


def aminmax(x: Tensor, axis: Axes = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """`min` and `max`."""
    return x.min(axis, keepdim), x.max(axis, keepdim)


def ptp(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The largest less the smallest."""
    return x.max(axis, keepdim) - x.min(axis, keepdim)


def nansum(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The sum of what is not NaN."""
    return where(x.isnan(), 0, x).sum(axis, keepdim)


def nanmean(x: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """The mean of what is not NaN; NaN where nothing is."""
    x = x.cast(float_type(x.element))
    # Halves are counted in f32, where they do not overflow.
    wide = x.cast("f32") if x.element in HALVES else x
    total = where(wide.isnan(), 0.0, wide).sum(axis, keepdim)
    return (total / (x == x).sum(axis, keepdim)).cast(x.element)


@in_single
def average(x: Tensor, axis: Axes = None, weights: Operand | None = None) -> Tensor:
    """The mean, each element as often as its weight says; weights are along the axis, or in x's
    shape."""
    if weights is None:
        return x.mean(axis)
    w = tensor(weights)
    if w.element in HALVES:
        w = w.cast(x.element)
    if w.ndim == 1 and x.ndim > 1:
        if not isinstance(axis, int):
            raise bad("wrong-argument", "a vector of weights goes with one axis")
        at = one_axis(axis, x.ndim)
        w = w.reshape(tuple(-1 if k == at else 1 for k in range(x.ndim))).expand(x.shape)
    return (x * w).sum(axis) / w.sum(axis)


def median(x: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """The middle one in order, or the mean of the two in the middle, as numpy; in floats."""
    return quantile(x, 0.5, axis, keepdim)


def quantile(x: Tensor, q: float, axis: int | None = None, keepdim: bool = False) -> Tensor:
    """The element at a share q of the order, linear between two; NaN if there is one."""
    if not 0 <= q <= 1:
        raise bad("wrong-argument", f"quantile {q}", "expected a number from 0 to 1")
    flat = x.flatten() if axis is None else x
    at = 0 if axis is None else one_axis(axis, x.ndim)
    size = flat.shape[at]
    if size == 0:
        raise bad("empty-reduction", f"a quantile over axis {at}, which has no elements")
    ordered = flat.cast(float_type(x.element)).sort(at)[0]
    place = q * (size - 1)
    low = math.floor(place)
    high = min(low + 1, size - 1)
    a, b = (ordered[(*[slice(None)] * at, slice(k, k + 1))] for k in (low, high))
    found = a if low == place else a.lerp(b, place - low)
    last = ordered[(*[slice(None)] * at, slice(size - 1, size))]
    found = where(last.isnan(), last, found)  # NaN stands last
    shape = tuple(1 if axis is None or k == at else n for k, n in enumerate(x.shape))
    return found.reshape(shape) if keepdim else found.squeeze(at)


@in_single
def cov(x: Tensor, correction: int = 1) -> Tensor:
    """The covariances of the rows, each a variable."""
    rows = x if x.ndim > 1 else x.unsqueeze(0)
    centred = rows - rows.mean(1, keepdim=True)
    result = centred @ centred.mT / float(rows.shape[1] - correction)
    return result if x.ndim > 1 else result.reshape(())


@in_single
def corrcoef(x: Tensor) -> Tensor:
    """The correlations of the rows, each a variable."""
    c = cov(x if x.ndim > 1 else x.unsqueeze(0))
    d = c.diagonal().sqrt()
    result = c / d.unsqueeze(1) / d.unsqueeze(0)
    return result if x.ndim > 1 else result.reshape(())


@in_single
def cosine_similarity(x: Tensor, other: Operand, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle along an axis: x·other / (|x| |other|), norms held at eps."""
    b = tensor(other)
    first, second = (t.norm(2, axis, keepdim=True).maximum(eps) for t in (x, b))
    return ((x / first) * (b / second)).sum(axis)


def dist(x: Tensor, other: Operand, p: float = 2.0) -> Tensor:
    """The p-norm of the difference."""
    return (x - other).norm(p)
