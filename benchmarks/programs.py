"""The workloads of the benchmarks as a user of `Tensor` writes them, each defined once.

`FUNCTIONS` has them by kind: functions of tensors that `uopc.jit` compiles. Below it is a GPT on a
dict of parameters: its loss, a training step, and the decoding of one token. A weight is (inputs,
outputs), linear layers have no bias. Nothing here knows how it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

import uopc
from uopc import Tensor, nn

Array = np.ndarray[Any, Any]
Parameters = dict[str, Tensor]


def convolution(x: Tensor, weight: Tensor) -> Tensor:
    """A 3x3 convolution that keeps the size: (batch, channels, height, width)."""
    return x.conv2d(weight, padding=1)


def _channels(x: Tensor) -> Tensor:
    return x.reshape(-1, 1, 1)


def residual_block(
    x: Tensor, w1: Tensor, s1: Tensor, b1: Tensor, w2: Tensor, s2: Tensor, b2: Tensor
) -> Tensor:
    """Two convolutions, each with a batch norm folded to scale and shift, added to their input."""
    h = (convolution(x, w1) * _channels(s1) + _channels(b1)).relu()
    return (convolution(h, w2) * _channels(s2) + _channels(b2) + x).relu()


_OF_ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": lambda x: x.softmax(-1),
    "chain": lambda x: (x * 2 + 1).relu() * 3,
    "sum0": lambda x: x.sum(0),
    "sum1": lambda x: x.sum(1),
    "sum_all": lambda x: x.sum(),
    "max1": lambda x: x.max(1),
    "argmax1": lambda x: x.argmax(1),
    "transpose": lambda x: x.T.contiguous(),
    "tiny": lambda x: x * 2 + 1,
}
_OF_TWO: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "matmul": lambda a, b: a @ b,
    "matmul_low": lambda a, b: a @ b,
    "ln_matmul": lambda x, w: x.layernorm() @ w,
    "conv": convolution,
}
_OF_THREE: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "mm_chain": lambda a, b, c: a @ b @ c,
    "attn": lambda q, k, v: q.scaled_dot_product_attention(k, v),
    "attn_causal": lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
}
FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {
    **_OF_ONE,
    **_OF_TWO,
    **_OF_THREE,
    "resblock": residual_block,
}


class Sizes(Protocol):
    """The sizes of a GPT and the numbers of AdamW, by attribute."""

    @property
    def ctx(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def lr(self) -> float: ...
    @property
    def betas(self) -> tuple[float, float]: ...
    @property
    def eps(self) -> float: ...
    @property
    def decay(self) -> float: ...


def _normalized(p: Parameters, name: str, x: Tensor) -> Tensor:
    return x.layernorm() * p[f"{name}.g"] + p[f"{name}.b"]


def _perceptron(p: Parameters, layer: int, x: Tensor) -> Tensor:
    h = (_normalized(p, f"{layer}.ln2", x) @ p[f"{layer}.up"]).gelu("tanh")
    return x + h @ p[f"{layer}.down"]


def gpt_scores(p: Parameters, tokens: Tensor, sizes: Sizes) -> Tensor:
    """What follows each of (batch, length) tokens: (batch, length, vocabulary)."""
    batch, length = tokens.shape
    x = p["wte"][tokens] + p["wpe"][:length]
    for layer in range(sizes.layers):
        qkv = _normalized(p, f"{layer}.ln1", x) @ p[f"{layer}.qkv"]
        parts = qkv.reshape(batch, length, 3, sizes.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind()
        seen = q.scaled_dot_product_attention(k, v, is_causal=True)
        x = x + seen.transpose(1, 2).reshape(batch, length, -1) @ p[f"{layer}.proj"]
        x = _perceptron(p, layer, x)
    return _normalized(p, "lnf", x) @ p["head"]


def gpt_training(
    arrays: Mapping[str, Array], tokens: Array, targets: Array, sizes: Sizes
) -> Callable[[], float]:
    """Steps of AdamW on one batch: each call takes one and gives the loss before it."""
    p = {name: nn.parameter(Tensor(array)) for name, array in arrays.items()}
    opt = nn.AdamW(p.values(), sizes.lr, sizes.betas, sizes.eps, sizes.decay)
    x, y = Tensor(tokens), Tensor(targets)

    @uopc.jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = gpt_scores(p, x, sizes).flatten(0, 1).cross_entropy(y.flatten())
        loss.backward()
        opt.step(loss)
        opt.zero_grad()
        return loss

    return lambda: step(x, y).item()


def gpt_decoding(arrays: Mapping[str, Array], sizes: Sizes) -> Callable[[int, int], Array]:
    """A call from a token and its position to scores (1, vocabulary), one plan for all positions.

    Keys and values of the positions before are in a cache of the full context, which each call
    uses up and returns.
    """
    p = {name: Tensor(array) for name, array in arrays.items()}
    shape = (sizes.heads, sizes.ctx, sizes.dim // sizes.heads)
    caches = [Tensor(np.zeros(shape, np.float32)) for _ in range(2 * sizes.layers)]

    def one(caches: list[Tensor], token: Any, position: Any) -> tuple[Tensor, list[Tensor]]:
        x = (p["wte"][token] + p["wpe"][position]).reshape(1, -1)
        slots = Tensor.arange(sizes.ctx)
        seen, here = slots <= position, (slots == position).reshape(-1, 1)
        new: list[Tensor] = []
        for layer in range(sizes.layers):
            qkv = _normalized(p, f"{layer}.ln1", x) @ p[f"{layer}.qkv"]
            q, *own = qkv.reshape(3, sizes.heads, 1, -1).unbind()
            old = caches[2 * layer : 2 * layer + 2]
            k, v = (here.where(a, cache) for a, cache in zip(own, old, strict=True))
            new += [k, v]
            attended = q.scaled_dot_product_attention(k, v, seen).reshape(1, -1)
            x = _perceptron(p, layer, x + attended @ p[f"{layer}.proj"])
        return _normalized(p, "lnf", x) @ p["head"], new

    jitted = uopc.jit(one, donate_argnums=0)

    def step(token: int, position: int) -> Array:
        nonlocal caches
        scores, caches = jitted(caches, token, position)
        return scores.numpy()

    return step


def head_decoding(
    weights: tuple[Array, Array, Array, Array], capacity: int
) -> Callable[[Array, int], Array]:
    """One head of attention with a cache: a call from (1, inputs) and a position to (1, outputs).

    `weights` are those of query, key and value (inputs, size), and of the result (size, outputs).
    """
    wq, wk, wv, wo = (Tensor(w) for w in weights)
    keys, values = (Tensor(np.zeros((capacity, wk.shape[1]), np.float32)) for _ in range(2))

    def one(k: Tensor, v: Tensor, x: Any, position: Any) -> tuple[Tensor, Tensor, Tensor]:
        slots = Tensor.arange(capacity)
        here = (slots == position).reshape(-1, 1)
        k, v = here.where(x @ wk, k), here.where(x @ wv, v)
        attended = (x @ wq).scaled_dot_product_attention(k, v, slots <= position)
        return attended @ wo, k, v

    jitted = uopc.jit(one, donate_argnums=(0, 1))

    def step(x: Array, position: int) -> Array:
        nonlocal keys, values
        y, keys, values = jitted(keys, values, x, position)
        return y.numpy()

    return step
