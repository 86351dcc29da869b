"""Vectors as C values: building, moving and reducing lanes.

A vector of n elements is a GCC vector of the next power of two of lanes; its typedef is aligned
as one element and may alias, so that memory of any address is read and written through it. A
vector of i1 is a mask: signed integer lanes of 0 and -1, as wide as what was compared; masks of
different widths are converted where they meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import SSAValue

from uopc.lowering.c_float import SCALAR_RULES, float_literal
from uopc.lowering.c_integer import literal, wrap
from uopc.lowering.c_style import FunctionPrinter, combine, variable
from uopc.lowering.c_types import (
    ADD,
    I1,
    MULTIPLY,
    PRIMARY,
    UNARY,
    Expr,
    Lanes,
    Scalar,
    is_vector,
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


def vector_shape(value: SSAValue) -> tuple[int, ...]:
    """The sizes of a value known to be a vector."""
    if not is_vector(value.type):
        raise AssertionError("a scalar where the verifier promised a vector")
    return value.type.get_shape()


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


def stored_lane(value: str, lanes: Lanes) -> str:
    return f"({lanes.element.ctype})({value})" if lanes.is_mask else value


def lane_value(text: str, lanes: Lanes) -> Expr:
    """One lane as a scalar; of a mask, 0 or 1."""
    if lanes.is_mask:
        return Expr(f"({text} & 1)", PRIMARY, I1, 0, 1)
    t = lanes.element
    low, high = (0, 0) if t.is_float else (t.low, t.high)
    return Expr(text, PRIMARY, t, low, high)


def lanes_key(lanes: Lanes) -> str:
    return f"{'mask_' if lanes.is_mask else ''}{lanes.element.key}x{lanes.width}"


def unsigned_lanes(p: FunctionPrinter, lanes: Lanes) -> str:
    """The C type of as many unsigned lanes of the same width."""
    bits = lanes.element.bits
    element = Scalar(f"u{bits}", f"uint{bits}_t", bits, signed=False)
    return p.lanes_name(Lanes(element, lanes.count))


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
    if not is_vector(source_type):
        p.define(op.vector, splat(p, p.expr(op.source), result))
        return
    source = p.atom(op.source)
    lanes = lanes_of(source)
    if result.is_mask:
        result = Lanes(lanes.element, result.count, is_mask=True)
    if lanes.count == result.count:
        p.define(op.vector, source)
        return
    picks = _broadcast_lanes(source_type.get_shape(), vector_shape(op.vector))
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
    rows = vector_shape(op.v1)[:1]
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
    where, count = _flat_position(p, op, vector_shape(op.vector))
    if not is_vector(op.result.type):
        lane = lane_value(f"{source.text}[{where}]", lanes)
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
    by_part = is_vector(op.source.type)
    source = p.atom(op.source) if by_part else p.expr(op.source)
    where, count = _flat_position(p, op, vector_shape(op.dest))
    name = p.new_name(op.result, "v")
    p.statement(f"{p.lanes_name(lanes)} {name} = {target.text};")
    if by_part:
        source = p.settle(converted(p, source, lanes)) if lanes.is_mask else source
        for i in range(count):
            p.statement(f"{name}[{_plus(where, i)}] = {source.text}[{i}];")
    else:
        value = f"-{source.at(UNARY)}" if lanes.is_mask else source.text
        p.statement(f"{name}[{where}] = {stored_lane(value, lanes)};")
    p.define(op.result, variable(name, target))


def create_mask(p: FunctionPrinter, op: vector.CreateMaskOp) -> None:
    """vector.create_mask: lane i is set if i is below the size, in every dimension."""
    lanes = _mask_for_user(p, op.mask_vector, p.vector(op.mask_vector.type, op))
    shape: tuple[int, ...] = vector_shape(op.mask_vector)
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
    name = f"reduce_{kind}_{lanes_key(lanes)}" + (
        f"_of_{lanes.count}" if lanes.count != lanes.width else ""
    )
    c = t.ctype
    low, high = (0, 0) if t.is_float else (t.low, t.high)
    step = rule(p, op, t, t, Expr("r", PRIMARY, t, low, high), lane_value("v[lane]", lanes))
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
    first = p.expr(op.acc) if op.acc is not None else lane_value(f"{source.text}[0]", lanes)
    text = f"{name}_from_{start}({first.text}, {source.text})"
    p.define(op.dest, combine(text, PRIMARY, t, (first, source), low, high))
