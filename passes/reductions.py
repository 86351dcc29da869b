"""The reductions of tensors as those of scalars: kinds, identities and argreduce's combiner."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, Region

from uopc.dialects.element_types import ElementType, signless
from uopc.dialects.loop import YieldOp
from uopc.passes.scalar_builder import ScalarBuilder

_BOOLEAN_KINDS = {"add": "xor", "mul": "and", "max": "or", "min": "and"}


def combine_kind(kind: str, row: ElementType) -> str:
    """The scalar kind that a tensor reduction of this element type is."""
    if row.is_bool:
        return _BOOLEAN_KINDS.get(kind, kind)
    if row.kind == "unsigned" and kind in ("max", "min"):
        return f"u{kind}"
    return kind


def identity(kind: str, row: ElementType) -> float | int:
    """What a reduction over no elements gives, and every reduction starts from.

    Scalar kinds are accepted too: `umax` and `umin` of a signless type, and `fma`.
    """
    if kind in ("add", "or", "xor", "fma"):
        return 0
    if kind == "mul":
        return 1
    if kind == "and":
        return 1 if row.is_bool else -1
    if kind == "umax":
        return 0
    if kind == "umin":
        return -1  # all ones
    if row.is_float:
        return float("-inf") if kind == "max" else float("inf")
    low, high = row.limits
    return low if kind == "max" else high


def argreduce(kind: str, row: ElementType, position: ElementType) -> Region:
    """The combiner of argreduce: (best, at, x, k) -> the better of both, and its position.

    A NaN is better than any number, and nothing is better than an equal: the first wins.
    """
    plain = signless(row).attribute
    block = Block(arg_types=[plain, position.attribute, plain, position.attribute])
    best, at, x, k = block.args
    for argument, name in zip(block.args, ("best", "at", "x", "k"), strict=True):
        argument.name_hint = name
    b = ScalarBuilder(block)
    if row.is_float:
        beyond = b.cmpf("ogt" if kind == "max" else "olt", x, best)
        first_nan = b.op(arith.AndIOp, b.is_nan(x), b.cmpf("ord", best, best))
        better = b.op(arith.OrIOp, beyond, first_nan)
    else:
        sign = "s" if row.kind == "signed" else "u"
        better = b.cmpi(sign + ("gt" if kind == "max" else "lt"), x, best)
    block.add_op(YieldOp([b.select(better, x, best), b.select(better, k, at)]))
    return Region(block)
