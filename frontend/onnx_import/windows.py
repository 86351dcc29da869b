"""Convolutions and pooling, images resized."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from uopc.frontend import nodes
from uopc.frontend.core import wrap
from uopc.frontend.elementwise import limits_of
from uopc.frontend.graph import apply
from uopc.frontend.onnx_import.call import Call, Result, Rules
from uopc.frontend.onnx_import.elementwise import number
from uopc.frontend.windows import conv
from uopc.frontend.windows import windows as windows_of

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

Pairs = list[tuple[int, int]]


class Window:
    """What a convolution or pooling says of its windows over the spatial axes."""

    def __init__(self, c: Call, sizes: Sequence[int], kernel: Sequence[int]) -> None:
        count = len(sizes)
        self.kernel = tuple(kernel)
        self.strides = tuple(c.integers("strides") or [1] * count)
        self.dilations = tuple(c.integers("dilations") or [1] * count)
        if {len(self.kernel), len(self.strides), len(self.dilations)} != {count}:
            raise c.invalid(f"has a window of {list(self.kernel)} over {count} axes")
        if min((*self.kernel, *self.strides, *self.dilations), default=1) < 1:
            raise c.invalid("has sizes, strides or dilations below 1")
        self.spans = tuple((k - 1) * d + 1 for k, d in zip(kernel, self.dilations, strict=True))
        self.pads = self._pads(c, sizes)
        self.ceil = c.flag("ceil_mode")

    def _pads(self, c: Call, sizes: Sequence[int]) -> Pairs:
        count, mode = len(sizes), c.word("auto_pad", "NOTSET")
        if mode in ("NOTSET", ""):
            given = c.integers("pads") or [0] * (2 * count)
            if len(given) != 2 * count or min(given, default=0) < 0:
                raise c.invalid(f"has pads {given} for {count} axes")
            return list(zip(given[:count], given[count:], strict=True))
        if mode == "VALID":
            return [(0, 0)] * count
        if mode not in ("SAME_UPPER", "SAME_LOWER"):
            raise c.invalid(f"has auto_pad '{mode}'")
        pairs: Pairs = []
        for n, span, step in zip(sizes, self.spans, self.strides, strict=True):
            total = max(0, (-(-n // step) - 1) * step + span - n)
            less, more = total // 2, total - total // 2
            pairs.append((less, more) if mode == "SAME_UPPER" else (more, less))
        return pairs

    def overhang(self, sizes: Sequence[int]) -> list[int]:
        """How far beyond the padding windows reach where their count is rounded up."""
        if not self.ceil:
            return [0] * len(sizes)
        found: list[int] = []
        for n, (low, high), span, step in zip(
            sizes, self.pads, self.spans, self.strides, strict=True
        ):
            count = -(-(n + low + high - span) // step) + 1
            if (count - 1) * step >= n + low:  # a window that starts in the padding is none
                count -= 1
            found.append(max(0, (count - 1) * step + span - (n + low + high)))
        return found

    def cut(self, x: Tensor, fill: float | int, outer: bool = True) -> Tensor:
        """The windows of x: positions, then places in the window, after the first two axes."""
        sizes = x.shape[2:]
        more = self.overhang(sizes)
        pairs = [
            (low, high + m) if outer else (0, m)
            for (low, high), m in zip(self.pads, more, strict=True)
        ]
        padded = x.pad([(0, 0), (0, 0), *pairs], value=fill)
        return windows_of(padded, self.kernel, self.strides, self.dilations)


def _kernel(c: Call) -> list[int]:
    kernel = c.integers("kernel_shape")
    if kernel is None:
        raise c.invalid("lacks kernel_shape")
    return kernel


def convolution(c: Call, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """The convolution that a node describes; halves are multiplied and summed in f32."""
    if x.ndim != w.ndim or x.ndim < 3:
        raise c.invalid(f"has an image of rank {x.ndim} and a kernel of rank {w.ndim}")
    window = Window(c, x.shape[2:], c.integers("kernel_shape") or w.shape[2:])
    if window.kernel != w.shape[2:]:
        raise c.invalid(f"has kernel_shape {list(window.kernel)} for weights {list(w.shape)}")
    half = x.element in ("f16", "bf16")
    wide = [v.cast("f32") if half and v is not None else v for v in (x, w, bias)]
    image, weight, shift = wide
    assert image is not None and weight is not None
    padded = image.pad([(0, 0), (0, 0), *window.pads])
    groups = c.integer("group", 1)
    y = conv(padded, weight, shift, window.strides, 0, window.dilations, groups)
    return y.cast(x.element)


def _conv(c: Call) -> Result:
    return convolution(c, c[0], c[1], c.get(2))


def _conv_integer(c: Call) -> Result:
    x, w = (c[k].cast("i32") for k in range(2))
    x = x - c[2].cast("i32") if c.get(2) is not None else x
    if c.get(3) is not None:
        w = w - c[3].cast("i32").reshape((-1, *[1] * (w.ndim - 1)))
    return convolution(c, x, w, None)


def _qlinear_conv(c: Call) -> Result:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (c[k] for k in range(8))
    ones = [1] * (w.ndim - 1)
    kernel = w.cast("i32") - w_zero.cast("i32").reshape((-1, *ones))
    y = convolution(c, x.cast("i32") - x_zero.cast("i32"), kernel, c.get(8))
    scale = x_scale * w_scale.reshape((-1, *[1] * (w.ndim - 2))) / y_scale
    return ((y.cast("f32") * scale).round() + y_zero.cast("f32")).cast(y_zero.element)


def _conv_transpose(c: Call) -> Result:
    """The image with strides - 1 zeros between its elements, by the turned kernel."""
    x, w, bias = c[0], c[1], c.get(2)
    count, groups = x.ndim - 2, c.integer("group", 1)
    if x.ndim != w.ndim or count < 1 or groups < 1 or w.shape[0] % groups:
        raise c.invalid(f"has an image of {list(x.shape)}, a kernel of {list(w.shape)}")
    kernel = w.shape[2:]
    strides = c.integers("strides") or [1] * count
    dilations = c.integers("dilations") or [1] * count
    extra = c.integers("output_padding") or [0] * count
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    whole = [
        (n - 1) * s + span + e
        for n, s, span, e in zip(x.shape[2:], strides, spans, extra, strict=True)
    ]
    pads = _transposed_pads(c, x.shape[2:], whole, strides)
    inner, outer = w.shape[0] // groups, w.shape[1]
    turned = w.flip(tuple(range(2, 2 + count))).reshape((groups, inner, outer, *kernel))
    turned = turned.permute((0, 2, 1, *range(3, 3 + count)))
    turned = turned.reshape((groups * outer, inner, *kernel))
    apart = wrap(nodes.dilated(x.node, [1, 1, *strides]))
    around = [
        (span - 1 - low, span - 1 - high + e)
        for span, (low, high), e in zip(spans, pads, extra, strict=True)
    ]
    wide = apart.pad([(0, 0), (0, 0), *around])
    return conv(wide, turned, bias, 1, 0, tuple(dilations), groups)


def _transposed_pads(
    c: Call, sizes: Sequence[int], whole: Sequence[int], strides: Sequence[int]
) -> Pairs:
    """What is cut off the whole result along each axis."""
    count, mode = len(sizes), c.word("auto_pad", "NOTSET")
    shape = c.integers("output_shape")
    if shape is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        shape = [n * s for n, s in zip(sizes, strides, strict=True)]
    if shape is None:
        given = c.integers("pads") or [0] * (2 * count)
        return list(zip(given[:count], given[count:], strict=True))
    pairs: Pairs = []
    for size, wanted in zip(whole, shape[-count:], strict=True):
        total = size - wanted
        half = total // 2
        pairs.append((half, total - half) if mode == "SAME_UPPER" else (total - half, half))
    return pairs


# Pooling.


def _average_pool(c: Call) -> Result:
    x = c[0]
    window = Window(c, x.shape[2:], _kernel(c))
    axes = tuple(range(-len(window.kernel), 0))
    total = window.cut(x, 0).sum(axes, dtype=x.dtype)
    ones = number(1, x).expand((1, 1, *x.shape[2:]))
    inside = c.flag("count_include_pad")
    if inside:  # the padding counts, what lies beyond it does not
        ones = ones.pad([(0, 0), (0, 0), *window.pads], value=1)
    return total / window.cut(ones, 0, outer=not inside).sum(axes, dtype=x.dtype)


def _max_pool(c: Call) -> Result:
    x = c[0]
    window = Window(c, x.shape[2:], _kernel(c))
    count = len(window.kernel)
    low = limits_of(x.element)[0]
    cut = window.cut(x, low)
    values = cut.max(tuple(range(-count, 0)))
    if not c.wants(1):
        return [values]
    spatial = x.shape[2:]
    flat = cut.reshape((*cut.shape[: 2 + count], math.prod(window.kernel)))
    positions = c.importer.constant(_positions(spatial, bool(c.integer("storage_order", 0))))
    places = window.cut(positions.reshape((1, 1, *spatial)), -1)
    places = places.reshape((*places.shape[: 2 + count], math.prod(window.kernel)))
    # The first place inside that holds the largest.
    here = (flat == values.unsqueeze(-1)) & (places >= number(0, places))
    first = wrap(apply("argreduce", (here.cast("i32").node,), ("max", flat.ndim - 1, "i64")))
    found = places.expand(flat.shape).gather(-1, first.unsqueeze(-1)).squeeze(-1)
    image = np.arange(math.prod(x.shape[:2])).reshape((*x.shape[:2], *[1] * count))
    return [values, found + c.importer.constant(image * math.prod(spatial))]


def _positions(
    sizes: Sequence[int], columns: bool
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    flat = np.arange(math.prod(sizes), dtype=np.int64)
    return flat.reshape(tuple(sizes), order="F" if columns else "C")


def _lp_pool(c: Call) -> Result:
    x, p = c[0], c.integer("p", 2)
    window = Window(c, x.shape[2:], _kernel(c))
    axes = tuple(range(-len(window.kernel), 0))
    powers = x * x if p == 2 else x.abs() ** number(p, x)
    total = window.cut(powers, 0).sum(axes, dtype=x.dtype)
    return total.sqrt() if p == 2 else total ** number(1 / p, x)


def _max_unpool(c: Call) -> Result:
    x, places = c[0], c[1]
    window = Window(c, x.shape[2:], _kernel(c))
    shape = c.known_ints(2)
    small = [
        (n - 1) * s + k - low - high
        for n, s, k, (low, high) in zip(
            x.shape[2:], window.strides, window.kernel, window.pads, strict=True
        )
    ]
    # The positions are those in the shape that was pooled, which may be cut out of a larger one.
    flat = number(0, x).expand((math.prod((*x.shape[:2], *small)),))
    flat = flat.scatter(0, places.reshape((-1,)), x.reshape((-1,)))
    result = flat.reshape((*x.shape[:2], *small))
    if shape is None:
        return result
    return result.pad([(0, n - m) for n, m in zip(shape, result.shape, strict=True)])


def _col2im(c: Call) -> Result:
    """Blocks added up at their places: a scatter along the flat image."""
    x = c[0]
    image, block = c.known_ints(1) or [], c.known_ints(2) or []
    count = len(image)
    strides = c.integers("strides") or [1] * count
    dilations = c.integers("dilations") or [1] * count
    pads = c.integers("pads") or [0] * (2 * count)
    padded = [n + a + b for n, a, b in zip(image, pads[:count], pads[count:], strict=True)]
    spans = [(k - 1) * d + 1 for k, d in zip(block, dilations, strict=True)]
    counts = [(n - s) // t + 1 for n, s, t in zip(padded, spans, strides, strict=True)]
    channels = x.shape[1] // math.prod(block)
    places = np.zeros((*block, *counts), np.int64)
    for axis, n in enumerate(padded):
        shape = [1] * (2 * count)
        shape[axis] = block[axis]
        inside = (np.arange(block[axis]) * dilations[axis]).reshape(shape)
        shape = [1] * (2 * count)
        shape[count + axis] = counts[axis]
        start = (np.arange(counts[axis]) * strides[axis]).reshape(shape)
        places = places * n + inside + start
    lead = x.shape[0] * channels
    values = x.reshape((lead, places.size))
    zero = number(0, x).expand((lead, math.prod(padded)))
    at = c.importer.constant(places.reshape((1, -1))).expand(values.shape)
    whole = zero.scatter(1, at, values, "add").reshape((x.shape[0], channels, *padded))
    cut = [(a, a + n) for a, n in zip(pads[:count], image, strict=True)]
    return whole.shrink([None, None, *cut])


WINDOW_RULES: Rules = {
    "AveragePool": {1: _average_pool},
    "Col2Im": {18: _col2im},
    "Conv": {1: _conv},
    "ConvInteger": {10: _conv_integer},
    "ConvTranspose": {1: _conv_transpose},
    "LpPool": {2: _lp_pool},
    "MaxPool": {1: _max_pool},
    "MaxUnpool": {9: _max_unpool},
    "QLinearConv": {10: _qlinear_conv},
}
