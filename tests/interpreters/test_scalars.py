"""Every scalar op of the interpreter against C at -O0."""

from __future__ import annotations

import ctypes
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from linear_programs import parse

from uopc.dialects.element_types import element_type_named
from uopc.interpreters.fused import fma
from uopc.interpreters.linear import LinearProgram
from uopc.lowering.c import emit_c

FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i1", "i8", "i16", "i32", "i64")


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
