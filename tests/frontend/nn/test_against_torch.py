"""Layers, optimizers, clipping and attention against torch, where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensor_checks import Checks

from uopc import Tensor, nn

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(3)


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def state_of(module: Any) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in module.state_dict().items()}


LAYERS = {
    "Linear": ((5, 3), {}, (2, 5)),
    "Embedding": ((5, 3), {}, None),
    "LayerNorm": (((4, 5),), {}, (2, 4, 5)),
    "RMSNorm": ((5,), {"eps": 1e-6}, (2, 5)),
    "GroupNorm": ((2, 4), {}, (3, 4, 5)),
    "BatchNorm1d": ((4,), {}, (3, 4, 5)),
    "BatchNorm2d": ((4,), {"momentum": None}, (3, 4, 2, 5)),
    "Conv1d": ((4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 4, 9)),
    "Conv2d": ((3, 4, 3), {"padding": "same", "dilation": 2, "bias": False}, (2, 3, 6, 7)),
    "Conv3d": ((2, 2, 2), {"stride": (1, 2, 1)}, (1, 2, 3, 4, 3)),
    "ConvTranspose1d": ((4, 2, 3), {"stride": 2, "output_padding": 1}, (2, 4, 5)),
    "ConvTranspose2d": ((4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 4, 3, 5)),
}


def test_layers_and_their_gradients():
    checks = Checks(rtol=1e-4, atol=2e-5)
    for name, (arguments, options, shape) in LAYERS.items():
        theirs = getattr(torch.nn, name)(*arguments, **options)
        ours = getattr(nn, name)(*arguments, **options)
        for parameter in theirs.parameters():
            torch.nn.init.normal_(parameter, 0.3, 0.5)
        ours.load_state_dict(state_of(theirs))
        x = RNG.integers(0, 5, (2, 3)) if shape is None else reals(*shape)
        expected = theirs(torch.from_numpy(x))
        got = ours(Tensor(x))
        checks.add(name, got, expected.detach().numpy())
        weights = reals(*got.shape)
        expected.backward(torch.from_numpy(weights))
        (got * weights).sum().backward()
        for key, parameter in theirs.named_parameters():
            grad = ours.state_dict()[key].grad
            assert grad is not None
            checks.add(f"{name}.{key} gradient", grad, parameter.grad.numpy())
        for key, value in theirs.named_buffers():
            checks.add(f"{name}.{key}", ours.state_dict()[key], value.numpy())
        theirs.eval()
        ours.eval()
        checks.add(f"{name} eval", ours(Tensor(x)), theirs(torch.from_numpy(x)).detach().numpy())
    checks.run()


def test_multi_head_attention():
    theirs = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    ours = nn.MultiHeadAttention(6, 2)
    ours.load_state_dict(state_of(theirs))
    q, k, v = reals(2, 4, 6), reals(2, 3, 6), reals(2, 3, 6)
    mask = RNG.random((4, 3)) > 0.7  # what torch must not see
    keys = np.array([[True, False, False], [False, False, True]])
    ts = [torch.from_numpy(x) for x in (q, k, v)]
    ours_x = [Tensor(x) for x in (q, k, v)]
    checks = Checks(rtol=1e-4, atol=2e-5)
    checks.add("plain", ours(*ours_x), theirs(*ts)[0].detach().numpy())
    mask[:, 1] = False
    expected = theirs(
        *ts, attn_mask=torch.from_numpy(mask), key_padding_mask=torch.from_numpy(keys)
    )
    got = ours(*ours_x, mask=~mask, key_mask=~keys)
    checks.add("masks", got, expected[0].detach().numpy())
    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    expected = theirs(ts[0], ts[0], ts[0], attn_mask=causal)
    checks.add("causal", ours(ours_x[0], is_causal=True), expected[0].detach().numpy())
    checks.run()


OPTIMIZERS = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.05, "eps": 1e-6, "weight_decay": 0.2}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers(name: str, options: dict[str, Any]):
    start = reals(3, 2)
    theirs_w = torch.from_numpy(start.copy()).requires_grad_()
    ours_w = Tensor(start, requires_grad=True)
    theirs = getattr(torch.optim, name)([theirs_w], **options)
    ours = getattr(nn, name)([ours_w], **options)
    for step in range(6):
        x = reals(3, 2)
        theirs.zero_grad()
        (theirs_w * torch.from_numpy(x)).sum().square().backward()
        ours.zero_grad()
        (ours_w * x).sum().square().backward()
        if step > 3:
            theirs_norm = torch.nn.utils.clip_grad_norm_([theirs_w], 0.5).item()
            assert nn.clip_grad_norm_([ours_w], 0.5).item() == pytest.approx(theirs_norm, rel=1e-4)
        theirs.step()
        ours.step()
        theirs.param_groups[0]["lr"] = ours.param_groups[0]["lr"] = 0.04 - 0.005 * step
        np.testing.assert_allclose(
            ours_w.numpy(), theirs_w.detach().numpy(), rtol=2e-4, atol=2e-6, err_msg=str(step)
        )


def test_schedules():
    schedules = [
        (lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5), lambda o: nn.StepLR(o, 3, 0.5)),
        (lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 8, 0.02),
         lambda o: nn.CosineLR(o, 8, least=0.1)),
        (lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 5]),
         lambda o: nn.MultiStepLR(o, [2, 5])),
        (lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
         lambda o: nn.ExponentialLR(o, 0.9)),
    ]  # fmt: skip
    for theirs_make, ours_make in schedules:
        theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
        ours = nn.SGD([Tensor([0.0], requires_grad=True)], lr=0.2)
        theirs_schedule, ours_schedule = theirs_make(theirs), ours_make(ours)
        for _ in range(8):
            assert ours.lr == pytest.approx(theirs.param_groups[0]["lr"], rel=1e-9)
            theirs.step()
            theirs_schedule.step()
            ours_schedule.step()
