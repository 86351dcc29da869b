"""Shared by the tests of the interpreters: edge values of each element type, ops on arrays, and
an independent rounding of exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from xdsl.ir import Block

from uopc.dialects.element_types import ELEMENT_TYPES
from uopc.dialects.sizes import tensor_type
from uopc.interpreters.tensor import TENSOR_SEMANTICS

FORMATS = {
    "f64": (53, -1022, 1023),
    "f32": (24, -126, 127),
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
}
"""Digits, and the exponents of the smallest and largest normal numbers."""


def round_exact(value: Fraction, name: str) -> float:
    """The nearest number of a format, ties to even: from the definition, in integers."""
    digits, low, high = FORMATS[name]
    if value == 0:
        return 0.0
    size, sign = abs(value), 1 if value > 0 else -1
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, low)
    step = Fraction(2) ** (exponent - digits + 1)
    count, rest = divmod(size, step)
    if rest * 2 > step or (rest * 2 == step and count % 2):
        count += 1
    result = count * step
    if result >= Fraction(2) ** (high + 1):
        return sign * math.inf
    return sign * float(result)


def float_edges(name: str) -> list[float]:
    digits, low, high = FORMATS[name]
    tiny, eps = 2.0 ** (low - digits + 1), 2.0 ** (1 - digits)
    largest = float((2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** high)
    positive = [
        0.0, tiny, 3 * tiny, 2.0**low, 2.0**low - tiny, 0.125, 1.0 - eps / 2, 1.0, 1.0 + eps, 1.5,
        2.0, 2.5, 3.0, 7.0, 64.0, 65504.0 if name != "bf16" else 65536.0, largest / 2, largest,
        math.inf,
    ]  # fmt: skip
    return [*positive, *(-x for x in positive), math.nan]


def integer_edges(name: str) -> list[int]:
    row = next(t for t in ELEMENT_TYPES if t.name == name)
    low, high = row.limits
    near = {0, 1, 2, 3, 4, 5, 7, row.bits - 1, row.bits, row.bits + 1, high // 2, high // 3, high}
    near |= {high - 1, high // 2 + 1, 0x55 & high}
    near |= {low, low + 1, low // 2, -1, -2, -3, -7, -row.bits} if low < 0 else set()
    return sorted(value for value in near if low <= value <= high)


class Ops:
    """Runs single ops on arrays."""

    round_exact = staticmethod(round_exact)
    formats = FORMATS

    def row(self, name: str):
        return next(t for t in ELEMENT_TYPES if t.name == name)

    def edges(self, name: str) -> np.ndarray:
        row = self.row(name)
        if row.is_float:
            return np.array(float_edges(name)).astype(row.numpy)
        values = [False, True] if row.is_bool else integer_edges(name)
        return np.array(values, row.numpy)

    def pairs(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of edge values."""
        edges = self.edges(name)
        return np.repeat(edges, len(edges)), np.tile(edges, len(edges))

    def values(self, arrays: list[np.ndarray], names: list[str]):
        """Values of tensor types for arrays."""
        types = [
            tensor_type(self.row(n).attribute, a.shape) for n, a in zip(names, arrays, strict=True)
        ]
        return Block(arg_types=types).args

    def run(self, make, *arrays: np.ndarray, names: list[str]) -> np.ndarray:
        """Build an op by `make(*values)`, verify and run it; the result has its type."""
        operands = self.values(list(arrays), names)
        op = make(*operands)
        op.verify()
        result = TENSOR_SEMANTICS[type(op)](op, arrays)
        expected = op.results[0].type
        row = next(t for t in ELEMENT_TYPES if t.attribute == expected.element_type)
        assert result.dtype == row.numpy
        assert result.shape == expected.get_shape()
        return result


@pytest.fixture(scope="session")
def ops() -> Ops:
    return Ops()


@pytest.fixture(autouse=True)
def no_warnings(recwarn):
    """Nothing that a tensor holds may make numpy warn."""
    yield
    assert not [str(w.message) for w in recwarn.list if issubclass(w.category, RuntimeWarning)]
