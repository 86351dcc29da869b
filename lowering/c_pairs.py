"""The dot product of pairs of bf16 in C: an instruction where there is one, else its definition."""

from __future__ import annotations

from functools import cache

from uopc.dialects.x86vector import DotOp
from uopc.lowering.c_helpers import float_of_bits
from uopc.lowering.c_lanes import INLINE, vector_expr
from uopc.lowering.c_prelude import Prelude
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import F32, PRIMARY, Lanes
from uopc.passes.cpu_targets import Bf16Dot, cpu_targets


def dot(p: FunctionPrinter, op: DotOp) -> None:
    """x86vector.avx512.dot."""
    result, factor = p.vector(op.dst.type, op), p.vector(op.a.type, op)
    operands = [p.expr(v) for v in (op.src, op.a, op.b)]
    name = _dot_helper(p, result, factor)
    text = f"{name}({', '.join(e.text for e in operands)})"
    p.define(op.dst, vector_expr(p, text, PRIMARY, result, *operands))


@cache
def _instructions(size: int) -> tuple[Bf16Dot, ...]:
    """The instructions for sums of so many bytes, of all CPU targets."""
    return tuple(dict.fromkeys(
        each for row in cpu_targets().values() for each in row.bf16_dots if each.bytes == size
    ))  # fmt: skip


def _dot_helper(p: FunctionPrinter, lanes: Lanes, factor: Lanes) -> str:
    """dot: sum + a[1] * b[1], then + a[0] * b[0], of pairs of bf16; denormals are zeros."""
    t, h = p.lanes_name(lanes), p.lanes_name(factor)
    name = f"dot_{t}"
    body = ""
    for each in _instructions(lanes.bytes):
        word = "#elif" if body else "#if"
        body += f"{word} {each.condition}\n    {each.statement}\n    return sum;\n"
    loop = f"""    for (int lane = 0; lane < {lanes.width}; lane++)
        for (int half = 1; half >= 0; half--)
            sum[lane] = {_step(p.prelude)}(a[2*lane + half], b[2*lane + half], sum[lane]);
    return sum;
"""
    body = f"{body}#else\n{loop}#endif\n" if body else loop
    return p.prelude.need(
        name, lambda _: f"{INLINE} {t} {name}({t} sum, {h} a, {h} b)\n{{\n{body}}}"
    )


def _step(prelude: Prelude) -> str:
    """A step of it: x86's fused multiply-add with denormals taken and given as zeros. At the edge,
    2**-126, a result is denormal if it would round to less with any exponent."""
    bits = float_of_bits(prelude, F32)
    flush = prelude.need(
        "without_denormal",
        lambda _: (
            """static inline __attribute__((unused)) float without_denormal(float x)
{
    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
}"""
        ),
    )
    return prelude.need(
        "multiply_add_bf16",
        lambda _: (
            f"""static inline __attribute__((unused)) float
multiply_add_bf16(uint16_t a, uint16_t b, float sum)
{{
    const float x = {flush}({bits}((int32_t)((uint32_t)a << 16)));
    const float y = {flush}({bits}((int32_t)((uint32_t)b << 16)));
    sum = {flush}(sum);
    const float r = __builtin_fmaf(x, y, sum);
    const double sign = __builtin_copysign(1, r), product = (double)x * y;
    if (sign * r == 0x1p-126 && sign * product < 0x1p-126 - 0x1p-151 - sign * sum)
        return __builtin_copysignf(0, r);
    return {flush}(r);
}}"""
        ),
    )
