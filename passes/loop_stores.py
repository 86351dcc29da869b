"""Writing scalars and vectors to buffers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Block, Region, SSAValue

from uopc.dialects import loop
from uopc.dialects.index_expr import Expr
from uopc.passes.combine import combine
from uopc.passes.loop_dag import length_of
from uopc.passes.loop_masks import Mask, lane_mask
from uopc.passes.loop_scopes import unproven
from uopc.passes.loop_values import Values
from uopc.passes.scalar_builder import ScalarBuilder
from uopc.passes.vector_types import lane_type, positions


def store_scalar(
    block: Block,
    kind: str | None,
    value: SSAValue,
    target: SSAValue,
    indices: Sequence[SSAValue],
) -> None:
    """Store a scalar, or combine it into the element."""
    if kind is not None:
        builder = ScalarBuilder(block)
        load = memref.LoadOp.create(operands=[target, *indices], result_types=[value.type])
        value = combine(builder, kind, builder.append(load), [value])
    block.add_op(memref.StoreOp.create(operands=[value, target, *indices]))


def store_vector(
    scopes: Values,
    block: Block,
    kind: str | None,
    value: SSAValue,
    target: SSAValue,
    expressions: Sequence[Expr],
    along: loop.RangeOp,
    mask: Mask,
    *,
    past_caches: bool = False,
) -> None:
    """Store the lanes of a vector: at once where they are neighbours, else one by one."""
    shapes = [scopes.along(e, along) for e in expressions]
    steps = [step for _, step in shapes]
    width = length_of(along)
    neighbours = bool(steps) and steps[-1] == 1 and not any(steps[:-1]) and None not in steps
    if kind is None and neighbours:
        indices = [scopes.index(base) for base, _ in shapes]
        lane = lane_mask(scopes, mask, width)
        if lane is None:
            properties = {"nontemporal": BoolAttr.from_bool(True)} if past_caches else {}
            block.add_op(
                vector.StoreOp.create(operands=[value, target, *indices], properties=properties)
            )
        else:
            block.add_op(vector.MaskedStoreOp.create(operands=[target, *indices, lane, value]))
        return
    for k in range(width):
        needed = unproven([base + step * k for base, step in mask.lanes])
        if any(c.bounds[1] < 0 for c in needed):
            continue
        at = [e.substitute({scopes.leaf_of(along): k}) for e in expressions]
        indices = [scopes.index(e) for e in at]
        inner = Block() if needed else block
        store_scalar(inner, kind, _lane(inner, value, k), target, indices)
        if needed:
            condition = scopes.all_at_least_zero(needed)
            inner.add_op(scf.YieldOp())
            block.add_op(scf.IfOp(condition, [], Region(inner), Region()))


def _lane(block: Block, value: SSAValue, lane: int) -> SSAValue:
    extract = vector.ExtractOp.create(
        operands=[value],
        result_types=[lane_type(value.type)],
        properties={"static_position": positions([lane])},
    )
    return ScalarBuilder(block).append(extract)
