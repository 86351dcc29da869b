"""CHLO's ops that broadcast as numpy does, StableHLO's ops whose sizes are operands, and the batch
normalizations: all are other ops in a thin wrapping.

An op whose sizes are operands is converted where its result's type says them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.passes.stablehlo_conversion.builder import (
    Builder,
    array_of,
    element_of,
    known_integer,
    shape_of,
)
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    axes_of,
    invalid,
    number,
    result_type,
    unsupported,
)
from uopc.passes.stablehlo_conversion.shapes import check_axes, dilate, pad_with

Values = Sequence[SSAValue]

_BROADCAST = (
    "add and atan2 divide maximum minimum multiply or power remainder shift_left "
    "shift_right_arithmetic shift_right_logical subtract xor compare select"
)
_BROADCAST_CHLO = "next_after polygamma zeta"


def _broadcasting(rule: Rule) -> Rule:
    """Operands repeated to one shape: aligned at their last axes, or at broadcast_dimensions."""

    def broadcast(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
        if c.lift is not None:
            return rule(c, op, x)
        rank = max((len(shape_of(v)) for v in x), default=0)
        axes = [_aligned(op, shape_of(v), rank) for v in x]
        shape = [1] * rank
        for value, places in zip(x, axes, strict=True):
            for axis, size in zip(places, shape_of(value), strict=True):
                if size != 1 and shape[axis] not in (1, size):
                    raise invalid(op, f"broadcasts sizes {shape[axis]} and {size}")
                shape[axis] = size if shape[axis] == 1 else shape[axis]
        spread = [c.build.spread(v, shape, places) for v, places in zip(x, axes, strict=True)]
        return rule(c, op, spread)

    return broadcast


def _aligned(op: Operation, shape: Sequence[int], rank: int) -> Sequence[int]:
    if len(shape) == rank:
        return range(rank)
    axes = axes_of(op, "broadcast_dimensions", range(rank - len(shape), rank))
    check_axes(op, axes, rank)
    if len(axes) != len(shape):
        raise invalid(op, f"has {len(axes)} broadcast_dimensions for an operand of {len(shape)}")
    return axes


def _constant_like(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    value = op.get_attr_or_prop("value")
    if isinstance(value, FloatAttr):
        return [c.build.like(x[0], value.value.data)]
    return [c.build.like(x[0], number(op, "value"))]


# Sizes that are operands: known, or told by the result's type.


def _known_list(value: SSAValue) -> list[int] | None:
    """The integers of a constant of one axis."""
    single = known_integer(value)
    if single is not None:
        return [single] * math.prod(shape_of(value))
    array = array_of(value)
    return None if array is None else [int(v) for v in array]


def _lists(op: Operation, x: Sequence[SSAValue], rank: int) -> list[list[int]]:
    found: list[list[int]] = []
    for value in x:
        known = _known_list(value)
        if known is None:
            raise unsupported(op, "sizes that are not known")
        if len(known) != rank:
            raise invalid(op, f"has {len(known)} numbers for {rank} axes")
        found.append(known)
    return found


def _real_dynamic_slice(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    shape = shape_of(x[0])
    starts, limits, steps = _lists(op, x[1:4], len(shape))
    for n, start, limit, step in zip(shape, starts, limits, steps, strict=True):
        if not 0 <= start <= limit <= n or step < 1:
            raise invalid(op, f"has no elements {start} to {limit} step {step} in size {n}")
    return [c.build.shrink(x[0], starts, limits, steps)]


def _dynamic_pad(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    low, high, interior = _lists(op, x[2:5], len(shape_of(x[0])))
    if any(count < 0 for count in interior):
        raise invalid(op, f"has interior padding {interior}")
    return [pad_with(c.build, dilate(c.build, x[0], interior, x[1]), low, high, x[1])]


# Normalizations over all axes but that of the features.


def _features(op: Operation, x: SSAValue) -> tuple[int, list[int], float]:
    """The axis of the features, the others, and epsilon."""
    axis = number(op, "feature_index")
    check_axes(op, (axis,), len(shape_of(x)))
    epsilon = op.get_attr_or_prop("epsilon")
    if not isinstance(epsilon, FloatAttr):
        raise invalid(op, "lacks epsilon")
    return axis, [k for k in range(len(shape_of(x))) if k != axis], epsilon.value.data


def _normalized(
    b: Builder, x: SSAValue, mean: SSAValue, variance: SSAValue, axis: int, epsilon: float
) -> tuple[SSAValue, SSAValue]:
    """(x - mean) / sqrt(variance + epsilon), and the root, in the shape of x."""
    mean, variance = (b.spread(v, shape_of(x), (axis,)) for v in (mean, variance))
    root = b.op(e.SqrtOp, b.op(e.AddOp, variance, b.like(variance, epsilon)))
    return b.op(e.DivOp, b.op(e.SubOp, x, mean), root), root


def _mean(b: Builder, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    total = b.reduce("add", x, axes)
    return b.op(e.DivOp, total, b.like(total, math.prod(shape_of(x)[k] for k in axes)))


def _batch_norm_inference(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    b = c.build
    value, scale, offset, mean, variance = x
    axis, _, epsilon = _features(op, value)
    normal, _ = _normalized(b, value, mean, variance, axis, epsilon)
    scale, offset = (b.spread(v, shape_of(value), (axis,)) for v in (scale, offset))
    return [b.op(e.AddOp, b.op(e.MulOp, normal, scale), offset)]


def _batch_norm_training(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """The result, and the mean and the variance of each feature."""
    b = c.build
    value, scale, offset = x
    axis, others, epsilon = _features(op, value)
    mean = b.stage(_mean(b, value, others))
    apart = b.op(e.SubOp, value, b.spread(mean, shape_of(value), (axis,)))
    variance = b.stage(_mean(b, b.op(e.MulOp, apart, apart), others))
    normal, _ = _normalized(b, value, mean, variance, axis, epsilon)
    scale, offset = (b.spread(v, shape_of(value), (axis,)) for v in (scale, offset))
    return [b.op(e.AddOp, b.op(e.MulOp, normal, scale), offset), mean, variance]


def _batch_norm_grad(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """Gradients of x, scale and offset. With z the normalized x and g the result's gradient, that
    of x is scale / root * (g - mean(g) - z mean(g z))."""
    b = c.build
    value, scale, mean, variance, gradient = x
    axis, others, epsilon = _features(op, value)
    shape = shape_of(value)
    normal, root = _normalized(b, value, mean, variance, axis, epsilon)
    weighted = b.op(e.MulOp, gradient, normal)
    of_scale, of_offset = b.reduce("add", weighted, others), b.reduce("add", gradient, others)
    count = b.like(of_offset, math.prod(shape[k] for k in others))
    first = b.spread(b.op(e.DivOp, of_offset, count), shape, (axis,))
    second = b.spread(b.op(e.DivOp, of_scale, count), shape, (axis,))
    rest = b.op(e.SubOp, b.op(e.SubOp, gradient, first), b.op(e.MulOp, normal, second))
    factor = b.op(e.DivOp, b.spread(scale, shape, (axis,)), root)
    return [b.op(e.MulOp, factor, rest), of_scale, of_offset]


def _torch_index_select(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    batch, axis = number(op, "batch_dims", 0), number(op, "dim")
    check_axes(op, (axis,), len(shape_of(x[0])))
    if batch:
        raise unsupported(op, "with batch axes")
    if not math.prod(result_type(op)[1]):
        return [c.build.constant(0, element_of(x[0]), result_type(op)[1])]
    return [c.build.gather(x[0], x[1], axis)]


def broadcasting_rules(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """The rules of this module, those that wrap others taken from `rules`."""
    return {
        **{
            f"chlo.broadcast_{n}": _broadcasting(rules[f"stablehlo.{n}"])
            for n in _BROADCAST.split()
        },
        **{
            f"chlo.broadcast_{n}": _broadcasting(rules[f"chlo.{n}"])
            for n in _BROADCAST_CHLO.split()
        },
        "chlo.constant": rules["stablehlo.constant"],
        "chlo.constant_like": _constant_like,
        "stablehlo.batch_norm_grad": _batch_norm_grad,
        "stablehlo.batch_norm_inference": _batch_norm_inference,
        "stablehlo.batch_norm_training": _batch_norm_training,
        "stablehlo.dynamic_pad": _dynamic_pad,
        "stablehlo.real_dynamic_slice": _real_dynamic_slice,
        "stablehlo.torch_index_select": _torch_index_select,
    }
