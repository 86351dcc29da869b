"""The works in numpy, as its users write them. On f64 inputs they are what all others must give."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from works import DECODED, GPT, Array, Work


def softmax(x: Array) -> Array:
    """Over the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normalized(x: Array) -> Array:
    """Mean 0 and variance 1 along the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)


def attention(q: Array, k: Array, v: Array) -> Array:
    """All positions see all."""
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    """A position sees itself and those before."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    seen = np.tri(*scores.shape[-2:], dtype=bool)
    return softmax(np.where(seen, scores, -np.inf)) @ v


def convolution(x: Array, weight: Array) -> Array:
    """3x3, padded by 1, as one product of the windows as rows."""
    batch, _, height, width = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))  # pyright: ignore[reportArgumentType, reportCallIssue]
    rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * height * width, -1)
    product = rows @ weight.reshape(len(weight), -1).T
    return product.reshape(batch, height, width, -1).transpose(0, 3, 1, 2)


def residual_block(
    x: Array, w1: Array, s1: Array, b1: Array, w2: Array, s2: Array, b2: Array
) -> Array:
    """Two convolutions, each with a folded batch norm, added to their input."""
    h = np.maximum(convolution(x, w1) * s1[:, None, None] + b1[:, None, None], 0)
    return np.maximum(convolution(h, w2) * s2[:, None, None] + b2[:, None, None] + x, 0)


def _in_f32(a: Array, b: Array) -> Array:
    # numpy has no fast product of half types: its users would compute it so.
    wide = np.promote_types(a.dtype, np.float32)
    return a.astype(wide) @ b.astype(wide)


_OF_ONE: dict[str, Callable[[Array], Array]] = {
    "softmax": softmax,
    "chain": lambda x: np.maximum(x * 2 + 1, 0) * 3,
    "sum0": lambda x: x.sum(0),
    "sum1": lambda x: x.sum(1),
    "sum_all": lambda x: np.asarray(x.sum()),
    "max1": lambda x: x.max(1),
    "argmax1": lambda x: x.argmax(1),
    "transpose": lambda x: np.ascontiguousarray(x.T),
    "tiny": lambda x: x * 2 + 1,
}
_OF_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "matmul": lambda a, b: a @ b,
    "matmul_low": _in_f32,
    "ln_matmul": lambda x, w: normalized(x) @ w,
    "conv": convolution,
}
_OF_THREE: dict[str, Callable[[Array, Array, Array], Array]] = {
    "mm_chain": lambda a, b, c: a @ b @ c,
    "attn": attention,
    "attn_causal": causal_attention,
}
FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    **_OF_ONE,
    **_OF_TWO,
    **_OF_THREE,
    "resblock": residual_block,
}


def decoding(gpt: GPT, dtype: type[np.floating[Any]] = np.float32) -> Callable[[int, int], Array]:
    """A call from a token and its position to scores (1, vocabulary), with a cache inside."""
    p = {name: array.astype(dtype) for name, array in gpt.parameters().items()}
    cache = np.zeros((gpt.layers, 2, gpt.heads, gpt.ctx, gpt.dim // gpt.heads), dtype)

    def norm(name: str, x: Array) -> Array:
        return normalized(x) * p[f"{name}.g"] + p[f"{name}.b"]

    def step(token: int, position: int) -> Array:
        x: Array = (p["wte"][token] + p["wpe"][position])[None]
        for layer in range(gpt.layers):
            parts = (norm(f"{layer}.ln1", x) @ p[f"{layer}.qkv"]).reshape(3, gpt.heads, -1)
            cache[layer, :, :, position] = parts[1:]
            k, v = cache[layer, :, :, : position + 1]
            x = x + attention(parts[0][:, None], k, v).reshape(1, -1) @ p[f"{layer}.proj"]
            u = norm(f"{layer}.ln2", x) @ p[f"{layer}.up"]
            gelu = 0.5 * u * (1 + np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u * u * u)))
            x = x + gelu @ p[f"{layer}.down"]
        return norm("lnf", x) @ p["head"]

    return step


def expected(work: Work) -> Array:
    """What a work must give, from inputs in f64."""
    if work.kind == "train":
        assert work.gpt is not None
        return np.array(work.gpt.losses)
    if work.kind == "decode":
        assert work.gpt is not None
        return first_scores(work.gpt, decoding(work.gpt, np.float64))
    return FUNCTIONS[work.kind](*(x.astype(np.float64) for x in work.inputs()))


def first_scores(gpt: GPT, step: Callable[[int, int], Array]) -> Array:
    """The scores that decoding gives for the first tokens of the data, one after another."""
    tokens = gpt.data()[0][0, :DECODED]
    rows = [np.array(step(int(token), place)).reshape(-1) for place, token in enumerate(tokens)]
    return np.stack(rows)


class Numpy:
    """numpy as a library to be measured."""

    version = np.__version__

    def function(self, work: Work) -> tuple[Callable[[], Any], Callable[[Any], Array]] | None:
        """See `worker.Library`."""
        f, xs = FUNCTIONS[work.kind], work.inputs()
        return lambda: f(*xs), np.asarray

    def training(self, gpt: GPT) -> Callable[[], float] | None:
        """None: numpy has no gradients."""
        return None

    def decoding(self, gpt: GPT) -> Callable[[int, int], Array] | None:
        """See `worker.Library`."""
        return decoding(gpt)
