"""Loads and stores, of elements and of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import BoolAttr

from uopc.dialects.memref_extensions import PrefetchOp
from uopc.lowering.c_address import element, pointer
from uopc.lowering.c_guards import load_alone
from uopc.lowering.c_lanes import INLINE, as_mask, converted, lanes_of, vector_expr
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import PRIMARY, UNARY, Buffer, Expr, Lanes
from uopc.lowering.c_vector import select_helper


def load(p: FunctionPrinter, op: memref.LoadOp) -> None:
    """memref.load."""
    buffer = p.buffer(op.memref)
    made = element(p, op, buffer, op.indices)
    made.reads = True
    t = buffer.element
    if not t.is_float:
        made.low, made.high = t.low, t.high
    if buffer.unsigned:
        made.text, made.level = f"({t.ctype}){made.text}", UNARY
    p.define(op.res, made)


def writable(p: FunctionPrinter, op: Any, buffer: Buffer) -> None:
    """Refuse to write what is declared read-only."""
    if buffer.is_const:
        p.fail(
            op,
            f"writes '{buffer.pointer}', which is constant or llvm.readonly",
            "drop the attribute from the argument, or write to another buffer",
        )


def store(p: FunctionPrinter, op: memref.StoreOp) -> None:
    """memref.store."""
    buffer = p.buffer(op.memref)
    writable(p, op, buffer)
    target = element(p, op, buffer, op.indices)
    value = p.expr(op.value)
    p.flush_reads()
    text, compound = target.text, value.compound
    if compound is not None and compound[0] == text:
        p.statement(f"{text} {compound[1]}= {compound[2]};")
    else:
        p.statement(f"{text} = {value.text};")


def prefetch(p: FunctionPrinter, op: PrefetchOp) -> None:
    """memref.prefetch: GNU C's, which gcc and clang have."""
    if not op.isDataCache.value.data:
        p.fail(op, "asks for instructions, which C has no way to do", "ask for data")
    where = element(p, op, p.buffer(op.memref), op.indices)
    write, locality = int(bool(op.isWrite.value.data)), op.localityHint.value.data
    p.statement(f"__builtin_prefetch(&{where.text}, {write}, {locality});")


def vector_load(p: FunctionPrinter, op: vector.LoadOp) -> None:
    """vector.load: contiguous elements, at any address."""
    buffer = p.buffer(op.base)
    lanes = p.vector(op.result.type, op)
    where = pointer(p, op, buffer, op.indices)
    p.define(op.result, _loaded(p, where, lanes))


def _loaded(p: FunctionPrinter, where: Expr, lanes: Lanes) -> Expr:
    t = p.lanes_name(lanes)
    if lanes.count == lanes.width and not lanes.is_mask:
        made = vector_expr(p, f"*(const {t} *){where.at(UNARY)}", UNARY, lanes, where)
    else:
        name = _partial_load(p, lanes)
        made = vector_expr(p, f"{name}({where.text})", PRIMARY, lanes, where)
    made.reads = True
    return made


def _memory_type(lanes: Lanes) -> str:
    return "uint8_t" if lanes.is_mask else lanes.element.ctype


def _partial_load(p: FunctionPrinter, lanes: Lanes) -> str:
    """load: lanes that are fewer than the vector has, or truth values of a byte each."""
    t = p.lanes_name(lanes)
    kind = "mask" if lanes.is_mask else lanes.element.key
    name = f"load_{lanes.count}_{kind}_{t}"
    value = f"({lanes.element.ctype})-p[lane]" if lanes.is_mask else "p[lane]"
    return p.prelude.need(
        name,
        lambda _: (
            f"""{INLINE} {t} {name}(const {_memory_type(lanes)} *p)
{{
    {t} r = {{0}};
    for (int lane = 0; lane < {lanes.count}; lane++)
        r[lane] = {value};
    return r;
}}"""
        ),
    )


def vector_store(p: FunctionPrinter, op: vector.StoreOp) -> None:
    """vector.store."""
    buffer = p.buffer(op.base)
    writable(p, op, buffer)
    where = pointer(p, op, buffer, op.indices)
    value = p.expr(op.vector)
    p.flush_reads()
    lanes = lanes_of(value)
    t = p.lanes_name(lanes)
    if lanes.count == lanes.width and not lanes.is_mask:
        wanted = op.properties.get("nontemporal") == BoolAttr.from_bool(True)
        if wanted and lanes.bytes in _STREAMING:
            p.streams = True
            p.statement(f"{_stream(p, lanes)}({where.text}, {value.text});")
        else:
            p.statement(f"*({t} *){where.at(UNARY)} = {value.text};")
        return
    kind = "mask" if lanes.is_mask else lanes.element.key
    name = f"store_{lanes.count}_{kind}_{t}"
    stored = "(uint8_t)(v[lane] & 1)" if lanes.is_mask else "v[lane]"
    p.prelude.need(
        name,
        lambda _: (
            f"""{INLINE} void {name}({_memory_type(lanes)} *p, {t} v)
{{
    for (int lane = 0; lane < {lanes.count}; lane++)
        p[lane] = {stored};
}}"""
        ),
    )
    p.statement(f"{name}({where.text}, {value.text});")


_STREAMING = {16: ("SSE", "movntps"), 32: ("AVX", "movntps256"), 64: ("AVX512F", "movntps512")}
"""By the bytes of a vector: what the machine must have, and gcc's name of the store."""


def _stream(p: FunctionPrinter, lanes: Lanes) -> str:
    """stream: a whole vector, past the caches where its place is aligned."""
    t, size = p.lanes_name(lanes), lanes.bytes
    feature, builtin = _STREAMING[size]
    name = f"stream_{t}"
    return p.prelude.need(
        name,
        lambda _: (
            f"""{INLINE} void {name}({lanes.element.ctype} *p, {t} v)
{{
    typedef float floats __attribute__((vector_size({size}), may_alias));
    if ((uintptr_t)p % {size} != 0) {{
        *({t} *)p = v;
        return;
    }}
#if defined(__clang__)
    __builtin_nontemporal_store((floats)v, (floats *)p);
#elif defined(__{feature}__)
    __builtin_ia32_{builtin}((float *)p, (floats)v);
#else
    *({t} *)p = v;
#endif
}}"""
        ),
    )


def end_streams(p: FunctionPrinter) -> None:
    """Before a function returns: what it stored past the caches is seen by who waits for it."""
    if not p.streams:
        return
    name = p.prelude.need(
        "streams_end",
        lambda _: (
            """static inline void streams_end(void)
{
#if defined(__SSE__)
    __builtin_ia32_sfence();
#endif
}"""
        ),
    )
    p.statement(f"{name}();")


def masked_load(p: FunctionPrinter, op: vector.MaskedLoadOp) -> None:
    """vector.maskedload: only lanes whose mask is set touch memory."""
    buffer = p.buffer(op.base)
    lanes = p.vector(op.result.type, op)
    where = pointer(p, op, buffer, op.indices)
    other = p.expr(op.pass_thru)
    if lanes.is_mask:
        lanes = lanes_of(other)
    mask = converted(p, p.expr(op.mask), lanes.mask())
    t, m = p.lanes_name(lanes), p.lanes_name(lanes.mask())
    name = f"masked_load_{_kind(lanes)}{t}"
    value = f"({lanes.element.ctype})-p[lane]" if lanes.is_mask else "p[lane]"
    body = f"""    for (int lane = 0; lane < {lanes.count}; lane++)
        if (mask[lane]) {{
            {load_alone(p)}();
            other[lane] = {value};
        }}
    return other;"""
    if (form := _masked_form(lanes)) is not None:
        read = f"({t})read"
        if lanes.bytes < 64:
            read = f"{select_helper(p, lanes)}(mask, {read}, other)"
        body = f"""#if {form.condition}
{form.types}
    whole read = {form.load};
    return {read};
#else
{body}
#endif"""
    p.prelude.need(
        name,
        lambda _: (
            f"{INLINE} {t} {name}(const {_memory_type(lanes)} *p, {m} mask, {t} other)\n"
            f"{{\n{body}\n}}"
        ),
    )
    made = vector_expr(
        p, f"{name}({where.text}, {mask.text}, {other.text})", PRIMARY, lanes, where, mask, other
    )
    made.reads = True
    p.define(op.result, made)


def _kind(lanes: Lanes) -> str:
    """What a helper's name has to tell besides the vector type."""
    if lanes.is_mask:
        return f"mask{lanes.count}_"
    return "" if lanes.count == lanes.width else f"{lanes.count}_"


@dataclass(frozen=True)
class MaskedForm:
    """The x86 instructions that load and store the lanes of a mask."""

    condition: str
    """Where the compiler's builtins are there."""
    types: str
    """The vector types that they take: `whole` of data, `bits` of mask."""
    load: str
    """Of `p`, `mask` and, in the widest, `other`."""
    store: str
    """Of `p`, `mask` and `v`."""


def _masked_form(lanes: Lanes) -> MaskedForm | None:
    if lanes.is_mask or lanes.count != lanes.width:
        return None
    if lanes.element.size not in (4, 8) or lanes.bytes not in (16, 32, 64):
        return None
    wide = lanes.element.size == 8
    size = f"__attribute__((vector_size({lanes.bytes}), may_alias))"
    types = f"    typedef {'double' if wide else 'float'} whole {size};\n"
    types += f"    typedef {'long long' if wide else 'int'} bits {size};"
    if lanes.bytes < 64:
        suffix = ("pd" if wide else "ps") + ("256" if lanes.bytes == 32 else "")
        return MaskedForm(
            "defined(__AVX__)",
            types,
            f"__builtin_ia32_maskload{suffix}((const whole *)p, (bits)mask)",
            f"__builtin_ia32_maskstore{suffix}((whole *)p, (bits)mask, (whole)v)",
        )
    element = ("double" if wide else "float") + " __attribute__((may_alias))"
    suffix, compare = ("pd", "q") if wide else ("ps", "d")
    chosen = f"__builtin_ia32_cmp{compare}512_mask((bits)mask, (bits){{0}}, 4, -1)"
    return MaskedForm(
        "defined(__AVX512F__) && !defined(__clang__)",
        f"{types}\n    typedef {element} item;",
        f"__builtin_ia32_loadu{suffix}512_mask((const item *)p, (whole)other, {chosen})",
        f"__builtin_ia32_storeu{suffix}512_mask((item *)p, (whole)v, {chosen})",
    )


def masked_store(p: FunctionPrinter, op: vector.MaskedStoreOp) -> None:
    """vector.maskedstore."""
    buffer = p.buffer(op.base)
    writable(p, op, buffer)
    where = pointer(p, op, buffer, op.indices)
    value = p.expr(op.value_to_store)
    lanes = lanes_of(value)
    mask = as_mask(p, p.expr(op.mask), lanes)
    p.flush_reads()
    t, m = p.lanes_name(lanes), p.lanes_name(lanes.mask())
    name = f"masked_store_{_kind(lanes)}{t}"
    stored = "(uint8_t)(v[lane] & 1)" if lanes.is_mask else "v[lane]"
    body = f"""    for (int lane = 0; lane < {lanes.count}; lane++)
        if (mask[lane]) {{
            {load_alone(p)}();
            p[lane] = {stored};
        }}"""
    if (form := _masked_form(lanes)) is not None:
        body = f"""#if {form.condition}
{form.types}
    {form.store};
#else
{body}
#endif"""
    head = f"{INLINE} void {name}({_memory_type(lanes)} *p, {m} mask, {t} v)"
    p.prelude.need(name, lambda _: f"{head}\n{{\n{body}\n}}")
    p.statement(f"{name}({where.text}, {mask.text}, {value.text});")


ACCESS_HANDLERS: dict[Any, Any] = {
    memref.LoadOp: load,
    memref.StoreOp: store,
    PrefetchOp: prefetch,
    vector.LoadOp: vector_load,
    vector.StoreOp: vector_store,
    vector.MaskedLoadOp: masked_load,
    vector.MaskedStoreOp: masked_store,
}
"""How each op that reads or writes elements is printed."""
