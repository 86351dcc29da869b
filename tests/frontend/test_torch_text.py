"""Text as torch-mlir writes it, against numpy: examples/stablehlo/torch_classifier.mlir."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import uopc
from uopc.tools.run import main

PATH = Path(__file__).parents[2] / "examples" / "stablehlo" / "torch_classifier.mlir"


def classifier(x: np.ndarray) -> np.ndarray:
    """Conv2d, ReLU, MaxPool2d, Linear, Softmax with the weights that stand in the text."""
    cut = np.lib.stride_tricks.sliding_window_view(x[:, 0], (3, 3), axis=(1, 2))[:, ::2, ::2]
    bias = np.array([-0.5, 0, 0.25, 1]).reshape(4, 1, 1)
    y = np.maximum(0.125 * cut.sum((-1, -2))[:, None] + bias, 0)
    y = y.reshape(2, 4, 3, 2, 3, 2).max((3, 5)).reshape(2, 36)
    y = y @ np.full((36, 10), 0.03125) + np.arange(10) / 10
    e = np.exp(y - y.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("target", ["interpreter", "c"])
def test_a_classifier(target, cache_folder):
    x = np.random.default_rng(0).standard_normal((2, 1, 14, 14)).astype(np.float32)
    got = uopc.from_stablehlo(PATH, target)(x)
    np.testing.assert_allclose(got, classifier(x), 1e-5)


def test_the_tool_runs_it(cache_folder, capsys):
    assert main([str(PATH), "--check", "-q"]) == 0
    assert "check: out0 agrees" in capsys.readouterr().out
