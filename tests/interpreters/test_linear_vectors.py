"""Vectors in the interpreter."""

from __future__ import annotations

import numpy as np
from linear_programs import VECTORS, parse

from uopc.interpreters.linear import run_linear


def test_masked_vectors_along_rows():
    x = np.random.default_rng(2).standard_normal((5, 11)).astype(np.float32)
    o, s = np.zeros((5, 11), np.float32), np.zeros(5, np.float32)
    run_linear(parse(VECTORS), "f", [x, o, s])
    assert (o == x + x).all()
    expected = []
    for row in x:
        total = np.float32(0)
        for v in [*row, np.float32(0)]:
            total += v
        expected.append(total)
    assert s.tolist() == expected


def test_parts_of_vectors():
    x = np.arange(16, dtype=np.float32)
    e, d, f = run_linear(parse(VECTORS), "parts", [x, 3])
    assert (e.tolist(), float(d)) == ([0, 5, 7, 7], 7)
    assert f.tolist() == [[0, 5, 7, 7], [0, 1, 2, 3]]
