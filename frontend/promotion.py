"""Result types of operations on tensors: one table.

Two tensors: the least type above both in

    i1 < ui8 < ui16 < ui32 < ui64 < f16, bf16 < f32 < f64
    i1 <  i8 <  i16 <  i32 <  i64 < f16, bf16          ui8 < i16, ui16 < i32, ui32 < i64

so `i32 + f16` is f16, `f16 + bf16` is f32, `ui8 + i8` is i16; ui64 with a signed type is f64.

A Python number takes the tensor's type where that can hold its kind:

    tensor           + bool      + int       + float
    i1               i1          i32         f32
    integer          the same    the same    f32
    float            the same    the same    the same

Tensors made of Python numbers: bool i1, int i32 (i64 where one needs it), float f32.

    operation                                      result
    comparison, any, all, isnan, logical_not       i1
    / and functions of reals (exp, mean, var, …)   integers and i1 become f32
    sum, prod, cumsum, cumprod                     i1, i8, i16: i32; ui8, ui16: ui32; else the same
    argmax, argmin, argsort                        i32
    i1 + i1, i1 * i1                               or, and: still i1
"""

from __future__ import annotations

from functools import cache

from uopc.dialects.element_types import ELEMENT_TYPES, element_type_named

_ABOVE: dict[str, tuple[str, ...]] = {
    "i1": ("ui8", "i8"),
    "ui8": ("ui16", "i16"),
    "ui16": ("ui32", "i32"),
    "ui32": ("ui64", "i64"),
    "ui64": ("f16", "bf16"),
    "i8": ("i16",),
    "i16": ("i32",),
    "i32": ("i64",),
    "i64": ("f16", "bf16"),
    "f16": ("f32",),
    "bf16": ("f32",),
    "f32": ("f64",),
    "f64": (),
}
_SUM = {"i1": "i32", "i8": "i32", "i16": "i32", "ui8": "ui32", "ui16": "ui32"}

DEFAULT_FLOAT = "f32"
DEFAULT_INTEGER = "i32"


@cache
def _above(type_: str) -> frozenset[str]:
    found = {type_}
    for each in _ABOVE[type_]:
        found |= _above(each)
    return frozenset(found)


@cache
def promote(a: str, b: str) -> str:
    """The type in which two tensors meet."""
    if {a, b} > {"ui64"} and any(element_type_named(t).kind == "signed" for t in (a, b)):
        return "f64"
    common = _above(a) & _above(b)
    return next(t for t in common if common == _above(t))


def promote_number(type_: str, number: bool | int | float) -> str:
    """The type in which a tensor meets a Python number."""
    kind = element_type_named(type_).kind
    if isinstance(number, bool) or kind == "float":
        return type_
    if isinstance(number, int):
        return DEFAULT_INTEGER if kind == "bool" else type_
    return DEFAULT_FLOAT


def float_type(type_: str) -> str:
    """The type of a function of reals of such elements."""
    return type_ if element_type_named(type_).is_float else DEFAULT_FLOAT


def sum_type(type_: str) -> str:
    """The type in which such elements are summed and multiplied up."""
    return _SUM.get(type_, type_)


def is_float(type_: str) -> bool:
    """Whether the elements are floats."""
    return element_type_named(type_).is_float


def type_table() -> list[list[str]]:
    """`promote` of all pairs, for documents and tests."""
    names = [t.name for t in ELEMENT_TYPES]
    return [[promote(a, b) for b in names] for a in names]
