"""Gather and scatter in all forms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from uopc.frontend import nodes
from uopc.frontend.core import one_axis, wrap
from uopc.frontend.creation import index_along
from uopc.frontend.graph import constant
from uopc.frontend.indexing import take_node, wrapped_positions
from uopc.frontend.onnx_import.call import Call, Result, Rules
from uopc.frontend.onnx_import.elementwise import number

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

REDUCTIONS = {"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def _gather(c: Call) -> Result:
    x, indices = c[0], c[1]
    axis = c.axis(0, x.ndim)
    positions = wrapped_positions(indices.node, x.shape[axis])
    return wrap(take_node(x.node, positions, axis))


def _gather_elements(c: Call) -> Result:
    return c[0].gather(c.axis(0, c[0].ndim), c[1])


def _flat(c: Call, indices: Tensor, shape: Sequence[int], batch: int) -> Tensor:
    """Flat positions, in i64, of index vectors along the last axis of `indices`, which name
    axes from `batch` on; earlier axes are those of the indices. In units of what is not named."""
    count = indices.shape[-1]
    if not 0 < count <= len(shape) - batch:
        raise c.invalid(f"has index vectors of {count} numbers for shape {list(shape)}")
    lead = indices.shape[:-1]
    total = wrap(constant(0, lead, "i64"))
    for axis in range(batch + count):
        if axis < batch:
            at = index_along(shape[axis], axis, len(lead), "i64")
        else:
            k = axis - batch
            part = indices.shrink([*[None] * len(lead), (k, k + 1)]).reshape(lead)
            at = wrap(nodes.cast(wrapped_positions(part.node, shape[axis]), "i64"))
        total = total * number(shape[axis], total) + at
    return total


def _gather_nd(c: Call) -> Result:
    x, indices, batch = c[0], c[1], c.integer("batch_dims", 0)
    if not 0 <= batch < min(x.ndim, indices.ndim) or x.shape[:batch] != indices.shape[:batch]:
        raise c.invalid(f"has {batch} batch axes of {list(x.shape)} and {list(indices.shape)}")
    named = batch + indices.shape[-1]
    flat = x.reshape((math.prod(x.shape[:named]), *x.shape[named:]))
    return wrap(take_node(flat.node, _flat(c, indices, x.shape, batch).node, 0))


def _reduction(c: Call) -> str:
    word = c.word("reduction", "none")
    if word not in REDUCTIONS:
        raise c.invalid(f"has reduction '{word}'")
    return REDUCTIONS[word]


def _scatter_elements(c: Call) -> Result:
    kinds = {"set": None, "add": "add", "mul": "multiply", "max": "amax", "min": "amin"}
    return c[0].scatter(c.axis(0, c[0].ndim), c[1], c[2], kinds[_reduction(c)])


def _scatter_nd(c: Call) -> Result:
    x, indices, updates = c[0], c[1], c[2]
    named = indices.shape[-1]
    places = _flat(c, indices, x.shape, 0)
    rest = x.shape[named:]
    if updates.shape != (*places.shape, *rest):
        raise c.invalid(f"has updates of {list(updates.shape)}, not {[*places.shape, *rest]}")
    flat = x.reshape((math.prod(x.shape[:named]), *rest))
    rows = updates.reshape((places.size, *rest))
    at = places.reshape((places.size,))
    return wrap(nodes.scatter(_reduction(c), flat.node, at.node, rows.node, 0)).reshape(x.shape)


def _tensor_scatter(c: Call) -> Result:
    """A cache written from a place on along an axis, the place given for each row of a batch."""
    past, update = c[0], c[1]
    axis = one_axis(c.integer("axis", -2), past.ndim)
    size, steps = past.shape[axis], update.shape[axis]
    at = index_along(steps, axis, past.ndim, "i64")
    if c.get(2) is not None:
        at = at + c[2].cast("i64").reshape((-1, *[1] * (past.ndim - 1)))
    mode = c.word("mode", "linear")
    if mode == "circular":
        at = at % number(size, at)
    elif mode != "linear":
        raise c.invalid(f"has mode '{mode}'")
    return past.scatter(axis, at.expand(update.shape), update)


INDEX_RULES: Rules = {
    "Gather": {1: _gather},
    "GatherElements": {11: _gather_elements},
    "GatherND": {11: _gather_nd},
    "Scatter": {9: _scatter_elements},
    "ScatterElements": {11: _scatter_elements},
    "ScatterND": {11: _scatter_nd},
    "TensorScatter": {24: _tensor_scatter},
}
