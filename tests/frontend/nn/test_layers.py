"""Layers against numpy's formulas, in as few plans as they fit in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tensor_checks import Checks

import uopc
from uopc import Tensor, UopcError, nn

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(7)


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def wide(tensor: Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.numpy().astype(np.float64)


def standard(x: np.ndarray, axes: Any, eps: float = 1e-5) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def randomized(layer: nn.Module) -> Any:
    """The layer with parameters that are neither 0 nor 1."""
    for parameter in layer.parameters():
        parameter.assign(reals(*parameter.shape) * 0.5 + 0.3)
    return layer


def test_layers_compute_their_formulas():
    Tensor.manual_seed(5)
    x = reals(2, 5, 6)
    t, f = Tensor(x), x.astype(np.float64)
    checks = Checks(rtol=1e-4, atol=2e-5)
    linear = nn.Linear(6, 3)
    checks.add("linear", linear(t), f @ wide(linear.weight).T + wide(linear.bias))
    plain = nn.Linear(6, 3, bias=False)
    checks.add("no bias", plain(t[0, 0]), f[0, 0] @ wide(plain.weight).T)
    table = nn.Embedding(7, 4, padding_idx=-2)
    rows = np.array([[0, 5, 6], [5, 1, 1]])
    checks.add("embedding", table(Tensor(rows)), wide(table.weight)[rows])
    checks.add("padding row", table.weight[5], np.zeros(4))
    norm = randomized(nn.LayerNorm((5, 6)))
    checks.add("layernorm", norm(t), standard(f, (1, 2)) * wide(norm.weight) + wide(norm.bias))
    checks.add("no affine", nn.LayerNorm(6, elementwise_affine=False)(t), standard(f, -1))
    rms = randomized(nn.RMSNorm(6))
    root = np.sqrt((f**2).mean(-1, keepdims=True) + 1e-6)
    checks.add("rms", rms(t), f / root * wide(rms.weight))
    y = reals(3, 4, 5, 2)
    g = y.astype(np.float64)
    group = randomized(nn.GroupNorm(2, 4))
    parts = standard(g.reshape(3, 2, -1), -1).reshape(g.shape)
    scale, shift = (wide(p).reshape(4, 1, 1) for p in (group.weight, group.bias))
    checks.add("group", group(Tensor(y)), parts * scale + shift)
    checks.add("instance", nn.InstanceNorm(4)(Tensor(y)), standard(g, (2, 3)))
    checks.run()


def test_batch_norm_follows_the_batches():
    x, later = reals(4, 3, 5), reals(2, 3, 1)
    layer = randomized(nn.BatchNorm(3, momentum=0.2))
    scale, shift = (wide(p).reshape(3, 1) for p in (layer.weight, layer.bias))
    checks = Checks(rtol=1e-4, atol=2e-5)
    mean, variance = np.zeros(3), np.ones(3)
    for data in (x, later):
        f = data.astype(np.float64)
        checks.add("training", layer(Tensor(data)), standard(f, (0, 2)) * scale + shift)
        count = f.size // 3
        mean = 0.8 * mean + 0.2 * f.mean((0, 2))
        variance = 0.8 * variance + 0.2 * f.var((0, 2)) * count / (count - 1)
    layer.eval()
    checks.add("running mean", layer.running_mean, mean)
    checks.add("running var", layer.running_var, variance)
    checks.add("batches", layer.num_batches_tracked, 2)
    column = x.astype(np.float64) - mean.reshape(3, 1)
    expected = column / np.sqrt(variance.reshape(3, 1) + 1e-5) * scale + shift
    checks.add("evaluation", layer(Tensor(x)), expected)
    averaged = nn.BatchNorm(3, momentum=None)
    averaged(Tensor(x))
    averaged(Tensor(later))
    both = (x.mean((0, 2)) + later.mean((0, 2))) / 2
    checks.add("plain average", averaged.running_mean, both)
    checks.run()
    with pytest.raises(UopcError, match="one value for each channel"):
        nn.BatchNorm(3)(Tensor(reals(1, 3)))


def test_convolutions_are_the_methods_with_their_weights():
    Tensor.manual_seed(6)
    line, image = Tensor(reals(2, 4, 9)), Tensor(reals(1, 4, 5, 6))
    checks = Checks(rtol=1e-4, atol=1e-5)
    one = nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2)
    checks.add(
        "conv1d", one(line), line.conv(one.weight, one.bias, 2, 1, 1, 2).numpy(), same_type=True
    )
    same = nn.Conv2d(4, 2, (2, 3), padding="same", dilation=(1, 2), bias=False)
    got = same(image)
    assert got.shape == (1, 2, 5, 6)
    around = image.pad(((0, 0), (0, 0), (0, 1), (2, 2)))
    checks.add("same", got, around.conv(same.weight, None, 1, 0, (1, 2)).numpy())
    back = nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)
    spread = back(image)
    assert spread.shape == (1, 3, 10, 12)
    expected = image.conv_transpose(back.weight, back.bias, 2, 1, 1).numpy()
    checks.add("transpose", spread, expected)
    checks.run()
    bound = 1 / math.sqrt(4 / 2 * 3)
    weight = one.weight.numpy()
    assert np.abs(weight).max() <= bound
    assert np.abs(weight).max() > 0.8 * bound


def heads(x: np.ndarray, count: int) -> np.ndarray:
    return np.moveaxis(x.reshape(*x.shape[:-1], count, -1), -2, -3)


def attention(
    layer: nn.MultiHeadAttention, q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray
) -> np.ndarray:
    """The layer in numpy; rows that see nothing give zeros before the last projection."""
    weights = np.split(wide(layer.in_proj_weight), 3)
    biases = np.split(wide(layer.in_proj_bias), 3)
    projected = [x @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True)]
    qs, ks, vs = (heads(x, layer.heads) for x in projected)
    scores = qs @ np.swapaxes(ks, -1, -2) / math.sqrt(qs.shape[-1])
    blind = ~seen.any(-1, keepdims=True)
    part = softmax(np.where(seen | blind, scores, -np.inf))
    joined = np.moveaxis(np.where(blind, 0, part) @ vs, -3, -2)
    joined = joined.reshape(*joined.shape[:-2], -1)
    return joined @ wide(layer.out_proj.weight).T + wide(layer.out_proj.bias)


def test_multi_head_attention():
    Tensor.manual_seed(8)
    layer = randomized(nn.MultiHeadAttention(6, 2))
    x, other = reals(2, 4, 6), reals(2, 3, 6)
    t, o = Tensor(x), Tensor(other)
    everything = np.ones((4, 4), bool)
    lower = np.tril(everything)
    some = RNG.random((4, 3)) > 0.4
    some[1] = False
    keys = np.array([[True, True, False, True], [False, True, True, True]])
    checks = Checks(rtol=1e-4, atol=2e-5)
    checks.add("itself", layer(t), attention(layer, x, x, x, everything))
    checks.add("causal", layer(t, is_causal=True), attention(layer, x, x, x, lower))
    checks.add("one sequence", layer(t[0]), attention(layer, x[0], x[0], x[0], everything))
    checks.add("other keys", layer(t, o, mask=some), attention(layer, x, other, other, some))
    got = layer(t, key_mask=keys, is_causal=True)
    checks.add("key mask", got, attention(layer, x, x, x, lower & keys[:, None, None]))
    added = np.where(some, 0, -np.inf).astype(np.float32)
    got = layer(t, o, o, mask=added)
    checks.add("added mask", got, attention(layer, x, other, other, some))
    checks.run()
    with pytest.raises(UopcError, match="size 6 in 4 heads"):
        nn.MultiHeadAttention(6, 4)


def test_dropout_is_for_training():
    Tensor.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    x = Tensor.ones(50, 4)
    trained = model(x).numpy()
    assert 0.3 < (trained == 0).mean() < 0.7
    assert (model.eval()(x).numpy() != 0).all()
    assert not model[1].training
    assert model.train()[1].training


def test_the_padding_row_gets_no_gradient():
    table = nn.Embedding(4, 3, padding_idx=1)
    table(Tensor([[0, 1], [1, 3]])).sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad.numpy()[:, 0].tolist() == [1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("rows", [[0, 4], np.array([-5, 0]), Tensor([[1], [7]])])
def test_a_row_that_is_not_there_is_told(rows: Any):
    with pytest.raises(UopcError, match=r"inside of the table's rows, axis 0 of size 4 \[bad"):
        nn.Embedding(4, 2)(rows)


def test_a_row_that_is_computed_or_traced_is_held_at_the_ends():
    table = nn.Embedding(4, 2)
    last = table.weight[3].numpy()
    np.testing.assert_array_equal(table(Tensor([3]) + 4).numpy()[0], last)
    jitted = uopc.jit(lambda rows: table(rows))
    for _ in range(3):
        np.testing.assert_array_equal(jitted(Tensor([7])).numpy()[0], last)


def test_half_types():
    layer = nn.Linear(4, 3, dtype="f16")
    assert layer(Tensor(reals(2, 4), dtype="f16")).element == "f16"
    assert nn.BatchNorm(3, dtype="bf16").weight.element == "bf16"


@pytest.mark.parametrize(
    ("layer", "shape", "words"),
    [
        (nn.Linear(4, 3), (2, 5), "Linear of 4 inputs got shape [2, 5]"),
        (nn.LayerNorm((2, 3)), (3,), "LayerNorm over [2, 3] got shape [3]"),
        (nn.RMSNorm(3), (3, 2), "RMSNorm over [3] got shape [3, 2]"),
        (nn.BatchNorm(3), (3,), "BatchNorm of 3 channels got shape [3]"),
        (nn.GroupNorm(1, 3), (2, 4), "GroupNorm of 3 channels got shape [2, 4]"),
        (nn.Conv2d(3, 1, 1), (3, 2, 2), "Conv2d of 3 channels got shape [3, 2, 2]"),
        (nn.MultiHeadAttention(4, 2), (3, 5), "query has shape [3, 5], expected (…, length, 4)"),
    ],
)
def test_inputs_that_do_not_fit_are_told(layer: Any, shape: tuple[int, ...], words: str):
    with pytest.raises(UopcError) as caught:
        layer(Tensor.ones(*shape))
    assert words in str(caught.value)


def test_arguments_that_do_not_fit_are_told():
    for make in (
        lambda: nn.GroupNorm(2, 3),
        lambda: nn.Conv2d(3, 4, 3, groups=2),
        lambda: nn.Conv2d(3, 4, (3, 3, 3)),
        lambda: nn.Conv1d(1, 1, 3, stride=2, padding="same"),
        lambda: nn.Embedding(4, 2, padding_idx=4),
        lambda: Tensor.ones(2).dropout(1.5),
    ):
        with pytest.raises(UopcError) as caught:
            make()
        assert caught.value.kind == "wrong-argument"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nn.Linear(-1, 3), "inputs is -1"),
        (lambda: nn.Linear(2, 2.5), "outputs is 2.5"),  # pyright: ignore[reportArgumentType]
        (lambda: nn.Embedding(-2, 4), "count is -2"),
        (lambda: nn.Embedding(4, 2, padding_idx=0.5), "padding_idx 0.5 of 4 rows"),  # pyright: ignore[reportArgumentType]
        (lambda: nn.Conv2d(0, 4, 3), "inputs is 0"),
        (lambda: nn.Conv2d(3, 4, 0), "kernel_size is 0"),
        (lambda: nn.Conv2d(3, 4, 3, stride=(1, 0)), "stride is 0"),
        (lambda: nn.Conv2d(3, 4, 3, padding=-1), "padding is -1"),
        (lambda: nn.ConvTranspose1d(3, 4, 3, output_padding=-1), "output_padding is -1"),
        (lambda: nn.LayerNorm((2, -3)), "a size of shape is -3"),
        (lambda: nn.LayerNorm(()), "LayerNorm over no axes"),
        (lambda: nn.RMSNorm(-3), "size is -3"),
        (lambda: nn.GroupNorm(0, 4), "groups is 0"),
        (lambda: nn.BatchNorm(-4), "channels is -4"),
        (lambda: nn.InstanceNorm(-4), "channels is -4"),
        (lambda: nn.MultiHeadAttention(0, 2), "size is 0"),
        (lambda: nn.MultiHeadAttention(4, 2, dropout=2), "dropout is 2"),
        (lambda: nn.Dropout(2.0), "p is 2.0"),
        (lambda: nn.Dropout("a"), "p is 'a'"),  # pyright: ignore[reportArgumentType]
        (lambda: nn.Sequential(3), "layer 0 is no function: int"),  # pyright: ignore[reportArgumentType]
        (lambda: Tensor.manual_seed("a"), "the seed is 'a'"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_sizes_and_numbers_that_are_none_are_told(make: Any, words: str):
    with pytest.raises(UopcError) as caught:
        make()
    assert caught.value.kind == "wrong-argument"
    assert caught.value.message == words


def test_nothing_is_made_of_sizes_below_zero():
    for make in (Tensor.zeros, Tensor.ones, Tensor.rand, Tensor.randn):
        with pytest.raises(UopcError) as caught:
            make(2, -1)
        assert str(caught.value) == (
            "error: a new tensor has shape [2, -1] [bad-shape]\n  hint: sizes are at least 0"
        )


def test_a_seed_of_numpy_is_the_same_seed():
    Tensor.manual_seed(3)
    first = Tensor.rand(4).numpy()
    Tensor.manual_seed(np.int32(3))  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(Tensor.rand(4).numpy(), first)


def test_layers_say_what_they_are():
    assert repr(nn.Linear(2, 3)) == "Linear(weight: f32[3, 2], bias: f32[3])"
    model = nn.Sequential(nn.Linear(2, 3, bias=False), Tensor.relu)
    assert repr(model) == (
        "Sequential(\n    layers: [\n        Linear(weight: f32[3, 2], bias: None),\n"
        "        relu,\n    ],\n)"
    )


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(2, 3), (4, 2)),
        (nn.LayerNorm(2), (4, 2)),
        (nn.RMSNorm(2), (4, 2)),
        (nn.GroupNorm(2, 4), (2, 4, 3)),
        (nn.BatchNorm(4), (2, 4, 3)),
        (nn.Conv2d(2, 3, 2), (1, 2, 3, 3)),
        (nn.ConvTranspose1d(2, 3, 2), (1, 2, 3)),
        (nn.MultiHeadAttention(4, 2), (3, 4)),
        (nn.Dropout(0.0), (3,)),
        (nn.Sequential(Tensor.tanh, nn.Linear(2, 3)), (4, 2)),
    ],
)
def test_a_layer_takes_an_array(layer: Any, shape: tuple[int, ...]):
    x = reals(*shape)
    np.testing.assert_array_equal(layer(x).numpy(), layer(Tensor(x)).numpy())
