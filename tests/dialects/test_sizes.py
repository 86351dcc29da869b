"""Sizes: numbers, expressions over bounded symbols, and their text."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, StringAttr, TensorType, f32
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from uopc.dialects.index_expr import maximum, minimum, new_range, symbol
from uopc.dialects.registry import make_context
from uopc.dialects.sizes import (
    MAX_ELEMENTS,
    SizesAttr,
    element_count,
    element_count_upper,
    parse_sizes,
    shape_text,
    size,
    size_upper,
    sizes_of,
    symbols_in,
    tensor_type,
)

N, M = symbol("n", 1, 64), symbol("m", 0, 8)


def parse(text: str, known=None):
    return parse_sizes(Parser(make_context(), text), known)


def printed(sizes) -> str:
    stream = StringIO()
    Printer(stream).print_attribute(SizesAttr(tuple(sizes)))
    return stream.getvalue()


SIZES = [
    (4, 0, 1),
    (),
    (N,),
    (N + 1, 8),
    (2 * N - 1, M),
    (64 - N,),
    (N * M, N * N),
    ((N + 3) // 4, (N + 3) % 4),
    (N // 4 * 4, 3 * (N % 4) + M),
    (minimum(N, M), maximum(N, M + 2, 3)),
    (65 - N // 2,),
    ((N * M) // (M + 1),),
    (N // (M + 1) % 3,),
    (minimum(N, M + 1) * maximum(N - 1, M) // 2,),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes_read_back(sizes):
    text = printed(sizes)
    context = make_context()
    again = Parser(context, text).parse_attribute()
    assert again == SizesAttr(tuple(map(size, sizes)))
    assert printed(again.data) == text
    known = {str(s): s for s in (N, M)}
    listed = text.removeprefix("#utensor.sizes<").removesuffix(">")
    assert parse(listed[: listed.index("]") + 1], known) == again.data


def test_precedence_is_pythons():
    text = (
        "[n + 2*m - 3, (n + m)*2, n - m - 1, n - (m - 1), n floordiv 2*2], n = 1 to 64, m = 0 to 8"
    )
    assert parse(text) == (N + 2 * M - 3, (N + M) * 2, N - M - 1, N - (M - 1), N // 2 * 2)
    assert parse("[-n + 70], n = 1 to 64") == (70 - N,)
    assert parse("[2*3 + 1]") == (7,)


def test_long_texts_do_not_recurse():
    text = "[" + "n - 1 + " * 5000 + "n], n = 5000 to 5001"
    n = symbol("n", 5000, 5001)
    assert parse(text) == (5001 * n - 5000,)
    assert parse("[" + "2*" * 300 + "n], n = 1 to 1")[0].upper == 2**300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[n]", "the size 'n' has no bounds: expected 'n = LOW to HIGH'"),
        (
            "[n], m = 0 to 1",
            "the size 'n' has no bounds: expected 'n = LOW to HIGH'; known are m",
        ),
        ("[n], n = 0 to 1, n = 0 to 2", "the symbol 'n' has its bounds twice"),
        (
            "[n], n = 2 to 1",
            f"expected bounds 0 <= lower <= upper <= {MAX_ELEMENTS} for 'n', got 2 to 1",
        ),
        (
            "[n], n = -1 to 1",
            f"expected bounds 0 <= lower <= upper <= {MAX_ELEMENTS} for 'n', got -1 to 1",
        ),
        ("[n floordiv m], n = 1 to 2, m = 0 to 2", "expected a positive divisor, got m"),
        ("[n mod 0], n = 1 to 2", "expected a positive divisor, got 0"),
        ("[3 floordiv -2]", "expected a positive divisor, got -2"),
        ("[n], mod = 1 to 2", "a size cannot have the name 'mod'"),
        ("[n +]", "Expected integer literal"),
        ("[(n]", "Expected ')'"),
        ("n", "'[' expected"),
    ],
)
def test_mistakes_in_text(text, message):
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_names_that_text_cannot_spell():
    for name in ("a b", "", "1n", "floordiv", 'x"', "n\n", "é"):
        with pytest.raises(VerifyException) as caught:
            SizesAttr((symbol(name, 0, 1),))
        assert str(caught.value) == f"a size cannot have the name {name!r}"
    with pytest.raises(VerifyException, match=r"^the symbol 'n' has its bounds twice$"):
        SizesAttr((symbol("n", 0, 1), symbol("n", 0, 2)))
    with pytest.raises(VerifyException, match=r"^size i: expected symbols only, got i$"):
        SizesAttr((new_range("i", 4),))


def test_tensor_types():
    static = tensor_type(f32, (4, 8))
    assert static == TensorType(f32, [4, 8]) and sizes_of(static) == (4, 8)
    assert str(tensor_type(f32, (N - N + 3,))) == "tensor<3xf32>"
    dynamic = tensor_type(f32, (N + 1, 8))
    assert dynamic.get_shape() == (DYNAMIC_INDEX, 8)
    assert str(dynamic) == "tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>>"
    assert sizes_of(dynamic) == (N + 1, 8)
    assert tensor_type(f32, (N + 1, 8)) == dynamic
    assert sizes_of(tensor_type(f32, ())) == ()


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (
            TensorType(f32, [DYNAMIC_INDEX]),
            "tensor<?xf32> has a dynamic size without bounds: expected an encoding such as "
            "#utensor.sizes<[n], n = 1 to 64>",
        ),
        (TensorType(f32, [-2]), "tensor<-2xf32> has a negative size"),
        (
            TensorType(f32, [4], StringAttr("x")),
            'tensor<4xf32, "x"> has an encoding that is not #utensor.sizes',
        ),
        (
            TensorType(f32, [4], SizesAttr((4, 4))),
            "tensor<4xf32, #utensor.sizes<[4, 4]>> has 1 dimensions, its encoding 2 sizes",
        ),
        (
            TensorType(f32, [4], SizesAttr((5,))),
            "dimension 0 of tensor<4xf32, #utensor.sizes<[5]>> contradicts its encoding's 5",
        ),
        (
            TensorType(f32, [4], SizesAttr((N,))),
            "dimension 0 of tensor<4xf32, #utensor.sizes<[n], n = 1 to 64>> contradicts its "
            "encoding's n",
        ),
        (
            TensorType(f32, [DYNAMIC_INDEX], SizesAttr((N - 2,))),
            "size n - 2 of tensor<?xf32, #utensor.sizes<[n - 2], n = 1 to 64>> may be negative",
        ),
        (
            TensorType(f32, [1 << 21, 1 << 20]),
            "tensor<2097152x1048576xf32> has 2199023255552 elements, more than the limit of "
            "1099511627776",
        ),
    ],
)
def test_tensor_types_that_are_refused(tensor, message):
    with pytest.raises(VerifyException) as caught:
        sizes_of(tensor)
    assert str(caught.value) == message


def test_counts_and_words():
    assert element_count((4, 8)) == 32 and element_count(()) == 1
    assert element_count((N, 0)) == 0
    assert element_count((N, M, 2)) == 2 * N * M
    assert element_count_upper((N, M, 2)) == 64 * 8 * 2
    assert size_upper(N + 1) == 65 and size_upper(3) == 3
    assert shape_text((4, N + 1)) == "4xn+1" and shape_text(()) == "scalar"
    assert [s.name for s in symbols_in((N + M, 3, N))] == ["m", "n"]
