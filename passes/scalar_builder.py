"""Build scalar arith and math ops, one method an op, appended to a block.

Ops are made by `create` with interned properties: the checked constructors cost three times as
much (and this is most of what a lowering does).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects import arith, func, math, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr, f32, f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from uopc.dialects.element_types import ElementType, signless
from uopc.dialects.numbers import scalar

INDEX = IndexType()
NO_FASTMATH = arith.FastMathFlagsAttr("none")
FMOD = "fmod_f64"
NO_OVERFLOW = arith.IntegerOverflowAttr("none")

_FLOAT_PROPERTIES: dict[str, Attribute] = {"fastmath": NO_FASTMATH}
_WRAPPING_PROPERTIES: dict[str, Attribute] = {"overflowFlags": NO_OVERFLOW}
CMPI = {
    p: IntegerAttr(k, i64)
    for k, p in enumerate(("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"))
}
CMPF = {
    p: IntegerAttr(k, i64)
    for k, p in enumerate(
        ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
         "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")
    )
}  # fmt: skip


@lru_cache(maxsize=256)
def default_properties(kind: type[Operation]) -> dict[str, Attribute]:
    """The properties of an arith or math op that allows nothing: no fast-math, wrap-around."""
    definition = cast("type[IRDLOperation]", kind).get_irdl_definition()
    if "fastmath" in definition.properties:
        return _FLOAT_PROPERTIES
    return _WRAPPING_PROPERTIES if "overflowFlags" in definition.properties else {}


class ScalarBuilder:
    """Appends scalar ops to `block`; constants are made once and cached for the block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.calls_fmod = False
        """Whether the module needs the function `@fmod_f64`."""
        self.location: LocationAttr | None = None
        """The location of the ops that are appended, if somebody knows it."""
        self._constants: dict[tuple[Attribute, Any], SSAValue] = {}

    def append(self, op: Operation) -> SSAValue:
        """Append an op of one result and return that."""
        if self.location is not None:
            op.location = self.location
        self.block.add_op(op)
        return op.results[0]

    def op(
        self,
        kind: type[Operation],
        *operands: SSAValue,
        result: Attribute | None = None,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """An op of one result, of its first operand's type unless `result` is given."""
        type_ = operands[0].type if result is None else result
        if properties is None:
            properties = default_properties(kind)
        return self.append(
            kind.create(operands=operands, result_types=[type_], properties=properties)
        )

    def constant(self, value: float | int, row: ElementType) -> SSAValue:
        """A constant of an element type (signless for an unsigned one)."""
        plain = signless(row)
        attribute = scalar(value, plain.attribute)
        return self.attribute_constant(attribute, plain.attribute)

    def attribute_constant(self, value: Attribute, type_: Attribute) -> SSAValue:
        key = (type_, value)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.append(
                arith.ConstantOp.create(result_types=[type_], properties={"value": value})
            )
        return found

    def select(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        return self.op(
            arith.SelectOp, condition, on_true, on_false, result=on_true.type, properties={}
        )

    def cmpi(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.op(arith.CmpiOp, a, b, result=i1, properties={"predicate": CMPI[predicate]})

    def cmpf(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        properties: dict[str, Attribute] = {
            "predicate": CMPF[predicate],
            "fastmath": NO_FASTMATH,
        }
        return self.op(arith.CmpfOp, a, b, result=i1, properties=properties)

    def is_nan(self, a: SSAValue) -> SSAValue:
        return self.cmpf("uno", a, a)

    def extend_to_f32(self, a: SSAValue) -> SSAValue:
        """A half as f32, exactly."""
        return self.op(arith.ExtFOp, a, result=f32)

    def negate(self, a: SSAValue, row: ElementType) -> SSAValue:
        if row.is_float:
            return self.op(arith.NegfOp, a)
        return self.op(arith.SubiOp, self.constant(0, row), a)

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        return self.op(math.FmaOp, a, b, c)

    def fmod(self, x: SSAValue, y: SSAValue, row: ElementType) -> SSAValue:
        """The exact remainder of truncating division: a call of `@fmod_f64`, float_remainder.py.

        The remainder is a multiple of the operands' last place and below y: no type rounds it.
        """
        self.calls_fmod = True
        if row.name == "f64":
            return self._call_fmod(x, y)
        wide = [self.op(arith.ExtFOp, v, result=f64) for v in (x, y)]
        return self.op(arith.TruncFOp, self._call_fmod(*wide), result=row.attribute)

    def _call_fmod(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.append(func.CallOp(FMOD, [x, y], [f64]))


def scalar_load(buffer: SSAValue, indices: Sequence[SSAValue], type_: Attribute) -> memref.LoadOp:
    """A memref.load, without asking the buffer's type for the element's."""
    return memref.LoadOp.create(operands=[buffer, *indices], result_types=[type_])
