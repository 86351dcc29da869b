"""Optimizers against their formulas in f64; what a step compiles; clipping, scaling, schedules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import uopc
from uopc import Tensor, UopcError, cache_info, nn

pytestmark = pytest.mark.usefixtures("cache_folder")

START = np.array([1.0, -2.0, 0.5])
TARGET = np.array([0.3, 0.4, -0.2])


def gradient(w: np.ndarray) -> np.ndarray:
    return 2 * (w - TARGET) * np.array([1.0, 3.0, 0.5])


def trained(make: Callable[[list[Tensor]], Any], steps: int, dtype: str = "f64") -> np.ndarray:
    w = Tensor(START, dtype=dtype, requires_grad=True)
    opt = make([w])
    scale, target = Tensor([1.0, 3.0, 0.5], dtype=dtype), Tensor(TARGET, dtype=dtype)
    for _ in range(steps):
        opt.zero_grad()
        ((w - target).square() * scale).sum().backward()
        opt.step()
    return w.numpy().astype(np.float64)


def sgd(lr: float, momentum: float, decay: float, nesterov: bool, steps: int) -> np.ndarray:
    w, m = START.copy(), np.zeros(3)
    for _ in range(steps):
        g = gradient(w) + decay * w
        m = momentum * m + g
        w = w - lr * (g + momentum * m if nesterov else m)
    return w


def adam(lr: float, b1: float, b2: float, eps: float, decay: float, decoupled: bool, steps: int):
    w, m, v = START.copy(), np.zeros(3), np.zeros(3)
    for t in range(1, steps + 1):
        g = gradient(w) + (0 if decoupled else decay * w)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        w = w * (1 - lr * decay) if decoupled else w
        w = w - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    return w


def test_optimizers_compute_their_formulas():
    for momentum, decay, nesterov in ((0.0, 0.0, False), (0.9, 0.1, False), (0.8, 0.01, True)):
        got = trained(lambda p, m=momentum, d=decay, n=nesterov: nn.SGD(p, 0.05, m, d, n), 6)
        np.testing.assert_allclose(got, sgd(0.05, momentum, decay, nesterov, 6), rtol=1e-13)
    for kind, decoupled in ((nn.Adam, False), (nn.AdamW, True)):
        got = trained(lambda p, k=kind: k(p, 0.02, (0.8, 0.95), 1e-6, 0.1), 6)
        expected = adam(0.02, 0.8, 0.95, 1e-6, 0.1, decoupled, 6)
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    got = trained(lambda p: nn.AdamW(p, 0.02), 6, "f32")
    np.testing.assert_allclose(got, adam(0.02, 0.9, 0.999, 1e-8, 0.01, True, 6), rtol=1e-5)


def test_momentum_of_two_steps_by_hand():
    w = Tensor([1.0, -2.0], requires_grad=True)
    opt = nn.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(2):
        opt.zero_grad()
        w.square().sum().backward()
        opt.step()
    # m1 = 2 w0, w1 = 0.8 w0; m2 = 1.8 w0 + 1.6 w0, w2 = 0.8 w0 - 0.34 w0.
    np.testing.assert_allclose(w.numpy(), [0.46, -0.92], rtol=1e-6)


def test_training_two_layers_reduces_the_loss():
    Tensor.manual_seed(1)
    x = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    y = (x.sum(1) > 0).astype(np.int32)
    first, second = nn.Linear(8, 16), nn.Linear(16, 2)
    opt = nn.AdamW(nn.get_parameters([first, second]), lr=1e-2)
    losses = []
    for _ in range(40):
        loss = second(first(Tensor(x)).relu()).cross_entropy(Tensor(y))
        opt.zero_grad()
        loss.backward()
        opt.step(loss)
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_nothing_that_changes_from_step_to_step_makes_a_plan():
    Tensor.manual_seed(0)
    layer = nn.Linear(4, 2)
    opt = nn.AdamW(layer.parameters(), lr=1e-2)
    schedule = nn.CosineLR(opt, 10, warmup=2)
    x = Tensor(np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32))

    def step() -> None:
        opt.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        opt.step(loss)
        schedule.step()

    step()
    step()
    before = cache_info().compiles
    for number in range(3):
        opt.weight_decay = 0.1 * number
        opt.groups[0]["beta1"] = 0.5 + 0.1 * number
        step()
    assert cache_info().compiles == before
    assert opt.steps.item() == 5


def test_one_tensor_may_stand_for_a_group_and_be_clipped():
    w = Tensor([3.0, 4.0], requires_grad=True)
    assert nn.SGD([{"params": w}]).params == [w]
    w.grad = Tensor([3.0, 4.0])
    assert nn.clip_grad_norm_(w, 1.0).item() == 5.0


@pytest.mark.parametrize("kind", [nn.SGD, nn.AdamW])
def test_a_jitted_step_reads_its_numbers_anew(kind: Any):
    def run(jitted: bool) -> tuple[np.ndarray, int]:
        w = Tensor(START, dtype="f32", requires_grad=True)
        opt = kind([w], lr=0.1)
        schedule = nn.StepLR(opt, 2, 0.5)

        def step(x: Tensor) -> Tensor:
            loss = (w * x).square().sum()
            loss.backward()
            opt.step(loss)
            opt.zero_grad()
            return loss

        call = uopc.jit(step) if jitted else step
        losses = []
        for number in range(6):
            losses.append(call(Tensor([1.0, 2.0, 0.5 + number])).item())
            schedule.step()
            opt.weight_decay = 0.01 * number
        return np.array([*losses, *w.numpy()]), call.traces if jitted else 0

    lazy, _ = run(False)
    jitted, traces = run(True)
    assert traces == 2
    np.testing.assert_array_equal(jitted, lazy)


def test_groups_have_numbers_of_their_own():
    a, b = (Tensor([1.0, 1.0], requires_grad=True) for _ in range(2))
    opt = nn.SGD([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.1)
    (a.sum() + b.sum()).backward()
    opt.step()
    assert a.tolist() == pytest.approx([0.5, 0.5])
    assert b.tolist() == pytest.approx([0.9, 0.9])
    assert [group["lr"] for group in opt.param_groups] == [0.5, 0.1]
    opt.lr = 0.25
    assert [group["lr"] for group in opt.param_groups] == [0.25, 0.25]


def test_parameters_without_gradient_stay():
    a, b = (Tensor([1.0], requires_grad=True) for _ in range(2))
    opt = nn.SGD([a, b], lr=0.5, weight_decay=0.1)
    a.sum().backward()
    opt.step()
    assert (a.item(), b.item()) == (pytest.approx(0.45), 1.0)


def test_half_parameters_are_updated_in_f32():
    w = Tensor([1.0, 2.0], dtype="bf16", requires_grad=True)
    opt = nn.AdamW([w], lr=0.01)
    (w * w).sum().backward()
    opt.step()
    assert w.element == "bf16"
    assert opt.state[0]["exp_avg"].element == "f32"
    np.testing.assert_allclose(w.numpy().astype(np.float32), [0.99, 1.99], rtol=1e-2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: nn.SGD([], lr=0.1), "no parameters"),
        (lambda p: nn.SGD([p, p], lr=0.1), "given twice"),
        (lambda p: nn.SGD([Tensor([1.0])], lr=0.1), "needs no gradient"),
        (lambda p: nn.SGD([p], lr=-1), "lr is -1"),
        (lambda p: nn.SGD([p], nesterov=True), "nesterov without momentum"),
        (lambda p: nn.Adam([p], betas=(0.9, 1.0)), "beta2 is 1.0"),
        (lambda p: nn.SGD([{"params": [p], "rate": 1}]), "a parameter group has params, rate"),
        (lambda p: nn.SGD([p]).groups[0].__setitem__("momentum", 1), "no hyperparameter 'momen"),
        (lambda p: nn.AdamW([p], lr="x"), "lr is 'x'"),
        (lambda p: nn.SGD([{"params": [p], "lr": "x"}]), "lr is 'x'"),
        (lambda p: nn.SGD([p]).groups[0].__setitem__("lr", None), "lr is None"),
        (lambda p: nn.Adam([p], betas=0.9), "betas is 0.9"),
        (lambda p: nn.Adam([p], betas=("a", 0.9)), "beta1 is 'a'"),
        (lambda p: nn.SGD(p), "the parameters are no list: Tensor"),
        (lambda p: nn.SGD(nn.Linear(1, 1)), r"(?s)no list: Linear.*give it model.parameters"),
        (lambda p: nn.SGD([{"params": [p]}, p]), "a Tensor stands among parameter groups"),
        (lambda p: nn.StepLR(nn.SGD([p]), 1.5), "every is 1.5"),
        (lambda p: nn.StepLR(p, 1), "Tensor is no optimizer"),
        (lambda p: nn.CosineLR(nn.SGD([p]), "a"), "steps is 'a'"),
        (lambda p: nn.clip_grad_norm_([p], "a"), "max_norm is 'a'"),
        (lambda p: nn.LossScaler("a"), "scale is 'a'"),
        (lambda p: nn.SGD([p], lr=10**400), "lr is a int"),
        (lambda p: nn.clip_grad_norm_(5, 1.0), "parameters are 5"),
        (lambda p: nn.clip_grad_value_(["a"], 1.0), "parameters are 'a'"),
        (lambda p: nn.MultiStepLR(nn.SGD([p]), 5), "milestones is|milestones are 5"),
        (lambda p: nn.LambdaLR(nn.SGD([p]), 3), "the function of a schedule is 3"),
        (lambda p: nn.BatchNorm(3, eps="a"), "eps is 'a'"),
    ],
)
def test_wrong_arguments_are_told(make: Callable[[Tensor], Any], words: str):
    with pytest.raises(UopcError, match=words):
        make(Tensor([1.0], requires_grad=True))


# -- clipping --------------------------------------------------------------------------------------


def with_gradients(*grads: Any) -> list[Tensor]:
    owners = [Tensor(np.zeros_like(g), requires_grad=True) for g in grads]
    for owner, grad in zip(owners, grads, strict=True):
        owner.grad = Tensor(grad)
    return owners


def test_gradients_are_clipped_by_norm_and_value():
    grads = np.array([3.0, -1.0], np.float32), np.array([[2.0], [-5.0]], np.float32)
    flat = np.concatenate([g.ravel() for g in grads])
    for order in (2.0, 1.0, 3.0, math.inf):
        owners = with_gradients(*grads)
        norm = nn.clip_grad_norm_(owners, 2.5, order)
        expected = np.linalg.norm(flat, order)
        assert norm.item() == pytest.approx(expected, rel=1e-6)
        for owner, grad in zip(owners, grads, strict=True):
            assert owner.grad is not None
            np.testing.assert_allclose(owner.grad.numpy(), grad * 2.5 / expected, rtol=1e-5)
    owners = with_gradients(*grads)
    nn.clip_grad_norm_(owners, Tensor(100.0))
    assert owners[0].grad is not None
    assert owners[0].grad.tolist() == [3.0, -1.0]
    nn.clip_grad_value_(owners, 1.5)
    assert [o.grad.numpy().ravel().tolist() for o in owners if o.grad is not None] == [
        [1.5, -1.0],
        [1.5, -1.5],
    ]


# -- loss scaling ----------------------------------------------------------------------------------


@pytest.mark.parametrize("jitted", [False, True])
def test_the_loss_scale_follows_the_gradients(jitted: bool):
    w = Tensor([1.0, 2.0], requires_grad=True)
    opt = nn.AdamW([w], lr=0.1)
    scaler = nn.LossScaler(1024.0, growth_interval=3)

    def step(x: Tensor) -> Tensor:
        scaler.scale((w * x).sum()).backward()
        taken = scaler.step(opt)
        opt.zero_grad()
        return taken

    call = uopc.jit(step) if jitted else step
    good, bad = Tensor([1.0, 1.0]), Tensor([1.0, math.inf])
    scales, before = [], w.numpy()
    for x in (good, bad, good, good, good, good, bad):
        taken = bool(call(x))
        now = w.numpy()
        assert taken == (x is good) == bool((now != before).all())
        assert taken or (now == before).all()
        before = now
        scales.append(scaler.factor.item())
    assert scales == [1024, 512, 512, 512, 1024, 1024, 512]
    assert opt.steps.item() == 5
    expected = nn.AdamW([v := Tensor([1.0, 2.0], requires_grad=True)], lr=0.1)
    for _ in range(5):
        v.sum().backward()
        expected.step()
        expected.zero_grad()
    np.testing.assert_allclose(w.numpy(), v.numpy(), rtol=1e-6)


def test_the_loss_scale_doubles_after_a_thousand_clean_steps():
    w = Tensor([1.0], requires_grad=True)
    opt = nn.SGD([w], lr=1e-6)
    scaler = nn.LossScaler(64.0)

    @uopc.jit
    def step() -> Tensor:
        scaler.scale(w.sum()).backward()
        taken = scaler.step(opt)
        opt.zero_grad()
        return taken

    for number in range(1, 1002):
        step()
        if number in (1, 999, 1000, 1001):
            assert scaler.factor.item() == (64.0 if number < 1000 else 128.0)


def test_gradients_are_unscaled_once():
    w = Tensor([2.0], requires_grad=True)
    opt = nn.SGD([w], lr=1.0)
    scaler = nn.LossScaler(256.0)
    scaler.scale(w * w).backward()
    scaler.unscale(opt)
    assert w.grad is not None
    assert w.grad.item() == 4.0
    with pytest.raises(UopcError, match="unscaled before"):
        scaler.unscale(opt)
    scaler.step(opt)
    assert w.item() == -2.0


# -- schedules -------------------------------------------------------------------------------------


def rates(make: Callable[[nn.Optimizer], nn.LRSchedule], steps: int) -> list[float]:
    opt = nn.SGD([Tensor([1.0], requires_grad=True)], lr=2.0)
    schedule = make(opt)
    found = [opt.lr]
    for _ in range(steps):
        schedule.step()
        found.append(opt.lr)
    return found


def test_schedules():
    assert rates(lambda o: nn.StepLR(o, 2, 0.5), 4) == [2, 2, 1, 1, 0.5]
    assert rates(lambda o: nn.MultiStepLR(o, [3, 1], 0.5), 4) == [2, 1, 1, 0.5, 0.5]
    assert rates(lambda o: nn.ExponentialLR(o, 0.5), 3) == [2, 1, 0.5, 0.25]
    assert rates(lambda o: nn.LambdaLR(o, lambda t: t + 1), 2) == [2, 4, 6]
    assert rates(lambda o: nn.LinearLR(o, 4, least=0.5), 5) == [2, 1.75, 1.5, 1.25, 1, 1]
    assert rates(lambda o: nn.LinearLR(o, 6, warmup=2), 6) == [1, 2, 2, 1.5, 1, 0.5, 0]
    expected = [2 * 0.5 * (1 + math.cos(math.pi * t / 4)) for t in range(5)]
    assert rates(lambda o: nn.CosineLR(o, 4), 5) == pytest.approx([*expected, 0.0])
    with pytest.raises(UopcError, match="5 steps of warm-up of 4"):
        rates(lambda o: nn.CosineLR(o, 4, 5), 1)


def test_a_schedule_goes_on_where_it_was():
    opt = nn.SGD([Tensor([1.0], requires_grad=True)], lr=2.0)
    schedule = nn.CosineLR(opt, 10)
    for _ in range(4):
        schedule.step()
    state = schedule.state_dict()
    other = nn.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
    again = nn.CosineLR(other, 10)
    again.load_state_dict(state)
    assert other.lr == opt.lr
    again.step()
    schedule.step()
    assert again.get_last_lr() == schedule.get_last_lr()


def test_a_schedule_is_part_of_a_checkpoint():
    def made() -> tuple[nn.Linear, nn.SGD, nn.CosineLR]:
        layer = nn.Linear(3, 2)
        optimizer = nn.SGD(nn.get_parameters(layer), lr=0.1)
        return layer, optimizer, nn.CosineLR(optimizer, steps=20, warmup=3)

    first, second = made(), made()
    for _ in range(8):
        first[2].step()
    names = ("model", "optimizer", "schedule")
    state = nn.get_state_dict(dict(zip(names, first, strict=True)))
    nn.load_state_dict(dict(zip(names, second, strict=True)), state)
    for _ in range(6):
        first[2].step()
        second[2].step()
    assert second[2].steps == 14
    assert second[2].get_last_lr() == first[2].get_last_lr()
