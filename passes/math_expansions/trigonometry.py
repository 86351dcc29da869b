"""sin, cos and tan: reduce |x| by quarter turns, take a polynomial, put the signs back.

On [-pi/4, pi/4] the minimax polynomials are sin r = r + r^3 P(r^2), cos r = 1 - r^2/2 + r^4 P(r^2)
and tan r = r + r^3 P(r^2). Both of sin and cos are computed and one chosen by the quadrant.
"""

from __future__ import annotations

from uopc.passes.math_expansions.coefficients import COS, SIN, TAN
from uopc.passes.math_expansions.emit import F32, F64, Emitter, Float, Int
from uopc.passes.math_expansions.turns import Turn, reduce_turns, reduce_turns_of_float


def sin(e: Emitter, x: Float) -> Float:
    """Sine, error below 2 ulp for every finite x."""
    quadrant, sine, cosine = sine_and_cosine(e, abs(x))
    result = e.where((quadrant & 1).differs(0), cosine, sine)
    return result.with_sign_bits(half_turn_sign(e, quadrant) ^ x.sign_bits())


def cos(e: Emitter, x: Float) -> Float:
    """Cosine, error below 2 ulp for every finite x."""
    quadrant, sine, cosine = sine_and_cosine(e, abs(x))
    result = e.where((quadrant & 1).differs(0), sine, cosine)
    return result.with_sign_bits(half_turn_sign(e, quadrant + 1))


def tan(e: Emitter, x: Float) -> Float:
    """Tangent, error below 2 ulp for every finite x; f32 by way of f64.

    tan(r + pi/2) = -1 / tan r.
    """
    wide = e.at(F64)
    if e.format is F32:
        turn = reduce_turns_of_float(e, abs(x))
        table, low = "f32_in_f64", 0.0
    else:
        turn = reduce_turns(e, abs(x))
        assert turn.r_low is not None
        table, low = "f64", wide.fma(turn.r_low, turn.r * turn.r, turn.r_low)
    z = turn.r * turn.r
    tangent = turn.r + wide.fma(turn.r * z, wide.polynomial(z, TAN[table]), low)
    result = wide.where((turn.quadrant & 1).differs(0), -1.0 / tangent, tangent)
    if e.format is F32:
        result = result.converted(e)
    return result.with_sign_bits(x.sign_bits())


def sine_and_cosine(e: Emitter, a: Float) -> tuple[Int, Float, Float]:
    """The quadrant of a >= 0, and sine and cosine of the angle within it."""
    turn = turn_in_format(e, a)
    r, z = turn.r, turn.r * turn.r
    name = e.format.name
    sine_tail, cosine_tail = e.polynomial(z, SIN[name]), e.polynomial(z, COS[name])
    cosine_head = e.fma(z, -0.5, 1.0)
    if turn.r_low is None:
        sine = e.fma(r * z, sine_tail, r)
        cosine = e.fma(z * z, cosine_tail, cosine_head)
    else:
        sine = r + e.fma(r * z, sine_tail, turn.r_low)
        cosine = cosine_head + e.fma(z * z, cosine_tail, -(r * turn.r_low))
    return turn.quadrant, sine, cosine


def turn_in_format(e: Emitter, a: Float) -> Turn:
    """The reduced angle, r rounded to the format of e."""
    if e.format is F64:
        return reduce_turns(e, a)
    turn = reduce_turns_of_float(e, a)
    return Turn(turn.quadrant, turn.r.converted(e), None)


def half_turn_sign(e: Emitter, quadrant: Int) -> Int:
    """The sign bit set in quadrants 2 and 3."""
    return (quadrant & 2) << (e.format.bits - 2)
