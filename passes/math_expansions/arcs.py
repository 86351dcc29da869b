"""asin, acos, atan and atan2."""

from __future__ import annotations

from uopc.passes.math_expansions.coefficients import ASIN, ATAN, HALF_PI, PI
from uopc.passes.math_expansions.emit import Emitter, Float


def asin_parts(e: Emitter, x: Float, a: Float) -> tuple[Float, Float]:
    """s and t with s + t = asin s, where s is x for |x| <= 1/2, else sqrt((1 - |x|) / 2).

    asin s = s + s^3 P(s^2) with the minimax polynomial ASIN. Past 1 the root is NaN.
    """
    large = a > 0.5
    z = e.where(large, e.fma(a, -0.5, 0.5), x * x)
    s = e.where(large, z.sqrt(), x)
    return s, (s * z) * e.polynomial(z, ASIN[e.format.name])


def asin(e: Emitter, x: Float) -> Float:
    """Arc sine, error below 2 ulp.

    asin a = pi/2 - 2 asin sqrt((1 - a) / 2) past 1/2, the large parts subtracted first.
    """
    a = abs(x)
    s, t = asin_parts(e, a, a)
    high, low = HALF_PI[e.format.name]
    twice = 2.0 * s
    rest = high - twice
    lost = (high - rest) - twice
    large = rest - (e.fma(t, 2.0, -low) - lost)
    return e.where(a > 0.5, large, s + t).with_sign_bits(x.sign_bits())


def acos(e: Emitter, x: Float) -> Float:
    """Arc cosine, error below 2 ulp.

    acos x = 2 asin sqrt((1 - x) / 2) past 1/2, pi less that of -x below -1/2,
    pi/2 - asin x between.
    """
    a = abs(x)
    s, t = asin_parts(e, x, a)
    high, low = HALF_PI[e.format.name]
    pi_high, pi_low = PI[e.format.name]
    middle = (high - s) - (t - low)
    left = (pi_high - 2.0 * s) - e.fma(t, 2.0, -pi_low)
    result = e.where(x > 0.5, 2.0 * (s + t), middle)
    return e.where(x < -0.5, left, result)


def atan_of_unit(e: Emitter, t: Float) -> Float:
    """Arc tangent of t in [0, 1]: t + t^3 P(t^2) with the minimax polynomial ATAN."""
    z = t * t
    return e.fma(t * z, e.polynomial(z, ATAN[e.format.name]), t)


def atan(e: Emitter, x: Float) -> Float:
    """Arc tangent, error below 2 ulp: atan a = pi/2 - atan(1/a) past 1."""
    a = abs(x)
    steep = a > 1.0
    r = atan_of_unit(e, e.where(steep, 1.0 / a, a))
    high, low = HALF_PI[e.format.name]
    return e.where(steep, high - (r - low), r).with_sign_bits(x.sign_bits())


def atan2(e: Emitter, y: Float, x: Float) -> Float:
    """The angle of the point (x, y), error below 2 ulp; signs of zero as in C's Annex F.

    The ratio is the lesser over the greater, 1 where they are equal (infinities too), 0 at the
    origin.
    """
    a, b = abs(y), abs(x)
    steep = a > b
    lesser, greater = e.where(steep, b, a), e.where(steep, a, b)
    ratio = e.where(lesser.equals(greater), 1.0, lesser / greater)
    r = atan_of_unit(e, e.where(greater.equals(0.0), lesser, ratio))
    high, low = HALF_PI[e.format.name]
    r = e.where(steep, high - (r - low), r)
    pi_high, pi_low = PI[e.format.name]
    r = e.where(x.sign_bits().differs(0), pi_high - (r - pi_low), r)
    return r.with_sign_bits(y.sign_bits())
