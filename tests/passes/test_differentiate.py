"""The pass: gradients of gradients, what is compiled, shared work, depth."""

from __future__ import annotations

import math
import sys
import time

import numpy as np
import pytest
from xdsl.dialects.builtin import f64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

import uopc
from uopc.dialects.locations import location_of, parse_text
from uopc.dialects.sizes import tensor_type
from uopc.dialects.tensor_elementwise import ExpOp, MulOp, SinOp
from uopc.interpreters.tensor import run_function
from uopc.passes.differentiate import DifferentiatePass
from uopc.passes.manager import run_passes

LAYER = """
func.func @loss(%x: tensor<32x64xf32>, %w: tensor<64x10xf32>) -> tensor<f32> {
  %0 = utensor.reshape %x : tensor<32x64xf32> -> tensor<32x1x64xf32>
  %1 = utensor.expand %0 : tensor<32x1x64xf32> -> tensor<32x10x64xf32>
  %2 = utensor.permute %w [1, 0] : tensor<64x10xf32> -> tensor<10x64xf32>
  %3 = utensor.reshape %2 : tensor<10x64xf32> -> tensor<1x10x64xf32>
  %4 = utensor.expand %3 : tensor<1x10x64xf32> -> tensor<32x10x64xf32>
  %5 = utensor.mul %1, %4 : tensor<32x10x64xf32>
  %6 = utensor.reduce add %5 axes [2] : tensor<32x10x64xf32> -> tensor<32x10xf32>
  %7 = utensor.constant 0.0 : tensor<32x10xf32>
  %8 = utensor.cmplt %7, %6 : tensor<32x10xf32>
  %9 = utensor.where %8, %6, %7 : tensor<32x10xf32>
  %10 = utensor.mul %9, %9 : tensor<32x10xf32>
  %11 = utensor.reduce add %10 axes [0, 1] : tensor<32x10xf32> -> tensor<f32>
  func.return %11 : tensor<f32>
}
"""


@pytest.mark.usefixtures("cache_folder")
def test_a_loss_and_its_gradient_compile_to_one_plan():
    module = parse_text(LAYER)
    DifferentiatePass(wrt=("w",)).apply(None, module)  # type: ignore[arg-type] (it needs no context)
    exe = uopc.compile(module, function="loss_gradient")
    names = [kernel.name for kernel in exe.plan.kernels]
    assert names.count("r_32_10") == 1 and len(names) <= 5
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((32, 64), (64, 10)))
    loss, gradient = exe(x, w)
    hidden = np.maximum(x.astype(float) @ w, 0)
    assert loss == pytest.approx((hidden**2).sum(), rel=1e-5)
    np.testing.assert_allclose(gradient, x.T.astype(float) @ (2 * hidden), rtol=1e-4, atol=1e-3)


def test_second_derivatives():
    module = parse_text(
        "func.func @f(%x: tensor<f64>) -> tensor<f64> {\n"
        "  %0 = utensor.sin %x : tensor<f64>\n  %1 = utensor.mul %0, %x : tensor<f64>\n"
        "  func.return %1 : tensor<f64>\n}"
    )
    passes = [
        DifferentiatePass(values=False, into="d"),
        DifferentiatePass(function="d", values=False, into="dd"),
    ]
    run_passes(None, module, passes)  # type: ignore[arg-type] (they need no context)
    x = 0.7
    (second,) = run_function(module, "dd", [np.array(x)])
    assert second == pytest.approx(2 * math.cos(x) - x * math.sin(x), rel=1e-12)


def test_gradients_keep_the_places_of_what_they_come_from():
    module = parse_text(LAYER, "layer.mlir")
    DifferentiatePass().apply(None, module)  # type: ignore[arg-type] (as above)
    new = module.body.block.last_op
    assert isinstance(new, FuncOp)
    assert all(
        (place := location_of(op)) is not None and place.file == "layer.mlir"
        for op in new.body.block.ops
    )


def test_symbolic_sizes_stay_symbolic():
    sizes = "tensor<?xf64, #utensor.sizes<[n], n = 1 to 8>>"
    module = parse_text(
        f"func.func @f(%x: {sizes}) -> tensor<f64> {{\n  %0 = utensor.mul %x, %x : {sizes}\n"
        f"  %1 = utensor.reduce add %0 axes [0] : {sizes} -> tensor<f64>\n"
        "  func.return %1 : tensor<f64>\n}"
    )
    DifferentiatePass().apply(None, module)  # type: ignore[arg-type] (as above)
    for n in (1, 3, 8):
        x = np.arange(n) + 1.0
        value, gradient = run_function(module, "f_gradient", [x], {"n": n})
        assert value == (x * x).sum()
        assert gradient.tolist() == (2 * x).tolist()


def test_deep_and_shared_programs_take_linear_time():
    tensor = tensor_type(f64, (2,))
    block = Block(arg_types=[tensor])
    value = block.args[0]
    for k in range(5000):
        op = MulOp(value, value) if k % 3 else SinOp(ExpOp(SinOp(value)))
        ops = [op] if k % 3 else [op.operand.owner.operand.owner, op.operand.owner, op]
        block.add_ops(ops)
        value = op.results[0]
    block.add_op(ReturnOp(value))
    function = FuncOp("f", ((tensor,), (tensor,)), Region(block))
    module = parse_text("")
    module.body.block.add_op(function)
    assert sys.getrecursionlimit() == 1000
    start = time.process_time()
    DifferentiatePass().apply(None, module)  # type: ignore[arg-type] (as above)
    assert time.process_time() - start < 6, "1 s is usual"
