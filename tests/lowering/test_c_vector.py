"""Vector ops in C: lane for lane what the scalar ops give, and every op that moves lanes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import arith, func, math, memref, scf, vector
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from uopc.dialects.locations import parse_text
from uopc.dialects.upstream_fixes import install
from uopc.lowering.c import emit_c

install()
INDEX = IndexType()
LANES = (8, 3)
TYPES: dict[str, tuple[Attribute, Any]] = {
    "f64": (f64, np.float64),
    "f32": (f32, np.float32),
    "f16": (f16, np.float16),
    "bf16": (bf16, ml_dtypes.bfloat16),
    "i1": (i1, np.uint8),
    "i8": (IntegerType(8), np.int8),
    "i32": (IntegerType(32), np.int32),
    "i64": (IntegerType(64), np.int64),
}
FLOATS, INTEGERS = ("f64", "f32", "f16", "bf16"), ("i1", "i8", "i32", "i64")
FLOAT_BINARY = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.MaximumfOp,
                arith.MinimumfOp, arith.MaxnumfOp, math.CopySignOp)  # fmt: skip
FLOAT_UNARY = (arith.NegfOp, math.AbsFOp, math.SqrtOp, math.FloorOp)
INTEGER_BINARY = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp, arith.FloorDivSIOp,
                  arith.RemUIOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ShLIOp,
                  arith.ShRUIOp, arith.ShRSIOp, arith.MinSIOp, arith.MaxUIOp)  # fmt: skip
CASTS = [
    *((arith.SIToFPOp, a, b) for a in ("i1", "i32") for b in FLOATS),
    *((arith.UIToFPOp, a, "f32") for a in INTEGERS),
    *((arith.FPToSIOp, a, b) for a in FLOATS for b in ("i8", "i32", "i1")),
    *((arith.FPToUIOp, "f32", b) for b in INTEGERS),
    *((arith.ExtSIOp, a, "i64") for a in ("i1", "i8", "i32")),
    *((arith.ExtUIOp, a, "i32") for a in ("i1", "i8")),
    *((arith.TruncIOp, "i64", b) for b in ("i1", "i8", "i32")),
    *((arith.ExtFOp, a, "f64") for a in ("f32", "f16", "bf16")),
    *((arith.TruncFOp, "f64", b) for b in ("f32", "f16", "bf16")),
    *((arith.BitcastOp, a, b) for a, b in (("f32", "i32"), ("i64", "f64"))),
]


def short(cls: type[Any]) -> str:
    return cls.name.split(".")[1]


class Cases:
    """Pairs of functions: `<name>_v8` and `<name>_v3` on vectors, `<name>_s` on single numbers."""

    def __init__(self) -> None:
        self.functions: list[func.FuncOp] = []
        self.all: list[tuple[str, list[str], str]] = []

    def add(self, name: str, inputs: list[str], output: str, make: Any) -> None:
        self.all.append((name, inputs, output))
        for lanes in LANES:
            self.functions.append(self._function(f"{name}_v{lanes}", inputs, output, make, lanes))
        self.functions.append(self._function(f"{name}_s", inputs, output, make, 0))

    def _function(
        self, name: str, inputs: list[str], output: str, make: Any, lanes: int
    ) -> func.FuncOp:
        types = [TYPES[t][0] for t in (*inputs, output)]
        memrefs = [MemRefType(t, [8]) for t in types]
        function = func.FuncOp(name, (memrefs, []))
        entry = function.body.block
        bounds = [arith.ConstantOp(IntegerAttr(v, INDEX)) for v in (0, 1, 1 if lanes else 8)]
        inner = Block(arg_types=[INDEX])
        index = inner.args[0]
        loaded: list[SSAValue] = []
        for a in entry.args[:-1]:
            t = a.type
            assert isinstance(t, MemRefType)
            if lanes:
                op = vector.LoadOp(a, [index], VectorType(t.element_type, [lanes]))
            else:
                op = memref.LoadOp.get(a, [index])
            loaded.append(self._add(inner, op))
        target = VectorType(types[-1], [lanes]) if lanes else types[-1]
        value = self._add(inner, make(target, *loaded))
        if lanes:
            inner.add_op(vector.StoreOp(value, entry.args[-1], [index]))
        else:
            inner.add_op(memref.StoreOp.get(value, entry.args[-1], [index]))
        inner.add_op(scf.YieldOp())
        zero, one, end = bounds
        entry.add_ops([*bounds, scf.ForOp(zero, end, one, [], Region(inner)), func.ReturnOp()])
        return function

    def _add(self, block: Block, op: Any) -> SSAValue:
        block.add_op(op)
        return op.results[0]


def all_cases() -> Cases:
    cases = Cases()
    for t in FLOATS:
        for cls in FLOAT_BINARY:
            cases.add(f"{short(cls)}_{t}", [t, t], t, lambda r, a, b, c=cls: c(a, b))
        for cls in FLOAT_UNARY:
            cases.add(f"{short(cls)}_{t}", [t], t, lambda r, a, c=cls: c(a))
        cases.add(f"fma_{t}", [t, t, t], t, lambda r, a, b, c: math.FmaOp(a, b, c))
        for k in range(16) if t == "f32" else (0, 4, 7, 9):
            cases.add(f"cmpf{k}_{t}", [t, t], "i1", lambda r, a, b, k=k: arith.CmpfOp(a, b, k))
    for t in INTEGERS:
        for cls in INTEGER_BINARY:
            cases.add(f"{short(cls)}_{t}", [t, t], t, lambda r, a, b, c=cls: c(a, b))
        for k in range(10) if t in ("i1", "i32") else (1, 3, 8):
            cases.add(f"cmpi{k}_{t}", [t, t], "i1", lambda r, a, b, k=k: arith.CmpiOp(a, b, k))
    for t in TYPES:
        cases.add(f"select_{t}", ["i1", t, t], t, lambda r, c, a, b: arith.SelectOp(c, a, b))
    for cls, a, b in CASTS:
        cases.add(f"{short(cls)}_{a}_{b}", [a], b, lambda r, v, c=cls: c(v, r))
    return cases


def numbers(t: str, seed: int) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    dtype = TYPES[t][1]
    if t == "i1":
        return generator.integers(0, 2, 8).astype(np.uint8)
    if t in INTEGERS:
        info = np.iinfo(dtype)
        special = [0, -1, int(info.min), int(info.max), 3, -7]
        return np.array([*special, *generator.integers(-50, 50, 2).tolist()], dtype)[
            generator.permutation(8)
        ]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5]
    values = np.array([*special, *(generator.standard_normal(2) * 300).tolist()])
    return values.astype(dtype)[generator.permutation(8)]


def same_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    equal = a.view(np.uint8).reshape(a.size, -1) == b.view(np.uint8).reshape(b.size, -1)
    return bool((equal.all(axis=1) | ((a != a) & (b != b))).all())


@pytest.mark.parametrize(
    "flags",
    [
        ("gcc", "-O1", "-march=native"),
        ("clang", "-O0", "-fsanitize=undefined", "-fsanitize-trap=undefined"),
        ("g++", "-O0"),
    ],
    ids=lambda f: f[0],
)
def test_vectors_are_scalars_side_by_side(build: Any, flags: tuple[str, ...]) -> None:
    cases = all_cases()
    library = build(emit_c(ModuleOp(cases.functions)).text, *flags)
    for name, inputs, output in cases.all:
        for seed in range(3):
            arrays = [numbers(t, 10 * seed + i) for i, t in enumerate(inputs)]
            results = {form: np.full(8, 7).astype(TYPES[output][1]) for form in ("s", "v8", "v3")}
            for form, out in results.items():
                library(f"{name}_{form}", *arrays, out)
            assert same_bits(results["v8"], results["s"]), (name, arrays, results)
            assert same_bits(results["v3"][:3], results["s"][:3]), (name, arrays, results)
            assert (results["v3"][3:] == results["v3"].dtype.type(7)).all(), name
    assert len(cases.all) > 150


MOVES = (Path(__file__).parent / "vector_moves.mlir").read_text()


@pytest.mark.parametrize(
    "flags",
    [("gcc", "-O2"), ("gcc", "-O1", "-march=native"), ("clang", "-O2", "-march=native"), ("g++",)],
    ids=" ".join,
)
def test_lanes_move_where_they_should(build: Any, flags: tuple[str, ...]) -> None:
    library = build(emit_c(parse_text(MOVES)).text, *flags)
    x = np.arange(1, 17, dtype=np.float32) * np.float32(1.1)
    y = -np.arange(1, 17, dtype=np.float32)
    m = np.array([1, 1, 0, 1, 0, 1, 1, 1], np.uint8)
    for n in (-3, 0, 1, 3, 7):
        o = np.zeros(200, np.float32)
        at = max(n, 0)
        library("moves", x, y, m, at, o)
        a, b = x[:8], y[:8]
        ab = np.concatenate([a, b])
        want = np.zeros(200, np.float32)
        want[:8] = ab[[0, 15, 3, 3, 8, 1, 2, 9]]
        want[8:11] = ab[[7, 8, 0]]
        mixed = np.array([a[1], b[0], b[7], a[0]])
        want[16:20] = mixed
        want[24:32] = b
        want[26] = a[5]
        want[24 + at] = a[at]
        want[32:36] = a[5]
        want[40:44] = mixed
        want[48 : 48 + at] = a[:at]
        want[56:64] = np.where(np.arange(8) < at, y[8:], a)
        mask = (m == 1) & (np.arange(8) < at)
        want[64:72] = np.where(mask, a, b)
        want[72] = mask[1]
        want[80] = a[5]
        want[88:96] = [
            np.float32(float(p) * float(q) + float(r)) for p, q, r in zip(a, b, a, strict=True)
        ]
        total = a[0]
        for v in a[1:]:
            total = np.float32(total + v)
        want[96] = total
        want[104] = max(7.0, a[7])
        want[112:115] = a[:3]
        want[120:123] = x[13:]
        assert np.array_equal(o, want), (n, np.flatnonzero(o != want))


def test_masks_of_several_dimensions(build: Any) -> None:
    text = """
    func.func @mask(%r: index, %c: index, %o: memref<12xi32>) {
      %c0 = arith.constant 0 : index
      %m = vector.create_mask %r, %c : vector<3x4xi1>
      %one = arith.constant dense<1> : vector<3x4xi32>
      %no = arith.constant dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, -11]]> : vector<3x4xi32>
      %s = arith.select %m, %one, %no : vector<3x4xi1>, vector<3x4xi32>
      %f = vector.shuffle %s, %s [2, 1, 0] : vector<3x4xi32>, vector<3x4xi32>
      %row = vector.extract %f[0] : vector<4xi32> from vector<3x4xi32>
      vector.store %row, %o[%c0] : memref<12xi32>, vector<4xi32>
      func.return
    }"""
    library = build(emit_c(parse_text(text)).text, "clang", "-O1")
    for r, c in ((0, 4), (3, 2), (3, 4), (2, 4), (9, 9), (-1, 3)):
        out = np.zeros(12, np.int32)
        library("mask", r, c, out)
        want = np.where(np.arange(4) < (c if r >= 3 else 0), 1, [8, 9, 10, -11])
        assert np.array_equal(out[:4], want), (r, c, out)
