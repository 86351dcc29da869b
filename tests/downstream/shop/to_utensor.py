"""shop-to-utensor: shop's ops as utensor ops.

  %y = shop.scaled_sum %x by 5.000000e-01 : f32 axis 1 : tensor<4x8xf32> -> tensor<4xf32>
=>
  %0 = utensor.reduce add %x axes [1] : tensor<4x8xf32> -> tensor<4xf32>
  %1 = utensor.constant 0.5 : tensor<4xf32>
  %y = utensor.mul %0, %1 : tensor<4xf32>
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from shop.dialect import ScaledSumOp
from uopc.dialects.tensor import ConstantOp, ReduceOp
from uopc.dialects.tensor_elementwise import MulOp, tensor_of


class _ScaledSum(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ScaledSumOp, rewriter: PatternRewriter) -> None:
        total = ReduceOp("add", op.operand, (op.axis.value.data,))
        factor = ConstantOp(op.factor.value.data, tensor_of(total.result))
        rewriter.replace(op, [total, factor, MulOp(total, factor)])


@dataclass(frozen=True)
class ShopToUtensorPass(ModulePass):
    """Replace shop's ops by utensor ops."""

    name = "shop-to-utensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(_ScaledSum()).rewrite_module(op)
