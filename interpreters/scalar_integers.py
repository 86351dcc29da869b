"""Integer ops of arith and math on numpy values, every case defined as docs/numerics.md has it.

A rule takes an op and gives the function of its operands' values. An i1 is a bool; read as a
signed number its true is -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation

from uopc.dialects.element_types import ElementType, element_type_named
from uopc.interpreters import integers
from uopc.interpreters.scalar_types import row_of, signed, unsigned

Function = Callable[..., Any]
Rule = Callable[[Any], Function]


def unsigned_row(row: ElementType) -> ElementType:
    return element_type_named(f"u{row.name}") if row.is_integer else row


def _by_kind(integer: Function, boolean: Function) -> Rule:
    return lambda op: boolean if row_of(op.operands[0].type).is_bool else integer


def _total(compute: Function, boolean: Function, *, as_unsigned: bool = False) -> Rule:
    """A rule of a function of numbers that also takes their element type."""

    def rule(op: Operation) -> Function:
        row = row_of(op.operands[0].type)
        if row.is_bool:
            return boolean
        plain = unsigned_row(row)

        def total(*operands: Any) -> Any:
            if not as_unsigned:
                return compute(*operands, row)
            return signed(np.asarray(compute(*map(unsigned, operands), plain)))

        return total

    return rule


def _ceil_divide(x: Any, y: Any, row: ElementType) -> Any:
    quotient = integers.truncdiv(x, y, row)
    up = (integers.rem(x, y, row) != 0) & ((x < 0) == (y < 0))
    return np.where(y == 0, quotient, quotient + up.astype(x.dtype))


def _bool_divide(x: Any, y: Any) -> Any:
    return x | ~y  # x / 0 is all ones


def _bool_remainder(x: Any, y: Any) -> Any:
    return x & ~y


def _itself(x: Any) -> Any:
    return x


def _bool_power(x: Any, y: Any) -> Any:
    return np.ones_like(x & y)


def _read_unsigned(function: Function) -> Function:
    """A function of two integers, of their bits read as unsigned."""

    def compute(x: Any, y: Any) -> Any:
        return function(unsigned(x), unsigned(y))

    return compute


def _read_swapped(function: Function) -> Function:
    def compute(x: Any, y: Any) -> Any:
        return function(y, x)

    return compute


def _extreme(function: Function, *, as_unsigned: bool) -> Rule:
    larger = function is np.maximum

    def rule(op: Operation) -> Function:
        if row_of(op.operands[0].type).is_bool:
            return np.logical_or if larger == as_unsigned else np.logical_and
        if not as_unsigned:
            return function
        by_bits = _read_unsigned(function)

        def compute(x: Any, y: Any) -> Any:
            return signed(by_bits(x, y))

        return compute

    return rule


_COMPARISONS: tuple[tuple[Function, bool], ...] = (
    (np.equal, False), (np.not_equal, False), (np.less, False), (np.less_equal, False),
    (np.greater, False), (np.greater_equal, False), (np.less, True), (np.less_equal, True),
    (np.greater, True), (np.greater_equal, True),
)  # fmt: skip


def _compare(op: arith.CmpiOp) -> Function:
    function, as_unsigned = _COMPARISONS[op.predicate.value.data]
    if row_of(op.operands[0].type).is_bool and not as_unsigned:
        return _read_swapped(function)  # true is -1, below false
    return _read_unsigned(function) if as_unsigned else function


def widened(values: Any, target: np.dtype[Any], *, as_unsigned: bool) -> Any:
    """Integers of fewer bits in a signed dtype of more: by their sign, or filled with zeros."""
    if values.dtype == np.bool_:
        wide = values.astype(target)
        return wide if as_unsigned else np.negative(wide)
    return (unsigned(values) if as_unsigned else values).astype(target)


def _extend(*, as_unsigned: bool) -> Rule:
    def rule(op: Operation) -> Function:
        target = row_of(op.results[0].type).numpy

        def compute(x: Any) -> Any:
            return widened(x, target, as_unsigned=as_unsigned)

        return compute

    return rule


def _truncate(op: Operation) -> Function:
    row = row_of(op.results[0].type)
    if row.is_bool:
        return _lowest_bit

    def compute(x: Any) -> Any:
        return x.astype(row.numpy)

    return compute


def _lowest_bit(x: Any) -> Any:
    return (x & x.dtype.type(1)) != 0


def _index_cast(op: Operation) -> Function:
    source, target = (row_of(v.type) for v in (op.operands[0], op.results[0]))
    return _extend(as_unsigned=False)(op) if source.bits < target.bits else _truncate(op)


def _trailing_zeros(x: Any, row: ElementType) -> Any:
    return integers.popcount((x & np.negative(x)) - x.dtype.type(1), row)


def _power(x: Any, y: Any, row: ElementType) -> Any:
    # 1 / x**-y of x = 0 is a division by zero: all ones.
    x, y = np.broadcast_arrays(x, y)
    return np.where((y < 0) & (x == 0), x.dtype.type(-1), integers.power(x, y, row))


def _extended_sum(op: Operation) -> Function:
    is_bool = row_of(op.operands[0].type).is_bool

    def compute(x: Any, y: Any) -> Any:
        if is_bool:
            return np.logical_xor(x, y), np.logical_and(x, y)
        total = x + y
        return total, unsigned(total) < unsigned(x)

    return compute


def _extended_product(*, as_unsigned: bool) -> Rule:
    def rule(op: Operation) -> Function:
        row = row_of(op.operands[0].type)
        half = row.bits // 2
        wide = np.uint64 if as_unsigned else np.int64

        def compute(x: Any, y: Any) -> Any:
            low = x & y if row.is_bool else x * y
            if row.is_bool:
                return low, np.zeros_like(low)
            if row.bits < 64:
                a, b = (unsigned(x), unsigned(y)) if as_unsigned else (x, y)
                product = a.astype(wide) * b.astype(wide)
                return low, (product >> wide(row.bits)).astype(row.numpy)
            return low, _high_word(x, y, half, as_unsigned=as_unsigned)

        return compute

    return rule


def _high_word(x: Any, y: Any, half: int, *, as_unsigned: bool) -> Any:
    """The upper 64 bits of a product of 64 by 64 bits, by halves."""
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    a, b = unsigned(x), unsigned(y)
    low = (a & mask) * (b & mask)
    left = (a >> shift) * (b & mask) + (low >> shift)
    right = (a & mask) * (b >> shift) + (left & mask)
    high = (a >> shift) * (b >> shift) + (left >> shift) + (right >> shift)
    if not as_unsigned:
        zero = np.uint64(0)
        high = high - np.where(x < 0, b, zero) - np.where(y < 0, a, zero)
    return signed(np.asarray(high))


def _first(x: Any, y: Any) -> Any:
    return np.broadcast_arrays(x, y)[0]


INTEGER_RULES: Mapping[type[Operation], Rule] = {
    arith.AddiOp: _by_kind(np.add, np.logical_xor),
    arith.SubiOp: _by_kind(np.subtract, np.logical_xor),
    arith.MuliOp: _by_kind(np.multiply, np.logical_and),
    arith.AddUIExtendedOp: _extended_sum,
    arith.MulUIExtendedOp: _extended_product(as_unsigned=True),
    arith.MulSIExtendedOp: _extended_product(as_unsigned=False),
    arith.DivSIOp: _total(integers.truncdiv, _bool_divide),
    arith.DivUIOp: _total(integers.truncdiv, _bool_divide, as_unsigned=True),
    arith.FloorDivSIOp: _total(integers.floordiv, _bool_divide),
    arith.CeilDivSIOp: _total(_ceil_divide, _bool_divide),
    arith.CeilDivUIOp: _total(_ceil_divide, _bool_divide, as_unsigned=True),
    arith.RemSIOp: _total(integers.rem, _bool_remainder),
    arith.RemUIOp: _total(integers.rem, _bool_remainder, as_unsigned=True),
    arith.AndIOp: _by_kind(np.bitwise_and, np.logical_and),
    arith.OrIOp: _by_kind(np.bitwise_or, np.logical_or),
    arith.XOrIOp: _by_kind(np.bitwise_xor, np.logical_xor),
    arith.ShLIOp: _total(integers.shift_left, _bool_remainder),
    arith.ShRUIOp: _total(integers.shift_right, _bool_remainder, as_unsigned=True),
    arith.ShRSIOp: _total(integers.shift_right, _first),
    arith.MinSIOp: _extreme(np.minimum, as_unsigned=False),
    arith.MaxSIOp: _extreme(np.maximum, as_unsigned=False),
    arith.MinUIOp: _extreme(np.minimum, as_unsigned=True),
    arith.MaxUIOp: _extreme(np.maximum, as_unsigned=True),
    arith.CmpiOp: _compare,
    arith.ExtSIOp: _extend(as_unsigned=False),
    arith.ExtUIOp: _extend(as_unsigned=True),
    arith.TruncIOp: _truncate,
    arith.IndexCastOp: _index_cast,
    math.AbsIOp: _total(integers.absolute, _itself),
    math.CountLeadingZerosOp: _total(integers.count_leading_zeros, np.logical_not),
    math.CountTrailingZerosOp: _total(_trailing_zeros, np.logical_not),
    math.CtPopOp: _total(integers.popcount, _itself),
    math.IPowIOp: _total(_power, _bool_power),
}
