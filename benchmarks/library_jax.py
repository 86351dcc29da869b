"""The works in JAX, each one jitted, as its users write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from works import GPT, Array, Work

# By name, and Any: the types of an optional package are not there for every check.
jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
lax, nn = jax.lax, jax.nn


def normalized(x: Any) -> Any:
    """Mean 0 and variance 1 along the last axis."""
    return nn.standardize(x, axis=-1, epsilon=1e-5)


def attention(q: Any, k: Any, v: Any, seen: Any = None) -> Any:
    """Over the last two axes; `seen` says which keys a query may see."""
    scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]))
    return nn.softmax(scores if seen is None else jnp.where(seen, scores, -jnp.inf)) @ v


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    """A position sees itself and those before."""
    return attention(q, k, v, jnp.tri(q.shape[-2], dtype=bool))


def convolution(x: Any, weight: Any) -> Any:
    """3x3, padded by 1."""
    return lax.conv(x, weight, (1, 1), "SAME")


def residual_block(x: Any, w1: Any, s1: Any, b1: Any, w2: Any, s2: Any, b2: Any) -> Any:
    """Two convolutions, each with a folded batch norm, added to their input."""
    h = nn.relu(convolution(x, w1) * s1[:, None, None] + b1[:, None, None])
    return nn.relu(convolution(h, w2) * s2[:, None, None] + b2[:, None, None] + x)


_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: nn.softmax(x),
    "chain": lambda x: nn.relu(x * 2 + 1) * 3,
    "sum0": lambda x: x.sum(0),
    "sum1": lambda x: x.sum(1),
    "sum_all": lambda x: x.sum(),
    "max1": lambda x: x.max(1),
    "argmax1": lambda x: x.argmax(1),
    "transpose": lambda x: x.T,
    "tiny": lambda x: x * 2 + 1,
}
_OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "matmul": lambda a, b: a @ b,
    # A result in f32 is the faster one here, and the more exact.
    "matmul_low": lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.float32),
    "ln_matmul": lambda x, w: normalized(x) @ w,
    "conv": convolution,
}
_OF_THREE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mm_chain": lambda a, b, c: a @ b @ c,
    "attn": attention,
    "attn_causal": causal_attention,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **_OF_ONE,
    **_OF_TWO,
    **_OF_THREE,
    "resblock": residual_block,
}


def _norm(p: dict[str, Any], name: str, x: Any) -> Any:
    return normalized(x) * p[f"{name}.g"] + p[f"{name}.b"]


def _perceptron(p: dict[str, Any], layer: int, x: Any) -> Any:
    h = nn.gelu(_norm(p, f"{layer}.ln2", x) @ p[f"{layer}.up"], approximate=True)
    return x + h @ p[f"{layer}.down"]


def loss_of(p: dict[str, Any], tokens: Any, targets: Any, gpt: GPT) -> Any:
    """The mean of -log softmax at the targets."""
    batch, length = tokens.shape
    x = p["wte"][tokens] + p["wpe"][:length]
    for layer in range(gpt.layers):
        parts = _norm(p, f"{layer}.ln1", x) @ p[f"{layer}.qkv"]
        q, k, v = parts.reshape(batch, length, 3, gpt.heads, -1).transpose(2, 0, 3, 1, 4)
        seen = causal_attention(q, k, v).swapaxes(1, 2).reshape(batch, length, -1)
        x = _perceptron(p, layer, x + seen @ p[f"{layer}.proj"])
    likely = nn.log_softmax(_norm(p, "lnf", x) @ p["head"])
    return -jnp.take_along_axis(likely, targets[..., None], -1).mean()


def _mixed(beta: float, old: Any, new: Any) -> Any:
    return beta * old + (1 - beta) * new


def training(gpt: GPT) -> Callable[[], float]:
    """Steps of AdamW on one batch; each call gives the loss before its step."""
    first, second = gpt.betas

    def advanced(state: Any, count: Any, tokens: Any, targets: Any) -> Any:
        p, m, v = state
        loss, grad = jax.value_and_grad(loss_of)(p, tokens, targets, gpt)
        m = jax.tree.map(partial(_mixed, first), m, grad)
        v = jax.tree.map(partial(_mixed, second), v, jax.tree.map(jnp.square, grad))

        def moved(p: Any, m: Any, v: Any) -> Any:
            size = jnp.sqrt(v / (1 - second**count)) + gpt.eps
            return p * (1 - gpt.lr * gpt.decay) - gpt.lr * m / (1 - first**count) / size

        return loss, (jax.tree.map(moved, p, m, v), m, v)

    jitted = jax.jit(advanced, donate_argnums=0)
    p = {name: jnp.asarray(array) for name, array in gpt.parameters().items()}
    state = (p, jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p))
    tokens, targets = map(jnp.asarray, gpt.data())
    count = 0

    def step() -> float:
        nonlocal state, count
        count += 1
        loss, state = jitted(state, np.float32(count), tokens, targets)
        return float(loss)

    return step


def decoding(gpt: GPT) -> Callable[[int, int], Array]:
    """A call from a token and its position to scores (1, vocabulary), with a cache inside."""
    p = {name: jnp.asarray(array) for name, array in gpt.parameters().items()}
    cache = jnp.zeros((gpt.layers, 2, gpt.heads, gpt.ctx, gpt.dim // gpt.heads))

    def one(p: Any, cache: Any, token: Any, position: Any) -> Any:
        x = (p["wte"][token] + p["wpe"][position])[None]
        seen = jnp.arange(gpt.ctx) <= position
        for layer in range(gpt.layers):
            parts = (_norm(p, f"{layer}.ln1", x) @ p[f"{layer}.qkv"]).reshape(3, gpt.heads, 1, -1)
            cache = lax.dynamic_update_slice(cache, parts[None, 1:], (layer, 0, 0, position, 0))
            attended = attention(parts[0], cache[layer, 0], cache[layer, 1], seen).reshape(1, -1)
            x = _perceptron(p, layer, x + attended @ p[f"{layer}.proj"])
        return _norm(p, "lnf", x) @ p["head"], cache

    jitted = jax.jit(one, donate_argnums=1)

    def step(token: int, position: int) -> Array:
        nonlocal cache
        scores, cache = jitted(p, cache, np.int32(token), np.int32(position))
        return np.asarray(scores)

    return step


class Jax:
    """JAX as a library to be measured."""

    version = str(jax.__version__)

    def function(self, work: Work) -> tuple[Callable[[], Any], Callable[[Any], Array]] | None:
        """See `worker.Library`."""
        xs = [jnp.asarray(x, "bfloat16" if work.element == "bf16" else x.dtype)
              for x in work.inputs()]  # fmt: skip
        jitted = jax.jit(FUNCTIONS[work.kind])
        return lambda: jitted(*xs).block_until_ready(), np.asarray

    def training(self, gpt: GPT) -> Callable[[], float] | None:
        """See `worker.Library`."""
        return training(gpt)

    def decoding(self, gpt: GPT) -> Callable[[int, int], Array] | None:
        """See `worker.Library`."""
        return decoding(gpt)
