"""Facts of training and inference: caches of keys and values, parallel gradients, split layers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from uopc import Tensor, cache_info, clear_cache, nn

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(0)


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_a_cache_of_fixed_capacity_is_three_plans_for_all_positions():
    capacity, width, size = 64, 32, 16
    weights = [reals(width, size) / np.float32(math.sqrt(width)) for _ in range(3)]
    wq, wk, wv = (Tensor(w) for w in weights)
    xs = reals(capacity, width)
    keys, values = (Tensor(np.zeros((capacity, size), np.float32)) for _ in range(2))
    slots = Tensor.arange(capacity)
    clear_cache()
    before, plans, outs = cache_info().compiles, [], []
    for t in range(capacity):
        x, position = Tensor(xs[t : t + 1]), Tensor(np.int32(t))
        here = (slots == position).unsqueeze(1)
        keys = here.where(x @ wk, keys).realize()
        values = here.where(x @ wv, values).realize()
        out = (x @ wq).scaled_dot_product_attention(keys, values, slots <= position)
        outs.append(out.numpy())
        plans.append(cache_info().compiles - before)
    assert plans[0] <= 3
    assert plans[-1] == plans[0]
    q, k, v = (xs.astype(np.float64) @ w for w in weights)
    scores = np.where(np.tri(capacity, dtype=bool), q @ k.T / math.sqrt(size), -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    assert np.abs(np.concatenate(outs) - e / e.sum(-1, keepdims=True) @ v).max() < 1e-6


def test_halves_of_a_batch_average_to_the_gradient_of_the_whole():
    Tensor.manual_seed(0)
    layer = nn.Linear(8, 4)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 8)).astype(np.float32)
    y = rng.integers(0, 4, 32).astype(np.int32)

    def grads(part: slice) -> list[np.ndarray]:
        layer.zero_grad()
        loss = layer(Tensor(x[part])).cross_entropy(Tensor(y[part]))
        (loss / 4).backward()  # below 1/32 a few units in the last place are under 2e-8
        return [p.grad.numpy() for p in layer.parameters() if p.grad is not None]

    whole, first, second = (grads(s) for s in (slice(None), slice(16), slice(16, None)))
    assert len(whole) == 2
    for w, a, b in zip(whole, first, second, strict=True):
        assert np.abs(w - (a + b) / 2).max() < 2e-8


def test_a_layer_split_by_columns_or_rows_is_the_whole():
    layer, x = nn.Linear(8, 6), Tensor(reals(5, 8))
    weight, bias = layer.weight.detach(), layer.bias.detach()
    columns = Tensor.cat([x.linear(weight[:3], bias[:3]), x.linear(weight[3:], bias[3:])], 1)
    rows = x[:, :4].linear(weight[:, :4]) + x[:, 4:].linear(weight[:, 4:]) + bias
    whole = layer(x)
    Tensor.realize_all(whole, columns, rows)
    np.testing.assert_allclose(columns.numpy(), whole.numpy(), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(rows.numpy(), whole.numpy(), rtol=1e-5, atol=1e-6)


def test_products_of_half_types_add_up_in_f32():
    a, b = (Tensor(reals(64, 64), dtype="f16") for _ in range(2))
    exact = a.numpy().astype(np.float64) @ b.numpy().astype(np.float64)
    got = (a.float() @ b.float()).numpy()
    assert np.abs(got - exact).max() < 3e-5
    rounded = (a @ b).numpy().astype(np.float64)
    assert 1e-3 < np.abs(rounded - exact).max() < 7e-2
