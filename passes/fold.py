"""What the elementwise ops give for numbers known at compile time: bit for bit what runs.

Only ops whose result is defined to the bit are in the tables: arithmetic that IEEE 754 rounds
once, integers, comparisons, conversions. exp, sin and the like run as polynomials of their own
and are left to run. Half types compute in f32 and round after each op. Integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from uopc.dialects.element_types import ElementType
from uopc.dialects.numbers import known_element, scalar, scalar_value, wrap
from uopc.dialects.rounding import round_integers

Number = FloatAttr | IntegerAttr
"""The attribute of one number, its type included."""


def fold(name: str, operands: Sequence[Number], result: Attribute) -> Number | None:
    """The result of op `name` (without its dialect) on numbers, None if it is to be computed.

    `result` is the element type of the op's result.
    """
    if name == "where":
        return operands[1] if scalar_value(operands[0]) else operands[2]
    row = known_element(operands[0].type)
    with np.errstate(all="ignore"):
        if name in ("cast", "bitcast"):
            convert = _cast if name == "cast" else _bitcast
            return convert(scalar_value(operands[0]), row, known_element(result))
        values = [scalar_value(each) for each in operands]
        if name in COMPARE:
            return scalar(COMPARE[name](*values), result)
        if row.is_float:
            return _fold_float(name, cast("list[float]", values), row)
        return _fold_integer(name, cast("list[int]", values), row)


def _fold_float(name: str, values: list[float], row: ElementType) -> Number | None:
    work = np.float64 if row.name == "f64" else np.float32
    if name in FLOAT_UNARY:
        value = float(FLOAT_UNARY[name](work(values[0])))
    elif name in FLOAT_BINARY:
        value = float(FLOAT_BINARY[name](work(values[0]), work(values[1])))
    else:
        return None
    # Which NaN an operation makes differs between machines; a constant gets the plain one.
    return scalar(math.nan if math.isnan(value) else value, row.attribute)


def _fold_integer(name: str, values: list[int], row: ElementType) -> Number | None:
    value: int | None = None
    if name in INTEGER_UNARY:
        value = INTEGER_UNARY[name](values[0], row)
    elif name in INTEGER_BINARY:
        value = INTEGER_BINARY[name](values[0], values[1], row)
    elif name in DIVISION:
        value = DIVISION[name](values[0], values[1])
    return None if value is None else scalar(wrap(value, row), row.attribute)


def _larger(a: Any, b: Any) -> Any:
    """A NaN wins, 0 beats -0."""
    if a != a or b != b:
        return math.nan
    if a == b:
        return b if math.copysign(1, a) < 0 else a
    return a if a > b else b


def _smaller(a: Any, b: Any) -> Any:
    """A NaN wins, -0 beats 0."""
    if a != a or b != b:
        return math.nan
    if a == b:
        return a if math.copysign(1, a) < 0 else b
    return a if a < b else b


def _sign(a: Any) -> Any:
    """-1 or 1; zeros and NaN stay."""
    return a if a == 0 or a != a else math.copysign(1, a)


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "cmplt": lambda a, b: a < b,
    "cmple": lambda a, b: a <= b,
    "cmpeq": lambda a, b: a == b,
    "cmpne": lambda a, b: a != b,
}

FLOAT_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda a: -a,
    "abs": abs,
    "sign": _sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sqrt": np.sqrt,
    "recip": lambda a: np.divide(type(a)(1), a),
}
FLOAT_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": np.divide,
    "max": _larger,
    "min": _smaller,
}
"""On np.float64 for f64, on np.float32 for the others."""


def _bits(value: int, row: ElementType) -> int:
    """The value read as unsigned."""
    return value & ((1 << row.bits) - 1)


def _truncated(a: int, b: int) -> int:
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def _power(a: int, b: int, row: ElementType) -> int:
    """a to the power b; below 0, what truncation leaves of 1 / a^-b, and 0 for a = 0."""
    if b >= 0:
        return pow(a, b, 1 << row.bits)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


INTEGER_UNARY: dict[str, Callable[[int, ElementType], int]] = {
    "not": lambda a, row: ~a,
    "neg": lambda a, row: -a,
    "abs": lambda a, row: abs(a),
    "sign": lambda a, row: (a > 0) - (a < 0),
    "popcount": lambda a, row: _bits(a, row).bit_count(),
    "clz": lambda a, row: row.bits - _bits(a, row).bit_length(),
}
INTEGER_BINARY: dict[str, Callable[[int, int, ElementType], int]] = {
    "add": lambda a, b, row: a + b,
    "sub": lambda a, b, row: a - b,
    "mul": lambda a, b, row: a * b,
    "pow": _power,
    "max": lambda a, b, row: max(a, b),
    "min": lambda a, b, row: min(a, b),
    "and": lambda a, b, row: a & b,
    "or": lambda a, b, row: a | b,
    "xor": lambda a, b, row: a ^ b,
    "shl": lambda a, b, row: a << _bits(b, row) if _bits(b, row) < row.bits else 0,
    "shr": lambda a, b, row: a >> min(_bits(b, row), row.bits),
}
"""On integers, and on 0 and 1 for i1; the result wraps to the type's row."""
DIVISION: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b if b else -1,
    "mod": lambda a, b: a % b if b else a,
    "truncdiv": _truncated,
    "rem": lambda a, b: a - _truncated(a, b) * b if b else a,
}
"""On integers; the quotient by 0 is all ones, the remainder the dividend."""


def _cast(value: float | int, source: ElementType, result: ElementType) -> Number:
    if result.is_bool:
        return scalar(value != 0, result.attribute)
    if source.is_float:
        if result.is_float:
            return scalar(value, result.attribute)
        if math.isnan(value):
            return scalar(0, result.attribute)
        low, high = result.limits
        return scalar(math.trunc(min(max(value, low), high)), result.attribute)
    if not result.is_float:
        return scalar(wrap(int(value), result), result.attribute)
    storage = np.int64 if source.kind == "signed" else np.uint64
    rounded = round_integers(np.asarray(value, storage), result)
    return scalar(float(rounded), result.attribute)


def _bitcast(value: float | int, source: ElementType, result: ElementType) -> Number | None:
    if source.is_bool or result.is_bool or value != value:
        return None
    bits = np.asarray([value], np.float64 if source.is_float else object).astype(source.numpy)
    moved = bits.view(result.numpy)[0]
    if result.is_float:
        number = float(moved)
        return None if math.isnan(number) else scalar(number, result.attribute)
    return scalar(int(moved), result.attribute)


IDENTITIES: dict[str, Callable[[ElementType], float | int]] = {
    "add": lambda row: 0,
    "mul": lambda row: 1,
    "max": lambda row: -math.inf if row.is_float else row.limits[0],
    "min": lambda row: math.inf if row.is_float else row.limits[1],
    "and": lambda row: -1,
    "or": lambda row: 0,
    "xor": lambda row: 0,
}
"""What a reduction over no elements gives."""


def identity(kind: str, element: Attribute) -> Number:
    """The identity of a reduction's kind."""
    return scalar(IDENTITIES[kind](known_element(element)), element)


def fold_reduction(kind: str, value: Number, count: int | None) -> Number | None:
    """The reduction of `count` (at least one; None if not known) times the same number.

    None if it is to be computed: sums and products of floats depend on the order.
    """
    row = known_element(value.type)
    number = scalar_value(value)
    if kind in ("max", "min", "and", "or") or value == identity(kind, value.type):
        return value
    if count is None or row.is_float:
        return None
    whole = int(number)
    total = {
        "add": lambda: whole * count,
        "mul": lambda: pow(whole, count, 1 << row.bits),
        "xor": lambda: whole if count % 2 else 0,
    }[kind]()
    return scalar(wrap(total, row), value.type)
