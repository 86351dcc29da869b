"""How linearize makes a pair of bf16: one load of both where they are neighbours in memory.

pair of x[2 k], x[2 k + 1], k in lanes     vector.bitcast of one vector.load of twice the lanes
any other                                  low | high << 16
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IntegerAttr, bf16, i16, i32
from xdsl.ir import Attribute, SSAValue

from uopc.dialects import loop
from uopc.dialects.index_expr import Expr, as_expr
from uopc.passes.loop_dag import LoopDag, Ranges, length_of
from uopc.passes.loop_masks import Mask
from uopc.passes.loop_scopes import Lanes, Scope
from uopc.passes.scalar_builder import ScalarBuilder
from uopc.passes.vector_types import vector_type, width_of

_HALF_BITS = 16


class Values(Protocol):
    """What a pair needs of the values under construction: `loop_values.Values`."""

    dag: LoopDag

    @property
    def root(self) -> Scope: ...
    def value(self, wanted: SSAValue, lanes: Lanes) -> SSAValue: ...
    def vector_of(self, free: Ranges) -> loop.RangeOp | None: ...
    def as_vector(self, value: SSAValue, width: int, free: Ranges) -> SSAValue: ...
    def along(self, expr: Expr, vector: loop.RangeOp | None) -> tuple[Expr, int | None]: ...
    def index(self, expr: Expr) -> SSAValue: ...
    def access_mask(
        self, op: loop.AccessOp, free: Ranges, lanes: Lanes, along: loop.RangeOp | None
    ) -> Mask: ...
    def expressions_of(
        self, op: loop.AccessOp, lanes: Lanes
    ) -> tuple[SSAValue, Sequence[Expr]]: ...


def make_pair(values: Values, op: loop.PairOp, scope: Scope, lanes: Lanes) -> SSAValue:
    """The pair for one copy of the code, in lanes where the op varies along a vector."""
    along = values.vector_of(values.dag.free[op.result])
    if along is not None:
        together = _load_of_both(values, op, along, scope, lanes)
        if together is not None:
            return together
    width = None if along is None else length_of(along)
    low, high = (_bits(values, v, width, scope, lanes) for v in (op.low, op.high))
    b, root = scope.builder, values.root.builder
    by = root.attribute_constant(IntegerAttr(_HALF_BITS, i32), i32)
    if width is not None:
        by = values.as_vector(by, width, frozenset())
    return b.op(arith.OrIOp, b.op(arith.ShLIOp, high, by), low, properties={})


def _bits(
    values: Values, half: SSAValue, width: int | None, scope: Scope, lanes: Lanes
) -> SSAValue:
    """The bits of a bf16, as the low ones of an i32."""
    value = values.value(half, lanes)
    if width is not None:
        value = values.as_vector(value, width, values.dag.free[half])
    b: ScalarBuilder = scope.builder

    def like(element: Attribute) -> Attribute:
        return element if width_of(value.type) is None else vector_type(element, width or 0)

    narrow = b.op(arith.BitcastOp, value, result=like(i16), properties={})
    return b.op(arith.ExtUIOp, narrow, result=like(i32), properties={})


def _load_of_both(
    values: Values, op: loop.PairOp, along: loop.RangeOp, scope: Scope, lanes: Lanes
) -> SSAValue | None:
    """One load of all lanes' pairs; None where they do not lie behind one another, or some may
    not be there."""
    low, high = op.low.owner, op.high.owner
    if not isinstance(low, loop.LoadOp) or not isinstance(high, loop.LoadOp):
        return None
    if low.buffer is not high.buffer or low.prefetch is not None:
        return None
    first = _start_of_twos(values, low, along, lanes)
    second = _start_of_twos(values, high, along, lanes)
    if first is None or second is None:
        return None
    distance = [b - a for a, b in zip(first, second, strict=True)]
    if distance != [as_expr(0)] * (len(distance) - 1) + [as_expr(1)]:
        return None
    width = length_of(along)
    target, _ = values.expressions_of(low, lanes)
    indices = [values.index(e) for e in first]
    both = scope.builder.append(
        vector.LoadOp.create(
            operands=[target, *indices], result_types=[vector_type(bf16, 2 * width)]
        )
    )
    return scope.builder.append(
        vector.BitcastOp.create(operands=[both], result_types=[vector_type(i32, width)])
    )


def _start_of_twos(
    values: Values, load: loop.LoadOp, along: loop.RangeOp, lanes: Lanes
) -> list[Expr] | None:
    """Where the first lane of a load reads, if each of them is there and reads two places behind
    the lane before it."""
    if not values.access_mask(load, values.dag.free[load.result], lanes, along).always:
        return None
    _, expressions = values.expressions_of(load, lanes)
    shapes = [values.along(e, along) for e in expressions]
    steps = [step for _, step in shapes]
    if not steps or steps[-1] != 2 or any(steps[:-1]) or None in steps:
        return None
    return [base for base, _ in shapes]
