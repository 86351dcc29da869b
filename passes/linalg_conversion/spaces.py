"""Iteration spaces: what each loop is long, and each operand as an array over all of them.

An operand's map has an expression an axis: `d0`, which is a loop, or `d0 * 2 + d3 * 1`, which is a
window that a second loop runs through. An operand is spread over the loops it does not mention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from uopc.passes.stablehlo_conversion.builder import Builder, element_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import invalid, unsupported
from uopc.passes.stablehlo_conversion.windows import Window, windows


@dataclass(frozen=True)
class Axis:
    """An axis of an operand: the loops that move along it, each with its step."""

    loops: tuple[tuple[int, int], ...]


Access = tuple[Axis, ...]


def access_of(op: Operation, map_: AffineMapAttr) -> Access:
    """A map's axes. Raises UnsupportedError for what is no sum of loops with steps above 0."""
    found: list[Axis] = []
    for expr in map_.data.results:
        terms: dict[int, int] = {}
        if not _collect(expr, 1, terms) or any(step < 1 for step in terms.values()):
            raise unsupported(op, f"its map {map_.data} is no sum of loops")
        if len(terms) > 2:
            raise unsupported(op, f"its map {map_.data} adds more than two loops")
        found.append(Axis(tuple(terms.items())))
    return tuple(found)


def _collect(expr: AffineExpr, factor: int, terms: dict[int, int]) -> bool:
    if isinstance(expr, AffineDimExpr):
        terms[expr.position] = terms.get(expr.position, 0) + factor
        return True
    if isinstance(expr, AffineConstantExpr):
        return expr.value == 0
    if isinstance(expr, AffineBinaryOpExpr):
        if expr.kind is AffineBinaryOpKind.Add:
            return _collect(expr.lhs, factor, terms) and _collect(expr.rhs, factor, terms)
        if expr.kind is AffineBinaryOpKind.Mul and isinstance(expr.rhs, AffineConstantExpr):
            return _collect(expr.lhs, factor * expr.rhs.value, terms)
    return False


def loop_sizes(
    op: Operation, count: int, accesses: Sequence[Access], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The length of each loop, from the axes that it alone runs along."""
    sizes: dict[int, int] = {}
    for access, shape in zip(accesses, shapes, strict=True):
        if len(access) != len(shape):
            raise invalid(op, f"has a map of {len(access)} results for {len(shape)} axes")
        for axis, n in zip(access, shape, strict=True):
            if len(axis.loops) == 1 and axis.loops[0][1] == 1:
                loop = axis.loops[0][0]
                if sizes.setdefault(loop, n) != n:
                    raise invalid(op, f"runs loop {loop} to {sizes[loop]} and to {n}")
    missing = [k for k in range(count) if k not in sizes]
    if missing:
        raise unsupported(op, f"no axis tells how long loop {missing[0]} is")
    return tuple(sizes[k] for k in range(count))


def over_loops(
    b: Builder, op: Operation, value: SSAValue, access: Access, sizes: Sequence[int]
) -> SSAValue:
    """An operand's element at each point of the iteration space."""
    mentioned = [loop for axis in access for loop, _ in axis.loops]
    if len(set(mentioned)) != len(mentioned):
        raise unsupported(op, "a loop runs along two axes of one operand")
    if all(len(axis.loops) == 1 and axis.loops[0][1] == 1 for axis in access):
        return b.spread(value, sizes, mentioned)
    lengths: list[int] = []
    strides: list[int] = []
    dilations: list[int] = []
    ends: list[int] = []
    for axis, n in zip(access, shape_of(value), strict=True):
        (first, step), (second, dilation) = (*axis.loops, (-1, 1), (-1, 1))[:2]
        count = sizes[first] if first >= 0 else 1
        length = sizes[second] if second >= 0 else 1
        end = (count - 1) * step + (length - 1) * dilation + 1 if count and length else 0
        if end > n:
            raise invalid(op, f"reads element {end - 1} of an axis of {n}")
        lengths.append(length)
        strides.append(step)
        dilations.append(dilation)
        ends.append(end)
    if not all(sizes):
        return b.constant(0, element_of(value), tuple(sizes))
    rank = len(access)
    value = b.shrink(value, [0] * rank, ends)
    none = (0,) * rank
    window = Window(tuple(lengths), tuple(strides), none, none, (1,) * rank, tuple(dilations))
    zero = b.constant(0, element_of(value))
    seen = windows(b, value, window, zero)
    places = [axis.loops[0][0] if axis.loops else -1 for axis in access]
    places += [axis.loops[1][0] if len(axis.loops) == 2 else -1 for axis in access]
    kept = [k for k, loop in enumerate(places) if loop >= 0]
    seen = b.reshape(seen, [shape_of(seen)[k] for k in kept])
    return b.spread(seen, sizes, [places[k] for k in kept])
