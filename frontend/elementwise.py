"""Functions of each element by itself: arithmetic, comparisons, bits, functions of reals.

Operands broadcast as in numpy and meet in one type as promotion.py tells.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from uopc.dialects.element_types import element_type_named
from uopc.frontend import nodes
from uopc.frontend.core import (
    DTypeLike,
    Number,
    Operand,
    array_node,
    bad,
    broadcast_shapes,
    elementwise,
    is_number,
    meet_types,
    number,
    operands,
    tensor,
    type_name,
    wrap,
)
from uopc.frontend.graph import apply, constant
from uopc.frontend.promotion import float_type, is_float, promote

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def _meet(*values: Operand) -> str:
    return meet_types(*[v if is_number(v) else tensor(v) for v in values])


def _is_bool(type_: str) -> bool:
    return type_ == "i1"


def _no_bools(type_: str, what: str) -> None:
    if _is_bool(type_):
        raise bad("wrong-operands", f"{what} is not defined for truth values", "cast first")


# -- arithmetic ------------------------------------------------------------------------------------


def add(x: Operand, other: Operand) -> Tensor:
    """x + other; of truth values their or."""
    return elementwise("or" if _is_bool(_meet(x, other)) else "add", x, other)


def sub(x: Operand, other: Operand) -> Tensor:
    """x - other."""
    _no_bools(_meet(x, other), "a difference")
    return elementwise("sub", x, other)


def mul(x: Operand, other: Operand) -> Tensor:
    """x * other; of truth values their and."""
    return elementwise("mul", x, other)


def div(x: Operand, other: Operand, rounding_mode: str | None = None) -> Tensor:
    """x / other, in floats; with `rounding_mode` "floor" floordiv, with "trunc" truncdiv."""
    if rounding_mode is not None:
        if rounding_mode not in ("floor", "trunc"):
            raise bad("wrong-argument", f"rounding {rounding_mode!r}", "expected floor or trunc")
        return (floordiv if rounding_mode == "floor" else truncdiv)(x, other)
    return elementwise("div", x, other, type_=float_type(_meet(x, other)))


def floordiv(x: Operand, other: Operand) -> Tensor:
    """The quotient rounded down."""
    _no_bools(_meet(x, other), "division")
    return elementwise("floordiv", x, other)


def truncdiv(x: Operand, other: Operand) -> Tensor:
    """The quotient rounded toward zero."""
    type_ = _meet(x, other)
    if is_float(type_):
        return elementwise("div", x, other).trunc()
    _no_bools(type_, "division")
    return elementwise("truncdiv", x, other)


def mod(x: Operand, other: Operand) -> Tensor:
    """The remainder of floor division, with the divisor's sign."""
    _no_bools(_meet(x, other), "a remainder")
    return elementwise("mod", x, other)


def fmod(x: Operand, other: Operand) -> Tensor:
    """The remainder of truncating division, with the dividend's sign."""
    _no_bools(_meet(x, other), "a remainder")
    return elementwise("rem", x, other)


def pow(x: Operand, other: Operand) -> Tensor:
    """x to the power of other. Small whole powers are products, 0.5 is sqrt and -1 reciprocal."""
    type_ = _meet(x, other)
    _no_bools(type_, "a power")
    if is_number(other) and not is_number(x):
        base = tensor(x).cast(type_)
        special: dict[Any, Any] = {1: base.clone, 2: base.square, 3: base.cube}
        if is_float(type_):
            special |= {0.5: base.sqrt, -1: base.reciprocal, -0.5: base.rsqrt}
        if other in special and not isinstance(other, bool):
            return special[other]()
    return elementwise("pow", x, other)


def square(x: Tensor) -> Tensor:
    """x * x."""
    return x * x


def cube(x: Tensor) -> Tensor:
    """x * x * x."""
    return x * x * x


def maximum(x: Operand, other: Operand) -> Tensor:
    """The larger; NaN wins."""
    return elementwise("max", x, other)


def minimum(x: Operand, other: Operand) -> Tensor:
    """The smaller; NaN wins."""
    return elementwise("min", x, other)


def neg(x: Tensor) -> Tensor:
    """-x."""
    _no_bools(x.node.type, "a negative")
    return elementwise("neg", x)


def positive(x: Tensor) -> Tensor:
    """+x."""
    _no_bools(x.node.type, "+")
    return x.clone()


def abs(x: Tensor) -> Tensor:
    """The magnitude."""
    return x if _is_bool(x.node.type) else elementwise("abs", x)


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1."""
    return x if _is_bool(x.node.type) else elementwise("sign", x)


def clamp(x: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """x held between two bounds, either of which may be missing; where they cross, `max` wins."""
    if min is None and max is None:
        raise bad("wrong-operands", "clamp needs a bound", "give min, max or both")
    result = x if min is None else maximum(x, min)
    return result if max is None else minimum(result, max)


def lerp(x: Tensor, end: Operand, weight: Operand) -> Tensor:
    """x + (end - x) * weight."""
    return x + (tensor(end) - x) * weight


def addcmul(x: Tensor, a: Operand, b: Operand, value: Number = 1) -> Tensor:
    """x + value * a * b."""
    return x + tensor(a) * b * value


def addcdiv(x: Tensor, a: Operand, b: Operand, value: Number = 1) -> Tensor:
    """x + value * a / b."""
    return x + tensor(a) / b * value


def copysign(x: Operand, other: Operand) -> Tensor:
    """The magnitude of x with the sign of other, also of its zeros and NaNs."""
    type_ = float_type(_meet(x, other))
    a, b = operands([x, other], type_)
    bits = {"f64": "i64", "f32": "i32", "f16": "i16", "bf16": "i16"}[type_]
    negative = apply("bitcast", (b,), (bits,))
    mask = apply("cmplt", (negative, nodes.full_like(0, negative)))
    size = nodes.unary("abs", a)
    return wrap(nodes.where(mask, nodes.neg(size), size))


# -- comparisons and choices -----------------------------------------------------------------------


def lt(x: Operand, other: Operand) -> Tensor:
    """x < other."""
    return _strong(elementwise("cmplt", x, other))


def le(x: Operand, other: Operand) -> Tensor:
    """x <= other."""
    return _strong(elementwise("cmple", x, other))


def gt(x: Operand, other: Operand) -> Tensor:
    """x > other."""
    return _strong(elementwise("cmplt", other, x))


def ge(x: Operand, other: Operand) -> Tensor:
    """x >= other."""
    return _strong(elementwise("cmple", other, x))


def eq(x: Operand, other: Operand) -> Tensor:
    """x == other."""
    return _strong(elementwise("cmpeq", x, other))


def ne(x: Operand, other: Operand) -> Tensor:
    """x != other."""
    return _strong(elementwise("cmpne", x, other))


def _strong(x: Tensor) -> Tensor:
    x.weak = False
    return x


def where(condition: Operand, a: Operand, b: Operand) -> Tensor:
    """a where the condition is true, else b."""
    mask = tensor(condition).cast("i1").node
    if is_number(a) and is_number(b):
        values = [array_node(a), array_node(b)]
        type_ = promote(values[0].type, values[1].type)
        x, y = (constant(number(v), (), type_) for v in (a, b))
    else:
        x, y = operands([a, b], _meet(a, b))
    shape = broadcast_shapes(mask.shape, x.shape, y.shape)
    return wrap(nodes.where(*[nodes.broadcast(n, shape) for n in (mask, x, y)]))


def choose(condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """`condition.where(a, b)`."""
    return where(condition, a, b)


def masked_fill(x: Tensor, mask: Operand, value: Number | Tensor) -> Tensor:
    """value where the mask is true, else x."""
    return where(mask, value, x)


def isnan(x: Tensor) -> Tensor:
    """Whether each element is NaN."""
    return elementwise("cmpne", x, x)


def isinf(x: Tensor, positive: bool = True, negative: bool = True) -> Tensor:
    """Whether each element is infinite, of the signs that are asked for."""
    if not is_float(x.node.type):
        return x != x
    result = (x == math.inf) if positive else (x != x) & False
    return result | (x == -math.inf) if negative else result


def isfinite(x: Tensor) -> Tensor:
    """Whether each element is a number, neither infinite nor NaN."""
    return (x == x) if not is_float(x.node.type) else x.abs() < math.inf


def isclose(
    x: Tensor, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """|x - other| <= atol + rtol * |other|, or equal."""
    b = tensor(other)
    near = ((x - b).abs() <= b.abs() * rtol + atol) & b.isfinite()
    result = near | (x == b)
    return result | (x.isnan() & b.isnan()) if equal_nan else result


def logical_not(x: Tensor) -> Tensor:
    """Whether each element is zero."""
    return elementwise("not", x.cast("i1"))


def logical_and(x: Tensor, other: Operand) -> Tensor:
    """Whether both are not zero."""
    return elementwise("and", x.cast("i1"), tensor(other).cast("i1"))


def logical_or(x: Tensor, other: Operand) -> Tensor:
    """Whether one is not zero."""
    return elementwise("or", x.cast("i1"), tensor(other).cast("i1"))


def logical_xor(x: Tensor, other: Operand) -> Tensor:
    """Whether exactly one is not zero."""
    return elementwise("xor", x.cast("i1"), tensor(other).cast("i1"))


# -- bits ------------------------------------------------------------------------------------------


def _bits(op: str, x: Operand, other: Operand) -> Tensor:
    if is_float(type_ := _meet(x, other)):
        raise bad("wrong-operands", f"bits of {type_} are not combined", "cast or bitcast first")
    return elementwise(op, x, other)


def bitwise_and(x: Operand, other: Operand) -> Tensor:
    """x & other."""
    return _bits("and", x, other)


def bitwise_or(x: Operand, other: Operand) -> Tensor:
    """x | other."""
    return _bits("or", x, other)


def bitwise_xor(x: Operand, other: Operand) -> Tensor:
    """x ^ other."""
    return _bits("xor", x, other)


def bitwise_not(x: Tensor) -> Tensor:
    """~x."""
    if is_float(x.node.type):
        raise bad("wrong-operands", "bits of floats are not inverted", "cast or bitcast first")
    return elementwise("not", x)


def lshift(x: Operand, other: Operand) -> Tensor:
    """x << other."""
    return _bits("shl", x, other)


def rshift(x: Operand, other: Operand) -> Tensor:
    """x >> other, with the sign of a signed x."""
    return _bits("shr", x, other)


def popcount(x: Tensor) -> Tensor:
    """How many bits are one."""
    return elementwise("popcount", x)


# -- types -----------------------------------------------------------------------------------------


def cast(x: Tensor, dtype: DTypeLike) -> Tensor:
    """The same numbers in another type: see docs/numerics.md."""
    name = type_name(dtype)
    if x.node.type == name and not x.weak:
        return x
    return wrap(nodes.cast(x.node, name))


def bitcast(x: Tensor, dtype: DTypeLike) -> Tensor:
    """The same bits in another type of the same width."""
    return wrap(apply("bitcast", (x.node,), (type_name(dtype),)))


def float_(x: Tensor) -> Tensor:
    """In f32."""
    return cast(x, "f32")


def double(x: Tensor) -> Tensor:
    """In f64."""
    return cast(x, "f64")


def half(x: Tensor) -> Tensor:
    """In f16."""
    return cast(x, "f16")


def bfloat16(x: Tensor) -> Tensor:
    """In bf16."""
    return cast(x, "bf16")


def int_(x: Tensor) -> Tensor:
    """In i32."""
    return cast(x, "i32")


def long(x: Tensor) -> Tensor:
    """In i64."""
    return cast(x, "i64")


def short(x: Tensor) -> Tensor:
    """In i16."""
    return cast(x, "i16")


def char(x: Tensor) -> Tensor:
    """In i8."""
    return cast(x, "i8")


def byte(x: Tensor) -> Tensor:
    """In ui8."""
    return cast(x, "ui8")


def bool_(x: Tensor) -> Tensor:
    """Whether not zero."""
    return cast(x, "i1")


# -- functions of reals ----------------------------------------------------------------------------


def real(op: str, x: Tensor) -> Tensor:
    """A function of reals: integers become floats first."""
    type_ = float_type(x.node.type)
    result = wrap(apply(op, (nodes.cast(x.node, type_),)))
    result.weak = x.weak
    return result


def _rounding(op: str, x: Tensor) -> Tensor:
    return wrap(apply(op, (x.node,))) if is_float(x.node.type) else x


def floor(x: Tensor) -> Tensor:
    """Rounded down; integers as they are."""
    return _rounding("floor", x)


def ceil(x: Tensor) -> Tensor:
    """Rounded up; integers as they are."""
    return _rounding("ceil", x)


def trunc(x: Tensor) -> Tensor:
    """Rounded toward zero; integers as they are."""
    return _rounding("trunc", x)


def round(x: Tensor, decimals: int = 0) -> Tensor:
    """Rounded to the nearest whole number, halves to the even one, or to so many decimals, as
    numpy does it: times a power of ten and back. Integers stay as they are, for decimals >= 0."""
    if decimals == 0:
        return _rounding("round", x)
    if not is_float(x.node.type):
        if decimals > 0:
            return x
        raise bad("wrong-operands", f"{x.element} rounded to tens", "cast to a float first")
    scale = 10.0 ** builtin_abs(decimals)
    return (x * scale).round() / scale if decimals > 0 else (x / scale).round() * scale


def builtin_abs(value: int) -> int:
    """The magnitude of an int."""
    return value if value >= 0 else -value


def frac(x: Tensor) -> Tensor:
    """What truncation takes away."""
    return x - x.trunc()


def reciprocal(x: Tensor) -> Tensor:
    """1 / x."""
    return real("recip", x)


def logaddexp(x: Tensor, other: Operand) -> Tensor:
    """log(exp(x) + exp(other)), without overflow."""
    b = tensor(other)
    top = x.maximum(b)
    gap = (x - b).abs().neg()
    # Both infinite with one sign: their gap is NaN, the sum is that infinity.
    return top + where(gap.isnan() & (x == b), 0.0, gap).exp().log1p()


def hypot(x: Tensor, other: Operand) -> Tensor:
    """sqrt(x*x + other*other)."""
    b = tensor(other)
    return (x * x + b * b).sqrt()


def atan2(x: Operand, other: Operand) -> Tensor:
    """The angle of the point (other, x)."""
    return elementwise("atan2", x, other, type_=float_type(_meet(x, other)))


def limits_of(type_: str) -> tuple[Number, Number]:
    """The smallest and largest value of a type; infinities for floats."""
    row = element_type_named(type_)
    if row.is_float:
        return -math.inf, math.inf
    low, high = row.limits
    return (False, True) if row.is_bool else (low, high)
