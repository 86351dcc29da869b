"""Reductions over ranges, in the order that linearize writes down.

The steps of a reduction follow one another: its ranges in the order in which they stand in the
kernel, unrolled ones innermost, the longest of those first. A reduction over unrolled and vector
ranges only is a tree: neighbouring copies are combined, then the halves of the vector. Lanes of a
GPU each take their own steps; a tree then combines halves of 32 of them, and halves of the warps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, Operation, SSAValue

from uopc.dialects import loop
from uopc.dialects.rounding import Array
from uopc.interpreters.scalar_types import row_of, where
from uopc.interpreters.scalars import (
    combine_function,
    constant_value,
    identity_value,
    not_interpreted,
    scalar_function,
)

WARP = 32

Combine = Callable[[list[Any], list[Any]], list[Any]]
"""(accumulators, values) -> accumulators."""

ACCUMULATED: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply}
"""Kinds whose steps, one after the other, are a ufunc's accumulate."""


def is_tree(ranges: Sequence[loop.RangeOp]) -> bool:
    """Whether a reduction over these ranges has no loop of its own."""
    return bool(ranges) and all(r.kind.data in ("unroll", "vector") for r in ranges)


def step_order(ranges: Sequence[loop.RangeOp], number: dict[loop.RangeOp, int]) -> list[int]:
    """The ranges' axes, the outermost first; `number` has where they stand in the kernel."""

    def key(r: loop.RangeOp) -> tuple[int, int, int]:
        if r.kind.data == "lane":
            return (2, 0, number[r])
        if is_tree(ranges):
            return (int(r.kind.data == "vector"), 0, number[r])
        if r.kind.data != "unroll":
            return (0, 0, number[r])
        return (1, -(r.constant_end or 0), number[r])

    return [number[r] for r in sorted(ranges, key=key)]


def in_order(
    combine: Combine, initial: Sequence[Any], values: Sequence[Array], mask: Array | None
) -> list[Any]:
    """Combine along the first axis from the initial accumulators, where the mask is set."""
    accumulators = list(initial)
    for k in range(len(values[0])):
        new = combine(accumulators, [v[k] for v in values])
        if mask is not None:
            new = [where(mask[k], n, old) for n, old in zip(new, accumulators, strict=True)]
        accumulators = new
    return accumulators


def accumulated(ufunc: np.ufunc, initial: Any, values: Array, chunk: int = 1024) -> Array:
    """As `in_order` for a ufunc of values of one dtype: accumulate goes from step to step."""
    accumulator = np.broadcast_to(np.asarray(initial, values.dtype), values.shape[1:])
    for start in range(0, len(values), chunk):
        steps = np.concatenate([accumulator[np.newaxis], values[start : start + chunk]])
        accumulator = ufunc.accumulate(steps, axis=0, dtype=values.dtype)[-1]
    return np.asarray(accumulator)


def as_tree(combine: Combine, values: Sequence[Array], copies: int, lanes: int) -> list[Any]:
    """Combine copies of lanes: neighbours until one copy is left, then halves of its lanes."""
    level = [[v[k * lanes : (k + 1) * lanes] for v in values] for k in range(copies)]
    while len(level) > 1:
        pairs = [combine(level[k], level[k + 1]) for k in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) - len(level) % 2 :]
    parts = level[0]
    while len(parts[0]) > 1:
        half = len(parts[0]) // 2
        parts = combine([p[:half] for p in parts], [p[half:] for p in parts])
    return [p[0] for p in parts]


def across(combine: Combine, values: Sequence[Array], start: Sequence[Any]) -> list[Any]:
    """Values of lanes, along the first axis, combined as shuffles do: in warps, then the warps."""
    lanes = len(values[0])
    count = 1 << max(lanes - 1, 0).bit_length()
    warp = min(count, WARP)
    apart: list[Array] = []
    for value, first in zip(values, start, strict=True):
        missing = (count - lanes, *value.shape[1:])
        idle = np.broadcast_to(np.asarray(first, value.dtype), missing)
        whole = np.concatenate([value, idle])
        apart.append(np.swapaxes(whole.reshape(count // warp, warp, *value.shape[1:]), 0, 1))
    return as_tree(combine, as_tree(combine, apart, 1, warp), 1, count // warp)


def first_of(combine: Combine) -> Combine:
    """A combiner of argreduce for two lanes: of equals, the lower position is taken."""

    def pair(own: list[Any], others: list[Any]) -> list[Any]:
        mine, theirs = combine(own, others), combine(others, own)
        first = mine[1] <= theirs[1]
        return [where(first, a, b) for a, b in zip(mine, theirs, strict=True)]

    return pair


def apart(
    ranges: Sequence[loop.RangeOp], values: Sequence[Array]
) -> tuple[list[loop.RangeOp], list[Array]]:
    """The ranges that are no lanes, and values by steps, then by lanes, then by the rest."""
    lanes = [r.constant_end or 0 for r in ranges if r.kind.data == "lane"]
    count = int(np.prod(lanes, dtype=np.int64))
    others = [r for r in ranges if r.kind.data != "lane"]
    return others, [v.reshape(len(v) // max(count, 1), count, *v.shape[1:]) for v in values]


def has_lanes(ranges: Sequence[loop.RangeOp]) -> bool:
    return any(r.kind.data == "lane" for r in ranges)


def by_region(
    combine: Combine,
    ranges: Sequence[loop.RangeOp],
    initial: Sequence[Any],
    values: Sequence[Array],
    mask: Array | None,
) -> list[Any]:
    """A reduction by a region: values step by step along the first axis, where the mask is set."""
    if not has_lanes(ranges):
        return in_order(combine, initial, values, mask)
    _, values = apart(ranges, values)
    if mask is not None:
        (mask,) = apart(ranges, [mask])[1]
    own = in_order(combine, initial, values, mask)
    shape = np.broadcast_shapes(values[0].shape[1:], *(np.shape(x) for x in own))
    each = [np.array(np.broadcast_to(x, shape)) for x in own]
    return across(first_of(combine), each, initial)


def by_kind(
    kind: str,
    type_: Attribute,
    ranges: Sequence[loop.RangeOp],
    values: list[Array],
    mask: Array | None,
) -> list[Any]:
    """A reduction of a kind: values step by step along the first axis, where the mask is set."""
    if has_lanes(ranges):
        others, values = apart(ranges, values)
        if mask is not None:
            (mask,) = apart(ranges, [mask])[1]
        (own,) = _by_kind(kind, type_, others, values, mask)
        pair = combine_function("add" if kind in loop.PRODUCT_KINDS else kind, type_)
        each = np.array(np.broadcast_to(own, np.broadcast_shapes(values[0].shape[1:], own.shape)))
        return across(lambda a, b: [pair(a[0], b[0])], [each], [identity_value(kind, type_)])
    return _by_kind(kind, type_, ranges, values, mask)


def _by_kind(
    kind: str,
    type_: Attribute,
    ranges: Sequence[loop.RangeOp],
    values: list[Array],
    mask: Array | None,
) -> list[Any]:
    step = combine_function(kind, type_)
    start = identity_value(kind, type_)

    def combine(accumulators: list[Any], new: list[Any]) -> list[Any]:
        return [step(accumulators[0], *new)]

    row = row_of(type_)
    if is_tree(ranges) and kind not in loop.PRODUCT_KINDS:
        if mask is not None:
            values = [where(mask, v, start) for v in values]
        lanes = [r.constant_end or 0 for r in ranges if r.kind.data == "vector"]
        lanes = int(np.prod(lanes, dtype=np.int64))
        return as_tree(combine, values, len(values[0]) // max(lanes, 1), lanes)
    ufunc = ACCUMULATED.get(kind)
    if ufunc is not None and mask is None and not row.is_bool and row.bits > 16:
        return [accumulated(ufunc, start, values[0])]
    return in_order(combine, [start], values, mask)


def captured(op: loop.ReduceOp) -> list[SSAValue]:
    """The values that a reduction's region uses from outside."""
    inside: set[SSAValue] = {r for inner in op.combiner.walk() for r in inner.results}
    inside.update(a for block in op.combiner.blocks for a in block.args)
    used = [o for inner in op.combiner.walk() for o in inner.operands]
    return [v for v in dict.fromkeys(used) if v not in inside]


def region(block: Block, outer: Sequence[SSAValue]) -> Combine:
    """The step of a reduction by a region; captured values come after its own."""
    steps: list[tuple[Operation, Callable[..., Any] | None]] = []
    for op in block.ops:
        function = None
        if not isinstance(op, loop.YieldOp | arith.ConstantOp):
            function = scalar_function(op)
            if function is None:
                raise not_interpreted(op, "in the region of a reduction")
        steps.append((op, function))

    def combine(accumulators: list[Any], values: list[Any]) -> list[Any]:
        names = (*block.args, *outer)
        known: dict[SSAValue, Any] = dict(zip(names, [*accumulators, *values], strict=True))
        for op, function in steps:
            if isinstance(op, loop.YieldOp):
                return [known[v] for v in op.values]
            if isinstance(op, arith.ConstantOp):
                known[op.result] = constant_value(op.value, op.result.type)
                continue
            assert function is not None
            made = function(*(known[o] for o in op.operands))
            results = made if len(op.results) > 1 else (made,)
            known.update(zip(op.results, results, strict=True))
        raise AssertionError("a region ends in uloop.yield")

    return combine
