"""Elements by order and by place: sort, topk, gather and scatter along an axis, one-hot.

Sorting compares all pairs: each element's rank is how many come before it. That is n^2 comparisons
in one fused kernel, without memory: meant for axes of up to a few thousand elements.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from uopc.frontend import nodes
from uopc.frontend.core import Operand, bad, one_axis, tensor, wrap
from uopc.frontend.creation import index_along
from uopc.frontend.graph import Node, iota
from uopc.frontend.indexing import take_node, wrapped_positions

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def argsort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """The positions that sort an axis, stably. NaN counts as larger than everything."""
    if x.ndim == 0:
        return index_along(1, 0, 1).reshape(())
    at = one_axis(axis, x.ndim)
    last = wrap(nodes.detach(x.node)).moveaxis(at, -1)
    n = last.shape[-1]
    mine, theirs = last.unsqueeze(-1), last.unsqueeze(-2)
    me, they = index_along(n, 0, 2), index_along(n, 1, 2)
    a, b = (mine, theirs) if descending else (theirs, mine)
    before = a < b
    same = mine == theirs
    if x.element[0] in "fb":
        before = before | (b.isnan() & (a == a))
        same = same | (mine.isnan() & theirs.isnan())
    rank = (before | (same & (they < me))).sum(-1)
    # The inverse permutation: at place k stands the element whose rank is k.
    places = (rank.unsqueeze(-2) == index_along(n, 0, 2)).where(index_along(n, 1, 2), 0)
    return places.sum(-1).moveaxis(-1, at)


def sort(x: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """The elements of an axis in order, and the positions that they had."""
    if x.ndim == 0:
        return x, argsort(x)
    places = argsort(x, axis, descending)
    return gather(x, axis, places), places


def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest or smallest of an axis, in order, and their positions."""
    at = one_axis(axis, x.ndim)
    if not 0 <= k <= x.shape[at]:
        raise bad("wrong-argument", f"topk of {k} along an axis of size {x.shape[at]}")
    bounds = [(0, k) if a == at else None for a in range(x.ndim)]
    places = argsort(x, at, largest).shrink(bounds)
    return gather(x, at, places), places


def _linear(x: Tensor, axis: int, index: Tensor) -> Node:
    """Positions in the flat tensor of places along an axis."""
    if index.ndim != x.ndim or any(
        i > n for k, (i, n) in enumerate(zip(index.shape, x.shape, strict=True)) if k != axis
    ):
        raise bad(
            "wrong-operands",
            f"positions of shape {list(index.shape)} for a tensor of shape {list(x.shape)}",
            "the ranks are equal, and other axes no longer than the tensor's",
        )
    if index.element[0] in "fb" or index.element == "i1":
        raise bad("bad-index", f"positions are whole numbers, got {index.element}")
    own = nodes.cast(wrapped_positions(index.node, x.shape[axis]), "i64")
    top = nodes.full_like(max(x.shape[axis] - 1, 0), own)
    own = nodes.binary("max", nodes.binary("min", own, top), nodes.full_like(0, own))
    total: Node | None = None
    for k in range(x.ndim):
        stride = math.prod(x.shape[k + 1 :])
        at = own if k == axis else iota(k, index.shape, "i64")
        part = nodes.scaled(at, stride)
        total = part if total is None else nodes.add(total, part)
    assert total is not None
    return total


def gather(x: Tensor, axis: int, index: Operand) -> Tensor:
    """torch.gather, numpy.take_along_axis: at each place of `index` the element of x at that
    position along an axis."""
    at = one_axis(axis, x.ndim)
    positions = _linear(x, at, tensor(index))
    return wrap(take_node(nodes.reshape(x.node, (x.size,)), positions, 0))


SCATTER = {None: "set", "add": "add", "sum": "add", "multiply": "mul", "prod": "mul",
           "amax": "max", "amin": "min"}  # fmt: skip


def scatter(
    x: Tensor, axis: int, index: Operand, source: Operand, reduce: str | None = None
) -> Tensor:
    """torch.scatter: x with elements of `source` put at positions along an axis, or combined with
    what is there: add, multiply, amax, amin. Of several at one place the last stays."""
    at = one_axis(axis, x.ndim)
    places = tensor(index)
    if reduce not in SCATTER:
        raise bad("wrong-argument", f"there is no reduction {reduce!r}")
    values = tensor(source).cast(x.element)
    if values.ndim == 0:
        values = values.expand(places.shape)
    values = values.shrink([(0, n) for n in places.shape])
    count = places.size
    updated = nodes.scatter(
        SCATTER[reduce],
        nodes.reshape(x.node, (x.size,)),
        nodes.reshape(_linear(x, at, places), (count,)),
        nodes.reshape(values.node, (count,)),
        0,
    )
    return wrap(nodes.reshape(updated, x.shape))


def scatter_add(x: Tensor, axis: int, index: Operand, source: Operand) -> Tensor:
    """scatter with addition."""
    return scatter(x, axis, index, source, "add")


def one_hot(x: Tensor, classes: int) -> Tensor:
    """A new last axis with 1 at the position that each element names, 0 elsewhere, in i32."""
    wide = x.unsqueeze(-1)
    return (wide == index_along(classes, wide.ndim - 1, wide.ndim)).cast("i32")


def embedding(x: Tensor, weight: Operand) -> Tensor:
    """The rows of `weight` that the elements of x name."""
    return tensor(weight)[x]


def searchsorted(x: Tensor, values: Operand, right: bool = False) -> Tensor:
    """Where values go into the sorted vector x."""
    wanted = tensor(values).unsqueeze(-1)
    before = (x <= wanted) if right else (x < wanted)
    return before.sum(-1)


def bincount(x: Tensor, classes: int) -> Tensor:
    """How often each of the numbers 0 to classes - 1 occurs."""
    return one_hot(x.flatten(), classes).sum(0)
