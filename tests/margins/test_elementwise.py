"""What is computed element by element, and what moves elements, at sizes from 1 to 67."""

from __future__ import annotations

from pathlib import Path

import pytest
from margins import Family, check_family

from uopc import Tensor


def chain(x: Tensor, y: Tensor) -> Tensor:
    return (x * y + x.sin()).exp().tanh()


def moments(weight: Tensor, gradient: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """An optimizer's step: two results of one kernel, written over what they replace."""
    mean = mean * 0.9 + gradient * 0.1
    return weight - mean * 0.01, mean


FAMILIES = {
    "chain": Family(chain, lambda n: [(5, n), (n,)]),
    "whole vectors": Family(lambda x: x.exp().tanh(), lambda n: [(n, 32)], schedule="vector"),
    "chain of halves": Family(lambda x: (x.exp() + 1).log(), lambda n: [(3, n)], "f16"),
    "chain of doubles": Family(lambda x: x.sigmoid() * x.cos(), lambda n: [(3, n)], "f64"),
    "bytes": Family(lambda x, y: (x > y).where(x, y) // 3, lambda n: [(3, n), (n,)], "ui8"),
    "two results": Family(moments, lambda n: [(5, n)] * 3),
    "in place": Family(moments, lambda n: [(5, n)] * 3, donated=(0, 2)),
    "transposed": Family(lambda x: x.T.contiguous(), lambda n: [(17, n)]),
    "so many transposed": Family(lambda x: x.T.contiguous(), lambda n: [(n, 33)], "bf16"),
    "transposed and added": Family(lambda x, y: x.T + y, lambda n: [(35, n), (n, 35)]),
    "axes turned": Family(lambda x: x.permute(0, 2, 1) * 2, lambda n: [(2, 19, n)], "f64"),
    "joined": Family(lambda x, y: x.cat(y, axis=1), lambda n: [(3, n), (3, 7)]),
    "rows looked up": Family(
        lambda x, k: x[k], lambda n: [(9, n), (5,)], "f32 i32", below=lambda n: 9
    ),
    "triangle": Family(lambda x: x.tril(), lambda n: [(n, n)]),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_family(FAMILIES[name], monkeypatch, tmp_path)


def row_sums(n: int) -> Family:
    """The gradient of an embedding: rows added to where they were looked up."""

    def added(table: Tensor, places: Tensor, rows: Tensor) -> Tensor:
        return table.index_add(0, places, rows)

    return Family(added, lambda k: [(9, k), (n,), (n, k)], "f32 i32 f32", below=lambda k: 9)


@pytest.mark.parametrize("n", [1, 12])
def test_rows_added_to_places(n: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_family(row_sums(n), monkeypatch, tmp_path)
