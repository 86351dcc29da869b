"""Long graphs are computed in several plans."""

from __future__ import annotations

import time

import numpy as np
import pytest

from uopc import Tensor, cache_info
from uopc.frontend import segments

pytestmark = pytest.mark.usefixtures("cache_folder")


def test_a_chain_of_twenty_thousand_ops_is_a_few_plans():
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    y, expected = Tensor(x), x
    for k in range(20_000):
        y = y - 0.5 if k % 2 else y * 0.5
        expected = expected - np.float32(0.5) if k % 2 else expected * np.float32(0.5)
    before, start = cache_info().compiles, time.process_time()
    np.testing.assert_array_equal(y.numpy(), expected)
    assert cache_info().compiles - before <= 4
    assert time.process_time() - start < 10


def test_cuts_change_no_value_and_keep_what_is_read_later(monkeypatch: pytest.MonkeyPatch):
    """Values read across several cuts, several results, results that are read further on, and
    an ending that is nothing but constants and movement."""
    rng = np.random.default_rng(3)
    data = rng.standard_normal((3, 4)).astype(np.float32)

    def program() -> list[Tensor]:
        choose = np.random.default_rng(7)
        values = [Tensor(data), Tensor.arange(4).float(), Tensor.full((3, 4), 2.0)]
        for _ in range(40):
            a, b = (values[int(k)] for k in choose.integers(0, len(values), 2))
            values.append((a * 0.5 + b).maximum(-3.0))
            if choose.random() < 0.2:
                values.append(values[-1].sum(-1, keepdim=True).expand(3, 4) * 0.125)
        return [values[-1], values[20], values[-1].T, values[-2].flip(0), Tensor.ones(2, 2)]

    whole = program()
    Tensor.realize_all(*whole)
    monkeypatch.setattr(segments, "LONG", 20)
    for size in (3, 16):
        monkeypatch.setattr(segments, "SEGMENT", size)
        parts = program()
        Tensor.realize_all(*parts)
        for a, b in zip(whole, parts, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_gradients_through_cuts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(segments, "LONG", 20)
    monkeypatch.setattr(segments, "SEGMENT", 10)
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x
    for _ in range(30):
        y = y * 0.5 + y.square() * 0.125
    assert np.isfinite(y.numpy()).all()
    y.sum().backward()
    assert x.grad is not None
    a, slope = np.array([1.0, 2.0]), np.ones(2)
    for _ in range(30):
        slope *= 0.5 + 0.25 * a
        a = a * 0.5 + a * a * 0.125
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-4)
    np.testing.assert_allclose(y.numpy(), a, rtol=1e-4)
