"""The plans that tensor programs become: how many kernels, which, and what is shared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import uopc
from uopc import Tensor
from uopc.frontend.graph import evaluation_order, resolved
from uopc.frontend.realize import find_plan
from uopc.passes.pipelines import PIPELINES

pytestmark = pytest.mark.usefixtures("cache_folder", "a_kernel_a_reduction")


@pytest.fixture
def a_kernel_a_reduction(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plans as they are cut without fusion."""
    uopc.clear_cache()
    passes = tuple(p.partition("{")[0] for p in PIPELINES["uopc-cpu-native"])
    monkeypatch.setitem(PIPELINES, "uopc-cpu-native", passes)
    yield
    uopc.clear_cache()


def kernels(*tensors: Tensor) -> list[str]:
    """The names of the kernels of the plan for some tensors."""
    roots = [t.node for t in tensors]
    plan = find_plan(evaluation_order(roots), [resolved(r) for r in roots])
    return [k.name for k in plan.executable.plan.kernels]


def randn(*shape: int, requires_grad: bool = False) -> Tensor:
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return Tensor(data, requires_grad=requires_grad)


def test_kernels_of_small_programs():
    a, b, c = randn(64, 64), randn(64, 64), randn(64, 64)
    assert kernels((a * 2 + 1).relu() * 3) == ["e_64_64"]
    assert kernels(a + b) == ["e_64_64"]
    assert kernels((a + b).sum()) == ["r_1"]
    assert kernels(a.softmax(-1)) == ["r_64", "r_64", "e_64_64"]
    assert [name[0] for name in kernels(a.var(-1))] == ["r", "r", "e"]
    assert kernels((a @ b).relu() @ c) == ["r_64_64", "e_64_64", "r_64_64"]
    assert kernels((a @ b) @ c) == ["r_64_64", "r_64_64"]
    assert kernels((a.exp() * 2).contiguous().sum(1)) == ["e_64_64", "r_64"]
    assert kernels((a.exp() * 2).sum(1)) == ["r_64"]


def test_movement_and_detach_alone_are_no_kernels():
    x = randn(4, 8)
    assert kernels(x.T.flip(0)[1:].sum(0)) == ["r_4"]
    assert kernels(x.detach() + 1) == ["e_4_8"]
    w = randn(4, 8, requires_grad=True)
    assert kernels(w.detach()) == []


def test_a_loss_and_its_gradient_share_the_forward_product():
    x, w = randn(32, 64), randn(64, 10, requires_grad=True)
    loss = (x @ w).relu().square().mean()
    loss.backward()
    assert w.grad is not None
    names = kernels(loss, w.grad)
    assert names.count("r_32_10") == 1
    assert len(names) <= 5
    xs, ws = x.numpy().astype(np.float64), w.numpy().astype(np.float64)
    hidden = np.maximum(xs @ ws, 0)
    Tensor.realize_all(loss, w.grad)
    assert loss.item() == pytest.approx((hidden**2).mean(), rel=1e-5)
    np.testing.assert_allclose(w.grad.numpy(), xs.T @ (2 * hidden / 320), rtol=1e-4, atol=1e-6)


def test_training_reduces_the_loss():
    Tensor.manual_seed(1)
    data = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    x, y = Tensor(data), Tensor((data.sum(1) > 0).astype(np.int32))
    first = Tensor.uniform(16, 8, low=-0.35, high=0.35)
    second = Tensor.uniform(2, 16, low=-0.25, high=0.25)
    parameters = [first, second]
    for p in parameters:
        p.requires_grad = True
    losses = []
    for _ in range(40):
        loss = x.linear(first).relu().linear(second).cross_entropy(y)
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            assert p.grad is not None
            p -= p.grad * 0.5
        Tensor.realize_all(loss, *parameters)
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
