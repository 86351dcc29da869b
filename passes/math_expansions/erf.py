"""The error function."""

from __future__ import annotations

from uopc.passes.math_expansions.coefficients import ERF, ERFC, EXP2
from uopc.passes.math_expansions.emit import F32, Emitter, Float
from uopc.passes.math_expansions.exponentials import power_of_two, split_binary


def erf(e: Emitter, x: Float) -> Float:
    """Error function, error below 2 ulp.

    Below 1: a + a P(a^2), minimax polynomial ERF. From 1 on: 1 - 2^-P(a - 5/2), where P is the
    minimax polynomial ERFC of -log2 erfc, weighted so that the error of the difference is even.
    Past 4 (f64: 6) the result rounds to 1.
    """
    name = e.format.name
    a = abs(x)
    near = e.fma(a, e.polynomial(a * a, ERF[name]), a)
    end = 4.0 if e.format is F32 else 6.0
    s = split_binary(e, -e.polynomial(a.at_most(end) - 2.5, ERFC[name]))
    complement = e.fma(s.r, e.polynomial(s.r, EXP2[name]), 1.0)
    far = e.fma(complement, -power_of_two(e, s.n), 1.0)
    return e.where(a < 1.0, near, far).with_sign_bits(x.sign_bits())
