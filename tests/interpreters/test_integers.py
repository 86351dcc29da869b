"""Every integer op on all pairs of edge values, against Python's unbounded integers."""

from __future__ import annotations

import numpy as np
import pytest

from uopc.dialects import tensor_elementwise as t
from uopc.dialects.element_types import ELEMENT_TYPES
from uopc.dialects.numbers import wrap

INTEGERS = [row.name for row in ELEMENT_TYPES if row.is_integer]


def truncdiv(a, b, row):
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(a, b, row):
    if b >= 0:
        return pow(a, b, 2**row.bits)
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


def unsigned(b, row):
    return b % 2**row.bits


BINARY = {
    t.AddOp: lambda a, b, row: a + b,
    t.SubOp: lambda a, b, row: a - b,
    t.MulOp: lambda a, b, row: a * b,
    t.FloordivOp: lambda a, b, row: a // b if b else -1,
    t.TruncdivOp: truncdiv,
    t.ModOp: lambda a, b, row: a % b if b else a,
    t.RemOp: lambda a, b, row: a - truncdiv(a, b, row) * b if b else a,
    t.PowOp: power,
    t.MaxOp: lambda a, b, row: max(a, b),
    t.MinOp: lambda a, b, row: min(a, b),
    t.AndOp: lambda a, b, row: a & b,
    t.OrOp: lambda a, b, row: a | b,
    t.XorOp: lambda a, b, row: a ^ b,
    t.ShlOp: lambda a, b, row: a << unsigned(b, row) if unsigned(b, row) < row.bits else 0,
    t.ShrOp: lambda a, b, row: a >> min(unsigned(b, row), row.bits),
    t.CmpltOp: lambda a, b, row: a < b,
    t.CmpleOp: lambda a, b, row: a <= b,
    t.CmpeqOp: lambda a, b, row: a == b,
    t.CmpneOp: lambda a, b, row: a != b,
}
UNARY = {
    t.NotOp: lambda a, row: ~a,
    t.NegOp: lambda a, row: -a,
    t.AbsOp: lambda a, row: abs(a),
    t.SignOp: lambda a, row: (a > 0) - (a < 0),
    t.PopcountOp: lambda a, row: unsigned(a, row).bit_count(),
    t.ClzOp: lambda a, row: row.bits - unsigned(a, row).bit_length(),
}


def test_every_integer_op_has_a_row():
    takes = {op for op in (*t.UNARY_OPS, *t.BINARY_OPS) if "signed" in op.KINDS}
    assert takes == {*UNARY, *BINARY}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op_type", BINARY, ids=lambda op: op.name)
def test_binary(ops, op_type, name):
    row = ops.row(name)
    a, b = ops.pairs(name)
    got = ops.run(op_type, a, b, names=[name, name])
    for x, y, z in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        exact = BINARY[op_type](x, y, row)
        assert z == (exact if isinstance(exact, bool) else wrap(exact, row)), (x, y)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op_type", UNARY, ids=lambda op: op.name)
def test_unary(ops, op_type, name):
    row = ops.row(name)
    a = ops.edges(name)
    got = ops.run(op_type, a, names=[name])
    assert got.tolist() == [wrap(UNARY[op_type](x, row), row) for x in a.tolist()]


BOOLEAN = {
    t.AddOp: lambda a, b: (a + b) % 2,
    t.MulOp: lambda a, b: a * b,
    t.MaxOp: max,
    t.MinOp: min,
    t.AndOp: lambda a, b: a & b,
    t.OrOp: lambda a, b: a | b,
    t.XorOp: lambda a, b: a ^ b,
    t.CmpltOp: lambda a, b: a < b,
    t.CmpleOp: lambda a, b: a <= b,
    t.CmpeqOp: lambda a, b: a == b,
    t.CmpneOp: lambda a, b: a != b,
}


def test_truth_values(ops):
    assert {op for op in t.BINARY_OPS if "bool" in op.KINDS} == set(BOOLEAN)
    a, b = ops.pairs("i1")
    for op_type, expected in BOOLEAN.items():
        got = ops.run(op_type, a, b, names=["i1", "i1"])
        assert got.tolist() == [
            bool(expected(x, y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)
        ]
    assert ops.run(t.NotOp, np.array([True, False]), names=["i1"]).tolist() == [False, True]


def test_floor_and_remainder_equal_python(ops):
    # C13: all small pairs, of both signs
    a, b = np.meshgrid(np.arange(-7, 8), [-4, -3, -2, -1, 1, 2, 3, 4])
    a, b = a.astype(np.int32), b.astype(np.int32)
    floors = ops.run(t.FloordivOp, a, b, names=["i32", "i32"])
    rests = ops.run(t.ModOp, a, b, names=["i32", "i32"])
    pairs = list(zip(a.ravel().tolist(), b.ravel().tolist(), strict=True))
    assert floors.ravel().tolist() == [x // y for x, y in pairs]
    assert rests.ravel().tolist() == [x % y for x, y in pairs]


def test_overflow_wraps_before_anything_else_looks(ops):
    # C15, C16
    big = np.array([2**31 - 1], np.int32)
    total = ops.run(t.AddOp, big, big, names=["i32", "i32"])
    assert ops.run(lambda x: t.CastOp(x, ops.row("i64").attribute), total, names=["i32"]) == -2
    byte = np.array([128], np.uint8)
    doubled = ops.run(t.AddOp, byte, byte, names=["ui8", "ui8"])
    assert ops.run(lambda x: t.CastOp(x, ops.row("i16").attribute), doubled, names=["ui8"]) == 0
    negated = ops.run(t.NegOp, np.array([6], np.uint8), names=["ui8"])
    less = ops.run(t.CmpltOp, negated, np.array([4], np.uint8), names=["ui8", "ui8"])
    assert not less[0]
    third = ops.run(
        t.FloordivOp,
        ops.run(
            t.MulOp,
            np.array([2**30], np.int32),
            np.array([3], np.int32),
            names=["i32", "i32"],
        ),
        np.array([3], np.int32),
        names=["i32", "i32"],
    )
    assert third == (3 * 2**30 - 2**32) // 3


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (2, 3)])
def test_any_shape(ops, shape):
    a = np.full(shape, 7, np.int16)
    for op_type in BINARY:
        ops.run(op_type, a, a, names=["i16", "i16"])
    for op_type in UNARY:
        ops.run(op_type, a, names=["i16"])
