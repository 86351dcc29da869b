"""StableHLO's ops on windows and indices as its specification defines them, element by element.

Slow and plain: what tests/conformance/test_families.py compares with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Combine = Callable[[Any, Any], Any]
Pairs = Sequence[tuple[int, int]]


def places(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return product(*map(range, shape))


def padded(x: Array, value: Any, low: Sequence[int], high: Sequence[int], interior: Sequence[int]):
    """pad: an element stands at low + position * (interior + 1), if that is inside."""
    sizes = [
        before + after + (n + (n - 1) * gap if n else 0)
        for n, before, after, gap in zip(x.shape, low, high, interior, strict=True)
    ]
    result = np.full(sizes, value, x.dtype)
    for at in places(x.shape):
        to = tuple(b + k * (g + 1) for b, k, g in zip(low, at, interior, strict=True))
        if all(0 <= k < n for k, n in zip(to, sizes, strict=True)):
            result[to] = x[at]
    return result


def window_count(n: int, window: int, stride: int, dilation: int) -> int:
    reach = (window - 1) * dilation + 1
    return (n - reach) // stride + 1 if n >= reach else 0


def reduce_window(
    x: Array,
    start: Any,
    combine: Combine,
    window: Sequence[int],
    strides: Sequence[int],
    base: Sequence[int],
    dilations: Sequence[int],
    padding: Pairs,
) -> Array:
    low, high = zip(*padding, strict=True)
    whole = padded(x, start, low, high, [d - 1 for d in base])
    shape = list(map(window_count, whole.shape, window, strides, dilations))
    result = np.full(shape, start, x.dtype)
    for at in places(shape):
        for inside in places(window):
            read = tuple(
                a * s + w * d for a, s, w, d in zip(at, strides, inside, dilations, strict=True)
            )
            result[at] = combine(result[at], whole[read])
    return result


def select_and_scatter(
    x: Array,
    source: Array,
    start: Any,
    select: Combine,
    scatter: Combine,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Pairs,
) -> Array:
    """The padding is never chosen."""
    result = np.full(x.shape, start, x.dtype)
    for at in places(source.shape):
        chosen: tuple[int, ...] | None = None
        for inside in places(window):
            k = tuple(
                a * s + w - low
                for a, s, w, (low, _) in zip(at, strides, inside, padding, strict=True)
            )
            if all(0 <= i < n for i, n in zip(k, x.shape, strict=True)) and (
                chosen is None or not select(x[chosen], x[k])
            ):
                chosen = k
        assert chosen is not None
        result[chosen] = scatter(result[chosen], source[at])
    return result


def convolution(
    x: Array,
    kernel: Array,
    strides: Sequence[int],
    padding: Pairs,
    lhs: Sequence[int],
    rhs: Sequence[int],
    reversal: Sequence[bool],
    feature_groups: int,
    batch_groups: int,
) -> Array:
    """Of batch, feature, places…; the kernel is output, input, places…; so is the result."""
    rank = x.ndim - 2
    low, high = zip(*padding, strict=True)
    x = padded(x, 0, [0, 0, *low], [0, 0, *high], [0, 0, *(d - 1 for d in lhs)])
    kernel = kernel[(..., *(slice(None, None, -1 if r else 1) for r in reversal))]
    shape = list(map(window_count, x.shape[2:], kernel.shape[2:], strides, rhs))
    outputs, inputs = kernel.shape[:2]
    batch = x.shape[0] // batch_groups
    result = np.zeros((batch, outputs, *shape), x.dtype)
    groups = feature_groups * batch_groups
    for n, o in places((batch, outputs)):
        group = o // (outputs // groups)
        first = group * inputs if feature_groups > 1 else 0
        row = n + (group * batch if batch_groups > 1 else 0)
        for at in places(shape):
            for inside in places(kernel.shape[2:]):
                read = tuple(at[k] * strides[k] + inside[k] * rhs[k] for k in range(rank))
                for c in range(inputs):
                    weight = kernel[(o, c, *inside)]
                    result[(n, o, *at)] += x[(row, first + c, *read)] * weight
    return result


def full_index(
    indices: Array,
    batch: tuple[int, ...],
    vector_dim: int,
    index_map: Sequence[int],
    operand_batching: Sequence[int],
    index_batching: Sequence[int],
    rank: int,
) -> list[int]:
    """Where a slice starts in the operand."""
    start = [0] * rank
    for k, axis in enumerate(index_map):
        at = list(batch)
        if vector_dim < indices.ndim:
            at.insert(vector_dim, k)
        start[axis] = int(indices[tuple(at)])
    for axis, from_axis in zip(operand_batching, index_batching, strict=True):
        start[axis] = batch[from_axis - (vector_dim < from_axis)]
    return start


def gather(
    x: Array,
    indices: Array,
    offset_dims: Sequence[int],
    collapsed: Sequence[int],
    operand_batching: Sequence[int],
    index_batching: Sequence[int],
    index_map: Sequence[int],
    vector_dim: int,
    sizes: Sequence[int],
) -> Array:
    """Starts are clamped so that the slice lies inside."""
    batch = [n for k, n in enumerate(indices.shape) if k != vector_dim]
    kept = [k for k in range(x.ndim) if k not in collapsed and k not in operand_batching]
    rank = len(batch) + len(kept)
    batch_dims = [k for k in range(rank) if k not in offset_dims]
    shape = [0] * rank
    for k, n in (*zip(batch_dims, batch, strict=True),):
        shape[k] = n
    for k, axis in zip(offset_dims, kept, strict=True):
        shape[k] = sizes[axis]
    result = np.zeros(shape, x.dtype)
    for at in places(shape):
        row = tuple(at[k] for k in batch_dims)
        start = full_index(
            indices, row, vector_dim, index_map, operand_batching, index_batching, x.ndim
        )
        read = [min(max(s, 0), n - m) for s, n, m in zip(start, x.shape, sizes, strict=True)]
        for k, axis in zip(offset_dims, kept, strict=True):
            read[axis] += at[k]
        result[at] = x[tuple(read)]
    return result


def scatter(
    x: Array,
    indices: Array,
    updates: Array,
    combine: Combine,
    window_dims: Sequence[int],
    inserted: Sequence[int],
    operand_batching: Sequence[int],
    index_batching: Sequence[int],
    index_map: Sequence[int],
    vector_dim: int,
) -> Array:
    """An element whose place is outside is dropped; others in row-major order of the updates."""
    result = x.copy()
    kept = [k for k in range(x.ndim) if k not in inserted and k not in operand_batching]
    batch_dims = [k for k in range(updates.ndim) if k not in window_dims]
    for at in places(updates.shape):
        row = tuple(at[k] for k in batch_dims)
        to = full_index(
            indices, row, vector_dim, index_map, operand_batching, index_batching, x.ndim
        )
        for k, axis in zip(window_dims, kept, strict=True):
            to[axis] += at[k]
        if all(0 <= i < n for i, n in zip(to, x.shape, strict=True)):
            result[tuple(to)] = combine(result[tuple(to)], updates[at])
    return result


def threefry(key: int, counters: Sequence[int]) -> list[int]:
    """Threefry-2x32 of 20 rounds (Salmon and others, 2011), each counter a block of 64 bits."""
    mask = 2**32 - 1
    keys = [key & mask, key >> 32]
    keys.append(keys[0] ^ keys[1] ^ 0x1BD11BDA)
    rotations = ((13, 15, 26, 6), (17, 29, 16, 24))
    results: list[int] = []
    for counter in counters:
        a, b = (counter & mask) + keys[0] & mask, (counter >> 32) + keys[1] & mask
        for group in range(5):
            for r in rotations[group % 2]:
                a = a + b & mask
                b = (b << r | b >> 32 - r) & mask ^ a
            a = a + keys[(group + 1) % 3] & mask
            b = b + keys[(group + 2) % 3] + group + 1 & mask
        results.append(b << 32 | a)
    return results
