"""A training step of a GPT on characters, written in JAX, gradients and Adam included, as C.

    pip install 'uopc[jax]' && python examples/jax_train_step.py

JAX differentiates; uopc compiles what comes out, some 1,200 ops of StableHLO, as one program. The
step is run beside JAX's own: both see the same losses.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_gpt_block import DIM, LENGTH, block, normalized, parameters

import uopc

LAYERS, LETTERS, BATCH, STEPS = 2, 65, 8, 5
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.99, 1e-8


def loss_of(p: dict[str, Any], text: Any) -> Any:
    """The mean cross entropy of each letter given those before it."""
    x = p["letters"][text[:, :-1]] + p["places"]
    for layer in p["layers"]:
        x = block(layer, x)
    logits = normalized(x, p["norm"]) @ p["letters"].T
    hits = jnp.take_along_axis(jax.nn.log_softmax(logits), text[:, 1:, None], axis=-1)
    return -hits.mean()


def train_step(state: dict[str, Any], text: Any) -> tuple[dict[str, Any], Any]:
    """One step of Adam."""
    loss, gradient = jax.value_and_grad(loss_of)(state["p"], text)
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state["mean"], gradient)
    square = jax.tree.map(lambda s, g: BETA2 * s + (1 - BETA2) * g * g, state["square"], gradient)
    rate = RATE * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
    p = jax.tree.map(
        lambda w, m, s: w - rate * m / (jnp.sqrt(s) + EPSILON), state["p"], mean, square
    )
    return {"p": p, "mean": mean, "square": square, "count": count}, loss


def initial(rng: np.random.Generator) -> dict[str, Any]:
    """Random weights, and the state of Adam."""
    p = {
        "letters": 0.1 * rng.standard_normal((LETTERS, DIM), np.float32),
        "places": 0.1 * rng.standard_normal((LENGTH, DIM), np.float32),
        "layers": [parameters(rng) for _ in range(LAYERS)],
        "norm": np.ones(DIM, np.float32),
    }
    zeros = jax.tree.map(np.zeros_like, p)
    return {"p": p, "mean": zeros, "square": zeros, "count": np.float32(0)}


def timed(step: Any, state: Any, text: Any) -> tuple[list[float], float]:
    """The losses of some steps, and the shortest time of one."""
    losses: list[float] = []
    best = float("inf")
    for _ in range(STEPS):
        start = time.perf_counter()
        state, loss = step(state, text)
        losses.append(float(loss))
        jax.block_until_ready(state)
        best = min(best, time.perf_counter() - start)
    return losses, best


def main() -> None:
    """Compile, train a little, and compare with JAX."""
    rng = np.random.default_rng(0)
    state, text = initial(rng), rng.integers(0, LETTERS, (BATCH, LENGTH + 1), np.int32)
    start = time.perf_counter()
    step = uopc.from_jax(train_step, state, text)
    seconds = time.perf_counter() - start
    ops = step.stablehlo.count("= stablehlo.")
    print(f"{ops:,} ops of StableHLO, {len(step.plan.kernels)} kernels, {seconds:.1f} s to compile")
    ours, own_time = timed(step, state, text)
    theirs, jax_time = timed(jax.jit(train_step), state, text)
    print(f"a step: {own_time * 1e3:.1f} ms, JAX {jax_time * 1e3:.1f} ms")
    print("losses: " + ", ".join(f"{loss:.4f}" for loss in ours))
    assert np.allclose(ours, theirs, rtol=1e-4), theirs
    assert ours[-1] < ours[0]


if __name__ == "__main__":
    main()
