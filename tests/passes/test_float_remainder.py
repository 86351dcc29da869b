"""The exact remainder that the IR computes, against the C library's."""

from __future__ import annotations

import numpy as np
from all_paths import everywhere

EDGES = [
    0.0, 5e-324, 1e-323, 2.781342323134e-309, 2.2250738585072014e-308, 2.225073858507201e-308,
    1e-300, 1.0, 1.5, 3.0, 1e300, 8.98846567431158e307, 1.7e308, 1.7976931348623157e308, np.inf,
]  # fmt: skip


def test_remainders_of_any_two_numbers(graph, cache_folder):
    """The quotient may have 2098 bits: the largest number by the smallest."""
    rng = np.random.default_rng(1)
    edges = np.array([*EDGES, *(-x for x in EDGES), np.nan])
    any_bits = rng.integers(0, 2**64, (2, 3000), dtype=np.uint64).view(np.float64)
    a = np.concatenate([np.repeat(edges, len(edges)), any_bits[0]])
    b = np.concatenate([np.tile(edges, len(edges)), any_bits[1]])
    x, y = graph.input("x", a.shape, "f64"), graph.input("y", a.shape, "f64")
    results = everywhere(
        graph.module(graph.op("rem", x, y), graph.op("mod", x, y), graph.op("floordiv", x, y)), a, b
    )
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)
        np.testing.assert_array_equal(results[0], expected)
        known = ~np.isnan(expected)
        assert np.array_equal(np.signbit(results[0][known]), np.signbit(expected[known]))
        np.testing.assert_array_equal(results[1], np.mod(a, b))
