"""Runs expansions: compiled from the IR op by op, with libm a format wider to compare with."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp, VectorType, f32, f64
from xdsl.ir import Attribute, Block, Operation, Region

from uopc.passes.expand_math import EXPANSIONS, ExpandMathPass

KINDS = {kind.name.removeprefix("math."): kind for kind in EXPANSIONS}
BINARY = ("atan2", "powf")
LIBM = {"powf": "pow", "rsqrt": "reference_rsqrt"}


def expanded(name: str, element: Attribute = f32, shape: tuple[int, ...] = ()) -> Block:
    """The body of a function that is the expansion of math.<name>."""
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
    ExpandMathPass().apply(Context(), ModuleOp([function]))
    return block


@pytest.fixture(scope="session")
def expand() -> Callable[..., Block]:
    return expanded


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


def c_function(block: Block, name: str) -> str:
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
#define BITS(A, B, S, T) \
  static inline T bits_##A##_##B(S x) { T y; memcpy(&y, &x, sizeof y); return y; }
BITS(f32, i32, float, uint32_t) BITS(i32, f32, uint32_t, float)
BITS(f64, i64, double, uint64_t) BITS(i64, f64, uint64_t, double)
static double reference_rsqrt(double x) { return 1 / sqrt(x); }
static long double reference_rsqrtl(long double x) { return 1 / sqrtl(x); }
/* Units in the last place between `got` and the exact `want`, for `digits` significant bits. */
static double ulps(
    long double got, long double want, int digits, int least, long double top) {
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

C_MAP = """
void map_{n}_{k}({parameters}, {t} *result, long count) {{
  for (long i = 0; i < count; i++) result[i] = {n}_{k}({arguments});
}}
"""
C_WORST = """
double worst_{n}_{k}({parameters}, long count, {t} *at) {{
  double worst = 0;
  for (long i = 0; i < count; i++) {{
    double error = ULPS_{k}({n}_{k}({arguments}), {wide}({arguments}));
    if (error > worst) {{ worst = error; {save} }}
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


def c_source(references: bool) -> str:
    """Each expansion and its loop; with `references` the loops that compare with libm too."""
    parts = [C_PRELUDE]
    for name in KINDS:
        libm = LIBM.get(name, name)
        inputs = "xz" if name in BINARY else "x"
        for element, wide in ((f32, ""), (f64, "l")):
            kind = str(element)
            fields = {
                "n": name, "k": kind, "t": C_TYPES[kind], "wide": libm + wide,
                "parameters": ", ".join(f"const {C_TYPES[kind]} *{x}" for x in inputs),
                "arguments": ", ".join(f"{x}[i]" for x in inputs),
                "save": " ".join(f"at[{i}] = {x}[i];" for i, x in enumerate(inputs)),
            }  # fmt: skip
            parts += [c_function(expanded(name, element), name), C_MAP.format(**fields)]
            if references:
                parts.append(C_WORST.format(**fields))
        if references and name not in BINARY:
            parts.append(C_SWEEP.format(n=name, wide=libm))
    return "\n".join(parts)


class Compiled:
    """The expansions as a library."""

    def __init__(self, folder: Path, compiler: str, flags: tuple[str, ...], source: str) -> None:
        path = folder / ("functions_" + "_".join((compiler, *flags)).replace("=", ""))
        path.with_suffix(".c").write_text(source)
        library = path.with_suffix(".so")
        command = [compiler, "-std=gnu11", "-shared", "-fPIC", "-ffp-contract=off", *flags]
        command += ["-o", str(library), str(path.with_suffix(".c")), "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        self.library = ctypes.CDLL(str(library))

    def apply(self, name: str, *inputs: np.ndarray) -> np.ndarray:
        """The function of each place of the inputs, all f32 or all f64."""
        result = np.empty_like(inputs[0])
        function = getattr(self.library, f"map_{name}_{format_of(result)}")
        function(*map(pointer, inputs), pointer(result), ctypes.c_long(result.size))
        return result

    def worst(self, name: str, *inputs: np.ndarray) -> tuple[float, np.ndarray]:
        """The largest error in units in the last place, and the arguments it is at."""
        function = getattr(self.library, f"worst_{name}_{format_of(inputs[0])}")
        function.restype = ctypes.c_double
        at = np.zeros(2, inputs[0].dtype)
        error = function(*map(pointer, inputs), ctypes.c_long(inputs[0].size), pointer(at))
        return error, at

    def sweep(self, name: str, first: int, step: int, count: int) -> tuple[float, float]:
        """The same for f32 over the encodings first + step i, i < count."""
        function = getattr(self.library, f"sweep_{name}")
        function.restype = ctypes.c_double
        at = ctypes.c_float()
        arguments = (ctypes.c_uint32(first), ctypes.c_uint32(step), ctypes.c_uint64(count))
        return function(*arguments, ctypes.byref(at)), at.value


def format_of(values: np.ndarray) -> str:
    return "f32" if values.dtype == np.float32 else "f64"


def pointer(values: np.ndarray) -> ctypes.c_void_p:
    assert values.flags.c_contiguous
    return ctypes.c_void_p(values.ctypes.data)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    compiler = next((c for c in ("gcc", "cc", "clang") if shutil.which(c)), None)
    if compiler is None:
        pytest.skip("needs a C compiler")
    flags = ("-O2", "-march=native")
    return Compiled(tmp_path_factory.mktemp("math"), compiler, flags, c_source(references=True))


@pytest.fixture(scope="session")
def other_builds(tmp_path_factory: pytest.TempPathFactory) -> list[Compiled]:
    """The same expansions by each compiler there is, without optimisation and with much."""
    folder, source = tmp_path_factory.mktemp("builds"), c_source(references=False)
    return [
        Compiled(folder, compiler, flags, source)
        for compiler in ("gcc", "clang")
        if shutil.which(compiler)
        for flags in (("-O0",), ("-O3", "-march=native", "-fno-trapping-math"))
    ]


def some_samples(kind: type, count: int, seed: int) -> np.ndarray:
    """Any encodings, and as many numbers of every-day sizes, with the edges of the format."""
    rng = np.random.default_rng(seed)
    encodings = rng.integers(
        0, 2 ** (8 * np.dtype(kind).itemsize), count, dtype=f"u{np.dtype(kind).itemsize}"
    )
    sizes = [
        rng.normal(size=count),
        rng.normal(size=count) * 30,
        np.exp(rng.normal(size=count) * 12),
    ]
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([edges(kind), encodings.view(kind), *(s.astype(kind) for s in sizes)])


def edges(kind: type) -> np.ndarray:
    info = np.finfo(kind)
    positive = [0.0, 0.25, 0.5, 0.5625, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 1e10, info.max, info.tiny]
    positive += [info.smallest_subnormal, info.eps, np.inf, np.nan, np.pi / 4, np.pi / 2, np.pi]
    positive += [88.72284, 88.72283, 89.41599, 103.97208, 128.0, 149.0, 709.7827128933841, 1024.0]
    positive += [745.1332191019411, 710.4758600739439, 1074.0, 2.0**24 - 1, 2.0**24, 2.0**53 - 1]
    with np.errstate(over="ignore", under="ignore"):
        values = np.array(positive).astype(kind)
        ups, downs = np.nextafter(values, kind(np.inf)), np.nextafter(values, kind(-np.inf))
    return np.concatenate([values, ups, downs, -values, -ups, -downs])


def equal_encodings(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where the encodings are equal, any NaN being as good as another."""
    unsigned = f"u{a.dtype.itemsize}"
    return (a.view(unsigned) == b.view(unsigned)) | ((a != a) & (b != b))


@pytest.fixture(scope="session")
def samples() -> Callable[[type, int, int], np.ndarray]:
    return some_samples


@pytest.fixture(scope="session")
def corners() -> Callable[[type], np.ndarray]:
    return edges


@pytest.fixture(scope="session")
def same_bits() -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return equal_encodings
