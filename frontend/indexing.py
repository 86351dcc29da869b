"""numpy's indexing: slices with any step, None, Ellipsis, whole numbers, arrays of positions, and
masks of truth values.

Positions given as lists or numpy arrays are checked at once. Those in tensors are data, known
only when the program runs: one beyond the end reads the last element, one before the start the
first; assigning there does nothing.

A mask means the positions where it is true. The result's shape depends on them, so a mask that is a
tensor is computed at once, and cannot be what a function under uopc.jit takes or computes: there
`mask.where(a, b)` chooses element by element. Only `x[mask] = value` with one value and a mask in
x's shape keeps the shape, and works there too.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from uopc.frontend import elementwise, nodes
from uopc.frontend.core import (
    Operand,
    array_node,
    bad,
    broadcast_shapes,
    is_number,
    is_tensor,
    one_axis,
    tensor,
    wrap,
)
from uopc.frontend.extents import any_symbolic, is_symbolic, position_of, settled, slice_bounds
from uopc.frontend.graph import Array, Node, Shape, apply, constant, iota

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

Slice: TypeAlias = "slice[Any, Any, Any]"


@dataclass
class _Plan:
    """An index taken apart: first cut each axis, then add and drop axes, then gather."""

    begins: list[int] = field(default_factory=list[int])
    counts: list[int] = field(default_factory=list[int])
    steps: list[int] = field(default_factory=list[int])
    """Of each axis of x: the first position, how many, and how far apart; a step below 0 walks
    backwards."""
    shape: list[int] = field(default_factory=list[int])
    """After cutting, with new axes and without those that a number took away."""
    arrays: list[tuple[int, Node]] = field(default_factory=list[tuple[int, Node]])
    """Axes of that shape with the positions to gather from them."""


def _parse(x: Tensor, key: Any) -> _Plan:
    items: list[Any] = []
    for item in key if isinstance(key, tuple) else (key,):  # pyright: ignore[reportUnknownVariableType] (of anything)
        items += _mask_axes(item) if _is_mask(item) else (item,)
    real = sum(item is not None and item is not Ellipsis for item in items)
    if sum(item is Ellipsis for item in items) > 1:
        raise bad("bad-index", "an index has more than one '...'")
    if real > x.ndim:
        raise bad("bad-index", f"{real} indices for a tensor of rank {x.ndim}")
    rest: list[Any] = [slice(None)] * (x.ndim - real)
    if any(item is Ellipsis for item in items):
        at = next(k for k, item in enumerate(items) if item is Ellipsis)
        items[at : at + 1] = rest
    else:
        items += rest
    advanced = any(_is_positions(item) for item in items)
    plan = _Plan()
    for item in items:
        axis = len(plan.begins)
        if item is None:
            plan.shape.append(1)
        elif isinstance(item, slice):
            part = cast(Slice, item)
            if any_symbolic((x.shape[axis], part.start, part.stop)):
                begin, end = slice_bounds(part.start, part.stop, part.step, x.shape[axis])
                _cut(plan, begin, settled(end - begin), 1)
            else:
                begin, end, step = _slice_bounds(part, x.shape[axis])
                _cut(plan, begin, len(range(begin, end, step)), step)
            plan.shape.append(plan.counts[-1])
        elif _is_positions(item):
            size = x.shape[axis]
            _cut(plan, 0, size, 1)
            plan.arrays.append((len(plan.shape), _positions(item, size, axis)))
            plan.shape.append(size)
        else:
            position = _position(item, x.shape[axis], axis)
            _cut(plan, position, 1, 1)
            if advanced:  # numpy counts it among the arrays
                plan.arrays.append((len(plan.shape), constant(0, (), "i32")))
                plan.shape.append(1)
    return plan


def _cut(plan: _Plan, begin: int, count: int, step: int) -> None:
    plan.begins.append(begin)
    plan.counts.append(count)
    plan.steps.append(step)


def _slice_bounds(item: Slice, size: int) -> tuple[int, int, int]:
    try:
        return item.indices(size)
    except (TypeError, ValueError) as error:
        raise bad("bad-index", f"slice {item}: {error}") from None


def _is_positions(item: object) -> bool:
    return is_tensor(item) or isinstance(item, np.ndarray | list | tuple | range | _MaskAxis)


def _is_mask(item: Any) -> bool:
    if isinstance(item, bool | np.bool_):
        return False  # told as such where a position is expected
    if is_tensor(item):
        return bool(item.node.type == "i1")
    return (
        isinstance(item, np.ndarray | list | tuple)
        and np.asarray(cast(Any, item)).dtype.kind == "b"
    )


@dataclass
class _MaskAxis:
    """What a mask means along one of its axes."""

    positions: Any
    size: int


def _mask_axes(mask: Any) -> list[_MaskAxis]:
    """The positions where a mask is true, axis by axis."""
    array: Array = mask.numpy() if is_tensor(mask) else np.asarray(mask)
    if array.ndim == 0:
        raise bad("bad-index", "an index is a truth value", "write mask.where(a, b)")
    return [_MaskAxis(p, n) for p, n in zip(np.nonzero(array), array.shape, strict=True)]


def _position(item: Any, size: int, axis: int) -> int:
    if isinstance(item, bool | np.bool_):
        raise _no_truth_value()
    if is_symbolic(item) or (is_symbolic(size) and type(item) is int):
        return position_of(item, size)
    try:
        position = operator.index(item)
    except TypeError:
        raise bad(
            "bad-index",
            f"an index is a {type(item).__name__}",
            "expected whole numbers, slices, None, '...' or arrays of whole numbers",
        ) from None
    if not -size <= position < size:
        raise bad("bad-index", f"position {position} is outside of axis {axis} of size {size}")
    return position % size


def _no_truth_value() -> Exception:
    return bad(
        "bad-index",
        "an index is one truth value",
        "a mask has axes; mask.where(a, b) chooses element by element",
    )


def _positions(item: Any, size: int, axis: int) -> Node:
    if is_tensor(item):
        node: Node = item.node
        if node.type[0] in "fb":
            raise bad("bad-index", f"positions are whole numbers, got {node.type}", "cast first")
        return wrapped_positions(node, size)
    if isinstance(item, _MaskAxis):
        if item.size != size:
            raise bad(
                "bad-index", f"a mask of size {item.size} along axis {axis}, which has size {size}"
            )
        item = item.positions
    array = np.asarray(item)
    if array.size and array.dtype.kind not in "iu":
        raise bad("bad-index", f"positions are whole numbers, got {array.dtype}")
    check_inside(array, size, f"axis {axis}")
    wide = array.astype(np.int64)
    return array_node(np.where(wide < 0, wide + size, wide))


def check_inside(positions: Array, size: int, what: str) -> None:
    """Raises UopcError [bad-index] for positions that an axis has not, from either end."""
    if not positions.size:
        return
    low, high = int(positions.min()), int(positions.max())
    if low < -size or high >= size:
        raise bad(
            "bad-index", f"positions {low} to {high} are not all inside of {what} of size {size}"
        )


def wrapped_positions(node: Node, size: int) -> Node:
    """Positions below 0 counted from the end."""
    if node.type.startswith("u"):
        return node
    zero = nodes.full_like(0, node)
    wide = node if node.type in ("i32", "i64") else nodes.cast(node, "i32")
    zero = nodes.full_like(0, wide)
    shifted = nodes.add(wide, nodes.full_like(size, wide))
    return nodes.where(nodes.binary("cmplt", wide, zero), shifted, wide)


def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]`. Raises UopcError [bad-index]."""
    plan = _parse(x, key)
    node = nodes.reshape(_cut_node(x.node, plan), tuple(plan.shape))
    return wrap(_gathered(node, plan) if plan.arrays else node)


def _cut_node(node: Node, plan: _Plan) -> Node:
    backwards = [k for k, s in enumerate(plan.steps) if s < 0 and plan.counts[k] != 0]
    begins: list[int] = []
    ends: list[int] = []
    steps: list[int] = []
    for begin, count, step in zip(plan.begins, plan.counts, plan.steps, strict=True):
        if any_symbolic((begin, count)):
            begins.append(begin)
            ends.append(settled(begin + count))
            steps.append(1)
            continue
        last = begin + (count - 1) * step
        first = min(begin, last) if count else 0
        begins.append(first)
        ends.append(max(begin, last) + 1 if count else 0)
        steps.append(abs(step) if count > 1 else 1)
    return nodes.flip(nodes.shrink(node, begins, ends, steps), backwards)


def _gathered(node: Node, plan: _Plan) -> Node:
    axes = [axis for axis, _ in plan.arrays]
    rank = len(plan.shape)
    target = broadcast_shapes(*[positions.shape for _, positions in plan.arrays])
    if len(axes) == 1:
        return take_node(node, plan.arrays[0][1], axes[0])
    # All indexed axes become one, where the first of them stands, or in front if they are apart.
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    front = axes[0] if adjacent else 0
    others = [k for k in range(rank) if k not in axes]
    order = [*others[:front], *axes, *others[front:]]
    moved = nodes.permute(node, order)
    sizes = [node.shape[a] for a in axes]
    merged = (*moved.shape[:front], math.prod(sizes), *moved.shape[front + len(axes) :])
    linear = constant(0, target, "i64")
    for (_, positions), size in zip(plan.arrays, sizes, strict=True):
        held = nodes.broadcast(nodes.cast(positions, "i64"), target)
        top = nodes.full_like(max(size - 1, 0), held)
        held = nodes.binary("max", nodes.binary("min", held, top), nodes.full_like(0, held))
        linear = nodes.add(nodes.scaled(linear, size), held)
    return take_node(nodes.reshape(moved, merged), linear, front)


def take_node(node: Node, positions: Node, axis: int) -> Node:
    """gather, which needs elements to read unless nothing is read."""
    shape: Shape = (*node.shape[:axis], *positions.shape, *node.shape[axis + 1 :])
    if 0 in shape:
        return constant(0, shape, node.type)
    if node.shape[axis] == 0:
        raise bad("bad-index", f"axis {axis} has no elements to take any from")
    return nodes.gather(node, positions, axis)


def take(x: Tensor, indices: Operand, axis: int | None = None) -> Tensor:
    """Elements at positions along an axis, or of the flat tensor, as numpy.take."""
    flat = x.flatten() if axis is None else x
    at = 0 if axis is None else one_axis(axis, x.ndim)
    positions: Any = indices if is_tensor(indices) else np.asarray(indices)
    if not is_tensor(indices) and positions.ndim == 0:
        positions = int(positions)
    return getitem(flat, (*[slice(None)] * at, positions))


def index_select(x: Tensor, axis: int, indices: Operand) -> Tensor:
    """torch's name of `take` along an axis."""
    return take(x, indices, axis)


# -- assignment ------------------------------------------------------------------------------------


def with_item(x: Tensor, key: Any, value: Operand) -> Tensor:
    """x with the elements at `key` replaced, as numpy does for `x[key] = value`; x stays."""
    if is_tensor(key) and key.node.type == "i1" and key.shape == x.shape and _is_one(value):
        return elementwise.where(key, tensor(value).reshape(()).cast(x.element), x)
    plan = _parse(x, key)
    if plan.arrays:
        return _scattered(x, plan, key, value)
    part = _filled(tensor(value) if not isinstance(value, bool | int | float) else value, plan, x)
    placed = placed_node(part, x.shape, plan.begins, plan.counts, plan.steps)
    mask = _mask(x.shape, plan)
    return wrap(placed if mask is None else nodes.where(mask, placed, x.node))


def _is_one(value: Any) -> bool:
    return is_number(value) or (is_tensor(value) and value.size == 1)


def _filled(value: Any, plan: _Plan, x: Tensor) -> Node:
    """The value in the shape that cutting gave."""
    from uopc.frontend.core import check_number

    shape = tuple(plan.shape)
    if is_tensor(value):
        node = nodes.cast(value.node, x.node.type)
        # numpy lets leading axes of size 1 fall away.
        while len(node.shape) > len(shape) and node.shape[0] == 1:
            node = nodes.reshape(node, node.shape[1:])
        if broadcast_shapes(node.shape, shape) != shape:
            raise bad("wrong-operands", f"shape {list(value.shape)} does not go into {list(shape)}")
        node = nodes.broadcast(node, shape)
    else:
        check_number(value, x.node.type)
        node = constant(value, shape, x.node.type)
    return nodes.reshape(node, tuple(plan.counts))


def placed_node(
    part: Node, shape: Shape, begins: list[int], counts: list[int], steps: list[int]
) -> Node:
    """A part back at its place among zeros: what cutting took it from."""
    if 0 in counts:
        return constant(0, shape, part.type)
    part = nodes.flip(part, [k for k, s in enumerate(steps) if s < 0])
    part = nodes.dilated(part, [abs(s) for s in steps])
    low = [_ends(b, c, s)[0] for b, c, s in zip(begins, counts, steps, strict=True)]
    high = [settled(n - a - p) for n, a, p in zip(shape, low, part.shape, strict=True)]
    return nodes.pad(part, low, high)


def _ends(begin: int, count: int, step: int) -> tuple[int, int]:
    """The first and the last position that a cut takes, from the front of the axis."""
    last = settled(begin + (count - 1) * step)
    return (last, begin) if step < 0 else (begin, last)


def _mask(shape: Shape, plan: _Plan) -> Node | None:
    """Where the elements lie that a cut takes; None for everywhere."""
    result: Node | None = None
    for axis, size in enumerate(shape):
        begin, count, step = plan.begins[axis], plan.counts[axis], plan.steps[axis]
        if count == size:
            continue
        narrow = tuple(size if k == axis else 1 for k in range(len(shape)))
        at = iota(axis, narrow, "i64")
        first, last = _ends(begin, count, step)
        if count == 0:
            return constant(False, shape, "i1")
        inside = nodes.binary(
            "and",
            nodes.binary("cmple", nodes.full_like(first, at), at),
            nodes.binary("cmple", at, nodes.full_like(last, at)),
        )
        if abs(step) > 1 and count > 1:
            offset = nodes.sub(at, nodes.full_like(first, at))
            remainder = nodes.binary("mod", offset, nodes.full_like(abs(step), at))
            inside = nodes.binary(
                "and", inside, nodes.binary("cmpeq", remainder, nodes.full_like(0, at))
            )
        wide = nodes.expand(inside, shape)
        result = wide if result is None else apply("and", (result, wide))
    return result


def _scattered(x: Tensor, plan: _Plan, key: Any, value: Operand) -> Tensor:
    """Assignment at arrays of positions: through the positions of the flat tensor."""
    count = math.prod(x.shape)
    places = getitem(wrap(nodes.reshape(iota(0, (count,), "i64"), x.shape)), key)
    source = tensor(value).cast(x.node.type).expand(places.shape)
    flat = nodes.reshape(x.node, (count,))
    updated = nodes.scatter(
        "set",
        flat,
        nodes.reshape(places.node, (math.prod(places.shape),)),
        nodes.reshape(source.node, (math.prod(places.shape),)),
        0,
    )
    return wrap(nodes.reshape(updated, x.shape))
