"""Functions, choices and loops. All ops here are without effects, so `if` and `case` compute every
branch and choose; a loop whose condition is known in each step is written out, and any other
becomes scf.while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import SymbolRefAttr, i1, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.passes.stablehlo_conversion.builder import known_integer, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    body,
    invalid,
    unsupported,
)

Values = Sequence[SSAValue]

MAX_STEPS = 5_000
"""The steps of a loop that are written out."""
MAX_WRITTEN = 5_000
"""The ops that a loop may become; what is left of a longer one stays a loop."""


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
    yes, no = (c.nested(op, body(op, k), []) for k in (0, 1))
    return [c.build.where(*_condition(c, x[0], a, b)) for a, b in zip(yes, no, strict=True)]


def _condition(
    c: Conversion, condition: SSAValue, yes: SSAValue, no: SSAValue
) -> tuple[SSAValue, ...]:
    if shape_of(condition) != shape_of(yes):
        condition = c.build.spread(condition, shape_of(yes))
    return condition, yes, no


def _case(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """An index outside takes the last branch."""
    last = len(op.regions) - 1
    if last < 0:
        raise invalid(op, "has no branches")
    known = known_integer(x[0])
    if known is not None:
        return c.nested(op, body(op, known if 0 <= known <= last else last), [])
    results = c.nested(op, body(op, last), [])
    for branch in range(last):
        number = c.build.constant(branch, i32)
        here = c.build.op(e.CmpeqOp, x[0], c.build.spread(number, shape_of(x[0])))
        taken = c.nested(op, body(op, branch), [])
        results = [
            c.build.where(*_condition(c, here, a, b)) for a, b in zip(taken, results, strict=True)
        ]
    return results


def _while(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    values, start = list(x), c.build.count
    for _ in range(MAX_STEPS):
        if c.build.count - start > MAX_WRITTEN:
            break
        condition = _test(c, op, values)
        known = known_integer(condition)
        if known is None:
            return _loop(c, op, values)
        if not known:
            return values
        values = c.nested(op, body(op, 1), values)
        # What a step computed is read by all later ones: once, not again in each of them.
        values = [v if v in x else c.build.stage(v) for v in values]
    return _loop(c, op, values)


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
