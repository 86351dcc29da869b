"""Functions of windows that move over the last axes: convolutions, pooling, resizing.

Layouts are torch's: images are (batch, channels, spatial axes…), weights (out, in per group,
spatial axes…), those of transposed convolutions (in, out per group, spatial axes…).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from uopc.frontend import nodes
from uopc.frontend.core import Operand, bad, in_single, meet_types, plain, tensor, wrap
from uopc.frontend.elementwise import limits_of, where
from uopc.frontend.movement import cat
from uopc.frontend.promotion import float_type

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

Sizes: TypeAlias = "int | Sequence[int]"
Padding: TypeAlias = "int | str | Sequence[int] | Sequence[tuple[int, int]]"
"""One number for all ends; one an axis; a pair (before, after) an axis; or torch's flat list, from
the last axis on: (before, after, before, after, …). For convolutions also `same` and `valid`."""


def _each(value: Sizes, count: int, what: str, least: int) -> tuple[int, ...]:
    value = plain(value)
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


def padding_pairs(padding: Padding, count: int) -> list[tuple[int, int]]:
    """What is added before and after each of the last axes. Raises UopcError [wrong-argument]."""
    if isinstance(padding, str):
        raise bad("wrong-argument", f"padding {padding!r}", "same and valid are for convolutions")
    padding = plain(padding)
    if isinstance(padding, int):
        return [(padding, padding)] * count
    given = list(padding)
    if all(isinstance(p, int) for p in given):
        numbers = cast(list[int], given)
        if len(numbers) == count:
            return [(p, p) for p in numbers]
        if len(numbers) == 2 * count:
            flat = list(zip(numbers[::2], numbers[1::2], strict=True))
            return flat[::-1]
    elif len(given) == count:
        return [(int(a), int(b)) for a, b in cast(list[tuple[int, int]], given)]
    raise bad(
        "wrong-argument",
        f"padding {str(given)[:60]} of {count} axes",
        f"expected one number, {count} of them, {count} pairs, or {2 * count} numbers",
    )


def _padded(x: Tensor, pairs: Sequence[tuple[int, int]], value: float | int = 0) -> Tensor:
    return x.pad([*[(0, 0)] * (x.ndim - len(pairs)), *pairs], value=value)


def _conv_pairs(
    padding: Padding, stride: Sizes, dilation: Sizes, kernel: Sequence[int]
) -> list[tuple[int, int]]:
    count = len(kernel)
    if padding == "valid":
        return [(0, 0)] * count
    if padding != "same":
        return padding_pairs(padding, count)
    if any(s != 1 for s in _each(stride, count, "stride", 1)):
        raise bad("wrong-argument", "padding 'same' goes with a stride of 1")
    totals = [
        d * (k - 1) for k, d in zip(kernel, _each(dilation, count, "dilation", 1), strict=True)
    ]
    return [(t // 2, t - t // 2) for t in totals]


def conv(
    x: Tensor,
    weight: Operand,
    bias: Operand | None = None,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution (cross-correlation) over as many spatial axes as the weight has. `padding` is
    as for pools, or `same` (the result as large as x) or `valid` (none)."""
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
    pairs = _conv_pairs(padding, stride, dilation, w.shape[2:])
    cut = windows(_padded(x.cast(type_), pairs), w.shape[2:], stride, dilation)
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


def _pooled(
    x: Tensor, kernel: Sizes, stride: Sizes | None, padding: Padding, dilation: Sizes,
    ceil_mode: bool,
) -> tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, int]], list[int]]:  # fmt: skip
    """Kernel, stride, padding, and how much more at the ends so that the last window fits."""
    kernel = plain(kernel)
    sizes = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
    count = len(sizes)
    steps = sizes if stride is None else _each(stride, count, "stride", 1)
    pairs, extra = padding_pairs(padding, count), [0] * count
    dilations = _each(dilation, count, "dilation", 1)
    if x.ndim < count:
        raise bad("wrong-operands", f"a pool over {count} axes of a tensor of rank {x.ndim}")
    for k, n in enumerate(x.shape[x.ndim - count :] if ceil_mode else ()):
        (low, high), step = pairs[k], steps[k]
        over = n + low + high - dilations[k] * (sizes[k] - 1) - 1
        last = -(-over // step) * step
        # A window that would begin in the padding at the end is left out, as in torch.
        extra[k] = last - over if last < n + low else 0
    return sizes, steps, pairs, extra


def _with_extra(pairs: list[tuple[int, int]], extra: list[int]) -> list[tuple[int, int]]:
    return [(low, high + e) for (low, high), e in zip(pairs, extra, strict=True)]


def max_pool(
    x: Tensor, kernel: Sizes = 2, stride: Sizes | None = None, padding: Padding = 0,
    dilation: Sizes = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The largest of each window over the last two axes, or over as many as `kernel` has. With
    `ceil_mode` a last window may reach beyond the end."""
    sizes, steps, pairs, extra = _pooled(x, kernel, stride, padding, dilation, ceil_mode)
    held = _padded(x, _with_extra(pairs, extra), limits_of(x.element)[0])
    cut = windows(held, sizes, steps, dilation)
    return cut.max(tuple(range(-len(sizes), 0)))


def max_pool_with_indices(
    x: Tensor, kernel: Sizes = 2, stride: Sizes | None = None, padding: Padding = 0,
    dilation: Sizes = 1, ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`max_pool`, and where in the flattened last axes each largest element stands (the first)."""
    sizes, steps, pairs, extra = _pooled(x, kernel, stride, padding, dilation, ceil_mode)
    count = len(sizes)
    around = _with_extra(pairs, extra)
    values = windows(_padded(x, around, limits_of(x.element)[0]), sizes, steps, dilation)
    spatial = x.shape[x.ndim - count :]
    places = wrap(nodes.BUILDER.iota(0, (math.prod(spatial),), "i32")).reshape(spatial)
    cut = windows(_padded(places, around, -1), sizes, steps, dilation)
    flat = values.flatten(-count)
    # What is padded is chosen by no window that has an element of x.
    seen = cut.flatten(-count).expand(flat.shape)
    held = where(seen >= 0, flat, limits_of(x.element)[0])
    best = held.argmax(-1, keepdim=True)
    return held.max(-1), seen.gather(-1, best).squeeze(-1)


def max_unpool(
    x: Tensor, indices: Tensor, kernel: Sizes = 2, stride: Sizes | None = None,
    output_size: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """Elements back at the places that `max_pool_with_indices` told, zeros elsewhere."""
    kernel = plain(kernel)
    sizes = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
    count = len(sizes)
    steps = sizes if stride is None else _each(stride, count, "stride", 1)
    spatial = (
        tuple((n - 1) * s + k for n, s, k in zip(x.shape[-count:], steps, sizes, strict=True))
        if output_size is None
        else tuple(output_size)[-count:]
    )
    lead = x.shape[: x.ndim - count]
    empty = (x * 0).flatten()[:1].expand((*lead, math.prod(spatial)))
    placed = empty.scatter(-1, indices.flatten(-count), x.flatten(-count))
    return placed.reshape((*lead, *spatial))


@in_single
def avg_pool(
    x: Tensor, kernel: Sizes = 2, stride: Sizes | None = None, padding: Padding = 0,
    count_padding: bool = True, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The mean of each window; what was padded counts as zeros, or not at all. What `ceil_mode`
    reaches beyond the padding never counts."""
    sizes, steps, pairs, extra = _pooled(x, kernel, stride, padding, 1, ceil_mode)
    axes = tuple(range(-len(sizes), 0))
    cut = windows(_padded(x, _with_extra(pairs, extra)), sizes, steps)
    if count_padding and not any(extra):
        return cut.mean(axes)
    from uopc.frontend.creation import ones

    shape = (*[1] * (x.ndim - len(sizes)), *x.shape[x.ndim - len(sizes) :])
    counted = _padded(ones(shape), pairs, 1 if count_padding else 0)
    counts = windows(_padded(counted, [(0, e) for e in extra]), sizes, steps).sum(axes)
    return (cut.sum(axes) / counts).cast(float_type(x.element))


def _adaptive(x: Tensor, size: Sizes, reduce: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Each of the last axes cut into so many parts, as even as can be, that may overlap."""
    size = plain(size)
    sizes = (size, size) if isinstance(size, int) else tuple(size)
    for axis, target in zip(range(x.ndim - len(sizes), x.ndim), sizes, strict=True):
        n = x.shape[axis]
        if target < 1 or n == 0:
            raise bad("wrong-argument", f"axis {axis} of size {n} does not become {target}")
        parts = [
            x[(*[slice(None)] * axis, slice(k * n // target, -(-(k + 1) * n // target)))]
            for k in range(target)
        ]
        x = cat([reduce(part, axis) for part in parts], axis)
    return x


def adaptive_avg_pool(x: Tensor, size: Sizes) -> Tensor:
    """Means over the last axes, so that these become a size."""
    return _adaptive(x, size, lambda part, axis: part.mean(axis, keepdim=True))


def adaptive_max_pool(x: Tensor, size: Sizes) -> Tensor:
    """The largest over the last axes, so that these become a size."""
    return _adaptive(x, size, lambda part, axis: part.max(axis, keepdim=True))


# -- resizing --------------------------------------------------------------------------------------


def interpolate(
    x: Tensor, size: Sequence[int], mode: str = "nearest", align_corners: bool = False
) -> Tensor:
    """The last axes resized: `nearest` as torch takes it, `nearest-exact` from the middle of each
    element, `linear` along each axis, or `area`, the mean of what falls together."""
    if mode == "area":
        return adaptive_avg_pool(x, tuple(size))
    if mode not in ("nearest", "nearest-exact", "linear", "bilinear", "trilinear"):
        message = "expected nearest, nearest-exact, linear or area"
        raise bad("wrong-argument", f"there is no mode {mode!r}", message)
    import numpy as np

    for axis, target in enumerate(size, x.ndim - len(size)):
        n = x.shape[axis]
        if n == 0 or target < 1:
            raise bad("wrong-argument", f"axis {axis} of size {n} does not become {target}")
        at = np.arange(target, dtype=np.float64)
        if mode.startswith("nearest"):
            at += 0.5 if mode == "nearest-exact" else 0.0
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
