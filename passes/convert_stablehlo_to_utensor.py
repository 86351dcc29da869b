"""convert-stablehlo-to-utensor: StableHLO and CHLO, op by op, to utensor.

    func.func @main(%x : tensor<4x8xf32>) -> tensor<4xf32> {
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.exponential %x : tensor<4x8xf32>
      %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1] : …
      return %1 : tensor<4xf32>
    }

becomes

    func.func @main(%x : tensor<4x8xf32>) -> tensor<4xf32> {
      %0 = utensor.exp %x : tensor<4x8xf32>
      %1 = utensor.reduce add %0 axes [1] : tensor<4x8xf32> -> tensor<4xf32>
      func.return %1 : tensor<4xf32>
    }

Public functions are converted, private ones are written out where they are called and dropped.
The rules stand by themes in passes/stablehlo_conversion/.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from uopc.passes.dce import erase_dead_ops
from uopc.passes.stablehlo_conversion.broadcasting import broadcasting_rules
from uopc.passes.stablehlo_conversion.control import CONTROL_RULES
from uopc.passes.stablehlo_conversion.conversion import Conversion, Rule, static_type
from uopc.passes.stablehlo_conversion.elementwise import ELEMENTWISE_RULES
from uopc.passes.stablehlo_conversion.indexing import INDEX_RULES
from uopc.passes.stablehlo_conversion.linear_algebra import LINEAR_RULES
from uopc.passes.stablehlo_conversion.ordering import ORDER_RULES
from uopc.passes.stablehlo_conversion.products import PRODUCT_RULES
from uopc.passes.stablehlo_conversion.random import RANDOM_RULES
from uopc.passes.stablehlo_conversion.reduce import REDUCE_RULES
from uopc.passes.stablehlo_conversion.shapes import LIFTABLE_SHAPES, SHAPE_RULES
from uopc.passes.stablehlo_conversion.special import SPECIAL_RULES
from uopc.passes.stablehlo_conversion.windows import WINDOW_RULES

_RULES: dict[str, Rule] = {
    **CONTROL_RULES,
    **ELEMENTWISE_RULES,
    **INDEX_RULES,
    **LINEAR_RULES,
    **ORDER_RULES,
    **PRODUCT_RULES,
    **RANDOM_RULES,
    **REDUCE_RULES,
    **SHAPE_RULES,
    **SPECIAL_RULES,
    **WINDOW_RULES,
}
RULES: dict[str, Rule] = {**_RULES, **broadcasting_rules(_RULES)}
LIFTABLE = frozenset(
    {
        *ELEMENTWISE_RULES, *LIFTABLE_SHAPES, *SPECIAL_RULES,
        "func.call", "stablehlo.composite", "stablehlo.if",
    }
)  # fmt: skip
"""Ops that may stand in a region that computes one element."""


@dataclass(frozen=True)
class ConvertStablehloToUtensorPass(ModulePass):
    """Convert StableHLO to utensor, functions written out where they are called.

    Raises UopcError [unsupported-op] for what has no conversion, with the op and the reason, and
    [verify-failed] for ops that are wrong.
    """

    name = "convert-stablehlo-to-utensor"
    level_after: ClassVar[str] = "utensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, func.FuncOp)}
        foreign = [f for f in functions.values() if _speaks_stablehlo(f)]
        converted = {f: _convert(f, functions) for f in foreign if not _is_private(f)}
        for function in foreign:
            if _is_private(function):
                function.detach()
        for each in op.body.block.ops:
            if each.name == "sdy.mesh":  # nothing speaks of devices any more
                each.detach()
        for function, block in converted.items():
            region = function.body
            region.detach_block(region.block)
            region.add_block(block)
            erase_dead_ops(function)


def _is_private(function: func.FuncOp) -> bool:
    visibility = function.sym_visibility
    return visibility is not None and visibility.data == "private"


def _speaks_stablehlo(function: func.FuncOp) -> bool:
    dialects = ("stablehlo.", "chlo.", "sdy.", "func.call")
    return bool(function.body.blocks) and any(
        each.name.startswith(dialects) for each in function.body.walk()
    )


def _convert(function: func.FuncOp, functions: dict[str, func.FuncOp]) -> Block:
    """The converted body of a function."""
    conversion = Conversion(RULES, LIFTABLE, functions)
    old = function.body.block
    block = conversion.build.block
    for argument in old.args:
        static_type(function, argument.type)
        new = block.insert_arg(argument.type, len(block.args))
        new.name_hint = argument.name_hint
    results = conversion.nested(function, old, list(block.args))
    last = func.ReturnOp(*results)
    if old.last_op is not None:
        last.location = old.last_op.location
    block.add_op(last)
    return block
