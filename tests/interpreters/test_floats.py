"""Every float op on edge values of every float type, against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from uopc.dialects import tensor_elementwise as t

FLOATS = ["f64", "f32", "f16", "bf16"]


def same(a: float, b: float) -> bool:
    """Equal, with the sign of zero; any NaN is every NaN."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def rounded(ops, exact: Fraction, name: str) -> float:
    """Once for f64 and f32; halves are rounded to f32 first."""
    if name in ("f16", "bf16"):
        wide = ops.round_exact(exact, "f32")
        if wide == 0 or math.isinf(wide):
            return wide
        exact = Fraction(wide)
    return ops.round_exact(exact, name)


def ieee(ops, name, operation, a, b):
    """+ - * / of IEEE 754: fractions where all is finite, Python's floats for the rest."""
    if operation == "/" and b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1, b)
    plain = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0.0}[operation]
    if not finite(a, b):
        return plain
    x, y = Fraction(a), Fraction(b)
    exact = {"+": x + y, "-": x - y, "*": x * y, "/": x / y if y else Fraction(0)}[operation]
    if exact == 0:
        return plain
    return rounded(ops, exact, name)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    ("op_type", "operation"),
    [(t.AddOp, "+"), (t.SubOp, "-"), (t.MulOp, "*"), (t.DivOp, "/")],
    ids=["add", "sub", "mul", "div"],
)
def test_arithmetic_rounds_once(ops, op_type, operation, name):
    a, b = ops.pairs(name)
    got = ops.run(op_type, a, b, names=[name, name])
    for x, y, z in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert same(z, ieee(ops, name, operation, x, y)), (x, y, z)


def floor_mod(ops, name, a, b):
    """By the table of docs/numerics.md, on fractions."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return None, math.nan
    rest = math.fmod(a, b)
    if rest == 0:
        return rest, math.copysign(0.0, b)
    if (rest < 0) == (b < 0):
        return rest, rest
    moved = b if math.isinf(b) else rounded(ops, Fraction(rest) + Fraction(b), name)
    return rest, moved


@pytest.mark.parametrize("name", FLOATS)
def test_mod_and_rem(ops, name):
    a, b = ops.pairs(name)
    mods = ops.run(t.ModOp, a, b, names=[name, name]).tolist()
    rests = ops.run(t.RemOp, a, b, names=[name, name]).tolist()
    for x, y, m, r in zip(a.tolist(), b.tolist(), mods, rests, strict=True):
        rest, expected = floor_mod(ops, name, x, y)
        assert same(m, expected), (x, y, m)
        assert same(r, math.nan if rest is None else rest), (x, y, r)


def test_floordiv_of_f64_is_numpys(ops):
    a, b = ops.pairs("f64")
    got = ops.run(t.FloordivOp, a, b, names=["f64", "f64"])
    with np.errstate(all="ignore"):
        expected = np.floor_divide(a, b)
    assert all(map(same, got.tolist(), expected.tolist()))


@pytest.mark.parametrize("name", FLOATS)
def test_floordiv_is_the_floor_where_that_is_exact(ops, name):
    values = np.array([-7.5, -7, -3, -1.5, -0.25, 0.25, 1, 2, 5.5, 96]).astype(ops.row(name).numpy)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    got = ops.run(t.FloordivOp, a, b, names=[name, name])
    for x, y, z in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert z == ops.round_exact(Fraction(math.floor(Fraction(x) / Fraction(y))), name)


def extremum(a, b, largest):
    if math.isnan(a) or math.isnan(b):
        return math.nan
    key = lambda v: (v, math.copysign(1, v))  # noqa: E731
    return max(a, b, key=key) if largest else min(a, b, key=key)


@pytest.mark.parametrize("name", FLOATS)
def test_max_min_and_comparisons(ops, name):
    a, b = ops.pairs(name)
    run = lambda op: ops.run(op, a, b, names=[name, name]).tolist()  # noqa: E731
    for x, y, big, small, lt, le, eq, ne in zip(
        a.tolist(), b.tolist(), run(t.MaxOp), run(t.MinOp), run(t.CmpltOp), run(t.CmpleOp),
        run(t.CmpeqOp), run(t.CmpneOp), strict=True,
    ):  # fmt: skip
        assert same(big, extremum(x, y, True)) and same(small, extremum(x, y, False))
        assert (lt, le, eq, ne) == (x < y, x <= y, x == y, x != y)


def integral(function):
    return lambda x: math.copysign(function(x), x) if math.isfinite(x) else x


EXACT_UNARY = {
    t.NegOp: lambda x: -x,
    t.AbsOp: abs,
    t.SignOp: lambda x: x if x == 0 or math.isnan(x) else math.copysign(1.0, x),
    t.FloorOp: integral(math.floor),
    t.CeilOp: integral(math.ceil),
    t.TruncOp: integral(math.trunc),
    t.RoundOp: integral(round),
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op_type", EXACT_UNARY, ids=lambda op: op.name)
def test_exact_unary(ops, op_type, name):
    a = ops.edges(name)
    got = ops.run(op_type, a, names=[name])
    for x, z in zip(a.tolist(), got.tolist(), strict=True):
        assert same(z, EXACT_UNARY[op_type](x)), x


def test_integers_beyond_any_int_are_floored_exactly(ops):
    # C12
    a = np.array([1e12, -3e9, 2.0**31 + 0.5, 0.5, 1.5, 2.5, 1e300])
    run = lambda op: ops.run(op, a, names=["f64"]).tolist()  # noqa: E731
    assert run(t.FloorOp) == [1e12, -3e9, 2.0**31, 0, 1, 2, 1e300]
    assert run(t.CeilOp) == [1e12, -3e9, 2.0**31 + 1, 1, 2, 3, 1e300]
    assert run(t.TruncOp) == [1e12, -3e9, 2.0**31, 0, 1, 2, 1e300]
    assert run(t.RoundOp) == [1e12, -3e9, 2.0**31, 0, 2, 2, 1e300]


def root(ops, value: Fraction, name: str) -> float:
    """The square root rounded once: by integers, with a sticky digit."""
    shift = 2 * (80 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = value * Fraction(4) ** (shift // 2)
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    sticky = 0 if Fraction(whole) ** 2 == scaled else 1
    exact = (Fraction(whole) + Fraction(sticky, 2)) / Fraction(2) ** (shift // 2)
    return rounded(ops, exact, name)


@pytest.mark.parametrize("name", FLOATS)
def test_roots_and_reciprocals(ops, name):
    a = ops.edges(name)
    roots = ops.run(t.SqrtOp, a, names=[name]).tolist()
    inverses = ops.run(t.RecipOp, a, names=[name]).tolist()
    both = ops.run(t.RsqrtOp, a, names=[name]).tolist()
    work = "f64" if name == "f64" else "f32"
    for x, z, inverse, rsqrt in zip(a.tolist(), roots, inverses, both, strict=True):
        if x > 0 and math.isfinite(x):
            assert z == root(ops, Fraction(x), name), x
            wide = root(ops, Fraction(x), work)
            inner = ops.round_exact(1 / Fraction(wide), work)
            assert rsqrt == ops.round_exact(Fraction(inner), name)
        else:
            assert same(z, x if x == 0 or x == math.inf else math.nan)
            zero = math.copysign(math.inf, x) if x == 0 else math.nan
            assert same(rsqrt, 0.0 if x == math.inf else zero)
        assert same(inverse, ieee(ops, name, "/", 1.0, x)), x


TRANSCENDENTAL = {
    t.CbrtOp: lambda x: math.copysign(abs(x) ** (1 / 3), x),
    t.ExpOp: math.exp,
    t.Exp2Op: lambda x: 2.0**x,
    t.Expm1Op: math.expm1,
    t.LogOp: math.log,
    t.Log2Op: math.log2,
    t.Log10Op: math.log10,
    t.Log1pOp: math.log1p,
    t.SinOp: math.sin,
    t.CosOp: math.cos,
    t.TanOp: math.tan,
    t.AsinOp: math.asin,
    t.AcosOp: math.acos,
    t.AtanOp: math.atan,
    t.SinhOp: math.sinh,
    t.CoshOp: math.cosh,
    t.TanhOp: math.tanh,
    t.AsinhOp: math.asinh,
    t.AcoshOp: math.acosh,
    t.AtanhOp: math.atanh,
    t.ErfOp: math.erf,
}
LIMITS = {  # at -inf, inf, 0
    t.CbrtOp: (-math.inf, math.inf, 0),
    t.ExpOp: (0, math.inf, 1),
    t.Exp2Op: (0, math.inf, 1),
    t.Expm1Op: (-1, math.inf, 0),
    t.LogOp: (math.nan, math.inf, -math.inf),
    t.Log2Op: (math.nan, math.inf, -math.inf),
    t.Log10Op: (math.nan, math.inf, -math.inf),
    t.Log1pOp: (math.nan, math.inf, 0),
    t.SinOp: (math.nan, math.nan, 0),
    t.CosOp: (math.nan, math.nan, 1),
    t.TanOp: (math.nan, math.nan, 0),
    t.AsinOp: (math.nan, math.nan, 0),
    t.AcosOp: (math.nan, math.nan, math.pi / 2),
    t.AtanOp: (-math.pi / 2, math.pi / 2, 0),
    t.SinhOp: (-math.inf, math.inf, 0),
    t.CoshOp: (math.inf, math.inf, 1),
    t.TanhOp: (-1, 1, 0),
    t.AsinhOp: (-math.inf, math.inf, 0),
    t.AcoshOp: (math.nan, math.inf, math.nan),
    t.AtanhOp: (math.nan, math.nan, 0),
    t.ErfOp: (-1, 1, 0),
}


def test_every_float_op_is_tested():
    unary = {op for op in t.UNARY_OPS if "float" in op.KINDS}
    roots = {t.SqrtOp, t.RsqrtOp, t.RecipOp}
    assert unary == {*EXACT_UNARY, *TRANSCENDENTAL} | roots
    assert set(LIMITS) == set(TRANSCENDENTAL)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op_type", TRANSCENDENTAL, ids=lambda op: op.name)
def test_transcendental(ops, op_type, name):
    points = [-30.0, -2.5, -1.0, -0.75, -0.5, -1e-3, 1e-3, 0.25, 0.5, 0.75, 1.0, 1.5, 3.0, 30.0]
    a = np.array(points).astype(ops.row(name).numpy)
    got = ops.run(op_type, a, names=[name])
    digits = ops.formats[name][0]
    for x, z in zip(a.tolist(), got.tolist(), strict=True):
        try:
            expected = TRANSCENDENTAL[op_type](x)
        except ValueError:
            pole = (op_type is t.AtanhOp and abs(x) == 1) or (op_type is t.Log1pOp and x == -1)
            assert math.isinf(z) if pole else math.isnan(z), x
            continue
        largest = float(ops.round_exact(Fraction(expected), name))
        if math.isinf(largest):
            assert z == largest
        else:
            tiny = 2.0 ** (ops.formats[name][1] - digits + 1)
            assert abs(z - expected) <= 4 * 2.0 ** (1 - digits) * abs(expected) + tiny, x
    ends = np.array([-math.inf, math.inf, 0, math.nan]).astype(ops.row(name).numpy)
    below, above, zero, nan = ops.run(op_type, ends, names=[name]).tolist()
    for z, expected in zip((below, above, zero), LIMITS[op_type], strict=True):
        assert same(z, float(ops.row(name).numpy.type(expected)))
    assert math.isnan(nan)


@pytest.mark.parametrize("name", FLOATS)
def test_pow_and_atan2(ops, name):
    number = ops.row(name).numpy.type
    cases = [
        (2, 10, 1024), (4, 0.5, 2), (-2, 3, -8), (-2, 0.5, math.nan), (0, 0, 1), (math.nan, 0, 1),
        (1, math.nan, 1), (0, -1, math.inf), (-0.0, -1, -math.inf), (0.5, math.inf, 0),
        (math.inf, -1, 0), (2, -2, 0.25), (-1, math.inf, 1), (math.nan, 1, math.nan),
    ]  # fmt: skip
    a, b, expected = (np.array([number(c[k]) for c in cases]) for k in range(3))
    got = ops.run(t.PowOp, a, b, names=[name, name])
    assert all(map(same, got.tolist(), expected.tolist()))
    a, b = ops.pairs(name)
    got = ops.run(t.Atan2Op, a, b, names=[name, name])
    digits = ops.formats[name][0]
    for x, y, z in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        expected = math.atan2(x, y)
        assert (
            math.isnan(z)
            if math.isnan(expected)
            else abs(z - expected)
            <= (4 * 2.0 ** (1 - digits) * abs(expected) + 2.0 ** ops.formats[name][1])
        )


def test_nothing_is_folded_for_floats(ops):
    # C05
    a = np.array([np.inf, np.nan, 1], np.float32)
    zeros = np.zeros_like(a)
    got = ops.run(t.MulOp, a, zeros, names=["f32", "f32"]).tolist()
    assert math.isnan(got[0]) and math.isnan(got[1]) and got[2] == 0
    got = ops.run(t.SubOp, a, a, names=["f32", "f32"]).tolist()
    assert math.isnan(got[0]) and math.isnan(got[1]) and got[2] == 0


def test_where_takes_bits_as_they_are(ops):
    a = np.array([np.nan, 1, -0.0], np.float32)
    b = np.array([5, np.inf, 0.0], np.float32)
    got = ops.run(t.WhereOp, np.array([True, False, True]), a, b, names=["i1", "f32", "f32"])
    assert got.view(np.uint32).tolist() == [a.view(np.uint32)[0], *b.view(np.uint32)[1:2],
                                            a.view(np.uint32)[2]]  # fmt: skip
