"""The sum of products of pairs of bf16, against exact fractions and x86's rule for tiny results."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from uopc.interpreters.pairs import dot

LEAST = Fraction(1, 1 << 126)
"""The smallest normal number of f32."""


def bits_of(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values, np.float32).view(np.uint32)


def rounded(x: Fraction) -> Fraction:
    """To 24 bits, ties to even, with any exponent."""
    if x == 0:
        return x
    exponent = 0
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (exponent - 23)
    return round(x / step) * step


def flushed(x: float) -> float:
    return float(np.copysign(0.0, x)) if abs(x) < LEAST else x


def one_step(a: float, b: float, c: float) -> float:
    a, b, c = flushed(a), flushed(b), flushed(c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        with np.errstate(all="ignore"):
            return float(np.float32(a * b) + np.float32(c))  # of zeros only the sign is open
    result = rounded(exact)
    if abs(result) < LEAST:
        return -0.0 if exact < 0 else 0.0
    if abs(result) >= Fraction(2) ** 128:
        return float("inf") if exact > 0 else float("-inf")
    return float(result)


def pairs(low: Any, high: Any) -> np.ndarray[Any, Any]:
    parts = [bits_of(v) >> 16 for v in (low, high)]
    return (parts[0] | parts[1] << 16).astype(np.uint32).view(np.int32)


def halves(generator: np.random.Generator, count: int, low: int, high: int) -> Any:
    """Numbers of bf16 with exponents in a range; 0 and below are denormals and zeros."""
    exponents = np.clip(generator.integers(low, high, count), 0, 254).astype(np.uint32)
    fraction = generator.integers(0, 128, count).astype(np.uint32)
    sign = generator.integers(0, 2, count).astype(np.uint32)
    return (sign << 31 | exponents << 23 | fraction << 16).view(np.float32)


@pytest.mark.parametrize(
    ("factors", "sums"),
    [((117, 137), (110, 140)), ((50, 75), (0, 4)), ((0, 254), (0, 254)), ((60, 66), (0, 2))],
    ids=["moderate", "near the smallest", "any", "about the smallest"],
)
def test_each_step_is_the_rounded_exact_sum(
    factors: tuple[int, int], sums: tuple[int, int]
) -> None:
    generator, count = np.random.default_rng(3), 3000
    values = [halves(generator, count, *factors) for _ in range(4)]
    fraction = generator.integers(0, 1 << 16, count).astype(np.uint32)
    c = (halves(generator, count, *sums).view(np.uint32) | fraction).view(np.float32)
    a, b = pairs(*values[:2]), pairs(*values[2:])
    with np.errstate(all="ignore"):
        got = dot(c, a, b)
    for k in range(count):
        x0, x1, y0, y1 = (float(v[k]) for v in values)
        want = one_step(x1, y1, float(c[k]))
        if np.isinf(want):
            assert np.isinf(got[k]) or np.isnan(got[k])
            continue
        want = one_step(x0, y0, want)
        assert bits_of(got[k]) == bits_of(want), (x0, x1, y0, y1, float(c[k]))


def test_the_second_products_come_first() -> None:
    one, big = np.float32(1), np.float32(2.0**30)
    a = pairs([one], [big])
    b = pairs([one], [big])
    # -2**60 + 2**60 + 1: the other way round the 1 would be lost in -2**60.
    assert dot(np.float32([-(2.0**60)]), a, b)[0] == 1


def test_a_result_at_the_edge_is_tiny_if_it_would_round_to_less() -> None:
    least, half_ulp = np.float32(2.0**-126), np.float32(2.0**-75)
    none = np.float32(0)
    for factor, want in ((1.0, least), (1.5, none), (0.5, least)):
        # 2**-126 less factor * 2**-151: a tie with any exponent goes up, what is below does not
        small = -half_ulp * np.float32(factor)
        a, b = pairs([none], [small]), pairs([none], [np.float32(2.0**-76)])
        assert dot(np.float32([least]), a, b)[0] == want, factor


def test_infinities_and_nan() -> None:
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    a, b = pairs([inf, nan, 1, inf], [1, 1, 1, 0]), pairs([1, 1, 1, 0], [1, 1, 1, inf])
    with np.errstate(all="ignore"):
        got = dot(np.float32([0, 0, -np.inf, 0]), a, b)
    assert got[0] == inf and np.isnan(got[1]) and got[2] == -inf and np.isnan(got[3])
