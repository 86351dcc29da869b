"""Less common functions of elements, by way of those in elementwise.py and reals.py."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes

from uopc.dialects.element_types import element_type_named
from uopc.frontend.core import Number, Operand, is_number, tensor
from uopc.frontend.elementwise import where
from uopc.frontend.promotion import float_type, is_float

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def _real(x: Tensor) -> Tensor:
    return x.cast(float_type(x.element))


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x): digits are lost where erf is close to 1."""
    return 1.0 - x.erf()


def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)); x held between eps and 1 - eps if eps is given."""
    x = _real(x)
    x = x if eps is None else x.clamp(eps, 1 - eps)
    return x.log() - (-x).log1p()


def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    y = _real(x) * math.pi
    safe = where(y == 0, 1.0, y)
    return where(y == 0, 1.0, safe.sin() / safe)


def xlogy(x: Operand, other: Operand) -> Tensor:
    """x * log(other), 0 where x is 0 unless other is NaN."""
    a, b = _real(tensor(x)), _real(tensor(other))
    zero = (a == 0) & (b == b)
    return where(zero, 0.0, a * where(zero, 1.0, b).log())


def heaviside(x: Tensor, values: Operand) -> Tensor:
    """0 below 0, 1 above, `values` at 0; NaN stays."""
    return where(x == 0, values, where(x < 0, 0, where(x > 0, 1, x)))


def nan_to_num(
    x: Tensor, nan: Number = 0.0, posinf: Number | None = None, neginf: Number | None = None
) -> Tensor:
    """Numbers for NaN and infinities; without others the largest and smallest of the type."""
    if not is_float(x.element):
        return x
    info = cast(Any, ml_dtypes).finfo(element_type_named(x.element).numpy)
    high = float(info.max) if posinf is None else posinf
    low = float(info.min) if neginf is None else neginf
    return where(x.isnan(), nan, where(x == math.inf, high, where(x == -math.inf, low, x)))


def signbit(x: Tensor) -> Tensor:
    """Whether the sign is minus, also of zeros and NaNs."""
    if not is_float(x.element):
        return x < 0 if x.element[0] == "i" and x.element != "i1" else x != x
    return x.bitcast({"f64": "i64", "f32": "i32"}.get(x.element, "i16")) < 0


def isposinf(x: Tensor) -> Tensor:
    """Whether each element is infinity."""
    return x.isinf(True, False)


def isneginf(x: Tensor) -> Tensor:
    """Whether each element is minus infinity."""
    return x.isinf(False, True)


def fmax(x: Tensor, other: Operand) -> Tensor:
    """The larger; of a NaN and a number the number."""
    b = other if is_number(other) else tensor(other)
    filled = where(x.isnan(), b, x)
    return filled.maximum(where(tensor(b).isnan(), filled, b))


def fmin(x: Tensor, other: Operand) -> Tensor:
    """The smaller; of a NaN and a number the number."""
    b = other if is_number(other) else tensor(other)
    filled = where(x.isnan(), b, x)
    return filled.minimum(where(tensor(b).isnan(), filled, b))


def deg2rad(x: Tensor) -> Tensor:
    """Degrees as radians."""
    return _real(x) * (math.pi / 180)


def rad2deg(x: Tensor) -> Tensor:
    """Radians as degrees."""
    return _real(x) * (180 / math.pi)


def ldexp(x: Tensor, exponent: Operand) -> Tensor:
    """x times 2 to the power of the exponent."""
    return _real(x) * tensor(exponent).cast(float_type(x.element)).exp2()


def float_power(x: Operand, exponent: Operand) -> Tensor:
    """x to a power, in f64."""
    return tensor(x).cast("f64").pow(tensor(exponent).cast("f64"))


def isin(x: Tensor, values: Operand) -> Tensor:
    """Whether each element is one of some values."""
    v = tensor(values).flatten()
    return (x.unsqueeze(-1) == v).any(-1)


def allclose(
    x: Tensor, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close, as isclose; computed at once."""
    return bool(x.isclose(other, rtol, atol, equal_nan).all().item())


def equal(x: Tensor, other: Operand) -> bool:
    """Whether shapes and all elements are equal; computed at once."""
    b = tensor(other)
    return x.shape == b.shape and bool((x == b).all().item())


def clamp_min(x: Tensor, bound: Operand) -> Tensor:
    """The larger of x and a bound."""
    return x.maximum(bound)


def clamp_max(x: Tensor, bound: Operand) -> Tensor:
    """The smaller of x and a bound."""
    return x.minimum(bound)
