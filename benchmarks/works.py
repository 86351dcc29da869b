"""What the benchmarks compute: names, inputs, and how many operations and bytes it takes.

A work has a kind, under which each library has a function (`programs.py` for uopc, `library_*.py`
for the others), and inputs that any process makes again from a seed. GPTs are at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class GPT:
    """A GPT with pre-norm blocks, no biases in linear layers and an output layer of its own; and
    the numbers of the AdamW that trains it, whose decay is of every parameter."""

    vocabulary: int
    ctx: int
    dim: int
    heads: int
    layers: int
    batch: int
    losses: tuple[float, ...]
    """Of the first steps, by `library_torch.py` in f64."""
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    decay: float = 0.01

    def parameters(self) -> dict[str, Array]:
        """Starting values in f32; a weight is (inputs, outputs)."""
        rng, d = np.random.default_rng(1), self.dim

        def weight(*shape: int) -> Array:
            return rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)

        def norm(name: str) -> dict[str, Array]:
            return {f"{name}.g": np.ones(d, np.float32), f"{name}.b": np.zeros(d, np.float32)}

        found = {"wte": weight(self.vocabulary, d), "wpe": weight(self.ctx, d)}
        for layer in range(self.layers):
            found |= norm(f"{layer}.ln1") | norm(f"{layer}.ln2")
            shapes = {"qkv": (d, 3 * d), "proj": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
            found |= {f"{layer}.{name}": weight(*shape) for name, shape in shapes.items()}
        return found | norm("lnf") | {"head": weight(d, self.vocabulary)}

    def data(self) -> tuple[Array, Array]:
        """Tokens and what follows each of them, both (batch, ctx), i32."""
        rng = np.random.default_rng(2)
        rows = rng.integers(0, self.vocabulary, (self.batch, self.ctx + 1)).astype(np.int32)
        return rows[:, :-1].copy(), rows[:, 1:].copy()

    def training_operations(self) -> float:
        """Of a step: six for each weight and token, and attention over all pairs of positions."""
        d, tokens = self.dim, self.batch * self.ctx
        weights = 12 * d * d * self.layers + d * self.vocabulary
        return 6.0 * tokens * weights + 12.0 * tokens * self.ctx * d * self.layers


@dataclass(frozen=True)
class Work:
    """One row of the table."""

    name: str
    kind: str
    shapes: tuple[Shape, ...] = ()
    operations: float = 0.0
    bytes: float = 0.0
    """At least so many move; given where they, not operations, set the bound."""
    element: str = "f32"
    tolerance: float = 1e-4
    """The largest error that is right, as a part of the largest number of the result."""
    gpt: GPT | None = None
    small: bool = False
    """Takes microseconds: fit for a quick run."""

    def inputs(self) -> list[Array]:
        """Random inputs, always the same. Those of bf16 are f32 that hold its values."""
        rng = np.random.default_rng(0)
        arrays: list[Array] = [rng.standard_normal(s, dtype=np.float32) for s in self.shapes]
        if self.element == "f16":
            return [a.astype(np.float16) for a in arrays]
        if self.element == "bf16":
            high = np.uint32(0xFFFF0000)
            return [(a.view(np.uint32) & high).view(np.float32) for a in arrays]
        return arrays

    def rate(self, seconds: float) -> str:
        """What a time is in GFLOP/s or GB/s, in words; empty where neither says much."""
        if self.operations:
            return f"{self.operations / seconds / 1e9:.0f} GFLOP/s"
        return f"{self.bytes / seconds / 1e9:.1f} GB/s" if self.bytes else ""


TINY = GPT(65, 64, 64, 2, 2, 16, (4.193098, 4.09862445, 4.02332772, 3.96245867))
SMALL = GPT(4096, 256, 384, 6, 6, 4, (8.40925571, 7.90117777, 7.52218896, 7.21870418))
DECODED = 8
"""Tokens whose scores are checked."""
POSITION = 128
"""Where decoding is timed."""


def _products() -> Iterator[Work]:
    for n in (128, 512, 1024, 2048):
        yield Work(f"product {n}", "matmul", ((n, n),) * 2, 2.0 * n**3, small=n == 128)
    for n in (128, 512):
        yield Work(f"chain of two products {n}", "mm_chain", ((n, n),) * 3, 4.0 * n**3)
    for rows, n in ((128, 256), (4096, 1024)):
        name, operations = f"layer norm, product {rows}x{n}", 2.0 * rows * n * n
        yield Work(name, "ln_matmul", ((rows, n), (n, n)), operations)
    for element, tolerance in (("f16", 1e-3), ("bf16", 8e-3)):
        yield Work(f"product 1024 {element}", "matmul_low", ((1024, 1024),) * 2, 2.0 * 1024**3,
                   element=element, tolerance=tolerance)  # fmt: skip


def _networks() -> Iterator[Work]:
    heads = ((1, 8, 1024, 64),) * 3
    operations = 4.0 * 8 * 1024 * 1024 * 64
    yield Work("attention", "attn", heads, operations)
    # Counted full, so that the rate shows who skips what the mask hides.
    yield Work("attention, causal", "attn_causal", heads, operations)
    image, weight, channels = (8, 64, 56, 56), (64, 64, 3, 3), (64,)
    operations = 2.0 * 8 * 64 * 56 * 56 * 64 * 9
    yield Work("convolution 3x3", "conv", (image, weight), operations)
    block = (image, *(weight, channels, channels) * 2)
    yield Work("residual block", "resblock", block, 2 * operations)


def _memory() -> Iterator[Work]:
    for n in (512, 4096):
        yield Work(f"softmax {n}x{n}", "softmax", ((n, n),), bytes=8.0 * n * n)
    yield Work("relu(2x + 1) * 3, 16 M", "chain", ((1 << 24,),), bytes=8.0 * 2**24)
    reductions = {"sum, axis 0": "sum0", "sum, axis 1": "sum1", "sum of all": "sum_all",
                  "maximum, axis 1": "max1", "argmax, axis 1": "argmax1"}  # fmt: skip
    for name, kind in reductions.items():
        tolerance = 1e-3 if kind == "sum_all" else 1e-4
        yield Work(name, kind, ((4096, 4096),), bytes=4.0 * 2**24, tolerance=tolerance)
    yield Work("transpose", "transpose", ((4096, 4096),), bytes=8.0 * 2**24)


def _calls() -> Iterator[Work]:
    yield Work("2x + 1, 16 elements", "tiny", ((16,),))
    yield Work("softmax 4x8", "softmax", ((4, 8),), small=True)


def _gpts() -> Iterator[Work]:
    for name, gpt in (("tiny", TINY), ("small", SMALL)):
        yield Work(f"GPT step, {name}", "train", (), gpt.training_operations(), gpt=gpt,
                   tolerance=1e-3)  # fmt: skip
    yield Work("GPT token, small", "decode", gpt=SMALL, tolerance=1e-3)


WORKS: dict[str, Work] = {
    work.name: work for part in (_products, _networks, _memory, _calls, _gpts) for work in part()
}
