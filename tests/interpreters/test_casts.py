"""cast between all pairs of element types, and bitcast, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from uopc.dialects import tensor_elementwise as t
from uopc.dialects.element_types import ELEMENT_TYPES
from uopc.dialects.numbers import wrap

NAMES = [row.name for row in ELEMENT_TYPES]


def expected(ops, value, source, target):
    if target.is_bool:
        return value != 0
    if target.is_float:
        if isinstance(value, float) and not math.isfinite(value):
            return value
        if value == 0:
            return float(value)
        return ops.round_exact(Fraction(value), target.name)
    if not source.is_float:
        return wrap(int(value), target)
    if math.isnan(value):
        return 0
    low, high = target.limits
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(math.trunc(value), low), high)


def agree(a, b):
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return a == b and type(a) is type(b)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_cast(ops, source, target):
    first, second = ops.row(source), ops.row(target)
    values = ops.edges(source)
    if first.is_float:
        near = [-1.5, -0.9, 0.9, 300.0, 127.5, 128.0, -129.0, 255.9, 256.0, 65535.0, 2.0**31]
        near += [2.0**31 - 1, -(2.0**31) - 1, 2.0**32, 2.0**53 + 2, 2.0**63, 2.0**64, 1e10, 1e38]
        with np.errstate(all="ignore"):
            values = np.concatenate([values, np.array(near).astype(first.numpy)])
    elif first.bits == 64:
        # ties of f32 and bf16, and just beside them: what two roundings would get wrong
        ties = [(1 << 40) + (1 << 16), (1 << 40) + (1 << 16) + 1, (1 << 40) + (1 << 32) + 1]
        ties += [(1 << 62) + (1 << 54) + 1, (1 << 62) + (1 << 54) - 1, (1 << 53) + 1]
        values = np.concatenate([values, np.array(ties, first.numpy)])
    got = ops.run(lambda x: t.CastOp(x, second.attribute), values, names=[source])
    for x, z in zip(values.tolist(), got.tolist(), strict=True):
        assert agree(z, expected(ops, x, first, second)), (x, z)


def test_out_of_range_floats(ops):
    # C11: the documented answer
    a = np.array([-1.5, 300, np.nan, np.inf, -np.inf, 1e10], np.float32)
    answers = {
        "ui8": [0, 255, 0, 255, 0, 255],
        "i8": [-1, 127, 0, 127, -128, 127],
        "i32": [-1, 300, 0, 2**31 - 1, -(2**31), 2**31 - 1],
        "ui64": [0, 300, 0, 2**64 - 1, 0, 10**10],
        "i1": [True] * 6,
    }
    for name, answer in answers.items():
        got = ops.run(lambda x, n=name: t.CastOp(x, ops.row(n).attribute), a, names=["f32"])
        assert got.tolist() == answer


def test_wide_floats_are_rounded_to_bfloat16_once(ops):
    # 1 + 2**-8 is a tie between two bfloat16; a bit more must go up, though f32 does not hold it.
    above, below = 1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40
    a = np.array(
        [above, -above, below, 1 + 2.0**-8, (2 - 2.0**-8) * 2.0**127, 2.0**-134 + 2.0**-180]
    )
    got = ops.run(lambda x: t.CastOp(x, ops.row("bf16").attribute), a, names=["f64"])
    step = 2.0**-7
    assert got.tolist() == [1 + step, -1 - step, 1 + step, 1.0, math.inf, 2.0**-133]


@pytest.mark.parametrize("source", NAMES)
def test_bitcast_keeps_bits(ops, source):
    row = ops.row(source)
    a = ops.edges(source)
    for target in ELEMENT_TYPES:
        if target.bits == row.bits:
            got = ops.run(lambda x, e=target: t.BitcastOp(x, e.attribute), a, names=[source])
            assert got.tobytes() == a.tobytes()


def test_bitcast_of_views_and_scalars(ops):
    a = np.arange(6, dtype=np.float32).reshape(2, 3).T
    got = ops.run(lambda x: t.BitcastOp(x, ops.row("i32").attribute), a, names=["f32"])
    assert np.array_equal(got, np.ascontiguousarray(a).view(np.int32))
    scalar = np.array(1.0, np.float32)
    got = ops.run(lambda x: t.BitcastOp(x, ops.row("ui32").attribute), scalar, names=["f32"])
    assert got == 0x3F800000
