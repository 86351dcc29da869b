"""What the scalar ops of arith and math compute, on numpy values: one rule an op.

    function = scalar_function(op)      # once an op
    result = function(*operands)        # numpy scalars or arrays; broadcast against each other

`combine_function` gives the step of a reduction of uloop, `constant_value` a constant's value.
Run with `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation

from uopc.dialects.element_types import ElementType
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.loop import PRODUCT_KINDS
from uopc.dialects.numbers import dense_array, wrap
from uopc.dialects.op_text import op_text
from uopc.dialects.rounding import round_floats
from uopc.interpreters.pairs import PAIR_RULES, dot
from uopc.interpreters.scalar_floats import FLOAT_RULES
from uopc.interpreters.scalar_integers import INTEGER_RULES, Function, Rule
from uopc.interpreters.scalar_types import find_row, row_of, vector_shape, where


def _select(op: arith.SelectOp) -> Function:
    # One condition a lane may choose between two vectors a lane.
    missing = len(vector_shape(op.result.type)) - len(vector_shape(op.cond.type))

    def compute(c: Any, x: Any, y: Any) -> Any:
        condition = np.reshape(c, (*np.shape(c), *[1] * missing)) if missing else c
        return where(condition, x, y)

    return compute


SCALAR_RULES: Mapping[type[Operation], Rule] = {
    **INTEGER_RULES,
    **FLOAT_RULES,
    **PAIR_RULES,
    arith.SelectOp: _select,
}


def scalar_function(op: Operation) -> Function | None:
    """The function that an op of arith or math is; None for an op that has none here.

    Ops of two results give a tuple. A select takes numbers and vectors only: choosing between
    buffers is for the caller.
    """
    rule = SCALAR_RULES.get(type(op))
    if rule is None or any(find_row(value.type) is None for value in op.operands):
        return None
    return rule(op)


def not_interpreted(op: Operation, where: str) -> UopcError:
    """The error for an op that has no meaning at some level."""
    return UopcError(
        "not-interpreted",
        f"'{op.name}' has no meaning {where}",
        op_text=op_text(op),
        location=nearest_location(op),
        hint="run the module before the pass that made this op, or lower it further",
    )


def number_of(value: float | int, row: ElementType) -> Any:
    """A number as a value: a numpy scalar of the element type."""
    if row.is_float:
        return round_floats(np.asarray(value, np.float64), row)[()]
    return row.numpy.type(wrap(int(value), row))


def constant_value(value: Attribute, type_: Attribute) -> Any:
    """The value of an arith.constant. Raises UopcError [not-interpreted] for other attributes."""
    row = row_of(type_)
    if isinstance(value, FloatAttr):
        return number_of(value.value.data, row)
    if isinstance(value, IntegerAttr):
        return number_of(cast("IntegerAttr[Any]", value).value.data, row)
    if isinstance(value, DenseIntOrFPElementsAttr):
        dense = cast("DenseIntOrFPElementsAttr[Any]", value)
        if dense.type.element_type == row.attribute:
            return np.ascontiguousarray(dense_array(dense))
        numbers = [number_of(v, row) for v in dense.get_values()]
        shape = vector_shape(type_)
        if len(numbers) == 1:
            return np.full(shape, numbers[0], row.numpy)
        return np.array(numbers, row.numpy).reshape(shape)
    raise UopcError("not-interpreted", f"a constant of {type_} is no number or vector of numbers")


_FLOAT_STEPS: dict[str, type[Operation]] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
_INTEGER_STEPS: dict[str, type[Operation]] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
    "umax": arith.MaxUIOp,
    "umin": arith.MinUIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
}


@lru_cache(maxsize=256)
def combine_function(kind: str, type_: Attribute) -> Callable[..., Any]:
    """(accumulator, value) -> accumulator; for fma (accumulator, a, b) -> a * b + accumulator, and
    for dot the same of pairs."""
    if kind == "dot":
        return dot
    row = row_of(type_)
    table = _FLOAT_STEPS if row.is_float else _INTEGER_STEPS
    step = math.FmaOp if kind == "fma" else table[kind]
    if kind == "fma" and not row.is_float:
        return _multiply_add
    count = 3 if kind == "fma" else 2
    block = Block(arg_types=[type_] * count)
    op = step.create(operands=block.args, result_types=[type_])
    function = SCALAR_RULES[step](op)
    op.drop_all_references()

    def fused(accumulator: Any, a: Any, b: Any) -> Any:
        return function(a, b, accumulator)

    return fused if kind == "fma" else function


def _multiply_add(accumulator: Any, a: Any, b: Any) -> Any:
    return a * b + accumulator


def identity_value(kind: str, type_: Attribute) -> Any:
    """What a reduction of a kind starts from."""
    row = row_of(type_)
    if kind in ("add", "or", "xor", "umax", *PRODUCT_KINDS):
        return number_of(0, row)
    if kind == "mul":
        return number_of(1, row)
    if kind in ("and", "umin"):
        return number_of(1 if row.is_bool else -1, row)
    low, high = (-np.inf, np.inf) if row.is_float else row.limits
    return number_of(low if kind == "max" else high, row)
