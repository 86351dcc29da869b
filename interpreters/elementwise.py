"""What the elementwise ops of utensor compute, one row an op.

A row takes the operands' arrays (of one shape and dtype) and their element type. Halves are
computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.ir import Operation

from uopc.dialects import tensor_elementwise as t
from uopc.dialects.element_types import ElementType
from uopc.dialects.rounding import Array, round_floats
from uopc.interpreters import floats, integers
from uopc.interpreters.rounding import widened

Row = Callable[[tuple[Array, ...], ElementType], Array]
Of = Callable[..., Any]


def _row(
    *, floating: Of | None = None, integer: Of | None = None, boolean: Of | None = None
) -> Row:
    """A row of functions by kind of element type; those of integers also take the type."""

    def compute(operands: tuple[Array, ...], row: ElementType) -> Array:
        if row.is_float:
            assert floating is not None, f"the verifier lets no {row.name} through"
            result: Array = floating(*(widened(x, row) for x in operands))
            if result.dtype == np.bool_:
                return result
            return round_floats(result, row) if row.bits == 16 else result
        if row.is_bool:
            assert boolean is not None, "the verifier lets no i1 through"
            return boolean(*operands)
        assert integer is not None, f"the verifier lets no {row.name} through"
        return integer(*operands, row)

    return compute


def _plain(function: Of) -> Of:
    """A function of numpy that needs no element type."""
    return lambda *operands: function(*operands[:-1])


def _numbers(function: Of, boolean: Of | None = None) -> Row:
    return _row(floating=function, integer=_plain(function), boolean=boolean)


def _bits(function: Of) -> Row:
    return _row(integer=_plain(function), boolean=function)


def _float(function: Of) -> Row:
    return _row(floating=function)


def _transcendental(function: Of) -> Row:
    return _row(floating=floats.through_f64(function))


def _compare(function: Of) -> Row:
    return _row(floating=function, integer=_plain(function), boolean=function)


BINARY: Mapping[type[Operation], Row] = {
    t.AddOp: _numbers(np.add, np.logical_xor),
    t.SubOp: _numbers(np.subtract),
    t.MulOp: _numbers(np.multiply, np.logical_and),
    t.DivOp: _float(np.divide),
    t.FloordivOp: _row(floating=floats.floor_divide, integer=integers.floordiv),
    t.TruncdivOp: _row(integer=integers.truncdiv),
    t.ModOp: _row(floating=floats.modulo, integer=integers.mod),
    t.RemOp: _row(floating=floats.remainder, integer=integers.rem),
    t.PowOp: _row(floating=floats.through_f64(np.power), integer=integers.power),
    t.Atan2Op: _transcendental(np.arctan2),
    t.MaxOp: _row(floating=floats.larger, integer=_plain(np.maximum), boolean=np.logical_or),
    t.MinOp: _row(floating=floats.smaller, integer=_plain(np.minimum), boolean=np.logical_and),
    t.AndOp: _bits(np.bitwise_and),
    t.OrOp: _bits(np.bitwise_or),
    t.XorOp: _bits(np.bitwise_xor),
    t.ShlOp: _row(integer=integers.shift_left),
    t.ShrOp: _row(integer=integers.shift_right),
    t.CmpltOp: _compare(np.less),
    t.CmpleOp: _compare(np.less_equal),
    t.CmpeqOp: _compare(np.equal),
    t.CmpneOp: _compare(np.not_equal),
}

UNARY: Mapping[type[Operation], Row] = {
    t.NotOp: _bits(np.invert),
    t.PopcountOp: _row(integer=integers.popcount),
    t.ClzOp: _row(integer=integers.count_leading_zeros),
    t.NegOp: _numbers(np.negative),
    t.AbsOp: _row(floating=np.abs, integer=integers.absolute),
    t.SignOp: _row(floating=floats.sign, integer=integers.sign),
    t.FloorOp: _float(np.floor),
    t.CeilOp: _float(np.ceil),
    t.TruncOp: _float(np.trunc),
    t.RoundOp: _float(np.rint),
    t.SqrtOp: _float(np.sqrt),
    t.RsqrtOp: _float(floats.reciprocal_root),
    t.RecipOp: _float(floats.reciprocal),
    t.CbrtOp: _transcendental(np.cbrt),
    t.ExpOp: _transcendental(np.exp),
    t.Exp2Op: _transcendental(np.exp2),
    t.Expm1Op: _transcendental(np.expm1),
    t.LogOp: _transcendental(np.log),
    t.Log2Op: _transcendental(np.log2),
    t.Log10Op: _transcendental(np.log10),
    t.Log1pOp: _transcendental(np.log1p),
    t.SinOp: _transcendental(np.sin),
    t.CosOp: _transcendental(np.cos),
    t.TanOp: _transcendental(np.tan),
    t.AsinOp: _transcendental(np.arcsin),
    t.AcosOp: _transcendental(np.arccos),
    t.AtanOp: _transcendental(np.arctan),
    t.SinhOp: _transcendental(np.sinh),
    t.CoshOp: _transcendental(np.cosh),
    t.TanhOp: _transcendental(np.tanh),
    t.AsinhOp: _transcendental(np.arcsinh),
    t.AcoshOp: _transcendental(np.arccosh),
    t.AtanhOp: _transcendental(np.arctanh),
    t.ErfOp: _transcendental(floats.error_function),
}
"""On i1, add is exclusive or, mul and min are and, max is or: numpy's logical functions."""


def elementwise(op_type: type[Operation], operands: tuple[Array, ...], row: ElementType) -> Array:
    """The result of a unary or binary op on arrays whose element type is `row`."""
    table = UNARY if len(operands) == 1 else BINARY
    with np.errstate(all="ignore"):
        return np.asarray(table[op_type](operands, row))
