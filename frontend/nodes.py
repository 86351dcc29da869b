"""Nodes from nodes: short names for utensor's ops, leaving out what changes nothing.

Types and shapes are the callers' affair: nothing here promotes, and only `broadcast` broadcasts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from uopc.frontend.graph import Node, Shape, apply, constant, text_number


def full_like(value: float | int, node: Node) -> Node:
    """One number in a node's shape and type."""
    return constant(value, node.shape, node.type)


def unary(op: str, x: Node) -> Node:
    return apply(op, (x,))


def binary(op: str, a: Node, b: Node) -> Node:
    return apply(op, (a, b))


def add(a: Node, b: Node) -> Node:
    return apply("add", (a, b))


def sub(a: Node, b: Node) -> Node:
    return apply("sub", (a, b))


def mul(a: Node, b: Node) -> Node:
    return apply("mul", (a, b))


def div(a: Node, b: Node) -> Node:
    return apply("div", (a, b))


def scaled(x: Node, factor: float | int) -> Node:
    """x times a number."""
    return apply("mul", (x, full_like(factor, x)))


def neg(x: Node) -> Node:
    return apply("neg", (x,))


def where(condition: Node, a: Node, b: Node) -> Node:
    return apply("where", (condition, a, b))


def cast(x: Node, type_: str) -> Node:
    return x if x.type == type_ else apply("cast", (x,), (type_,))


def reshape(x: Node, shape: Shape) -> Node:
    if x.shape == shape:
        return x
    if x.op == "constant" and math.prod(shape) == math.prod(x.shape):
        return constant(text_number(x.attributes[0]), shape, x.type)
    if x.op == "reshape":
        return reshape(x.sources[0], shape)
    return apply("reshape", (x,), (shape,))


def expand(x: Node, shape: Shape) -> Node:
    if x.shape == shape:
        return x
    if x.op == "constant" and all(a in (1, b) for a, b in zip(x.shape, shape, strict=True)):
        return constant(text_number(x.attributes[0]), shape, x.type)
    return apply("expand", (x,), (shape,))


def broadcast(x: Node, shape: Shape) -> Node:
    """numpy's broadcasting to a shape that x fits."""
    if x.shape == shape:
        return x
    padded = (1,) * (len(shape) - len(x.shape)) + x.shape
    return expand(reshape(x, padded), shape)


def permute(x: Node, order: Sequence[int]) -> Node:
    order = tuple(order)
    return x if order == tuple(range(len(x.shape))) else apply("permute", (x,), (order,))


def flip(x: Node, axes: Sequence[int]) -> Node:
    return apply("flip", (x,), (tuple(axes),)) if axes else x


def shrink(
    x: Node, begins: Sequence[int], ends: Sequence[int], steps: Sequence[int] | None = None
) -> Node:
    steps = tuple(steps) if steps is not None else (1,) * len(x.shape)
    if all(b == 0 for b in begins) and tuple(ends) == x.shape and all(s == 1 for s in steps):
        return x
    return apply("shrink", (x,), (tuple(begins), tuple(ends), steps))


def pad(x: Node, low: Sequence[int], high: Sequence[int], value: str = "0") -> Node:
    """`value` is a number as graph.number_text writes it."""
    if not any(low) and not any(high):
        return x
    return apply("pad", (x,), (tuple(low), tuple(high), value))


def reduce(kind: str, x: Node, axes: Sequence[int]) -> Node:
    return apply("reduce", (x,), (kind, tuple(sorted(axes)))) if axes else x


def kept(shape: Shape, axes: Sequence[int]) -> Shape:
    """A shape with some axes made 1."""
    return tuple(1 if k in axes else n for k, n in enumerate(shape))


def spread(x: Node, shape: Shape, axes: Sequence[int]) -> Node:
    """What reducing `axes` of `shape` gave, repeated along them again."""
    return expand(reshape(x, kept(shape, axes)), shape)


def gather(x: Node, indices: Node, axis: int) -> Node:
    return apply("gather", (x, indices), (axis,))


def scatter(kind: str, x: Node, indices: Node, updates: Node, axis: int) -> Node:
    return apply("scatter", (x, indices, updates), (kind, axis))


def detach(x: Node) -> Node:
    return apply("stage", (x,), ("detach",)) if x.tracked else x
