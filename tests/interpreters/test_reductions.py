"""reduce, argreduce, gather and scatter against loops in Python."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

from uopc.dialects import tensor as t
from uopc.dialects.element_types import ELEMENT_TYPES
from uopc.dialects.numbers import wrap
from uopc.dialects.tensor_elementwise import CastOp

INTEGERS = [row.name for row in ELEMENT_TYPES if not row.is_float]
FLOATS = ["f64", "f32", "f16", "bf16"]

COMBINE = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def start(kind, row):
    low, high = row.limits
    return {"add": 0, "mul": 1, "max": low, "min": high, "and": -1, "or": 0, "xor": 0}[kind]


@pytest.mark.parametrize("kind", t.REDUCE_KINDS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(ops, kind, name):
    row = ops.row(name)
    rng = np.random.default_rng(1)
    values = rng.choice(ops.edges(name), (3, 4, 2))
    for axes in [(), (0,), (1,), (0, 2), (0, 1, 2)]:
        got = ops.run(lambda x, a=axes: t.ReduceOp(kind, x, a), values, names=[name])
        kept = [k for k in range(3) if k not in axes]
        for index in itertools.product(*(range(values.shape[k]) for k in kept)):
            part = values.transpose(*kept, *axes)[index].ravel().tolist()
            exact = functools.reduce(COMBINE[kind], map(int, part), start(kind, row))
            expected = wrap(exact, row)
            assert got[index] == (bool(expected) if row.is_bool else expected)


@pytest.mark.parametrize("name", INTEGERS)
def test_empty_integers_give_the_identity(ops, name):
    row = ops.row(name)
    values = np.zeros((2, 0), row.numpy)
    for kind in t.REDUCE_KINDS:
        got = ops.run(lambda x, k=kind: t.ReduceOp(k, x, (1,)), values, names=[name])
        assert got.tolist() == [wrap(start(kind, row), row)] * 2


@pytest.mark.parametrize("name", FLOATS)
def test_float_extrema(ops, name):
    # C01, and the sign of zero
    nan = math.nan
    rows = [[1, nan, 3], [nan, nan, nan], [2, 5, 4], [-0.0, 0.0, -0.0], [-math.inf, -1, -2]]
    values = np.array(rows).astype(ops.row(name).numpy)
    top = ops.run(lambda x: t.ReduceOp("max", x, (1,)), values, names=[name]).tolist()
    low = ops.run(lambda x: t.ReduceOp("min", x, (1,)), values, names=[name]).tolist()
    assert math.isnan(top[0]) and math.isnan(top[1]) and top[2:] == [5, 0, -1]
    assert math.isnan(low[0]) and math.isnan(low[1]) and low[2:] == [2, 0, -math.inf]
    assert math.copysign(1, top[3]) == 1 and math.copysign(1, low[3]) == -1
    across = ops.run(lambda x: t.ReduceOp("max", x, (0, 1)), values[2:], names=[name])
    assert across == 5
    empty = np.zeros((0, 2), ops.row(name).numpy)
    for kind, value in (("max", -math.inf), ("min", math.inf), ("add", 0.0), ("mul", 1.0)):
        got = ops.run(lambda x, k=kind: t.ReduceOp(k, x, (0,)), empty, names=[name])
        assert got.tolist() == [value, value]
        assert not np.signbit(got).any() or value < 0


@pytest.mark.parametrize("name", FLOATS)
def test_sums_are_right_to_the_last_bit(ops, name):
    rng = np.random.default_rng(2)
    values = rng.standard_normal((5, 3, 1000)).astype(ops.row(name).numpy)
    for axes in [(2,), (0, 2), (0, 1, 2)]:
        got = ops.run(lambda x, a=axes: t.ReduceOp("add", x, a), values, names=[name])
        kept = [k for k in range(3) if k not in axes]
        moved = values.transpose(*kept, *axes).astype(np.float64)
        for index in np.ndindex(*got.shape):
            exact = math.fsum(moved[index].ravel().tolist())
            with np.errstate(all="ignore"):
                assert got[index] == ops.row(name).numpy.type(exact)


def test_half_sums_do_not_saturate(ops):
    # C23
    for name in ("f16", "bf16"):
        ones = np.ones(4096, ops.row(name).numpy)
        assert ops.run(lambda x: t.ReduceOp("add", x, (0,)), ones, names=[name]) == 4096


def test_sums_of_infinities_and_zeros(ops):
    values = np.array([[np.inf, 1.0], [np.inf, -np.inf], [-0.0, -0.0], [1e308, 1e308]])
    for name in ("f64", "f32"):
        with np.errstate(all="ignore"):
            typed = values.astype(ops.row(name).numpy)
        got = ops.run(lambda x: t.ReduceOp("add", x, (1,)), typed, names=[name]).tolist()
        assert got[0] == math.inf and math.isnan(got[1]) and got[3] == math.inf
        assert got[2] == 0 and math.copysign(1, got[2]) == 1
    got = ops.run(lambda x: t.ReduceOp("mul", x, ()), values[0], names=["f64"])
    assert got.tolist() == [math.inf, 1.0]


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_argreduce_takes_the_first(ops, row):
    values = np.array([[3, 3, 1], [0, 1, 1], [1, 0, 0]]).astype(row.numpy)
    top = ops.run(lambda x: t.ArgreduceOp("max", x, 1), values, names=[row.name])
    low = ops.run(lambda x: t.ArgreduceOp("min", x, 1), values, names=[row.name])
    assert top.tolist() == [0, 1, 0] and low.tolist() == ([0] if row.is_bool else [2]) + [0, 1]
    assert top.dtype == np.int32


def test_argreduce_at_the_edges(ops):
    # C03, C19
    nan = math.nan
    for name in FLOATS:
        values = np.array([[nan, 2, 5], [2, nan, 5], [nan, nan, 1], [-0.0, 0.0, -1]])
        typed = values.astype(ops.row(name).numpy)
        top = ops.run(lambda x: t.ArgreduceOp("max", x, 1), typed, names=[name])
        low = ops.run(lambda x: t.ArgreduceOp("min", x, 1), typed, names=[name])
        assert top.tolist() == [0, 1, 0, 0] and low.tolist() == [0, 1, 0, 2]
    i64 = ops.row("i64").attribute
    make = lambda x: t.ArgreduceOp("min", x, 0, i64)  # noqa: E731
    assert ops.run(make, np.array([3, 0, 0, 255], np.uint8), names=["ui8"]) == 1
    assert ops.run(make, np.array([5, -128], np.int8), names=["i8"]) == 1


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_gather_clamps(ops, row):
    values = np.arange(12).reshape(3, 4).astype(row.numpy)
    for index_name in ("i8", "i64", "ui8", "ui64"):
        numbers = [[2, 0], [200, 1]] if index_name[0] == "u" else [[2, -1], [100, -128]]
        indices = np.array(numbers, ops.row(index_name).numpy)
        for axis, length in ((0, 3), (1, 4)):
            got = ops.run(
                lambda x, i, a=axis: t.GatherOp(x, i, a),
                values,
                indices,
                names=[row.name, index_name],
            )
            inside = [[min(max(k, 0), length - 1) for k in line] for line in numbers]
            assert np.array_equal(got, np.take(values, inside, axis=axis))
    nothing = np.zeros((0, 2), np.int32)
    got = ops.run(lambda x, i: t.GatherOp(x, i, 1), values, nothing, names=[row.name, "i32"])
    assert got.shape == (3, 0, 2)


def scattered(kind, values, indices, updates, axis, combine):
    """By the definition: every update in row-major order."""
    result = values.copy()
    rank = indices.ndim
    for index in np.ndindex(*updates.shape):
        position = int(indices[index[axis : axis + rank]])
        if 0 <= position < values.shape[axis]:
            at = (*index[:axis], position, *index[axis + rank :])
            result[at] = updates[index] if kind == "set" else combine(result[at], updates[index])
    return result


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        pytest.param(kind, row, id=f"{kind}-{row.name}")
        for kind in t.SCATTER_KINDS
        for row in ELEMENT_TYPES
        if not (row.is_float and kind in t.BIT_KINDS)
    ],
)
def test_scatter(ops, kind, row):
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        values = rng.integers(0, 100, (3, 4, 2)).astype(row.numpy)
        indices = np.array([[2, -1, 0], [2, 3, 9]], np.int32)

        def combine(a, b):
            if row.is_bool:
                table = {"add": a ^ b, "mul": a & b, "max": a | b, "min": a & b}
                return table.get(kind, COMBINE.get(kind, max)(a, b))
            if row.name == "bf16":
                return row.numpy.type(COMBINE[kind](np.float32(a), np.float32(b)))
            return COMBINE[kind](a, b)

        for axis in (0, 1, 2):
            shape = [*values.shape[:axis], *indices.shape, *values.shape[axis + 1 :]]
            updates = rng.integers(0, 100, shape).astype(row.numpy)
            got = ops.run(
                lambda x, i, u, a=axis: t.ScatterOp(kind, x, i, u, a),
                values,
                indices,
                updates,
                names=[row.name, "i32", row.name],
            )
            expected = scattered(kind, values, indices, updates, axis, combine)
            assert np.array_equal(got, expected)


def test_scatter_into_nothing_and_of_nothing(ops):
    empty, index = np.zeros((0, 2), np.float32), np.zeros(3, np.int32)
    got = ops.run(
        lambda x, i, u: t.ScatterOp("add", x, i, u, 0),
        empty,
        index,
        np.ones((3, 2), np.float32),
        names=["f32", "i32", "f32"],
    )
    assert got.shape == (0, 2)
    values = np.ones((2, 2), np.float32)
    got = ops.run(
        lambda x, i, u: t.ScatterOp("set", x, i, u, 0),
        values,
        np.zeros(0, np.int32),
        np.zeros((0, 2), np.float32),
        names=["f32", "i32", "f32"],
    )
    assert np.array_equal(got, values) and not np.shares_memory(got, values)


def test_scatter_extrema_know_nan_and_the_sign_of_zero(ops):
    values = np.array([1.0, -0.0, np.nan], np.float32)
    updates = np.array([np.nan, 0.0, 7.0], np.float32)
    got = ops.run(
        lambda x, i, u: t.ScatterOp("max", x, i, u, 0),
        values,
        np.arange(3, dtype=np.int32),
        updates,
        names=["f32", "i32", "f32"],
    )
    assert np.isnan(got[[0, 2]]).all() and got[1] == 0 and not np.signbit(got[1])


def test_totals_of_truth_values_and_bytes(ops):
    # C20: no promotion; sum(bool) is parity, sum(u8) wraps
    truths = np.array([True, True, True])
    got = ops.run(lambda x: t.ReduceOp("add", x, (0,)), truths, names=["i1"])
    assert got.dtype == np.bool_ and bool(got)
    counted = ops.run(lambda x: CastOp(x, ops.row("i32").attribute), truths, names=["i1"])
    assert ops.run(lambda x: t.ReduceOp("add", x, (0,)), counted, names=["i32"]) == 3
    bytes_ = np.array([200, 100], np.uint8)
    assert ops.run(lambda x: t.ReduceOp("add", x, (0,)), bytes_, names=["ui8"]) == 44
