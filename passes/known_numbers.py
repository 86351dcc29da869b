"""Arithmetic on numbers that are known in part: only 0 and infinities are followed through.

Other results would have to be rounded to the type; these are exact in each. `finite` is the word
of whoever asks that operands which are not known are neither infinite nor NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A number that a value is; `or_nan` if otherwise all that depends on it is NaN anyway."""

    number: float | int
    or_nan: bool = False

    @property
    def is_nan(self) -> bool:
        return self.number != self.number


def product_of(a: Known | None, b: Known | None, *, finite: bool) -> Known | None:
    """a * b of floats; the sign of a zero is left open, as a sum of zeros does not show it."""
    for one, other in ((a, b), (b, a)):
        if one is None or one.number != 0:
            continue
        if other is None:
            return Known(0.0, one.or_nan) if finite else None
        sure = math.isfinite(other.number)
        return Known(0.0, one.or_nan or other.or_nan) if sure else None
    if a is None or b is None or a.is_nan or b.is_nan:
        return None
    if math.isinf(a.number) or math.isinf(b.number):
        return Known(a.number * b.number, a.or_nan or b.or_nan)
    return None


def sum_of(a: Known | None, b: Known | None, *, finite: bool) -> Known | None:
    """a + b of floats."""
    for one, other in ((a, b), (b, a)):
        if one is None or not math.isinf(one.number):
            continue
        if other is None:
            return one if finite else None
        if other.is_nan or other.number == -one.number:
            return None
        return Known(one.number, one.or_nan or other.or_nan)
    if a is not None and b is not None and a.number == 0 and b.number == 0:
        return Known(0.0, a.or_nan or b.or_nan)
    return None


def difference(a: Known | None, b: Known | None, *, finite: bool) -> Known | None:
    """a - b of floats."""
    return sum_of(a, None if b is None else Known(-b.number, b.or_nan), finite=finite)


def quotient(a: Known | None, b: Known | None) -> Known | None:
    """a / b of floats: 0 of what is a number other than 0."""
    if a is None or b is None or a.number != 0 or b.number == 0 or b.is_nan:
        return None
    return Known(0.0, a.or_nan or b.or_nan)
