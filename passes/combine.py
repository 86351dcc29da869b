"""One step of a reduction on scalars (or vectors): the accumulator and a new value combined."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import bf16
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects.element_types import element_type
from uopc.dialects.numbers import scalar
from uopc.dialects.x86vector import DOT_LANES, DotOp
from uopc.passes.reductions import identity
from uopc.passes.scalar_builder import ScalarBuilder
from uopc.passes.vector_types import lane_type, positions, vector_type, width_of

_FLOAT: dict[str, type[Operation]] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
_INTEGER: dict[str, type[Operation]] = {
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


def combine(
    builder: ScalarBuilder, kind: str, accumulator: SSAValue, values: Sequence[SSAValue]
) -> SSAValue:
    """accumulator KIND value; for fma, values[0] * values[1] + accumulator, rounded once; for dot,
    the accumulator and the products of two pairs of bf16."""
    type_ = accumulator.type
    if kind == "dot":
        return _dot(builder, accumulator, values)
    if kind == "fma":
        if width_of(type_) is not None:
            operands = [values[0], values[1], accumulator]
            return builder.append(vector.FMAOp.create(operands=operands, result_types=[type_]))
        return builder.fma(values[0], values[1], accumulator)
    row = element_type(lane_type(type_))
    assert row is not None
    table = _FLOAT if row.is_float else _INTEGER
    return builder.op(table[kind], accumulator, values[0])


def _dot(builder: ScalarBuilder, accumulator: SSAValue, pairs: Sequence[SSAValue]) -> SSAValue:
    """A step of `reduce dot`: of scalars in the first lane of the shortest vectors there are."""
    width = width_of(accumulator.type)
    if width is None:
        count = DOT_LANES[0]
        wide = [
            builder.append(
                vector.BroadcastOp.create(operands=[v], result_types=[vector_type(v.type, count)])
            )
            for v in (accumulator, *pairs)
        ]
        return builder.append(
            vector.ExtractOp.create(
                operands=[_dot(builder, wide[0], wide[1:])],
                result_types=[accumulator.type],
                properties={"static_position": positions([0])},
            )
        )
    factors = [
        builder.append(
            vector.BitcastOp.create(operands=[v], result_types=[vector_type(bf16, 2 * width)])
        )
        for v in pairs
    ]
    return builder.append(DotOp(accumulator, *factors))


def combined_identity(kind: str, type_: Attribute) -> Attribute:
    """The constant that a reduction of a kind starts from, for a signless element type."""
    row = element_type(type_)
    assert row is not None
    return scalar(identity(kind, row), type_)
