"""Numbers in text: what is printed reads back to the same bits."""

from __future__ import annotations

import math
import random
import struct
from io import StringIO

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerType, f32
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from uopc.dialects.element_types import ELEMENT_TYPES, element_type_named
from uopc.dialects.numbers import (
    HexNumber,
    dense_array,
    dense_of_array,
    number_text,
    parse_number,
    print_dense,
    scalar,
    scalar_of_text,
    scalar_value,
    wrap,
)
from uopc.dialects.registry import make_context

FLOATS = [row for row in ELEMENT_TYPES if row.is_float]
INTEGERS = [row for row in ELEMENT_TYPES if row.is_integer]


def read(text: str, name: str):
    parser = Parser(make_context(), text)
    number = parse_number(parser)
    return scalar_of_text(number, element_type_named(name).attribute)


def bit_patterns(row, count: int) -> np.ndarray:
    rng = random.Random(row.name)
    patterns = [rng.getrandbits(row.bits) for _ in range(count)]
    patterns += [0, 1, 1 << (row.bits - 1), (1 << (row.bits - 1)) | 1]
    return np.array(patterns, f"u{row.bytes}").view(row.numpy)


@pytest.mark.parametrize("row", FLOATS, ids=lambda row: row.name)
def test_every_float_reads_back(row):
    if row.bits == 16:
        values = np.arange(1 << 16, dtype=np.uint16).view(row.numpy)[::7]
    else:
        values = bit_patterns(row, 2000)
    for value in values:
        attribute = scalar(float(value), row.attribute)
        text = number_text(attribute)
        again = scalar_value(read(text, row.name))
        if math.isnan(value):
            assert text == "nan" and math.isnan(again)
        else:
            assert struct.pack("<d", again) == struct.pack("<d", float(value)), text


def test_the_shortest_text_is_printed():
    for name, value, text in (
        ("f32", 0.1, "0.1"),
        ("bf16", 0.1, "0.1"),
        ("f16", 0.1, "0.1"),
        ("f64", 0.1, "0.1"),
        ("f64", 0.1 + 0.2, "0.30000000000000004"),
        ("f32", 1e-5, "1.0e-05"),
        ("f32", 16777216, "16777216.0"),
        ("f32", 1e30, "1.0e+30"),
        ("f32", -0.0, "-0.0"),
        ("f16", 65504, "6.55e+04"),
        ("f32", math.inf, "inf"),
        ("f32", -math.inf, "-inf"),
        ("f32", -math.nan, "nan"),
        ("i1", 1, "true"),
        ("i1", 0, "false"),
        ("ui64", 2**64 - 1, "18446744073709551615"),
        ("i64", -(2**63), "-9223372036854775808"),
    ):
        assert number_text(scalar(value, element_type_named(name).attribute)) == text


@pytest.mark.parametrize("row", INTEGERS, ids=lambda row: row.name)
def test_integers_read_back_and_wrap(row):
    low, high = row.limits
    for value in (low, low + 1, -1, 0, 1, high - 1, high, high + 1, low - 1, 3 << row.bits):
        attribute = scalar(value, row.attribute)
        wrapped = scalar_value(attribute)
        assert low <= wrapped <= high and (wrapped - value) % (1 << row.bits) == 0
        assert wrap(value, row) == wrapped
        assert read(number_text(attribute), row.name) == attribute


def test_hexadecimal_floats_are_bits():
    assert scalar_value(read("0x7F800000", "f32")) == math.inf
    assert math.isnan(scalar_value(read("0x7FC00001", "f32")))
    assert scalar_value(read("0x3C00", "f16")) == 1.0
    assert scalar_value(read("0x3F80", "bf16")) == 1.0
    assert scalar_value(read("0xBFF0000000000000", "f64")) == -1.0
    assert scalar_value(read("0xFF", "ui8")) == 255


def test_numbers_are_rounded_once():
    bf16 = element_type_named("bf16").attribute
    above = 1 + 2.0**-8 + 2.0**-40
    assert scalar_value(scalar(above, bf16)) == 1 + 2.0**-7
    assert float(ml_dtypes.bfloat16(above)) == 1.0  # what two roundings would give
    assert scalar_value(scalar((1 << 62) + (1 << 54) + 1, bf16)) == 2.0**62 + 2.0**55
    assert scalar_value(scalar(2**24 + 1, f32)) == 2.0**24
    assert scalar_value(scalar(10**400, f32)) == math.inf
    assert scalar_value(scalar(-(10**400), f32)) == -math.inf
    assert scalar_value(scalar(1e39, f32)) == math.inf


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("1.5", "i32", "expected an integer for i32, got 1.5"),
        ("inf", "i8", "expected a number from -128 to 127 for i8, got inf"),
        ("nan", "i8", "expected a number from -128 to 127 for i8, got nan"),
        ("256", "ui8", "expected a number from 0 to 255 for ui8, got 256"),
        ("-1", "ui8", "expected a number from 0 to 255 for ui8, got -1"),
        ("256", "i8", "expected a number from -128 to 127 for i8, got 256"),
        ("2", "i1", "expected a number from 0 to 1 for i1, got 2"),
        ("0x10000", "f16", "expected at most 16 bits for f16, got 0x10000"),
        ("-0x1", "f16", "expected at most 16 bits for f16, got -0x1"),
    ],
)
def test_text_that_does_not_fit(text, name, message):
    with pytest.raises(VerifyException) as caught:
        read(text, name)
    assert str(caught.value) == message


def test_words_that_are_no_number():
    for text in ("infinity", "x", "-true"):
        with pytest.raises(ParseError) as caught:
            parse_number(Parser(make_context(), text))
        word = text.lstrip("-")
        assert f"expected a number, inf, nan, true or false, got '{word}'" in str(caught.value)


def test_other_mistakes():
    with pytest.raises(VerifyException, match=r"^element type i7 is not supported$"):
        scalar(1, IntegerType(7))
    with pytest.raises(VerifyException, match=r"^expected an integer for i32, got 1\.5$"):
        scalar(1.5, element_type_named("i32").attribute)
    with pytest.raises(VerifyException, match=r"^expected a number, got f32$"):
        scalar_value(f32)
    with pytest.raises(VerifyException, match=r"^dtype complex64 has no element type$"):
        dense_of_array(np.zeros(2, np.complex64))
    assert isinstance(HexNumber(3) + 0, int)
    assert scalar_value(FloatAttr(2.5, f32)) == 2.5


def dense_round_trip(attribute):
    stream = StringIO()
    printer = Printer(stream)
    print_dense(printer, attribute)
    printer.print_string(" : ")
    printer.print_attribute(attribute.type)
    return stream.getvalue(), Parser(make_context(), stream.getvalue()).parse_attribute()


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0), (65,), (5, 20)])
def test_dense_constants_read_back(row, shape):
    count = int(np.prod(shape))
    pattern = np.frombuffer(random.Random(count).randbytes(count * row.bytes), np.uint8)
    if row.is_bool:
        values = (pattern % 2 == 1).reshape(shape)
    else:
        values = pattern.view(row.numpy).reshape(shape)
    attribute = dense_of_array(values)
    _, again = dense_round_trip(attribute)
    assert again.type == attribute.type
    got = dense_array(again)
    assert got.shape == shape and got.dtype == row.numpy
    assert got.tobytes() == values.tobytes()


def test_forms_of_dense_constants():
    for values, text in (
        (np.array([1.5, -0.0], np.float32), "dense<[1.5, -0.0]> : tensor<2xf32>"),
        (np.array([[1], [2]], np.uint8), "dense<[[1], [2]]> : tensor<2x1xui8>"),
        (np.array(7, np.int64), "dense<7> : tensor<i64>"),
        (np.array([True, False]), "dense<[true, false]> : tensor<2xi1>"),
        (np.zeros((0, 4), np.float32), "dense<> : tensor<0x4xf32>"),
        (np.array([np.inf, 1], np.float32), 'dense<"0x0000807F0000803F"> : tensor<2xf32>'),
    ):
        assert dense_round_trip(dense_of_array(values))[0] == text
    splat = Parser(make_context(), "dense<0.1> : tensor<3xf32>").parse_attribute()
    assert dense_array(splat).tolist() == [np.float32(0.1)] * 3
