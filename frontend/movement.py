"""Shapes: the same elements elsewhere, repeated, cut, padded, joined and split."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from uopc.dialects.tensor_build import number_text
from uopc.frontend import nodes
from uopc.frontend.core import (
    Axes,
    Number,
    Operand,
    all_axes,
    bad,
    broadcast_shapes,
    check_number,
    meet_types,
    one_axis,
    plain,
    shape_of,
    tensor,
    wrap,
)
from uopc.frontend.extents import are_equal, count_of, is_at_least, is_symbolic, settled
from uopc.frontend.graph import Node, Shape, iota

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

PAD_MODES = ("constant", "reflect", "replicate", "circular")


def reshape(x: Tensor, *shape: Any) -> Tensor:
    """The same elements in row-major order in another shape; one size may be -1."""
    sizes = list(shape_of(shape))
    if sizes.count(-1) > 1:
        raise bad("bad-shape", f"shape {sizes} has more than one -1")
    if -1 in sizes:
        rest = count_of([n for n in sizes if n != -1])
        count = count_of(x.shape)
        if not is_at_least(rest, 1) or settled(count % rest) != 0:
            raise bad("bad-shape", f"{count} elements do not fit shape {sizes}")
        sizes[sizes.index(-1)] = settled(count // rest)
    if not all(is_at_least(n, 0) for n in sizes) or not are_equal(
        count_of(sizes), count_of(x.shape)
    ):
        raise bad(
            "bad-shape",
            f"shape {list(x.shape)} of {math.prod(x.shape)} elements cannot become {sizes}",
        )
    return wrap(nodes.reshape(x.node, tuple(sizes)))


def flatten(x: Tensor, start: int = 0, end: int = -1) -> Tensor:
    """Axes start to end, both included, as one."""
    if x.ndim == 0:
        return reshape(x, 1)
    first, last = one_axis(start, x.ndim), one_axis(end, x.ndim)
    middle = count_of(x.shape[first : last + 1])
    return reshape(x, (*x.shape[:first], middle, *x.shape[last + 1 :]))


def unflatten(x: Tensor, axis: int, sizes: Sequence[int]) -> Tensor:
    """One axis as several."""
    at = one_axis(axis, x.ndim)
    known = math.prod(n for n in sizes if n != -1)
    full = tuple(x.shape[at] // known if n == -1 and known else n for n in sizes)
    return reshape(x, (*x.shape[:at], *full, *x.shape[at + 1 :]))


def permute(x: Tensor, *order: Any) -> Tensor:
    """Axes in another order: result axis k is x's axis order[k]."""
    axes = [one_axis(a, x.ndim) for a in shape_of(order)]
    if sorted(axes) != list(range(x.ndim)):
        raise bad("bad-axis", f"{axes} does not name each of {x.ndim} axes once")
    return wrap(nodes.permute(x.node, axes))


def transpose(x: Tensor, first: int | None = None, second: int | None = None) -> Tensor:
    """Two axes exchanged: the last two without arguments. A scalar or vector stays as it is."""
    if first is None and second is None:
        if x.ndim < 2:
            return x
        first, second = -2, -1
    if x.ndim == 0 and first in (0, -1) and second in (0, -1):
        return x
    a, b = one_axis(0 if first is None else first, x.ndim), one_axis(second or 0, x.ndim)
    order = list(range(x.ndim))
    order[a], order[b] = order[b], order[a]
    return wrap(nodes.permute(x.node, order))


def reversed_axes(x: Tensor) -> Tensor:
    """All axes in reverse order, as numpy's `.T`."""
    return wrap(nodes.permute(x.node, tuple(reversed(range(x.ndim)))))


def swapped_last(x: Tensor) -> Tensor:
    """The last two axes exchanged: `.mT`."""
    return transpose(x, -2, -1)


def moveaxis(x: Tensor, source: int, destination: int) -> Tensor:
    """One axis moved to another place, the others in their order."""
    a, b = one_axis(source, x.ndim), one_axis(destination, x.ndim)
    order = [k for k in range(x.ndim) if k != a]
    order.insert(b, a)
    return wrap(nodes.permute(x.node, order))


def expand(x: Tensor, *shape: Any) -> Tensor:
    """Axes of size 1 repeated, and new ones in front; -1 keeps a size."""
    sizes = shape_of(shape)
    padded = (1,) * (len(sizes) - x.ndim) + x.shape
    if len(padded) == len(sizes):
        sizes = tuple(p if n == -1 else n for p, n in zip(padded, sizes, strict=True))
    if len(padded) != len(sizes) or any(
        p not in (1, n) for p, n in zip(padded, sizes, strict=True)
    ):
        raise bad("bad-shape", f"shape {list(x.shape)} does not expand to {list(sizes)}")
    return wrap(nodes.broadcast(x.node, sizes))


def squeeze(x: Tensor, axis: Axes = None) -> Tensor:
    """Without the axes of size 1: all of them, or those named that have it."""
    axes = all_axes(axis, x.ndim)
    return reshape(x, tuple(n for k, n in enumerate(x.shape) if not (k in axes and n == 1)))


def unsqueeze(x: Tensor, axis: int) -> Tensor:
    """With a new axis of size 1 at a place."""
    at = one_axis(axis, x.ndim + 1)
    return reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


def flip(x: Tensor, axis: Axes = None) -> Tensor:
    """The order along some axes, or all, reversed."""
    return wrap(nodes.flip(x.node, all_axes(axis, x.ndim)))


def shrink(x: Tensor, bounds: Sequence[tuple[int, int] | None]) -> Tensor:
    """The part from begin up to, without, end of each axis; None takes all of it."""
    full = [(0, n) if b is None else b for b, n in zip(bounds, x.shape, strict=True)]
    return wrap(nodes.shrink(x.node, [b for b, _ in full], [e for _, e in full]))


# -- padding ---------------------------------------------------------------------------------------


def pad(x: Tensor, padding: Sequence[Any], mode: str = "constant", value: Number = 0) -> Tensor:
    """Elements before and after each axis. `padding` is numpy's, a pair (low, high) an axis, or
    torch's, numbers from the last axis on: (low, high, low, high, …). Negative ones cut.

    Modes: constant (`value`), reflect, replicate (edge), circular (wrap).
    """
    pairs = _pairs(padding, x.ndim)
    if mode not in PAD_MODES:
        raise bad("wrong-argument", f"there is no mode {mode!r}", f"one of {', '.join(PAD_MODES)}")
    low = [builtins_max(a, 0) for a, _ in pairs]
    high = [builtins_max(b, 0) for _, b in pairs]
    begins = [builtins_max(-a, 0) for a, _ in pairs]
    ends = [n - builtins_max(-b, 0) for n, (_, b) in zip(x.shape, pairs, strict=True)]
    if mode == "constant":
        check_number(value, x.node.type)
        # Cut after padding, so that cutting may go beyond what was there.
        node = nodes.pad(x.node, low, high, number_text(value))
        return wrap(
            nodes.shrink(
                node,
                begins,
                [
                    n + a - c
                    for n, a, c in zip(node.shape, begins, _cut(pairs, begins), strict=True)
                ],
            )
        )
    node = nodes.shrink(x.node, begins, ends)
    result = wrap(node)
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        if a or b:
            result = _mirrored(result, axis, a, b, mode)
    return result


def _cut(pairs: Sequence[tuple[int, int]], begins: Sequence[int]) -> list[int]:
    return [builtins_max(-b, 0) + a for (_, b), a in zip(pairs, begins, strict=True)]


def builtins_max(a: int, b: int) -> int:
    """The larger of two ints."""
    return a if a > b else b


def _pairs(padding: Sequence[Any], rank: int) -> list[tuple[int, int]]:
    if any(hasattr(p, "__index__") for p in padding):
        flat = [operator.index(p) for p in padding]
        if len(flat) % 2 or len(flat) > 2 * rank:
            raise bad("wrong-argument", f"{len(flat)} paddings do not fit rank {rank}")
        pairs = [(flat[k], flat[k + 1]) for k in range(0, len(flat), 2)][::-1]
        return [(0, 0)] * (rank - len(pairs)) + pairs
    pairs = [(0, 0) if p is None else (int(p[0]), int(p[1])) for p in padding]
    if len(pairs) != rank:
        raise bad("wrong-argument", f"{len(pairs)} pairs of paddings for rank {rank}")
    return pairs


def _mirrored(x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    size = x.shape[axis]
    longest = {"reflect": size - 1, "circular": size, "replicate": low + high}[mode]
    if builtins_max(low, high) > longest or size == 0:
        raise bad("wrong-argument", f"axis {axis} of size {size} has too few elements for {mode}")

    def part(begin: int, end: int) -> Tensor:
        return shrink(x, [(begin, end) if k == axis else None for k in range(x.ndim)])

    if mode == "reflect":
        before, after = flip(part(1, low + 1), axis), flip(part(size - 1 - high, size - 1), axis)
    elif mode == "circular":
        before, after = part(size - low, size), part(0, high)
    else:
        before = repeat_axis(part(0, 1), axis, low)
        after = repeat_axis(part(size - 1, size), axis, high)
    return cat([before, x, after], axis)


def repeat_axis(x: Tensor, axis: int, count: int) -> Tensor:
    """An axis of size 1 with another size."""
    return expand(x, tuple(count if k == axis else n for k, n in enumerate(x.shape)))


# -- joining and splitting -------------------------------------------------------------------------


def _joined(what: str, first: Any, others: tuple[Any, ...], axis: int) -> tuple[list[Tensor], int]:
    """The tensors and the axis of `cat([a, b], 1)`, `cat(a, b, axis=1)` and `a.cat(b, 1)`."""
    if others and isinstance(others[-1], int):
        others, axis = others[:-1], others[-1]
    if isinstance(first, list | tuple):
        if others:
            raise bad("wrong-argument", f"{what} takes one list of tensors, or tensors")
        given = list(cast("Sequence[Operand]", first))
    else:
        given = [first, *others]
    if not given:
        raise bad("wrong-argument", f"{what} needs at least one tensor")
    return [tensor(t) for t in given], axis


def cat(tensors: Sequence[Operand] | Operand, *others: Operand, axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis: `cat([a, b], 1)` or `a.cat(b, axis=1)`."""
    parts, axis = _joined("cat", tensors, others, axis)
    first = parts[0]
    if first.ndim == 0:
        raise bad("bad-axis", "scalars have no axis to be joined along", "use stack")
    at = one_axis(axis, first.ndim)
    for part in parts:
        same = part.ndim == first.ndim and all(
            a == b or k == at for k, (a, b) in enumerate(zip(part.shape, first.shape, strict=False))
        )
        if not same:
            raise bad(
                "wrong-operands",
                f"cat along axis {at}: shapes {list(first.shape)} and {list(part.shape)} differ "
                "elsewhere",
            )
    type_ = meet_types(*parts)
    total = settled(sum(p.shape[at] for p in parts))
    result = None
    offset = 0
    # Each padded to the whole length and chosen by position: exact for every value.
    for part in parts:
        size = part.shape[at]
        if size == 0 and total != 0:
            continue
        low = tuple(offset if k == at else 0 for k in range(first.ndim))
        rest = settled(total - offset - size)
        high = tuple(rest if k == at else 0 for k in range(first.ndim))
        node = nodes.pad(nodes.cast(part.node, type_), low, high)
        if result is None:
            result = node
        else:
            result = nodes.where(_before(node.shape, at, offset), result, node)
        offset = settled(offset + size)
    assert result is not None
    return wrap(result)


def _before(shape: Shape, axis: int, bound: int) -> Node:
    narrow = tuple(n if k == axis else 1 for k, n in enumerate(shape))
    at = iota(axis, narrow, "i64")
    mask = nodes.binary("cmplt", at, nodes.full_like(bound, at))
    return nodes.expand(mask, shape)


def stack(tensors: Sequence[Operand] | Operand, *others: Operand, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis: `stack([a, b], 1)` or `a.stack(b, axis=1)`."""
    parts, axis = _joined("stack", tensors, others, axis)
    return cat([unsqueeze(p, one_axis(axis, parts[0].ndim + 1)) for p in parts], axis=axis)


def split(x: Tensor, sizes: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Pieces of one size (the last may be smaller), or of the sizes given."""
    at = one_axis(axis, x.ndim)
    total, sizes = x.shape[at], plain(sizes)
    if isinstance(sizes, int):
        if sizes < 1:
            raise bad("wrong-argument", f"pieces of size {sizes}: expected at least 1")
        lengths = [builtins_min(sizes, total - k) for k in range(0, total, sizes)] or [0]
    else:
        lengths = list(sizes)
        if not are_equal(sum(lengths), total):
            raise bad("wrong-argument", f"pieces {lengths} do not add up to {total}")
    found: list[Tensor] = []
    begin = 0
    for length in lengths:
        bounds = [(begin, begin + length) if k == at else None for k in range(x.ndim)]
        found.append(shrink(x, bounds))
        begin += length
    return found


def builtins_min(a: int, b: int) -> int:
    """The smaller of two ints."""
    return a if a < b else b


def chunk(x: Tensor, count: int, axis: int = 0) -> list[Tensor]:
    """At most `count` pieces of equal size; the last may be smaller."""
    at = one_axis(axis, x.ndim)
    if count < 1:
        raise bad("wrong-argument", f"{count} pieces: expected at least 1")
    size = x.shape[at]
    if is_symbolic(size):
        part = settled(size // count)
        if not are_equal(part * count, size):
            raise bad(
                "wrong-argument",
                f"{count} equal pieces of an axis of size {size}",
                f"where it is symbolic it must be a multiple, as n * {count}",
            )
        return split(x, [part] * count, at)
    return split(x, builtins_max(-(-size // count), 1), at)


def unbind(x: Tensor, axis: int = 0) -> list[Tensor]:
    """The parts along an axis, without it."""
    at = one_axis(axis, x.ndim)
    return [squeeze(part, at) for part in split(x, 1, at)][: x.shape[at]]


# -- repeating -------------------------------------------------------------------------------------


def tile(x: Tensor, *counts: Any) -> Tensor:
    """The whole tensor repeated along each axis."""
    times = shape_of(counts)
    rank = builtins_max(len(times), x.ndim)
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - x.ndim) + x.shape
    doubled = reshape(x, tuple(n for size in shape for n in (1, size)))
    wide = expand(doubled, tuple(n for c, s in zip(times, shape, strict=True) for n in (c, s)))
    return reshape(wide, tuple(c * s for c, s in zip(times, shape, strict=True)))


def repeat_interleave(x: Tensor, repeats: int, axis: int | None = None) -> Tensor:
    """Each element several times in a row; of the flat tensor without an axis."""
    x = flatten(x) if axis is None else x
    at = 0 if axis is None else one_axis(axis, x.ndim)
    wide = unsqueeze(x, at + 1)
    wide = expand(wide, (*x.shape[: at + 1], repeats, *x.shape[at + 1 :]))
    return reshape(wide, tuple(n * repeats if k == at else n for k, n in enumerate(x.shape)))


def roll(x: Tensor, shifts: int | Sequence[int], axis: Axes = None) -> Tensor:
    """Elements moved along axes, those that leave at one end coming in at the other."""
    shifts, axis = plain(shifts), plain(axis)
    if axis is None:
        if not isinstance(shifts, int):
            raise bad("wrong-argument", "several shifts need as many axes")
        return reshape(roll(flatten(x), shifts, 0), x.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    amounts = [shifts] * len(axes) if isinstance(shifts, int) else list(shifts)
    for shift, each in zip(amounts, axes, strict=True):
        at = one_axis(each, x.ndim)
        size = x.shape[at]
        if size == 0 or (cut := -shift % size) == 0:
            continue
        head, tail = split(x, [cut, size - cut], at)
        x = cat([tail, head], at)
    return x


def broadcast_to(x: Tensor, *shape: Any) -> Tensor:
    """numpy's broadcasting to a shape."""
    return expand(x, *shape)


def broadcast_tensors(*tensors: Operand) -> list[Tensor]:
    """Tensors in their common shape."""
    parts = [tensor(t) for t in tensors]
    shape = broadcast_shapes(*[p.shape for p in parts])
    return [expand(p, shape) for p in parts]


def meshgrid(*tensors: Operand, indexing: str = "ij") -> list[Tensor]:
    """Vectors spread over a grid; `xy` exchanges the first two axes."""
    if indexing not in ("ij", "xy"):
        raise bad("wrong-argument", f"indexing is {indexing!r}", "expected ij or xy")
    parts = [tensor(t) for t in tensors]
    order = list(range(len(parts)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shaped = [
        reshape(p, tuple(-1 if order[k] == a else 1 for a in range(len(parts))))
        for k, p in enumerate(parts)
    ]
    return broadcast_tensors(*shaped)


# -- triangles and diagonals -----------------------------------------------------------------------


def _triangle(x: Tensor, diagonal: int, lower: bool) -> Tensor:
    if x.ndim < 2:
        raise bad("wrong-argument", f"a triangle needs two axes, got {x.ndim}")
    from uopc.frontend.creation import index_along

    rows = index_along(x.shape[-2], 0, 2)
    columns = index_along(x.shape[-1], 1, 2)
    mask = columns - rows <= diagonal if lower else columns - rows >= diagonal
    return mask.where(x, False if x.node.type == "i1" else 0)


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """Zero above a diagonal of the last two axes."""
    return _triangle(x, diagonal, True)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """Zero below a diagonal of the last two axes."""
    return _triangle(x, diagonal, False)


def diag(x: Tensor) -> Tensor:
    """A vector as a diagonal matrix, or the diagonal of a matrix."""
    if x.ndim == 1:
        from uopc.frontend.creation import index_along

        n = x.shape[0]
        mask = index_along(n, 0, 2) == index_along(n, 1, 2)
        return mask.where(unsqueeze(x, 1), False if x.node.type == "i1" else 0)
    return diagonal(x)


def diagonal(x: Tensor) -> Tensor:
    """The diagonal of the last two axes."""
    if x.ndim < 2:
        raise bad("wrong-argument", f"a diagonal needs two axes, got {x.ndim}")
    n = builtins_min(x.shape[-2], x.shape[-1])
    square = shrink(x, [*[None] * (x.ndim - 2), (0, n), (0, n)])
    lead = x.shape[:-2]
    # Row-major, the diagonal is each (n+1)-th element.
    padded = pad(reshape(square, (*lead, n * n)), [*[(0, 0)] * len(lead), (0, n)])
    return squeeze(
        shrink(reshape(padded, (*lead, n, n + 1)), [*[None] * (len(lead) + 1), (0, 1 if n else 0)])
        if n
        else reshape(padded, (*lead, 0, 1)),
        -1,
    )
