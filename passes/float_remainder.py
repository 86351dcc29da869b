"""`@fmod_f64`: the exact floating remainder as a function in the IR.

arith has no remainder of floats that xDSL knows, and x - trunc(x / y) * y is not exact. The long
division below is: each step subtracts y * 2**k, the largest such multiple not above the rest, and
every product and difference in it is exact (scaling by a power of two; Sterbenz).

    r = |x|;  while r >= |y|:  t = |y| * 2**(exponent(r) - exponent(y));  r -= t if t <= r else t/2
    x rem y = r with the sign of x;  NaN for x infinite, y zero, or either NaN;  x for y infinite
"""

from __future__ import annotations

from xdsl.dialects import arith, func, math, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Block, Region, SSAValue

from uopc.dialects.element_types import element_type_named
from uopc.passes.scalar_builder import FMOD, ScalarBuilder

_F64 = element_type_named("f64")
_I64 = element_type_named("i64")


def ensure_float_remainder(module: ModuleOp) -> None:
    """Add `@fmod_f64` to a module that does not have it."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == FMOD:
            return
    module.body.block.add_op(_function())


def _exponent(b: ScalarBuilder, x: SSAValue) -> SSAValue:
    """The exponent e of a positive finite x in [2**e, 2**(e+1)), denormals included."""
    small = b.cmpf("olt", x, b.constant(2.0**-1000, _F64))
    scaled = b.select(small, b.op(arith.MulfOp, x, b.constant(2.0**100, _F64)), x)
    bits = b.op(arith.BitcastOp, scaled, result=_I64.attribute, properties={})
    biased = b.op(arith.ShRUIOp, bits, b.constant(52, _I64))
    bias = b.select(small, b.constant(1023 + 100, _I64), b.constant(1023, _I64))
    return b.op(arith.SubiOp, biased, bias)


def _power_of_two(b: ScalarBuilder, k: SSAValue) -> SSAValue:
    """2**k for k in the range of normal exponents."""
    biased = b.op(arith.AddiOp, k, b.constant(1023, _I64))
    bits = b.op(arith.ShLIOp, biased, b.constant(52, _I64))
    return b.op(arith.BitcastOp, bits, result=f64, properties={})


def _step(base: SSAValue, exponent: SSAValue) -> Region:
    """The loop's body; `base` is the divisor times a power of two that makes it normal."""
    block = Block(arg_types=[f64])
    b = ScalarBuilder(block)
    (rest,) = block.args
    k = b.op(arith.SubiOp, _exponent(b, rest), exponent)
    half = b.op(arith.ShRSIOp, k, b.constant(1, _I64))  # two factors: k goes from -100 to 1997
    other = b.op(arith.SubiOp, k, half)
    scaled = b.op(arith.MulfOp, base, _power_of_two(b, half))
    scaled = b.op(arith.MulfOp, scaled, _power_of_two(b, other))
    halved = b.op(arith.MulfOp, scaled, b.constant(0.5, _F64))
    taken = b.select(b.cmpf("ole", scaled, rest), scaled, halved)
    block.add_op(scf.YieldOp(b.op(arith.SubfOp, rest, taken)))
    return Region(block)


def _function() -> func.FuncOp:
    block = Block(arg_types=[f64, f64])
    x, y = block.args
    x.name_hint, y.name_hint = "x", "y"
    b = ScalarBuilder(block)
    infinity, zero = b.constant(float("inf"), _F64), b.constant(0.0, _F64)
    size, divisor = b.op(math.AbsFOp, x), b.op(math.AbsFOp, y)
    finite = b.op(arith.AndIOp, b.cmpf("olt", size, infinity), b.cmpf("ogt", divisor, zero))
    # Where there is nothing to divide the loop is given r = 0 and never runs.
    start = b.select(finite, size, zero)
    before = Block(arg_types=[f64])
    condition = ScalarBuilder(before).cmpf("oge", before.args[0], divisor)
    running = ScalarBuilder(before).op(arith.AndIOp, condition, finite)
    before.add_op(scf.ConditionOp(running, before.args[0]))
    small = b.cmpf("olt", divisor, b.constant(2.0**-1000, _F64))
    base = b.select(small, b.op(arith.MulfOp, divisor, b.constant(2.0**100, _F64)), divisor)
    body = _step(base, _exponent(b, base))
    loop = scf.WhileOp([start], [f64], Region(before), body)
    block.add_op(loop)
    signed = b.op(math.CopySignOp, loop.results[0], x)
    nan = b.constant(float("nan"), _F64)
    undefined = b.op(arith.OrIOp, b.cmpf("ueq", size, infinity), b.cmpf("ueq", divisor, zero))
    undefined = b.op(arith.OrIOp, undefined, b.is_nan(y))
    block.add_op(func.ReturnOp(b.select(undefined, nan, signed)))
    return func.FuncOp(FMOD, ([f64, f64], [f64]), Region(block), visibility="private")
