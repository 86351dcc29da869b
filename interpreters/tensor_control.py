"""scf and tensor ops between utensor ops: loops whose number of steps depends on data.

%r = scf.while (%x = %init) : (tensor<4xf32>) -> tensor<4xf32> {
  %more = … : tensor<i1>
  %flag = tensor.extract %more[] : tensor<i1>
  scf.condition(%flag) %x : tensor<4xf32>
} do {
^bb0(%x : tensor<4xf32>):
  …
  scf.yield %y : tensor<4xf32>
}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import scf, tensor
from xdsl.ir import Block, Operation

RunBlock = Callable[[Block, Sequence[Any]], list[Any]]
"""Runs a block of a region on its arguments; what its last op takes."""
Control = Callable[[Any, list[Any], RunBlock], Sequence[Any]]
"""From an op and its operands' values to its results' values."""


def _while(op: scf.WhileOp, operands: list[Any], run: RunBlock) -> Sequence[Any]:
    values: Sequence[Any] = operands
    while True:
        flag, *values = run(op.before_region.block, values)
        if not flag:
            return values
        values = run(op.after_region.block, values)


def _if(op: scf.IfOp, operands: list[Any], run: RunBlock) -> Sequence[Any]:
    region = op.true_region if operands[0] else op.false_region
    return run(region.block, []) if region.blocks else []


def _extract(op: tensor.ExtractOp, operands: list[Any], run: RunBlock) -> Sequence[Any]:
    array, *position = operands
    return (array[tuple(position)],)


def _last(op: Operation, operands: list[Any], run: RunBlock) -> Sequence[Any]:
    return ()


CONTROL: dict[type[Operation], Control] = {
    scf.WhileOp: _while,
    scf.IfOp: _if,
    scf.ConditionOp: _last,
    scf.YieldOp: _last,
    tensor.ExtractOp: _extract,
}
"""What ops with regions compute, and the ops that end them."""
