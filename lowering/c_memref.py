"""Buffers: where a memref's elements lie, and the ops that read, write, make and reshape them.

A memref is a C pointer to its element zero; `x[i, j]` of a memref<4x8xf32> is `x[i*8 + j]`.
Strides that are not in the type have to be known while printing: of a buffer made here
(memref.alloc of dynamic size, memref.subview) they are expressions; of a function's argument
with `?` in an inner dimension they are not, which is an error in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import Operation, SSAValue

from uopc.lowering.c_integer import literal
from uopc.lowering.c_style import FunctionPrinter, combine
from uopc.lowering.c_types import (
    ADD,
    INDEX,
    MULTIPLY,
    PRIMARY,
    UNARY,
    Buffer,
    Expr,
    Lanes,
    Scalar,
)
from uopc.lowering.c_vector import INLINE, as_mask, converted, lanes_of, vector_expr

Size = int | Expr | None
"""A size, stride or offset: a number, an expression, or unknown."""

POINTER = Scalar("pointer", "void *", 64, signed=False)


def pointer_type(element: Scalar) -> Scalar:
    """The type of a variable that points to such elements."""
    return Scalar("pointer", f"{element.ctype} *", 64, signed=False)


# ---- addresses


def _times(p: FunctionPrinter, a: Size, b: Size) -> Size:
    """The product of two sizes; nothing about it can overflow that fits in memory."""
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if isinstance(a, int):
        a, b = b, a
    if b == 1:
        return a
    if b == 0:
        return 0
    left = a if isinstance(a, Expr) else literal(int(a or 0), INDEX)
    right = b.at(UNARY) if isinstance(b, Expr) else str(b)
    operands = (left, b) if isinstance(b, Expr) else (left,)
    made = combine(f"{left.at(MULTIPLY)}*{right}", MULTIPLY, INDEX, operands, INDEX.low, INDEX.high)
    made.sizelike = True
    return made


def total(terms: Sequence[int | Expr], constant: int = 0) -> Expr:
    """The sum of the terms, constants last: `i*8 + j + 3`."""
    parts: list[Expr] = []
    for term in terms:
        if isinstance(term, int):
            constant += term
        elif term.is_literal:
            constant += term.low
        else:
            parts.append(term)
    if not parts:
        return literal(constant, INDEX)
    text = " + ".join(e.at(ADD) for e in parts)
    if constant:
        text += f" {'-' if constant < 0 else '+'} {abs(constant)}"
    if len(parts) == 1 and not constant:
        return parts[0]
    made = combine(text, ADD, INDEX, parts, INDEX.low, INDEX.high)
    made.sizelike = True
    return made


def place(p: FunctionPrinter, op: Any, buffer: Buffer, indices: Sequence[SSAValue]) -> Expr:
    """The element's number from element zero."""
    terms: list[int | Expr] = []
    for index, stride in zip(indices, buffer.strides, strict=True):
        e = p.expr(index)
        if e.is_literal and e.low == 0:
            continue
        if stride is None:
            p.fail(
                op,
                f"the strides of '{buffer.pointer}' are not known to the C function",
                "make the inner dimensions static, or flatten the buffer to rank 1 and compute "
                "the position from sizes passed as index arguments",
            )
        term = _times(p, e.low if e.is_literal else e, stride)
        if term is not None:
            terms.append(term)
    return total(terms)


def element(p: FunctionPrinter, op: Any, buffer: Buffer, indices: Sequence[SSAValue]) -> Expr:
    """`x[i*8 + j]`, as a C lvalue."""
    where = place(p, op, buffer, indices)
    made = combine(f"{buffer.pointer}[{where.text}]", PRIMARY, buffer.element, (where,))
    made.mutable = made.mutable | buffer.mutable
    return made


def pointer(p: FunctionPrinter, op: Any, buffer: Buffer, indices: Sequence[SSAValue]) -> Expr:
    """`x + i*8`, the address of an element, in the type that the op has for it."""
    made = _offset_pointer(buffer, place(p, op, buffer, indices))
    if buffer.unsigned:
        const = "const " if buffer.is_const else ""
        made.text = f"({const}{buffer.element.ctype} *){made.at(UNARY)}"
        made.level = UNARY
    return made


def _offset_pointer(buffer: Buffer, where: Expr) -> Expr:
    if where.is_literal and where.low == 0:
        made = Expr(buffer.pointer, PRIMARY, POINTER)
    else:
        sign, text = "+", where.at(MULTIPLY)
        if where.is_literal and where.low < 0:
            sign, text = "-", str(-where.low)
        made = combine(f"{buffer.pointer} {sign} {text}", ADD, POINTER, (where,))
    made.mutable = made.mutable | buffer.mutable
    return made


# ---- layouts


def strides_of(shape: Sequence[Size], p: FunctionPrinter) -> tuple[Size, ...]:
    """Row-major strides of a shape."""
    strides: list[Size] = []
    stride: Size = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride = _times(p, stride, extent)
    return tuple(reversed(strides))


def static_shape(attribute: MemRefType[Any]) -> tuple[int | None, ...]:
    """The type's sizes, None where dynamic."""
    return tuple(None if n == DYNAMIC_INDEX else n for n in attribute.get_shape())


def layout(
    p: FunctionPrinter, op: Operation, attribute: MemRefType[Any], shape: Sequence[Size]
) -> tuple[tuple[Size, ...], Size]:
    """Strides and offset by the type; what the type leaves open is None."""
    form = attribute.layout
    if isinstance(form, NoneAttr):
        return strides_of(shape, p), 0
    if isinstance(form, StridedLayoutAttr):
        return tuple(form.get_strides()), form.get_offset()
    if isinstance(form, AffineMapAttr):
        found = _affine_strides(form, len(shape))
        if found is not None:
            return found
    p.fail(
        op,
        f"the layout of {attribute} has no form in C",
        "use a strided layout: strided<[8, 1], offset: 4>",
    )


def _affine_strides(form: AffineMapAttr, rank: int) -> tuple[tuple[int, ...], int] | None:
    """Strides and offset of a linear map, found by evaluating it, checked at a mixed point."""
    m = form.data
    if m.num_symbols or len(m.results) != 1 or m.num_dims != rank:
        return None

    def at(point: Sequence[int]) -> int:
        return m.eval(list(point), [])[0]

    offset = at([0] * rank)
    strides = tuple(at([int(i == axis) for i in range(rank)]) - offset for axis in range(rank))
    for scale in (2, 3, 7, 31):
        point = [scale + i for i in range(rank)]
        if at(point) != offset + sum(s * x for s, x in zip(strides, point, strict=True)):
            return None
    return strides, offset


def argument_buffer(
    p: FunctionPrinter, op: Operation, attribute: MemRefType[Any], name: str
) -> Buffer:
    """The buffer behind a pointer of which only the type is known."""
    kind = p.scalar(attribute.element_type, op)
    shape = static_shape(attribute)
    strides, offset = layout(p, op, attribute, shape)
    return Buffer(name, kind, shape, strides, base_offset=offset)


def _new_pointer(
    p: FunctionPrinter, value: SSAValue, expr: Expr, like: Buffer, ctype: str, fallback: str
) -> str:
    """A pointer variable for a derived buffer, or the pointer itself where it is the same."""
    if expr.is_atom and ctype == like.ctype:
        return expr.text
    name = p.new_name(value, fallback)
    const = "const " if like.is_const else ""
    text = expr.text
    if ctype != like.ctype:
        text = f"({const}{ctype} *){expr.at(UNARY)}"
    p.declaration(name, f"{const}{ctype} *{name} = {text};")
    return name


# ---- loads and stores


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
    kind = f"mask{lanes.count}_" if lanes.is_mask else ""
    name = f"masked_load_{kind}{t}"
    value = f"({lanes.element.ctype})-p[lane]" if lanes.is_mask else "p[lane]"
    loop = f"""    for (int lane = 0; lane < {lanes.width}; lane++)
        if (mask[lane])
            other[lane] = {value};
    return other;"""
    p.prelude.need(
        name,
        lambda _: (
            f"{INLINE} {t} {name}(const {_memory_type(lanes)} *p, {m} mask, {t} other)\n"
            f"{{\n{loop}\n}}"
        ),
    )
    made = vector_expr(
        p, f"{name}({where.text}, {mask.text}, {other.text})", PRIMARY, lanes, where, mask, other
    )
    made.reads = True
    p.define(op.result, made)


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
    kind = f"mask{lanes.count}_" if lanes.is_mask else ""
    name = f"masked_store_{kind}{t}"
    stored = "(uint8_t)(v[lane] & 1)" if lanes.is_mask else "v[lane]"
    p.prelude.need(
        name,
        lambda _: (
            f"""{INLINE} void {name}({_memory_type(lanes)} *p, {m} mask, {t} v)
{{
    for (int lane = 0; lane < {lanes.width}; lane++)
        if (mask[lane])
            p[lane] = {stored};
}}"""
        ),
    )
    p.statement(f"{name}({where.text}, {mask.text}, {value.text});")


# ---- storage


def _full_shape(p: FunctionPrinter, op: Any, sizes: Sequence[SSAValue], t: Any) -> tuple[Size, ...]:
    dynamic = iter(sizes)
    return tuple(p.atom(next(dynamic)) if n is None else n for n in static_shape(t))


def _sized(e: Size) -> Size:
    return e.low if isinstance(e, Expr) and e.is_literal else e


def _count(p: FunctionPrinter, shape: Sequence[Size]) -> Expr:
    count: Size = 1
    for extent in shape:
        count = _times(p, count, extent)
    return count if isinstance(count, Expr) else literal(int(count or 0), INDEX)


def _fresh(p: FunctionPrinter, op: Any) -> tuple[Buffer, Expr]:
    """The buffer of an allocation, not yet declared, and its number of elements."""
    t = op.memref.type
    shape = tuple(_sized(e) for e in _full_shape(p, op, op.dynamic_sizes, t))
    strides, _ = layout(p, op, t, shape)
    if not isinstance(t.layout, NoneAttr) and strides != strides_of(shape, p):
        p.fail(op, "allocates with a layout", "allocate row-major and take a memref.subview")
    buffer = Buffer("", p.scalar(t.element_type, op), shape, strides)
    return buffer, _count(p, shape)


def _alignment(op: Any, size: int, least: int) -> int:
    attribute = op.alignment
    return max(attribute.value.data if attribute is not None else least, size)


def alloc(p: FunctionPrinter, op: memref.AllocOp) -> None:
    """memref.alloc: from the heap; running out of memory ends the program."""
    buffer, count = _fresh(p, op)
    t = buffer.element
    align = _alignment(op, t.size, 16)
    p.prelude.header("stdlib.h")
    name = p.prelude.need(
        "alloc_bytes",
        lambda _: (
            """static inline void *alloc_bytes(int64_t count, int64_t size, int64_t align)
{
    void *memory = 0;
    if (count >= 0 && count < (INT64_MAX - align) / size) {
        int64_t bytes = count * size / align * align + align;
        memory = align <= 16 ? malloc((size_t)bytes) : aligned_alloc((size_t)align, (size_t)bytes);
    }
    if (!memory)
        abort();
    return memory;
}"""
        ),
    )
    buffer.pointer = p.new_name(op.memref, "buffer")
    p.statement(
        f"{t.ctype} *{buffer.pointer} = ({t.ctype} *){name}({count.text}, {t.size}, {align});"
    )
    p.values[op.memref] = buffer


def alloca(p: FunctionPrinter, op: memref.AllocaOp) -> None:
    """memref.alloca: an array of the block it stands in, or stack memory of run-time size."""
    buffer, count = _fresh(p, op)
    t = buffer.element
    align = _alignment(op, t.size, 64 if count.low * t.size >= 64 else t.size)
    buffer.is_local = True
    buffer.pointer = name = p.new_name(op.memref, "buffer")
    if count.is_literal:
        if count.low * t.size > LARGEST_ARRAY:
            p.fail(
                op,
                f"{count.low * t.size} bytes do not fit on a stack",
                "use memref.alloc, or a memref.view of the workspace",
            )
        p.statement(
            f"{t.ctype} {name}[{max(count.low, 1)}]"
            + (f" __attribute__((aligned({align})));" if align > t.size else ";")
        )
        if not _is_read(p, op.memref):
            p.statement(f"(void){name};")
    else:
        text = f"__builtin_alloca((size_t){count.at(UNARY)} * {t.size} + 1)"
        p.prelude.header("stddef.h")
        p.statement(f"{t.ctype} *{name} = ({t.ctype} *){text};")
    p.values[op.memref] = buffer


LARGEST_ARRAY = 4 << 20
"""Bytes of one local array: half of the usual stack."""


def _is_read(p: FunctionPrinter, value: SSAValue) -> bool:
    return any(
        use.operation in p.live.live and not isinstance(use.operation, memref.StoreOp)
        for use in value.uses
    )


def dealloc(p: FunctionPrinter, op: memref.DeallocOp) -> None:
    """memref.dealloc of what memref.alloc gave."""
    buffer = p.buffer(op.memref)
    p.flush_reads()
    p.prelude.header("stdlib.h")
    p.statement(f"free({buffer.pointer});")


def get_global(p: FunctionPrinter, op: memref.GetGlobalOp) -> None:
    """memref.get_global: the array itself."""
    found = p.symbols.globals.get(op.name_.string_value())
    if found is None:
        p.fail(op, f"no memref.global @{op.name_.string_value()}", "define it in this module")
    name, is_const = found
    p.used_arrays.add(name)
    buffer = argument_buffer(p, op, op.memref.type, name)  # pyright: ignore[reportArgumentType] -- a memref, by the op's definition
    buffer.is_const = is_const
    p.values[op.memref] = buffer


# ---- the same memory under another shape


def view(p: FunctionPrinter, op: memref.ViewOp) -> None:
    """memref.view: bytes from a place on, as elements of another type."""
    source = p.buffer(op.source)
    t = op.result.type
    kind = p.scalar(t.element_type, op)
    shape = tuple(_sized(e) for e in _full_shape(p, op, op.sizes, t))
    start = p.expr(op.byte_shift)
    buffer = Buffer("", kind, shape, strides_of(shape, p), is_const=source.is_const)
    at = _offset_pointer(source, start)
    buffer.pointer = _new_pointer(p, op.result, at, source, kind.ctype, "view")
    buffer.is_local = source.is_local
    p.values[op.result] = buffer


def _mixed(p: FunctionPrinter, static: Any, dynamic: Sequence[SSAValue]) -> list[int | Expr]:
    values = get_dynamic_index_list(static.get_values(), dynamic, DYNAMIC_INDEX)
    found: list[int | Expr] = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
        else:
            e = p.atom(value)
            found.append(e.low if e.is_literal else e)
    return found


def subview(p: FunctionPrinter, op: memref.SubviewOp) -> None:
    """memref.subview: element zero moves, strides are multiplied; unit dimensions may drop."""
    source = p.buffer(op.source)
    offsets = _mixed(p, op.static_offsets, op.offsets)
    sizes = _mixed(p, op.static_sizes, op.sizes)
    steps = _mixed(p, op.static_strides, op.strides)
    terms: list[int | Expr] = []
    for offset, stride in zip(offsets, source.strides, strict=True):
        if offset == 0:
            continue
        term = _times(p, offset, stride)
        if term is None:
            p.fail(op, f"the strides of '{source.pointer}' are not known", "make them static")
        terms.append(term)
    strides = [_times(p, a, b) for a, b in zip(source.strides, steps, strict=True)]
    kept = _kept_axes(sizes, static_shape(op.result.type))
    if kept is None:
        p.fail(op, "drops a dimension whose size is not 1", "drop unit dimensions only")
    start = total(terms)
    buffer = Buffer(
        "",
        source.element,
        tuple(sizes[i] for i in kept),
        tuple(strides[i] for i in kept),
        is_const=source.is_const,
        unsigned=source.unsigned,
        base_offset=_sum_of(source.base_offset, start),
    )
    at = _offset_pointer(source, start)
    buffer.pointer = _new_pointer(p, op.result, at, source, source.ctype, "part")
    buffer.is_local, buffer.mutable = source.is_local, source.mutable
    p.values[op.result] = buffer


def _sum_of(base: Size, start: Expr) -> Size:
    if base is None:
        return None
    found = total([base, start])
    return found.low if found.is_literal else found


def _kept_axes(sizes: Sequence[Size], target: Sequence[int | None]) -> tuple[int, ...] | None:
    """Which axes remain in a subview of lower rank: all but some of size one.

    Where several choices fit, any is right: the index of a unit axis is always zero.
    """
    axes = range(len(sizes))
    units = [axis for axis in axes if sizes[axis] == 1]
    for dropped in combinations(units, len(sizes) - len(target)):
        kept = tuple(axis for axis in axes if axis not in dropped)
        if all(
            want is None or not isinstance(sizes[axis], int) or sizes[axis] == want
            for axis, want in zip(kept, target, strict=True)
        ):
            return kept
    return None


def reinterpret(p: FunctionPrinter, op: memref.ReinterpretCastOp) -> None:
    """memref.reinterpret_cast: new sizes, strides and an offset from the buffer's base."""
    source = p.buffer(op.source)
    (offset,) = _mixed(p, op.static_offsets, op.offsets)
    sizes = _mixed(p, op.static_sizes, op.sizes)
    strides = _mixed(p, op.static_strides, op.strides)
    base = source.base_offset
    if base is None:
        p.fail(op, f"the offset of '{source.pointer}' is not known", "give it a static offset")
    minus = _times(p, base, -1)
    start = total([offset, minus if minus is not None else 0])
    buffer = Buffer(
        "", source.element, tuple(sizes), tuple(strides), is_const=source.is_const,
        unsigned=source.unsigned, base_offset=offset,
    )  # fmt: skip
    at = _offset_pointer(source, start)
    buffer.pointer = _new_pointer(p, op.result, at, source, source.ctype, "part")
    buffer.is_local, buffer.mutable = source.is_local, source.mutable
    p.values[op.result] = buffer


def cast(p: FunctionPrinter, op: Any) -> None:
    """memref.cast and memory_space_cast: the same memory; what is known of it stays known."""
    source = p.buffer(op.operands[0])
    t = op.results[0].type
    if not isinstance(t, MemRefType):
        p.fail(op, "an unranked memref has no form in C", "cast to a ranked type")
    by_type = argument_buffer(p, op, t, source.pointer)
    source_shape = tuple(
        a if a is not None else b for a, b in zip(source.shape, by_type.shape, strict=True)
    )
    strides = tuple(
        a if a is not None else b for a, b in zip(source.strides, by_type.strides, strict=True)
    )
    made = Buffer(
        source.pointer, source.element, source_shape, strides, is_const=source.is_const,
        unsigned=source.unsigned, base_offset=source.base_offset,
    )  # fmt: skip
    made.is_local, made.mutable = source.is_local, source.mutable
    p.values[op.results[0]] = made


def same_buffer(p: FunctionPrinter, op: Any) -> None:
    """memref.assume_alignment: nothing to say in C."""
    p.values[op.results[0]] = p.buffer(op.operands[0])


def reshape(p: FunctionPrinter, op: Any) -> None:
    """memref.collapse_shape and expand_shape of a contiguous buffer."""
    source = p.buffer(op.src)
    if source.strides != strides_of(source.shape, p) and not _same(source, p):
        p.fail(op, f"'{source.pointer}' is not contiguous", "copy it to a row-major buffer first")
    if isinstance(op, memref.ExpandShapeOp):
        shape = tuple(_mixed(p, op.static_output_shape, op.output_shape))
    else:
        shape = tuple(
            _sized(_count(p, [source.shape[axis.value.data] for axis in group]))
            for group in op.reassociation
        )
    made = Buffer(
        source.pointer, source.element, shape, strides_of(shape, p), is_const=source.is_const,
        unsigned=source.unsigned, base_offset=source.base_offset,
    )  # fmt: skip
    made.is_local, made.mutable = source.is_local, source.mutable
    p.values[op.result] = made


def _same(buffer: Buffer, p: FunctionPrinter) -> bool:
    def text(size: Size) -> str:
        return size.text if isinstance(size, Expr) else str(size)

    return [text(s) for s in buffer.strides] == [text(s) for s in strides_of(buffer.shape, p)]


def dim(p: FunctionPrinter, op: memref.DimOp) -> None:
    """memref.dim with a constant axis."""
    buffer = p.buffer(op.source)
    axis = p.expr(op.index)
    if not axis.is_literal or not 0 <= axis.low < len(buffer.shape):
        p.fail(op, "the axis is not a constant within the rank", "use a constant axis")
    size = buffer.shape[axis.low]
    if size is None:
        p.fail(
            op,
            f"size {axis.low} of '{buffer.pointer}' is not known to the C function",
            "pass the size as an index argument: a C pointer carries no sizes",
        )
    found = literal(size, INDEX) if isinstance(size, int) else size
    p.define(op.result, found)


def rank(p: FunctionPrinter, op: memref.RankOp) -> None:
    """memref.rank."""
    p.define(op.rank, literal(len(p.buffer(op.source).shape), INDEX))


def copy(p: FunctionPrinter, op: memref.CopyOp) -> None:
    """memref.copy: one loop if both sides are contiguous, else one a dimension."""
    source, target = p.buffer(op.source), p.buffer(op.destination)
    writable(p, op, target)
    shape = tuple(
        a if a is not None else b for a, b in zip(source.shape, target.shape, strict=True)
    )
    if any(e is None for e in shape):
        p.fail(op, "the sizes are not known to the C function", "copy in a loop over known sizes")
    p.flush_reads()
    if _same(source, p) and _same(target, p):
        loops: list[tuple[Size, Size, Size]] = [(_sized(_count(p, shape)), 1, 1)]
    else:
        loops = list(zip(shape, source.strides, target.strides, strict=True))
    p.names.open()
    read: list[int | Expr] = []
    write: list[int | Expr] = []
    for extent, from_stride, to_stride in loops:
        i = p.names.take("i")
        bound = extent.text if isinstance(extent, Expr) else str(extent)
        p.open(f"for (int64_t {i} = 0; {i} < {bound}; {i}++)")
        counter = Expr(i, PRIMARY, INDEX, 0, INDEX.high)
        for terms, stride in ((read, from_stride), (write, to_stride)):
            term = _times(p, counter, stride)
            if term is None:
                p.fail(op, "the strides are not known to the C function", "make them static")
            terms.append(term)
    p.statement(f"{target.pointer}[{total(write).text}] = {source.pointer}[{total(read).text}];")
    for _ in loops:
        p.close()
    p.names.close()


MEMREF_HANDLERS: dict[Any, Any] = {
    memref.LoadOp: load,
    memref.StoreOp: store,
    memref.AllocOp: alloc,
    memref.AllocaOp: alloca,
    memref.DeallocOp: dealloc,
    memref.GetGlobalOp: get_global,
    memref.ViewOp: view,
    memref.SubviewOp: subview,
    memref.ReinterpretCastOp: reinterpret,
    memref.CastOp: cast,
    memref.MemorySpaceCastOp: cast,
    memref.AssumeAlignmentOp: same_buffer,
    memref.CollapseShapeOp: reshape,
    memref.ExpandShapeOp: reshape,
    memref.DimOp: dim,
    memref.RankOp: rank,
    memref.CopyOp: copy,
    vector.LoadOp: vector_load,
    vector.StoreOp: vector_store,
    vector.MaskedLoadOp: masked_load,
    vector.MaskedStoreOp: masked_store,
}
