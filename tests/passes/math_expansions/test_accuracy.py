"""How near the expansions come to the true value: dense samples against libm a format wider."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16

from uopc.passes.expand_math import EXPANSIONS

BINARY = ("atan2", "powf")
UNARY = [n for n in (kind.name.removeprefix("math.") for kind in EXPANSIONS) if n not in BINARY]


@pytest.mark.parametrize("name", UNARY)
def test_f32_is_within_two_ulp_on_four_million_encodings(compiled, samples, name: str) -> None:
    step = 1021
    error, at = compiled.sweep(name, 77, step, 2**32 // step)
    assert error <= 2.0, f"{error} ulp at {at!r}"
    # From 1/16 to 8 more densely: most formulas change over there.
    step = 53
    for sign in (0, 2**31):
        error, at = compiled.sweep(name, sign + (123 << 23), step, (7 << 23) // step)
        assert error <= 2.0, f"{error} ulp at {at!r}"
    error, at = compiled.worst(name, samples(np.float32, 20_000, 5))
    assert error <= 2.0, f"{error} ulp at {at[0]!r}"


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a wider long double")
@pytest.mark.parametrize("name", UNARY)
def test_f64_is_within_two_ulp(compiled, samples, name: str) -> None:
    error, at = compiled.worst(name, samples(np.float64, 60_000, 6))
    assert error <= 2.0, f"{error} ulp at {at[0]!r}"


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs a wider long double")
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY)
def test_of_two_arguments_within_two_ulp(compiled, samples, corners, name: str, kind: type) -> None:
    rng = np.random.default_rng(7)
    x, y = samples(kind, 60_000, 8), samples(kind, 60_000, 9)
    near_one = (1 + rng.normal(size=x.size) * 1e-3).astype(kind)
    steep = (rng.normal(size=x.size) * 1e5).astype(kind)
    whole = np.rint(rng.normal(size=x.size) * 30).astype(kind)
    pairs = [v.ravel().copy() for v in np.meshgrid(corners(kind), corners(kind))]
    for inputs in ((x, y), (x, rng.permutation(y)), (near_one, steep), (x, whole), pairs):
        error, at = compiled.worst(name, *inputs)
        assert error <= 2.0, f"{error} ulp at {at!r}"


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", UNARY)
def test_half_formats_round_once_on_every_encoding(
    compiled, expand, same_bits, name: str, kind: type
) -> None:
    plain = [op.name for op in expand(name).ops if op.name != "arith.constant"]
    element = f16 if kind is np.float16 else bf16
    halves = [op.name for op in expand(name, element).ops if op.name != "arith.constant"]
    assert halves == ["arith.extf", *plain[:-1], "arith.truncf", "func.return"]
    x = np.arange(2**16, dtype=np.uint16).view(kind)
    with np.errstate(all="ignore"):
        got = compiled.apply(name, x.astype(np.float32)).astype(kind)
        want = compiled.apply(name, x.astype(np.float64)).astype(np.float32).astype(kind)
    agree = same_bits(got, want)
    assert agree.mean() > 0.9995
    off = got.view(np.int16).astype(int) - want.view(np.int16)
    assert (np.abs(off[~agree]) <= 1).all()
