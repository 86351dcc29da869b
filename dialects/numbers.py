"""Numbers in the IR's text: shortest decimals that read back to the same bits.

1.0   0.1   1.0e-05   inf   -inf   nan   -3   true

A hexadecimal number of a float type is its bits, as in MLIR. NaNs are all written `nan`.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.element_types import ElementType, element_type, element_type_of_numpy
from uopc.dialects.rounding import round_floats, round_integers

_LIST_LIMIT = 64
"""Dense constants of more elements are printed as one hex string, as mlir-opt does."""

Scalar = FloatAttr[AnyFloat] | IntegerAttr[IntegerType]
Dense = DenseIntOrFPElementsAttr[Any]
Array = np.ndarray[Any, np.dtype[Any]]


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


def scalar(value: float | int, element: Attribute) -> Scalar:
    """The attribute of one number: integers wrap to the width, floats round to nearest even.

    Raises VerifyException for a type that uopc does not have, and for a fraction, an infinity or
    a NaN where an integer is needed.
    """
    row = known_element(element)
    if row.is_float:
        return FloatAttr(_rounded(value, row), cast(AnyFloat, element))
    integer = cast(IntegerType, element)
    if row.is_bool:
        return IntegerAttr(int(value != 0), integer)
    if isinstance(value, float) and not value.is_integer():
        raise VerifyException(f"expected an integer for {row.name}, got {value}")
    return IntegerAttr(wrap(int(value), row), integer)


def _rounded(value: float | int, row: ElementType) -> float:
    """The number of a float type that is nearest."""
    if isinstance(value, int) and abs(value) >= 1 << 63:
        try:
            value = float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, int):
        return float(round_integers(np.asarray(value, np.int64), row))
    return float(round_floats(np.asarray(value, np.float64), row))


class HexNumber(int):
    """A number that was written in hexadecimal: of a float type, its bits."""


def scalar_of_text(value: float | int, element: Attribute) -> Scalar:
    """The attribute of a number from `parse_number`, which must fit its type.

    Raises VerifyException where it does not: text wraps around nowhere.
    """
    row = known_element(element)
    if row.is_float:
        if not isinstance(value, HexNumber):
            return scalar(value, element)
        if value < 0 or value >> row.bits:
            raise VerifyException(
                f"expected at most {row.bits} bits for {row.name}, got {value:#x}"
            )
        bits = int(value).to_bytes(row.bytes, "little")
        return FloatAttr(float(np.frombuffer(bits, row.numpy)[0]), cast(AnyFloat, element))
    low, high = row.limits
    accepted = (1 << row.bits) - 1 if row.kind == "signed" else high  # as MLIR: 255 is an i8, -1
    if not low <= value <= accepted:
        raise VerifyException(f"expected a number from {low} to {high} for {row.name}, got {value}")
    return scalar(value, element)


def scalar_value(attribute: Attribute) -> float | int:
    """The number of a scalar attribute; unsigned and i1 values are not negative.

    Raises VerifyException for any other attribute.
    """
    if isinstance(attribute, FloatAttr):
        return attribute.value.data
    if not isinstance(attribute, IntegerAttr):
        raise VerifyException(f"expected a number, got {attribute}")
    number = cast("IntegerAttr[IntegerType]", attribute)
    row = element_type(number.type)
    return number.value.data if row is None else wrap(number.value.data, row)


def number_text(attribute: Scalar) -> str:
    """The shortest text that reads back to the same value of the same type."""
    row = known_element(attribute.type)
    value = scalar_value(attribute)
    if row.is_bool:
        return "true" if value else "false"
    if not row.is_float:
        return str(value)
    if math.isnan(value) or math.isinf(value):
        return str(float(value))
    texts = (f"{value:.{digits}g}" for digits in range(1, 17))
    return _float_literal(
        next((t for t in texts if _rounded(float(t), row) == value), repr(float(value)))
    )


def _float_literal(text: str) -> str:
    """`1e-05` as `1.0e-05`: MLIR wants a point in every float."""
    digits, e, exponent = text.partition("e")
    return f"{digits}{'' if '.' in digits else '.0'}{e}{exponent}"


def parse_number(parser: AttrParser) -> float | int:
    """Parse what `number_text` prints; the type is not known yet (see `scalar_of_text`)."""
    negative = parser.parse_optional_punctuation("-") is not None
    position = parser.pos
    word = parser.parse_optional_identifier()
    if word in ("inf", "nan"):
        value = math.inf if word == "inf" else math.nan
        return -value if negative else value
    if word in ("true", "false") and not negative:
        return int(word == "true")
    if word is not None:
        parser.raise_error(
            f"expected a number, inf, nan, true or false, got '{word}'", position, parser.pos
        )
    number = parser.parse_number()
    text = parser.lexer.input.content[position : position + 2].lower()
    if text == "0x" and isinstance(number, int):
        return HexNumber(-number if negative else number)
    return -number if negative else number


def print_dense(printer: Printer, value: Dense) -> None:
    """Print `dense<…>` without its type: one number for all, a list, or, if long or not finite,
    the bytes in hexadecimal."""
    row = known_element(value.type.element_type)
    stored = _stored(value, row)
    if not len(stored):
        text = ""
    elif not _is_finite(stored, row):
        text = _hex(value)
    elif _all_alike(stored):
        text = number_text(scalar(stored[0].item(), row.attribute))
    elif len(stored) <= _LIST_LIMIT:
        text = _list_text(stored.reshape(value.type.get_shape()), row)
    else:
        text = _hex(value)
    printer.print_string(f"dense<{text}>")


def _all_alike(stored: Array) -> bool:
    bits = stored.view(f"u{stored.dtype.itemsize}")
    return bool((bits == bits[0]).all())


def _hex(value: Dense) -> str:
    return f'"0x{value.data.data.hex().upper()}"'


def _is_finite(stored: Array, row: ElementType) -> bool:
    with np.errstate(invalid="ignore"):  # a signalling NaN warns when it is converted
        return not row.is_float or bool(np.isfinite(stored.astype(np.float64)).all())


def _list_text(array: Array, row: ElementType) -> str:
    if array.ndim == 0:
        return number_text(scalar(array.item(), row.attribute))
    return "[" + ", ".join(_list_text(part, row) for part in array) + "]"


def _stored(value: Dense, row: ElementType) -> Array:
    """The elements as they are stored, flat; one stands for all of a splat."""
    if row.is_bool:
        return np.frombuffer(value.data.data, np.uint8) != 0
    return np.frombuffer(value.data.data, row.numpy)


def dense_array(value: Dense) -> Array:
    """The elements as a numpy array of the attribute's shape (read-only where possible)."""
    flat = _stored(value, known_element(value.type.element_type))
    shape = value.type.get_shape()
    if flat.size == 1 and math.prod(shape) != 1:
        return np.broadcast_to(flat.reshape(()), shape)
    return flat.reshape(shape)


def dense_of_array(array: Array) -> Dense:
    """The dense attribute of an array whose dtype is one of uopc's. Raises VerifyException."""
    row = element_type_of_numpy(array.dtype)
    if row is None:
        raise VerifyException(f"dtype {array.dtype} has no element type")
    tensor = TensorType(row.attribute, array.shape)
    # True is the byte 255 in xDSL's dense attributes.
    stored = array.astype(np.uint8) * np.uint8(255) if row.is_bool else array
    data = BytesAttr(np.ascontiguousarray(stored).tobytes())
    return DenseIntOrFPElementsAttr(cast(Any, tensor), data)
