"""dynamic_slice, dynamic_update_slice, gather and scatter.

Where one axis is indexed, and windows are whole along all others, this is utensor's gather or
scatter along that axis. In general the operand is made flat, and an element's index is

    sum over the operand's axes k of  stride(k) * (start(k) + offset(k))

start from the indices, or the position in a batch axis; offset from the position in the window.
Reads are clamped so that the whole window is inside; an element written outside is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.passes.stablehlo_conversion.bodies import body_kinds
from uopc.passes.stablehlo_conversion.builder import (
    Builder,
    element_of,
    row_of,
    shape_of,
)
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    axes_of,
    body,
    invalid,
    number,
    result_type,
    struct,
    unsupported,
)
from uopc.passes.stablehlo_conversion.reduce import combiner
from uopc.passes.stablehlo_conversion.shapes import check_axes

Values = Sequence[SSAValue]

MAX_SEPARATE_UPDATES = 64
"""Updates that are written one after another, for a body that utensor has no kind for."""


def clamped(b: Builder, index: SSAValue, limit: int) -> SSAValue:
    """An index as i64, from 0 to limit."""
    if row_of(index).kind == "unsigned" and row_of(index).limits[1] > limit:
        index = b.op(e.MinOp, index, b.like(index, limit))  # ui64 has numbers that i64 has not
    wide = b.cast(index, i64)
    return b.op(e.MinOp, b.op(e.MaxOp, wide, b.like(wide, 0)), b.like(wide, limit))


def unclamped(b: Builder, index: SSAValue) -> SSAValue:
    """An index as i64; a ui64 beyond i64 is negative, which is outside as well."""
    return b.cast(index, i64)


def strides_of(shape: Sequence[int]) -> list[int]:
    """How far apart neighbours along each axis are in row-major order."""
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def _scaled(b: Builder, index: SSAValue, factor: int) -> SSAValue:
    return index if factor == 1 else b.op(e.MulOp, index, b.like(index, factor))


def _sum(b: Builder, terms: Sequence[SSAValue], shape: Sequence[int]) -> SSAValue:
    total = b.constant(0, i64, tuple(shape))
    for position, term in enumerate(terms):
        total = term if not position else b.op(e.AddOp, total, term)
    return total


# dynamic_slice and dynamic_update_slice


def _dynamic_slice(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    b, operand, starts = c.build, x[0], x[1:]
    sizes, shape = axes_of(op, "slice_sizes"), shape_of(x[0])
    _check_starts(op, starts, sizes, shape)
    if not math.prod(sizes):
        return [b.constant(0, element_of(operand), sizes)]
    for axis, (size, n, start) in enumerate(zip(sizes, shape, starts, strict=True)):
        if size < n:
            position = b.spread(clamped(b, start, n - size), (size,))
            operand = b.gather(operand, b.op(e.AddOp, position, b.iota(0, (size,))), axis)
    return [operand]


def _check_starts(
    op: Operation, starts: Sequence[SSAValue], sizes: Sequence[int], shape: Sequence[int]
) -> None:
    if len(starts) != len(shape) or len(sizes) != len(shape) or any(map(shape_of, starts)):
        raise invalid(op, f"needs {len(shape)} scalar starts and as many sizes")
    if any(not 0 <= size <= n for size, n in zip(sizes, shape, strict=True)):
        raise invalid(op, f"takes {list(sizes)} of {list(shape)}")


def _dynamic_update_slice(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    b, operand, update, starts = c.build, x[0], x[1], x[2:]
    shape, sizes = shape_of(operand), shape_of(update)
    _check_starts(op, starts, sizes, shape)
    if not math.prod(sizes):
        return [operand]
    partial = [k for k in range(len(shape)) if sizes[k] < shape[k]]
    if not partial:
        return [update]
    firsts = {k: clamped(b, starts[k], shape[k] - sizes[k]) for k in partial}
    if len(partial) == 1:
        axis = partial[0]
        first = b.spread(firsts[axis], (sizes[axis],))
        indices = b.op(e.AddOp, first, b.iota(0, (sizes[axis],)))
        return [b.scatter("set", operand, indices, update, axis)]
    strides = strides_of(shape)
    terms: list[SSAValue] = []
    for axis, size in enumerate(sizes):
        position = b.iota(0, (size,))
        if axis in firsts:
            position = b.op(e.AddOp, b.spread(firsts[axis], (size,)), position)
        terms.append(b.spread(_scaled(b, position, strides[axis]), sizes, (axis,)))
    return [_scatter_flat(b, "set", operand, _sum(b, terms, sizes), update)]


def _scatter_flat(
    b: Builder, kind: str, operand: SSAValue, indices: SSAValue, updates: SSAValue
) -> SSAValue:
    """Updates combined with the operand at flat indices."""
    count = math.prod(shape_of(updates))
    flat = b.reshape(operand, (math.prod(shape_of(operand)),))
    indices, updates = b.reshape(indices, (count,)), b.reshape(updates, (count,))
    return b.reshape(b.scatter(kind, flat, indices, updates, 0), shape_of(operand))


# What gather and scatter share


class Layout:
    """Which axes are what, in gather's words; scatter's are brought into the same form.

    The result of gather, and the updates of scatter, have the indices' batch axes and the
    window's axes among each other; `window_axes` says where the latter are.
    """

    def __init__(
        self,
        op: Operation,
        names: Sequence[str],
        indices: SSAValue,
        operand: Sequence[int],
        total_rank: int,
    ) -> None:
        dims = struct(op, names[0])
        self.window_axes = dims.axes(names[1])
        self.collapsed = dims.axes(names[2])
        self.operand_batch = dims.axes(names[3])
        self.index_batch = dims.axes(names[4])
        self.index_map = dims.axes(names[5])
        self.vector_axis = dims.integer("index_vector_dim", 0)
        self.index_shape = shape_of(indices)
        rank = len(operand)
        for axes, bound in (
            (self.window_axes, total_rank),
            ((*self.collapsed, *self.operand_batch), rank),
            (self.index_map, rank),
            (self.index_batch, len(self.index_shape)),
        ):
            check_axes(op, axes, bound)
        if not 0 <= self.vector_axis <= len(self.index_shape):
            raise invalid(op, f"has index_vector_dim {self.vector_axis}")
        self.batch_axes = tuple(k for k in range(total_rank) if k not in self.window_axes)
        kept = len(self.index_shape) - (self.vector_axis < len(self.index_shape))
        if len(self.batch_axes) != kept:
            raise invalid(op, f"has {len(self.batch_axes)} batch axes, its indices {kept}")
        taken = (*self.collapsed, *self.operand_batch)
        self.offset_axes = tuple(k for k in range(rank) if k not in taken)
        if len(self.offset_axes) != len(self.window_axes):
            raise invalid(op, f"has {len(self.window_axes)} window axes, not {self.offset_axes}")
        if len(self.operand_batch) != len(self.index_batch):
            raise invalid(op, "pairs batch axes that are not equally many")

    def index(self, b: Builder, op: Operation, indices: SSAValue, position: int) -> SSAValue:
        """Component `position` of the index vectors, in the shape of the batch axes."""
        if self.vector_axis == len(self.index_shape):
            if position or len(self.index_map) != 1:
                raise invalid(op, "has index vectors of one number, and more axes to index")
            return indices
        if self.index_shape[self.vector_axis] != len(self.index_map):
            raise invalid(op, f"has index vectors of {self.index_shape[self.vector_axis]}")
        one = b.slice_axis(indices, self.vector_axis, position, position + 1)
        kept = [n for k, n in enumerate(self.index_shape) if k != self.vector_axis]
        return b.reshape(one, kept)

    def batch_position(self, b: Builder, pair: int, shape: Sequence[int]) -> SSAValue:
        """The position along the batch axis that operand_batch[pair] goes with."""
        axis = self.index_batch[pair]
        return b.iota(axis - (axis > self.vector_axis), shape)

    def only_axis(self, sizes: Sequence[int], shape: Sequence[int]) -> int | None:
        """The one axis that is indexed, with windows of one element along it and whole others."""
        if len(self.index_map) != 1 or self.operand_batch or self.collapsed != self.index_map:
            return None
        axis = self.index_map[0]
        whole = all(sizes[k] == n for k, n in enumerate(shape) if k != axis)
        return axis if whole else None


_GATHER_NAMES = (
    "dimension_numbers", "offset_dims", "collapsed_slice_dims", "operand_batching_dims",
    "start_indices_batching_dims", "start_index_map",
)  # fmt: skip
_SCATTER_NAMES = (
    "scatter_dimension_numbers", "update_window_dims", "inserted_window_dims",
    "input_batching_dims", "scatter_indices_batching_dims", "scatter_dims_to_operand_dims",
)  # fmt: skip


# gather


def _gather(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    b, operand, indices = c.build, x[0], x[1]
    element, result = result_type(op)
    shape, sizes = shape_of(operand), axes_of(op, "slice_sizes")
    layout = Layout(op, _GATHER_NAMES, indices, shape, len(result))
    if len(sizes) != len(shape) or any(not 0 <= s <= n for s, n in zip(sizes, shape, strict=True)):
        raise invalid(op, f"takes slices of {list(sizes)} of {list(shape)}")
    if not math.prod(result):
        return [b.constant(0, element, result)]
    axis = layout.only_axis(sizes, shape)
    if axis is not None:
        rows = b.gather(operand, layout.index(b, op, indices, 0), axis)
        count = len(layout.batch_axes)
        # The axes before, the batch axes in place of the indexed one, the axes after.
        places = [
            *layout.window_axes[:axis], *layout.batch_axes, *layout.window_axes[axis:]
        ]  # fmt: skip
        assert len(places) == len(shape) - 1 + count
        return [b.permute(rows, [places.index(k) for k in range(len(result))])]
    strides = strides_of(shape)
    batch = tuple(result[k] for k in layout.batch_axes)
    terms: list[SSAValue] = []
    for position, k in enumerate(layout.index_map):
        start = clamped(b, layout.index(b, op, indices, position), shape[k] - sizes[k])
        terms.append(b.spread(_scaled(b, start, strides[k]), result, layout.batch_axes))
    for pair, k in enumerate(layout.operand_batch):
        position = _scaled(b, layout.batch_position(b, pair, batch), strides[k])
        terms.append(b.spread(position, result, layout.batch_axes))
    for axis_of_result, k in zip(layout.window_axes, layout.offset_axes, strict=True):
        if sizes[k] > 1:
            offset = _scaled(b, b.iota(0, (sizes[k],)), strides[k])
            terms.append(b.spread(offset, result, (axis_of_result,)))
    flat = b.reshape(operand, (math.prod(shape),))
    return [b.gather(flat, _sum(b, terms, result), 0)]


# scatter


def _scatter(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    b, count = c.build, len(x) // 2
    if len(x) % 2 != 1 or any(shape_of(v) != shape_of(x[0]) for v in x[:count]):
        raise invalid(op, "needs operands of one shape, indices, and as many updates")
    operands, indices, updates = x[:count], x[count], x[count + 1 :]
    shape, written = shape_of(operands[0]), shape_of(updates[0])
    if any(shape_of(v) != written for v in updates):
        raise invalid(op, "needs updates of one shape")
    layout = Layout(op, _SCATTER_NAMES, indices, shape, len(written))
    if not math.prod(written) or not math.prod(shape):
        return operands
    kinds = body_kinds(body(op, 0, 2 * count))
    if kinds is None:
        return _scatter_by_body(c, op, layout, operands, indices, updates)
    sizes = _window_sizes(layout, shape, written)
    axis = layout.only_axis(sizes, shape)
    if axis is not None:
        order = [
            *layout.window_axes[:axis], *layout.batch_axes, *layout.window_axes[axis:]
        ]  # fmt: skip
        rows = [b.permute(v, order) for v in updates]
        at = layout.index(b, op, indices, 0)

        def write(kind: str, v: SSAValue, u: SSAValue) -> SSAValue:
            return b.scatter(kind, v, at, u, axis)
    else:
        flat = _flat_positions(b, op, layout, indices, shape, written)
        rows = updates

        def write(kind: str, v: SSAValue, u: SSAValue) -> SSAValue:
            return _scatter_flat(b, kind, v, flat, u)

    return [
        v if kind == "keep" else write(kind, v, u)
        for kind, v, u in zip(kinds, operands, rows, strict=True)
    ]


def _window_sizes(layout: Layout, shape: Sequence[int], written: Sequence[int]) -> list[int]:
    sizes = [1] * len(shape)
    for axis, k in zip(layout.window_axes, layout.offset_axes, strict=True):
        sizes[k] = written[axis]
    return sizes


def _flat_positions(
    b: Builder,
    op: Operation,
    layout: Layout,
    indices: SSAValue,
    shape: Sequence[int],
    written: Sequence[int],
) -> SSAValue:
    """Where each element of the updates goes in the flat operand; -1 if outside."""
    strides = strides_of(shape)
    batch = tuple(written[k] for k in layout.batch_axes)
    positions: dict[int, list[SSAValue]] = {k: [] for k in range(len(shape))}
    for position, k in enumerate(layout.index_map):
        start = unclamped(b, layout.index(b, op, indices, position))
        positions[k].append(b.spread(start, written, layout.batch_axes))
    for pair, k in enumerate(layout.operand_batch):
        place = layout.batch_position(b, pair, batch)
        positions[k].append(b.spread(place, written, layout.batch_axes))
    for axis, k in zip(layout.window_axes, layout.offset_axes, strict=True):
        if written[axis] > 1:
            positions[k].append(b.spread(b.iota(0, (written[axis],)), written, (axis,)))
    inside = b.constant(1, i1, tuple(written))
    terms: list[SSAValue] = []
    for k, parts in positions.items():
        if parts:
            at = _sum(b, parts, written)
            terms.append(_scaled(b, at, strides[k]))
            # A start so large that it wraps around is negative, and outside.
            fits = b.op(
                e.AndOp,
                b.op(e.CmpleOp, b.like(at, 0), at),
                b.op(e.CmpltOp, at, b.like(at, shape[k])),
            )
            inside = b.op(e.AndOp, inside, fits)
    flat = _sum(b, terms, written)
    return b.where(inside, flat, b.like(flat, -1))


def _scatter_by_body(
    c: Conversion,
    op: Operation,
    layout: Layout,
    operands: list[SSAValue],
    indices: SSAValue,
    updates: list[SSAValue],
) -> list[SSAValue]:
    """Read, run the body, write: all at once if no element is written twice, else one by one."""
    b = c.build
    shape, written = shape_of(operands[0]), shape_of(updates[0])
    flat = _flat_positions(b, op, layout, indices, shape, written)
    batch = math.prod(written[k] for k in layout.batch_axes)
    order = [*layout.batch_axes, *layout.window_axes]
    window = math.prod(written) // batch
    at = b.reshape(b.permute(flat, order), (batch, window))
    rows = [b.reshape(b.permute(u, order), (batch, window)) for u in updates]
    results = [b.reshape(v, (math.prod(shape),)) for v in operands]
    unique = bool(number(op, "unique_indices", 0))
    if not unique and batch > MAX_SEPARATE_UPDATES:
        raise unsupported(
            op,
            f"{batch} updates in order, by a body that is no known kind of reduction, and indices "
            f"that may repeat: at most {MAX_SEPARATE_UPDATES} are written one after another",
        )
    combine = combiner(c, op)
    for begin, end in [(0, batch)] if unique else [(k, k + 1) for k in range(batch)]:
        here = b.reshape(b.slice_axis(at, 0, begin, end), ((end - begin) * window,))
        new = [b.reshape(b.slice_axis(u, 0, begin, end), shape_of(here)) for u in rows]
        old = [b.gather(v, here, 0) for v in results]
        combined = combine(old, new)
        results = [
            b.stage(b.scatter("set", v, here, u, 0)) for v, u in zip(results, combined, strict=True)
        ]
    return [b.reshape(v, shape) for v in results]


INDEX_RULES: dict[str, Rule] = {
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
}
