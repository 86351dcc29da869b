"""Addresses: where a memref's elements lie.

A memref is a C pointer to its element zero; `x[i, j]` of a memref<4x8xf32> is `x[i*8 + j]`.
Strides that are not in the type have to be known while printing: of a buffer made here
(memref.alloc of dynamic size, memref.subview) they are expressions; of a function's argument
with `?` in an inner dimension they are not, which is an error in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Operation, SSAValue

from uopc.lowering.c_integer import literal
from uopc.lowering.c_style import FunctionPrinter, combine
from uopc.lowering.c_types import ADD, INDEX, MULTIPLY, PRIMARY, UNARY, Buffer, Expr, Scalar

Size = int | Expr | None
"""A size, stride or offset: a number, an expression, or unknown."""

POINTER = Scalar("pointer", "void *", 64, signed=False)


def pointer_type(element: Scalar) -> Scalar:
    """The type of a variable that points to such elements."""
    return Scalar("pointer", f"{element.ctype} *", 64, signed=False)


# ---- addresses


def times(p: FunctionPrinter, a: Size, b: Size) -> Size:
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
        term = times(p, e.low if e.is_literal else e, stride)
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
    made = offset_pointer(buffer, place(p, op, buffer, indices))
    if buffer.unsigned:
        const = "const " if buffer.is_const else ""
        made.text = f"({const}{buffer.element.ctype} *){made.at(UNARY)}"
        made.level = UNARY
    return made


def offset_pointer(buffer: Buffer, where: Expr) -> Expr:
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
        stride = times(p, stride, extent)
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
    found = _affine_strides(form, len(shape)) if isinstance(form, AffineMapAttr) else None
    if found is not None:
        return found
    return p.fail(
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
