"""Sums of products, at sizes from 1 to 67 of each dimension: see support/margins.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from margins import EVERY_SIZE, SIZES, Family, check_family

from uopc import Tensor


def dense(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return (x @ w.T + b).relu()


def convolution(x: Tensor, w: Tensor) -> Tensor:
    return x.conv2d(w, padding=1)


FAMILIES = {
    "rows": Family(Tensor.__matmul__, lambda n: [(n, 17), (17, 17)], schedule="contract"),
    "columns": Family(Tensor.__matmul__, lambda n: [(17, 17), (17, n)], schedule="contract"),
    "depth": Family(Tensor.__matmul__, lambda n: [(17, n), (n, 17)], schedule="contract"),
    "square": Family(Tensor.__matmul__, lambda n: [(n, n), (n, n)], schedule="contract"),
    "left transposed": Family(lambda a, b: a.T @ b, lambda n: [(17, n), (17, 33)]),
    "right transposed": Family(lambda a, b: a @ b.T, lambda n: [(9, 17), (n, 17)]),
    "both transposed": Family(lambda a, b: a.T @ b.T, lambda n: [(n, 9), (33, n)], "f64"),
    "f16": Family(Tensor.__matmul__, lambda n: [(9, 17), (17, n)], "f16"),
    "bf16": Family(Tensor.__matmul__, lambda n: [(9, n), (n, 33)], "bf16"),
    "integers": Family(Tensor.__matmul__, lambda n: [(5, n), (n, 17)], "i32"),
    "a batch": Family(Tensor.__matmul__, lambda n: [(2, 9, 17), (2, 17, n)]),
    "batched rows": Family(lambda a, b: a @ b, lambda n: [(3, n, 9), (9, 20)], schedule="merge"),
    "gradient of weights": Family(
        lambda a, b: (a.mT.unsqueeze(2) * b.unsqueeze(1).mT).sum((0, 3)),
        lambda n: [(3, 9, n), (3, 9, 20)],
        schedule="merge",
    ),
    "one row": Family(Tensor.__matmul__, lambda n: [(1, 33), (33, n)]),
    "few rows": Family(Tensor.__matmul__, lambda n: [(3, n), (n, 33)]),
    "a vector": Family(Tensor.__matmul__, lambda n: [(17, n), (n,)]),
    "dense layer": Family(dense, lambda n: [(9, 17), (n, 17), (n,)]),
    "convolution, width": Family(convolution, lambda n: [(1, 3, 4, n), (5, 3, 3, 3)]),
    "convolution, channels": Family(convolution, lambda n: [(2, 3, 5, 7), (n, 3, 3, 3)]),
    "convolution, strides": Family(
        lambda x, w: x.conv1d(w, stride=2, dilation=2), lambda n: [(1, 4, n + 4), (6, 4, 3)]
    ),
}
FAMILIES |= {
    "a halo, width": Family(convolution, lambda n: [(2, 2, 4, n), (33, 2, 3, 3)]),
    "a halo, rows": Family(
        lambda x, w: x.conv2d(w, stride=(2, 1)),
        lambda n: [(1, 2, n + 2, 34), (33, 2, 3, 3)],
        schedule="+",
    ),
    "a halo, window": Family(
        lambda x, w: x.conv2d(w), lambda n: [(1, 2, 7, 31 + n), (33, 2, 3, n)]
    ),
    "a halo, a signal": Family(
        lambda x, w: x.conv1d(w, padding=2), lambda n: [(2, 3, n), (34, 3, 5)], "f64"
    ),
}


def paired(function: Callable[..., Tensor], shapes: Callable[[int], Any]) -> Family:
    """Products of bf16 in pairs, whatever this machine has."""
    return Family(function, shapes, "bf16", schedule="pair", target="avx512bf16")


FAMILIES |= {
    "pairs, depth": paired(Tensor.__matmul__, lambda n: [(33, n), (n, 33)]),
    "pairs, rows": paired(Tensor.__matmul__, lambda n: [(n, 18), (18, 33)]),
    "pairs, columns": paired(Tensor.__matmul__, lambda n: [(40, 17), (17, n)]),
    "pairs, left transposed": paired(lambda a, b: a.T @ b, lambda n: [(n, 65), (n, 18)]),
    "pairs, strips": paired(lambda a, b: a.T @ b, lambda n: [(n, 150), (n, 18)]),
    "pairs, right transposed": paired(lambda a, b: a @ b.T, lambda n: [(34, n), (35, n)]),
    "pairs, both transposed": paired(lambda a, b: a.T @ b.T, lambda n: [(n, 34), (35, n)]),
    "pairs, a batch": paired(Tensor.__matmul__, lambda n: [(2, 33, n), (2, n, 17)]),
    "pairs, of a layer": paired(lambda a, b: (a.relu() @ b).exp(), lambda n: [(33, n), (n, 20)]),
    "no pairs in f64": Family(
        lambda a, b: (a.unsqueeze(2) * b.unsqueeze(0)).sum(1, dtype="f64"),
        lambda n: [(33, n), (n, 20)],
        "bf16",
        target="avx512bf16",
    ),
    "pairs, convolution": paired(convolution, lambda n: [(1, n, 5, 7), (33, n, 3, 3)]),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sizes = EVERY_SIZE if name in ("rows", "columns", "depth") else SIZES
    check_family(FAMILIES[name], monkeypatch, tmp_path, sizes)
