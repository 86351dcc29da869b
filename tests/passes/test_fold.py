"""Folding gives, bit for bit, what the reference semantics give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i8
from xdsl.ir import Block

from uopc.dialects.element_types import ELEMENT_TYPES, element_type_named
from uopc.dialects.numbers import scalar, scalar_value
from uopc.dialects.sizes import tensor_type
from uopc.dialects.tensor import REDUCE_KINDS, ReduceOp
from uopc.dialects.tensor_elementwise import BINARY_OPS, UNARY_OPS, BitcastOp, CastOp
from uopc.interpreters.tensor import TENSOR_SEMANTICS
from uopc.passes.fold import fold, fold_reduction, identity

NAMES = [row.name for row in ELEMENT_TYPES]


def edges(name: str) -> np.ndarray:
    row = element_type_named(name)
    if row.is_bool:
        return np.array([False, True])
    if row.is_float:
        tiny = {"f64": 5e-324, "f32": 1e-45, "f16": 6e-8, "bf16": 1e-40}[name]
        large = {"f64": 1.7e308, "f32": 3.4e38, "f16": 65504.0, "bf16": 3.38e38}[name]
        half = [0.0, tiny, 0.3, 1.0, 1.5, 2.5, 127.5, 255.0, 300.0, 2.0**31, 1e19, large, math.inf]
        with np.errstate(all="ignore"):
            return np.array([*half, *(-x for x in half), math.nan]).astype(row.numpy)
    low, high = row.limits
    near = {0, 1, 2, 3, 7, row.bits - 1, row.bits, high, high - 1, high // 2 + 1, low, low + 1}
    near |= {-1, -2, -3, -row.bits} if low < 0 else {high // 3}
    return np.array(sorted(near), row.numpy)


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Elementwise: equal bits, or both NaN."""
    assert a.dtype == b.dtype
    unsigned = f"u{a.dtype.itemsize}"
    return (a.view(unsigned) == b.view(unsigned)) | ((a != a) & (b != b))


def check(name: str, op, arrays: list[np.ndarray], result) -> int:
    """Compare fold with the semantics of an op, element by element; how many folded."""
    expected = np.ascontiguousarray(TENSOR_SEMANTICS[type(op)](op, arrays))
    source = op.operands[0].type.element_type
    folded = 0
    for position in range(len(arrays[0])):
        numbers = [scalar(array[position].item(), source) for array in arrays]
        got = fold(name, numbers, result.attribute)
        if got is None:
            continue
        folded += 1
        assert got.type == result.attribute
        value = np.array([scalar_value(got)]).astype(result.numpy)
        assert same_bits(value, expected[position : position + 1])[0], (name, numbers, got)
    return folded


@pytest.mark.parametrize("name", NAMES)
def test_elementwise_ops_fold_to_what_runs(name: str):
    row = element_type_named(name)
    values = edges(name)
    left, right = np.repeat(values, len(values)), np.tile(values, len(values))
    folding = set()
    for op_class in (*UNARY_OPS, *BINARY_OPS):
        if row.kind not in op_class.KINDS:
            continue
        arrays = [values] if op_class in UNARY_OPS else [left, right]
        operands = Block(arg_types=[tensor_type(row.attribute, a.shape) for a in arrays]).args
        op = op_class(*operands)
        result = next(t for t in ELEMENT_TYPES if t.attribute == op.results[0].type.element_type)
        short = op_class.name.partition(".")[2]
        folded = check(short, op, arrays, result)
        assert folded in (0, len(arrays[0])), "an op folds always or never"
        if folded:
            folding.add(short)
    always = {"add", "mul", "max", "min", "cmplt", "cmple", "cmpeq", "cmpne"}
    assert always <= folding
    if row.is_float:
        assert {"sub", "div", "sqrt", "recip", "floor", "round", "neg", "abs", "sign"} <= folding
        assert not folding & {"exp", "exp2", "log", "sin", "pow", "rsqrt"}
    if row.is_integer:
        assert {"floordiv", "truncdiv", "mod", "rem", "pow", "shl", "shr", "clz"} <= folding


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_conversions_fold_to_what_runs(source: str, target: str):
    first, last = element_type_named(source), element_type_named(target)
    values = edges(source)
    if first.is_integer and first.bits == 64:  # where a detour through f32 or f64 rounds twice
        values = np.concatenate(
            [values, np.array([2**24 + 1, 2**40 + 2**16 + 1, 2**53 + 1], first.numpy)]
        )
    (operand,) = Block(arg_types=[tensor_type(first.attribute, values.shape)]).args
    cast = CastOp(operand, last.attribute)
    assert check("cast", cast, [values], last) == len(values)
    if first.bits == last.bits:
        check("bitcast", BitcastOp(operand, last.attribute), [values], last)


def test_f64_to_half_rounds_once():
    just_above_a_tie = 1 + 2**-11 + 2**-40
    assert scalar_value(
        fold("cast", [scalar(just_above_a_tie, element_type_named("f64").attribute)],
             element_type_named("f16").attribute)
    ) == 1 + 2**-10  # fmt: skip


def test_where_picks_a_number():
    condition = [scalar(value, element_type_named("i1").attribute) for value in (1, 0)]
    one, two = scalar(-0.0, f32), scalar(math.nan, f32)
    assert fold("where", [condition[0], one, two], f32) == one
    assert fold("where", [condition[1], one, two], f32) == two


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", REDUCE_KINDS)
@pytest.mark.parametrize("count", [1, 2, 3, 300])
def test_reductions_of_splats(name: str, kind: str, count: int):
    row = element_type_named(name)
    if row.is_float and kind in ("and", "or", "xor"):
        return
    for value in edges(name):
        number = scalar(value.item(), row.attribute)
        got = fold_reduction(kind, number, count)
        (operand,) = Block(arg_types=[tensor_type(row.attribute, (count,))]).args
        op = ReduceOp(kind, operand, (0,))
        expected = np.ascontiguousarray(TENSOR_SEMANTICS[ReduceOp](op, [np.full(count, value)]))
        if got is not None:
            array = np.array(scalar_value(got)).astype(row.numpy)
            assert same_bits(array.reshape(1), expected.reshape(1))[0], (kind, number, got)
        else:
            assert row.is_float and kind in ("add", "mul")


@pytest.mark.parametrize("kind", REDUCE_KINDS)
def test_identities_are_those_of_empty_reductions(kind: str):
    for row in ELEMENT_TYPES:
        if row.is_float and kind in ("and", "or", "xor"):
            continue
        (operand,) = Block(arg_types=[tensor_type(row.attribute, (0,))]).args
        op = ReduceOp(kind, operand, (0,))
        expected = TENSOR_SEMANTICS[ReduceOp](op, [np.zeros(0, row.numpy)])
        assert np.array(scalar_value(identity(kind, row.attribute))).astype(row.numpy) == expected


def test_integers_wrap_at_their_width():
    assert scalar_value(fold("add", [scalar(127, i8), scalar(1, i8)], i8)) == -128
    assert scalar_value(fold("shl", [scalar(1, i8), scalar(8, i8)], i8)) == 0
    assert scalar_value(fold("neg", [scalar(-128, i8)], i8)) == -128
