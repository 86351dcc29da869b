"""Float ops, casts and math functions in C, bit for bit where bits are promised."""

from __future__ import annotations

import itertools
import math as pymath
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    bf16,
    f16,
    f32,
    f64,
    i1,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from uopc.lowering.c import emit_c

INDEX = IndexType()
FLOATS: dict[str, tuple[Attribute, Any]] = {
    "f64": (f64, np.float64),
    "f32": (f32, np.float32),
    "f16": (f16, np.float16),
    "bf16": (bf16, ml_dtypes.bfloat16),
}
INTEGERS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
NUMPY = {1: np.uint8, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
UNSIGNED = {1: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
NAN, INF = float("nan"), float("inf")
VALUES = [
    *(0.0, -0.0, 1.0, -1.0, 1.5, -2.25, 3.0, 0.1, -0.3, 255.0, 256.0, -129.0, 65504.0, 65520.0),
    *(1e-8, 6e-8, 5.96e-8, -1e-40, 1e-45, 3.4e38, -3.4e38, INF, -INF, NAN, 127.5, 2.0**31),
    *(2.0**63, -(2.0**63), 2.0**64, -(2.0**31), 1.0009765625, 1e10, -1.5, 300.0, 0.49999997),
]


def array(values: Any, dtype: Any) -> np.ndarray[Any, Any]:
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).astype(dtype)


def bits_of(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bits, all NaNs alike: which NaN comes out is not promised."""
    bits = a.view(UNSIGNED[a.dtype.itemsize * 8]).copy()
    if a.dtype.kind in "fV" or a.dtype == ml_dtypes.bfloat16:
        bits[a != a] = np.iinfo(bits.dtype).max
    return bits


def loop_function(name: str, inputs: list[Attribute], output: Attribute, make: Any) -> func.FuncOp:
    """func @name(n, inputs…, output): output[i] = make(inputs[i]…)."""
    memrefs = [MemRefType(t, [DYNAMIC_INDEX]) for t in (*inputs, output)]
    function = func.FuncOp(name, ([INDEX, *memrefs], []))
    entry = function.body.block
    zero, one = (arith.ConstantOp(IntegerAttr(v, INDEX)) for v in (0, 1))
    inner = Block(arg_types=[INDEX])
    loads = [memref.LoadOp.get(a, [inner.args[0]]) for a in entry.args[1:-1]]
    inner.add_ops(loads)
    made = make(*[x.res for x in loads])
    ops = made if isinstance(made, list) else [made]
    inner.add_ops(ops)
    inner.add_op(memref.StoreOp.get(ops[-1].results[0], entry.args[-1], [inner.args[0]]))
    inner.add_op(scf.YieldOp())
    entry.add_ops(
        [zero, one, scf.ForOp(zero, entry.args[0], one, [], Region(inner)), func.ReturnOp()]
    )
    return function


def numpy_max(a: Any, b: Any, keep_nan: bool, sign: int) -> np.ndarray[Any, Any]:
    """max (sign 1) or min (sign -1): NaN wins or loses, -0 < +0."""
    out = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        if x != x or y != y:
            out.append(NAN if keep_nan or (x != x and y != y) else y if x != x else x)
        else:
            key = lambda v: (v, pymath.copysign(1, v))  # noqa: E731
            out.append(max(x, y, key=key) if sign > 0 else min(x, y, key=key))
    return np.array(out, np.float64)


BINARY: dict[type[Any], Any] = {
    arith.AddfOp: lambda a, b: a + b,
    arith.SubfOp: lambda a, b: a - b,
    arith.MulfOp: lambda a, b: a * b,
    arith.DivfOp: lambda a, b: a / b,
    arith.MaximumfOp: lambda a, b: numpy_max(a, b, True, 1),
    arith.MinimumfOp: lambda a, b: numpy_max(a, b, True, -1),
    arith.MaxnumfOp: lambda a, b: numpy_max(a, b, False, 1),
    arith.MinnumfOp: lambda a, b: numpy_max(a, b, False, -1),
    math.CopySignOp: np.copysign,
}
UNARY: dict[type[Any], Any] = {
    arith.NegfOp: np.negative,
    math.AbsFOp: np.abs,
    math.SqrtOp: np.sqrt,
    math.FloorOp: np.floor,
    math.CeilOp: np.ceil,
    math.RoundEvenOp: np.rint,
    math.TruncOp: np.trunc,
    math.RoundOp: lambda v: np.where(np.abs(v) % 1 == 0.5, v + np.copysign(0.5, v), np.rint(v)),
}
PREDICATES: list[Any] = [
    lambda a, b: False, lambda a, b: a == b, lambda a, b: a > b, lambda a, b: a >= b,
    lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a < b or a > b,
    lambda a, b: a == a and b == b,
]  # fmt: skip
PREDICATES += [lambda a, b, p=p: a != a or b != b or p(a, b) for p in PREDICATES[1:7]]
PREDICATES += [lambda a, b: a != a or b != b, lambda a, b: True]
"""By number: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true."""


def make_module() -> ModuleOp:
    functions: list[func.FuncOp] = []
    for name, (t, _) in FLOATS.items():
        for cls in BINARY:
            functions.append(
                loop_function(f"{short(cls)}_of_{name}", [t, t], t, lambda a, b, c=cls: c(a, b))
            )
        for k in range(16):
            functions.append(
                loop_function(
                    f"cmp{k}_of_{name}", [t, t], i1, lambda a, b, k=k: arith.CmpfOp(a, b, k)
                )
            )
        for cls in UNARY:
            functions.append(
                loop_function(f"{short(cls)}_of_{name}", [t], t, lambda a, c=cls: c(a))
            )
        functions.append(loop_function(f"fma_of_{name}", [t, t, t], t, math.FmaOp))
        for cls, k in itertools.product((arith.MaximumfOp, arith.MinimumfOp), range(6)):
            value = [0.0, -0.0, 1.0, -1.5, INF, NAN][k]

            def by_constant(
                a: SSAValue, cls: Any = cls, value: float = value, t: Any = t
            ) -> list[Any]:
                known = arith.ConstantOp(FloatAttr(value, t))
                return [known, cls(a, known)]

            functions.append(
                loop_function(f"{short(cls)}_constant{k}_of_{name}", [t], t, by_constant)
            )
        for other, bits in INTEGERS.items():
            i = IntegerType(bits)
            for cls in (arith.SIToFPOp, arith.UIToFPOp):
                functions.append(
                    loop_function(
                        f"{short(cls)}_{other}_{name}", [i], t, lambda a, c=cls, t=t: c(a, t)
                    )
                )
            for cls in (arith.FPToSIOp, arith.FPToUIOp):
                functions.append(
                    loop_function(
                        f"{short(cls)}_{name}_{other}", [t], i, lambda a, c=cls, i=i: c(a, i)
                    )
                )
        i = IntegerType(np.dtype(FLOATS[name][1]).itemsize * 8)
        functions.append(
            loop_function(f"bitcast_{name}", [t], i, lambda a, i=i: arith.BitcastOp(a, i))
        )
        functions.append(
            loop_function(f"bitcast_to_{name}", [i], t, lambda a, t=t: arith.BitcastOp(a, t))
        )
    names = list(FLOATS)
    for wide, narrow in itertools.combinations(names, 2):
        if (wide, narrow) == ("f16", "bf16"):
            continue
        a, b = FLOATS[wide][0], FLOATS[narrow][0]
        functions.append(
            loop_function(f"truncf_{wide}_{narrow}", [a], b, lambda v, b=b: arith.TruncFOp(v, b))
        )
        functions.append(
            loop_function(f"extf_{narrow}_{wide}", [b], a, lambda v, a=a: arith.ExtFOp(v, a))
        )
    return ModuleOp(functions)


def short(cls: type[Any]) -> str:
    return cls.name.split(".")[1]


def nearest(x: float, dtype: Any) -> Any:
    """A float64 rounded once to a half type, to nearest even, by exact arithmetic."""
    with np.errstate(all="ignore"):
        guess = np.array([x], np.float32).astype(dtype)
    if not np.isfinite(x) or not np.isfinite(guess[0]):
        return guess[0]
    bits = int(guess.view(np.uint16)[0])
    around = np.array([b for b in (bits - 1, bits, bits + 1) if 0 <= b < 65536], np.uint16).view(
        dtype
    )
    finite = [v for v in around if np.isfinite(v) and np.signbit(v) == np.signbit(x)]
    return min(
        finite,
        key=lambda v: (
            abs(Fraction(float(v)) - Fraction(x)),
            int(np.array([v]).view(np.uint16)[0]) & 1,
        ),
    )


CHECKS = "undefined,float-cast-overflow"


@pytest.fixture(
    params=[
        ("gcc", "-O2", "-march=native"),
        ("clang", "-O1", f"-fsanitize={CHECKS}", f"-fsanitize-trap={CHECKS}"),
        ("g++", "-O0", "-fno-builtin"),
    ],
    ids=lambda p: p[0],
)  # fmt: skip
def library(request: Any, build: Any) -> Any:
    return build(emit_c(make_module()).text, *request.param)


def run(library: Any, name: str, out: Any, *inputs: Any) -> np.ndarray[Any, Any]:
    result = np.zeros(len(inputs[0]), out)
    library(name, len(result), *[np.ascontiguousarray(x) for x in inputs], result)
    return result


def check(got: Any, want: Any, what: str, *inputs: Any) -> None:
    wrong = np.flatnonzero(bits_of(got) != bits_of(want.astype(got.dtype)))[:5]
    assert not wrong.size, (what, [x[wrong] for x in inputs], got[wrong], want[wrong])


def test_everything(library: Any) -> None:
    """One compilation serves all checks of this file."""
    arithmetic(library)
    comparisons(library)
    float_to_integer(library)
    integer_to_float(library)
    half_conversions(library)
    bitcasts(library)


@np.errstate(all="ignore")
def arithmetic(library: Any) -> None:
    for name, (_, dtype) in FLOATS.items():
        pairs = array(list(itertools.product(VALUES, repeat=2)), dtype)
        a, b = pairs[:, 0].copy(), pairs[:, 1].copy()
        compute = np.float64 if name == "f64" else np.float32
        x, y = a.astype(compute), b.astype(compute)
        for cls, reference in BINARY.items():
            want = np.asarray(reference(x, y)).astype(compute).astype(dtype)
            check(
                run(library, f"{short(cls)}_of_{name}", dtype, a, b),
                want,
                f"{short(cls)} {name}",
                a,
                b,
            )
        single = array([*VALUES, 0.5, 1.5, 2.5, -0.5, -1.7, 8388609.5], dtype)
        wide = single.astype(compute)
        for cls, reference in UNARY.items():
            got = run(library, f"{short(cls)}_of_{name}", dtype, single)
            check(got, np.asarray(reference(wide)).astype(dtype), f"{short(cls)} {name}", single)
        for cls, k in itertools.product((arith.MaximumfOp, arith.MinimumfOp), range(6)):
            value = np.full(len(single), [0.0, -0.0, 1.0, -1.5, INF, NAN][k], compute)
            want = BINARY[cls](wide, value).astype(dtype)
            check(
                run(library, f"{short(cls)}_constant{k}_of_{name}", dtype, single),
                want,
                f"{short(cls)} {name} {k}",
                single,
            )
        fused(library, name, dtype)


def fused(library: Any, name: str, dtype: Any) -> None:
    """fma rounds the exact a*b+c once (half types: to float, then to half)."""
    generator = np.random.default_rng(3)
    a, b = (generator.standard_normal(400).astype(dtype) for _ in range(2))
    c = (-(a.astype(np.float64) * b.astype(np.float64))).astype(dtype)
    compute = np.float64 if name == "f64" else np.float32
    want = np.array(
        [
            round_once(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), compute)
            for x, y, z in zip(a, b, c, strict=True)
        ],
        compute,
    )
    check(
        run(library, f"fma_of_{name}", dtype, a, b, c), want.astype(dtype), f"fma {name}", a, b, c
    )


def round_once(value: Fraction, dtype: Any) -> Any:
    """The nearest number of `dtype`, ties to even."""
    if value == 0:
        return dtype(0)
    if dtype is np.float64:
        return float(value)
    guess = np.float32(float(value))
    around = [np.nextafter(guess, np.float32(-INF)), guess, np.nextafter(guess, np.float32(INF))]
    return min(
        around,
        key=lambda v: (abs(Fraction(float(v)) - value), int(np.array([v]).view(np.uint32)[0]) & 1),
    )


def comparisons(library: Any) -> None:
    for name, (_, dtype) in FLOATS.items():
        pairs = array(
            list(itertools.product([0.0, -0.0, 1.0, -2.0, INF, -INF, NAN], repeat=2)), dtype
        )
        a, b = pairs[:, 0].copy(), pairs[:, 1].copy()
        for k, reference in enumerate(PREDICATES):
            want = np.array(
                [reference(float(x), float(y)) for x, y in zip(a, b, strict=True)], np.uint8
            )
            check(run(library, f"cmp{k}_of_{name}", np.uint8, a, b), want, f"cmpf {k} {name}", a, b)


def float_to_integer(library: Any) -> None:
    for name, (_, dtype) in FLOATS.items():
        extra = [
            -0.9,
            0.9,
            -1.0,
            -1.1,
            126.9,
            127.0,
            128.0,
            -128.0,
            -128.5,
            -129.5,
            254.9,
            255.9,
            32767.5,
            -32768.5,
            2147483520.0,
            4294967040.0,
            9.223372036854775e18,
            1.8446744073709550e19,
        ]
        a = array([*VALUES, *extra], dtype)
        for other, bits in INTEGERS.items():
            for kind, low, high in (
                ("si", -(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                ("ui", 0, (1 << bits) - 1),
            ):
                want = [
                    0 if v != v else low if v < low else high if v > high else pymath.trunc(v)
                    for v in a.astype(np.float64).tolist()
                ]
                mask = (1 << bits) - 1
                stored = (
                    np.array([v & mask for v in want], np.uint64)
                    .astype(UNSIGNED[bits])
                    .view(NUMPY[bits])
                )
                check(
                    run(library, f"fpto{kind}_{name}_{other}", NUMPY[bits], a),
                    stored,
                    f"fpto{kind} {name} {other}",
                    a,
                )


def integer_to_float(library: Any) -> None:
    for other, bits in INTEGERS.items():
        top = 1 << (bits - 1)
        values = (
            [0, 1]
            if bits == 1
            else sorted(
                {0, 1, -1, 7, -100, top - 1, -top, top // 3, -top + 1, top - top // 512 - 1}
            )
        )
        if bits > 16:
            values += [
                16777217,
                -16777217,
                16777219,
                65519,
                65520,
                257 * 65536 + 1,
                2**24 + 2**16 - 1,
            ]
        if bits == 64:
            values += [
                2**53 + 1,
                2**60 + 2**52 + 1,
                2**60 + 2**52,
                2**62 + 2**54 + 1,
                2**61 + 2**53 - 1,
                3 * 2**59 + 2**51 - 1,
                -(2**60 + 2**52 + 1),
            ]
        stored = np.array(values, NUMPY[bits])
        for name, (_, dtype) in FLOATS.items():
            for kind in ("si", "ui"):
                numbers = [
                    v & ((1 << bits) - 1) if kind == "ui" else -v if bits == 1 else v
                    for v in values
                ]
                want = np.array([exact(v, dtype) for v in numbers], dtype)
                check(
                    run(library, f"{kind}tofp_{other}_{name}", dtype, stored),
                    want,
                    f"{kind}tofp {other} {name}",
                    stored,
                )


def exact(value: int, dtype: Any) -> Any:
    """The nearest number of `dtype` to an integer of any size."""
    if dtype is np.float64:
        return float(value)
    if dtype is np.float32:
        return round_once(Fraction(value), np.float32)
    with np.errstate(all="ignore"):
        guess = np.array([float(value)], np.float64).astype(np.float32).astype(dtype)
    if not np.isfinite(guess[0]) or value == 0:
        return guess[0]
    bits = int(guess.view(np.uint16)[0])
    around = np.array([bits - 1, bits, bits + 1], np.uint16).view(dtype)
    finite = [v for v in around if np.isfinite(v)]
    return min(
        finite,
        key=lambda v: (abs(Fraction(float(v)) - value), int(np.array([v]).view(np.uint16)[0]) & 1),
    )


@np.errstate(all="ignore")
def half_conversions(library: Any) -> None:
    """All 65,536 patterns out, and every float next to a boundary in."""
    patterns = np.arange(65536, dtype=np.uint16)
    for name in ("f16", "bf16"):
        dtype = FLOATS[name][1]
        halves = patterns.view(dtype)
        for wide in ("f32", "f64"):
            got = run(library, f"extf_{name}_{wide}", FLOATS[wide][1], halves)
            check(got, halves.astype(FLOATS[wide][1]), f"extf {name} {wide}", halves)
            back = run(library, f"truncf_{wide}_{name}", dtype, got)
            check(back, halves, f"round trip {name} {wide}", halves)
        finite = np.sort(halves[np.isfinite(halves)].astype(np.float64))
        middles = (finite[1:] + finite[:-1]) / 2
        for wide in ("f32", "f64"):
            float_type = FLOATS[wide][1]
            exact = middles.astype(float_type)
            above, below = (np.nextafter(exact, float_type(end)) for end in (INF, -INF))
            near = np.concatenate([exact, above, below, array(VALUES, float_type)])
            got = run(library, f"truncf_{wide}_{name}", dtype, near)
            some = slice(None, None, 53)
            want = np.array([nearest(float(v), dtype) for v in near[some]], dtype)
            check(got[some], want, f"truncf {wide} {name}", near[some])
            if wide == "f32":
                check(got, near.astype(dtype), f"truncf {wide} {name}", near)


def bitcasts(library: Any) -> None:
    for name, (_, dtype) in FLOATS.items():
        bits = np.dtype(dtype).itemsize * 8
        stored = np.array(
            [0, 1, -1, -(1 << (bits - 1)), (1 << (bits - 2)) + 5, 0x7E01 << (bits - 16)],
            NUMPY[bits],
        )
        as_float = run(library, f"bitcast_to_{name}", dtype, stored)
        assert np.array_equal(as_float.view(NUMPY[bits]), stored)
        assert np.array_equal(run(library, f"bitcast_{name}", NUMPY[bits], as_float), stored)
