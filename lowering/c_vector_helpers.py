"""Functions in C for what operators on vectors do not say.

Each is the op's arithmetic on any machine, and one instruction or few where a compiler says that
there is one. clang spells some of them in another way.
"""

from __future__ import annotations

from typing import Literal

from uopc.lowering.c_lanes import INLINE, unsigned_lanes
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import F32, Lanes
from uopc.passes.math_expansions.emit import F32 as SINGLE
from uopc.passes.math_expansions.emit import F64 as DOUBLE


def select_helper(p: FunctionPrinter, lanes: Lanes) -> str:
    """select: a where the mask is set, else b."""
    t, m = p.lanes_name(lanes), p.lanes_name(lanes.mask())
    name = f"select_{t}"
    return p.prelude.need(
        name,
        lambda _: (
            f"""{INLINE} {t} {name}({m} mask, {t} a, {t} b)
{{
    return ({t})((mask & ({m})a) | (~mask & ({m})b));
}}"""
        ),
    )


def extreme_helper(p: FunctionPrinter, lanes: Lanes, kind: str) -> str:
    """max, min: NaN wins, -0 < +0."""
    t, m = p.lanes_name(lanes), p.lanes_name(lanes.mask())
    select = select_helper(p, lanes)
    sign, merge = (">", "&") if kind == "max" else ("<", "|")
    name = f"{kind}_{t}"
    s = "s" if lanes.element is F32 else "d"
    # Picked in both orders the two results differ only where a == b are zeros of two signs or
    # where one is NaN: merging their bits gives the right zero.
    body = f"""    {t} x = {select}(({m})(a {sign} b), a, b), y = {select}(({m})(b {sign} a), b, a);
    {m} ordered = ({m})(a == a) & ({m})(b == b);
    return {select}(ordered, ({t})(({m})x {merge} ({m})y), a + b);"""
    if lanes.bytes == 64:  # clang spells the instructions in another way
        one, unordered = f"__builtin_ia32_rangep{s}512_mask", f"__builtin_ia32_cmpp{s}512_mask"
        which = 5 if kind == "max" else 4  # of the two, with its own sign: of zeros the right one
        body = f"""#if defined(__AVX512DQ__) && !defined(__clang__)
    __asm__("" : "+v"(b)); /* loaded once, not for each instruction */
    {t} number = {one}(a, b, {which}, a, -1, 4);
    return __builtin_ia32_addp{s}512_mask(a, b, number, {unordered}(a, b, 3, -1, 4), 4);
#else
{body}
#endif"""
    elif lanes.bytes == 32:
        one = f"__builtin_ia32_{kind}p{s}256"
        body = f"""#if defined(__AVX__)
    {m} merged = ({m}){one}(a, b) {merge} ({m}){one}(b, a);
    {m} ordered = ({m})(a == a) & ({m})(b == b);
    return {select}(ordered, ({t})merged, a + b);
#else
{body}
#endif"""
    return p.prelude.need(name, lambda _: f"{INLINE} {t} {name}({t} a, {t} b)\n{{\n{body}\n}}")


def pick_helper(p: FunctionPrinter, lanes: Lanes, word: Literal["greater", "lesser"]) -> str:
    """greater: a > b ? a : b, in each lane; lesser: a < b ? a : b."""
    t, m = p.lanes_name(lanes), p.lanes_name(lanes.mask())
    name, select = f"{word}_{t}", select_helper(p, lanes)
    kind, sign = ("max", ">") if word == "greater" else ("min", "<")
    s = "s" if lanes.element is F32 else "d"
    body = f"    return {select}(({m})(a {sign} b), a, b);"
    if lanes.bytes == 64:
        body = f"""#if defined(__AVX512F__) && !defined(__clang__)
    return __builtin_ia32_{kind}p{s}512_mask(a, b, a, -1, 4);
#else
{body}
#endif"""
    elif lanes.bytes == 32:
        body = f"""#if defined(__AVX__)
    return __builtin_ia32_{kind}p{s}256(a, b);
#else
{body}
#endif"""
    return p.prelude.need(name, lambda _: f"{INLINE} {t} {name}({t} a, {t} b)\n{{\n{body}\n}}")


def scale_helper(p: FunctionPrinter, lanes: Lanes) -> str:
    """scale: x * 2^n rounded once, where n stands in the low bits of `moved`."""
    format = SINGLE if lanes.element is F32 else DOUBLE
    t, m, u = p.lanes_name(lanes), p.lanes_name(lanes.mask()), unsigned_lanes(p, lanes)
    name, places, bias = f"scale_{t}", format.fraction, format.bias
    body = f"""    {m} n = ({m})moved, half = n >> 1;
    {t} first = ({t})((({u})half + {bias}) << {places});
    return x * first * ({t})((({u})n - ({u})half + {bias}) << {places});"""
    if lanes.bytes == 64:
        s, suffix = ("s", "f") if lanes.element is F32 else ("d", "")
        body = f"""#if defined(__AVX512F__)
    return __builtin_ia32_scalefp{s}512_mask(x, moved - {format.rounder:.1f}{suffix}, x, -1, 4);
#else
{body}
#endif"""
    return p.prelude.need(name, lambda _: f"{INLINE} {t} {name}({t} x, {t} moved)\n{{\n{body}\n}}")
