"""Rows that are normalized, at sizes from 1 to 67: see support/margins.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from margins import Family, check_family

from uopc import Tensor


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return x.layer_norm(x.shape[-1:], weight, bias)


FAMILIES = {
    "softmax": Family(lambda x: x.softmax(-1), lambda n: [(17, n)], schedule="vector"),
    "softmax of so many rows": Family(lambda x: x.softmax(-1), lambda n: [(n, 17)]),
    "softmax of columns": Family(lambda x: x.softmax(0), lambda n: [(17, n)]),
    "log softmax of halves": Family(lambda x: x.log_softmax(-1), lambda n: [(5, n)], "f16"),
    "layer norm": Family(layer_norm, lambda n: [(17, n), (n,), (n,)], schedule="vector"),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_family(FAMILIES[name], monkeypatch, tmp_path)
