"""Symbolic sizes under uopc.jit: one plan for all lengths, and errors where a length is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import uopc
from uopc import Tensor, UopcError, cache_info, nn

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(2)
N, M = uopc.size("n", 1, 64), uopc.size("m", 1, 32)


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def causal_attention(xs: np.ndarray, weights: list[np.ndarray]) -> np.ndarray:
    q, k, v = (xs.astype(np.float64) @ w for w in weights)
    scores = np.where(np.tri(len(xs), dtype=bool), q @ k.T / math.sqrt(q.shape[1]), -np.inf)
    return softmax(scores) @ v


def test_b6_a_cache_of_keys_and_values_grows_without_another_plan():
    """64 steps, one plan, and what it costs follows the length."""
    length, width, size = 64, 32, 16
    weights = [reals(width, size) / np.float32(math.sqrt(width)) for _ in range(3)]
    wq, wk, wv = map(Tensor, weights)
    seen = uopc.size("seen", 0, length - 1)

    @uopc.jit(sizes=[None, (seen, size), (seen, size)])
    def decode(x: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, values = Tensor.cat([keys, x @ wk]), Tensor.cat([values, x @ wv])
        return (x @ wq).scaled_dot_product_attention(keys, values), keys, values

    xs = reals(length, width)
    keys, values = (Tensor(np.zeros((0, size), np.float32)) for _ in range(2))
    before, plans, outs = cache_info().compiles, [], []
    for t in range(length):
        out, keys, values = decode(Tensor(xs[t : t + 1]), keys, values)
        assert keys.shape == values.shape == (t + 1, size)
        outs.append(out.numpy())
        plans.append(cache_info().compiles - before)
    assert (plans[0], plans[-1], decode.traces) == (1, 1, 2)
    assert np.abs(np.concatenate(outs) - causal_attention(xs, weights)).max() < 1e-6
    with pytest.raises(UopcError, match=r"size `seen` of decode is 64; it may be 0 to 63"):
        decode(Tensor(xs[:1]), keys, values)


def test_b6_a_row_is_written_in_a_cache_of_fixed_capacity_and_read_up_to_there():
    """The position is a size: the row goes in at it, and attention ends behind it."""
    capacity, width, size = 64, 32, 16
    weights = [reals(width, size) / np.float32(math.sqrt(width)) for _ in range(3)]
    wq, wk, wv = map(Tensor, weights)
    place = uopc.size("place", 1, capacity)

    @uopc.jit(sizes=[None, place])
    def decode(x: Tensor, here: int, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        keys[here - 1] = (x @ wk)[0]
        values[here - 1] = (x @ wv)[0]
        out = (x @ wq).scaled_dot_product_attention(keys[:here], values[:here])
        return out, keys + 0, values + 0

    xs = reals(capacity, width)
    keys, values = (Tensor(np.zeros((capacity, size), np.float32)) for _ in range(2))
    before, outs = cache_info().compiles, []
    for t in range(capacity):
        out, keys, values = decode(Tensor(xs[t : t + 1]), t + 1, keys, values)
        outs.append(out.numpy())
    assert cache_info().compiles - before == 1
    assert np.abs(np.concatenate(outs) - causal_attention(xs, weights)).max() < 1e-6


def test_b4_a_loop_ends_where_the_call_says():
    """sum(x[i, :n]) for all n, one plan; the size is a number among tensors as well."""
    last = uopc.size("last", 0, 8)

    @uopc.jit(sizes=[None, last])
    def sums(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
        return x[:, :n].sum(1), (Tensor.arange(8) < n).where(n * x, 0.5)

    before = cache_info().compiles
    x = reals(4, 8)
    for n in (3, 8, 0, 1):
        got, chosen = sums(Tensor(x), n)
        np.testing.assert_allclose(got.numpy(), x[:, :n].sum(1), rtol=1e-5, atol=1e-6)
        assert chosen.element == "f32"
        np.testing.assert_array_equal(chosen.numpy(), np.where(np.arange(8) < n, x * n, 0.5))
    assert cache_info().compiles - before == 1
    with pytest.raises(UopcError, match="size `last` of sums is 9; it may be 0 to 8"):
        sums(Tensor(x), 9)
    with pytest.raises(UopcError, match="is the size last, and a float in this call"):
        sums(Tensor(x), 2.0)


def test_c28_a_length_makes_no_compile():
    n = uopc.size("quarter", 2, 12)

    @uopc.jit(sizes=[(n * 4,), n])
    def chunks(x: Tensor, part: int) -> list[Tensor]:
        return [part * 2 + 1 for part in x.chunk(4)]

    side = uopc.size("side", 2, 12)

    @uopc.jit(sizes=[(side,)])
    def square(x: Tensor) -> Tensor:
        return Tensor.full((x.shape[0], x.shape[0]), 3.0) * x

    before = cache_info().compiles
    for length in range(2, 13):
        x = reals(4 * length)
        for got, row in zip(chunks(Tensor(x), length), x.reshape(4, -1), strict=True):
            np.testing.assert_array_equal(got.numpy(), row * 2 + 1)
        y = reals(length)
        np.testing.assert_array_equal(
            square(Tensor(y)).numpy(), np.full((length, length), 3, np.float32) * y
        )
    assert cache_info().compiles - before == 2
    assert chunks.traces == square.traces == 2


def test_c30_results_follow_the_length_of_every_call():
    f = uopc.jit(lambda t: (t + 1).T.flatten(), sizes=[(N, M)])
    for n, m in ((1, 2), (2, 3), (3, 1), (4, 4), (2, 3), (64, 32)):
        x = reals(n, m)
        got = f(Tensor(x))
        assert got.shape == (n * m,)
        np.testing.assert_array_equal(got.numpy(), (x + 1).T.ravel())
    assert f.traces == 2


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "numbers": (lambda x, y: (x * 2 + y) / 3, lambda x, y: (x * 2 + y) / 3),
    "rows": (lambda x, y: x + y.sum(0) - y[0], lambda x, y: x + y.sum(0) - y[0]),
    "mean": (lambda x, y: x.mean(0) + y.mean(), lambda x, y: x.mean(0) + y.mean()),
    "var": (lambda x, y: x.var(0) + y.std(1).sum(), lambda x, y: x.var(0) + y.std(1).sum()),
    "max": (lambda x, y: x.max(0) * y.argmax(1).max(), lambda x, y: x.max(0) * y.argmax(1).max()),
    "softmax": (lambda x, y: x.T.softmax(-1) @ y, lambda x, y: softmax(x.T) @ y),
    "products": (lambda x, y: (x @ y.T) @ x, lambda x, y: (x @ y.T) @ x),
    "reshape": (
        lambda x, y: x.reshape(x.shape[0], 2, -1).transpose(0, 1).reshape(-1, 4),
        lambda x, y: x.reshape(len(x), 2, 4).transpose(1, 0, 2).reshape(-1, 4),
    ),
    "slices": (lambda x, y: x[1:] - y[:-1], lambda x, y: x[1:] - y[:-1]),
    "last": (lambda x, y: x[-1] + y[0], lambda x, y: x[-1] + y[0]),
    "cat": (lambda x, y: Tensor.cat([x, y, x]), lambda x, y: np.concatenate([x, y, x])),
    "stack": (lambda x, y: Tensor.stack([x, y], axis=1), lambda x, y: np.stack([x, y], 1)),
    "pad": (lambda x, y: x.pad(((2, 1), (0, 0))), lambda x, y: np.pad(x, ((2, 1), (0, 0)))),
    "arange": (
        lambda x, y: Tensor.arange(x.shape[0]).unsqueeze(1) * x,
        lambda x, y: np.arange(len(x))[:, None] * x,
    ),
    "triangle": (lambda x, y: (x @ y.T).tril(), lambda x, y: np.tril(x @ y.T)),
    "eye": (lambda x, y: Tensor.eye(x.shape[0]) @ x, lambda x, y: x),
    "repeat": (lambda x, y: x.repeat(2, 1), lambda x, y: np.tile(x, (2, 1))),
    "flip": (lambda x, y: x.flip(0), lambda x, y: x[::-1]),
    "norms": (
        lambda x, y: x.layernorm(eps=0.0) + y.rms_norm(eps=0.0),
        lambda x, y: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
        + y / np.sqrt((y * y).mean(1, keepdims=True)),
    ),
    "einsum": (lambda x, y: Tensor.einsum("ij,kj->ki", x, y), lambda x, y: y @ x.T),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_symbolic_sizes(name: str):
    ours, theirs = FUNCTIONS[name]
    f = uopc.jit(ours, sizes=[(N, 8), (N, 8)])
    before = cache_info().compiles
    for n in (3, 1, 2, 17, 64):
        x, y = reals(n, 8), reals(n, 8)
        expected = theirs(x.astype(np.float64), y.astype(np.float64))
        got = f(Tensor(x), Tensor(y))
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.numpy(), expected, rtol=2e-5, atol=2e-5)
    assert cache_info().compiles - before <= 1
    assert f.traces == 2


def test_a_model_is_trained_on_batches_of_any_size():
    Tensor.manual_seed(0)
    layer, other = nn.Linear(4, 3), nn.Linear(4, 3)
    other.load_state_dict(layer.state_dict())
    opt, other_opt = (nn.SGD(each.parameters(), lr=0.1) for each in (layer, other))

    def step_of(layer: nn.Linear, opt: nn.SGD) -> Callable[[Tensor, Tensor], Tensor]:
        def step(x: Tensor, y: Tensor) -> Tensor:
            loss = layer(x).cross_entropy(y)
            loss.backward()
            opt.step(loss)
            opt.zero_grad()
            return loss

        return step

    step = uopc.jit(step_of(layer, opt), sizes=[(N, 4), (N,)])
    plain = step_of(other, other_opt)
    for n in (5, 3, 64, 1, 20):
        x, y = reals(n, 4), RNG.integers(0, 3, n).astype(np.int32)
        got, expected = step(Tensor(x), Tensor(y)).item(), plain(Tensor(x), Tensor(y)).item()
        assert got == pytest.approx(expected, rel=1e-5)
    assert step.traces == 2
    np.testing.assert_allclose(layer.weight.numpy(), other.weight.numpy(), rtol=1e-5, atol=1e-6)


def test_sizes_that_do_not_fit_are_told():
    f = uopc.jit(lambda x, y: Tensor.cat([x, y]), sizes=[(N, 8), (N + 1, None)])
    assert f(Tensor(reals(2, 8)), Tensor(reals(3, 8))).shape == (5, 8)
    for words, shapes in [
        (r"size `n` of _lambda_ is 65; it may be 1 to 64", ((65, 8), (66, 8))),
        (r"size `n` of _lambda_ is 0; it may be 1 to 64", ((0, 8), (1, 8))),
        (r"has shape \[5, 8\]; expected \[3, 8\], which is \(n \+ 1, 8\)", ((2, 8), (5, 8))),
        (r"has shape \[2, 9\]; expected \[2, 8\]", ((2, 9), (3, 8))),
        (r"argument 0 of _lambda_ has sizes \(n, 8\), which is no form of", ((2,), (3, 8))),
    ]:  # fmt: skip
        with pytest.raises(UopcError, match=words):
            f(*(Tensor(reals(*shape)) for shape in shapes))
    g = uopc.jit(lambda x, y: x + y, sizes=[(N,), (N,)])
    with pytest.raises(UopcError, match="size `n` of _lambda_ is 3 and 2 in one call"):
        g(Tensor(reals(3)), Tensor(reals(2)))
    with pytest.raises(UopcError, match=r"axis -1 has sizes m and n"):
        uopc.jit(lambda x, y: x + y, sizes=[(N,), (M,)])(Tensor(reals(3)), Tensor(reals(3)))
    with pytest.raises(UopcError, match="is not within it for all values"):
        uopc.jit(lambda x: x[:3], sizes=[(N,)])(Tensor(reals(3)))
    with pytest.raises(UopcError, match="4 equal pieces of an axis of size n"):
        uopc.jit(lambda x: x.chunk(4), sizes=[(N,)])(Tensor(reals(8)))
    with pytest.raises(UopcError, match="needs a symbolic size as a plain number"):
        uopc.jit(lambda x: x.sort()[0], sizes=[(N,)])(Tensor(reals(3)))
    with pytest.raises(UopcError, match="n is no axis by itself"):
        uopc.jit(lambda x: x, sizes=[(N * 2,)])
    with pytest.raises(UopcError, match="a size is called 'a b'"):
        uopc.size("a b", 1, 2)
    with pytest.raises(UopcError, match="size k is 3 to 2"):
        uopc.size("k", 3, 2)


def test_other_sizes_are_structure_as_ever():
    f = uopc.jit(lambda x: x * 2, sizes=[(N, None)])
    for n, width in ((2, 3), (5, 3), (2, 4), (7, 4)):
        x = reals(n, width)
        np.testing.assert_array_equal(f(Tensor(x)).numpy(), x * 2)
    assert f.traces == 4
    np.testing.assert_array_equal(f(x).numpy(), x * 2)  # an array
