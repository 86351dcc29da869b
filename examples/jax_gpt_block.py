"""A block of a GPT, written in JAX, as C: uopc.from_jax compiles what JAX lowers it to.

pip install 'uopc[jax]' && python examples/jax_gpt_block.py
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import uopc

DIM, HEADS, LENGTH = 64, 4, 32


def normalized(x: Any, scale: Any) -> Any:
    """Mean 0 and variance 1 along the last axis, then scaled."""
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale


def block(p: dict[str, Any], x: Any) -> Any:
    """Causal self-attention and a perceptron, each added to its input."""
    batch, length, dim = x.shape
    qkv = normalized(x, p["norm1"]) @ p["qkv"]
    q, k, v = jnp.moveaxis(qkv.reshape(batch, length, 3, HEADS, dim // HEADS), 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(dim // HEADS)
    seen = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, dim)
    x = x + mixed @ p["out"]
    return x + jax.nn.gelu(normalized(x, p["norm2"]) @ p["up"]) @ p["down"]


def parameters(rng: np.random.Generator) -> dict[str, Any]:
    """Random weights of a block."""
    shapes = {
        "qkv": (DIM, 3 * DIM), "out": (DIM, DIM), "up": (DIM, 4 * DIM), "down": (4 * DIM, DIM)
    }  # fmt: skip
    found = {name: 0.1 * rng.standard_normal(s, np.float32) for name, s in shapes.items()}
    return {**found, "norm1": np.ones(DIM, np.float32), "norm2": np.ones(DIM, np.float32)}


def main() -> None:
    """Compile, run, and compare with JAX."""
    rng = np.random.default_rng(0)
    p, x = parameters(rng), rng.standard_normal((2, LENGTH, DIM), np.float32)
    program = uopc.from_jax(block, p, x)
    difference = np.abs(program(p, x) - np.asarray(jax.jit(block)(p, x))).max()
    print(f"{len(program.plan.kernels)} kernels, {len(program.source):,} characters of C")
    print(f"largest difference from JAX: {difference:.2g}")
    assert difference < 1e-4


if __name__ == "__main__":
    main()
