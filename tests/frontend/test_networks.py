"""Convolutions, pooling, resizing, normalizations and losses against plain loops and numpy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tensor_checks import Checks

import uopc
from uopc import Tensor, UopcError

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(11)


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def conv(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> np.ndarray:
    """A convolution by loops over its definition."""
    dims = w.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((p, p) for p in padding)])
    kernel = w.shape[2:]
    out = [
        (n - d * (k - 1) - 1) // s + 1
        for n, d, k, s in zip(x.shape[2:], dilation, kernel, stride, strict=True)
    ]
    result = np.zeros((x.shape[0], w.shape[0], *out))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for o in range(w.shape[0]):
        first = o // per_out * per_in
        for place in itertools.product(*map(range, out)):
            at = tuple(
                slice(p * s, p * s + d * (k - 1) + 1, d)
                for p, s, d, k in zip(place, stride, dilation, kernel, strict=True)
            )
            part = x[(slice(None), slice(first, first + per_in), *at)]
            result[(slice(None), o, *place)] = (part * w[o]).sum(tuple(range(1, dims + 2)))
    return result


CONVOLUTIONS = [
    ((2, 3, 9), (4, 3, 3), (2,), (1,), (2,), 1),
    ((1, 4, 5, 6), (6, 2, 3, 2), (1, 2), (1, 0), (1, 1), 2),
    ((2, 2, 7, 7), (3, 2, 3, 3), (3, 2), (2, 2), (2, 1), 1),
    ((1, 4, 4, 4), (4, 1, 1, 1), (1, 1), (0, 0), (1, 1), 4),
    ((1, 2, 4, 3, 5), (2, 2, 2, 2, 3), (1, 1, 2), (0, 1, 1), (1, 1, 1), 1),
]


def test_convolutions():
    checks = Checks(rtol=1e-4, atol=1e-5)
    for x_shape, w_shape, stride, padding, dilation, groups in CONVOLUTIONS:
        x, w = reals(*x_shape), reals(*w_shape)
        bias = reals(w_shape[0])
        expected = conv(x, w, stride, padding, dilation, groups)
        got = Tensor(x).conv(Tensor(w), Tensor(bias), stride, padding, dilation, groups)
        checks.add(
            f"conv {x_shape}", got, expected + bias.reshape(1, -1, *[1] * (len(w_shape) - 2))
        )
        # The transpose is what makes <conv(x), y> equal <x, transpose(y)>.
        extra = [
            (n + 2 * p - d * (k - 1) - 1) % s
            for n, p, d, k, s in zip(
                x_shape[2:], padding, dilation, w_shape[2:], stride, strict=True
            )
        ]
        y = reals(*expected.shape)
        back = Tensor(y).conv_transpose(Tensor(w), None, stride, padding, extra, dilation, groups)
        assert back.shape == x_shape
        checks.add("transpose", (back * x).sum(), (expected * y).sum())
    checks.run()


def test_pooling_and_resizing():
    x = reals(2, 3, 6, 8)
    t = Tensor(x)
    blocks = x.reshape(2, 3, 3, 2, 4, 2)
    checks = Checks()
    checks.add("max", t.max_pool2d(), blocks.max((3, 5)))
    checks.add("avg", t.avg_pool2d(), blocks.mean((3, 5)))
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    wide = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (2, 3))[:, :, ::2, ::2]
    checks.add("max 3", t.max_pool2d(3, 2, 1), wide.max((-2, -1)))
    held = np.where(np.isinf(wide), np.nan, wide)
    checks.add("avg 3", t.avg_pool2d(3, 2, 1, count_padding=False), np.nanmean(held, (-2, -1)))
    checks.add(
        "avg 3 zeros", t.avg_pool2d(3, 2, 1), np.where(np.isinf(wide), 0, wide).mean((-2, -1))
    )
    checks.add("nearest", t.interpolate((12, 4)), x.repeat(2, 2)[:, :, :, ::2])
    line = np.array([0.0, 1.0, 2.0, 3.0], np.float32)
    checks.add("linear", Tensor(line).interpolate((8,), "linear"),
               [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3])  # fmt: skip
    checks.add("corners", Tensor(line).interpolate((7,), "linear", True), np.arange(7) / 2)
    checks.run()


def log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def test_normalizations_and_losses():
    x, channels = reals(4, 6, 5), reals(6)
    t = Tensor(x)
    wide = x.astype(np.float64)

    def normal(v: np.ndarray, axis: Any) -> np.ndarray:
        return (v - v.mean(axis, keepdims=True)) / np.sqrt(v.var(axis, keepdims=True) + 1e-5)

    checks = Checks(rtol=1e-4, atol=1e-5)
    checks.add("layernorm", t.layernorm(), normal(wide, -1))
    checks.add("layernorm 2", t.layernorm((1, 2)), normal(wide, (1, 2)))
    checks.add("rms", t.rms_norm(), wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6))
    groups = normal(wide.reshape(4, 3, 10), -1).reshape(4, 6, 5)
    scaled = groups * channels[:, None] + 1
    checks.add("group", t.group_norm(3, Tensor(channels), Tensor.ones(6)), scaled)
    mean, variance = wide.mean((0, 2)), wide.var((0, 2))
    checks.add("batch", t.batch_norm(t.mean((0, 2)), t.var((0, 2))),
               (wide - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5))  # fmt: skip
    checks.add("normalize", t.normalize(), wide / np.linalg.norm(wide, axis=1, keepdims=True))
    target = RNG.integers(0, 6, (4, 5))
    logs = log_softmax(wide, 1)
    nll = -np.take_along_axis(logs, target[:, None], 1)[:, 0]
    goal = Tensor(target)
    checks.add("cross entropy", t.cross_entropy(goal), nll.mean())
    checks.add("sum", t.cross_entropy(goal, "sum"), nll.sum())
    checks.add("none", t.cross_entropy(goal, "none"), nll)
    smooth = 0.9 * nll - 0.1 * logs.mean(1)
    checks.add("smooth", t.cross_entropy(goal, label_smoothing=0.1), smooth.mean())
    counted = target != 2
    checks.add("ignored", t.cross_entropy(goal, ignore_index=2), nll[counted].mean())
    hot = np.moveaxis(np.eye(6)[target], -1, 1).astype(np.float32)
    checks.add("soft", t.cross_entropy(Tensor(hot)), nll.mean())
    p = 1 / (1 + np.exp(-wide))
    truth = (reals(4, 6, 5) > 0).astype(np.float32)
    bce = -(truth * np.log(p) + (1 - truth) * np.log(1 - p))
    checks.add("bce", t.sigmoid().binary_cross_entropy(Tensor(truth)), bce.mean())
    checks.add("logits", t.binary_cross_entropy_with_logits(Tensor(truth)), bce.mean())
    checks.add("mse", t.mse_loss(0.5), ((wide - 0.5) ** 2).mean())
    checks.add("l1", t.l1_loss(0.5), np.abs(wide - 0.5).mean())
    q, k, v = reals(2, 3, 4), reals(2, 5, 4), reals(2, 5, 2)
    scores = np.einsum("bij,bkj->bik", q, k).astype(np.float64) / 2
    weights = np.exp(log_softmax(scores, -1))
    checks.add("attention", Tensor(q).scaled_dot_product_attention(k, v), weights @ v)
    checks.add(
        "embedding",
        Tensor([[0, 5], [2, 2]]).embedding(Tensor(channels)),
        channels[[[0, 5], [2, 2]]],
    )
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    checks.add("gelu tanh", t.gelu("tanh"), 0.5 * wide * (1 + np.tanh(inner)))
    checks.add("glu", Tensor(q).glu(), q[..., :2] / (1 + np.exp(-q[..., 2:])))
    checks.run()
    kept = Tensor.ones(10_000).dropout(0.25).numpy()
    assert set(np.unique(kept)) == {0, np.float32(1 / 0.75)}
    assert abs((kept == 0).mean() - 0.25) < 0.03


def test_windows_that_do_not_fit_are_told():
    with pytest.raises(UopcError, match="does not fit"):
        Tensor.ones(1, 1, 2, 2).conv2d(Tensor.ones(1, 1, 3, 3))
    with pytest.raises(UopcError, match="channels"):
        Tensor.ones(1, 3, 4, 4).conv2d(Tensor.ones(1, 2, 3, 3))
    with pytest.raises(UopcError, match="targets of shape"):
        Tensor.ones(2, 3).cross_entropy(Tensor([1, 2, 0]))


@pytest.mark.parametrize("goal", [[0, 3], np.array([-1, 0]), Tensor([0, 3]), [-100, 3]])
def test_a_class_that_is_not_there_is_told(goal: Any):
    x = Tensor.ones(2, 3)
    for loss in (x.cross_entropy, x.nll_loss):
        with pytest.raises(UopcError) as caught:
            loss(goal)
        assert caught.value.kind == "bad-index"
        assert ", of 3 classes" in caught.value.message
        assert caught.value.hint == "expected 0 to 2, or ignore_index, which is -100"


def test_a_class_is_checked_only_where_it_is_known():
    x = Tensor(np.log(np.array([[0.5, 0.5], [0.25, 0.75]], np.float32)))
    known = -math.log(0.25)
    assert abs(x.nll_loss([-100, 0]).item() - known) < 1e-6
    assert abs(x.nll_loss([5, 0], ignore_index=5).item() - known) < 1e-6
    assert abs(x.nll_loss(Tensor([1, 0]) * 2 + [3, 0]).item() - known / 2) < 1e-6
    jitted = uopc.jit(lambda goal: x.nll_loss(goal))
    for _ in range(3):
        assert abs(jitted(Tensor([5, 0])).item() - known / 2) < 1e-6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: x.cross_entropy(Tensor([0.0, 1.0])), "targets of f32[2] for scores of shape [2"),
        (lambda x: x.cross_entropy(np.zeros((2, 1))), "targets of f64[2, 1] for scores of shape"),
        (lambda x: x.nll_loss([0.0, 1.0]), "targets of f32[2]"),
        (lambda x: x.cross_entropy([0, 1], weight=[1.0, 2.0]), "weights of shape [2] for 3 cla"),
        (lambda x: x.sum().cross_entropy(0), "scores of shape []"),
    ],
)
def test_targets_that_do_not_fit_are_told(make: Callable[[Tensor], Any], words: str):
    with pytest.raises(UopcError) as caught:
        make(Tensor.ones(2, 3))
    assert caught.value.kind == "wrong-operands"
    assert caught.value.message.startswith(words)
