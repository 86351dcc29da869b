"""The reductions of tensors as those of scalars: kinds, identities and argreduce's combiner."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, Region, SSAValue

from uopc.dialects.element_types import ELEMENT_TYPES, ElementType, element_type, signless
from uopc.dialects.loop import PRODUCT_KINDS, ReduceOp, YieldOp
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

    Scalar kinds are accepted too: `umax` and `umin` of a signless type, `fma` and `dot`.
    """
    if kind in ("add", "or", "xor", *PRODUCT_KINDS):
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
    block = _combiner(row, position)
    best, at, x, k = block.args
    b = ScalarBuilder(block)
    better = _better(b, kind, row, best, x)
    block.add_op(YieldOp([b.select(better, x, best), b.select(better, k, at)]))
    return Region(block)


def _combiner(row: ElementType, position: ElementType) -> Block:
    """The block of a combiner of (best, at) and (x, k), empty."""
    plain = signless(row).attribute
    block = Block(arg_types=[plain, position.attribute, plain, position.attribute])
    for argument, name in zip(block.args, ("best", "at", "x", "k"), strict=True):
        argument.name_hint = name
    return block


def _better(b: ScalarBuilder, kind: str, row: ElementType, best: SSAValue, x: SSAValue) -> SSAValue:
    """Whether x comes before the best that there was, wherever it stands."""
    if row.is_float:
        # Beyond it, or the first NaN: a comparison that holds where either is NaN, but no NaN yet.
        beyond = b.cmpf("ugt" if kind == "max" else "ult", x, best)
        return b.op(arith.AndIOp, beyond, b.cmpf("ord", best, best))
    sign = "s" if row.kind == "signed" else "u"
    return b.cmpi(sign + ("gt" if kind == "max" else "lt"), x, best)


def merging(op: ReduceOp) -> Region | None:
    """How partial results of an argreduce are combined, whose positions are in no order.

    The region of argreduce, but of equal elements the one at the smaller position wins. None for a
    reduction by any other region, whose order is its author's.
    """
    return next((_merge(*form) for form in _forms(op) if _is(op, argreduce(*form))), None)


def is_argreduce(op: ReduceOp) -> bool:
    """Whether a reduction by a region is argreduce's, whose steps may be grouped in any way."""
    return merging(op) is not None


def is_merging(op: ReduceOp) -> bool:
    """Whether a reduction combines partial results of an argreduce."""
    return any(_is(op, _merge(*form)) for form in _forms(op))


def _is(op: ReduceOp, region: Region) -> bool:
    return region.is_structurally_equivalent(op.combiner)


def _forms(op: ReduceOp) -> list[tuple[str, ElementType, ElementType]]:
    """The kinds of argreduce that the types of a reduction allow."""
    types = [v.type for v in op.values]
    if op.kind is not None or len(types) != 2 or [v.type for v in op.init] != types:
        return []
    position = element_type(types[1])
    if position is None or position.is_float:
        return []
    rows = [r for r in ELEMENT_TYPES if signless(r).attribute == types[0] and not r.is_bool]
    return [(kind, row, position) for row in rows for kind in ("max", "min")]


def _merge(kind: str, row: ElementType, position: ElementType) -> Region:
    block = _combiner(row, position)
    best, at, x, k = block.args
    b = ScalarBuilder(block)
    better = _better(b, kind, row, best, x)
    if row.is_float:
        both_nan = b.op(arith.AndIOp, b.is_nan(x), b.is_nan(best))
        same = b.op(arith.OrIOp, b.cmpf("oeq", x, best), both_nan)
    else:
        same = b.cmpi("eq", x, best)
    first = b.op(arith.AndIOp, same, b.cmpi("slt", k, at))
    wins = b.op(arith.OrIOp, better, first)
    block.add_op(YieldOp([b.select(wins, x, best), b.select(wins, k, at)]))
    return Region(block)
