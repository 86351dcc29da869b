"""The special functions of CHLO, as formulas of utensor ops.

They are computed in f64 and rounded once, halves in f32 where that is far more than they hold: a
program that calls lgamma wants its digits. `Formula` lets the formulas be written as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.passes.stablehlo_conversion import series
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, row_of
from uopc.passes.stablehlo_conversion.conversion import Conversion, Rule, unsupported
from uopc.passes.stablehlo_conversion.elementwise import signed_of_width, unsigned_of_width

Values = Sequence[SSAValue]


class Formula:
    """A value with Python's operators; numbers become constants of its type."""

    def __init__(self, build: Builder, value: SSAValue) -> None:
        self.build = build
        self.value = value

    def _of(self, other: Formula | float) -> SSAValue:
        if isinstance(other, Formula):
            return other.value
        return self.build.like(self.value, other)

    def _op(self, cls: type[Any], *others: Formula | float) -> Formula:
        return Formula(self.build, self.build.op(cls, self.value, *map(self._of, others)))

    def _swapped(self, cls: type[Any], other: float) -> Formula:
        return Formula(self.build, self.build.op(cls, self._of(other), self.value))

    def __add__(self, other: Formula | float) -> Formula:
        return self._op(e.AddOp, other)

    def __radd__(self, other: float) -> Formula:
        return self._op(e.AddOp, other)

    def __sub__(self, other: Formula | float) -> Formula:
        return self._op(e.SubOp, other)

    def __rsub__(self, other: float) -> Formula:
        return self._swapped(e.SubOp, other)

    def __mul__(self, other: Formula | float) -> Formula:
        return self._op(e.MulOp, other)

    def __rmul__(self, other: float) -> Formula:
        return self._op(e.MulOp, other)

    def __truediv__(self, other: Formula | float) -> Formula:
        return self._op(e.DivOp, other)

    def __rtruediv__(self, other: float) -> Formula:
        return self._swapped(e.DivOp, other)

    def __neg__(self) -> Formula:
        return self._op(e.NegOp)

    def __abs__(self) -> Formula:
        return self._op(e.AbsOp)

    def __lt__(self, other: Formula | float) -> Formula:
        return self._op(e.CmpltOp, other)

    def __le__(self, other: Formula | float) -> Formula:
        return self._op(e.CmpleOp, other)

    def __gt__(self, other: Formula | float) -> Formula:
        return Formula(self.build, self.build.op(e.CmpltOp, self._of(other), self.value))

    def __ge__(self, other: Formula | float) -> Formula:
        return Formula(self.build, self.build.op(e.CmpleOp, self._of(other), self.value))

    def __and__(self, other: Formula) -> Formula:
        return self._op(e.AndOp, other)

    def equals(self, other: Formula | float) -> Formula:
        """Where both are equal."""
        return self._op(e.CmpeqOp, other)

    def where(self, yes: Formula | float, no: Formula) -> Formula:
        """This is a condition: `yes` where it holds, else `no`."""
        on_true = yes.value if isinstance(yes, Formula) else self.build.like(no.value, yes)
        return Formula(self.build, self.build.where(self.value, on_true, no.value))

    def apply(self, cls: type[Any]) -> Formula:
        """A utensor op of one operand."""
        return self._op(cls)

    def power(self, other: Formula) -> Formula:
        """This to the power of the other."""
        return self._op(e.PowOp, other)


Function = Callable[..., Formula]


def polynomial(x: Formula, coefficients: Sequence[float]) -> Formula:
    """c0 + c1 x + c2 x^2 + …, by Horner's rule."""
    total = x * 0.0 + coefficients[-1]
    for each in reversed(coefficients[:-1]):
        total = total * x + each
    return total


def chebyshev(x: Formula, coefficients: Sequence[float]) -> Formula:
    """c0 T0(x) + c1 T1(x) + …, x from -1 to 1, by Clenshaw's recurrence."""
    ahead, total = x * 0.0, x * 0.0
    for each in reversed(coefficients[1:]):
        ahead, total = total, 2.0 * x * total - ahead + each
    return x * total - ahead + coefficients[0]


def erfc(x: Formula) -> Formula:
    """1 - erf(x), with all digits where it is small: t exp(-x^2) times a series of t = 2 / (2 + x).

    exp(-x^2) is exp(-h^2) exp(-(x - h)(x + h)), h being x in few digits so that h^2 is exact.
    """
    a = abs(x)
    t = 2.0 / (2.0 + a)
    h = (a * 4096.0).apply(e.FloorOp) / 4096.0
    decay = (-(h * h)).apply(e.ExpOp) * (-((a - h) * (a + h))).apply(e.ExpOp)
    tail = t * chebyshev(2.0 * t - 1.0, series.ERFC) * decay
    tail = (a < 30.0).where(tail, a * 0.0)  # 0, and NaN of NaN; inf * 0 is set right below
    tail = a.equals(math.inf).where(0.0, tail)
    return (x < 0.5).where(1.0 - x.apply(e.ErfOp), tail)


def erf_inv(y: Formula) -> Formula:
    """x with erf(x) = y: Giles's polynomials, then two steps of Halley's method.

    The step is f / f' / (1 + x f / f'), since erf'' = -2 x erf'; beyond 1/2 the difference is
    taken of erfc, where 1 - y is exact.
    """
    a = abs(y)
    w = -((1.0 - a).apply(e.LogOp) + (1.0 + a).apply(e.LogOp))
    centre = polynomial(w - 2.5, series.ERF_INV_CENTRE)
    tail = polynomial(w.apply(e.SqrtOp) - 3.0, series.ERF_INV_TAIL)
    x = (w < 5.0).where(centre, tail) * a
    for _ in range(2):
        error = (a < 0.5).where(x.apply(e.ErfOp) - a, (1.0 - a) - erfc(x))
        step = error / (2.0 / math.sqrt(math.pi) * (-(x * x)).apply(e.ExpOp))
        x = x - step / (1.0 + x * step)
    x = a.equals(1.0).where(math.inf, x)
    return (y < 0.0).where(-x, a.equals(0.0).where(y, x))


def sine_of_pi(x: Formula) -> Formula:
    """sin(pi x) for x in [0, inf), exact at integers."""
    rest = x - 2.0 * (x * 0.5).apply(e.FloorOp)  # in [0, 2)
    folded = (rest < 1.0).where(rest, rest - 1.0)
    folded = (folded > 0.5).where(1.0 - folded, folded)
    value = (math.pi * folded).apply(e.SinOp)
    return (rest < 1.0).where(value, -value)


def lgamma(x: Formula) -> Formula:
    """log |gamma(x)|: Lanczos's series; below 1/2 log(pi / |sin(pi x)|) - lgamma(1 - x)."""
    low = x < 0.5
    z = low.where(-x, x - 1.0)
    total = z * 0.0 + series.LANCZOS[0]
    for position, each in enumerate(series.LANCZOS[1:], 1):
        total = total + each / (z + float(position))
    t = z + 7.5
    half = 0.5 * math.log(2 * math.pi)
    value = half + (z + 0.5) * t.apply(e.LogOp) - t + total.apply(e.LogOp)
    sine = abs(sine_of_pi(abs(x)))
    reflected = math.log(math.pi) - sine.apply(e.LogOp) - value
    result = low.where(reflected, value)
    return abs(x).equals(math.inf).where(math.inf, result)


def digamma(x: Formula) -> Formula:
    """The derivative of log gamma: psi(y) = psi(y + 1) - 1 / y up to y >= 10, there

    log(y) - 1 / 2y - sum B2k / (2k y^2k); below 1/2 psi(1 - x) - pi / tan(pi x).
    """
    low = x < 0.5
    y = low.where(1.0 - x, x)
    shift = x * 0.0
    for _ in range(10):
        small = y < 10.0
        shift = small.where(shift + 1.0 / y, shift)
        y = small.where(y + 1.0, y)
    inverse = 1.0 / (y * y)
    terms = [each / (2 * k) for k, each in enumerate(series.BERNOULLI, 1)]
    tail = inverse * polynomial(inverse, terms)
    value = y.apply(e.LogOp) - 0.5 / y - tail - shift
    rest = x - x.apply(e.FloorOp)
    # pi / tan(pi x): of period 1, and exact at its pole and its zero
    cotangent = math.pi / (math.pi * (rest - (rest > 0.5).where(1.0, rest * 0.0))).apply(e.TanOp)
    result = low.where(value - cotangent, value)
    pole = (x <= 0.0) & rest.equals(0.0)
    return pole.where(math.nan, result)


def bessel_i1e(x: Formula) -> Formula:
    """exp(-|x|) I1(x): x times a series up to 8, a series over sqrt(x) beyond."""
    a = abs(x)
    near = (a < 8.0).where(a, a * 0.0)
    far = (a < 8.0).where(8.0, a)
    small = a * chebyshev(near * 0.25 - 1.0, series.I1_NEAR)
    large = chebyshev(16.0 / far - 1.0, series.I1_FAR) / far.apply(e.SqrtOp)
    value = (a < 8.0).where(small, large)
    return (x < 0.0).where(-value, value)


def zeta(s: Formula, q: Formula) -> Formula:
    """Hurwitz's sum of (q + k)^-s over k >= 0, for s > 1: Euler and Maclaurin's formula from 10 on.

    sum to N of (q + k)^-s, then (q + N)^(1 - s) / (s - 1) + (q + N)^-s / 2 + sum over k of
    B2k / (2k)! s (s + 1) … (s + 2k - 2) (q + N)^(1 - s - 2k)
    """
    total = s * 0.0
    for k in range(10):
        total = total + (q + float(k)).power(-s)
    a = q + 10.0
    power = a.power(-s)
    total = total + power * a / (s - 1.0) + 0.5 * power
    factor = s * power / a
    for k, each in enumerate(series.BERNOULLI, 1):
        total = total + each / math.factorial(2 * k) * factor
        factor = factor * (s + float(2 * k - 1)) * (s + float(2 * k)) / (a * a)
    defined = (s > 1.0) & (q > 0.0)
    result = defined.where(total, total * math.nan)
    return s.equals(1.0).where(math.inf, result)


def polygamma(n: Formula, x: Formula) -> Formula:
    """The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x)."""
    odd = n - 2.0 * (n * 0.5).apply(e.FloorOp)
    value = lgamma(n + 1.0).apply(e.ExpOp) * zeta(n + 1.0, x)
    value = odd.equals(1.0).where(value, -value)
    value = n.equals(0.0).where(digamma(x), value)
    return ((n >= 0.0) & n.apply(e.FloorOp).equals(n)).where(value, value * math.nan)


def _in_wide(function: Function) -> Rule:
    """A function computed in f64 and rounded once."""

    def rule(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
        b = c.build
        if not row_of(x[0]).is_float:
            raise unsupported(op, f"on elements of type {element_of(x[0])}")
        wide = [Formula(b, b.cast(each, f64)) for each in b.alike(x)]
        return [b.cast(function(*wide).value, element_of(x[0]))]

    return rule


def _plain(cls: type[Any]) -> Rule:
    def rule(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
        if not row_of(x[0]).is_float:
            raise unsupported(op, f"on elements of type {element_of(x[0])}")
        return [c.build.op(cls, x[0])]

    return rule


def _test(test: Callable[[Formula], Formula]) -> Rule:
    def rule(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
        return [test(Formula(c.build, x[0])).value]

    return rule


def _next_after(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """The neighbour of x in the direction of y: its bits, as an integer, one more or less."""
    b = c.build
    x, y = list(b.alike(x))[:1], b.alike(x)[1]
    value = x[0]
    if not row_of(value).is_float:
        raise unsupported(op, f"on elements of type {element_of(value)}")
    bits = b.bitcast(value, signed_of_width(row_of(value).bits))
    zero = b.like(value, 0)
    away = b.op(e.CmpeqOp, b.op(e.CmpltOp, value, y), b.op(e.CmpltOp, zero, value))
    step = b.where(away, b.like(bits, 1), b.like(bits, -1))
    moved = b.bitcast(b.op(e.AddOp, bits, step), element_of(value))
    # From a zero, the smallest number with the sign of y.
    sign = b.like(bits, row_of(bits).limits[0])
    smallest = b.op(e.OrOp, b.op(e.AndOp, b.bitcast(y, element_of(bits)), sign), b.like(bits, 1))
    moved = b.where(b.op(e.CmpeqOp, value, zero), b.bitcast(smallest, element_of(value)), moved)
    moved = b.where(b.op(e.CmpeqOp, value, y), y, moved)
    nan = b.op(e.OrOp, b.op(e.CmpneOp, value, value), b.op(e.CmpneOp, y, y))
    return [b.where(nan, b.like(value, math.nan), moved)]


def _mulhi(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """The upper half of a product of integers.

    Of 64 bits by halves of 32: with a = a1 2^32 + a0, the carries of a0 b0, a1 b0 and a0 b1 go
    into a1 b1. A factor below zero, read as unsigned, is 2^64 too large.
    """
    b = c.build
    row = row_of(x[0])
    if not row.is_integer:
        raise unsupported(op, f"on elements of type {element_of(x[0])}")
    if row.bits < 64:
        of_width = signed_of_width if row.kind == "signed" else unsigned_of_width
        wide = [b.cast(each, of_width(2 * row.bits)) for each in x]
        product = b.op(e.MulOp, *wide)
        return [b.cast(b.op(e.ShrOp, product, b.like(product, row.bits)), element_of(x[0]))]
    words = [b.bitcast(each, unsigned_of_width(64)) for each in x]
    low = [b.op(e.AndOp, w, b.like(w, (1 << 32) - 1)) for w in words]
    high = [b.op(e.ShrOp, w, b.like(w, 32)) for w in words]
    thirty_two = b.like(words[0], 32)
    mask = b.like(words[0], (1 << 32) - 1)
    first = b.op(e.ShrOp, b.op(e.MulOp, low[0], low[1]), thirty_two)
    second = b.op(e.AddOp, b.op(e.MulOp, high[0], low[1]), first)
    third = b.op(e.AddOp, b.op(e.MulOp, low[0], high[1]), b.op(e.AndOp, second, mask))
    result = b.op(
        e.AddOp,
        b.op(e.AddOp, b.op(e.MulOp, high[0], high[1]), b.op(e.ShrOp, second, thirty_two)),
        b.op(e.ShrOp, third, thirty_two),
    )
    result = b.bitcast(result, element_of(x[0]))
    if row.kind == "signed":
        for negative, other in ((x[0], x[1]), (x[1], x[0])):
            below = b.op(e.CmpltOp, negative, b.like(negative, 0))
            result = b.op(e.SubOp, result, b.where(below, other, b.like(other, 0)))
    return [result]


def _square(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    return [c.build.op(e.MulOp, x[0], x[0])]


SPECIAL_RULES: dict[str, Rule] = {
    "chlo.acos": _plain(e.AcosOp),
    "chlo.acosh": _plain(e.AcoshOp),
    "chlo.asin": _plain(e.AsinOp),
    "chlo.asinh": _plain(e.AsinhOp),
    "chlo.atan": _plain(e.AtanOp),
    "chlo.atanh": _plain(e.AtanhOp),
    "chlo.bessel_i1e": _in_wide(bessel_i1e),
    "chlo.cosh": _plain(e.CoshOp),
    "chlo.digamma": _in_wide(digamma),
    "chlo.erf": _plain(e.ErfOp),
    "chlo.erf_inv": _in_wide(erf_inv),
    "chlo.erfc": _in_wide(erfc),
    "chlo.is_inf": _test(lambda x: abs(x).equals(math.inf)),
    "chlo.is_neg_inf": _test(lambda x: x.equals(-math.inf)),
    "chlo.is_pos_inf": _test(lambda x: x.equals(math.inf)),
    "chlo.lgamma": _in_wide(lgamma),
    "chlo.mulhi": _mulhi,
    "chlo.next_after": _next_after,
    "chlo.polygamma": _in_wide(polygamma),
    "chlo.sinh": _plain(e.SinhOp),
    "chlo.square": _square,
    "chlo.tan": _plain(e.TanOp),
    "chlo.zeta": _in_wide(zeta),
}
