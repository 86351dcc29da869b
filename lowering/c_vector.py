"""Elementwise ops on vectors, through the vector extension that GCC and clang share.

Where C has an operator on whole vectors that means exactly the op, it is used; any other op runs
lane by lane in a helper function made from the scalar rule:

    arith.addf   a + b                        arith.maximumf   max_f32x8(a, b)
    arith.addi   (i32x8)((u32x8)a + (u32x8)b) math.exp         exp_f32x8(a), a loop over lanes
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from uopc.dialects.x86vector import DotOp
from uopc.lowering.c_float import SCALAR_RULES
from uopc.lowering.c_halves import narrowed, widened
from uopc.lowering.c_helpers import has_builtin
from uopc.lowering.c_idioms import Idiom
from uopc.lowering.c_lanes import (
    INLINE,
    as_mask,
    bitcast,
    broadcast,
    converted,
    create_mask,
    extract,
    insert,
    lane_value,
    lanes_key,
    lanes_of,
    reduction,
    shuffle,
    stored_lane,
    unsigned_lanes,
    vector_expr,
)
from uopc.lowering.c_pairs import dot
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import (
    ADD,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    CHOICE,
    EQUAL,
    F32,
    F64,
    I1,
    MULTIPLY,
    PRIMARY,
    UNARY,
    Expr,
    Lanes,
    is_vector,
)
from uopc.lowering.c_vector_helpers import (
    extreme_helper,
    pick_helper,
    scale_helper,
    select_helper,
)
from uopc.passes.cpu_targets import FusedMultiplyAdd, cpu_targets
from uopc.passes.math_expansions.emit import constant_number

_FLOAT_SIGNS: dict[Any, tuple[str, int]] = {
    arith.AddfOp: ("+", ADD),
    arith.SubfOp: ("-", ADD),
    arith.MulfOp: ("*", MULTIPLY),
    arith.DivfOp: ("/", MULTIPLY),
}
_INTEGER_SIGNS: dict[Any, tuple[str, int]] = {
    arith.AddiOp: ("+", ADD),
    arith.SubiOp: ("-", ADD),
    arith.MuliOp: ("*", MULTIPLY),
}
_BIT_SIGNS: dict[Any, tuple[str, int]] = {
    arith.AndIOp: ("&", BIT_AND),
    arith.OrIOp: ("|", BIT_OR),
    arith.XOrIOp: ("^", BIT_XOR),
}
_MASK_SIGNS: dict[Any, tuple[str, int]] = _BIT_SIGNS | {
    arith.AddiOp: ("^", BIT_XOR),
    arith.SubiOp: ("^", BIT_XOR),
    arith.MuliOp: ("&", BIT_AND),
}
_CMPF_SIGNS = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_CMPF_NEGATED = {9: "<=", 10: "<", 11: ">=", 12: ">"}
_CMPI_SIGNS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_SHIFTS: dict[Any, str] = {arith.ShLIOp: "<<", arith.ShRUIOp: ">>", arith.ShRSIOp: ">>"}
_EXTREMES: dict[Any, str] = {arith.MaximumfOp: "max", arith.MinimumfOp: "min"}


def elementwise(p: FunctionPrinter, op: Any) -> None:
    """Any op of arith or math on vectors."""
    kind: type[Any] = op.__class__
    result = p.vector(_result_type(op), op)
    if (found := p.live.idioms.get(op)) is not None:
        p.define(op.results[0], _at_once(p, found, result))
        return
    operands = [p.expr(v) for v in op.operands]
    made = _direct(p, op, kind, operands, result)
    if made is None:
        rule = SCALAR_RULES.get(kind)
        if rule is None:
            p.unsupported(op)
        made = _lane_by_lane(p, op, rule, operands, result)
    p.define(op.results[0], made)


def _at_once(p: FunctionPrinter, found: Idiom, result: Lanes) -> Expr:
    """Several ops as a call of the helper that does what they do."""
    operands = [p.expr(v) for v in found.operands]
    if found.helper == "scale":
        name = scale_helper(p, result)
    else:
        name = pick_helper(p, result, found.helper)
    text = f"{name}({', '.join(e.text for e in operands)})"
    return vector_expr(p, text, PRIMARY, result, *operands)


def _result_type(op: Any) -> Attribute:
    """The result's type; a comparison of vectors may carry a plain i1 in xDSL 0.75."""
    stated: Attribute = op.results[0].type
    if is_vector(stated):
        return stated
    return VectorType(stated, op.operands[-1].type.get_shape())


def _direct(
    p: FunctionPrinter, op: Any, kind: Any, operands: list[Expr], result: Lanes
) -> Expr | None:
    """The op as an operator on whole vectors, if C has one that means exactly this."""
    a = operands[0]
    lanes = lanes_of(a) if a.lanes is not None else result
    if kind is arith.SelectOp:
        return _select(p, operands, result)
    if lanes.element.is_half or result.element.is_half:
        return _on_halves(p, op, kind, operands, lanes, result)
    b = operands[1] if len(operands) > 1 else a
    if kind in _FLOAT_SIGNS:
        sign, level = _FLOAT_SIGNS[kind]
        made = vector_expr(p, f"{a.at(level)} {sign} {b.at(level + 1)}", level, result, a, b)
        made.compound = (a.text, sign, b.text)
        return made
    if kind in _MASK_SIGNS and lanes.is_mask:
        sign, level = _MASK_SIGNS[kind]
        other = converted(p, b, lanes)
        return vector_expr(p, f"{a.at(UNARY)} {sign} {other.at(UNARY)}", level, lanes, a, other)
    if kind in _INTEGER_SIGNS:
        return _wrapped(p, _INTEGER_SIGNS[kind], a, b, result)
    if kind in _BIT_SIGNS:
        sign, level = _BIT_SIGNS[kind]
        return vector_expr(p, f"{a.at(UNARY)} {sign} {b.at(UNARY)}", level, result, a, b)
    if kind in _SHIFTS and not lanes.is_mask:
        return _shift(p, op, kind, a, b, result)
    if kind is arith.NegfOp:
        return vector_expr(p, f"-{a.at(PRIMARY)}", UNARY, result, a)
    if kind is math.AbsFOp:
        # Lane by lane some compilers take two halves of a vector, which stalls what reads it whole.
        largest = f"INT{lanes.element.bits}_MAX"
        text = f"({p.lanes_name(lanes)})(({p.lanes_name(lanes.mask())}){a.at(UNARY)} & {largest})"
        return vector_expr(p, text, UNARY, result, a)
    if kind in (arith.CmpfOp, arith.CmpiOp):
        return _compare(p, op, kind, a, b)
    if kind in _EXTREMES:
        name = extreme_helper(p, lanes, _EXTREMES[kind])
        return vector_expr(p, f"{name}({a.text}, {b.text})", PRIMARY, result, a, b)
    if kind is math.FmaOp:
        return fma(p, operands, result)
    if kind is arith.BitcastOp:
        return vector_expr(p, f"({p.lanes_name(result)}){a.at(UNARY)}", UNARY, result, a)
    if kind in (arith.SIToFPOp, arith.ExtSIOp, arith.ExtFOp, arith.TruncFOp, arith.IndexCastOp):
        return _convert(p, a, lanes, result)
    return None


def _on_halves(
    p: FunctionPrinter, op: Any, kind: Any, operands: list[Expr], lanes: Lanes, result: Lanes
) -> Expr | None:
    """An op with half types: conversions of whole vectors, and what is computed in float."""
    a = operands[0]
    half, wide = lanes.element.is_half, lanes.of(F32)
    if kind is arith.ExtFOp:
        return widened(p, a, lanes) if half and result.element is F32 else None
    if kind is arith.TruncFOp:
        return narrowed(p, a, result) if lanes.element is F32 else None
    if kind is arith.NegfOp:
        t = p.lanes_name(lanes)
        return vector_expr(p, f"({t})({a.at(UNARY)} ^ 0x8000)", UNARY, result, a)
    if kind is arith.CmpfOp and half:
        return _compare(p, op, kind, *(p.settle(widened(p, e, lanes)) for e in operands))
    if not half or kind not in (*_FLOAT_SIGNS, *_EXTREMES, math.FmaOp):
        return None
    made = _direct(p, op, kind, [widened(p, e, lanes) for e in operands], wide)
    return None if made is None else narrowed(p, made, result)


def _convert(p: FunctionPrinter, a: Expr, lanes: Lanes, result: Lanes) -> Expr | None:
    if result.is_mask:
        return None
    text = f"__builtin_convertvector({a.text}, {p.lanes_name(result)})"
    return vector_expr(p, text, PRIMARY, result, a)


def _wrapped(p: FunctionPrinter, form: tuple[str, int], a: Expr, b: Expr, result: Lanes) -> Expr:
    """Integer arithmetic in unsigned lanes, which wrap."""
    sign, _ = form
    unsigned = unsigned_lanes(p, result)
    text = f"({unsigned}){a.at(UNARY)} {sign} ({unsigned}){b.at(UNARY)}"
    return vector_expr(p, f"({p.lanes_name(result)})({text})", UNARY, result, a, b)


def _shift(p: FunctionPrinter, op: Any, kind: Any, a: Expr, b: Expr, result: Lanes) -> Expr:
    """A shift; by the width or more all bits go, or all are the sign."""
    t, u = p.lanes_name(result), unsigned_lanes(p, result)
    bits, sign = result.element.bits, _SHIFTS[kind]
    value = a.at(UNARY) if kind is arith.ShRSIOp else f"({u}){a.at(UNARY)}"
    amount = constant_number(op.rhs)
    if isinstance(amount, int) and 0 <= amount < bits:
        return vector_expr(p, f"({t})({value} {sign} {amount})", UNARY, result, a)
    name = f"{op.name.split('.')[1]}_{lanes_key(result)}"
    if kind is arith.ShRSIOp:
        body = f"    return a >> ((mask & b) | (~mask & {bits - 1}));"
    else:
        body = f"    return mask & ({t})(({u})a {sign} (({u})b & {bits - 1}));"
    p.prelude.need(
        name,
        lambda _: (
            f"{INLINE} {t} {name}({t} a, {t} b)\n{{\n"
            f"    {t} mask = ({t})(({u})b < {bits});\n{body}\n}}"
        ),
    )
    return vector_expr(p, f"{name}({a.text}, {b.text})", PRIMARY, result, a, b)


def _compare(p: FunctionPrinter, op: Any, kind: Any, a: Expr, b: Expr) -> Expr | None:
    lanes = lanes_of(a)
    if lanes.is_mask:
        return None
    mask = lanes.mask()
    predicate = op.predicate.value.data
    cast = f"({p.lanes_name(mask)})"
    if kind is arith.CmpiOp:
        x, y = a.at(ADD), b.at(ADD)
        if predicate >= 6:
            unsigned = unsigned_lanes(p, lanes)
            x, y = f"({unsigned}){a.at(UNARY)}", f"({unsigned}){b.at(UNARY)}"
        text = f"{x} {_CMPI_SIGNS[predicate]} {y}"
    elif predicate in _CMPF_SIGNS:
        text = f"{a.at(ADD)} {_CMPF_SIGNS[predicate]} {b.at(ADD)}"
    elif predicate in _CMPF_NEGATED:
        text = f"{a.at(ADD)} {_CMPF_NEGATED[predicate]} {b.at(ADD)}"
        return vector_expr(p, f"~{cast}({text})", UNARY, mask, a, b)
    elif predicate in (7, 14):
        a, b = p.settle(a), p.settle(b)
        sign, join = ("==", "&") if predicate == 7 else ("!=", "|")
        both = dict.fromkeys((a.text, b.text))
        text = f" {join} ".join(f"{cast}({x} {sign} {x})" for x in both)
        return vector_expr(p, text, UNARY if len(both) == 1 else BIT_OR, mask, a, b)
    else:
        return None
    return vector_expr(p, f"{cast}({text})", UNARY, mask, a, b)


def _select(p: FunctionPrinter, operands: Sequence[Expr], result: Lanes) -> Expr:
    """arith.select by a mask, or by one i1 for all lanes."""
    c, a, b = operands
    if c.lanes is None:
        text = f"{c.at(EQUAL)} ? {a.at(UNARY)} : {b.at(UNARY)}"
        if result.is_mask:
            b = converted(p, b, lanes_of(a))
            text = f"{c.at(EQUAL)} ? {a.at(UNARY)} : {b.at(UNARY)}"
            result = lanes_of(a)
        return vector_expr(p, text, CHOICE, result, c, a, b)
    if result.is_mask:
        result = lanes_of(a)
        b = converted(p, b, result)
    mask = as_mask(p, c, result)
    name = select_helper(p, result)
    text = f"{name}({mask.text}, {a.text}, {b.text})"
    return vector_expr(p, text, PRIMARY, result, mask, a, b)


def fma(p: FunctionPrinter, operands: Sequence[Expr], result: Lanes) -> Expr | None:
    """A fused multiply-add of vectors: one rounding in each lane."""
    if result.element not in (F32, F64):
        return None
    texts = ", ".join(e.text for e in operands)
    return vector_expr(p, f"{fma_helper(p, result)}({texts})", PRIMARY, result, *operands)


@cache
def _fma_builtins(size: int) -> tuple[FusedMultiplyAdd, ...]:
    """The instructions for vectors of so many bytes, of all CPU targets."""
    return tuple(f for row in cpu_targets().values() for f in row.fused if f.bytes == size)


def fma_helper(p: FunctionPrinter, lanes: Lanes) -> str:
    """fma: a * b + c. A compiler does not find the instruction in a loop over lanes by itself."""
    t = p.lanes_name(lanes)
    name = f"fma_{t}"
    suffix = "f" if lanes.element is F32 else ""
    loop = f"""    for (int lane = 0; lane < {lanes.width}; lane++)
        c[lane] = __builtin_fma{suffix}(a[lane], b[lane], c[lane]);
    return c;"""
    if builtins := _fma_builtins(lanes.bytes):
        # Clang has one builtin for all widths, and has dropped some of the others.
        body = (
            f"#if {has_builtin(p.prelude)}(__builtin_elementwise_fma)\n"
            "    return __builtin_elementwise_fma(a, b, c);\n"
        )
        for each in builtins:
            builtin = each.f32 if lanes.element is F32 else each.f64
            body += f"#elif {each.condition}\n    return {builtin};\n"
        body += f"#else\n{loop}\n#endif"
    elif lanes.bytes > 64:
        part = Lanes(lanes.element, 64 // lanes.element.size)
        small, part_name = fma_helper(p, part), p.lanes_name(part)
        body = f"""    for (int part = 0; part < {lanes.bytes // 64}; part++)
        (({part_name} *)&c)[part] = {small}(
            (({part_name} *)&a)[part], (({part_name} *)&b)[part], (({part_name} *)&c)[part]);
    return c;"""
    else:
        body = loop
    return p.prelude.need(
        name, lambda _: f"{INLINE} {t} {name}({t} a, {t} b, {t} c)\n{{\n{body}\n}}"
    )


def _lane_by_lane(
    p: FunctionPrinter, op: Any, rule: Any, operands: list[Expr], result: Lanes
) -> Expr:
    """The op through a helper that applies the scalar rule to each lane."""
    parameters: list[str] = []
    scalars: list[Expr] = []
    for name, e in zip("abc", operands, strict=False):
        lanes = lanes_of(e)
        parameters.append(f"{p.lanes_name(lanes)} {name}")
        scalars.append(lane_value(f"{name}[lane]", lanes))
    if type(op) in (arith.CmpfOp, arith.CmpiOp) and not lanes_of(operands[0]).is_mask:
        result = lanes_of(operands[0]).mask()
    r = I1 if result.is_mask else result.element
    body = rule(p, op, scalars[0].type, r, *scalars)
    value = f"-{body.at(UNARY)}" if result.is_mask else body.text
    unread = "".join(
        f"    (void){name};\n"
        for name in "abc"[: len(operands)]
        if f"{name}[lane]" not in body.text  # a comparison that is always true, for one
    )
    t = p.lanes_name(result)
    name = _helper_name(op, operands, result)
    p.prelude.need(
        name,
        lambda _: (
            f"""{INLINE} {t} {name}({", ".join(parameters)})
{{
{unread}    {t} r = {{0}};
    for (int lane = 0; lane < {result.width}; lane++)
        r[lane] = {stored_lane(value, result)};
    return r;
}}"""
        ),
    )
    return vector_expr(
        p, f"{name}({', '.join(e.text for e in operands)})", PRIMARY, result, *operands
    )


def _helper_name(op: Any, operands: Sequence[Expr], result: Lanes) -> str:
    parts = [op.name.split(".")[1]]
    predicate = op.properties.get("predicate")
    if predicate is not None:
        table = (
            arith.CMPF_COMPARISON_OPERATIONS
            if isinstance(op, arith.CmpfOp)
            else arith.CMPI_COMPARISON_OPERATIONS
        )
        parts.append(table[predicate.value.data])
    keys = [lanes_key(lanes_of(e)) for e in operands]
    parts += [k for i, k in enumerate(keys) if i == 0 or k != keys[0]]
    if lanes_key(result) != keys[0]:
        parts.append(lanes_key(result))
    return "_".join(parts)


def vector_fma(p: FunctionPrinter, op: vector.FMAOp) -> None:
    """vector.fma."""
    result = p.vector(op.res.type, op)
    operands = [p.expr(v) for v in op.operands]
    made = fma(p, operands, result)
    if made is None:
        made = _lane_by_lane(p, op, SCALAR_RULES[math.FmaOp], operands, result)
    p.define(op.res, made)


VECTOR_HANDLERS: dict[Any, Any] = {
    vector.BroadcastOp: broadcast,
    vector.ShuffleOp: shuffle,
    vector.ExtractOp: extract,
    vector.InsertOp: insert,
    vector.CreateMaskOp: create_mask,
    vector.BitcastOp: bitcast,
    vector.ReductionOp: reduction,
    vector.FMAOp: vector_fma,
    DotOp: dot,
}
"""How each op that is not elementwise and touches no memory is printed."""
