"""Elementwise ops of StableHLO: a table by kind of element, and the few that take several ops.

On i1, StableHLO's add and maximum are or, its multiply and minimum are and.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.dialects.element_types import element_type_named
from uopc.dialects.numbers import dense_array
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, row_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    invalid,
    number,
    result_type,
    row,
    unsupported,
    word,
)

Values = Sequence[SSAValue]
Formula = Callable[[Builder, list[SSAValue]], SSAValue]

OPS: dict[str, dict[str, type[Any]]] = {
    # StableHLO's name, and the op for floats, integers and truth values
    "abs": {"float": e.AbsOp, "integer": e.AbsOp},
    "add": {"float": e.AddOp, "integer": e.AddOp, "bool": e.OrOp},
    "and": {"integer": e.AndOp, "bool": e.AndOp},
    "atan2": {"float": e.Atan2Op},
    "cbrt": {"float": e.CbrtOp},
    "ceil": {"float": e.CeilOp},
    "cosine": {"float": e.CosOp},
    "count_leading_zeros": {"integer": e.ClzOp},
    "divide": {"float": e.DivOp, "integer": e.TruncdivOp},
    "exponential": {"float": e.ExpOp},
    "exponential_minus_one": {"float": e.Expm1Op},
    "floor": {"float": e.FloorOp},
    "log": {"float": e.LogOp},
    "log_plus_one": {"float": e.Log1pOp},
    "maximum": {"float": e.MaxOp, "integer": e.MaxOp, "bool": e.OrOp},
    "minimum": {"float": e.MinOp, "integer": e.MinOp, "bool": e.AndOp},
    "multiply": {"float": e.MulOp, "integer": e.MulOp, "bool": e.AndOp},
    "negate": {"float": e.NegOp, "integer": e.NegOp},
    "not": {"integer": e.NotOp, "bool": e.NotOp},
    "or": {"integer": e.OrOp, "bool": e.OrOp},
    "popcnt": {"integer": e.PopcountOp},
    "power": {"float": e.PowOp, "integer": e.PowOp, "bool": e.OrOp},
    "remainder": {"float": e.RemOp, "integer": e.RemOp},
    "round_nearest_even": {"float": e.RoundOp},
    "rsqrt": {"float": e.RsqrtOp},
    "shift_left": {"integer": e.ShlOp},
    "sign": {"float": e.SignOp, "integer": e.SignOp},
    "sine": {"float": e.SinOp},
    "sqrt": {"float": e.SqrtOp},
    "subtract": {"float": e.SubOp, "integer": e.SubOp},
    "tan": {"float": e.TanOp},
    "tanh": {"float": e.TanhOp},
    "xor": {"integer": e.XorOp, "bool": e.XorOp},
}


def kind_of(value: SSAValue) -> str:
    """`float`, `integer` or `bool`."""
    kind = row_of(value).kind
    return kind if kind in ("float", "bool") else "integer"


def _table_rule(name: str) -> Rule:
    by_kind = OPS[name]

    def rule(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
        cls = by_kind.get(kind_of(x[0]))
        if cls is None:
            raise unsupported(op, f"on elements of type {element_of(x[0])}")
        if len(x) != len(cls.get_irdl_definition().operands):
            raise invalid(op, f"has {len(x)} operands")
        return [
            _or_on_power(c.build, x) if cls is e.OrOp and name == "power" else c.build.op(cls, *x)
        ]

    return rule


def _or_on_power(b: Builder, x: list[SSAValue]) -> SSAValue:
    """a to the power b of truth values: true unless a is false and b true."""
    return b.op(e.OrOp, x[0], b.op(e.NotOp, x[1]))


# Comparisons.


def compare_values(b: Builder, direction: str, x: SSAValue, y: SSAValue) -> SSAValue:
    """`x direction y`, direction one of EQ, NE, LT, LE, GT, GE."""
    if direction in ("GT", "GE"):
        direction, x, y = {"GT": "LT", "GE": "LE"}[direction], y, x
    cls = {"EQ": e.CmpeqOp, "NE": e.CmpneOp, "LT": e.CmpltOp, "LE": e.CmpleOp}[direction]
    return b.op(cls, x, y)


def signed_of_width(bits: int) -> Attribute:
    """The signed integer type of a width."""
    return element_type_named(f"i{bits}").attribute


def unsigned_of_width(bits: int) -> Attribute:
    """The unsigned integer type of a width."""
    return element_type_named(f"ui{bits}").attribute


def total_order_key(b: Builder, x: SSAValue) -> SSAValue:
    """An integer that orders floats as TOTALORDER: -NaN, -inf, …, -0, 0, …, inf, NaN.

    The bits as a signed integer, all but the sign inverted where the sign is set.
    """
    if not row_of(x).is_float:
        return x
    element = signed_of_width(row_of(x).bits)
    bits = b.bitcast(x, element)
    inverted = b.op(e.XorOp, bits, b.like(bits, row(element).limits[1]))
    return b.where(b.op(e.CmpltOp, bits, b.like(bits, 0)), inverted, bits)


def _compare(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    lhs, rhs = x
    if word(op, "compare_type") == "TOTALORDER":
        lhs, rhs = total_order_key(c.build, lhs), total_order_key(c.build, rhs)
    return [compare_values(c.build, word(op, "comparison_direction"), lhs, rhs)]


# Choosing and converting.


def _select(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    return [c.build.where(*c.build.alike(x))] if shape_of(x[1]) else [c.build.where(*x)]


def _clamp(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    low, value, high = c.build.alike(x)
    return [c.build.op(e.MinOp, c.build.op(e.MaxOp, low, value), high)]


def _convert(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    return [c.build.cast(x[0], result_type(op)[0])]


def _identity(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    return x


def _constant(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    element, shape = result_type(op)
    value: Any = op.get_attr_or_prop("value")
    array = dense_array(value)
    if array.size and array.ndim and not any(array.strides):
        return [c.build.constant(array.reshape(-1)[0].item(), element, shape)]
    result = c.build.array(array) if array.size else c.build.constant(0, element, shape)
    return [result if c.lift is None or shape else c.build.spread(result, c.lift)]


def _shift_right(kind: str) -> Rule:
    """A shift of the bits read as signed or unsigned, whatever the type is."""

    def rule(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
        if kind_of(x[0]) != "integer":
            raise unsupported(op, f"on elements of type {element_of(x[0])}")
        bits = row_of(x[0]).bits
        element = signed_of_width(bits) if kind == "signed" else unsigned_of_width(bits)
        shifted = c.build.op(e.ShrOp, *(c.build.bitcast(each, element) for each in x))
        return [c.build.bitcast(shifted, element_of(x[0]))]

    return rule


def is_finite(b: Builder, x: list[SSAValue]) -> SSAValue:
    """|x| < inf."""
    return b.op(e.CmpltOp, b.op(e.AbsOp, x[0]), b.like(x[0], math.inf))


def logistic(b: Builder, x: list[SSAValue]) -> SSAValue:
    """1 / (1 + exp(-x))."""
    one = b.like(x[0], 1)
    return b.op(e.DivOp, one, b.op(e.AddOp, one, b.op(e.ExpOp, b.op(e.NegOp, x[0]))))


def round_away(b: Builder, x: list[SSAValue]) -> SSAValue:
    """To nearest, ties away from zero: t = trunc(x), and a step further where |x - t| >= 1/2.

    x - t is exact; x + 1/2 would round.
    """
    whole = b.op(e.TruncOp, x[0])
    rest = b.op(e.AbsOp, b.op(e.SubOp, x[0], whole))
    further = b.op(e.AddOp, whole, b.op(e.SignOp, x[0]))
    half = b.op(e.CmpleOp, b.like(x[0], 0.5), rest)
    return b.where(half, further, whole)


def _formula(formula: Formula) -> Rule:
    def rule(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
        if not row_of(x[0]).is_float:
            raise unsupported(op, f"on elements of type {element_of(x[0])}")
        return [formula(c.build, x)]

    return rule


# Bits.


def _reduce_precision(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """Round to fewer bits of mantissa, to even; what is beyond the exponents becomes inf or zero.

    On the bits: add half of the last kept bit, less one where that bit is even, and clear below.
    """
    b, source = c.build, row_of(x[0])
    if not source.is_float:
        raise unsupported(op, f"on elements of type {element_of(x[0])}")
    mantissa_bits = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}[source.name]
    exponent_bits = source.bits - 1 - mantissa_bits
    exponent, mantissa = number(op, "exponent_bits"), number(op, "mantissa_bits")
    if exponent < 1 or mantissa < 0:
        raise invalid(op, f"has format e{exponent}m{mantissa}")
    element = unsigned_of_width(source.bits)
    bits = b.bitcast(x[0], element)
    sign_mask = 1 << (source.bits - 1)
    if mantissa < mantissa_bits:
        dropped = mantissa_bits - mantissa
        last = b.op(e.AndOp, b.op(e.ShrOp, bits, b.like(bits, dropped)), b.like(bits, 1))
        bias = b.op(e.AddOp, last, b.like(bits, (1 << (dropped - 1)) - 1))
        keep = b.like(bits, ((1 << source.bits) - 1) ^ ((1 << dropped) - 1))
        bits = b.op(e.AndOp, b.op(e.AddOp, bits, bias), keep)
    if exponent < exponent_bits:
        bias_of_type = (1 << (exponent_bits - 1)) - 1
        reach = (1 << (exponent - 1)) - 1
        mask = ((1 << exponent_bits) - 1) << mantissa_bits
        field = b.op(e.AndOp, bits, b.like(bits, mask))
        sign = b.op(e.AndOp, bits, b.like(bits, sign_mask))
        too_large = b.op(e.CmpltOp, b.like(bits, (bias_of_type + reach) << mantissa_bits), field)
        too_small = b.op(e.CmpleOp, field, b.like(bits, (bias_of_type - reach) << mantissa_bits))
        infinite = b.op(e.OrOp, sign, b.like(bits, mask))
        bits = b.where(too_large, infinite, b.where(too_small, sign, bits))
    rounded = b.bitcast(bits, element_of(x[0]))
    is_nan = b.op(e.CmpneOp, x[0], x[0])
    return [b.where(is_nan, x[0], rounded)]


def _bitcast_convert(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """The bits in another type; a last axis more, or less, where the widths differ.

    The first element of the last axis has the lowest bits.
    """
    b = c.build
    element, shape = result_type(op)
    source, target = row_of(x[0]), row(element)
    if source.bits == target.bits:
        return [x[0] if source.name == target.name else b.bitcast(x[0], element)]
    if c.lift is not None:
        raise unsupported(op, "to another width in a region that computes one element")
    wide, narrow = unsigned_of_width(max(source.bits, target.bits)), min(source.bits, target.bits)
    count = max(source.bits, target.bits) // narrow
    if target.bits < source.bits:
        bits = b.bitcast(x[0], wide)
        bits = b.expand(b.reshape(bits, (*shape_of(bits), 1)), shape)
        shift = b.op(e.MulOp, b.iota(len(shape) - 1, shape, wide), b.constant(narrow, wide, shape))
        bits = b.op(e.ShrOp, bits, shift)
        if target.is_bool:
            return [b.cast(b.op(e.AndOp, bits, b.like(bits, 1)), element)]
        parts = b.cast(bits, unsigned_of_width(narrow))
        return [b.bitcast(parts, element)]
    if shape_of(x[0])[-1:] != (count,):
        raise invalid(op, f"needs a last axis of size {count}")
    parts = x[0] if source.is_bool else b.bitcast(x[0], unsigned_of_width(narrow))
    parts = b.cast(parts, wide)
    axis = len(shape)
    shift = b.op(
        e.MulOp, b.iota(axis, shape_of(parts), wide), b.constant(narrow, wide, shape_of(parts))
    )
    bits = b.reduce("or", b.op(e.ShlOp, parts, shift), (axis,))
    return [b.bitcast(bits, element)]


ELEMENTWISE_RULES: dict[str, Rule] = {
    **{f"stablehlo.{name}": _table_rule(name) for name in OPS},
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.constant": _constant,
    "stablehlo.convert": _convert,
    "stablehlo.is_finite": _formula(is_finite),
    "stablehlo.logistic": _formula(logistic),
    "stablehlo.optimization_barrier": _identity,
    "sdy.sharding_constraint": _identity,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.round_nearest_afz": _formula(round_away),
    "stablehlo.select": _select,
    "stablehlo.shift_right_arithmetic": _shift_right("signed"),
    "stablehlo.shift_right_logical": _shift_right("unsigned"),
}
