"""sort and chlo.top_k, by ranking: an element's place is how many come before it.

All pairs are compared at once, n^2 comparisons for n elements, so there is no order of steps to
keep. j comes before i where the comparator says so, or where it says neither and j < i: the sort is
stable. Elements then are scattered to their places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    body,
    invalid,
    number,
    unsupported,
)
from uopc.passes.stablehlo_conversion.elementwise import total_order_key
from uopc.passes.stablehlo_conversion.shapes import check_axes

Values = Sequence[SSAValue]
Before = Callable[[list[SSAValue], list[SSAValue]], SSAValue]
"""Whether the first elements come before the second ones."""

MAX_SORTED = 1 << 15
"""Elements that are sorted along an axis: a billion comparisons."""


def ranks(b: Builder, keys: list[SSAValue], before: Before) -> SSAValue:
    """The place of each element along the last axis, as i32."""
    shape = shape_of(keys[0])
    n = shape[-1]
    pairs = (*shape, n)
    axes = range(len(shape))
    mine = [b.spread(k, pairs, list(axes)) for k in keys]
    others = [b.spread(k, pairs, [*axes[:-1], len(shape)]) for k in keys]
    earlier = b.op(e.CmpltOp, b.iota(1, (n, n)), b.iota(0, (n, n)))
    earlier = b.spread(earlier, pairs, (len(shape) - 1, len(shape)))
    tied = b.op(e.AndOp, earlier, b.op(e.NotOp, before(mine, others)))
    first = b.op(e.OrOp, before(others, mine), tied)
    return b.reduce("add", b.cast(first, i32), (len(shape),))


def placed(b: Builder, value: SSAValue, place: SSAValue, count: int) -> SSAValue:
    """Elements at their places along the last axis; only the first `count` places are kept."""
    *lead, n = shape_of(value)
    rows = math.prod(lead)
    place = b.cast(b.reshape(place, (rows, n)), i64)
    start = b.op(e.MulOp, b.iota(0, (rows, n)), b.constant(count, i64, (rows, n)))
    flat = b.op(e.AddOp, start, place)
    if count < n:
        kept = b.op(e.CmpltOp, place, b.like(place, count))
        flat = b.where(kept, flat, b.like(flat, -1))
    empty = b.constant(0, element_of(value), (rows * count,))
    moved = b.reshape(value, (rows * n,))
    result = b.scatter("set", empty, b.reshape(flat, (rows * n,)), moved, 0)
    return b.reshape(result, (*lead, count))


def _check_length(op: Operation, n: int) -> None:
    if n > MAX_SORTED:
        raise unsupported(op, f"of {n} elements, expected at most {MAX_SORTED}")


def _sort(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    b = c.build
    if not x or any(shape_of(v) != shape_of(x[0]) for v in x):
        raise invalid(op, "needs operands of one shape")
    shape = shape_of(x[0])
    axis = number(op, "dimension", -1)
    axis += len(shape) if axis < 0 else 0
    if not shape:
        return x
    check_axes(op, (axis,), len(shape))
    if not math.prod(shape) or shape[axis] == 1:
        return x
    _check_length(op, shape[axis])
    order = [*(k for k in range(len(shape)) if k != axis), axis]
    back = [order.index(k) for k in range(len(shape))]
    rows = [b.permute(v, order) for v in x]

    def before(first: list[SSAValue], second: list[SSAValue]) -> SSAValue:
        arguments = [v for pair in zip(first, second, strict=True) for v in pair]
        return c.run_lifted(body(op), arguments, shape_of(first[0]))[0]

    place = b.stage(ranks(b, rows, before))
    return [b.permute(placed(b, v, place, shape[axis]), back) for v in rows]


def _top_k(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """The k largest along the last axis, the largest first, and where they were; as TOTALORDER."""
    b, shape = c.build, shape_of(x[0])
    count = number(op, "k")
    if not shape or not 0 <= count <= shape[-1]:
        raise invalid(op, f"takes {count} of {list(shape)}")
    if not math.prod(shape) or not count:
        kept = (*shape[:-1], count)
        return [b.constant(0, element_of(x[0]), kept), b.constant(0, i32, kept)]
    _check_length(op, shape[-1])
    key = total_order_key(b, x[0])
    largest = bool(number(op, "largest", 1))

    def before(first: list[SSAValue], second: list[SSAValue]) -> SSAValue:
        a, z = (second[0], first[0]) if largest else (first[0], second[0])
        return b.op(e.CmpltOp, a, z)

    place = b.stage(ranks(b, [key], before))
    position = b.iota(len(shape) - 1, shape, i32)
    return [placed(b, v, place, count) for v in (x[0], position)]


ORDER_RULES: dict[str, Rule] = {
    "chlo.top_k": _top_k,
    "stablehlo.sort": _sort,
}
