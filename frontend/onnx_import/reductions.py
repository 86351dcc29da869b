"""Reductions, softmax and its kin, running totals, positions of extremes, order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from uopc.frontend import nodes
from uopc.frontend.core import all_axes, wrap
from uopc.frontend.creation import index_along
from uopc.frontend.elementwise import where
from uopc.frontend.graph import apply
from uopc.frontend.onnx_import.call import Call, Result, Rule, Rules
from uopc.frontend.onnx_import.elementwise import number
from uopc.frontend.promotion import is_float
from uopc.frontend.reductions import log_softmax, running, softmax

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor

Axes = tuple[int, ...]


def reduced(kind: str, x: Tensor, axes: Axes, keep: bool) -> Tensor:
    """A reduction in the type of its operand."""
    result = wrap(nodes.reduce(kind, x.node, axes))
    return result.reshape(nodes.kept(x.shape, axes)) if keep else result


def _axes(c: Call, x: Tensor) -> Axes:
    """The axes of an attribute, or since version 13 or 18 of an input."""
    given = c.integers("axes") if c.has("axes") else c.known_ints(1)
    if not given and c.flag("noop_with_empty_axes"):
        return ()
    return all_axes(given or None, x.ndim)


def _reduction(function: Callable[[Tensor, Axes, bool], Tensor]) -> Rule:
    def rule(c: Call) -> Result:
        return function(c[0], _axes(c, c[0]), c.flag("keepdims", True))

    return rule


def _plain(kind: str, of_bools: str = "") -> Rule:
    def function(x: Tensor, axes: Axes, keep: bool) -> Tensor:
        return reduced(of_bools if x.element == "i1" and of_bools else kind, x, axes, keep)

    return _reduction(function)


def _count(x: Tensor, axes: Axes) -> int:
    return math.prod(x.shape[k] for k in axes)


def mean(x: Tensor, axes: Axes, keep: bool = True) -> Tensor:
    """The mean; of whole numbers it is truncated."""
    total = reduced("add", x, axes, keep)
    count = number(_count(x, axes), total)
    return total / count if is_float(x.element) else total.truncdiv(count)


def _in_floats(function: Callable[[Tensor, Axes, bool], Tensor]) -> Rule:
    """Of whole numbers in f64, and truncated."""

    def wide(x: Tensor, axes: Axes, keep: bool) -> Tensor:
        if is_float(x.element):
            return function(x, axes, keep)
        return function(x.cast("f64"), axes, keep).cast(x.element)

    return _reduction(wide)


def _log_sum_exp(x: Tensor, axes: Axes, keep: bool) -> Tensor:
    if not axes:
        return x
    return x.logsumexp(axes, keepdim=keep)


# Softmax.


def _soft(function: Callable[[Tensor, int], Tensor]) -> Rule:
    def rule(c: Call) -> Result:
        return function(c[0], c.axis(-1, c[0].ndim))

    return rule


def _soft_flat(function: Callable[[Tensor, int], Tensor]) -> Rule:
    """Up to version 11: the axes before `axis` as one, and all others as another."""

    def rule(c: Call) -> Result:
        x = c[0]
        lead = math.prod(x.shape[: c.axis(1, x.ndim)])
        flat = x.reshape((lead, x.size // lead if lead else 0))
        return function(flat, 1).reshape(x.shape)

    return rule


def _hardmax(x: Tensor, axis: int) -> Tensor:
    first = wrap(apply("argreduce", (x.node,), ("max", axis, "i64"))).unsqueeze(axis)
    hot = index_along(x.shape[axis], axis, x.ndim, "i64") == first
    return hot.cast(x.element)


# Positions and order.


def _position(kind: str) -> Rule:
    def rule(c: Call) -> Result:
        x = c[0]
        axis = c.axis(0, x.ndim)
        last = c.flag("select_last_index")
        if not x.shape[axis]:
            raise c.invalid(f"takes the largest of axis {axis}, which has no elements")
        node = x.flip(axis).node if last else x.node
        found = wrap(apply("argreduce", (node,), (kind, axis, "i64")))
        if last:
            found = number(x.shape[axis] - 1, found) - found
        return found.unsqueeze(axis) if c.flag("keepdims", True) else found

    return rule


def _top_k(c: Call) -> Result:
    x = c[0]
    axis = c.axis(-1, x.ndim)
    count = c.integer("k") if c.version < 10 else int(c.known(1).reshape(-1)[0])
    values, places = x.topk(count, axis, c.flag("largest", True))
    return [values, places.cast("i64")]


def _running(kind: str) -> Rule:
    def rule(c: Call) -> Result:
        x = c[0]
        axis = all_axes(int(c.known(1).reshape(-1)[0]), x.ndim)[0]
        backwards = c.flag("reverse")
        x = x.flip(axis) if backwards else x
        result = running(kind, x, axis)
        if c.flag("exclusive") and x.shape[axis]:
            moved = result.shrink(
                [(0, n - 1) if k == axis else None for k, n in enumerate(x.shape)]
            )
            pairs = [(1, 0) if k == axis else (0, 0) for k in range(x.ndim)]
            result = moved.pad(pairs, value=0 if kind == "add" else 1)
        return result.flip(axis) if backwards else result

    return rule


def _lp_normalization(c: Call) -> Result:
    x, p = c[0], c.integer("p", 2)
    axis = c.axis(-1, x.ndim)
    if p not in (1, 2):
        raise c.invalid(f"has p {p}, expected 1 or 2")
    norm = x.norm(float(p), axis, keepdim=True)
    return where(norm == number(0, x), number(0, x), x / norm)


REDUCTION_RULES: Rules = {
    "ArgMax": {1: _position("max")},
    "ArgMin": {1: _position("min")},
    "CumProd": {26: _running("mul")},
    "CumSum": {11: _running("add")},
    "Hardmax": {1: _soft_flat(_hardmax), 13: _soft(_hardmax)},
    "LogSoftmax": {1: _soft_flat(log_softmax), 13: _soft(log_softmax)},
    "LpNormalization": {1: _lp_normalization},
    "ReduceL1": {1: _reduction(lambda x, a, k: reduced("add", x.abs(), a, k))},
    "ReduceL2": {1: _in_floats(lambda x, a, k: reduced("add", x * x, a, k).sqrt())},
    "ReduceLogSum": {1: _in_floats(lambda x, a, k: reduced("add", x, a, k).log())},
    "ReduceLogSumExp": {1: _in_floats(_log_sum_exp)},
    "ReduceMax": {1: _plain("max", "or")},
    "ReduceMean": {1: _reduction(mean)},
    "ReduceMin": {1: _plain("min", "and")},
    "ReduceProd": {1: _plain("mul")},
    "ReduceSum": {1: _plain("add")},
    "ReduceSumSquare": {1: _reduction(lambda x, a, k: reduced("add", x * x, a, k))},
    "Softmax": {1: _soft_flat(softmax), 13: _soft(softmax)},
    "TopK": {1: _top_k},
}
