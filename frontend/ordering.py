"""Elements by order and by place: sort, topk, gather and scatter along an axis, one-hot.

Sorting compares all pairs: each element's rank is how many come before it. That is n^2 comparisons
in one fused kernel, without memory: meant for axes of up to a few thousand elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uopc.frontend import nodes
from uopc.frontend.core import (
    Number,
    Operand,
    array_node,
    bad,
    broadcast_shapes,
    known_elements,
    one_axis,
    plain,
    tensor,
    wrap,
)
from uopc.frontend.creation import index_along
from uopc.frontend.elementwise import limits_of, where
from uopc.frontend.extents import is_symbolic
from uopc.frontend.graph import Node, iota
from uopc.frontend.indexing import check_inside, getitem, take_node, with_item, wrapped_positions

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
    at, k = one_axis(axis, x.ndim), plain(k)
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


def take_along_dim(x: Tensor, index: Operand, axis: int = -1) -> Tensor:
    """`gather` with the axis last, as numpy.take_along_axis has it; other axes broadcast."""
    at, places = one_axis(axis, x.ndim), tensor(index)
    shape = broadcast_shapes(
        *[tuple(1 if k == at else n for k, n in enumerate(t.shape)) for t in (x, places)]
    )
    a, b = (t.expand(tuple(t.shape[at] if k == at else n for k, n in enumerate(shape)))
            for t in (x, places))  # fmt: skip
    return gather(a, at, b)


def kthvalue(x: Tensor, k: int, axis: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest of an axis, from 1, and its position."""
    at = one_axis(axis, x.ndim)
    values, places = topk(x, k, at, largest=False)
    found = [t[(*[slice(None)] * at, slice(k - 1, k))] for t in (values, places)]
    a, b = found if keepdim else (t.squeeze(at) for t in found)
    return a, b


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


REDUCE = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "mean": "add"}


def scatter_reduce(
    x: Tensor, axis: int, index: Operand, source: Operand, reduce: str, include_self: bool = True
) -> Tensor:
    """torch.scatter_reduce: elements of `source` combined at positions along an axis by sum, prod,
    mean, amax or amin; with what is there, or without it where something comes."""
    if reduce not in REDUCE:
        raise bad("wrong-argument", f"there is no reduction {reduce!r}",
                  f"expected one of {', '.join(REDUCE)}")  # fmt: skip
    places = tensor(index)
    low, high = limits_of(x.element)
    ones = x.ones_like()
    hits = (ones * 0).scatter(axis, places, ones.flatten()[:1].reshape(()), "add")
    start: dict[str, Any] = {"sum": 0, "mean": 0, "prod": 1, "amax": low, "amin": high}
    base = x if include_self else where(hits > 0, start[reduce], x)
    mode = {"sum": "add", "mean": "add", "prod": "multiply"}.get(reduce, reduce)
    result = base.scatter(axis, places, source, mode)
    if reduce != "mean":
        return result
    count = hits + 1 if include_self else hits.maximum(1)
    return result / count if x.element[0] in "fb" else result // count


def index_add(x: Tensor, axis: int, index: Operand, source: Operand, alpha: Number = 1) -> Tensor:
    """x with slices of `source` added at positions along an axis."""
    return _at_positions("add", x, axis, index, tensor(source) * alpha)


def index_copy(x: Tensor, axis: int, index: Operand, source: Operand) -> Tensor:
    """x with slices of `source` at positions along an axis; the last of one position stays."""
    return _at_positions("set", x, axis, index, tensor(source))


def index_fill(x: Tensor, axis: int, index: Operand, value: Operand) -> Tensor:
    """x with one number at positions along an axis."""
    return _at_positions("set", x, axis, index, tensor(value))


def _at_positions(kind: str, x: Tensor, axis: int, index: Operand, source: Tensor) -> Tensor:
    at, places = one_axis(axis, x.ndim), tensor(index).flatten()
    shape = tuple(places.size if k == at else n for k, n in enumerate(x.shape))
    updates = source.cast(x.element).expand(shape)
    positions = wrapped_positions(places.node, x.shape[at])
    return wrap(nodes.scatter(kind, x.node, positions, updates.node, at))


def index_put(
    x: Tensor, indices: Sequence[Operand], values: Operand, accumulate: bool = False
) -> Tensor:
    """x with values at positions given axis by axis, in place of what is there, or added."""
    key = tuple(indices)
    if not accumulate:
        return with_item(x, key, values)
    places = wrap(iota(0, (x.size,), "i64")).reshape(x.shape)[key]
    added = tensor(values).cast(x.element).expand(places.shape).flatten()
    flat = nodes.scatter("add", x.flatten().node, places.flatten().node, added.node, 0)
    return wrap(nodes.reshape(flat, x.shape))


def nonzero(x: Tensor) -> Tensor:
    """The positions of what is not zero, one a row, in i32. x is computed, since the result's
    shape depends on it: not in a function that is being traced."""
    return wrap(array_node(np.argwhere(x.numpy()), "i32"))


def masked_select(x: Tensor, mask: Operand) -> Tensor:
    """What is chosen by a mask, as a vector. The mask is computed: see `nonzero`."""
    m = tensor(mask).cast("i1")
    shape = broadcast_shapes(x.shape, m.shape)
    return getitem(x.expand(shape), m.expand(shape))


def one_hot(x: Tensor, classes: int) -> Tensor:
    """A new last axis with 1 at the position that each element names, 0 elsewhere, in i32."""
    wide = x.unsqueeze(-1)
    return (wide == index_along(classes, wide.ndim - 1, wide.ndim)).cast("i32")


def embedding(x: Tensor, weight: Operand) -> Tensor:
    """The rows of `weight` that the elements of x name; below 0 they count from the end. Raises
    UopcError [bad-index] for a row that is not there, if x is data: one that is computed, or in a
    function under uopc.jit, reads the last row instead, or the first."""
    table = tensor(weight)
    rows = table[x]
    positions, count = known_elements(x), table.shape[0]
    if positions is not None and positions.dtype.kind in "iu" and not is_symbolic(count):
        check_inside(positions, count, "the table's rows, axis 0")
    return rows


def searchsorted(x: Tensor, values: Operand, right: bool = False) -> Tensor:
    """Where values go into the sorted vector x."""
    wanted = tensor(values).unsqueeze(-1)
    before = (x <= wanted) if right else (x < wanted)
    return before.sum(-1)


def bincount(x: Tensor, classes: int) -> Tensor:
    """How often each of the numbers 0 to classes - 1 occurs."""
    return one_hot(x.flatten(), classes).sum(0)
