"""The reference semantics with, for each number, how far a compiled program may be from it.

    results = bounded_results(function, inputs, sizes)     # [(value, error)], arrays of one shape

An error of 0 means exact, to the sign of zero; infinity means that nothing is known: where a
rounding decided a comparison, a cast or a position, both sides are right. The bounds are those of
docs/numerics.md: 4 ulp for a transcendental function, n * eps * sum(|x|) for a sum, of bf16
n * 2**-126 more.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from uopc.dialects import tensor as t
from uopc.dialects import tensor_elementwise as e
from uopc.dialects import tensor_movement as m
from uopc.dialects.element_types import ElementType, accumulator, element_type_named
from uopc.dialects.tensor_elementwise import element_of, tensor_of
from uopc.interpreters import movement, reductions
from uopc.interpreters.symbols import concrete
from uopc.interpreters.tensor import TENSOR_SEMANTICS

TRANSCENDENTAL = (
    e.CbrtOp, e.ExpOp, e.Exp2Op, e.Expm1Op, e.LogOp, e.Log2Op, e.Log10Op, e.Log1pOp, e.SinOp,
    e.CosOp, e.TanOp, e.AsinOp, e.AcosOp, e.AtanOp, e.SinhOp, e.CoshOp, e.TanhOp, e.AsinhOp,
    e.AcoshOp, e.AtanhOp, e.ErfOp, e.PowOp, e.Atan2Op,
)  # fmt: skip
SMOOTH = (e.AddOp, e.SubOp, e.MulOp, e.NegOp, e.AbsOp, e.MaxOp, e.MinOp, e.WhereOp, e.CastOp)
"""Ops for which the corners of the operands' intervals bound the result however wide they are."""

# digits, the smallest step and the largest number of each float type
FORMATS = {
    "f64": (53, 2.0**-1074, 1.7976931348623157e308),
    "f32": (24, 2.0**-149, 3.4028234663852886e38),
    "f16": (11, 2.0**-24, 65504.0),
    "bf16": (8, 2.0**-133, 3.3895313892515355e38),
}

Array = np.ndarray
Bounded = tuple[Array, Array]


def bounded_results(
    function: FuncOp, inputs: Sequence[Array], sizes: Mapping[str, int]
) -> list[Bounded]:
    """What the function returns, each number with its error."""
    block = function.body.block
    values: dict[object, Bounded] = {
        argument: (array, np.zeros(array.shape))
        for argument, array in zip(block.args, inputs, strict=True)
    }
    *body, last = block.ops
    with np.errstate(all="ignore"):
        for op in body:
            operands = [values[o] for o in op.operands]
            if isinstance(op, t.ReduceOp):
                operands[0] = (operands[0][0], operands[0][1] + unrounded(op, values))
            arrays = [value for value, _ in operands]
            result = TENSOR_SEMANTICS[type(op)](op, arrays, sizes)
            error = propagated(op, operands, result, sizes)
            values[op.results[0]] = (result, np.broadcast_to(error, result.shape))
    return [values[o] for o in last.operands]


def propagated(
    op: Operation, operands: list[Bounded], result: Array, sizes: Mapping[str, int]
) -> Array:
    """The error of an op's result."""
    match op:
        case t.ConstantOp() | t.IotaOp():
            return np.zeros(result.shape)
        case m.PadOp():
            low, high = concrete(op.low.data, sizes), concrete(op.high.data, sizes)
            return movement.pad(operands[0][1], low, high, 0.0)
        case m.MovementOp() if not isinstance(op, t.ReduceOp | t.ArgreduceOp):
            return TENSOR_SEMANTICS[type(op)](op, [operands[0][1]], sizes)
        case t.ReduceOp():
            return reduced(op, *operands[0])
        case t.ArgreduceOp():
            known = np.max(operands[0][1], axis=op.axis.value.data, initial=0.0) == 0
            return np.where(known, 0.0, np.inf)
        case t.GatherOp():
            return gathered(op, operands)
        case t.ScatterOp():
            return scattered(op, operands)
        case _:
            return elementwise(op, operands, result)


def ulp(value: Array, row: ElementType) -> Array:
    """The distance from a number to the next, of its element type, as f64."""
    digits, smallest, _ = FORMATS[row.name]
    magnitude = np.abs(value.astype(np.float64))
    exponent = np.frexp(np.where(np.isfinite(magnitude), magnitude, 0.0))[1]
    return np.maximum(np.ldexp(1.0, exponent - digits), smallest)


def elementwise(op: Operation, operands: list[Bounded], result: Array) -> Array:
    """The spread of the result over the corners of the operands' intervals."""
    row = element_of(tensor_of(op.results[0]))
    own = np.zeros(result.shape)
    if isinstance(op, TRANSCENDENTAL) and row.is_float:
        own = own_error(op, operands, result, row)
    errors = [error for _, error in operands]
    moved = np.zeros(result.shape, bool)
    for error in errors:
        moved = moved | (error > 0)
    if not moved.any():
        return own
    spread = np.zeros(result.shape)
    for corner in itertools.product(*(corners(*operand) for operand in operands)):
        other = TENSOR_SEMANTICS[type(op)](op, corner)
        same = (other == result) | ((other != other) & (result != result))
        apart = np.abs(other.astype(np.float64) - result.astype(np.float64))
        if not row.is_float:
            apart = np.full(result.shape, np.inf)
        apart = np.where(np.isfinite(apart), apart, np.inf)
        spread = np.maximum(spread, np.where(same, 0.0, apart))
    if row.is_float:
        spread = np.where(np.isfinite(spread), 2 * spread + 2 * ulp(result, row), np.inf)
        if not isinstance(op, SMOOTH):
            spread = np.where(wide(operands) | (not continuous(op)), np.inf, spread)
        spread = spread + own
        beyond = np.abs(result.astype(np.float64)) + spread > FORMATS[row.name][2]
        spread = np.where(beyond | np.isinf(result.astype(np.float64)), np.inf, spread)
    unknown = np.zeros(result.shape, bool)
    for error in errors:
        unknown = unknown | np.isinf(error)
    return np.where(unknown, np.inf, np.where(moved, spread, own))


def own_error(op: Operation, operands: list[Bounded], result: Array, row: ElementType) -> Array:
    """4 ulp; nothing where a finite operand is at the edge of overflow."""
    big = np.abs(result.astype(np.float64)) > FORMATS[row.name][2] * (1 - 2.0**-6)
    special = np.zeros(result.shape, bool)
    for value, _ in operands:
        special = special | ~np.isfinite(value.astype(np.float64)) | (value == 0)
    nan = np.isnan(result.astype(np.float64))
    return np.where(nan, 0.0, np.where(big, np.where(special, 0.0, np.inf), 4 * ulp(result, row)))


def continuous(op: Operation) -> bool:
    return not isinstance(op, e.ModOp | e.RemOp | e.FloordivOp | e.BitcastOp)


def wide(operands: list[Bounded]) -> Array:
    """Where an operand's interval is too wide for its corners to tell."""
    result: Array = np.zeros((), bool)
    for value, error in operands:
        if value.dtype.kind in "biu":
            continue
        limit = np.minimum(0.01 * np.abs(value.astype(np.float64)), 0.05)
        result = result | ((error > 0) & ~(error <= limit))
    return result


def corners(value: Array, error: Array) -> list[Array]:
    if not np.any((error > 0) & np.isfinite(error)):
        return [value]
    finite = np.where(np.isfinite(error), error, 0.0)
    center = value.astype(np.float64)
    return [value, *(np.asarray(center + s * finite).astype(value.dtype) for s in (1, -1))]


def unrounded(op: t.ReduceOp, values: Mapping[object, Bounded]) -> Array | float:
    """By how much products are off that are added as they are, by fused multiply-adds."""
    product = op.operand.owner
    row = element_of(tensor_of(op.operand))
    if op.kind.data != "add" or not row.is_float or not isinstance(product, e.MulOp):
        return 0.0
    left, right = (values[o][0].astype(np.float64) for o in product.operands)
    value = values[op.operand][0]
    off = np.abs(left * right - value.astype(np.float64))
    if row.name == "f64":
        off = ulp(value, row) / 2
    off = np.where(np.isfinite(off), off, 0.0)
    if row.name == "bf16":  # in pairs a denormal is a zero, and so is its product
        size = np.abs(left * right)
        none = [(x != 0) & (np.abs(x) < 2.0**-126) for x in (left, right)]
        off = np.where(none[0] | none[1], np.where(np.isfinite(size), size, np.inf), off)
    return off


def reduced(op: t.ReduceOp, value: Array, error: Array) -> Array:
    row, axes, kind = element_of(tensor_of(op.operand)), m.int_values(op.axes), op.kind.data
    largest = np.max(error, axis=axes, initial=0.0)
    if not axes:
        return error
    if not row.is_float or kind in ("max", "min"):
        return largest
    acc = accumulator(row)
    digits, _, limit = FORMATS[acc.name]
    count = int(np.prod([value.shape[k] for k in axes], dtype=np.int64))
    x = value.astype(np.float64)
    size = np.where(np.isfinite(x), np.abs(x), 0.0)
    result = reductions.reduce(kind, value, axes, row)
    eps = 2.0 ** (1 - digits)
    if kind == "add":
        total = np.sum(size, axis=axes)
        bound = np.sum(error, axis=axes) + count * eps * total
        step = np.min(granule(size), axis=axes, initial=np.inf)
        exact = (total <= step * 2.0**digits) & (largest == 0)
        unsafe = total > limit / 2
    else:
        relative = np.where(error > 0, error / np.where(size == 0, 1.0, size), 0.0)
        bound = np.abs(result.astype(np.float64)) * (2 * np.sum(relative, axis=axes) + count * eps)
        exact = np.min(size, axis=axes, initial=1.0) == 0
        exact |= count <= 1
        exact &= largest == 0
        high = np.prod(np.maximum(size, 1.0), axis=axes)
        low = np.prod(np.where(size == 0, 1.0, np.minimum(size, 1.0)), axis=axes)
        vague = np.any((error > 0) & ~(error <= 0.01 * size), axis=axes)
        unsafe = (high > limit / 2) | (low < 2.0**-120 if acc.name == "f32" else low < 2.0**-1000)
        unsafe = unsafe | vague
    # A sum off by that much may be rounded where numbers stand twice as far apart.
    reached = np.abs(result.astype(np.float64)) + np.where(np.isfinite(bound), bound, 0.0)
    bound = bound + np.where(exact, 0.0, ulp(reached, row))
    bound = np.where(exact, 0.0, bound)
    final = np.abs(result.astype(np.float64)) + bound > FORMATS[row.name][2] * (1 - 2.0**-8)
    if row.name == "bf16":
        bound = bound + count * 2.0**-126  # pairs of products take denormals for zeros
    special = np.any(~np.isfinite(x), axis=axes)
    bound = np.where(special, 0.0, np.where(final & ~exact, np.inf, bound))
    return np.where(unsafe | np.isinf(largest), np.inf, bound)


def granule(size: Array) -> Array:
    """The lowest bit that is set in each number."""
    mantissa, exponent = np.frexp(size)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = (whole & -whole).astype(np.float64)
    return np.where(size == 0, np.inf, np.ldexp(lowest, exponent - 53))


def gathered(op: t.GatherOp, operands: list[Bounded]) -> Array:
    (_, error), (indices, unsure) = operands
    axis = op.axis.value.data
    result = reductions.gather(error, indices, axis)
    where = unsure.reshape((1,) * axis + unsure.shape + (1,) * (error.ndim - axis - 1))
    return np.where(where > 0, np.inf, result)


def scattered(op: t.ScatterOp, operands: list[Bounded]) -> Array:
    (_, error), (indices, unsure), (_, added) = operands
    if unsure.any():
        return np.full(error.shape, np.inf)
    if not error.any() and not added.any():
        return np.zeros(error.shape)
    if op.kind.data != "set":
        return np.full(error.shape, np.inf)
    row = element_type_named("f64")
    return reductions.scatter("set", error, indices, added, op.axis.value.data, row)
