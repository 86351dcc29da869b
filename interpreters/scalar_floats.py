"""Float ops of arith and math on numpy values, each rounded once.

f16 and bf16 are computed in f32 and rounded; a fused multiply-add of them is that of f32, rounded
once more. Transcendental functions of f32 are numpy's of f64, rounded: within 1 ulp. Those of f64
are numpy's, within 4 ulp. All others are exact to the bit; expand-math leaves none but those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects import arith, math, vector
from xdsl.ir import Operation

from uopc.dialects.rounding import round_floats, round_integers
from uopc.interpreters import floats, rounding
from uopc.interpreters.fused import fma
from uopc.interpreters.scalar_integers import Function, Rule, unsigned_row
from uopc.interpreters.scalar_types import row_of, signed, unsigned, where


def _float(function: Function) -> Rule:
    """A function of floats to floats or truth values, of halves through f32."""

    def rule(op: Operation) -> Function:
        row = row_of(op.operands[0].type)
        if row.bits > 16:
            return function

        def compute(*operands: Any) -> Any:
            result = np.asarray(function(*(x.astype(np.float32) for x in operands)))
            return result if result.dtype == np.bool_ else round_floats(result, row)

        return compute

    return rule


def _transcendental(function: Function) -> Rule:
    return _float(floats.through_f64(function))


def _number(chosen: Function) -> Function:
    """maxnumf, minnumf: a NaN loses."""

    def compute(x: Any, y: Any) -> Any:
        x, y = np.broadcast_arrays(x, y)
        number = where(np.isnan(y), x, chosen(x, y))
        return where(np.isnan(x), y, number)

    return compute


def _round_away(x: Any) -> Any:
    whole = np.trunc(x)
    away = np.abs(x - whole) >= x.dtype.type(0.5)
    size = np.abs(whole)
    return np.copysign(where(away, size + x.dtype.type(1), size), x)


def _unordered_operands(x: Any, y: Any) -> Any:
    return np.isnan(x) | np.isnan(y)


def _ordered_operands(x: Any, y: Any) -> Any:
    return ~_unordered_operands(x, y)


def _never(x: Any, y: Any) -> Any:
    return np.zeros_like(x == y)


def _always(x: Any, y: Any) -> Any:
    return np.ones_like(x == y)


def _ordered(function: Function) -> Function:
    def compute(x: Any, y: Any) -> Any:
        return function(x, y) & _ordered_operands(x, y)

    return compute


def _unordered(function: Function) -> Function:
    def compute(x: Any, y: Any) -> Any:
        return function(x, y) | _unordered_operands(x, y)

    return compute


_COMPARISONS: tuple[Function, ...] = (
    _never,
    *map(_ordered, (np.equal, np.greater, np.greater_equal, np.less, np.less_equal)),
    _ordered(np.not_equal),
    _ordered_operands,
    *map(_unordered, (np.equal, np.greater, np.greater_equal, np.less, np.less_equal)),
    _unordered(np.not_equal),
    _unordered_operands,
    _always,
)


def _compare(op: arith.CmpfOp) -> Function:
    return _float(_COMPARISONS[op.predicate.value.data])(op)


def _cast(op: Operation) -> Function:
    source, target = (row_of(v.type) for v in (op.operands[0], op.results[0]))

    def compute(x: Any) -> Any:
        return rounding.cast(x, source, target)

    return compute


def _from_integer(*, as_unsigned: bool) -> Rule:
    def rule(op: Operation) -> Function:
        target = row_of(op.results[0].type)

        def compute(x: Any) -> Any:
            x = np.asarray(x)
            if x.dtype == np.bool_:
                x = x.astype(np.int8) if as_unsigned else np.negative(x.astype(np.int8))
            return round_integers(unsigned(x) if as_unsigned else x, target)

        return compute

    return rule


def _to_integer(*, as_unsigned: bool) -> Rule:
    def rule(op: Operation) -> Function:
        source, target = (row_of(v.type) for v in (op.operands[0], op.results[0]))
        wanted = unsigned_row(target) if as_unsigned else target

        def compute(x: Any) -> Any:
            if not target.is_bool:
                return signed(rounding.cast(x, source, wanted))
            # The signed numbers of one bit are -1 and 0, the unsigned ones 0 and 1.
            wide = x.astype(np.float64)
            return wide >= 1 if as_unsigned else wide <= -1

        return compute

    return rule


def _bitcast(op: Operation) -> Function:
    target = row_of(op.results[0].type)

    def compute(x: Any) -> Any:
        return np.asarray(x).view(target.numpy)

    return compute


def _float_to_integer_power(x: Any, y: Any) -> Any:
    exponent = np.negative(y.astype(np.int8)) if y.dtype == np.bool_ else y
    return np.power(x.astype(np.float64), exponent.astype(np.float64)).astype(x.dtype)


def _powi(op: Operation) -> Function:
    row = row_of(op.operands[0].type)

    def compute(x: Any, y: Any) -> Any:
        wide = x.astype(np.float32) if row.bits == 16 else x
        return round_floats(_float_to_integer_power(wide, y), row)

    return compute


_EXACT: dict[type[Operation], Callable[..., Any]] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.NegfOp: np.negative,
    arith.MaximumfOp: floats.larger,
    arith.MinimumfOp: floats.smaller,
    arith.MaxnumfOp: _number(floats.larger),
    arith.MinnumfOp: _number(floats.smaller),
    math.AbsFOp: np.abs,
    math.CopySignOp: np.copysign,
    math.FloorOp: np.floor,
    math.CeilOp: np.ceil,
    math.TruncOp: np.trunc,
    math.RoundEvenOp: np.rint,
    math.RoundOp: _round_away,
    math.SqrtOp: np.sqrt,
    math.RsqrtOp: floats.reciprocal_root,
    math.FmaOp: fma,
    vector.FMAOp: fma,
}

TRANSCENDENTAL: dict[type[Operation], Callable[..., Any]] = {
    math.AcosOp: np.arccos,
    math.AcoshOp: np.arccosh,
    math.AsinOp: np.arcsin,
    math.AsinhOp: np.arcsinh,
    math.Atan2Op: np.arctan2,
    math.AtanOp: np.arctan,
    math.AtanhOp: np.arctanh,
    math.CbrtOp: np.cbrt,
    math.CosOp: np.cos,
    math.CoshOp: np.cosh,
    math.ErfOp: floats.error_function,
    math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1,
    math.ExpOp: np.exp,
    math.Log10Op: np.log10,
    math.Log1pOp: np.log1p,
    math.Log2Op: np.log2,
    math.LogOp: np.log,
    math.PowFOp: np.power,
    math.SinOp: np.sin,
    math.SinhOp: np.sinh,
    math.TanOp: np.tan,
    math.TanhOp: np.tanh,
}

FLOAT_RULES: Mapping[type[Operation], Rule] = {
    **{kind: _float(function) for kind, function in _EXACT.items()},
    **{kind: _transcendental(function) for kind, function in TRANSCENDENTAL.items()},
    arith.CmpfOp: _compare,
    arith.ExtFOp: _cast,
    arith.TruncFOp: _cast,
    arith.SIToFPOp: _from_integer(as_unsigned=False),
    arith.UIToFPOp: _from_integer(as_unsigned=True),
    arith.FPToSIOp: _to_integer(as_unsigned=False),
    arith.FPToUIOp: _to_integer(as_unsigned=True),
    arith.BitcastOp: _bitcast,
    math.FPowIOp: _powi,
}
