"""Convolutions whose rows of pixels are merged: right values, and the bits of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import uopc

# Batch, channels, height, width, filters, kernel, padding.
SIZES = [(2, 3, 8, 7, 5, 3, 1), (1, 16, 14, 14, 20, 3, 1), (2, 8, 7, 7, 9, 3, 1),
         (1, 4, 28, 28, 16, 5, 2), (1, 6, 12, 12, 10, 3, 0), (1, 5, 9, 24, 33, 3, 1),
         (1, 9, 10, 5, 8, 1, 0), (1, 7, 13, 13, 8, 3, 1), (3, 2, 2, 2, 8, 1, 0)]  # fmt: skip


def convolution(size: tuple[int, ...]) -> str:
    """A convolution with a bias that is added to what it is given besides."""
    n, c, h, w, o, k, p = size
    y, x = h + 2 * p - k + 1, w + 2 * p - k + 1
    result = f"tensor<{n}x{o}x{y}x{x}xf32>"
    return f"""
func.func @f(%a: tensor<{n}x{c}x{h}x{w}xf32>, %w: tensor<{o}x{c}x{k}x{k}xf32>,
             %b: tensor<{o}x1x1xf32>, %r: {result}) -> {result} {{
  %0 = stablehlo.convolution(%a, %w)
    dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {{pad = [[{p}, {p}], [{p}, {p}]]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<{n}x{c}x{h}x{w}xf32>, tensor<{o}x{c}x{k}x{k}xf32>) -> {result}
  %1 = stablehlo.broadcast_in_dim %b, dims = [1, 2, 3] : (tensor<{o}x1x1xf32>) -> {result}
  %2 = stablehlo.add %0, %1 : {result}
  %3 = stablehlo.add %2, %r : {result}
  func.return %3 : {result}
}}"""


def expected(size: tuple[int, ...], arrays: list[np.ndarray]) -> np.ndarray:
    k, p = size[5:]
    a, kernel, bias, rest = (x.astype(np.float64) for x in arrays)
    padded = np.pad(a, ((0, 0), (0, 0), (p, p), (p, p)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (2, 3))
    return np.einsum("ncyxij,ocij->noyx", windows, kernel) + bias + rest


@pytest.mark.parametrize("size", SIZES)
def test_odd_images(size: tuple[int, ...]):
    n, c, h, w, o, k, p = size
    rng = np.random.default_rng(2)
    shapes = [(n, c, h, w), (o, c, k, k), (o, 1, 1), (n, o, h + 2 * p - k + 1, w + 2 * p - k + 1)]
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    text = convolution(size)
    compiled = uopc.from_stablehlo(text)(*arrays)
    np.testing.assert_allclose(compiled, expected(size, arrays), 1e-4, 1e-4)
    if compiled.size * c * k * k < 200_000:
        interpreted = uopc.from_stablehlo(text, "interpreter:linear")(*arrays)
        assert interpreted.tobytes() == compiled.tobytes()


@pytest.mark.parametrize("target", ["avx512", "avx2", "sse2"])
def test_lanes_behind_the_last_column(target: str):
    """Merged columns that are no whole vectors: a panel has room for what is read and not kept."""
    size = (1, 2, 15, 4, 16, 1, 0)
    n, c, h, w, o, k, _ = size
    rng = np.random.default_rng(4)
    shapes = [(n, c, h, w), (o, c, k, k), (o, 1, 1), (n, o, h, w)]
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    interpreted = uopc.from_stablehlo(convolution(size), "interpreter:linear", target_cpu=target)(
        *arrays
    )
    np.testing.assert_allclose(interpreted, expected(size, arrays), 1e-4, 1e-4)


def test_a_mask_that_some_copies_share():
    """Half of the lanes' conditions never hold: one truth value for all, known outside of loops."""
    i = uopc.Tensor.arange(17).reshape(17, 1)
    j = uopc.Tensor.arange(17).reshape(1, 17)
    ones = uopc.Tensor(np.ones((17, 4), np.float32))
    found = ((j <= i) | (j < 3)).where(ones @ ones.mT, 0.0).numpy()
    rows, columns = np.ogrid[:17, :17]
    assert (found == np.where((columns <= rows) | (columns < 3), 4, 0)).all()
