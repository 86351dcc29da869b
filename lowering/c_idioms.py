"""Several ops on vectors that processors do at once.

    idiom                                           what does it
    x * 2^(n >> 1) * 2^(n - (n >> 1)),              scale_f32x16(x, moved)      AVX-512: vscalefps
      n the low bits of moved = y + 1.5 * 2^23
    select(a > b, a, b)                             greater_f32x16(a, b)        x86: vmaxps
    select(a < b, a, b)                             lesser_f32x16(a, b)         x86: vminps

The helpers (c_vector_helpers.py) do what the ops say, to the last bit; where there is no such
instruction they are the same arithmetic. What only an idiom's last op needs is not printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from uopc.passes.math_expansions.emit import format_of
from uopc.passes.math_expansions.exponentials import scaling


@dataclass(frozen=True)
class Idiom:
    """What an op is the last of."""

    helper: Literal["scale", "greater", "lesser"]
    operands: tuple[SSAValue, SSAValue]
    """The values that it needs."""


def idiom(op: Operation) -> Idiom | None:
    """The idiom that an op ends, if it does."""
    if isinstance(op, arith.MulfOp):
        if isinstance(op.result.type, VectorType) and (found := scaling(op)) is not None:
            return Idiom("scale", found)
    elif isinstance(op, arith.SelectOp) and isinstance(op.result.type, VectorType):
        return _picked(op)
    return None


_OGT, _OLT = 2, 4


def _picked(op: arith.SelectOp) -> Idiom | None:
    """`a > b ? a : b` or `a < b ? a : b`: b where one is NaN, and of two zeros."""
    test = op.cond.owner
    if not isinstance(test, arith.CmpfOp) or format_of(test.lhs.type) is None:
        return None
    predicate = test.predicate.value.data
    if predicate not in (_OGT, _OLT) or not isinstance(test.lhs.type, VectorType):
        return None
    first, second = op.lhs, op.rhs
    if (test.lhs, test.rhs) == (first, second):
        return Idiom("greater" if predicate == _OGT else "lesser", (first, second))
    if (test.lhs, test.rhs) == (second, first):  # b < a ? a : b
        return Idiom("greater" if predicate == _OLT else "lesser", (first, second))
    return None
