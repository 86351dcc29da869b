"""Derives the numbers in passes/math_expansions/coefficients.py.

    python benchmarks/minimax.py > passes/math_expansions/coefficients.py

Needs mpmath and numpy, neither of them to run the compiler. Each polynomial is the weighted
minimax one (Remez' exchange on a fixed dense grid, 60 digits). Its coefficients are rounded from
the lowest power up, and the rest fitted again after each of the first roundings, so that the
rounded polynomial is nearly as good as the exact one. The printed bound is its largest weighted
error, where the weight makes it relative to the function that the expansion returns.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

# By name, and Any: the types of an optional package are not there for every check.
mp: Any = import_module("mpmath").mp
mpf: Any = mp.mpf
Real: TypeAlias = Any
mp.dps = 60
REFITTED = 3
"""The last power after whose rounding of the coefficient before it the rest is fitted again."""
Function = Callable[[Real], Real]


@dataclass(frozen=True)
class Fit:
    """P of `degree` on [low, high] with |weight * (target - P)| least; `says` is the equation."""

    name: str
    says: str
    target: Function
    weight: Function
    ranges: dict[str, tuple[Real, Real, int]]
    """Format of the coefficients -> low, high, degree."""


def rounded(value: Real, table: str) -> Real:
    if table.startswith("f32"):
        return mpf(float(np.float32(float(value))))
    return mpf(float(value))


def solve(grid: list[Real], values: list[Real], weights: list[Real], first: int, last: int):
    """Remez' exchange for sum of c[k] x^k, first <= k <= last, on the grid."""
    count = last - first + 2
    spots = [round(i * (len(grid) - 1) / (count - 1)) for i in range(count)]
    coefficients: list[Real] = []
    powers = [[x**k for k in range(first, last + 1)] for x in grid]
    for _ in range(60):
        matrix = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, spot in enumerate(spots):
            for column in range(count - 1):
                matrix[row, column] = powers[spot][column]
            matrix[row, count - 1] = (-1) ** row / weights[spot]
            right[row] = values[spot]
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[i] for i in range(count - 1)]
        errors = [
            w * (v - mp.fdot(coefficients, p))
            for w, v, p in zip(weights, values, powers, strict=True)
        ]
        level = abs(solution[count - 1])
        fresh = alternation(errors, count)
        if fresh is None or max(abs(e) for e in errors) <= level * mpf("1.001"):
            break
        spots = fresh
    return coefficients


def alternation(errors: list[Real], count: int) -> list[int] | None:
    """The places of `count` largest extremes of alternating sign; None where there are fewer."""
    best: list[int] = []
    for place, error in enumerate(errors):
        if best and (errors[best[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[best[-1]]):
                best[-1] = place
        elif error != 0:
            best.append(place)
    while len(best) > count:
        if len(best) == count + 1:
            best.pop(0 if abs(errors[best[0]]) < abs(errors[best[-1]]) else -1)
        else:
            at = min(
                range(len(best) - 1), key=lambda i: max(abs(errors[j]) for j in best[i : i + 2])
            )
            del best[at : at + 2]
    return best if len(best) == count else None


def fit(task: Fit, table: str) -> tuple[list[Real], Real]:
    low, high, degree = task.ranges[table]
    points = 24 * (degree + 2) + 1
    grid = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (points - 1))
        for i in range(points)
    ]
    grid = [x for x in grid if abs(x) > mpf(2) ** -20]
    weights = [task.weight(x) for x in grid]
    values = [task.target(x) for x in grid]
    done: list[Real] = []
    rest = values
    left: list[Real] = []
    for power in range(degree + 1):
        if power <= REFITTED:
            left = solve(grid, rest, weights, power, degree)
        done.append(rounded(left[power - degree - 1], table))
        rest = [v - done[-1] * x**power for v, x in zip(rest, grid, strict=True)]
    return done, max(abs(w * v) for w, v in zip(weights, rest, strict=True))


LN2 = mp.log(2)
HALF = mpf(1) / 2
QUARTER_TURN = mp.pi / 4 * mpf("1.02")
ERF_CUT = mpf(1)

FITS = [
    Fit(
        "EXP2",
        "2^r = 1 + r P(r)",
        lambda r: (mpf(2) ** r - 1) / r,
        lambda r: abs(r) / mpf(2) ** r,
        {"f32": (-HALF, HALF, 5), "f64": (-HALF, HALF, 11), "f32_in_f64": (-HALF, HALF, 6)},
    ),
    Fit(
        "EXP",
        "e^r = 1 + r + r^2 P(r)",
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / abs(mp.expm1(r)),
        {"f32": (-LN2 / 2, LN2 / 2, 4), "f64": (-LN2 / 2, LN2 / 2, 10)},
    ),
    Fit(
        "LOG",
        "log(1 + f) = f + f^2 P(f)",
        lambda f: (mp.log1p(f) - f) / f**2,
        lambda f: f**2 / abs(mp.log1p(f)),
        {
            "f32": (-HALF / 2, HALF, 8),
            "f64": (-HALF / 2, HALF, 20),
            "f32_in_f64": (-HALF / 2, HALF, 14),
        },
    ),
    Fit(
        "ATANH",
        "atanh(s) = s + s^3/3 + s^5 P(s^2), over z = s^2",
        lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2,
        lambda z: z**2,
        {"f64": (mpf(0), mpf("0.0296"), 7)},
    ),
    Fit(
        "SIN",
        "sin(r) = r + r^3 P(r^2), over z = r^2",
        lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)),
        {"f32": (mpf(0), QUARTER_TURN**2, 2), "f64": (mpf(0), QUARTER_TURN**2, 5)},
    ),
    Fit(
        "COS",
        "cos(r) = 1 - r^2/2 + r^4 P(r^2), over z = r^2",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)),
        {"f32": (mpf(0), QUARTER_TURN**2, 2), "f64": (mpf(0), QUARTER_TURN**2, 5)},
    ),
    Fit(
        "TAN",
        "tan(r) = r + r^3 P(r^2), over z = r^2",
        lambda z: (mp.tan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.tan(mp.sqrt(z)),
        {"f32_in_f64": (mpf(0), QUARTER_TURN**2, 7), "f64": (mpf(0), QUARTER_TURN**2, 14)},
    ),
    Fit(
        "ASIN",
        "asin(x) = x + x^3 P(x^2), over z = x^2",
        lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.asin(mp.sqrt(z)),
        {"f32": (mpf(0), HALF**2, 4), "f64": (mpf(0), HALF**2, 12)},
    ),
    Fit(
        "ATAN",
        "atan(t) = t + t^3 P(t^2), over z = t^2",
        lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.atan(mp.sqrt(z)),
        {"f32": (mpf(0), mpf(1), 8), "f64": (mpf(0), mpf(1), 20)},
    ),
    Fit(
        "SINH",
        "sinh(x) = x + x^3 P(x^2), over z = x^2",
        lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.sinh(mp.sqrt(z)),
        {"f32": (mpf(0), mpf(1), 3), "f64": (mpf(0), mpf(1), 7)},
    ),
    Fit(
        "TANH",
        "tanh(x) = x + x^3 P(x^2), over z = x^2",
        lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)),
        {"f32": (mpf(0), mpf("0.5625") ** 2, 3), "f64": (mpf(0), mpf("0.5625") ** 2, 9)},
    ),
    Fit(
        "ERF",
        "erf(x) = x + x P(x^2), over z = x^2",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        {"f32": (mpf(0), ERF_CUT**2, 6), "f64": (mpf(0), ERF_CUT**2, 14)},
    ),
    Fit(
        "ERFC",
        "erfc(a) = 2^-P(a - 2.5)",
        lambda d: -mp.log(mp.erfc(d + mpf("2.5")), 2),
        lambda d: mp.erfc(d + mpf("2.5")) * LN2 / mp.erf(d + mpf("2.5")),
        {
            "f32": (ERF_CUT - mpf("2.5"), mpf("1.5"), 6),
            "f64": (ERF_CUT - mpf("2.5"), mpf("3.5"), 19),
        },
    ),
]


def chunks(value: Real, bits: int, count: int) -> list[Real]:
    """value = sum of chunk[k] 2^(-bits k), each chunk below 1 with `bits` bits."""
    whole = int(mp.floor(mp.ldexp(value, bits * count)))
    mask = (1 << bits) - 1
    return [mp.ldexp(mpf((whole >> (bits * (count - 1 - k))) & mask), -bits) for k in range(count)]


@dataclass(frozen=True)
class Parts:
    """A constant as a sum of two numbers; the first has `bits` significant bits, per format."""

    name: str
    says: str
    value: Callable[[], Real]
    bits: dict[str, int]


FULL = {"f32": 24, "f64": 53}
PARTS = [
    Parts(
        "LN2",
        "log(2); a whole exponent times the first part is exact",
        lambda: mp.log(2),
        {"f32": 16, "f64": 40},
    ),
    Parts("LOG10_2", "log10(2); likewise", lambda: mp.log10(2), {"f32": 14, "f64": 40}),
    Parts("LOG10_E", "log10(e)", lambda: 1 / mp.log(10), FULL),
    Parts("LOG2_E", "log2(e)", lambda: 1 / mp.log(2), FULL),
    Parts("PI", "pi", lambda: +mp.pi, FULL),
    Parts("HALF_PI", "pi/2", lambda: mp.pi / 2, FULL),
    Parts("THIRD", "1/3", lambda: mpf(1) / 3, {"f64": 53}),
]


def split(value: Real, bits: int, table: str) -> tuple[Real, Real]:
    _, exponent = mp.frexp(value)
    first = mp.ldexp(mp.nint(mp.ldexp(value, bits - exponent)), exponent - bits)
    return first, rounded(value - first, table)


def text(value: Real, table: str) -> str:
    return (
        str(np.float32(float(value)))
        if table.startswith("f32") and "in" not in table
        else repr(float(value))
    )


def main() -> None:
    print('"""Numbers of the expansions, by benchmarks/minimax.py: change that, not this."""\n')
    for task in FITS:
        print(f"# {task.says}")
        print(f"{task.name}: dict[str, tuple[float, ...]] = {{")
        for table, (low, high, degree) in task.ranges.items():
            kind = "f64" if table == "f32_in_f64" else table
            coefficients, bound = fit(
                Fit(task.name, "", task.target, task.weight, {kind: (low, high, degree)}), kind
            )
            bits = float(mp.log(bound, 2))
            print(f"    # on [{mp.nstr(low, 5)}, {mp.nstr(high, 5)}], error below 2^{bits:.1f}")
            print(f'    "{table}": (')
            for c in coefficients:
                print(f"        {text(c, table)},")
            print("    ),")
            print(task.name, table, f"{bits:.2f}", file=sys.stderr)
        print("}\n")
    for parts in PARTS:
        print(f"# {parts.says}\n{parts.name}: dict[str, tuple[float, float]] = {{")
        for table, bits in parts.bits.items():
            first, second = split(parts.value(), bits, table)
            print(f'    "{table}": ({text(first, table)}, {text(second, table)}),')
        print("}\n")
    mp.dps = 500
    print("# 2/pi = sum of chunk[k] 2^(-26 k): a float times a chunk is exact in a double")
    print("TWO_OVER_PI_26 = (")
    for c in chunks(2 / mp.pi, 26, 8):
        print(f"    {float(c)!r},")
    print(")\n\n# 2/pi = sum of chunk[k] 2^(-53 k)\nTWO_OVER_PI_53 = (")
    for c in chunks(2 / mp.pi, 53, 23):
        print(f"    {float(c)!r},")
    print(")")


if __name__ == "__main__":
    main()
