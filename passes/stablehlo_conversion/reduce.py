"""reduce, map and chlo.scan.

A body that utensor has a kind for becomes utensor.reduce. Any other body is run lifted along a
binary tree: neighbours are combined, all pairs of a level at once, so n elements take about
log2(n) runs of the body. The order of the elements is kept, so the body need not commute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from uopc.passes.stablehlo_conversion.bodies import body_kinds, is_identity
from uopc.passes.stablehlo_conversion.builder import Builder, row_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    axes_of,
    body,
    invalid,
    number,
    unsupported,
)
from uopc.passes.stablehlo_conversion.elementwise import OPS
from uopc.passes.stablehlo_conversion.shapes import check_axes

Values = Sequence[SSAValue]
Combine = Callable[[list[SSAValue], list[SSAValue]], list[SSAValue]]
"""Combines elements of the same shape: a0, a1, … with b0, b1, …"""

MAX_SCAN = 1024
"""The steps that chlo.scan may take."""


def combiner(c: Conversion, op: Operation, region: int = 0) -> Combine:
    """A body of scalars, run for all elements of a shape."""
    block = body(op, region)
    count = len(block.args) // 2

    def combine(a: list[SSAValue], b: list[SSAValue]) -> list[SSAValue]:
        results = c.run_lifted(block, [*a, *b], shape_of(a[0]))
        if len(results) != count or any(r.type != v.type for r, v in zip(results, a, strict=True)):
            raise invalid(op, "has a body that gives other types than it takes")
        return results

    return combine


def tree(b: Builder, values: list[SSAValue], combine: Combine) -> list[SSAValue]:
    """Combine along the last axis, which is dropped; there is at least one element.

    Each level combines elements 2k and 2k + 1. An odd last element waits until the end.
    """
    waiting: list[list[SSAValue]] = []
    while (n := shape_of(values[0])[-1]) > 1:
        axis = len(shape_of(values[0])) - 1
        if n % 2:
            waiting.append([b.slice_axis(v, axis, n - 1, n) for v in values])
        # What is read twice, under two index maps, is computed once: otherwise each level doubles.
        values = [b.stage(v) for v in values]
        even = [b.slice_axis(v, axis, 0, n - n % 2, 2) for v in values]
        odd = [b.slice_axis(v, axis, 1, n, 2) for v in values]
        values = combine(even, odd)
    for late in reversed(waiting):
        values = combine(values, late)
    return [b.reshape(v, shape_of(v)[:-1]) for v in values]


def axes_last(b: Builder, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The axes moved to the end and made one."""
    shape = shape_of(value)
    kept = [k for k in range(len(shape)) if k not in axes]
    moved = b.permute(value, [*kept, *axes])
    return b.reshape(moved, [*(shape[k] for k in kept), math.prod(shape[k] for k in axes)])


def reduce_values(
    c: Conversion, op: Operation, values: list[SSAValue], inits: list[SSAValue], axes: Sequence[int]
) -> list[SSAValue]:
    """Combine values along axes by the body of `op`, from the initial values on."""
    b = c.build
    kinds = body_kinds(body(op, 0, 2 * len(values)))
    if kinds is not None and not {"set", "keep"} & set(kinds):
        return [
            _from_init(b, kind, b.reduce(kind, v, axes), init)
            for kind, v, init in zip(kinds, values, inits, strict=True)
        ]
    shape = [n for k, n in enumerate(shape_of(values[0])) if k not in axes]
    starts = [b.spread(init, shape) for init in inits]
    if not math.prod(shape_of(values[0])[k] for k in axes) or not math.prod(shape):
        return starts
    combine = combiner(c, op)
    last = [axes_last(b, v, sorted(axes)) for v in values]
    return combine(starts, tree(b, last, combine))


def _from_init(b: Builder, kind: str, value: SSAValue, init: SSAValue) -> SSAValue:
    """A reduction combined with its initial value."""
    if is_identity(kind, init):
        return value
    name = {"mul": "multiply", "max": "maximum", "min": "minimum"}.get(kind, kind)
    row = row_of(value)
    cls = OPS[name]["float" if row.is_float else "bool" if row.is_bool else "integer"]
    return b.op(cls, b.spread(init, shape_of(value)), value)


def _reduce(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    count = len(x) // 2
    axes = axes_of(op, "dimensions")
    if not count or len(x) % 2 or any(shape_of(v) != shape_of(x[0]) for v in x[:count]):
        raise invalid(op, "needs operands of one shape, and as many initial values")
    check_axes(op, axes, len(shape_of(x[0])))
    return reduce_values(c, op, x[:count], x[count:], axes)


def _map(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    if not x:
        raise invalid(op, "has no operands")
    return c.run_lifted(body(op), x, shape_of(x[0]))


def _scan(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """Steps along an axis, written out: outputs and carries from an element and the carries."""
    b, axis = c.build, number(op, "dimension")
    count, _ = axes_of(op, "operandSegmentSizes")
    inputs, carries = x[:count], x[count:]
    if not inputs:
        raise invalid(op, "has no inputs")
    for value in inputs:
        check_axes(op, (axis,), len(shape_of(value)))
    n = shape_of(inputs[0])[axis]
    if any(shape_of(value)[axis] != n for value in inputs):
        raise invalid(op, f"has inputs of other sizes than {n} along axis {axis}")
    if not 1 <= n <= MAX_SCAN:
        raise unsupported(op, f"over {n} steps, expected 1 to {MAX_SCAN}")
    steps = range(n)[::-1] if number(op, "is_reverse", 0) else range(n)
    slices: dict[int, list[SSAValue]] = {}
    for step in steps:
        element = [_take(b, v, axis, step) for v in inputs]
        results = c.nested(op, body(op), [*element, *carries])
        split = len(results) - len(carries)
        # The carry is read by all later steps: computed once, not again in each.
        carries = [b.stage(v) for v in results[split:]]
        slices[step] = results[:split]
    outputs: list[SSAValue] = []
    for position in range(len(op.results) - len(carries)):
        rows = [slices[step][position] for step in range(n)]
        shapes = [(*shape_of(r)[:axis], 1, *shape_of(r)[axis:]) for r in rows]
        rows = [b.reshape(r, shape) for r, shape in zip(rows, shapes, strict=True)]
        outputs.append(b.concatenate(rows, axis))
    return [*outputs, *carries]


def _take(b: Builder, value: SSAValue, axis: int, position: int) -> SSAValue:
    one = b.slice_axis(value, axis, position, position + 1)
    return b.reshape(one, [n for k, n in enumerate(shape_of(value)) if k != axis])


REDUCE_RULES: dict[str, Rule] = {
    "chlo.scan": _scan,
    "stablehlo.map": _map,
    "stablehlo.reduce": _reduce,
}
