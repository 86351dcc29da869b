"""Reduction of an angle to quarter turns, right for every finite argument (after Payne and Hanek).

y = a 2/pi is wanted modulo 4. 2/pi is a table of chunks of w bits. Chunk k, of weight 2^(-w k),
adds a multiple of 4 once a >= 2^(w (k + 1) + precision + 1), so a large argument needs only five
chunks from some place j on. Instead of a table look-up, which vectors lack, halving steps drop 16,
8, 4, 2 or 1 chunks where the argument is past their threshold, and scale it down by their weight.
Products of argument and chunk are exact: in f64 where the argument is a float and w = 26, as
a sum of two where it is a double and w = 53.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uopc.passes.math_expansions.coefficients import HALF_PI, TWO_OVER_PI_26, TWO_OVER_PI_53
from uopc.passes.math_expansions.emit import F32, F64, Emitter, Float, Int

NEEDED = 5
"""Chunks that are left to multiply by."""


@dataclass(frozen=True)
class Turn:
    """a = quadrant pi/2 + r + r_low, |r| at most pi/4 and a little; quadrant modulo 4 counts."""

    quadrant: Int
    r: Float
    r_low: Float | None
    """What r lacks, where it is known."""


def reduce_turns(e: Emitter, a: Float) -> Turn:
    """Reduces an f64 a >= 0. NaN and infinity give NaN.

    An a so small that it is its own sine stays as it is: its products would underflow.
    """
    whole, tiny = a, a < 2.0**-30
    a, chunks = drop_chunks(a, TWO_OVER_PI_53, 53, F64.precision, (16, 8, 4, 2, 1))
    (p0, q0), (p1, q1), (p2, q2), (p3, q3) = (
        exact_product(e, a, chunk * 2.0 ** (-53 * k)) for k, chunk in enumerate(chunks[:-1])
    )
    p4 = a * (chunks[-1] * 2.0 ** (-53 * 4))
    first = modulo_four(e, p0)
    terms = [modulo_four(e, q0), modulo_four(e, p1), q1, p2, q2, p3, q3, p4]
    n = (first + (terms[0] + (terms[1] + (terms[2] + terms[3])))).round_even()
    y, y_low = triple_sum(first - n, terms)
    high, low = HALF_PI["f64"]
    r = y * high
    r_low = e.fma(y, high, -r) + e.fma(y, low, y_low * high)
    return Turn(whole_bits(n), e.where(tiny, whole, r), e.where(tiny, 0.0, r_low))


def reduce_turns_of_float(e: Emitter, a: Float) -> Turn:
    """Reduces an f32 a >= 0; `quadrant` is an i32, r an f64 with a relative error of 2^-50."""
    wide = e.at(F64)
    x, (c0, c1, c2, c3, c4) = drop_chunks(
        a.converted(wide), TWO_OVER_PI_26, 26, F32.precision, (2, 1)
    )
    p0 = modulo_four(wide, x * c0)
    p1 = modulo_four(wide, x * (c1 * 2.0**-26))
    p2 = x * (c2 * 2.0**-52)
    rest = wide.fma(x, c4 * 2.0**-104, x * (c3 * 2.0**-78))
    n = (p0 + (p1 + p2)).round_even()
    r = ((((p0 - n) + p1) + p2) + rest) * HALF_PI["f64"][0]
    return Turn(whole_bits(n.converted(e)), r, None)


def drop_chunks(
    a: Float, table: Sequence[float], width: int, precision: int, steps: Sequence[int]
) -> tuple[Float, list[Float]]:
    """a scaled down below 2^(2 width + 1), and the chunks from the first that counts on."""
    e = a.e
    chunks = [e.number(value) for value in table]
    for position, step in enumerate(steps):
        far = a >= 2.0 ** (width * step + precision + 1)
        a = e.where(far, a * 2.0 ** (-width * step), a)
        kept = NEEDED + sum(steps[position + 1 :])
        chunks = [
            e.where(far, chunks[k + step], chunks[k]) if k + step < len(chunks) else chunks[k]
            for k in range(min(kept, len(chunks)))
        ]
    return a, chunks


def modulo_four(e: Emitter, y: Float) -> Float:
    """y less the nearest multiple of four, exactly."""
    return e.fma((y * 0.25).round_even(), -4.0, y)


def whole_bits(n: Float) -> Int:
    """An integer equal to the small whole number n modulo 4."""
    return (n + n.e.format.rounder).bits()


def exact_product(e: Emitter, a: Float, b: Float) -> tuple[Float, Float]:
    """p + q = a b."""
    p = a * b
    return p, e.fma(a, b, -p)


def exact_sum(a: Float, b: Float) -> tuple[Float, Float]:
    """s + t = a + b, s rounded (Knuth)."""
    s = a + b
    shift = s - a
    return s, (a - (s - shift)) + (b - shift)


def triple_sum(start: Float, terms: Sequence[Float]) -> tuple[Float, Float]:
    """The sum as high + low with three numbers carried, so that cancellation costs no digits."""
    high = start
    middle: Float | None = None
    low: Float | None = None
    for term in terms:
        high, error = exact_sum(high, term)
        if middle is None:
            middle = error
        else:
            middle, error = exact_sum(middle, error)
            low = error if low is None else low + error
    assert middle is not None and low is not None
    rest = middle + low
    total = high + rest
    return total, (high - total) + rest
