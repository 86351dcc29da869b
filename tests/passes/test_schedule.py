"""schedule: what it chooses can be carried out."""

from __future__ import annotations

import numpy as np
import pytest

from uopc import Tensor


@pytest.mark.parametrize("rows", [2, 5])
@pytest.mark.parametrize("size", [16, 33, 64])
def test_a_row_that_is_kept_is_not_cut_into_lanes(rows: int, size: int):
    """The row of y is kept in a tile for the product; the sum over rows wants lanes across it."""
    rng = np.random.default_rng(size)
    h, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((rows, size), (size, size)))
    y = Tensor(h).tanh()
    got = ((y @ Tensor(w)) * y + y).sum(0).numpy()
    t = np.tanh(h.astype(np.float64))
    np.testing.assert_allclose(got, ((t @ w) * t + t).sum(0), rtol=1e-4, atol=1e-4)
