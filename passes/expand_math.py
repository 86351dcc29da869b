"""expand-math: the transcendental functions of math, written out in arith operations.

The IR decides the bits: a call of a C library's exp differs between libraries, so each of exp,
log, sin and their kin becomes its formula in arith operations, `math.fma`, `math.sqrt`,
`math.absf` and `math.roundeven`, all of which IEEE 754 fixes to the last bit. There are no
branches, so that vectors of f32 and f64 are expanded as scalars are. f16 and bf16 are computed in
f32 and rounded once. Constants stand once each at the start of the function. `math.floor`,
`ceil`, `trunc`, `round`, `roundeven`, `sqrt`, `absf`, `copysign` and `fma` are exact as they are
and stay. The error is below 2 units in the last place for every argument, denormal ones and
results included. Which NaN comes out is not fixed. `fastmath` flags are not made use of.

Before:

    func.func @f(%x: f32) -> f32 {
      %y = math.rsqrt %x : f32
      func.return %y : f32
    }

After:

    func.func @f(%x: f32) -> f32 {
      %one = arith.constant 1.000000e+00 : f32
      %root = math.sqrt %x : f32
      %y = arith.divf %one, %root : f32
      func.return %y : f32
    }
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, builtin, math
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects.errors import UopcError
from uopc.passes.math_expansions import (
    arcs,
    erf,
    exponentials,
    hyperbolic,
    logarithms,
    power,
    trigonometry,
)
from uopc.passes.math_expansions.emit import (
    F32,
    F64,
    ConstantPool,
    Emitter,
    Float,
    Format,
    vector_type,
)

Expansion = Callable[..., Float]
"""Takes an emitter and one float an operand, returns the result."""

EXPANSIONS: dict[type[Operation], Expansion] = {
    math.ExpOp: exponentials.exp,
    math.Exp2Op: exponentials.exp2,
    math.ExpM1Op: exponentials.expm1,
    math.LogOp: logarithms.log,
    math.Log2Op: logarithms.log2,
    math.Log10Op: logarithms.log10,
    math.Log1pOp: logarithms.log1p,
    math.SinOp: trigonometry.sin,
    math.CosOp: trigonometry.cos,
    math.TanOp: trigonometry.tan,
    math.AsinOp: arcs.asin,
    math.AcosOp: arcs.acos,
    math.AtanOp: arcs.atan,
    math.Atan2Op: arcs.atan2,
    math.SinhOp: hyperbolic.sinh,
    math.CoshOp: hyperbolic.cosh,
    math.TanhOp: hyperbolic.tanh,
    math.AsinhOp: hyperbolic.asinh,
    math.AcoshOp: hyperbolic.acosh,
    math.AtanhOp: hyperbolic.atanh,
    math.ErfOp: erf.erf,
    math.PowFOp: power.powf,
    math.CbrtOp: power.cbrt,
    math.RsqrtOp: power.rsqrt,
}


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """Replaces every operation of EXPANSIONS, wherever it stands in the module."""

    name = "expand-math"

    def apply(self, ctx: Context, op: builtin.ModuleOp) -> None:
        pool = ConstantPool()
        for inner in [found for found in op.walk() if type(found) in EXPANSIONS]:
            expand(inner, pool)


def expand(op: Operation, pool: ConstantPool) -> None:
    """Replaces one operation of EXPANSIONS by its formula.

    Raises UopcError (unsupported-type) where it is not on f64, f32, f16, bf16 or vectors of them.
    """
    result_type = op.results[0].type
    shape = vector_type(result_type)
    scalar = result_type if shape is None else shape.element_type
    format = compute_format(op, scalar)
    e = Emitter(op, pool, shape, format)
    operands = [Float(e, operand) for operand in op.operands]
    if scalar == format.float_type:
        value = EXPANSIONS[type(op)](e, *operands).value
    else:
        widened = [Float(e, convert(e, arith.ExtFOp, x.value, e.float_type)) for x in operands]
        computed = EXPANSIONS[type(op)](e, *widened).value
        value = convert(e, arith.TruncFOp, computed, result_type)
    value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    op.detach()
    op.erase()


def compute_format(op: Operation, scalar: Attribute) -> Format:
    """The format that the function of `scalar` is computed in."""
    match scalar:
        case Float64Type():
            return F64
        case Float32Type() | Float16Type() | BFloat16Type():
            return F32
        case _:
            raise UopcError(
                "unsupported-type",
                f"{op.name} on {op.results[0].type} has no expansion",
                hint="it takes f64, f32, f16 and bf16, and vectors of them",
                pass_name=ExpandMathPass.name,
                op_text=str(op),
            )


def convert(e: Emitter, kind: type[Operation], value: SSAValue, result_type: Attribute) -> SSAValue:
    return e.create(kind, [value], result_type, {})
