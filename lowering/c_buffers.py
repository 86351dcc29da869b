"""Buffers: the ops of memref that make, reshape, copy and free them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import SSAValue

from uopc.lowering.c_access import writable
from uopc.lowering.c_address import (
    Size,
    argument_buffer,
    layout,
    offset_pointer,
    static_shape,
    strides_of,
    times,
    total,
)
from uopc.lowering.c_integer import literal
from uopc.lowering.c_style import FunctionPrinter
from uopc.lowering.c_types import INDEX, PRIMARY, UNARY, Buffer, Expr, is_memref

# ---- storage


def _full_shape(p: FunctionPrinter, op: Any, sizes: Sequence[SSAValue], t: Any) -> tuple[Size, ...]:
    dynamic = iter(sizes)
    return tuple(p.atom(next(dynamic)) if n is None else n for n in static_shape(t))


def _sized(e: Size) -> Size:
    return e.low if isinstance(e, Expr) and e.is_literal else e


def _count(p: FunctionPrinter, shape: Sequence[Size]) -> Expr:
    count: Size = 1
    for extent in shape:
        count = times(p, count, extent)
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
    buffer.is_local = p.prelude.has_arrays = True
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


# ---- the same memory under another shape


def view(p: FunctionPrinter, op: memref.ViewOp) -> None:
    """memref.view: bytes from a place on, as elements of another type."""
    source = p.buffer(op.source)
    t = op.result.type
    kind = p.scalar(t.element_type, op)
    shape = tuple(_sized(e) for e in _full_shape(p, op, op.sizes, t))
    start = p.expr(op.byte_shift)
    buffer = Buffer("", kind, shape, strides_of(shape, p), is_const=source.is_const)
    at = offset_pointer(source, start)
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
        term = times(p, offset, stride)
        if term is None:
            p.fail(op, f"the strides of '{source.pointer}' are not known", "make them static")
        terms.append(term)
    strides = [times(p, a, b) for a, b in zip(source.strides, steps, strict=True)]
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
    at = offset_pointer(source, start)
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
    minus = times(p, base, -1)
    start = total([offset, minus if minus is not None else 0])
    buffer = Buffer(
        "", source.element, tuple(sizes), tuple(strides), is_const=source.is_const,
        unsigned=source.unsigned, base_offset=offset,
    )  # fmt: skip
    at = offset_pointer(source, start)
    buffer.pointer = _new_pointer(p, op.result, at, source, source.ctype, "part")
    buffer.is_local, buffer.mutable = source.is_local, source.mutable
    p.values[op.result] = buffer


def cast(p: FunctionPrinter, op: Any) -> None:
    """memref.cast and memory_space_cast: the same memory; what is known of it stays known."""
    source = p.buffer(op.operands[0])
    t = op.results[0].type
    if not is_memref(t):
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
    shape: tuple[Size, ...]
    if op.name == memref.ExpandShapeOp.name:
        shape = tuple(_mixed(p, op.static_output_shape, op.output_shape))
    else:
        shape = tuple(
            _sized(_count(p, [source.shape[axis] for axis in group])) for group in _axis_groups(op)
        )
    made = Buffer(
        source.pointer, source.element, shape, strides_of(shape, p), is_const=source.is_const,
        unsigned=source.unsigned, base_offset=source.base_offset,
    )  # fmt: skip
    made.is_local, made.mutable = source.is_local, source.mutable
    p.values[op.result] = made


def _axis_groups(op: memref.CollapseShapeOp) -> list[list[int]]:
    groups: Any = op.reassociation
    return [[axis.value.data for axis in group] for group in groups]


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
            term = times(p, counter, stride)
            if term is None:
                p.fail(op, "the strides are not known to the C function", "make them static")
            terms.append(term)
    p.statement(f"{target.pointer}[{total(write).text}] = {source.pointer}[{total(read).text}];")
    for _ in loops:
        p.close()
    p.names.close()


BUFFER_HANDLERS: dict[Any, Any] = {
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
}
"""How each op on whole buffers is printed."""
