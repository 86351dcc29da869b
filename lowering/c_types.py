"""What the C emitter knows about types, expressions and buffers.

| IR type | C type of a value | in memory |
|---|---|---|
| i1 | int, 0 or 1 (variables are uint8_t) | uint8_t |
| i8 i16 i32 i64, signless or signed | int8_t … int64_t | the same |
| ui8 … ui64 | uint8_t … uint64_t | the same |
| index | int64_t | int64_t |
| f32 f64 | float double | the same |
| f16 bf16 | uint16_t, the bits; arithmetic is in float | uint16_t |
| vector | a GCC vector type of the next power of two of lanes; of i1, lanes of 0 and -1 | packed |
| memref | a pointer to element zero; strides and offset are known while printing | |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute

# C's operator precedence, as far as the printer needs it; a higher number binds tighter.
PRIMARY, UNARY, MULTIPLY, ADD, SHIFT, COMPARE, EQUAL = 16, 14, 13, 12, 11, 10, 9
BIT_AND, BIT_XOR, BIT_OR, AND, OR, CHOICE = 8, 7, 6, 5, 4, 3


def is_vector(attribute: Attribute) -> TypeGuard[VectorType[Attribute]]:
    """Whether a type is a vector."""
    return isinstance(attribute, VectorType)


def is_memref(attribute: Attribute) -> TypeGuard[MemRefType[Attribute]]:
    """Whether a type is a ranked memref."""
    return isinstance(attribute, MemRefType)


@dataclass(frozen=True, eq=False)
class Scalar:
    """A number type. One object a type: compare with `is`."""

    key: str
    """As the IR spells it: f32, i8, index; used in helpers' names."""
    ctype: str
    bits: int
    is_float: bool = False
    signed: bool = True

    @property
    def is_half(self) -> bool:
        """Stored in 16 bits, computed in float."""
        return self.is_float and self.bits == 16

    @property
    def is_bool(self) -> bool:
        return self.bits == 1

    @property
    def unsigned(self) -> str:
        """The C type in which arithmetic of this width wraps."""
        return f"uint{max(self.bits, 8)}_t"

    @property
    def low(self) -> int:
        """The least value as C holds it; i1 is 0 or 1."""
        return -(1 << (self.bits - 1)) if self.signed and self.bits > 1 else 0

    @property
    def high(self) -> int:
        if self.bits == 1:
            return 1
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return max(1, self.bits // 8)

    @property
    def name(self) -> str:
        """The key that helpers of this width share: i64 for index."""
        return "i64" if self.key == "index" else self.key


F64 = Scalar("f64", "double", 64, is_float=True)
F32 = Scalar("f32", "float", 32, is_float=True)
F16 = Scalar("f16", "uint16_t", 16, is_float=True)
BF16 = Scalar("bf16", "uint16_t", 16, is_float=True)
INDEX = Scalar("index", "int64_t", 64)
I1 = Scalar("i1", "uint8_t", 1)
I8, I16, I32, I64 = (Scalar(f"i{n}", f"int{n}_t", n) for n in (8, 16, 32, 64))
_UNSIGNED = {n: Scalar(f"u{n}", f"uint{n}_t", n, signed=False) for n in (8, 16, 32, 64)}
U8, U16, U32, U64 = _UNSIGNED.values()

_FLOATS: dict[type[Attribute], Scalar] = {
    Float64Type: F64,
    Float32Type: F32,
    Float16Type: F16,
    BFloat16Type: BF16,
    IndexType: INDEX,
}
_SIGNED = {1: I1, 8: I8, 16: I16, 32: I32, 64: I64}


def scalar_type(attribute: Attribute) -> Scalar | None:
    """The number type of a builtin type, or None if C has none."""
    if isinstance(attribute, IntegerType):
        integer = cast(Any, attribute)
        table = _UNSIGNED if integer.signedness.data is Signedness.UNSIGNED else _SIGNED
        return table.get(integer.width.data)
    return _FLOATS.get(type(attribute))


@dataclass(frozen=True)
class Lanes:
    """A vector type: `count` elements in row-major order, kept in `width` lanes.

    `width` is the next power of two. Lanes past `count` hold anything and are never stored.
    """

    element: Scalar
    """Of a vector of i1: the signed integer whose 0 and -1 stand for false and true."""
    count: int
    is_mask: bool = False

    @property
    def width(self) -> int:
        return 1 << (self.count - 1).bit_length()

    @property
    def name(self) -> str:
        """The C type: f32x8; i32x8 also for masks of that width."""
        key = {"bf16": "u16", "f16": "u16", "index": "i64"}.get(self.element.key, self.element.key)
        return f"{key}x{self.width}"

    @property
    def bytes(self) -> int:
        return self.width * self.element.size

    def of(self, element: Scalar) -> Lanes:
        """As many lanes of another type."""
        return Lanes(element, self.count)

    def mask(self) -> Lanes:
        """The mask that a comparison of such vectors gives."""
        return Lanes(_SIGNED[self.element.size * 8], self.count, is_mask=True)


def lanes_type(attribute: VectorType[Attribute]) -> Lanes | None:
    """The lanes of a vector type, or None where its element or a scalable size forbids it."""
    element = scalar_type(attribute.element_type)
    if element is None or attribute.get_num_scalable_dims():
        return None
    count = math.prod(attribute.get_shape())
    if not 0 < count <= 1 << 16:
        return None
    if element.is_bool:
        return Lanes(I8, count, is_mask=True)
    return Lanes(element, count)


class Expr:
    """A C expression for one SSA value, not yet put into a statement.

    It has no side effect; evaluated anywhere before the variables in `mutable` or, if `reads`,
    the memory change, it gives the value.
    """

    __slots__ = (
        "compound",
        "depth",
        "high",
        "lanes",
        "level",
        "low",
        "modular",
        "modular_level",
        "mutable",
        "reads",
        "sizelike",
        "text",
        "type",
    )

    def __init__(
        self,
        text: str,
        level: int,
        type: Scalar,
        low: int = 0,
        high: int = 0,
        lanes: Lanes | None = None,
    ) -> None:
        self.text = text
        self.level = level
        self.type = type
        self.low = low
        """With `high`: bounds of an integer's value, as C holds it."""
        self.high = high
        self.lanes = lanes
        """Set for vectors; `type` is then their element."""
        self.modular = ""
        """The same value modulo its width as an expression of the unsigned type, if known."""
        self.modular_level = PRIMARY
        self.mutable: frozenset[str] = _NONE
        """Loop-carried variables in it."""
        self.reads = False
        """Whether it reads memory."""
        self.depth = 0
        self.sizelike = False
        """A size, a loop counter, or a sum or product of such: far from the ends of int64_t."""
        self.compound: tuple[str, str, str] | None = None
        """For `a + b`: ("a", "+", "b"), so that an update can be printed as `a += b`."""

    @property
    def is_literal(self) -> bool:
        """An integer constant."""
        return self.low == self.high and self.lanes is None and not self.type.is_float

    @property
    def is_atom(self) -> bool:
        """A name or a literal, good to be written several times."""
        return self.depth == 0 and not self.reads

    def at(self, level: int) -> str:
        """The text, in parentheses unless it binds at least as tightly as `level`."""
        return self.text if self.level >= level else f"({self.text})"


_NONE: frozenset[str] = frozenset()


class Buffer:
    """A memref: a C pointer to its element zero, and what is known of its layout."""

    __slots__ = (
        "base_offset",
        "element",
        "is_const",
        "is_local",
        "mutable",
        "pointer",
        "shape",
        "strides",
        "unsigned",
    )

    def __init__(
        self,
        pointer: str,
        element: Scalar,
        shape: tuple[int | Expr | None, ...],
        strides: tuple[int | Expr | None, ...],
        *,
        is_const: bool = False,
        unsigned: bool = False,
        base_offset: int | Expr | None = 0,
    ) -> None:
        self.pointer = pointer
        """A name."""
        self.element = element
        self.shape = shape
        """None where the size is not known to the C code."""
        self.strides = strides
        """In elements; None where unknown."""
        self.is_const = is_const
        self.unsigned = unsigned
        """Declared as unsigned integers in C, though the IR has no signs."""
        self.base_offset = base_offset
        """Elements between the base of the allocation's descriptor and element zero."""
        self.is_local = False
        """Storage on the stack of the block it stands in."""
        self.mutable: frozenset[str] = _NONE

    @property
    def ctype(self) -> str:
        """The element type in C."""
        return self.element.unsigned if self.unsigned else self.element.ctype


def types_hint(attribute: Attribute) -> str:
    """What to do about a type that C does not have."""
    if isinstance(attribute, TensorType):
        return "lower tensors first: uopc-opt FILE -p uopc-cpu -t c"
    return "numbers may be f64 f32 f16 bf16 i1 i8 i16 i32 i64 ui8..ui64 or index"
