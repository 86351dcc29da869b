"""The interpreter of loops: every scalar op against C at -O0, loops whose order counts, memory."""

from __future__ import annotations

import ctypes
import math
import subprocess
from fractions import Fraction

import numpy as np
import pytest

from uopc.dialects.element_types import element_type_named
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import parse_text
from uopc.dialects.upstream_fixes import install
from uopc.dialects.verification import verify_module
from uopc.interpreters.fused import fma
from uopc.interpreters.lanes import LANE_LIMIT
from uopc.interpreters.linear import LinearProgram, run_linear
from uopc.interpreters.linear_core import TimeLimit
from uopc.lowering.c import emit_c

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i1", "i8", "i16", "i32", "i64")


def parse(text):
    install()
    module = parse_text(text)
    verify_module(module)
    return module


def loop_function(name, inputs, result, body, count):
    """A function that computes `body` from %a, %b, … at each of `count` places into %r."""
    arguments = [f"%p{k}: memref<{count}x{t}> {{llvm.noalias}}" for k, t in enumerate(inputs)]
    arguments.append(f"%r: memref<{count}x{result}> {{llvm.noalias}}")
    loads = [
        f"      %{'abc'[k]} = memref.load %p{k}[%i] : memref<{count}x{t}>"
        for k, t in enumerate(inputs)
    ]
    return "\n".join(
        [
            f"  func.func @{name}({', '.join(arguments)}) {{",
            "    %zero = arith.constant 0 : index",
            "    %one = arith.constant 1 : index",
            f"    %end = arith.constant {count} : index",
            "    scf.for %i = %zero to %end step %one {",
            *loads,
            f"      {body}",
            f"      memref.store %x, %r[%i] : memref<{count}x{result}>",
            "    }",
            "    func.return",
            "  }",
        ]
    )


def scalar_ops():
    """(inputs' types, result's type, text) of every op that C can be asked about."""
    wrapping = ("addi", "subi", "muli", "andi", "ori", "xori", "shli", "shrui", "shrsi",
                "divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui",
                "minsi", "minui", "maxsi", "maxui")  # fmt: skip
    for t in INTEGERS:
        for op in wrapping:
            yield (t, t), t, f"arith.{op} %a, %b : {t}"
        for p in ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"):
            yield (t, t), "i1", f"arith.cmpi {p}, %a, %b : {t}"
        for op in ("ctlz", "cttz", "ctpop", "absi"):
            yield (t,), t, f"math.{op} %a : {t}"
        yield (t, t), t, f"math.ipowi %a, %b : {t}"
        yield ("i1", t, t), t, f"arith.select %a, %b, %c : {t}"
    for t in FLOATS:
        for op in ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf"):
            yield (t, t), t, f"arith.{op} %a, %b : {t}"
        for p in ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge",
                  "ult", "ule", "une", "uno", "true"):  # fmt: skip
            yield (t, t), "i1", f"arith.cmpf {p}, %a, %b : {t}"
        yield (t,), t, f"arith.negf %a : {t}"
        for op in ("absf", "floor", "ceil", "trunc", "roundeven", "round", "sqrt", "rsqrt"):
            yield (t,), t, f"math.{op} %a : {t}"
        yield (t, t), t, f"math.copysign %a, %b : {t}"
        yield (t, t, t), t, f"math.fma %a, %b, %c : {t}"
        for i in INTEGERS[1:]:
            for op in ("fptosi", "fptoui"):
                yield (t,), i, f"arith.{op} %a : {t} to {i}"
        for i in INTEGERS:
            for op in ("sitofp", "uitofp"):
                yield (i,), t, f"arith.{op} %a : {i} to {t}"
    widths = {t: element_type_named(t).bits for t in (*INTEGERS, *FLOATS)}
    for a in INTEGERS:
        for b in INTEGERS:
            if widths[a] < widths[b]:
                yield (a,), b, f"arith.extsi %a : {a} to {b}"
                yield (a,), b, f"arith.extui %a : {a} to {b}"
                yield (b,), a, f"arith.trunci %a : {b} to {a}"
    for a in FLOATS:
        for b in FLOATS:
            if widths[a] < widths[b]:
                yield (a,), b, f"arith.extf %a : {a} to {b}"
                yield (b,), a, f"arith.truncf %a : {b} to {a}"
        for i in INTEGERS:
            if widths[i] == widths[a]:
                yield (a,), i, f"arith.bitcast %a : {a} to {i}"
                yield (i,), a, f"arith.bitcast %a : {i} to {a}"


def operands(ops, types):
    """All combinations of the edge values of some types, flat; of three, a part of them."""
    edges = [ops.edges(t) for t in types]
    if len(types) == 3:
        edges = [e if len(e) < 3 else e[:: len(e) // 10 or 1] for e in edges]
    grids = np.meshgrid(*edges, indexing="ij")
    return [np.ascontiguousarray(g.reshape(-1)) for g in grids]


def same(a, b):
    if a.dtype.kind in "fV" or a.dtype.name == "bfloat16":
        with np.errstate(all="ignore"):
            both = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    else:
        both = np.zeros(a.shape, bool)
    unsigned = f"u{a.dtype.itemsize}"
    return (a.view(unsigned) == b.view(unsigned)) | both


def test_every_scalar_op_gives_the_bits_of_c(ops, tmp_path):
    cases, texts = [], []
    for number, (types, result, body) in enumerate(scalar_ops()):
        arrays = operands(ops, types)
        name = f"f{number}"
        texts.append(loop_function(name, types, result, f"%x = {body}", arrays[0].size))
        cases.append((name, arrays, result, body))
    module = parse("\n".join(texts))
    interpreted = LinearProgram(module)
    source, library = tmp_path / "ops.c", tmp_path / "ops.so"
    source.write_text(emit_c(module).text)
    command = ["cc", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-o", library, source, "-lm"]
    subprocess.run(command, check=True)
    compiled = ctypes.CDLL(str(library))
    wrong = []
    for name, arrays, result, body in cases:
        dtype = element_type_named(result).numpy
        ours, theirs = (np.zeros(arrays[0].size, dtype) for _ in range(2))
        interpreted.run(name, [*arrays, ours])
        compiled[name](*(ctypes.c_void_p(a.ctypes.data) for a in (*arrays, theirs)))
        good = same(ours, theirs)
        if not good.all():
            k = int(np.flatnonzero(~good)[0])
            wrong.append(f"{body} of {[a[k] for a in arrays]}: {ours[k]}, C has {theirs[k]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_a_fused_multiply_add_is_rounded_once(ops, name):
    dtype = ops.row(name).numpy
    rng = np.random.default_rng(5)
    bits = f"u{dtype.itemsize}"
    a, b = (rng.integers(0, np.iinfo(bits).max, 300, bits).view(dtype) for _ in range(2))
    with np.errstate(all="ignore"):
        c = np.where(rng.random(300) < 0.5, -(a * b), a).astype(dtype)
    ok = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    a, b, c = a[ok], b[ok], c[ok]
    with np.errstate(all="ignore"):
        got = fma(a, b, c)
    for x, y, z, r in zip(a, b, c, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert float(r) == ops.round_exact(exact, name)


# Loops whose iterations must not run together.

PREFIX = """
func.func @f(%x: memref<100xi32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 100 : index
  scf.for %i = %one to %end step %one {
    %p = arith.subi %i, %one : index
    %a = memref.load %x[%p] : memref<100xi32>
    %b = memref.load %x[%i] : memref<100xi32>
    %s = arith.addi %a, %b : i32
    memref.store %s, %x[%i] : memref<100xi32>
  }
  func.return
}
"""
HISTOGRAM = """
func.func @f(%k: memref<1000xindex>, %h: memref<7xi64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %more = arith.constant 1 : i64
  %end = arith.constant 1000 : index
  scf.for %i = %zero to %end step %one {
    %n = memref.load %k[%i] : memref<1000xindex>
    %old = memref.load %h[%n] : memref<7xi64>
    %new = arith.addi %old, %more : i64
    memref.store %new, %h[%n] : memref<7xi64>
  }
  func.return
}
"""
LAST_WINS = """
func.func @f(%x: memref<8x50xf32>, %o: memref<57xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 8 : index
  %m = arith.constant 50 : index
  scf.for %i = %zero to %n step %one {
    scf.for %j = %zero to %m step %one {
      %v = memref.load %x[%i, %j] : memref<8x50xf32>
      %k = arith.addi %i, %j : index
      memref.store %v, %o[%k] : memref<57xf32>
    }
  }
  func.return
}
"""
IN_PLACE = """
func.func @f(%x: memref<300xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 300 : index
  scf.for %i = %zero to %end step %one {
    %a = memref.load %x[%i] : memref<300xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %x[%i] : memref<300xf32>
  }
  func.return
}
"""
SCRATCH = """
func.func @f(%x: memref<40xf32>, %o: memref<40xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %end = arith.constant 40 : index
  %shared = memref.alloca() : memref<4xf32>
  scf.for %i = %zero to %end step %four {
    %own = memref.alloca() : memref<4xf32>
    scf.for %j = %zero to %four step %one {
      %k = arith.addi %i, %j : index
      %a = memref.load %x[%k] : memref<40xf32>
      memref.store %a, %own[%j] : memref<4xf32>
      memref.store %a, %shared[%j] : memref<4xf32>
    }
    scf.for %j = %zero to %four step %one {
      %three = arith.constant 3 : index
      %r = arith.subi %three, %j : index
      %a = memref.load %own[%r] : memref<4xf32>
      %b = memref.load %shared[%r] : memref<4xf32>
      %s = arith.addf %a, %b : f32
      %k = arith.addi %i, %j : index
      memref.store %s, %o[%k] : memref<40xf32>
    }
  }
  func.return
}
"""


def test_a_chain_through_memory_runs_in_order():
    x = np.arange(100, dtype=np.int32)
    expected = np.cumsum(x, dtype=np.int32)
    run_linear(parse(PREFIX), "f", [x])
    assert (x == expected).all()


def test_iterations_that_meet_by_chance_run_in_order():
    k = np.random.default_rng(0).integers(0, 7, 1000)
    h = np.zeros(7, np.int64)
    run_linear(parse(HISTOGRAM), "f", [k, h])
    assert (h == np.bincount(k, minlength=7)).all()


def test_of_several_stores_to_an_element_the_last_wins():
    x = np.random.default_rng(0).random((8, 50)).astype(np.float32)
    o = np.zeros(57, np.float32)
    run_linear(parse(LAST_WINS), "f", [x, o])
    expected = np.zeros(57, np.float32)
    for i in range(8):
        expected[i : i + 50] = x[i]
    assert (o == expected).all()


def test_each_iteration_may_change_its_own_element():
    x = np.arange(300, dtype=np.float32)
    program = LinearProgram(parse(IN_PLACE))
    program.run("f", [x])
    assert (x == 2 * np.arange(300)).all()


def test_scratch_memory_inside_and_outside_of_a_loop():
    x, o = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    run_linear(parse(SCRATCH), "f", [x, o])
    assert (o == 2 * x.reshape(10, 4)[:, ::-1].reshape(-1)).all()


def test_more_iterations_than_lanes():
    count = LANE_LIMIT + 1000
    text = IN_PLACE.replace("300", str(count))
    x = np.ones(count, np.float32)
    run_linear(parse(text), "f", [x])
    assert (x == 2).all()


# Control flow, for one lane and for many.

CONTROL = """
func.func private @collatz(%n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %last, %steps = scf.while (%v = %n, %c = %zero) : (i64, i64) -> (i64, i64) {
    %go = arith.cmpi sgt, %v, %one : i64
    scf.condition(%go) %v, %c : i64, i64
  } do {
  ^bb0(%v: i64, %c: i64):
    %r = arith.remsi %v, %two : i64
    %odd = arith.cmpi eq, %r, %one : i64
    %next = scf.if %odd -> (i64) {
      %t = arith.muli %v, %three : i64
      %u = arith.addi %t, %one : i64
      scf.yield %u : i64
    } else {
      %h = arith.divsi %v, %two : i64
      scf.yield %h : i64
    }
    %d = arith.addi %c, %one : i64
    scf.yield %next, %d : i64, i64
  }
  func.return %steps : i64
}
func.func @f(%o: memref<60xi64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 60 : index
  scf.for %i = %zero to %end step %one {
    %j = arith.addi %i, %one : index
    %n = arith.index_cast %j : index to i64
    %s = func.call @collatz(%n) : (i64) -> i64
    memref.store %s, %o[%i] : memref<60xi64>
  }
  func.return
}
func.func @triangle(%o: memref<9xi64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 9 : index
  %start = arith.constant 0 : i64
  scf.for %i = %zero to %end step %one {
    %s = scf.for %j = %zero to %i step %one iter_args(%a = %start) -> (i64) {
      %k = arith.index_cast %j : index to i64
      %b = arith.addi %a, %k : i64
      scf.yield %b : i64
    }
    memref.store %s, %o[%i] : memref<9xi64>
  }
  func.return
}
func.func @cases(%o: memref<6xi32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 6 : index
  scf.for %i = %zero to %end step %one {
    %v = scf.index_switch %i -> i32
    case 1 {
      %a = arith.constant 10 : i32
      scf.yield %a : i32
    }
    case 4 {
      %b = arith.constant 40 : i32
      scf.yield %b : i32
    }
    default {
      %c = arith.constant -1 : i32
      scf.yield %c : i32
    }
    memref.store %v, %o[%i] : memref<6xi32>
  }
  func.return
}
func.func @grid(%x: memref<3x5xf32>, %o: memref<3x5xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 3 : index
  %m = arith.constant 5 : index
  %start = arith.constant 0.0 : f32
  %sum = "scf.parallel"(%zero, %zero, %n, %m, %one, %one, %start)
      <{operandSegmentSizes = array<i32: 2, 2, 2, 1>}> ({
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<3x5xf32>
    memref.store %v, %o[%i, %j] : memref<3x5xf32>
    scf.reduce(%v : f32) {
    ^bb1(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }) : (index, index, index, index, index, index, f32) -> f32
  func.return %sum : f32
}
"""


def collatz(n):
    steps = 0
    while n > 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


def test_lanes_leave_a_loop_one_by_one():
    o = np.zeros(60, np.int64)
    program = LinearProgram(parse(CONTROL))
    program.run("f", [o])
    assert o.tolist() == [collatz(n) for n in range(1, 61)]
    assert program.run("collatz", [27]) == [111]


def test_inner_loops_of_different_lengths():
    o = np.zeros(9, np.int64)
    run_linear(parse(CONTROL), "triangle", [o])
    assert o.tolist() == [sum(range(i)) for i in range(9)]


def test_lanes_take_different_cases():
    o = np.zeros(6, np.int32)
    run_linear(parse(CONTROL), "cases", [o])
    assert o.tolist() == [-1, 10, -1, -1, 40, -1]


def test_a_parallel_loop_reduces_in_row_major_order():
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    o = np.zeros((3, 5), np.float32)
    (total,) = run_linear(parse(CONTROL), "grid", [x, o])
    expected = np.float32(0)
    for v in x.reshape(-1):
        expected += v
    assert total == expected and (o == x).all()


# Vectors.

VECTORS = """
func.func @f(%x: memref<5x11xf32>, %o: memref<5x11xf32>, %s: memref<5xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %rows = arith.constant 5 : index
  %columns = arith.constant 11 : index
  %nothing = arith.constant dense<0.0> : vector<4xf32>
  %none = arith.constant 0.0 : f32
  scf.for %i = %zero to %rows step %one {
    %total = scf.for %j = %zero to %columns step %four iter_args(%a = %none) -> (f32) {
      %left = arith.subi %columns, %j : index
      %mask = vector.create_mask %left : vector<4xi1>
      %v = vector.maskedload %x[%i, %j], %mask, %nothing
        : memref<5x11xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %w = arith.addf %v, %v : vector<4xf32>
      vector.maskedstore %o[%i, %j], %mask, %w
        : memref<5x11xf32>, vector<4xi1>, vector<4xf32>
      %b = vector.reduction <add>, %v, %a : vector<4xf32> into f32
      scf.yield %b : f32
    }
    memref.store %total, %s[%i] : memref<5xf32>
  }
  func.return
}
func.func @parts(%x: memref<16xf32>, %k: index) -> (vector<4xf32>, f32, vector<2x4xf32>) {
  %zero = arith.constant 0 : index
  %a = vector.load %x[%zero] : memref<16xf32>, vector<4xf32>
  %four = arith.constant 4 : index
  %b = vector.load %x[%four] : memref<16xf32>, vector<4xf32>
  %c = vector.shuffle %a, %b [0, 5, -1, 7] : vector<4xf32>, vector<4xf32>
  %d = vector.extract %b[%k] : f32 from vector<4xf32>
  %e = vector.insert %d, %c [2] : f32 into vector<4xf32>
  %wide = vector.broadcast %e : vector<4xf32> to vector<2x4xf32>
  %f = vector.insert %a, %wide [1] : vector<4xf32> into vector<2x4xf32>
  func.return %e, %d, %f : vector<4xf32>, f32, vector<2x4xf32>
}
"""


def test_masked_vectors_along_rows():
    x = np.random.default_rng(2).standard_normal((5, 11)).astype(np.float32)
    o, s = np.zeros((5, 11), np.float32), np.zeros(5, np.float32)
    run_linear(parse(VECTORS), "f", [x, o, s])
    assert (o == x + x).all()
    expected = []
    for row in x:
        total = np.float32(0)
        for v in [*row, np.float32(0)]:
            total += v
        expected.append(total)
    assert s.tolist() == expected


def test_parts_of_vectors():
    x = np.arange(16, dtype=np.float32)
    e, d, f = run_linear(parse(VECTORS), "parts", [x, 3])
    assert (e.tolist(), float(d)) == ([0, 5, 7, 7], 7)
    assert f.tolist() == [[0, 5, 7, 7], [0, 1, 2, 3]]


# Views.

VIEWS = """
"memref.global"() <{sym_name = "table", sym_visibility = "private", type = memref<6xi32>,
  initial_value = dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>, constant}> : () -> ()
func.func @f(%bytes: memref<64xi8>, %o: memref<3xi32>) -> index {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %eight = arith.constant 8 : index
  %t = memref.get_global @table : memref<6xi32>
  %grid = memref.expand_shape %t [[0, 1]] output_shape [2, 3] : memref<6xi32> into memref<2x3xi32>
  %column = memref.subview %grid[0, 1] [2, 2] [1, 1]
    : memref<2x3xi32> to memref<2x2xi32, strided<[3, 1], offset: 1>>
  %v = memref.view %bytes[%eight][%three] : memref<64xi8> to memref<?xi32>
  %a = memref.load %column[%one, %zero] : memref<2x2xi32, strided<[3, 1], offset: 1>>
  memref.store %a, %v[%two] : memref<?xi32>
  %flat = memref.collapse_shape %grid [[0, 1]] : memref<2x3xi32> into memref<6xi32>
  %b = memref.load %flat[%three] : memref<6xi32>
  memref.store %b, %v[%zero] : memref<?xi32>
  %c = memref.reinterpret_cast %t to offset: [1], sizes: [2], strides: [3]
    : memref<6xi32> to memref<2xi32, strided<[3], offset: 1>>
  %d = memref.load %c[%one] : memref<2xi32, strided<[3], offset: 1>>
  memref.store %d, %v[%one] : memref<?xi32>
  %fixed = "memref.cast"(%v) : (memref<?xi32>) -> memref<3xi32>
  "memref.copy"(%fixed, %o) : (memref<3xi32>, memref<3xi32>) -> ()
  %n = memref.dim %v, %zero : memref<?xi32>
  func.return %n : index
}
"""


def test_views_share_memory():
    data, o = np.zeros(64, np.int8), np.zeros(3, np.int32)
    (n,) = run_linear(parse(VIEWS), "f", [data, o])
    assert (o.tolist(), n) == ([4, 5, 5], 3)
    assert data[8:20].view(np.int32).tolist() == [4, 5, 5]


# Mistakes.


def fails(kind, words, text, name, *arguments):
    with pytest.raises(UopcError) as caught:
        run_linear(parse(text), name, list(arguments))
    assert caught.value.kind == kind
    assert words in caught.value.message
    return caught.value


def test_accesses_outside_are_told_with_op_and_indices():
    text = PREFIX.replace("%end = arith.constant 100", "%end = arith.constant 103")
    error = fails(
        "out-of-bounds",
        "'memref.load' touches [100] of a buffer of shape [100]: index 0 is not from 0 to 99",
        text, "f", np.zeros(100, np.int32),
    )  # fmt: skip
    assert error.location is not None and error.location.line == 9
    assert "memref.load" in error.op_text
    text = VECTORS.replace("vector.create_mask %left", "vector.create_mask %columns")
    shape = np.zeros((5, 11), np.float32)
    fails("out-of-bounds", "touches [0, 11]", text, "f", shape, shape.copy(), shape[:, 0].copy())
    text = VIEWS.replace("arith.constant 8 : index", "arith.constant 60 : index")
    message = "a view of 12 bytes from byte 60 on does not fit 64 bytes"
    fails("out-of-bounds", message, text, "f", np.zeros(64, np.int8), np.zeros(3, np.int32))
    text = VIEWS.replace("[0, 1] [2, 2]", "[1, 1] [2, 2]").replace("offset: 1>>", "offset: 4>>")
    fails(
        "out-of-bounds", "takes 1 to 2 of axis 0", text, "f",
        np.zeros(64, np.int8), np.zeros(3, np.int32),
    )  # fmt: skip
    fails("out-of-bounds", "takes place 4 of 4", VECTORS, "parts", np.zeros(16, np.float32), 4)


def test_what_may_only_be_read():
    x = np.zeros(300, np.float32)
    x.flags.writeable = False
    fails("read-only", "'memref.store' writes to a buffer", IN_PLACE, "f", x)


def test_a_step_of_nothing():
    text = IN_PLACE.replace("%one = arith.constant 1", "%one = arith.constant 0")
    fails("bad-step", "a loop's step is not positive", text, "f", np.zeros(300, np.float32))


def test_what_is_called_must_be_there():
    fails("no-function", "there is no function @g with a body", IN_PLACE, "g")
    fails("bad-input", "@f takes 1 arguments, got 0", IN_PLACE, "f")
    fails("bad-input", "has dtype int64, expected float32", IN_PLACE, "f", np.zeros(300, np.int64))
    fails("bad-input", "has shape (3,)", IN_PLACE, "f", np.zeros(3, np.float32))
    unknown = 'func.func @f() {\n  "test.op"() : () -> ()\n  func.return\n}'
    fails("not-interpreted", "'test.op' has no meaning among loops and scalars", unknown, "f")
    endless = "func.func @f() {\n  func.call @f() : () -> ()\n  func.return\n}"
    fails("nesting-too-deep", "@f calls functions", endless, "f")
    huge = """
    func.func @f() {
      %a = memref.alloca() : memref<1000000x1000000x1000xf64>
      func.return
    }"""
    fails("out-of-memory", "memory ran out while @f", huge, "f")
    external = (
        "func.func private @g()\nfunc.func @f() {\n  func.call @g() : () -> ()\n  func.return\n}"
    )
    fails("not-interpreted", "@g is called and has no body", external, "f")


def test_loops_that_never_end_can_be_stopped():
    text = """
    func.func @f() {
      %true = arith.constant true
      scf.while () : () -> () {
        scf.condition(%true)
      } do {
        scf.yield
      }
      func.return
    }"""
    with TimeLimit.seconds(0.05):
        fails("took-too-long", "the time for interpreting a loop is over", text, "f")
    assert TimeLimit.until == math.inf
