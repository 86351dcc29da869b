"""What uopc writes of MLIR's x86vector dialect: the dot product of pairs of bf16.

    %s = x86vector.avx512.dot %acc, %a, %b : vector<32xbf16> -> vector<16xf32>

In each lane k, %acc[k] + %a[2k+1] * %b[2k+1], then + %a[2k] * %b[2k]: two fused multiply-adds of
f32, each rounded once to nearest even. What is denormal, operand or result, counts as a zero of its
sign: so does the instruction (vdpbf16ps), and so it is computed here wherever there is none. xDSL
has no such dialect; LLVM 23 calls it x86.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import VectorType, bf16, f32
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

DOT_LANES = (4, 8, 16)
"""How many numbers of f32 a vector of the instruction holds."""


@irdl_op_definition
class DotOp(IRDLOperation):
    """`%s = x86vector.avx512.dot %acc, %a, %b : vector<32xbf16> -> vector<16xf32>`: each lane plus
    two products of bf16; of 4, 8 or 16 lanes."""

    SUMS: ClassVar[VarConstraint[Any]] = VarConstraint("SUMS", BaseAttr(VectorType))
    FACTORS: ClassVar[VarConstraint[Any]] = VarConstraint("FACTORS", BaseAttr(VectorType))

    name = "x86vector.avx512.dot"
    src = operand_def(SUMS)
    a = operand_def(FACTORS)
    b = operand_def(FACTORS)
    dst = result_def(SUMS)
    traits = traits_def(Pure())
    assembly_format = "$src `,` $a `,` $b attr-dict `:` type($a) `->` type($src)"

    def __init__(self, src: SSAValue, a: SSAValue, b: SSAValue):
        super().__init__(operands=[src, a, b], result_types=[src.type])

    def verify_(self) -> None:
        sums = cast("VectorType[Attribute]", self.src.type)
        shape = sums.get_shape()
        if sums.element_type != f32 or len(shape) != 1 or shape[0] not in DOT_LANES:
            raise VerifyException(f"{self.name}: expected 4, 8 or 16 lanes of f32, got {sums}")
        pairs = VectorType(bf16, [2 * shape[0]])
        if self.a.type != pairs:
            raise VerifyException(
                f"{self.name}: expected {pairs}, two for each lane, got {self.a.type}"
            )


X86Vector = Dialect("x86vector", [DotOp], [])
