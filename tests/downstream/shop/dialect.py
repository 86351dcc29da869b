"""The dialect: one op that stands for three of utensor's.

%y = shop.scaled_sum %x by 5.000000e-01 : f32 axis 1 : tensor<4x8xf32> -> tensor<4xf32>
"""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.tensor_elementwise import tensor_of


@irdl_op_definition
class ScaledSumOp(IRDLOperation):
    """The sum along one axis, which is dropped, times a number."""

    name = "shop.scaled_sum"
    operand = operand_def(TensorType[Attribute])
    factor = prop_def(FloatAttr[AnyFloat])
    axis = prop_def(IntegerAttr.constr(i64))
    result = result_def(TensorType[Attribute])

    assembly_format = (
        "$operand `by` $factor `axis` $axis attr-dict `:` type($operand) `->` type($result)"
    )

    def __init__(
        self, operand: SSAValue, factor: FloatAttr[AnyFloat], axis: int, result: Attribute
    ):
        super().__init__(
            operands=[operand],
            properties={"factor": factor, "axis": IntegerAttr(axis, i64)},
            result_types=[result],
        )

    def verify_(self) -> None:
        source, axis = tensor_of(self.operand), self.axis.value.data
        shape = list(source.get_shape())
        if not 0 <= axis < len(shape):
            raise VerifyException(f"axis {axis} is out of range for a tensor of rank {len(shape)}")
        expected = TensorType(source.element_type, shape[:axis] + shape[axis + 1 :])
        if expected != self.result.type:
            raise VerifyException(f"result: expected {expected}, got {self.result.type}")
        if self.factor.type != source.element_type:
            raise VerifyException(f"factor: expected {source.element_type}, got {self.factor.type}")


Shop = Dialect("shop", [ScaledSumOp])
