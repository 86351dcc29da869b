"""Windows: reduce_window, select_and_scatter, and what convolution needs.

A value with an axis for the window after the axes of positions is made by movement ops alone. For
one axis of size L, windows of w elements d apart, s from each other, o of them: the axis is
repeated, cut to w * (L + d), and read as w rows of L + d. Row k starts at element k * d of the
axis, so its element i * s is element i * s + k * d: that of window i at place k.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.passes.stablehlo_conversion.bodies import body_kinds
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, row_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    axes_of,
    body,
    invalid,
    unsupported,
)
from uopc.passes.stablehlo_conversion.reduce import combiner, reduce_values, tree
from uopc.passes.stablehlo_conversion.shapes import dilate, pad_with

Values = Sequence[SSAValue]

MAX_IN_ORDER = 32
"""Places of a window that are combined one after another, where the order shows."""


@dataclass(frozen=True)
class Window:
    """How windows lie along each axis."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    base_dilations: tuple[int, ...]
    window_dilations: tuple[int, ...]

    def padded(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The sizes of a value of a shape, dilated and padded."""
        return tuple(
            max(0, (n - 1) * d + 1 if n else 0) + a + z
            for n, d, a, z in zip(shape, self.base_dilations, self.low, self.high, strict=True)
        )

    def counts(self, shape: Sequence[int]) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        spans = [(w - 1) * d + 1 for w, d in zip(self.sizes, self.window_dilations, strict=True)]
        return tuple(
            0 if n < span else (n - span) // s + 1
            for n, span, s in zip(self.padded(shape), spans, self.strides, strict=True)
        )


def window_of(op: Operation, rank: int) -> Window:
    """What an op says of its windows."""
    ones = (1,) * rank
    padding = axes_of(op, "padding", (0,) * (2 * rank))
    window = Window(
        axes_of(op, "window_dimensions"),
        axes_of(op, "window_strides", ones),
        padding[0::2],
        padding[1::2],
        axes_of(op, "base_dilations", ones),
        axes_of(op, "window_dilations", ones),
    )
    check_window(op, window, rank)
    return window


def check_window(op: Operation, window: Window, rank: int) -> None:
    """The numbers are as many as axes, and at least 1 where they have to be. Raises UopcError."""
    positive = (window.sizes, window.strides, window.base_dilations, window.window_dilations)
    if any(len(v) != rank for v in (*positive, window.low, window.high)):
        raise invalid(op, f"needs {rank} numbers for its window, one an axis")
    if any(n < 1 for numbers in positive for n in numbers):
        raise invalid(op, "needs sizes, strides and dilations of its window of at least 1")


def windows(b: Builder, x: SSAValue, window: Window, fill: SSAValue) -> SSAValue:
    """The elements of each window: axes of positions, then axes of places in the window."""
    rank = len(window.sizes)
    counts = window.counts(shape_of(x))
    if not math.prod(counts):
        return b.constant(0, element_of(x), (*counts, *window.sizes))
    x = dilate(b, x, [d - 1 for d in window.base_dilations], fill)
    x = pad_with(b, x, window.low, window.high, fill)
    for axis in range(rank):
        step, dilation = window.strides[axis], window.window_dilations[axis]
        x = _windows_of_axis(b, x, axis, counts[axis], window.sizes[axis], step, dilation)
    return x


def _windows_of_axis(
    b: Builder, x: SSAValue, axis: int, count: int, size: int, step: int, dilation: int
) -> SSAValue:
    """The axis becomes that of the positions, and a new last axis that of the places."""
    if size == 1:
        x = b.slice_axis(x, axis, 0, (count - 1) * step + 1, step)
        return b.reshape(x, (*shape_of(x), 1))
    shape = shape_of(x)
    x = b.permute(x, [*(k for k in range(len(shape)) if k != axis), axis])
    lead, length = shape_of(x)[:-1], shape[axis]
    rank = len(lead)
    if step == size and dilation == 1:  # side by side
        x = b.reshape(b.slice_axis(x, rank, 0, count * size), (*lead, count, size))
        position, place = rank, rank + 1
    else:
        row = length + dilation
        repeats = -(-size * row // length)
        x = b.expand(b.reshape(x, (*lead, 1, length)), (*lead, repeats, length))
        x = b.reshape(x, (*lead, repeats * length))
        x = b.reshape(b.slice_axis(x, rank, 0, size * row), (*lead, size, row))
        x = b.slice_axis(x, rank + 1, 0, (count - 1) * step + 1, step)
        position, place = rank + 1, rank
    return b.permute(x, [*range(axis), position, *range(axis, rank), place])


def _reduce_window(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    count = len(x) // 2
    if not count or len(x) % 2 or any(shape_of(v) != shape_of(x[0]) for v in x[:count]):
        raise invalid(op, "needs operands of one shape, and as many initial values")
    rank = len(shape_of(x[0]))
    window = window_of(op, rank)
    if math.prod(window.sizes) <= MAX_IN_ORDER and _order_shows(op, x[0]):
        return _in_order(c, op, window, x[:count], x[count:])
    values = [windows(c.build, v, window, i) for v, i in zip(x[:count], x[count:], strict=True)]
    return reduce_values(c, op, values, x[count:], range(rank, 2 * rank))


def _order_shows(op: Operation, value: SSAValue) -> bool:
    """Whether another order may give other bits: sums and products of f32 and f64, and bodies that
    are not known. Halves are summed in f32, which is better than any order of their own sums."""
    kinds = body_kinds(body(op))
    if kinds is None:
        return True
    return bool({"add", "mul"} & set(kinds)) and row_of(value).name in ("f32", "f64")


def _in_order(
    c: Conversion, op: Operation, window: Window, values: list[SSAValue], inits: list[SSAValue]
) -> list[SSAValue]:
    """Small windows: from the initial values on, one place of the window after another."""
    b = c.build
    shape = shape_of(values[0])
    counts = window.counts(shape)
    results = [b.spread(init, counts) for init in inits]
    if not math.prod(counts):
        return results
    padded: list[SSAValue] = []
    for value, init in zip(values, inits, strict=True):
        apart = dilate(b, b.stage(value), [d - 1 for d in window.base_dilations], init)
        padded.append(pad_with(b, apart, window.low, window.high, init))
    combine = combiner(c, op)
    for place in itertools.product(*map(range, window.sizes)):
        begins = [k * d for k, d in zip(place, window.window_dilations, strict=True)]
        spans = [(n - 1) * s + 1 for n, s in zip(counts, window.strides, strict=True)]
        ends = [begin + span for begin, span in zip(begins, spans, strict=True)]
        here = [b.shrink(v, begins, ends, window.strides) for v in padded]
        results = combine(results, here)
    return results


def _select_and_scatter(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """In each window, the element that the first body selects gets a value of the source, by the
    second body. Elements of the padding are never selected.

    A tree over the window carries each element with its position in the operand, -1 in padding.
    """
    b = c.build
    operand, source, init = x
    shape = shape_of(operand)
    rank = len(shape)
    window = window_of(op, rank)
    kinds = body_kinds(body(op, 1, 2))
    if kinds is None:
        raise unsupported(op, "with a scatter that is not a known kind of reduction")
    if shape_of(source) != window.counts(shape):
        raise invalid(op, f"has a source of {shape_of(source)}, expected {window.counts(shape)}")
    flat = b.spread(init, (math.prod(shape),))
    if not math.prod(shape_of(source)):
        return [b.reshape(flat, shape)]
    positions = b.reshape(b.iota(0, (math.prod(shape),)), shape)
    zero = b.constant(0, element_of(operand))
    outside = b.constant(-1, element_of(positions))
    places = [
        b.reshape(windows(b, v, window, fill), (*shape_of(source), math.prod(window.sizes)))
        for v, fill in ((operand, zero), (positions, outside))
    ]

    def select(a: SSAValue, z: SSAValue) -> SSAValue:
        results = c.run_lifted(body(op), [a, z], shape_of(a))
        if len(results) != 1:
            raise invalid(op, "needs a body that selects by one truth value")
        return results[0]

    def better(first: list[SSAValue], second: list[SSAValue]) -> list[SSAValue]:
        (a, at_a), (z, at_z) = first, second
        only_first = b.op(e.CmpltOp, at_z, b.like(at_z, 0))
        first_is_there = b.op(e.CmpleOp, b.like(at_a, 0), at_a)
        chosen = b.op(e.AndOp, first_is_there, select(a, z))
        chosen = b.op(e.OrOp, only_first, chosen)
        return [b.where(chosen, a, z), b.where(chosen, at_a, at_z)]

    _, chosen = tree(b, places, better)
    count = (math.prod(shape_of(source)),)
    indices, updates = b.reshape(chosen, count), b.reshape(source, count)
    if kinds == ["keep"]:
        return [b.reshape(flat, shape)]
    return [b.reshape(b.scatter(kinds[0], flat, indices, updates, 0), shape)]


WINDOW_RULES: dict[str, Rule] = {
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
