"""Values the expansions must hit exactly: zeros with their sign, infinities, Annex F's cases."""

from __future__ import annotations

import numpy as np
import pytest

INF, NAN, TINY = float("inf"), float("nan"), 2.0**-149
EXACT = {
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (89, INF), (-104, 0)],
    "exp2": [(0, 1), (INF, INF), (-INF, 0), (NAN, NAN), (128, INF), (-149, TINY), (-151, 0)],
    "expm1": [
        (0, 0),
        (-0.0, -0.0),
        (INF, INF),
        (-INF, -1),
        (TINY, TINY),
        (-TINY, -TINY),
        (NAN, NAN),
    ],
    "log": [(1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN), (NAN, NAN)],
    "log2": [(1, 0), (0, -INF), (TINY, -149), (INF, INF), (-TINY, NAN), (NAN, NAN)],
    "log10": [(1, 0), (10, 1), (1e5, 5), (0, -INF), (INF, INF), (-1, NAN), (NAN, NAN)],
    "log1p": [(0, 0), (-0.0, -0.0), (-1, -INF), (-2, NAN), (INF, INF), (TINY, TINY), (NAN, NAN)],
    "sin": [
        (0, 0),
        (-0.0, -0.0),
        (INF, NAN),
        (-INF, NAN),
        (NAN, NAN),
        (TINY, TINY),
        (-TINY, -TINY),
    ],
    "cos": [(0, 1), (-0.0, 1), (TINY, 1), (INF, NAN), (NAN, NAN)],
    "tan": [(0, 0), (-0.0, -0.0), (INF, NAN), (NAN, NAN), (-TINY, -TINY)],
    "asin": [(0, 0), (-0.0, -0.0), (1.0001, NAN), (-2, NAN), (INF, NAN), (NAN, NAN), (TINY, TINY)],
    "acos": [(1, 0), (1.0001, NAN), (-2, NAN), (-INF, NAN), (NAN, NAN)],
    "atan": [(0, 0), (-0.0, -0.0), (NAN, NAN), (-TINY, -TINY)],
    "sinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (-90, -INF), (NAN, NAN), (TINY, TINY)],
    "cosh": [(0, 1), (INF, INF), (-INF, INF), (90, INF), (NAN, NAN), (TINY, 1)],
    "tanh": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (20, 1), (NAN, NAN), (-TINY, -TINY)],
    "asinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (TINY, TINY)],
    "acosh": [(1, 0), (0.5, NAN), (-3, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "atanh": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (-INF, NAN), (TINY, TINY)],
    "erf": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (5, 1), (NAN, NAN)],
    "cbrt": [(0, 0), (-0.0, -0.0), (8, 2), (-27, -3), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "rsqrt": [(0, INF), (-0.0, -INF), (4, 0.5), (INF, 0), (-1, NAN), (NAN, NAN)],
}
EXACT_TWO = {
    "powf": [
        (NAN, 0, 1), (INF, -0.0, 1), (1, NAN, 1), (1, INF, 1), (-1, INF, 1), (-1, -INF, 1),
        (-1, NAN, NAN), (-8, 3, -512), (-8, 2, 64), (-8, 0.5, NAN), (-8, 1 / 3, NAN), (2, NAN, NAN),
        (0, -1, INF), (-0.0, -1, -INF), (-0.0, -3, -INF), (-0.0, -2, INF), (-0.0, -0.5, INF),
        (0, 3, 0), (-0.0, 3, -0.0), (-0.0, 2, 0), (0, INF, 0), (0, -INF, INF), (-0.0, -INF, INF),
        (0.5, INF, 0), (0.5, -INF, INF), (2, INF, INF), (2, -INF, 0), (-2, -INF, 0), (-2, INF, INF),
        (INF, 0.5, INF), (INF, -0.5, 0), (-INF, 3, -INF), (-INF, 2, INF), (-INF, 0.5, INF),
        (-INF, -3, -0.0), (-INF, -2, 0), (-INF, -0.5, 0), (2, 10, 1024), (2, -149, TINY),
        (NAN, 1, NAN), (3, 4, 81), (-INF, INF, INF), (-1, 2.0**24, 1), (-1, 2.0**23 + 1, -1),
    ],
    "atan2": [
        (0, 0, 0), (-0.0, 0, -0.0), (0, 5, 0), (-0.0, 5, -0.0), (0, INF, 0), (3, INF, 0),
        (-3, INF, -0.0), (NAN, 1, NAN), (1, NAN, NAN), (NAN, 0, NAN), (INF, NAN, NAN),
        (NAN, INF, NAN),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact_values_and_special_cases(compiled, same_bits, name: str) -> None:
    x, want = (np.array(column, dtype=np.float32) for column in zip(*EXACT[name], strict=True))
    agree = same_bits(compiled.apply(name, x), want)
    assert agree.all(), list(zip(x[~agree], want[~agree], strict=True))
    keep = np.array(
        [abs(value) not in (89, 104, 149, 151, 128, 90, 20, 5) for value, _ in EXACT[name]]
    )
    keep &= np.array([abs(value) != TINY or name == "log2" for value, _ in EXACT[name]])
    wide, want = x[keep].astype(np.float64), want[keep].astype(np.float64)
    assert same_bits(compiled.apply(name, wide), want).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXACT_TWO)
def test_special_cases_of_annex_f(compiled, same_bits, name: str, kind: type) -> None:
    x, y, want = (np.array(column, dtype=kind) for column in zip(*EXACT_TWO[name], strict=True))
    agree = same_bits(compiled.apply(name, x, y), want)
    assert agree.all(), list(zip(x[~agree], y[~agree], want[~agree], strict=True))


@pytest.mark.parametrize(
    ("kind", "least", "top"), [(np.float32, -149, 127), (np.float64, -1074, 1023)]
)
def test_powers_of_two_are_exact(compiled, same_bits, kind: type, least: int, top: int) -> None:
    exponents = np.arange(least, top + 1).astype(kind)
    powers = np.ldexp(kind(1), exponents.astype(int)).astype(kind)
    assert same_bits(compiled.apply("exp2", exponents), powers).all()
    assert same_bits(compiled.apply("log2", powers), exponents).all()
    assert same_bits(compiled.apply("powf", np.full_like(powers, 2), exponents), powers).all()
