"""Functions of windows that move over the last axes: convolutions, pooling, resizing.

Layouts are torch's: images are (batch, channels, spatial axes…), weights (out, in per group,
spatial axes…), those of transposed convolutions (in, out per group, spatial axes…).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from uopc.frontend import nodes
from uopc.frontend.core import Operand, bad, meet_types, tensor, wrap
from uopc.frontend.elementwise import limits_of

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

Sizes: TypeAlias = "int | Sequence[int]"


def _each(value: Sizes, count: int, what: str, least: int) -> tuple[int, ...]:
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) != count or any(v < least for v in values):
        raise bad("wrong-argument", f"{what} {values}: expected {count} numbers from {least} on")
    return values


def windows(x: Tensor, kernel: Sequence[int], stride: Sizes = 1, dilation: Sizes = 1) -> Tensor:
    """The windows over the last axes: (…, positions, …, kernel, …), by movement ops only."""
    count = len(kernel)
    strides = _each(stride, count, "stride", 1)
    dilations = _each(dilation, count, "dilation", 1)
    lead = x.ndim - count
    for axis, (k, d) in enumerate(zip(kernel, dilations, strict=True)):
        if x.shape[lead + axis] < (k - 1) * d + 1:
            raise bad(
                "wrong-argument",
                f"a window of {(k - 1) * d + 1} does not fit axis {lead + axis} of size "
                f"{x.shape[lead + axis]}",
                "pad the axis",
            )
    node = x.node
    for axis, (k, s, d) in enumerate(zip(kernel, strides, dilations, strict=True)):
        at = lead + 2 * axis  # earlier axes have become two each
        size = node.shape[at]
        head, tail = node.shape[:at], node.shape[at + 1 :]
        out = (size - (k - 1) * d - 1) // s + 1
        # Rows of the axis one after the other, read in rows longer by d: row j starts at j * d.
        rows = -(-k * (size + d) // size)
        node = nodes.expand(
            nodes.reshape(node, (*head, 1, size, *tail)), (*head, rows, size, *tail)
        )
        node = nodes.reshape(node, (*head, rows * size, *tail))
        rank = len(node.shape)
        ends = [k * (size + d) if a == at else n for a, n in enumerate(node.shape)]
        node = nodes.shrink(node, [0] * rank, ends)
        node = nodes.reshape(node, (*head, k, size + d, *tail))
        rank += 1
        ends = [(out - 1) * s + 1 if a == at + 1 else n for a, n in enumerate(node.shape)]
        steps = [s if a == at + 1 else 1 for a in range(rank)]
        node = nodes.shrink(node, [0] * rank, ends, steps)
    order = [
        *range(lead),
        *(lead + 2 * axis + 1 for axis in range(count)),
        *(lead + 2 * axis for axis in range(count)),
    ]
    return wrap(nodes.permute(node, order))


def _padded(x: Tensor, padding: Sizes, count: int, value: float | int = 0) -> Tensor:
    amounts = _each(padding, count, "padding", 0)
    pairs = [*[(0, 0)] * (x.ndim - count), *((p, p) for p in amounts)]
    return x.pad(pairs, value=value)


def conv(
    x: Tensor,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution (cross-correlation) over as many spatial axes as the weight has."""
    w = tensor(weight)
    count = w.ndim - 2
    if count < 1 or x.ndim != count + 2:
        raise bad("wrong-operands", f"a convolution of rank {x.ndim} by a weight of rank {w.ndim}")
    out, per_group = w.shape[:2]
    if groups < 1 or out % groups or x.shape[1] != per_group * groups:
        raise bad(
            "wrong-operands",
            f"{x.shape[1]} channels in {groups} groups by a weight of {out} x {per_group}",
            "channels are groups times the weight's second size, and its first a multiple",
        )
    type_ = meet_types(x, w)
    cut = windows(_padded(x.cast(type_), padding, count), w.shape[2:], stride, dilation)
    batch, places, kernel = x.shape[0], cut.shape[2 : 2 + count], w.shape[2:]
    # (batch, group, out, places…, in, kernel…), summed over the last ones.
    a = cut.reshape((batch, groups, 1, per_group, *places, *kernel))
    order = (0, 1, 2, *range(4, 4 + count), 3, *range(4 + count, 4 + 2 * count))
    a = a.permute(order)
    ones = (1,) * count
    b = w.cast(type_).reshape((1, groups, out // groups, *ones, per_group, *kernel))
    axes = tuple(range(3 + count, 4 + 2 * count))
    result = (a * b).sum(axes, dtype=type_).reshape((batch, out, *places))
    return result if bias is None else result + tensor(bias).reshape((1, -1, *ones))


def conv_transpose(
    x: Tensor,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The transpose of `conv`: what maps a convolution's gradient back to its input."""
    w = tensor(weight)
    count = w.ndim - 2
    if count < 1 or x.ndim != count + 2 or groups < 1 or w.shape[0] % groups:
        raise bad("wrong-operands", f"a convolution of rank {x.ndim} by a weight of rank {w.ndim}")
    strides = _each(stride, count, "stride", 1)
    pads = _each(padding, count, "padding", 0)
    extras = _each(output_padding, count, "output padding", 0)
    dilations = _each(dilation, count, "dilation", 1)
    inner, outer = w.shape[0] // groups, w.shape[1]
    spatial = tuple(range(2, 2 + count))
    turned = w.flip(spatial).reshape((groups, inner, outer, *w.shape[2:]))
    order = (0, 2, 1, *range(3, 3 + count))
    turned = turned.permute(order).reshape((groups * outer, inner, *w.shape[2:]))
    apart = wrap(nodes.dilated(x.node, [1, 1, *strides]))
    around = [
        (d * (k - 1) - p, d * (k - 1) - p + e)
        for k, d, p, e in zip(w.shape[2:], dilations, pads, extras, strict=True)
    ]
    return conv(apart.pad([(0, 0), (0, 0), *around]), turned, bias, 1, 0, dilation, groups)


# -- pooling ---------------------------------------------------------------------------------------


def max_pool(
    x: Tensor, kernel: Sizes = 2, stride: Sizes | None = None, padding: Sizes = 0,
    dilation: Sizes = 1,
) -> Tensor:  # fmt: skip
    """The largest of each window over the last two axes, or over as many as `kernel` has."""
    sizes = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
    low = limits_of(x.element)[0]
    held = _padded(x, padding, len(sizes), low)
    cut = windows(held, sizes, sizes if stride is None else stride, dilation)
    return cut.max(tuple(range(-len(sizes), 0)))


def avg_pool(
    x: Tensor, kernel: Sizes = 2, stride: Sizes | None = None, padding: Sizes = 0,
    count_padding: bool = True,
) -> Tensor:  # fmt: skip
    """The mean of each window; what was padded counts as zeros, or not at all."""
    sizes = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
    steps = sizes if stride is None else stride
    axes = tuple(range(-len(sizes), 0))
    cut = windows(_padded(x, padding, len(sizes)), sizes, steps)
    if count_padding:
        return cut.mean(axes)
    shape = (*[1] * (x.ndim - len(sizes)), *x.shape[-len(sizes) :])
    from uopc.frontend.creation import ones

    counted = windows(_padded(ones(shape), padding, len(sizes)), sizes, steps)
    return cut.sum(axes) / counted.sum(axes)


# -- resizing --------------------------------------------------------------------------------------


def interpolate(
    x: Tensor, size: Sequence[int], mode: str = "nearest", align_corners: bool = False
) -> Tensor:
    """The last axes resized: `nearest`, as torch takes it, or `linear` along each axis."""
    if mode not in ("nearest", "linear", "bilinear", "trilinear"):
        raise bad("wrong-argument", f"there is no mode {mode!r}", "expected nearest or linear")
    import numpy as np

    for axis, target in enumerate(size, x.ndim - len(size)):
        n = x.shape[axis]
        if n == 0 or target < 1:
            raise bad("wrong-argument", f"axis {axis} of size {n} does not become {target}")
        at = np.arange(target, dtype=np.float64)
        if mode == "nearest":
            x = x.take(np.floor(at * n / target).astype(np.int64).clip(0, n - 1), axis)
            continue
        if align_corners:
            position = at * ((n - 1) / (target - 1) if target > 1 else 0.0)
        else:
            position = ((at + 0.5) * n / target - 0.5).clip(0, n - 1)
        low = np.floor(position).astype(np.int64).clip(0, n - 1)
        high = (low + 1).clip(0, n - 1)
        shape = tuple(target if k == axis else 1 for k in range(x.ndim))
        weight = tensor((position - low).astype(np.float32).reshape(shape))
        x = x.take(low, axis).lerp(x.take(high, axis), weight)
    return x
