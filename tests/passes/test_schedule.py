"""schedule: what it chooses can be carried out."""

from __future__ import annotations

import numpy as np
import pytest

from uopc import Tensor
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.dialects.registry import make_context
from uopc.passes.apply_schedule import apply_schedule
from uopc.passes.schedule import SchedulePass


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


def test_a_factor_that_one_sum_is_not_over():
    """A sum over k and l of a[k] b[l] is two sums, and no product of matrices."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((33, 5), (7, 13)))
    got = (Tensor(x).reshape(33, 1, 5, 1) * Tensor(w).reshape(1, 7, 1, 13)).sum((2, 3)).numpy()
    np.testing.assert_allclose(got, np.outer(x.sum(1), w.sum(1)), rtol=1e-4, atol=1e-4)
    b = rng.standard_normal((5, 13, 4)).astype(np.float32)
    product = Tensor(x).reshape(33, 1, 5, 1) * Tensor(b).permute(2, 0, 1).reshape(1, 4, 5, 13)
    np.testing.assert_allclose(product.sum((2, 3)).numpy(), x @ b.sum(1), rtol=1e-4, atol=1e-4)


def test_merged_ranges_take_a_free_name():
    text = """
    ukernel.kernel @k ins(%x : memref<4x8x96xf32>, %y : memref<4x8x32xf32>)
        outs(%o : memref<96x32xf32>) {
      %kl = uloop.range 96
      %j = uloop.range 32
      %k = uloop.range 4 reduce
      %l = uloop.range 8 reduce
      %0 = uloop.load %x[%k, %l, %kl] : memref<4x8x96xf32>
      %1 = uloop.load %y[%k, %l, %j] : memref<4x8x32xf32>
      %2 = arith.mulf %0, %1 : f32
      %3 = uloop.reduce add %2 over (%k, %l) : f32
      uloop.store %3, %o[%kl, %j] : memref<96x32xf32>
    }"""
    module = parse_text(text)
    SchedulePass(target="avx2").apply(make_context(), module)
    (op,) = module.body.block.ops
    assert isinstance(op, KernelOp)
    assert op.schedule is not None
    assert op.schedule.data.startswith("merge k l as kl2; contract;")
    apply_schedule(op, op.schedule.data)
