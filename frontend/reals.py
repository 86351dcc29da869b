"""Functions of reals, one op each; integers and truth values become f32 first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uopc.frontend.elementwise import real

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def sqrt(x: Tensor) -> Tensor:
    """Square root."""
    return real("sqrt", x)


def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x)."""
    return real("rsqrt", x)


def cbrt(x: Tensor) -> Tensor:
    """Cube root."""
    return real("cbrt", x)


def exp(x: Tensor) -> Tensor:
    """e to the power x."""
    return real("exp", x)


def exp2(x: Tensor) -> Tensor:
    """2 to the power x."""
    return real("exp2", x)


def expm1(x: Tensor) -> Tensor:
    """e to the power x, less 1."""
    return real("expm1", x)


def log(x: Tensor) -> Tensor:
    """Natural logarithm."""
    return real("log", x)


def log2(x: Tensor) -> Tensor:
    """Logarithm to base 2."""
    return real("log2", x)


def log10(x: Tensor) -> Tensor:
    """Logarithm to base 10."""
    return real("log10", x)


def log1p(x: Tensor) -> Tensor:
    """Natural logarithm of 1 + x."""
    return real("log1p", x)


def sin(x: Tensor) -> Tensor:
    """Sine of x in radians."""
    return real("sin", x)


def cos(x: Tensor) -> Tensor:
    """Cosine of x in radians."""
    return real("cos", x)


def tan(x: Tensor) -> Tensor:
    """Tangent of x in radians."""
    return real("tan", x)


def asin(x: Tensor) -> Tensor:
    """Inverse sine, in radians."""
    return real("asin", x)


def acos(x: Tensor) -> Tensor:
    """Inverse cosine, in radians."""
    return real("acos", x)


def atan(x: Tensor) -> Tensor:
    """Inverse tangent, in radians."""
    return real("atan", x)


def sinh(x: Tensor) -> Tensor:
    """Hyperbolic sine."""
    return real("sinh", x)


def cosh(x: Tensor) -> Tensor:
    """Hyperbolic cosine."""
    return real("cosh", x)


def tanh(x: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return real("tanh", x)


def asinh(x: Tensor) -> Tensor:
    """Inverse hyperbolic sine."""
    return real("asinh", x)


def acosh(x: Tensor) -> Tensor:
    """Inverse hyperbolic cosine."""
    return real("acosh", x)


def atanh(x: Tensor) -> Tensor:
    """Inverse hyperbolic tangent."""
    return real("atanh", x)


def erf(x: Tensor) -> Tensor:
    """The error function."""
    return real("erf", x)
