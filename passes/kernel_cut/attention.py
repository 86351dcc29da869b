"""Attention in a graph of tensors: a product with weights whose rows are computed from products.

    scores   s = reduce add (q * k)           (…, queries, keys)
    rows     max, sum along the keys of values computed from s
    weights  w, elementwise from all of these
    result   reduce add (w * v) over the keys

Cut into kernels as other reductions are, scores and weights would go through memory. As one kernel
they stay in the cache (passes/schedule_attention.py): a block of queries computes its scores
once, in tiles. That takes that nothing else reads them, and that it pays: costs.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Operation, OpResult, SSAValue

from uopc.dialects.index_expr import RangeVar
from uopc.dialects.tensor import ReduceOp
from uopc.dialects.tensor_elementwise import ELEMENTWISE_OPS, element_of, tensor_of
from uopc.dialects.tensor_movement import ExpandOp, PermuteOp, ReshapeOp, int_values
from uopc.passes.kernel_cut.accesses import (
    Access,
    Loops,
    behind,
    ranges_of,
    shape_of,
)
from uopc.passes.kernel_cut.costs import attention_pays

_ELEMENTWISE = frozenset(ELEMENTWISE_OPS)
_REARRANGING = (ReshapeOp, ExpandOp, PermuteOp)


@dataclass
class Attention:
    """What one kernel of attention consists of."""

    weights: OpResult
    result: OpResult
    reductions: set[SSAValue] = field(default_factory=set[SSAValue])
    """The scores, and what is reduced along their rows."""
    inside: set[Operation] = field(default_factory=set[Operation])
    """All ops from the scores to the result."""


def attentions(ops: Iterable[Operation]) -> list[Attention]:
    """Every attention among some ops that is to be one kernel."""
    found: list[Attention] = []
    for op in ops:
        if isinstance(op, ReduceOp):
            attention = _attention(op)
            if attention is not None:
                found.append(attention)
    return found


def _attention(last: ReduceOp) -> Attention | None:
    """The attention that a sum of products is the end of."""
    product = _product(last)
    if product is None or element_of(tensor_of(last.result)).bits not in (32, 64):
        return None
    loops = Loops()
    nest = loops.nest(shape_of(last.result))
    access = loops.reduced(last, nest)
    keys = ranges_of(access) - ranges_of(nest)
    sides = [behind(loops, operand, access, _REARRANGING) for operand in product.operands]
    for (weights, at, chain), (_, other, _) in (sides, sides[::-1]):
        if at is None or other is None or len(keys) != 1 or not isinstance(weights, OpResult):
            continue
        found = Attention(weights, last.result)
        found.inside.update((last, product, *chain))
        (key,) = keys
        if _is_plain(at) and _fits(at, ranges_of(other), key):
            axis = next((k for k, e in enumerate(at) if e.leaf is key), None)
            if axis is not None and _take_rows(found, axis, at) and _is_alone(found):
                return found
    return None


def _product(op: ReduceOp) -> Operation | None:
    """The multiplication that an op sums, if it does."""
    owner = op.operand.owner
    if op.kind.data != "add" or not isinstance(owner, Operation):
        return None
    return owner if owner.name == "utensor.mul" else None


def _is_plain(access: Access) -> bool:
    """Whether each axis is a range of its own, or of size 1."""
    leaves = [e.leaf for e in access if e.as_int() is None]
    return None not in leaves and len(set(leaves)) == len(leaves)


def _fits(access: Access, other: frozenset[RangeVar], key: RangeVar) -> bool:
    """Whether weights and the matrix have the axes they should, of sizes for which it pays."""
    own = ranges_of(access)
    rows, columns = own - other, other - own
    if key not in own or key not in other or not rows or len(columns) != 1:
        return False
    sizes = [r.end.as_int() for r in (*rows, *columns, key)]
    known = [n for n in sizes if n is not None]
    if len(known) != len(sizes):
        return False
    return attention_pays(max(known[: len(rows)]), known[-1])


def _take_rows(found: Attention, axis: int, at: Access) -> bool:
    """Collect what the weights are computed from, up to the factors of the scores."""
    loops, shape = Loops(), shape_of(found.weights)
    scores, rows = set[SSAValue](), set[SSAValue]()
    pending: list[SSAValue] = [found.weights]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        op = value.owner
        if value in seen or not isinstance(op, Operation):
            continue
        seen.add(value)
        if isinstance(op, ReduceOp):
            if shape_of(op.operand) == shape and int_values(op.axes) == (axis,):
                rows.add(value)
            elif shape_of(value) == shape and _is_score(loops, op, at, axis):
                scores.add(value)
                found.inside.add(op)
                continue
            else:
                return False
        elif type(op) not in _ELEMENTWISE and not isinstance(op, ReshapeOp | ExpandOp):
            continue
        found.inside.add(op)
        pending.extend(op.operands)
    found.reductions = scores | rows
    return len(scores) == 1 and bool(rows)


def _is_score(loops: Loops, op: ReduceOp, at: Access, axis: int) -> bool:
    """Whether a sum of products has a factor of the queries and one of the keys."""
    product = _product(op)
    key = at[axis].leaf
    if product is None or not isinstance(key, RangeVar):
        return False
    access = _reduced_at(loops, op, at)
    sides = [behind(loops, operand, access, _REARRANGING)[1] for operand in product.operands]
    return [s is not None and key in ranges_of(s) for s in sides].count(True) == 1


def _reduced_at(loops: Loops, op: ReduceOp, at: Access) -> Access:
    """The access of a score's product, with ranges of its own for what is summed."""
    axes = int_values(op.axes)
    sizes = shape_of(op.operand)
    new = iter(loops.nest(sizes[k] for k in axes))
    kept = iter(at)
    return tuple(next(new) if k in axes else next(kept) for k in range(len(sizes)))


def _is_alone(found: Attention) -> bool:
    """Whether nothing else reads the scores, the rows' reductions and the weights."""
    pending: list[SSAValue] = [found.weights, *found.reductions]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.operation
            if user not in found.inside:
                return False
            if not isinstance(user, ReduceOp):
                pending.extend(user.results)
    return True
