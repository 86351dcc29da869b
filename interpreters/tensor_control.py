"""Loops and branches: scf between utensor ops, and ukernel.while and ukernel.if in plans.

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

from uopc.dialects import kernel_control as k

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


def _plan_while(op: k.WhileOp, operands: list[Any], run: RunBlock) -> Sequence[Any]:
    buffers: Sequence[Any] = operands
    while True:
        (flag,) = run(op.before.block, buffers)
        if not flag[()]:
            return buffers
        buffers = run(op.body.block, buffers)


def _plan_if(op: k.IfOp, operands: list[Any], run: RunBlock) -> Sequence[Any]:
    run((op.yes if operands[0][()] else op.no).block, [])
    return ()


CONTROL: dict[type[Operation], Control] = {
    scf.WhileOp: _while,
    scf.IfOp: _if,
    scf.ConditionOp: _last,
    scf.YieldOp: _last,
    tensor.ExtractOp: _extract,
    k.WhileOp: _plan_while,
    k.IfOp: _plan_if,
    k.ConditionOp: _last,
    k.YieldOp: _last,
}
"""What ops with regions compute, and the ops that end them."""
