"""arith and math ops, on scalars and on tensors, as elementwise ops of utensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, TensorType, f32, f64, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.dialects.element_types import element_type_named
from uopc.dialects.numbers import known_element
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, row_of
from uopc.passes.stablehlo_conversion.conversion import unsupported
from uopc.passes.stablehlo_conversion.elementwise import round_away

Rule = Callable[[Builder, Any, list[SSAValue]], SSAValue]

SAME: dict[str, type[Any]] = {
    "arith.addf": e.AddOp, "arith.addi": e.AddOp, "arith.subf": e.SubOp, "arith.subi": e.SubOp,
    "arith.mulf": e.MulOp, "arith.muli": e.MulOp, "arith.divf": e.DivOp,
    "arith.divsi": e.TruncdivOp, "arith.floordivsi": e.FloordivOp, "arith.remsi": e.RemOp,
    "arith.remf": e.RemOp, "arith.maximumf": e.MaxOp, "arith.minimumf": e.MinOp,
    "arith.maxsi": e.MaxOp, "arith.minsi": e.MinOp, "arith.andi": e.AndOp, "arith.ori": e.OrOp,
    "arith.xori": e.XorOp, "arith.shli": e.ShlOp, "arith.shrsi": e.ShrOp, "arith.negf": e.NegOp,
    "math.absf": e.AbsOp, "math.absi": e.AbsOp, "math.acos": e.AcosOp, "math.acosh": e.AcoshOp,
    "math.asin": e.AsinOp, "math.asinh": e.AsinhOp, "math.atan": e.AtanOp,
    "math.atan2": e.Atan2Op, "math.atanh": e.AtanhOp, "math.cbrt": e.CbrtOp,
    "math.ceil": e.CeilOp, "math.cos": e.CosOp, "math.cosh": e.CoshOp, "math.ctlz": e.ClzOp,
    "math.ctpop": e.PopcountOp, "math.erf": e.ErfOp, "math.exp": e.ExpOp, "math.exp2": e.Exp2Op,
    "math.expm1": e.Expm1Op, "math.floor": e.FloorOp, "math.ipowi": e.PowOp, "math.log": e.LogOp,
    "math.log10": e.Log10Op, "math.log1p": e.Log1pOp, "math.log2": e.Log2Op,
    "math.powf": e.PowOp, "math.roundeven": e.RoundOp, "math.rsqrt": e.RsqrtOp,
    "math.sin": e.SinOp, "math.sinh": e.SinhOp, "math.sqrt": e.SqrtOp, "math.tan": e.TanOp,
    "math.tanh": e.TanhOp, "math.trunc": e.TruncOp,
}  # fmt: skip
UNSIGNED: dict[str, type[Any]] = {
    "arith.divui": e.TruncdivOp, "arith.remui": e.RemOp, "arith.maxui": e.MaxOp,
    "arith.minui": e.MinOp, "arith.shrui": e.ShrOp,
}  # fmt: skip
_CASTS = frozenset((
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.fptosi", "arith.trunci",
    "arith.index_cast",
))  # fmt: skip
_ORDER: dict[int, tuple[type[Any], bool, bool]] = {
    # predicate of cmpi: the op, whether swapped, whether unsigned
    0: (e.CmpeqOp, False, False), 1: (e.CmpneOp, False, False), 2: (e.CmpltOp, False, False),
    3: (e.CmpleOp, False, False), 4: (e.CmpltOp, True, False), 5: (e.CmpleOp, True, False),
    6: (e.CmpltOp, False, True), 7: (e.CmpleOp, False, True), 8: (e.CmpltOp, True, True),
    9: (e.CmpleOp, True, True),
}  # fmt: skip


def element_for(type_: Attribute) -> Attribute:
    """The element type that stands for a scalar's or tensor's; positions are i64."""
    element: Attribute = type_
    if isinstance(type_, TensorType):
        element = cast("TensorType[Attribute]", type_).element_type
    return i64 if isinstance(element, IndexType) else element


def _unsigned(b: Builder, x: SSAValue) -> SSAValue:
    row = row_of(x)
    return x if row.is_bool else b.bitcast(x, element_type_named(f"ui{row.bits}").attribute)


def _compare_integers(b: Builder, op: arith.CmpiOp, x: list[SSAValue]) -> SSAValue:
    cls, swapped, unsigned = _ORDER[op.predicate.value.data]
    x = [_unsigned(b, v) for v in x] if unsigned else x
    if not unsigned and row_of(x[0]).is_bool and cls is not e.CmpeqOp and cls is not e.CmpneOp:
        x = x[::-1]  # a true i1 is -1
    return b.op(cls, *(x[::-1] if swapped else x))


def _compare_floats(b: Builder, op: arith.CmpfOp, x: list[SSAValue]) -> SSAValue:
    """Predicates 1 to 7 are ordered: false for a NaN; 8 to 14 unordered: true for one."""
    predicate = op.predicate.value.data
    if predicate in (0, 15):
        false = b.op(e.CmpltOp, x[0], x[0])
        return b.op(e.NotOp, false) if predicate else false
    nan = b.op(e.OrOp, b.op(e.CmpneOp, x[0], x[0]), b.op(e.CmpneOp, x[1], x[1]))
    if predicate == 14:
        return nan
    if predicate == 7:
        return b.op(e.NotOp, nan)
    kind = (predicate - 1) % 7
    if kind == 5:  # one, une
        different = b.op(e.CmpneOp, *x)
        return different if predicate == 13 else b.op(e.AndOp, different, b.op(e.NotOp, nan))
    cls, swapped = [
        (e.CmpeqOp, False), (e.CmpltOp, True), (e.CmpleOp, True), (e.CmpltOp, False),
        (e.CmpleOp, False),
    ][kind]  # fmt: skip
    holds = b.op(cls, *(x[::-1] if swapped else x))
    return holds if predicate < 8 else b.op(e.OrOp, holds, nan)


def _choose_number(cls: type[Any]) -> Rule:
    """maxnumf, minnumf: the other where one is NaN."""

    def rule(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
        first, second = (b.op(e.CmpneOp, v, v) for v in x)
        return b.where(first, x[1], b.where(second, x[0], b.op(cls, *x)))

    return rule


def _extend(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    """extsi and extui, sitofp of i1 and uitofp: a true i1 is -1 if it is signed."""
    element = element_for(op.results[0].type)
    if op.name in ("arith.extui", "arith.uitofp", "arith.index_castui"):
        return b.cast(_unsigned(b, x[0]), element)
    wide = b.cast(x[0], element)
    return b.op(e.NegOp, wide) if row_of(x[0]).is_bool else wide


def _truncate(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    """To i1, the lowest bit."""
    element = element_for(op.results[0].type)
    if element == i1:
        return b.cast(b.op(e.AndOp, x[0], b.like(x[0], 1)), element)
    return b.cast(x[0], element)


def _fptoui(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    element = element_for(op.results[0].type)
    unsigned = element_type_named(f"ui{known_element(element).bits}").attribute
    return b.bitcast(b.cast(x[0], unsigned), element)


def _fused(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue:
    """a * b + c, rounded once; of halves as docs/numerics.md has it, the fused op of f32.

    A product of f32 is exact in f64. The sum there is rounded to odd: of the two neighbours of an
    inexact one, that with an odd last bit, so that rounding it to f32 is as if it were the first
    (Boldo and Melquiond, 2008). Its error is Knuth's two-sum; NaN beside infinities, which stay.
    """
    row = row_of(x[0])
    if row.name == "f64":
        raise unsupported(op, "there is no multiply-add of f64 that rounds once")
    first, second, addend = (b.cast(v, f64) for v in x)
    product = b.op(e.MulOp, first, second)
    total = b.op(e.AddOp, product, addend)
    part = b.op(e.SubOp, total, product)
    lost = b.op(e.SubOp, product, b.op(e.SubOp, total, part))
    error = b.op(e.AddOp, lost, b.op(e.SubOp, addend, part))
    zero, bits = b.like(total, 0), b.bitcast(total, i64)
    above, below = b.op(e.CmpltOp, zero, error), b.op(e.CmpltOp, error, zero)
    even = b.op(e.CmpeqOp, b.op(e.AndOp, bits, b.like(bits, 1)), b.like(bits, 0))
    outward = b.op(e.CmpeqOp, above, b.op(e.CmpltOp, zero, total))
    odd = b.op(e.AddOp, bits, b.where(outward, b.like(bits, 1), b.like(bits, -1)))
    inexact = b.op(e.AndOp, even, b.op(e.OrOp, above, below))
    result = b.cast(b.bitcast(b.where(inexact, odd, bits), f64), f32)
    return b.cast(result, row.attribute)


_RULES: dict[str, Rule] = {
    "arith.bitcast": lambda b, op, x: b.bitcast(x[0], element_for(op.results[0].type)),
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.extsi": _extend,
    "arith.extui": _extend,
    "arith.fptoui": _fptoui,
    "arith.maxnumf": _choose_number(e.MaxOp),
    "arith.minnumf": _choose_number(e.MinOp),
    "arith.select": lambda b, op, x: b.where(*b.alike(x)),
    "arith.sitofp": _extend,
    "arith.trunci": _truncate,
    "arith.uitofp": _extend,
    "math.fma": _fused,
    "math.round": lambda b, op, x: round_away(b, x),
}


def scalar_op(b: Builder, op: Operation, x: list[SSAValue]) -> SSAValue | None:
    """What an op of arith or math computes, elementwise; None for other ops."""
    if (cls := SAME.get(op.name)) is not None:
        return b.op(cls, *x)
    if (cls := UNSIGNED.get(op.name)) is not None:
        element = element_of(x[0])
        result = b.op(cls, *(_unsigned(b, v) for v in x))
        return result if row_of(result).is_bool else b.bitcast(result, element)
    if (rule := _RULES.get(op.name)) is not None:
        return rule(b, op, x)
    if op.name in _CASTS:
        return b.cast(x[0], element_for(op.results[0].type))
    return None


def names() -> set[str]:
    """The ops of arith and math that have a conversion."""
    return {*SAME, *UNSIGNED, *_CASTS, *_RULES}
