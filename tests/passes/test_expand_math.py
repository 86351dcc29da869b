"""expand-math against libm a format wider, compiled from the IR op by op, and bit for bit in numpy."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func, math, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    ModuleOp,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
    f128,
)
from xdsl.ir import Block, Operation, Region

from uopc.dialects.errors import UopcError
from uopc.passes.expand_math import EXPANSIONS, ExpandMathPass

COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")

KINDS = {kind.name.removeprefix("math."): kind for kind in EXPANSIONS}
BINARY = ("atan2", "powf")
UNARY = tuple(name for name in KINDS if name not in BINARY)
LIBM = {"powf": "pow", "rsqrt": "reference_rsqrt"}
LIMIT = {"asinh": 2.5, "acosh": 2.5, "atanh": 2.5}


def expanded(name: str, element=f32, shape: tuple[int, ...] = ()) -> ModuleOp:
    """A module with one function that is the expansion of math.<name>."""
    kind = KINDS[name]
    value_type = VectorType(element, shape) if shape else element
    count = 2 if name in BINARY else 1
    block = Block(arg_types=[value_type] * count)
    op = kind.create(
        operands=list(block.args),
        result_types=[value_type],
        properties={"fastmath": arith.FastMathFlagsAttr("none")},
    )
    block.add_ops([op, func.ReturnOp(op.results[0])])
    function = func.FuncOp(name, ([value_type] * count, [value_type]), Region(block))
    module = ModuleOp([function])
    ExpandMathPass().apply(Context(), module)
    return module


def body(module: ModuleOp) -> Block:
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    return function.body.block


# ---- the IR as C ---------------------------------------------------------------------------------

C_TYPES = {"f32": "float", "f64": "double", "i32": "uint32_t", "i64": "uint64_t", "i1": "int"}
C_INFIX = {
    "arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/",
    "arith.addi": "+", "arith.subi": "-", "arith.divui": "/", "arith.shli": "<<",
    "arith.andi": "&", "arith.ori": "|", "arith.xori": "^",
}  # fmt: skip
C_CALLS = {"math.sqrt": "sqrt", "math.absf": "fabs", "math.roundeven": "rint", "math.fma": "fma"}
FLOAT_PREDICATES = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
INT_PREDICATES = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">="}


def c_literal(op: arith.ConstantOp, kind: str) -> str:
    value = op.value.value.data
    if kind.startswith("i"):
        return f"({C_TYPES[kind]}){value}LL"
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"({C_TYPES[kind]}){value.hex()}"


def c_expression(op: Operation, names: dict, kind: str, source: str) -> str:
    a = [names[operand] for operand in op.operands]
    suffix = "f" if kind == "f32" else ""
    if op.name in C_INFIX:
        return f"{a[0]} {C_INFIX[op.name]} {a[1]}"
    if op.name in C_CALLS:
        return f"{C_CALLS[op.name]}{suffix}({', '.join(a)})"
    signed = "int" + source[1:] + "_t"
    match op.name:
        case "arith.constant":
            return c_literal(op, kind)
        case "arith.negf":
            return f"-{a[0]}"
        case "arith.cmpf":
            return f"{a[0]} {FLOAT_PREDICATES[op.predicate.value.data]} {a[1]}"
        case "arith.cmpi":
            return f"({signed}){a[0]} {INT_PREDICATES[op.predicate.value.data]} ({signed}){a[1]}"
        case "arith.select":
            return f"{a[0]} ? {a[1]} : {a[2]}"
        case "arith.bitcast":
            return f"bits_{source}_{kind}({a[0]})"
        case "arith.shrsi":
            return f"({C_TYPES[kind]})(({signed}){a[0]} >> {a[1]})"
        case "arith.sitofp":
            return f"({C_TYPES[kind]})({signed}){a[0]}"
        case "arith.extf" | "arith.truncf":
            return f"({C_TYPES[kind]}){a[0]}"
        case _:
            raise AssertionError(f"{op.name} is not allowed in an expansion")


def c_function(module: ModuleOp, name: str) -> str:
    block = body(module)
    kind = str(block.args[0].type)
    names = {argument: f"x{i}" for i, argument in enumerate(block.args)}
    parameters = ", ".join(f"{C_TYPES[kind]} {n}" for n in names.values())
    lines = [f"static inline {C_TYPES[kind]} {name}_{kind}({parameters}) {{"]
    for op in block.ops:
        if isinstance(op, func.ReturnOp):
            lines.append(f"  return {names[op.operands[0]]};\n}}")
            break
        target, source = str(op.results[0].type), str(op.operands[0].type) if op.operands else ""
        names[op.results[0]] = f"v{len(names)}"
        expression = c_expression(op, names, target, source)
        lines.append(f"  {C_TYPES[target]} {names[op.results[0]]} = {expression};")
    return "\n".join(lines)


C_PRELUDE = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
#define BITS(A, B, S, T) static inline T bits_##A##_##B(S x) { T y; memcpy(&y, &x, sizeof y); return y; }
BITS(f32, i32, float, uint32_t) BITS(i32, f32, uint32_t, float)
BITS(f64, i64, double, uint64_t) BITS(i64, f64, uint64_t, double)
static double reference_rsqrt(double x) { return 1 / sqrt(x); }
static long double reference_rsqrtl(long double x) { return 1 / sqrtl(x); }
/* Units in the last place between `got` and the exact `want`, for `digits` significant bits. */
static double ulps(long double got, long double want, int digits, int least, long double top) {
  if (got != got || want != want) return (got != got) == (want != want) ? 0 : 1e30;
  if (got == want) return want == 0 && !signbit(got) != !signbit(want) ? 1e29 : 0;
  if (fabsl(want) > top) return fabsl(got) >= top && (got > 0) == (want > 0) ? 0 : 1e28;
  if (isinf(got)) got = got > 0 ? top + scalbnl(1, ilogbl(top) - digits + 1) : -top;
  if (want == 0) return 1e27;
  if (got == 0 && !signbit(got) != !signbit(want)) return 1e26;
  int exponent = ilogbl(want) < least ? least : ilogbl(want);
  return (double)fabsl(scalbnl(got - want, digits - 1 - exponent));
}
#define ULPS_f32(got, want) ulps(got, want, 24, -126, 0x1.fffffep127L)
#define ULPS_f64(got, want) ulps(got, want, 53, -1022, 0x1.fffffffffffffp1023L)
"""

C_UNARY = """
void map_{n}_{k}(const {t} *x, {t} *y, long count) {{
  for (long i = 0; i < count; i++) y[i] = {n}_{k}(x[i]);
}}
double worst_{n}_{k}(const {t} *x, long count, {t} *at) {{
  double worst = 0;
  for (long i = 0; i < count; i++) {{
    double error = ULPS_{k}({n}_{k}(x[i]), {wide}(({w})x[i]));
    if (error > worst) {{ worst = error; *at = x[i]; }}
  }}
  return worst;
}}
"""
C_SWEEP = """
double sweep_{n}(uint32_t first, uint32_t step, uint64_t count, float *at) {{
  double worst = 0;
  for (uint64_t i = 0; i < count; i++) {{
    float x = bits_i32_f32(first + step * (uint32_t)i), got = {n}_f32(x);
    double want = {wide}(x);
    if (got == (float)want && want != 0) continue;
    double error = ULPS_f32(got, want);
    if (error > worst) {{ worst = error; *at = x; }}
  }}
  return worst;
}}
"""
C_BINARY = """
void map_{n}_{k}(const {t} *x, const {t} *z, {t} *y, long count) {{
  for (long i = 0; i < count; i++) y[i] = {n}_{k}(x[i], z[i]);
}}
double worst_{n}_{k}(const {t} *x, const {t} *z, long count, {t} *at) {{
  double worst = 0;
  for (long i = 0; i < count; i++) {{
    double error = ULPS_{k}({n}_{k}(x[i], z[i]), {wide}(({w})x[i], ({w})z[i]));
    if (error > worst) {{ worst = error; at[0] = x[i]; at[1] = z[i]; }}
  }}
  return worst;
}}
"""


def c_source() -> str:
    parts = [C_PRELUDE]
    for name in KINDS:
        libm = LIBM.get(name, name)
        for element, kind, wide, wider in ((f32, "f32", "", "double"), (f64, "f64", "l", "long double")):
            parts.append(c_function(expanded(name, element), name))
            form = C_BINARY if name in BINARY else C_UNARY
            parts.append(form.format(n=name, k=kind, t=C_TYPES[kind], wide=libm + wide, w=wider))
        if name not in BINARY:
            parts.append(C_SWEEP.format(n=name, wide=libm))
    return "\n".join(parts)


def build(folder: Path, compiler: str, flags: tuple[str, ...], source: str) -> ctypes.CDLL:
    path = folder / ("functions_" + "_".join((Path(compiler).name, *flags)).replace("=", ""))
    path.with_suffix(".c").write_text(source)
    library = path.with_suffix(".so")
    command = [compiler, "-std=gnu11", "-shared", "-fPIC", "-ffp-contract=off", *flags]
    command += ["-o", str(library), str(path.with_suffix(".c")), "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="module")
def source() -> str:
    return c_source()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, source: str) -> ctypes.CDLL:
    assert COMPILER is not None
    return build(tmp_path_factory.mktemp("math"), COMPILER, ("-O2", "-march=native"), source)


def pointer(values: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.ctypes.data)


def worst(library: ctypes.CDLL, name: str, *inputs: np.ndarray) -> tuple[float, np.ndarray]:
    kind = "f32" if inputs[0].dtype == np.float32 else "f64"
    function = getattr(library, f"worst_{name}_{kind}")
    function.restype = ctypes.c_double
    at = np.zeros(2, inputs[0].dtype)
    error = function(*map(pointer, inputs), ctypes.c_long(inputs[0].size), pointer(at))
    return error, at


def apply(library: ctypes.CDLL, name: str, *inputs: np.ndarray) -> np.ndarray:
    kind = "f32" if inputs[0].dtype == np.float32 else "f64"
    result = np.empty_like(inputs[0])
    function = getattr(library, f"map_{name}_{kind}")
    function(*map(pointer, inputs), pointer(result), ctypes.c_long(result.size))
    return result


def sweep(library: ctypes.CDLL, name: str, first: int, step: int, count: int) -> tuple[float, float]:
    function = getattr(library, f"sweep_{name}")
    function.restype = ctypes.c_double
    at = ctypes.c_float()
    arguments = (ctypes.c_uint32(first), ctypes.c_uint32(step), ctypes.c_uint64(count))
    return function(*arguments, ctypes.byref(at)), at.value
