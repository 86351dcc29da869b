"""The element types of uopc and what each means in numpy and in memory.

f64 f32 f16 bf16        IEEE floats and bfloat16
i8 i16 i32 i64          two's complement, signed
ui8 ui16 ui32 ui64      unsigned
i1                      a truth value, one byte in memory, zero or one
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

ui8 = IntegerType(8, Signedness.UNSIGNED)
ui16 = IntegerType(16, Signedness.UNSIGNED)
ui32 = IntegerType(32, Signedness.UNSIGNED)
ui64 = IntegerType(64, Signedness.UNSIGNED)


@dataclass(frozen=True)
class ElementType:
    """One row of the table of element types."""

    name: str
    """As the IR spells it: `f32`, `ui8`."""
    attribute: Attribute
    """The builtin type attribute."""
    bits: int
    """Width of the value; an i1 has 1, and takes a byte in memory."""
    kind: str
    """`float`, `signed`, `unsigned` or `bool`."""

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned; i1 is not among them."""
        return self.kind in ("signed", "unsigned")

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return max(1, self.bits // 8)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype of the same values."""
        if self.name == "bf16":
            import ml_dtypes  # imported late: 20 ms that most programs never need

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(_NUMPY[self.name])

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and largest value of an integer type or i1."""
        if self.is_bool:
            return 0, 1
        if self.kind == "unsigned":
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


_NUMPY = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
}

ELEMENT_TYPES: tuple[ElementType, ...] = (
    ElementType("f64", f64, 64, "float"),
    ElementType("f32", f32, 32, "float"),
    ElementType("f16", f16, 16, "float"),
    ElementType("bf16", bf16, 16, "float"),
    ElementType("i1", i1, 1, "bool"),
    ElementType("i8", i8, 8, "signed"),
    ElementType("i16", i16, 16, "signed"),
    ElementType("i32", i32, 32, "signed"),
    ElementType("i64", i64, 64, "signed"),
    ElementType("ui8", ui8, 8, "unsigned"),
    ElementType("ui16", ui16, 16, "unsigned"),
    ElementType("ui32", ui32, 32, "unsigned"),
    ElementType("ui64", ui64, 64, "unsigned"),
)

_BY_NAME = {t.name: t for t in ELEMENT_TYPES}
_FLOATS: dict[type[Attribute], ElementType] = {
    Float64Type: _BY_NAME["f64"],
    Float32Type: _BY_NAME["f32"],
    Float16Type: _BY_NAME["f16"],
    BFloat16Type: _BY_NAME["bf16"],
}
_INTEGERS = {t.attribute: t for t in ELEMENT_TYPES if not t.is_float}


def element_type(attribute: Attribute) -> ElementType | None:
    """The row of a builtin type attribute, or None if uopc has no such element type."""
    return _FLOATS.get(type(attribute)) or _INTEGERS.get(attribute)


def element_type_named(name: str) -> ElementType:
    """The row of the type spelled `name`. Raises KeyError for a name not in the table."""
    return _BY_NAME[name]


def element_type_of_numpy(dtype: np.dtype[Any]) -> ElementType | None:
    """The row whose values are those of a numpy dtype, or None."""
    if dtype.name == "bfloat16":
        return _BY_NAME["bf16"]
    return next((_BY_NAME[n] for n, t in _NUMPY.items() if np.dtype(t) == dtype), None)


def signless(row: ElementType) -> ElementType:
    """The type that holds the same bits after linearize, where signs live in the ops."""
    return _BY_NAME[row.name[1:]] if row.kind == "unsigned" else row


def accumulator(row: ElementType) -> ElementType:
    """The type in which sums and products of `row` are accumulated: f32 for half types."""
    return _BY_NAME["f32"] if row.name in ("f16", "bf16") else row
