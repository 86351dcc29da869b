"""One step of a reduction on scalars (or vectors): the accumulator and a new value combined."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, vector
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects.element_types import element_type
from uopc.dialects.numbers import scalar
from uopc.passes.reductions import identity
from uopc.passes.scalar_builder import ScalarBuilder
from uopc.passes.vector_types import lane_type, width_of

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
    """accumulator KIND value; for fma, values[0] * values[1] + accumulator, rounded once."""
    type_ = accumulator.type
    if kind == "fma":
        if width_of(type_) is not None:
            operands = [values[0], values[1], accumulator]
            return builder.append(vector.FMAOp.create(operands=operands, result_types=[type_]))
        return builder.fma(values[0], values[1], accumulator)
    row = element_type(lane_type(type_))
    assert row is not None
    table = _FLOAT if row.is_float else _INTEGER
    return builder.op(table[kind], accumulator, values[0])


def combined_identity(kind: str, type_: Attribute) -> Attribute:
    """The constant that a reduction of a kind starts from, for a signless element type."""
    row = element_type(type_)
    assert row is not None
    return scalar(identity(kind, row), type_)
