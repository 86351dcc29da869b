"""Two linear layers learn to read digits that this program draws.

    python examples/train_mlp.py                    about 97 of 100 right after 300 steps
    python examples/train_mlp.py --steps 1000 --plot curve.png

The pictures are 28 x 28: a digit of 5 x 7 dots, three times as large, somewhere, somewhat darker
or brighter, under noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import uopc
from uopc import Tensor, nn

DOTS = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""


def digits() -> np.ndarray:
    """The ten digits, f32[10, 21, 15], 0 or 1."""
    rows = [line.split() for line in DOTS.split("\n") if line]
    small = np.array([[[c == "#" for c in row[d]] for row in rows] for d in range(10)], np.float32)
    return small.repeat(3, 1).repeat(3, 2)


def pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures f32[count, 784] and what they show i32[count]."""
    rng = np.random.default_rng(seed)
    shapes = digits()
    labels = rng.integers(0, 10, count).astype(np.int32)
    images = np.zeros((count, 28, 28), np.float32)
    for image, label in zip(images, labels, strict=True):
        top, left = rng.integers(0, 8), rng.integers(0, 14)
        image[top : top + 21, left : left + 15] = shapes[label] * rng.uniform(0.5, 1.0)
    images += rng.normal(0, 0.25, images.shape).astype(np.float32)
    return images.reshape(count, 784), labels


class MLP(nn.Module):
    """784 dots to 10 scores."""

    def __init__(self, hidden: int) -> None:
        self.first = nn.Linear(784, hidden)
        self.second = nn.Linear(hidden, 10)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


def main(arguments: Sequence[str] | None = None) -> float:
    """Train as the command line says; the share of new pictures that are read right."""
    parser = argparse.ArgumentParser(description="Learn to read drawn digits.")
    for name, default in (("steps", 300), ("batch", 64), ("hidden", 128), ("pictures", 4000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--plot", metavar="FILE", help="draw the training curve into a picture")
    options = parser.parse_args(arguments)

    Tensor.manual_seed(0)
    x, y = pictures(options.pictures, seed=1)
    model = MLP(options.hidden)
    opt = nn.Adam(model.parameters(), lr=options.lr)

    @uopc.jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = model(x).cross_entropy(y)
        loss.backward()
        opt.step(loss)
        opt.zero_grad()
        return loss

    @uopc.jit
    def correct(x: Tensor, y: Tensor) -> Tensor:
        return (model(x).argmax(1) == y).mean()

    new_x, new_y = map(Tensor, pictures(1000, seed=2))
    rng = np.random.default_rng(3)
    losses: list[float] = []
    for number in range(1, options.steps + 1):
        rows = rng.integers(0, len(x), options.batch)
        losses.append(step(Tensor(x[rows]), Tensor(y[rows])).item())
        if number % 50 == 0 or number == options.steps:
            share = correct(new_x, new_y).item()
            print(f"step {number:4d}  loss {np.mean(losses[-50:]):.3f}  right {share:.1%}")
    if options.plot:
        plot(losses, options.plot)
    return correct(new_x, new_y).item()


def plot(losses: list[float], path: str) -> None:
    """Draw the training curve."""
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise SystemExit("--plot needs matplotlib: pip install matplotlib") from None
    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(range(1, len(losses) + 1), losses)
    axes.set(xlabel="step", ylabel="loss", ylim=(0, None))
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
