"""Reductions, at sizes from 1 to 67 of each dimension: see support/margins.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from margins import Family, check_family

FAMILIES = {
    "sums of rows": Family(lambda x: x.sum(1), lambda n: [(5, n)], schedule="vector"),
    "sums of columns": Family(lambda x: x.sum(0), lambda n: [(17, n)], schedule="vector"),
    "sums of so many rows": Family(lambda x: x.sum(0), lambda n: [(n, 33)], schedule="vector"),
    "sums of the middle": Family(lambda x: x.sum(1), lambda n: [(2, n, 17)]),
    "sum of all": Family(lambda x: x.sum(), lambda n: [(n, n)], schedule="vector"),
    "means of halves": Family(lambda x: x.mean(1), lambda n: [(3, n)], "bf16"),
    "products": Family(lambda x: x.prod(1), lambda n: [(3, n)], "f64"),
    "maxima of rows": Family(lambda x: x.max(1), lambda n: [(3, n)], schedule="vector"),
    "minima of columns": Family(lambda x: x.min(0), lambda n: [(9, n)], "f16"),
    "integers": Family(lambda x: x.max(1) + x.sum(1), lambda n: [(3, n)], "i16"),
    "bytes": Family(lambda x: x.min(0), lambda n: [(5, n)], "i8"),
    "truth values": Family(lambda x: (x > 50).any(1), lambda n: [(3, n)], "i32"),
    "positions in rows": Family(lambda x: x.argmax(1), lambda n: [(5, n)]),
    "positions in columns": Family(lambda x: x.argmin(0), lambda n: [(5, n)], "i64"),
    "distances": Family(
        lambda x, y: (x.unsqueeze(2) - y.unsqueeze(1)).abs().sum(2), lambda n: [(3, n), (3, n)]
    ),
    "variances": Family(lambda x: x.var(1), lambda n: [(5, n + 1)]),
    "sums so far": Family(lambda x: x.cumsum(1), lambda n: [(3, n)]),
    "largest of a window": Family(lambda x: x.max_pool2d(3, 2, padding=1), lambda n: [(2, 5, n)]),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_family(FAMILIES[name], monkeypatch, tmp_path)
