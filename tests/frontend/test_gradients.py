"""Gradients against finite differences in f64, their rules, and what stops them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from uopc import Tensor, UopcError, cache_info
from uopc.frontend import graph

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(5)


def smooth(*shape: int) -> np.ndarray:
    return RNG.uniform(0.2, 0.9, shape)


Function = Callable[..., Tensor]
I = np.array([2, 0, 2])  # noqa: E741 (positions, as in numpy's take)

# Single ops: tests/passes/test_gradient_rules.py.
CASES: dict[str, tuple[Function, tuple[np.ndarray, ...]]] = {
    **{
        name: (lambda x, name=name: getattr(x, name)(), (smooth(3),))
        for name in (
            "sigmoid", "silu", "gelu", "mish", "softplus", "elu", "logsigmoid", "square", "relu",
            "frac", "erfc", "logit",
        )
    },
    "add sub mul div": (lambda x, y: (x + y) * (x - y) / y, (smooth(2, 3), smooth(3))),
    "pow": (lambda x, y: x**y, (smooth(4), smooth(4) * 3)),
    "pow 3": (lambda x: x**3 + x**0.5 + x**-1 + 2**x, (smooth(3),)),
    "atan2": (lambda x, y: x.atan2(y), (smooth(3), smooth(3))),
    "max min": (lambda x, y: x.maximum(y) * x.minimum(y * 2), (smooth(5), smooth(5))),
    "mod": (lambda x, y: (x * 5) % y + (x * 5).fmod(y), (smooth(3), smooth(3))),
    "where": (lambda x, y: (x > y).where(x * 2, y * 3), (smooth(4), smooth(4))),
    "cast": (lambda x: x.cast("f64") * 2, (smooth(3),)),
    "movement": (
        lambda x: x.reshape(3, 2).T.flip(1).pad(((1, 0), (0, 2)))[:, ::2].expand(2, 3, 3),
        (smooth(2, 3),),
    ),
    "strided": (lambda x: x[::-2, 1:4:2] * 3, (smooth(5, 5),)),
    "sum mean var": (lambda x: x.sum(0) * x.mean(1, keepdim=True) + x.var(1), (smooth(3, 3),)),
    "max": (lambda x: x.max(1) * x.min(), (smooth(3, 4),)),
    "prod": (lambda x: x.prod(1), (smooth(2, 3),)),
    "prod with a zero": (lambda x: x.prod(1), (np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0]]),)),
    "cumsum cumprod": (lambda x: x.cumsum(1) * x.cumprod(0), (smooth(3, 4),)),
    "softmax": (lambda x: x.softmax(0) + x.log_softmax(1) + x.logsumexp(1), (smooth(3, 3),)),
    "matmul": (lambda x, y: (x @ y).sin(), (smooth(2, 2, 3), smooth(3, 2))),
    "einsum": (lambda x, y: Tensor.einsum("ij,jk->ki", x, y), (smooth(2, 3), smooth(3, 2))),
    "take": (lambda x: x[I, 1:], (smooth(4, 3),)),
    "gather": (lambda x: x.gather(1, np.array([[0, 0], [2, 1]])), (smooth(2, 3),)),
    "scatter add": (lambda x, y: x.scatter_add(0, I, y).square(), (smooth(4), smooth(3))),
    "scatter set": (lambda x, y: x.scatter(0, I, y).square(), (smooth(4), smooth(3))),
    "scatter mul": (lambda x, y: x.scatter(0, I, y, "multiply"), (smooth(4), smooth(3))),
    "scatter max": (lambda x, y: x.scatter(0, I, y, "amax"), (smooth(4), smooth(3) * 2)),
    "set item": (lambda x, y: _with_row(x, y) * x, (smooth(3, 4), smooth(2))),
    "cat": (lambda x, y: Tensor.cat([x, y, x]).square(), (smooth(2), smooth(3))),
    "sort": (lambda x: x.sort()[0] * Tensor([1.0, 2.0, 3.0, 4.0], dtype="f64"), (smooth(4),)),
    "norms": (lambda x: x.layernorm() + x.rms_norm() + x.normalize(), (smooth(2, 4),)),
    "conv": (
        lambda x, w: x.conv2d(w, stride=2, padding=1, groups=2),
        (smooth(1, 4, 4, 5), smooth(2, 2, 3, 2)),
    ),
    "conv transpose": (
        lambda x, w: x.conv_transpose2d(w, stride=2, padding=1),
        (smooth(1, 2, 2, 3), smooth(2, 1, 3, 3)),
    ),
    "pools": (lambda x: x.max_pool2d(2) + x.avg_pool2d(2), (smooth(1, 1, 4, 4),)),
    "attention": (
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        (smooth(3, 2), smooth(3, 2), smooth(3, 2)),
    ),
    "losses": (
        lambda x: x.cross_entropy(Tensor([1, 0])) + x.mse_loss(0.3) + x.huber_loss(2.0),
        (smooth(2, 3),),
    ),
}  # fmt: skip


def _with_row(x: Tensor, y: Tensor) -> Tensor:
    z = x * 2
    z[1, ::2] = y
    return z


def weights_of(t: Tensor) -> Tensor:
    """Different weights for all elements, so that no two gradients are alike."""
    return ((Tensor.arange(t.size).cast("f64") + 1) * 0.7).sin().reshape(t.shape)


def weighed(function: Function, values: tuple[Any, ...]) -> Tensor:
    result = function(*values)
    return (result * weights_of(result)).sum()


STEP = 1e-5


def test_first_derivatives():
    """The slope along random directions, by steps and by rule; equal structures share plans."""
    names = list(CASES)
    wrong: list[str] = []
    for at in range(0, len(names), 12):
        chunk = names[at : at + 12]
        for _ in range(2):
            directions = {n: [RNG.standard_normal(v.shape) for v in CASES[n][1]] for n in chunk}
            ends: list[list[float]] = []
            for sign in (1, -1):
                results = [
                    weighed(
                        CASES[n][0],
                        tuple(
                            Tensor(v + sign * STEP * d)
                            for v, d in zip(CASES[n][1], directions[n], strict=True)
                        ),
                    )
                    for n in chunk
                ]
                Tensor.realize_all(*results)
                ends.append([r.item() for r in results])
            slopes = [slope_by_rule(n, directions[n]) for n in chunk]
            Tensor.realize_all(*slopes)
            for n, up, down, slope in zip(chunk, *ends, slopes, strict=True):
                stepped = (up - down) / (2 * STEP)
                if not math.isclose(stepped, slope.item(), rel_tol=2e-5, abs_tol=2e-6):
                    wrong.append(f"{n}: by steps {stepped}, by rule {slope.item()}")
    assert not wrong, "\n".join(wrong)


def slope_by_rule(name: str, directions: list[np.ndarray]) -> Tensor:
    function, values = CASES[name]
    tensors = [Tensor(v, requires_grad=True) for v in values]
    weighed(function, tuple(tensors)).backward()
    total = Tensor(0.0, dtype="f64")
    for tensor, direction in zip(tensors, directions, strict=True):
        assert tensor.grad is not None, name
        assert tensor.grad.shape == tensor.shape
        total = total + (tensor.grad * direction).sum()
    return total


def test_second_derivatives():
    x = Tensor(smooth(4), requires_grad=True)
    for function, expected in [
        (lambda t: (t**3).sum(), lambda v: 6 * v),
        (lambda t: t.exp().sum(), np.exp),
        (lambda t: (t.log() * t).sum(), lambda v: 1 / v),
        (lambda t: t.tanh().sum(), lambda v: -2 * np.tanh(v) * (1 - np.tanh(v) ** 2)),
    ]:
        (first,) = function(x).gradient(x)
        (second,) = first.sum().gradient(x)
        np.testing.assert_allclose(second.numpy(), expected(x.numpy()), rtol=1e-9)


def test_item_before_backward_keeps_the_graph():
    w = Tensor(np.array([1.0, 2.0], np.float32), requires_grad=True)
    loss = (w * w).sum()
    assert loss.item() == 5.0
    loss.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2.0, 4.0]
    loss.backward()
    assert w.grad.tolist() == [4.0, 8.0]


def test_detach_stops_gradients_and_is_no_kernel():
    w = Tensor([1.0, 2.0], requires_grad=True)
    (w.detach() * w).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [1.0, 2.0]
    before = cache_info().compiles
    assert w.detach().tolist() == [1.0, 2.0]
    assert cache_info().compiles == before
    with Tensor.no_grad():
        assert not (w * 2).requires_grad
    assert (w * 2).requires_grad


def test_equal_parameters_have_gradients_of_their_own():
    a, b = Tensor.zeros(2), Tensor.zeros(2)
    a.requires_grad = b.requires_grad = True
    (a * 2 + b * 3).sum().backward()
    assert a.grad is not None and b.grad is not None
    assert (a.grad.tolist(), b.grad.tolist()) == ([2.0, 2.0], [3.0, 3.0])


def test_assigned_parameters_are_leaves_again():
    w = Tensor([1.0, 2.0], requires_grad=True)
    for expected in ([2.0, 4.0], [1.6, 3.2]):
        w.grad = None
        w.square().sum().backward()
        assert w.grad is not None
        np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-6)
        w -= w.grad * 0.1
        assert w.requires_grad
    np.testing.assert_allclose(w.numpy(), [0.64, 1.28], rtol=1e-6)


def test_ties_of_many_halves_share_the_gradient():
    x = Tensor(np.ones(70000, np.float16), requires_grad=True)
    x.max().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy().astype(np.float64), 1 / 70000, rtol=0.01)


def test_rows_that_are_masked_out_harm_no_others():
    inf = math.inf
    x = Tensor([[-inf, -inf], [0.0, 0.0]], requires_grad=True)
    y = x.softmax(-1)
    (y * Tensor([1.0, 2.0])).sum().backward()
    assert x.grad is not None
    assert np.isnan(y.numpy()[0]).all() and y.numpy()[1].tolist() == [0.5, 0.5]
    np.testing.assert_allclose(x.grad.numpy()[1], [-0.25, 0.25])
    q, k, v = (Tensor(smooth(2, 3), requires_grad=True) for _ in range(3))
    mask = Tensor([[False, False], [True, True]])
    out = q.scaled_dot_product_attention(k, v, mask)
    out.sum().backward()
    assert out.numpy()[0].tolist() == [0.0, 0.0, 0.0]
    for t in (q, k, v):
        assert t.grad is not None and np.isfinite(t.grad.numpy()).all()
    np.testing.assert_allclose(v.grad.numpy().sum(), 3.0)


def test_depth_and_sharing_cost_what_they_hold():
    x = Tensor([1.0], requires_grad=True)
    y = x
    for _ in range(60):
        y = y * 0.5 + y * 0.5
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0]
    order = graph.evaluation_order([x.grad.node])
    assert len(order) < 1000


def test_what_has_no_gradient_says_so():
    for words, action in [
        ("i32", lambda: Tensor([1, 2]).sum().backward()),
        ("2 elements", lambda: Tensor([1.0, 2.0], requires_grad=True).backward()),
        ("depends on no tensor", lambda: Tensor([1.0]).sum().backward()),
        ("has no gradients", lambda: Tensor([1], requires_grad=True)),
    ]:
        with pytest.raises(UopcError, match=words):
            action()
