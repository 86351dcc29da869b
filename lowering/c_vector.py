"""Vectors, through the vector extension that GCC and clang share, in C and C++.

A vector of n elements is a GCC vector of the next power of two of lanes; its typedef is aligned
as one element and may alias, so that memory of any address is read and written through it. A
vector of i1 is a mask: signed integer lanes of 0 and -1, as wide as what was compared; masks of
different widths are converted where they meet. Ops without a vector form run lane by lane in a
helper function made from the scalar rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import Attribute, SSAValue

from uopc.lowering.c_float import SCALAR_RULES, float_literal
from uopc.lowering.c_integer import literal, wrap
from uopc.lowering.c_style import FunctionPrinter, combine, variable
from uopc.lowering.c_types import (
    ADD,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    F32,
    F64,
    I1,
    MULTIPLY,
    PRIMARY,
    UNARY,
    Expr,
    Lanes,
    Scalar,
)


INLINE = "static inline __attribute__((always_inline))"
"""How helpers on vectors are declared: no vector then crosses a call, on which compilers differ."""


def vector_expr(p: FunctionPrinter, text: str, level: int, lanes: Lanes, *operands: Expr) -> Expr:
    """A vector expression made of others."""
    p.lanes_name(lanes)
    made = combine(text, level, lanes.element, operands)
    made.lanes = lanes
    return made


def lanes_of(e: Expr) -> Lanes:
    """The lanes of an expression known to be a vector."""
    if e.lanes is None:
        raise AssertionError("a scalar where the verifier promised a vector")
    return e.lanes


def as_mask(p: FunctionPrinter, e: Expr, lanes: Lanes) -> Expr:
    """A mask converted to the lanes of `lanes.mask()`."""
    return converted(p, e, lanes.mask())


def converted(p: FunctionPrinter, e: Expr, wanted: Lanes) -> Expr:
    """A vector with lanes of the wanted type: masks change width, others are as they are."""
    have = lanes_of(e)
    if not have.is_mask or have.element.bits == wanted.element.bits:
        return e
    text = f"__builtin_convertvector({e.text}, {p.lanes_name(wanted)})"
    return vector_expr(p, text, PRIMARY, wanted, e)


# ---- elementwise ops

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
_EXTREMES: dict[Any, str] = {arith.MaximumfOp: "max", arith.MinimumfOp: "min"}


def elementwise(p: FunctionPrinter, op: Any) -> None:
    """Any op of arith or math on vectors."""
    kind = type(op)
    operands = [p.expr(v) for v in op.operands]
    result = p.vector(_result_type(op), op)
    made = _direct(p, op, kind, operands, result)
    if made is None:
        rule = SCALAR_RULES.get(kind)
        if rule is None:
            p.unsupported(op)
        made = _lane_by_lane(p, op, rule, operands, result)
    p.define(op.results[0], made)


def _result_type(op: Any) -> Attribute:
    """The result's type; a comparison of vectors may carry a plain i1 in xDSL 0.75."""
    stated = op.results[0].type
    if isinstance(stated, VectorType):
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
    if lanes.element.is_half:
        return None
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
    if kind is arith.NegfOp:
        return vector_expr(p, f"-{a.at(PRIMARY)}", UNARY, result, a)
    if kind in (arith.CmpfOp, arith.CmpiOp):
        return _compare(p, op, kind, a, b)
    if kind in _EXTREMES:
        name = _vector_extreme(p, lanes, _EXTREMES[kind])
        return vector_expr(p, f"{name}({a.text}, {b.text})", PRIMARY, result, a, b)
    if kind is math.FmaOp:
        return fma(p, operands, result)
    if kind is arith.BitcastOp and not result.element.is_half:
        return vector_expr(p, f"({p.lanes_name(result)}){a.at(UNARY)}", UNARY, result, a)
    if kind in (arith.SIToFPOp, arith.ExtSIOp, arith.ExtFOp, arith.TruncFOp, arith.IndexCastOp):
        return _convert(p, a, lanes, result)
    return None


def _convert(p: FunctionPrinter, a: Expr, lanes: Lanes, result: Lanes) -> Expr | None:
    if result.element.is_half or lanes.element.is_half or result.is_mask:
        return None
    text = f"__builtin_convertvector({a.text}, {p.lanes_name(result)})"
    return vector_expr(p, text, PRIMARY, result, a)


def _wrapped(p: FunctionPrinter, form: tuple[str, int], a: Expr, b: Expr, result: Lanes) -> Expr:
    """Integer arithmetic in unsigned lanes, which wrap."""
    sign, level = form
    unsigned = _unsigned_lanes(p, result)
    text = f"({unsigned}){a.at(UNARY)} {sign} ({unsigned}){b.at(UNARY)}"
    return vector_expr(p, f"({p.lanes_name(result)})({text})", UNARY, result, a, b)


def _unsigned_lanes(p: FunctionPrinter, lanes: Lanes) -> str:
    bits = lanes.element.bits
    element = Scalar(f"u{bits}", f"uint{bits}_t", bits, signed=False)
    return p.lanes_name(Lanes(element, lanes.count))


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
            unsigned = _unsigned_lanes(p, lanes)
            x, y = f"({unsigned}){a.at(UNARY)}", f"({unsigned}){b.at(UNARY)}"
        text = f"{x} {_CMPI_SIGNS[predicate]} {y}"
    elif predicate in _CMPF_SIGNS:
        text = f"{a.at(ADD)} {_CMPF_SIGNS[predicate]} {b.at(ADD)}"
    elif predicate in _CMPF_NEGATED:
        text = f"{a.at(ADD)} {_CMPF_NEGATED[predicate]} {b.at(ADD)}"
        return vector_expr(p, f"~{cast}({text})", UNARY, mask, a, b)
    else:
        return None
    return vector_expr(p, f"{cast}({text})", UNARY, mask, a, b)


def _select(p: FunctionPrinter, operands: Sequence[Expr], result: Lanes) -> Expr:
    """arith.select by a mask, or by one i1 for all lanes."""
    c, a, b = operands
    if c.lanes is None:
        text = f"{c.at(BIT_OR)} ? {a.at(UNARY)} : {b.at(UNARY)}"
        if result.is_mask:
            b = converted(p, b, lanes_of(a))
            text = f"{c.at(BIT_OR)} ? {a.at(UNARY)} : {b.at(UNARY)}"
            result = lanes_of(a)
        return vector_expr(p, text, 3, result, c, a, b)
    if result.is_mask:
        result = lanes_of(a)
        b = converted(p, b, result)
    mask = as_mask(p, c, result)
    name = select_helper(p, result)
    text = f"{name}({mask.text}, {a.text}, {b.text})"
    return vector_expr(p, text, PRIMARY, result, mask, a, b)


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


def _vector_extreme(p: FunctionPrinter, lanes: Lanes, kind: str) -> str:
    """max, min: NaN wins, -0 < +0."""
    t, m = p.lanes_name(lanes), p.lanes_name(lanes.mask())
    select = select_helper(p, lanes)
    sign, merge = (">", "&") if kind == "max" else ("<", "|")
    name = f"{kind}_{t}"
    # Picked in both orders the two results differ only where a == b are zeros of two signs or
    # where one is NaN: merging their bits gives the right zero.
    return p.prelude.need(
        name,
        lambda _: (
            f"""{INLINE} {t} {name}({t} a, {t} b)
{{
    {t} x = {select}(({m})(a {sign} b), a, b), y = {select}(({m})(b {sign} a), b, a);
    {m} ordered = ({m})(a == a) & ({m})(b == b);
    return {select}(ordered, ({t})(({m})x {merge} ({m})y), a + b);
}}"""
        ),
    )


def fma(p: FunctionPrinter, operands: Sequence[Expr], result: Lanes) -> Expr | None:
    """A fused multiply-add of vectors: one rounding in each lane."""
    if result.element not in (F32, F64):
        return None
    texts = ", ".join(e.text for e in operands)
    return vector_expr(p, f"{fma_helper(p, result)}({texts})", PRIMARY, result, *operands)


_FMA_BUILTINS = {
    16: ("__FMA__", "__builtin_ia32_vfmaddp{s}(a, b, c)"),
    32: ("__FMA__", "__builtin_ia32_vfmaddp{s}256(a, b, c)"),
    64: ("__AVX512F__", "__builtin_ia32_vfmaddp{s}512_mask(a, b, c, -1, 4)"),
}
"""The x86 instruction for vectors of so many bytes; 4 is the current rounding mode."""


def fma_helper(p: FunctionPrinter, lanes: Lanes) -> str:
    """fma: a * b + c. A compiler does not find the instruction in a loop over lanes by itself."""
    t = p.lanes_name(lanes)
    name = f"fma_{t}"
    suffix = "f" if lanes.element is F32 else ""
    loop = f"""    for (int lane = 0; lane < {lanes.width}; lane++)
        c[lane] = __builtin_fma{suffix}(a[lane], b[lane], c[lane]);
    return c;"""
    if lanes.bytes in _FMA_BUILTINS:
        macro, form = _FMA_BUILTINS[lanes.bytes]
        builtin = form.format(s="s" if lanes.element is F32 else "d")
        body = f"#if defined({macro})\n    return {builtin};\n#else\n{loop}\n#endif"
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
        scalars.append(_lane(f"{name}[lane]", lanes))
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
        r[lane] = {_stored(value, result)};
    return r;
}}"""
        ),
    )
    return vector_expr(
        p, f"{name}({', '.join(e.text for e in operands)})", PRIMARY, result, *operands
    )


def _stored(value: str, lanes: Lanes) -> str:
    return f"({lanes.element.ctype})({value})" if lanes.is_mask else value


def _lane(text: str, lanes: Lanes) -> Expr:
    """One lane as a scalar; of a mask, 0 or 1."""
    if lanes.is_mask:
        return Expr(f"({text} & 1)", PRIMARY, I1, 0, 1)
    t = lanes.element
    low, high = (0, 0) if t.is_float else (t.low, t.high)
    return Expr(text, PRIMARY, t, low, high)


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
    keys = [_key(lanes_of(e)) for e in operands]
    parts += [k for i, k in enumerate(keys) if i == 0 or k != keys[0]]
    if _key(result) != keys[0]:
        parts.append(_key(result))
    return "_".join(parts)


def _key(lanes: Lanes) -> str:
    return f"{'mask_' if lanes.is_mask else ''}{lanes.element.key}x{lanes.width}"


# ---- making vectors


def splat(p: FunctionPrinter, scalar: Expr, lanes: Lanes) -> Expr:
    """All lanes alike."""
    t = p.lanes_name(lanes)
    element = "uint16_t" if lanes.element.is_half else lanes.element.ctype
    name = f"splat_{t}"
    values = ", ".join(["x"] * lanes.width)
    if lanes.width > 32:
        body = (
            f"    {t} r = {{0}};\n    for (int lane = 0; lane < {lanes.width}; lane++)\n"
            f"        r[lane] = x;\n    return r;"
        )
    else:
        body = f"    {t} r = {{{values}}};\n    return r;"
    p.prelude.need(name, lambda _: f"{INLINE} {t} {name}({element} x)\n{{\n{body}\n}}")
    text = f"-{scalar.at(UNARY)}" if lanes.is_mask else scalar.text
    return vector_expr(p, f"{name}({text})", PRIMARY, lanes, scalar)


def dense_constant(p: FunctionPrinter, op: Any, attribute: DenseIntOrFPElementsAttr) -> None:
    """arith.constant of a vector."""
    lanes = _mask_for_user(p, op.result, p.vector(op.result.type, op))
    values = list(attribute.get_values())
    if len(values) == 1:
        values *= lanes.count
    texts = [_element_text(p, lanes, v) for v in values]
    if len(set(texts)) == 1:
        text = texts[0].lstrip("-") if lanes.is_mask else texts[0]
        p.define(op.result, splat(p, Expr(text, PRIMARY, lanes.element), lanes))
        return
    p.define(op.result, from_elements(p, op.result, lanes, texts))


def _element_text(p: FunctionPrinter, lanes: Lanes, value: Any) -> str:
    if lanes.is_mask:
        return "-1" if value else "0"
    if lanes.element.is_float:
        return float_literal(p, value, lanes.element).text
    return literal(wrap(value, lanes.element), lanes.element).text


def from_elements(p: FunctionPrinter, value: SSAValue, lanes: Lanes, texts: Sequence[str]) -> Expr:
    """A variable with the given lanes; those past the count are zero."""
    name = p.new_name(value, "v")
    p.statement(f"{p.lanes_name(lanes)} {name} = {{{', '.join(texts)}}};")
    return variable(name, Expr(name, PRIMARY, lanes.element, lanes=lanes))


def broadcast(p: FunctionPrinter, op: vector.BroadcastOp) -> None:
    """vector.broadcast of a scalar, or of a vector over new leading or stretched dimensions."""
    result = p.vector(op.vector.type, op)
    source_type = op.source.type
    if not isinstance(source_type, VectorType):
        p.define(op.vector, splat(p, p.expr(op.source), result))
        return
    source = p.atom(op.source)
    lanes = lanes_of(source)
    if result.is_mask:
        result = Lanes(lanes.element, result.count, is_mask=True)
    if lanes.count == result.count:
        p.define(op.vector, source)
        return
    picks = _broadcast_lanes(source_type.get_shape(), op.vector.type.get_shape())
    p.define(op.vector, pick_lanes(p, op.vector, result, [(source, i) for i in picks]))


def _broadcast_lanes(source: Sequence[int], target: Sequence[int]) -> list[int]:
    """For each lane of the target, in order, the lane of the source it repeats."""
    padded = [1] * (len(target) - len(source)) + list(source)
    lanes = [0]
    for have, want in zip(padded, target, strict=True):
        lanes = [base * have + (i if have > 1 else 0) for base in lanes for i in range(want)]
    return lanes


def pick_lanes(
    p: FunctionPrinter, value: SSAValue, lanes: Lanes, picks: Sequence[tuple[Expr, int]]
) -> Expr:
    """A vector gathered from lanes of named vectors: one shuffle where C has it."""
    sources = list({id(e): e for e, _ in picks}.values())
    names = {lanes_of(e).name for e in sources}
    if len(sources) <= 2 and len(names) == 1:
        width = lanes_of(sources[0]).width
        offset = {id(e): i * width for i, e in enumerate(sources)}
        order = [offset[id(e)] + i for e, i in picks] + [0] * (lanes.width - len(picks))
        both = ", ".join(e.text for e in (sources * 2)[:2])
        text = f"__builtin_shufflevector({both}, {', '.join(map(str, order))})"
        return vector_expr(p, f"({p.lanes_name(lanes)}){text}", UNARY, lanes, *sources)
    return from_elements(p, value, lanes, [f"{e.text}[{i}]" for e, i in picks])


def shuffle(p: FunctionPrinter, op: vector.ShuffleOp) -> None:
    """vector.shuffle: rows of two vectors by number; a row of -1 may be any, and is row 0."""
    result = p.vector(op.result.type, op)
    a, b = p.atom(op.v1), p.atom(op.v2)
    if result.is_mask:
        b = converted(p, b, lanes_of(a))
        b = p.settle(b)
        result = Lanes(lanes_of(a).element, result.count, is_mask=True)
    rows = op.v1.type.get_shape()[:1]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType] -- a vector, by the op's own check
    first = rows[0] if rows else 1
    size = lanes_of(a).count // first if first else 1
    picks: list[tuple[Expr, int]] = []
    for row in op.mask.get_values():
        source, start = (a, max(row, 0)) if row < first else (b, row - first)
        picks += [(source, start * size + i) for i in range(size)]
    p.define(op.result, pick_lanes(p, op.result, result, picks))


# ---- lanes


def _flat_position(p: FunctionPrinter, op: Any, shape: Sequence[int]) -> tuple[str, int]:
    """The first lane that a position names, as text, and how many lanes from there."""
    position = op.get_mixed_position()
    sizes = [1] * (len(shape) + 1)
    for axis in range(len(shape) - 1, -1, -1):
        sizes[axis] = sizes[axis + 1] * shape[axis]
    constant, terms = 0, list[str]()
    for axis, index in enumerate(position):
        stride = sizes[axis + 1]
        if isinstance(index, int):
            constant += index * stride
        else:
            e = p.expr(index)
            terms.append(e.at(ADD) if stride == 1 else f"{e.at(MULTIPLY)}*{stride}")
    if constant or not terms:
        terms.append(str(constant))
    return " + ".join(terms), sizes[len(position)]


def extract(p: FunctionPrinter, op: vector.ExtractOp) -> None:
    """vector.extract of one element or of a part."""
    source = p.atom(op.vector)
    lanes = lanes_of(source)
    where, count = _flat_position(p, op, op.vector.type.get_shape())
    if not isinstance(op.result.type, VectorType):
        lane = _lane(f"{source.text}[{where}]", lanes)
        made = combine(lane.text, PRIMARY, lane.type, (source,), lane.low, lane.high)
        p.define(op.result, made)
        return
    result = Lanes(lanes.element, count, lanes.is_mask)
    texts = [f"{source.text}[{_plus(where, i)}]" for i in range(count)]
    p.define(op.result, from_elements(p, op.result, result, texts))


def _plus(where: str, offset: int) -> str:
    return str(int(where) + offset) if where.isdigit() else f"{where} + {offset}"


def insert(p: FunctionPrinter, op: vector.InsertOp) -> None:
    """vector.insert of one element or of a part, into a copy of the vector."""
    target = p.expr(op.dest)
    lanes = lanes_of(target)
    is_vector = isinstance(op.source.type, VectorType)
    source = p.atom(op.source) if is_vector else p.expr(op.source)
    where, count = _flat_position(p, op, op.dest.type.get_shape())
    name = p.new_name(op.result, "v")
    p.statement(f"{p.lanes_name(lanes)} {name} = {target.text};")
    if is_vector:
        source = p.settle(converted(p, source, lanes)) if lanes.is_mask else source
        for i in range(count):
            p.statement(f"{name}[{_plus(where, i)}] = {source.text}[{i}];")
    else:
        value = f"-{source.at(UNARY)}" if lanes.is_mask else source.text
        p.statement(f"{name}[{where}] = {_stored(value, lanes)};")
    p.define(op.result, variable(name, target))


def create_mask(p: FunctionPrinter, op: vector.CreateMaskOp) -> None:
    """vector.create_mask: lane i is set if i is below the size, in every dimension."""
    lanes = _mask_for_user(p, op.mask_vector, p.vector(op.mask_vector.type, op))
    shape: tuple[int, ...] = op.mask_vector.type.get_shape()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- a vector, by the op's own check
    sizes = [p.atom(v) for v in op.mask_dim_sizes]
    t = p.lanes_name(lanes)
    name = "create_mask_" + "_".join([*map(str, shape), t])
    tests: list[str] = []
    stride = lanes.count
    for axis, extent in enumerate(shape):
        stride //= extent
        place = "lane" if stride == 1 else f"lane / {stride}"
        place = (
            place if axis == 0 else f"({place}) % {extent}" if stride > 1 else f"lane % {extent}"
        )
        tests.append(f"{place} < n{axis}")
    parameters = ", ".join(f"int64_t n{i}" for i in range(len(shape))) or "void"
    c = lanes.element.ctype
    loop = f"""    {t} mask = {{0}};
    for (int lane = 0; lane < {lanes.count}; lane++)
        mask[lane] = ({c})-({" && ".join(tests) or "1"});
    return mask;"""
    if len(shape) == 1 and lanes.width <= 64:
        numbers = ", ".join(map(str, range(lanes.width)))
        loop = f"""    {c} n = ({c})(n0 < 0 ? 0 : n0 < {lanes.count} ? n0 : {lanes.count});
    {t} lane = {{{numbers}}}, end = {{{", ".join(["n"] * lanes.width)}}};
    return ({t})(lane < end);"""
    p.prelude.need(name, lambda _: f"{INLINE} {t} {name}({parameters})\n{{\n{loop}\n}}")
    text = f"{name}({', '.join(e.text for e in sizes)})"
    p.define(op.mask_vector, vector_expr(p, text, PRIMARY, lanes, *sizes))


def _mask_for_user(p: FunctionPrinter, value: SSAValue, lanes: Lanes) -> Lanes:
    """A mask's lanes as wide as what its first user selects, loads or stores."""
    if not lanes.is_mask:
        return lanes
    for use in value.uses:
        user = use.operation
        if isinstance(user, arith.SelectOp | vector.MaskedLoadOp | vector.MaskedStoreOp):
            other = p.vector(user.operands[-1].type, user)
            if not other.is_mask:
                return other.mask()
    return lanes


def bitcast(p: FunctionPrinter, op: vector.BitcastOp) -> None:
    """vector.bitcast: the same bytes read as other lanes."""
    result = p.vector(op.result.type, op)
    source = p.expr(op.source)
    lanes = lanes_of(source)
    if lanes.is_mask or result.is_mask:
        p.fail(op, "masks have no bits to reinterpret", "extend the mask to integers first")
    if lanes.bytes != result.bytes:
        p.fail(op, f"{lanes.count} lanes do not fill whole vectors", "use a power of two of lanes")
    text = f"({p.lanes_name(result)}){source.at(UNARY)}"
    p.define(op.result, vector_expr(p, text, UNARY, result, source))


_REDUCTIONS: dict[str, Any] = {
    "add": (arith.AddfOp, arith.AddiOp),
    "mul": (arith.MulfOp, arith.MuliOp),
    "minsi": (arith.MinSIOp, arith.MinSIOp),
    "minui": (arith.MinUIOp, arith.MinUIOp),
    "maxsi": (arith.MaxSIOp, arith.MaxSIOp),
    "maxui": (arith.MaxUIOp, arith.MaxUIOp),
    "minnumf": (arith.MinnumfOp, arith.MinnumfOp),
    "maxnumf": (arith.MaxnumfOp, arith.MaxnumfOp),
    "minimumf": (arith.MinimumfOp, arith.MinimumfOp),
    "maximumf": (arith.MaximumfOp, arith.MaximumfOp),
    "and": (arith.AndIOp, arith.AndIOp),
    "or": (arith.OrIOp, arith.OrIOp),
    "xor": (arith.XOrIOp, arith.XOrIOp),
}


def reduction(p: FunctionPrinter, op: vector.ReductionOp) -> None:
    """vector.reduction, in the order of the lanes: (((acc + v0) + v1) + …)."""
    source = p.atom(op.vector)
    lanes = lanes_of(source)
    kind = op.kind.data.value
    t = I1 if lanes.is_mask else lanes.element
    rule = SCALAR_RULES[_REDUCTIONS[kind][0 if t.is_float else 1]]
    name = f"reduce_{kind}_{_key(lanes)}" + (
        f"_of_{lanes.count}" if lanes.count != lanes.width else ""
    )
    c = t.ctype
    low, high = (0, 0) if t.is_float else (t.low, t.high)
    step = rule(p, op, t, t, Expr("r", PRIMARY, t, low, high), _lane("v[lane]", lanes))
    start = 1 if op.acc is None else 0
    p.prelude.need(
        f"{name}_from_{start}",
        lambda _: (
            f"""{INLINE} {c} {name}_from_{start}({c} r, {p.lanes_name(lanes)} v)
{{
    for (int lane = {start}; lane < {lanes.count}; lane++)
        r = {step.text};
    return r;
}}"""
        ),
    )
    first = p.expr(op.acc) if op.acc is not None else _lane(f"{source.text}[0]", lanes)
    text = f"{name}_from_{start}({first.text}, {source.text})"
    p.define(op.dest, combine(text, PRIMARY, t, (first, source), low, high))


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
}
"""How each op that is not elementwise and touches no memory is printed."""
