"""Conversions between vectors of f16 or bf16 and vectors of float, exact and rounded once.

A bf16 is the upper half of a float: a shift. For f16 x86 has an instruction for 4, 8 and 16 lanes;
elsewhere, and with any number of lanes, integer arithmetic on whole vectors does the same:

    widen      exponent and fraction, moved to a float's place, are 2**-112 of the value, those of
               subnormals too; infinities and NaNs get all bits of the exponent
    narrow     rounded to nearest even by adding half of the last place; below 2**-14 an f16 is a
               multiple of 2**-24, and adding 0.5 makes the float unit round to one
"""

from __future__ import annotations

from uopc.lowering.c_helpers import has_builtin
from uopc.lowering.c_lanes import INLINE, unsigned_lanes, vector_expr
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import BF16, F32, PRIMARY, Expr, Lanes


def widened(p: FunctionPrinter, e: Expr, lanes: Lanes) -> Expr:
    """A vector of halves as one of floats."""
    wide = lanes.of(F32)
    return vector_expr(p, f"{_widen(p, lanes, wide)}({e.text})", PRIMARY, wide, e)


def narrowed(p: FunctionPrinter, e: Expr, result: Lanes) -> Expr:
    """A vector of floats rounded to halves."""
    wide = result.of(F32)
    return vector_expr(p, f"{_narrow(p, wide, result)}({e.text})", PRIMARY, result, e)


_HALF8 = "    typedef short half8 __attribute__((vector_size(16)));\n"
_HALF16 = "    typedef short half16 __attribute__((vector_size(32)));\n"
_FLOAT16 = "    typedef float float16 __attribute__((vector_size(64)));\n"

Forms = dict[int, tuple[str, str, str, str]]
"""By lanes: the macro that goes with an instruction, this, the types and arguments it takes."""

_WIDEN_FORMS: Forms = {
    4: ("__F16C__", "vcvtph2ps", _HALF8, "((half8){h[0], h[1], h[2], h[3]})"),
    8: ("__F16C__", "vcvtph2ps256", _HALF8, "((half8)h)"),
    16: (
        "__AVX512F__",
        "vcvtph2ps512_mask",
        _HALF16 + _FLOAT16,
        "((half16)h, (float16){0}, -1, 4)",
    ),
}
_NARROW_FORMS: Forms = {
    8: ("__F16C__", "vcvtps2ph256", "", "(x, 0)"),
    16: ("__AVX512F__", "vcvtps2ph512_mask", _HALF16, "(x, 0, (half16){0}, -1)"),
}


def _widen(p: FunctionPrinter, lanes: Lanes, wide: Lanes) -> str:
    """bf16_to_f32x8, f16_to_f32x8."""
    h, t, u = p.lanes_name(lanes), p.lanes_name(wide), unsigned_lanes(p, wide)
    name = f"{lanes.element.key}_to_{t}"
    if lanes.element is BF16:
        body = f"    return ({t})(__builtin_convertvector(h, {u}) << 16);"
        return p.prelude.need(name, lambda _: f"{INLINE} {t} {name}({h} h)\n{{\n{body}\n}}")
    i = p.lanes_name(wide.mask())
    body = f"""    {u} bits = __builtin_convertvector(h, {u}), size = (bits & 0x7fff) << 13;
    {u} special = ({u})(({i})size >= 0x0f800000) & 0x7f800000;
    {u} number = ({u})(({t})size * 0x1p112f);
    return ({t})(number | special | (bits & 0x8000) << 16);"""
    text = _chosen(p, _WIDEN_FORMS, lanes.width, t, body)
    return p.prelude.need(name, lambda _: f"{INLINE} {t} {name}({h} h)\n{{\n{text}\n}}")


def _narrow(p: FunctionPrinter, wide: Lanes, result: Lanes) -> str:
    """bf16_from_f32x8, f16_from_f32x8."""
    t, h, u = p.lanes_name(wide), p.lanes_name(result), unsigned_lanes(p, wide)
    name = f"{result.element.key}_from_{t}"
    if result.element is BF16:
        body = f"""    {u} bits = ({u})x, near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    {u} nan = ({u})(x != x);
    return __builtin_convertvector((nan & (bits >> 16 | 0x40)) | (~nan & near), {h});"""
        return p.prelude.need(name, lambda _: f"{INLINE} {h} {name}({t} x)\n{{\n{body}\n}}")
    i = p.lanes_name(wide.mask())
    body = f"""    {u} bits = ({u})x, size = bits & 0x7fffffff;
    {u} small = ({u})(({i})size < 0x38800000), large = ({u})(({i})size >= 0x47800000);
    {u} tiny = ({u})(({t})size + 0.5f) - 0x3f000000;
    {u} near = (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13;
    {u} beyond = 0x7c00 | (({u})(x != x) & (0x200 | (size >> 13 & 0x1ff)));
    {u} half = (large & beyond) | (~large & ((small & tiny) | (~small & near)));
    return __builtin_convertvector(half | (bits >> 16 & 0x8000), {h});"""
    text = _chosen(p, _NARROW_FORMS, result.width, h, body)
    return p.prelude.need(name, lambda _: f"{INLINE} {h} {name}({t} x)\n{{\n{text}\n}}")


def _chosen(
    p: FunctionPrinter,
    forms: Forms,
    lanes: int,
    type_: str,
    plain: str,
) -> str:
    """The body of a conversion: by the instruction for so many lanes, where there is one."""
    if lanes not in forms:
        return plain
    macro, instruction, types, arguments = forms[lanes]
    builtin = f"__builtin_ia32_{instruction}"
    text = f"{types}    return ({type_}){builtin}{arguments};"
    test = f"defined({macro}) && {has_builtin(p.prelude)}({builtin})"
    return f"#if {test}\n{text}\n#else\n{plain}\n#endif"
