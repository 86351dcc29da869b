"""Attention in one kernel, at sizes from 1 to 67 of each dimension: see support/margins.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from margins import Family, check_family

from uopc import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v, is_causal=True)


def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v, mask)


FAMILIES = {
    "queries": Family(attend, lambda n: [(n, 5), (33, 5), (33, 7)], schedule="capture"),
    "keys": Family(attend, lambda n: [(18, 5), (n, 5), (n, 7)], schedule="capture"),
    "depth": Family(attend, lambda n: [(17, n), (16, n), (16, 3)], schedule="capture"),
    "depth of one": Family(attend, lambda n: [(3, n, 1)] * 3, "f64"),
    "causal": Family(causal, lambda n: [(2, n, 4)] * 3, schedule="bound"),
    "masked": Family(masked, lambda n: [(n, 3), (19, 3), (19, 4), (n, 19)], "f64"),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_family(FAMILIES[name], monkeypatch, tmp_path)
