"""Ops from names and plain attributes, and back."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import test

from uopc.dialects.locations import parse_text
from uopc.dialects.tensor import UTensor
from uopc.dialects.tensor_build import (
    BUILDERS,
    ELEMENTWISE,
    build_op,
    number_text,
    plain_op,
    text_number,
    type_attribute,
)

ATTRIBUTES: dict[str, tuple[list[tuple[tuple[int, ...], str]], tuple[Any, ...]]] = {
    "constant": ([], ("-0.0", (2, 3), "f32")),
    "iota": ([], (1, (2, 3), "i32")),
    "cast": ([((2, 3), "f32")], ("ui8",)),
    "bitcast": ([((2, 3), "f32")], ("i32",)),
    "reduce": ([((2, 3), "f32")], ("max", (0, 1))),
    "argreduce": ([((2, 3), "f32")], ("min", 1, "i64")),
    "reshape": ([((2, 3), "f32")], ((3, 2),)),
    "expand": ([((2, 1), "f32")], ((2, 5),)),
    "permute": ([((2, 3), "f32")], ((1, 0),)),
    "flip": ([((2, 3), "f32")], ((1,),)),
    "shrink": ([((2, 3), "f32")], ((0, 1), (2, 3), (1, 2))),
    "pad": ([((2, 3), "i1")], ((0, 1), (2, 3), "1")),
    "gather": ([((2, 3), "f32"), ((4,), "i32")], (1,)),
    "scatter": ([((2, 3), "f32"), ((4,), "i32"), ((2, 4), "f32")], ("set", 1)),
    "stage": ([((2, 3), "f32")], ("detach",)),
}


def test_every_op_is_made_and_read_back():
    assert set(ATTRIBUTES) | set(ELEMENTWISE) == set(BUILDERS)
    assert {f"utensor.{name}" for name in BUILDERS} == {op.name for op in UTensor.operations}
    for name in BUILDERS:
        types, attributes = ATTRIBUTES.get(name, ([((2, 3), "i1")] * 3, ()))
        if name in ELEMENTWISE:
            kind = ELEMENTWISE[name]
            element = {"float": "f64", "bool": "i1"}.get(kind.KINDS[0], "i32")
            types = [((2, 3), element)] * len(kind.get_irdl_definition().operands)
            types = [((2, 3), "i1"), *types[1:]] if name == "where" else types
        values = [test.TestOp(result_types=[type_attribute(*t)]).results[0] for t in types]
        op = build_op(name, values, attributes)
        op.verify_()
        assert plain_op(op) == (name, attributes)


def test_what_is_not_plain_is_told_apart():
    module = parse_text(
        "func.func @f(%x: f32) -> tensor<2xi32> {\n"
        "  %0 = arith.negf %x : f32\n"
        "  %1 = utensor.constant dense<[1, 2]> : tensor<2xi32>\n"
        "  func.return %1 : tensor<2xi32>\n}"
    )
    ops = list(module.walk())
    assert [plain_op(op) for op in ops] == [None] * len(ops)


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, 1e-45, -3, 2**63, True, float("inf")])
def test_numbers_are_text(value: float):
    back = text_number(number_text(value))
    assert back == value and str(float(back)) == str(float(value))
    assert number_text(float("nan")) == number_text(-float("nan")) == "nan"
