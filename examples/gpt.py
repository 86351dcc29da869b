"""A small GPT that learns to write, one character at a time.

    python examples/gpt.py                              train on examples/story.txt, then write
    python examples/gpt.py --steps 2000 --plot loss.png
    python examples/gpt.py --stop 300 --save gpt.safetensors
    python examples/gpt.py --resume gpt.safetensors     to the bit as if it had never stopped

A training step is one jitted function, so one call into C. Writing keeps keys and values of all
positions in a cache of fixed capacity: the position is data, and every character is one plan.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import uopc
from uopc import Tensor, nn

STORY = Path(__file__).with_name("story.txt")


@dataclass(frozen=True)
class Config:
    """The sizes of a GPT."""

    vocab: int = 65
    context: int = 64
    dim: int = 64
    heads: int = 2
    layers: int = 2


class Block(nn.Module):
    """Attention, then two linear layers, each on normalized input and added to it."""

    def __init__(self, config: Config) -> None:
        d = config.dim
        self.heads = config.heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.proj = nn.Linear(d, d, bias=False)
        self.up = nn.Linear(d, 4 * d, bias=False)
        self.down = nn.Linear(4 * d, d, bias=False)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of (batch, length, dim), each (batch, heads, length, size)."""
        batch, length, dim = x.shape
        parts = self.qkv(x).reshape(batch, length, 3, self.heads, dim // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        return q, k, v

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + self.proj(attended.transpose(1, 2).flatten(2))
        return x + self.down(self.up(self.ln2(x)).gelu("tanh"))

    def __call__(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.ln1(x))
        return self.finish(x, q.scaled_dot_product_attention(k, v, is_causal=True))

    def step(self, x: Tensor, cache: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        """One position (1, 1, dim), given keys and values of those before: (2, heads, capacity,
        size); the result, and the cache with this position in it."""
        q, k, v = self.split(self.ln1(x))
        slots = Tensor.arange(cache.shape[2])
        here = (slots == position).reshape(1, 1, -1, 1)
        cache = here.where(k.cat(v, axis=0), cache)
        attended = q.scaled_dot_product_attention(cache[:1], cache[1:], slots <= position)
        return self.finish(x, attended), cache


class GPT(nn.Module):
    """Pre-norm blocks between embeddings and an output layer that is not tied to them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.tokens = nn.Embedding(config.vocab, config.dim)
        self.places = nn.Embedding(config.context, config.dim)
        self.blocks = [Block(config) for _ in range(config.layers)]
        self.norm = nn.LayerNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocab, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                parameter.assign(Tensor.normal(*parameter.shape, std=0.02))

    def __call__(self, tokens: Tensor) -> Tensor:
        """Scores (batch, length, vocab) of what follows each of (batch, length) tokens."""
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def empty_cache(self) -> Tensor:
        """Keys and values of no position yet: (layers, 2, heads, context, size)."""
        c = self.config
        return Tensor(np.zeros((c.layers, 2, c.heads, c.context, c.dim // c.heads), np.float32))

    def step(self, token: Tensor, position: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """The scores (vocab) of what follows one token at a position, and the cache after it."""
        x = (self.tokens(token) + self.places(position)).reshape(1, 1, -1)
        caches: list[Tensor] = []
        for block, own in zip(self.blocks, cache.unbind(), strict=True):
            x, own = block.step(x, own, position)
            caches.append(own)
        return self.head(self.norm(x)).flatten(), Tensor.stack(caches)


class Training:
    """A model, its optimizer and schedule, and how many steps they have taken."""

    def __init__(
        self, config: Config, steps: int, batch: int, lr: float, text: np.ndarray, seed: int
    ) -> None:
        Tensor.manual_seed(seed)
        self.model = GPT(config)
        self.opt = nn.AdamW(self.model.parameters(), lr=lr)
        self.schedule = nn.CosineLR(self.opt, steps, warmup=min(100, steps // 10), least=0.1)
        self.batch, self.text, self.seed = batch, text, seed
        self.done = 0
        self.step = uopc.jit(self._step)

    def _step(self, x: Tensor, y: Tensor) -> Tensor:
        loss = self.model(x).flatten(0, 1).cross_entropy(y.flatten())
        loss.backward()
        nn.clip_grad_norm_(self.opt.params, 1.0)
        self.opt.step(loss)
        self.opt.zero_grad()  # inside, so that no gradient has to be stored
        return loss

    def batch_at(self, step: int) -> tuple[Tensor, Tensor]:
        """The batch of a step: the same one however training came there."""
        context = self.model.config.context
        rng = np.random.default_rng([self.seed, step])
        starts = rng.integers(0, len(self.text) - context, self.batch)
        rows = self.text[starts[:, None] + np.arange(context + 1)]
        return Tensor(rows[:, :-1]), Tensor(rows[:, 1:])

    def run(self, steps: int) -> Iterator[tuple[int, float]]:
        """Train up to `steps` steps in all; the number and the loss of each."""
        while self.done < steps:
            loss = self.step(*self.batch_at(self.done))
            self.schedule.step()
            self.done += 1
            yield self.done, loss.item()

    def save(self, path: str) -> None:
        """Everything that training goes on from."""
        held = {"model": self.model, "opt": self.opt, "schedule": self.schedule.state_dict()}
        nn.save(nn.get_state_dict(held), path)

    def load(self, path: str) -> None:
        """Go on from a file of `save`."""
        state = nn.load(path)
        rest = {n.removeprefix("schedule."): t for n, t in state.items() if "schedule." in n}
        own = {n: t for n, t in state.items() if "schedule." not in n}
        nn.load_state_dict({"model": self.model, "opt": self.opt}, own)
        steps = int(rest["steps"].item())
        self.schedule.go_to(steps)
        self.done = steps


class Writer:
    """Writes with a model, one character at a time."""

    def __init__(self, model: GPT, seed: int = 0, temperature: float = 0.8) -> None:
        self.model = model
        self.temperature = temperature
        self.rng = np.random.default_rng(seed)
        self.decode = uopc.jit(self._decode)

    def _decode(self, token: Tensor, position: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        return self.model.step(token, position, cache)

    def scores(self, tokens: Sequence[int], cache: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """The scores after tokens that stand at `start` and on, and the cache with them."""
        scores = cache
        for place, token in enumerate(tokens, start):
            scores, cache = self.decode(Tensor(np.int32(token)), Tensor(np.int32(place)), cache)
        return scores, cache

    def write(self, prompt: Sequence[int], count: int) -> list[int]:
        """`count` more tokens after a prompt that is not empty.

        Where the capacity ends, the later half of the context moves to its beginning.
        """
        context = self.model.config.context
        text = list(prompt)
        recent = text[-context:]
        scores, cache = self.scores(recent, self.model.empty_cache())
        for _ in range(count):
            text.append(self._drawn(scores.numpy()))
            if len(recent) == context:
                recent = recent[context // 2 :] + text[-1:]
                scores, cache = self.scores(recent, self.model.empty_cache())
            else:
                recent.append(text[-1])
                scores, cache = self.scores(text[-1:], cache, len(recent) - 1)
        return text

    def _drawn(self, scores: np.ndarray) -> int:
        p = np.exp((scores - scores.max()).astype(np.float64) / self.temperature)
        return int(self.rng.choice(len(p), p=p / p.sum()))


def plot(losses: list[tuple[int, float]], path: str) -> None:
    """Draw the training curve."""
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise SystemExit("--plot needs matplotlib: pip install matplotlib") from None
    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    steps, values = zip(*losses, strict=True)
    axes.plot(steps, values, color="0.8", linewidth=0.8, label="each step")
    width = max(1, len(values) // 50)
    smooth = np.convolve(values, np.ones(width) / width, "valid")
    axes.plot(steps[width - 1 :], smooth, label=f"mean of {width}")
    axes.set(xlabel="step", ylabel="loss per character", ylim=(0, None))
    axes.legend()
    figure.savefig(path, dpi=120)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small GPT on a text, and let it write.")
    parser.add_argument("--text", type=Path, default=STORY)
    for name, default in (("steps", 600), ("batch", 16), ("layers", 2), ("dim", 64), ("heads", 2),
                          ("context", 64), ("sample", 400), ("seed", 0)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--stop", type=int, help="stop after N of the steps")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--every", type=int, default=50, help="print the loss every N steps")
    for name, what in (("plot", "draw the training curve into a picture"),
                       ("save", "write a checkpoint at the end"),
                       ("resume", "go on from a checkpoint")):  # fmt: skip
        parser.add_argument(f"--{name}", metavar="FILE", help=what)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> list[tuple[int, float]]:
    """Train and write as the command line says; the loss of each step."""
    options = parsed(arguments)
    text = options.text.read_text(encoding="utf-8")
    characters = sorted(set(text))
    numbers = np.array([characters.index(c) for c in text], np.int32)
    config = Config(len(characters), options.context, options.dim, options.heads, options.layers)
    training = Training(config, options.steps, options.batch, options.lr, numbers, options.seed)
    count = sum(p.size for p in training.model.parameters())
    print(f"{len(text):,} characters, {config.vocab} different; {count:,} parameters")
    if options.resume:
        training.load(options.resume)
        print(f"going on from step {training.done}")
    losses: list[tuple[int, float]] = []
    start = time.perf_counter()
    end = options.steps if options.stop is None else options.stop
    for step, loss in training.run(end):
        losses.append((step, loss))
        if step % options.every == 0 or step in (1, end):
            recent = [value for _, value in losses[-options.every :]]
            mean, rate = sum(recent) / len(recent), (time.perf_counter() - start) / len(losses)
            bar = "#" * round(10 * mean / math.log(config.vocab))
            print(
                f"step {step:5d}  loss {mean:.3f}  {rate * 1e3:6.1f} ms a step  {bar}", flush=True
            )
    if options.save:
        training.save(options.save)
    if options.plot and losses:
        plot(losses, options.plot)
    if options.sample:
        start = time.perf_counter()
        written = Writer(training.model, options.seed).write(
            [characters.index("\n")], options.sample
        )
        rate = (time.perf_counter() - start) / options.sample
        print("".join(characters[i] for i in written))
        print(f"{rate * 1e3:.1f} ms a character; {uopc.cache_info().compiles} plans in all")
    return losses


if __name__ == "__main__":
    main()
