"""Resize and Upsample: each axis by itself, an output element as a sum of a few input elements.

Which elements, and by which weights, is known when the graph is walked: positions and weights are
constants. Formulas: ONNX's specification of Resize.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uopc.frontend.core import one_axis
from uopc.frontend.elementwise import where
from uopc.frontend.onnx_import.arrays import Array
from uopc.frontend.onnx_import.call import Call, Result, Rules
from uopc.frontend.onnx_import.elementwise import number
from uopc.frontend.promotion import is_float

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


@dataclass(frozen=True)
class Axis:
    """How one axis is resized: `region` is the part that tf_crop_and_resize takes, from 0 to 1."""

    size: int
    target: int
    scale: float
    region: tuple[float, float]

    def positions(self, mode: str) -> Array:
        """Where each output element lies in the input. Raises KeyError for another mode."""
        at = np.arange(self.target, dtype=np.float64)
        exact = self.size * self.scale
        half = (at + 0.5) / self.scale - 0.5
        if mode == "half_pixel":
            return half
        if mode == "half_pixel_symmetric":
            return half + self.size / 2 * (1 - self.target / exact)
        if mode == "pytorch_half_pixel":
            return half if self.target > 1 else np.full(1, -0.5)
        if mode == "asymmetric":
            return at / self.scale
        if mode == "align_corners":
            return at * (self.size - 1) / (exact - 1) if exact != 1 else np.zeros(self.target)
        if mode == "tf_crop_and_resize":
            begin, end = self.region
            last = self.size - 1
            if self.target == 1:
                return np.full(1, (begin + end) * last / 2)
            return begin * last + at * (end - begin) * last / (self.target - 1)
        raise KeyError(mode)


def _nearest(at: Array, rounding: str) -> Array:
    if rounding == "floor":
        return np.floor(at)
    if rounding == "ceil":
        return np.ceil(at)
    return np.ceil(at - 0.5) if rounding == "round_prefer_floor" else np.floor(at + 0.5)


def _weight(mode: str, distance: Array, a: float) -> Array:
    """The weight of an element at a distance."""
    x = np.abs(distance)
    if mode == "linear":
        return np.clip(1 - x, 0, 1)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _taps(c: Call, axis: Axis, at: Array, mode: str) -> tuple[Array, Array]:
    """Positions and weights, a row an output element."""
    base = np.floor(at)
    scale = min(axis.scale, 1.0) if c.flag("antialias") else 1.0
    reach = {"linear": 1, "cubic": 2}[mode]
    first = math.floor(-reach / scale) + 1
    offsets = np.arange(first, 2 - first)
    places = base[:, None] + offsets
    weights = _weight(mode, (places - at[:, None]) * scale, c.real("cubic_coeff_a", -0.75))
    if c.flag("exclude_outside"):
        weights = np.where((places < 0) | (places >= axis.size), 0, weights)
    weights = weights / weights.sum(1, keepdims=True)
    return np.clip(places, 0, axis.size - 1).astype(np.int64), weights


def _resized(c: Call, x: Tensor, k: int, axis: Axis, mode: str, at: Array) -> Tensor:
    """One axis of x with another size."""
    shape = tuple(axis.target if j == k else 1 for j in range(x.ndim))
    if mode == "nearest":
        rounding = c.word("nearest_mode", "round_prefer_floor" if c.version > 10 else "floor")
        places = np.clip(_nearest(at, rounding), 0, axis.size - 1).astype(np.int64)
        return x.take(places, k)
    places, weights = _taps(c, axis, at, mode)
    total: Tensor | None = None
    for column in range(places.shape[1]):
        if not weights[:, column].any():
            continue
        weight = c.importer.constant(weights[:, column].astype(np.float32).reshape(shape))
        part = x.take(places[:, column], k) * weight.cast(x.element)
        total = part if total is None else total + part
    assert total is not None
    return total


def _axes_of(c: Call, x: Tensor) -> list[Axis | None]:
    """How each axis is resized, None for those that are not named."""
    given = c.integers("axes")
    places = [one_axis(a, x.ndim) for a in given] if given is not None else list(range(x.ndim))
    scales, sizes = _scales_and_sizes(c)
    roi = None
    if c.version > 10 and c.get(1) is not None and x.element != "i1":
        roi = c.known(1).astype(np.float64).reshape(-1).tolist() or None
    count = len(places)
    if len(scales or sizes or ()) != count:
        raise c.invalid(f"has {len(scales or sizes or ())} scales or sizes for {count} axes")
    old = [x.shape[k] for k in places]
    if sizes is not None:
        sizes, scales = _with_policy(c, sizes, old)
    assert scales is not None
    found: list[Axis | None] = [None] * x.ndim
    for j, k in enumerate(places):
        target = sizes[j] if sizes is not None else math.floor(old[j] * scales[j])
        if target < 1 or not scales[j] > 0 or old[j] < 1:
            raise c.invalid(f"resizes axis {k} of size {old[j]} by {scales[j]}")
        region = (roi[j], roi[j + count]) if roi and len(roi) == 2 * count else (0.0, 1.0)
        found[k] = Axis(old[j], target, scales[j], region)
    return found


def _scales_and_sizes(c: Call) -> tuple[list[float] | None, list[int] | None]:
    place = 1 if c.version < 11 else 2
    given = c.get(place) is not None
    scales = c.known(place).astype(np.float64).reshape(-1).tolist() if given else None
    sizes = c.known_ints(3) if c.version > 10 else None
    return scales or None, sizes or None


def _with_policy(
    c: Call, sizes: Sequence[int], old: Sequence[int]
) -> tuple[list[int], list[float]]:
    scales = [n / max(m, 1) for n, m in zip(sizes, old, strict=True)]
    policy = c.word("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return list(sizes), scales
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(scale * m + 0.5) for m in old], [scale] * len(old)


def _resize(c: Call) -> Result:
    """Axes that keep their size and place are left as they are."""
    x, mode = c[0], c.word("mode", "nearest")
    default = "asymmetric" if c.version < 11 else "half_pixel"
    coordinates = c.word("coordinate_transformation_mode", default)
    if mode not in ("nearest", "linear", "cubic"):
        raise c.invalid(f"has mode '{mode}'")
    return _by_axes(c, x, _axes_of(c, x), mode, coordinates)


def _by_axes(
    c: Call, x: Tensor, axes: Sequence[Axis | None], mode: str, coordinates: str
) -> Tensor:
    wide = x if mode == "nearest" or is_float(x.element) else x.cast("f32")
    outside: Tensor | None = None
    for k, axis in enumerate(axes):
        if axis is None or (axis.scale == 1 and axis.region == (0, 1)):
            continue
        try:
            at = axis.positions(coordinates)
        except KeyError:
            raise c.unsupported(f"with coordinate_transformation_mode '{coordinates}'") from None
        wide = _resized(c, wide, k, axis, mode, at)
        if coordinates == "tf_crop_and_resize":
            beyond = ((at < 0) | (at > axis.size - 1)).reshape(
                tuple(-1 if j == k else 1 for j in range(x.ndim))
            )
            flag = c.importer.constant(beyond)
            outside = flag if outside is None else outside | flag
    if outside is not None:
        wide = where(outside, number(c.real("extrapolation_value", 0.0), wide), wide)
    if wide.element == x.element:
        return wide
    return wide.round().cast(x.element)


def _upsample(c: Call) -> Result:
    x = c[0]
    scales = c.reals("scales") if c.version < 9 else c.known(1).reshape(-1).tolist()
    if scales is None or len(scales) != x.ndim or min(scales, default=1) <= 0:
        raise c.invalid(f"has scales {scales} for rank {x.ndim}")
    axes = [
        Axis(n, math.floor(n * s), float(s), (0.0, 1.0))
        for n, s in zip(x.shape, scales, strict=True)
    ]
    return _by_axes(c, x, axes, c.word("mode", "nearest"), "asymmetric")


RESIZE_RULES: Rules = {
    "Resize": {10: _resize},
    "Upsample": {7: _upsample},
}
