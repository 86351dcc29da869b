"""Numbers in the IR's text: shortest decimals that read back to the same bits.

1.0   0.1   1e-05   inf   -inf   nan   0x7FC00001 (a NaN's own bits)   -3   true
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.element_types import ElementType, element_type

_LIST_LIMIT = 64
"""Dense constants of more elements are printed as one hex string, as mlir-opt does."""


def known_element(attribute: Attribute) -> ElementType:
    """The element type's row. Raises VerifyException for a type that uopc does not have."""
    row = element_type(attribute)
    if row is None:
        raise VerifyException(f"element type {attribute} is not supported")
    return row


def wrap(value: int, row: ElementType) -> int:
    """An integer reduced to the width of an integer type or i1."""
    low = value & ((1 << row.bits) - 1)
    return low - (1 << row.bits) if row.kind == "signed" and low >> (row.bits - 1) else low


def scalar(value: float | int, element: Attribute) -> FloatAttr | IntegerAttr:
    """The attribute of one number: integers wrap to the width, floats round to nearest even.

    Raises VerifyException for a type that uopc does not have.
    """
    row = known_element(element)
    if row.is_float:
        rounded = float(np.asarray(value, np.float64).astype(row.numpy))
        return FloatAttr(rounded, element)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]  # a float type by its row
    if row.is_bool:
        return IntegerAttr(int(bool(value)), element)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]  # an integer type by its row
    return IntegerAttr(wrap(int(value), row), element)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]  # an integer type by its row


def scalar_value(attribute: Attribute) -> float | int:
    """The number of a scalar attribute; unsigned and i1 values are not negative."""
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    if not isinstance(attribute, IntegerAttr):
        raise VerifyException(f"expected a number, got {attribute}")
    row = element_type(attribute.type)
    return attribute.value.data if row is None else wrap(attribute.value.data, row)


def number_text(attribute: FloatAttr | IntegerAttr) -> str:
    """The shortest text that reads back to the same value of the same type."""
    row = known_element(attribute.type)
    value = scalar_value(attribute)
    if row.is_bool:
        return "true" if value else "false"
    if not row.is_float:
        return str(value)
    if math.isnan(value):
        return (
            "nan" if struct.pack("<d", value) == struct.pack("<d", math.nan) else _nan_bits(value)
        )
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    short = str(np.float32(value)) if row.name == "f32" else repr(float(value))
    return short if row.name in ("f32", "f64") or "e" in short else repr(float(value))


def _nan_bits(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def parse_number(parser: AttrParser) -> float | int:
    """Parse what `number_text` prints; the type is not known yet."""
    negative = parser.parse_optional_punctuation("-") is not None
    word = parser.parse_optional_identifier()
    if word in ("inf", "nan"):
        value = math.inf if word == "inf" else math.nan
        return -value if negative else value
    if word in ("true", "false"):
        return int(word == "true")
    if word is not None:
        parser.raise_error(f"expected a number, inf, nan, true or false, got '{word}'")
    position = parser.pos
    number = parser.parse_number()
    if parser.lexer.input.content[position : position + 2] in ("0x", "0X"):
        bits = int(number)
        if bits >> 52 & 0x7FF == 0x7FF:  # a NaN's bits, as f64
            return struct.unpack("<d", struct.pack("<Q", bits))[0]
    return -number if negative else number


def print_dense(printer: Printer, value: DenseIntOrFPElementsAttr) -> None:
    """Print `dense<…>` without its type, as a list or, if long or not finite, as hex bytes."""
    data = np.frombuffer(value.data.data, np.uint8)
    row = known_element(value.type.element_type)
    finite = not row.is_float or bool(np.isfinite(dense_array(value).astype(np.float64)).all())
    if finite and len(value) <= _LIST_LIMIT:
        printer.print_string("dense<")
        _print_list(printer, dense_array(value), row)
        printer.print_string(">")
    else:
        printer.print_string(f'dense<"0x{data.tobytes().hex().upper()}">')


def _print_list(printer: Printer, array: np.ndarray[Any, Any], row: ElementType) -> None:
    if array.ndim == 0:
        printer.print_string(number_text(scalar(array.item(), row.attribute)))
        return
    printer.print_string("[")
    for position in range(array.shape[0]):
        if position:
            printer.print_string(", ")
        _print_list(printer, array[position], row)
    printer.print_string("]")


def dense_array(value: DenseIntOrFPElementsAttr) -> np.ndarray[Any, Any]:
    """The elements as a numpy array of the attribute's shape (read-only where possible)."""
    row = known_element(value.type.element_type)
    shape = value.type.get_shape()
    if row.is_bool:
        flat = np.frombuffer(value.data.data, np.uint8) != 0
    else:
        flat = np.frombuffer(value.data.data, row.numpy)
    if flat.size == 1 and math.prod(shape) != 1:
        return np.broadcast_to(flat.reshape(()), shape)
    return flat.reshape(shape)


def dense_of_array(array: np.ndarray[Any, Any]) -> DenseIntOrFPElementsAttr:
    """The dense attribute of an array whose dtype is one of uopc's. Raises VerifyException."""
    from xdsl.dialects.builtin import BytesAttr

    from uopc.dialects.element_types import element_type_of_numpy

    row = element_type_of_numpy(array.dtype)
    if row is None:
        raise VerifyException(f"dtype {array.dtype} has no element type")
    tensor = TensorType(row.attribute, array.shape)
    data = np.ascontiguousarray(array).tobytes()
    return DenseIntOrFPElementsAttr(tensor, BytesAttr(data))  # pyright: ignore[reportArgumentType, reportUnknownVariableType]  # xDSL's own type bound is narrower than its use
