"""Functions, choices and loops: `if` and `case` become scf.if, `while` becomes scf.while.

All ops here are without effects. So short branches are both computed, and one is chosen; and a loop
of few steps, whose condition is known in each, is written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import SymbolRefAttr, i1, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from uopc.dialects import tensor as t
from uopc.dialects import tensor_elementwise as e
from uopc.dialects.tensor_movement import MOVEMENT_OPS
from uopc.passes.stablehlo_conversion.builder import known_integer, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    MAX_CALL_DEPTH,
    Conversion,
    Rule,
    body,
    invalid,
    unsupported,
)

Values = Sequence[SSAValue]

MAX_STEPS = 16
"""The steps of a loop that are written out."""
MAX_WRITTEN = 1_000
"""The ops that a loop may become when it is written out."""
SHORT_BRANCH = 8
"""The ops of a branch that is computed whether it is taken or not."""
_CHEAP = frozenset[type[Operation]](
    (*e.ELEMENTWISE_OPS, *MOVEMENT_OPS, t.ConstantOp, t.IotaOp, t.StageOp)
)


def _call(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    return c.call(op, _symbol(op, "callee"), x)


def _composite(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    return c.call(op, _symbol(op, "decomposition"), x)


def _symbol(op: Operation, name: str) -> str:
    value = op.get_attr_or_prop(name)
    if not isinstance(value, SymbolRefAttr):
        raise invalid(op, f"lacks {name}")
    return value.string_value()


def _if(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    known = known_integer(x[0])
    if known is not None:
        return c.nested(op, body(op, 0 if known else 1), [])
    return _branch(
        c, op, x[0], lambda: c.nested(op, body(op, 0), []), lambda: c.nested(op, body(op, 1), [])
    )


def _branch(
    c: Conversion,
    op: Operation,
    condition: SSAValue,
    yes: Callable[[], list[SSAValue]],
    no: Callable[[], list[SSAValue]],
) -> Values:
    """Both branches and a choice, where they are short; else scf.if, which runs one of them."""
    if c.lift is not None:
        return _chosen(c, op, condition, yes(), no())
    blocks = Block(), Block()
    results: list[list[SSAValue]] = []
    for block, make in zip(blocks, (yes, no), strict=True):
        with c.build.inside(block):
            results.append(make())
    if [v.type for v in results[0]] != [v.type for v in results[1]]:
        raise invalid(op, "has branches that give different types")
    if all(_is_short(block) for block in blocks):
        for block in blocks:
            for inner in list(block.ops):
                inner.detach()
                c.build.block.add_op(inner)
        return _chosen(c, op, condition, *results)
    for block, values in zip(blocks, results, strict=True):
        block.add_op(scf.YieldOp(*values))
    flag = c.build.append(tensor.ExtractOp(condition, [], i1))
    branch = scf.IfOp(flag, [v.type for v in results[0]], Region(blocks[0]), Region(blocks[1]))
    c.build.add(branch)
    return branch.results


def _is_short(block: Block) -> bool:
    """Whether computing a branch costs no more than a few operations an element."""
    ops = list(block.ops)
    return len(ops) <= SHORT_BRANCH and all(type(op) in _CHEAP for op in ops)


def _chosen(
    c: Conversion, op: Operation, condition: SSAValue, yes: Values, no: Values
) -> list[SSAValue]:
    if len(yes) != len(no):
        raise invalid(op, "has branches that give different numbers of values")
    results: list[SSAValue] = []
    for a, b in zip(yes, no, strict=True):
        here = condition
        if shape_of(here) != shape_of(a):
            here = c.build.spread(here, shape_of(a))
        results.append(c.build.where(here, a, b))
    return results


def _case(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """An index outside takes the last branch."""
    last = len(op.regions) - 1
    if last < 0:
        raise invalid(op, "has no branches")
    known = known_integer(x[0])
    if known is not None:
        return c.nested(op, body(op, known if 0 <= known <= last else last), [])

    def from_branch(number: int) -> list[SSAValue]:
        if number == last:
            return c.nested(op, body(op, last), [])
        constant = c.build.constant(number, i32)
        here = c.build.op(e.CmpeqOp, x[0], c.build.spread(constant, shape_of(x[0])))
        return list(
            _branch(
                c,
                op,
                here,
                lambda: c.nested(op, body(op, number), []),
                lambda: from_branch(number + 1),
            )
        )

    if last >= MAX_CALL_DEPTH:
        raise unsupported(op, f"has more than {MAX_CALL_DEPTH} branches")
    return from_branch(0)


def _while(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """Written out if it ends after few steps of few ops, else a loop of the plan."""
    steps = Block()
    with c.build.inside(steps):
        values = _written_out(c, op, x)
    if values is None:
        for inner in reversed(list(steps.ops)):
            steps.erase_op(inner)
        return _loop(c, op, list(x))
    for inner in list(steps.ops):
        inner.detach()
        c.build.block.add_op(inner)
    return values


def _written_out(c: Conversion, op: Operation, x: list[SSAValue]) -> Values | None:
    """What a loop ends with, if each step's condition is known; None if not, or too long."""
    values, start = list(x), c.build.count
    for _ in range(MAX_STEPS):
        known = known_integer(_test(c, op, values))
        if known is None or c.build.count - start > MAX_WRITTEN:
            return None
        if not known:
            return values
        values = c.nested(op, body(op, 1), values)
        # What a step computed is read by all later ones: once, not again in each of them.
        values = [v if v in x else c.build.stage(v) for v in values]
    return None


def _test(c: Conversion, op: Operation, values: list[SSAValue]) -> SSAValue:
    condition = c.nested(op, body(op, 0), values)
    if len(condition) != 1 or shape_of(condition[0]):
        raise invalid(op, "needs one condition")
    return condition[0]


def _loop(c: Conversion, op: Operation, values: list[SSAValue]) -> Values:
    """A loop whose number of steps depends on data: scf.while between the tensor ops."""
    types = [v.type for v in values]
    blocks = [Block(arg_types=types), Block(arg_types=types)]
    for block, old in zip(blocks, (body(op, 0), body(op, 1)), strict=True):
        for new, argument in zip(block.args, old.args, strict=True):
            new.name_hint = argument.name_hint
    before, after = blocks
    with c.build.inside(before):
        flag = c.build.append(tensor.ExtractOp(_test(c, op, list(before.args)), [], i1))
        c.build.add(scf.ConditionOp(flag, *before.args))
    with c.build.inside(after):
        results = c.nested(op, body(op, 1), list(after.args))
        if [v.type for v in results] != types:
            raise invalid(op, "has a body that gives other types than it takes")
        c.build.add(scf.YieldOp(*results))
    loop = scf.WhileOp(values, types, Region(before), Region(after))
    c.build.add(loop)
    return loop.results


_IDENTITY_CALLS = frozenset(
    {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement"}
)


def _custom_call(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """Calls that only annotate are the identity; what others do, StableHLO does not say."""
    target = op.get_attr_or_prop("call_target_name")
    name = cast(Any, target).data if hasattr(target, "data") else _symbol(op, "call_target_name")
    if name in _IDENTITY_CALLS and len(op.results) == len(x):
        return x
    raise unsupported(op, f"call of @{name}, which is code outside of the program")


CONTROL_RULES: dict[str, Rule] = {
    "func.call": _call,
    "stablehlo.case": _case,
    "stablehlo.composite": _composite,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
}
