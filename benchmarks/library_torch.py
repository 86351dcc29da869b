"""The works in PyTorch, eager, as its users write them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from works import GPT, Array, Work

# By name, and Any: the types of an optional package are not there for every check.
torch: Any = import_module("torch")
F: Any = import_module("torch.nn.functional")


def _channels(x: Any) -> Any:
    return x.view(-1, 1, 1)


def residual_block(x: Any, w1: Any, s1: Any, b1: Any, w2: Any, s2: Any, b2: Any) -> Any:
    """Two convolutions, each with a folded batch norm, added to their input."""
    h = F.relu(F.conv2d(x, w1, padding=1) * _channels(s1) + _channels(b1))
    return F.relu(F.conv2d(h, w2, padding=1) * _channels(s2) + _channels(b2) + x)


def layer_norm_product(x: Any, weight: Any) -> Any:
    """A product whose left factor has mean 0 and variance 1 in each row."""
    return F.layer_norm(x, x.shape[-1:]) @ weight


def chained(a: Any, b: Any, c: Any) -> Any:
    """Two products, from the left."""
    return a @ b @ c


def chain(x: Any) -> Any:
    """Four operations an element."""
    return F.relu(x * 2 + 1) * 3


def convolution(x: Any, weight: Any) -> Any:
    """3x3, padded by 1."""
    return F.conv2d(x, weight, padding=1)


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    """A position sees itself and those before."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: x.softmax(-1),
    "chain": chain,
    "sum0": lambda x: x.sum(0),
    "sum1": lambda x: x.sum(1),
    "sum_all": lambda x: x.sum(),
    "max1": lambda x: x.amax(1),
    "argmax1": lambda x: x.argmax(1),
    "transpose": lambda x: x.T.contiguous(),
    "tiny": lambda x: x * 2 + 1,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **_OF_ONE,
    "matmul": torch.matmul,
    "matmul_low": torch.matmul,
    "mm_chain": chained,
    "ln_matmul": layer_norm_product,
    "conv": convolution,
    "attn": F.scaled_dot_product_attention,
    "attn_causal": causal_attention,
    "resblock": residual_block,
}


def _norm(p: dict[str, Any], name: str, x: Any) -> Any:
    return F.layer_norm(x, x.shape[-1:], p[f"{name}.g"], p[f"{name}.b"])


def _perceptron(p: dict[str, Any], layer: int, x: Any) -> Any:
    h = F.gelu(_norm(p, f"{layer}.ln2", x) @ p[f"{layer}.up"], approximate="tanh")
    return x + h @ p[f"{layer}.down"]


def scores(p: dict[str, Any], tokens: Any, gpt: GPT) -> Any:
    """What follows each of (batch, length) tokens."""
    batch, length = tokens.shape
    x = p["wte"][tokens] + p["wpe"][:length]
    for layer in range(gpt.layers):
        parts = _norm(p, f"{layer}.ln1", x) @ p[f"{layer}.qkv"]
        q, k, v = parts.view(batch, length, 3, gpt.heads, -1).permute(2, 0, 3, 1, 4)
        seen = causal_attention(q, k, v).transpose(1, 2).reshape(batch, length, -1)
        x = _perceptron(p, layer, x + seen @ p[f"{layer}.proj"])
    return _norm(p, "lnf", x) @ p["head"]


def training(gpt: GPT, dtype: Any = torch.float32) -> Callable[[], float]:
    """Steps of AdamW on one batch; each call gives the loss before its step."""
    p = {n: torch.tensor(a, dtype=dtype, requires_grad=True) for n, a in gpt.parameters().items()}
    tokens, targets = (torch.from_numpy(array).long() for array in gpt.data())
    opt = torch.optim.AdamW(p.values(), gpt.lr, gpt.betas, gpt.eps, gpt.decay, fused=True)

    def step() -> float:
        opt.zero_grad()
        loss = F.cross_entropy(scores(p, tokens, gpt).flatten(0, 1), targets.flatten())
        loss.backward()
        opt.step()
        return loss.item()

    return step


def decoding(gpt: GPT) -> Callable[[int, int], Array]:
    """A call from a token and its position to scores (1, vocabulary), with a cache inside."""
    p = {name: torch.from_numpy(array) for name, array in gpt.parameters().items()}
    cache = torch.zeros(gpt.layers, 2, gpt.heads, gpt.ctx, gpt.dim // gpt.heads)

    @torch.inference_mode()
    def step(token: int, position: int) -> Array:
        x = (p["wte"][token] + p["wpe"][position]).view(1, -1)
        for layer in range(gpt.layers):
            parts = (_norm(p, f"{layer}.ln1", x) @ p[f"{layer}.qkv"]).view(3, gpt.heads, 1, -1)
            cache[layer, :, :, position] = parts[1:, :, 0]
            k, v = cache[layer, :, :, : position + 1]
            seen = F.scaled_dot_product_attention(parts[0], k, v).reshape(1, -1)
            x = _perceptron(p, layer, x + seen @ p[f"{layer}.proj"])
        return (_norm(p, "lnf", x) @ p["head"]).numpy()

    return step


class Torch:
    """PyTorch as a library to be measured."""

    version = str(torch.__version__)

    def __init__(self) -> None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    def function(self, work: Work) -> tuple[Callable[[], Any], Callable[[Any], Array]] | None:
        """See `worker.Library`."""
        xs = [torch.from_numpy(x) for x in work.inputs()]
        if work.element == "bf16":
            xs = [x.bfloat16() for x in xs]
        f = FUNCTIONS[work.kind]

        @torch.inference_mode()
        def call() -> Any:
            return f(*xs)

        return call, lambda x: (x.float() if x.is_floating_point() else x).numpy()

    def training(self, gpt: GPT) -> Callable[[], float] | None:
        """See `worker.Library`."""
        return training(gpt)

    def decoding(self, gpt: GPT) -> Callable[[int, int], Array] | None:
        """See `worker.Library`."""
        return decoding(gpt)
