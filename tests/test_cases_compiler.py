"""Mistakes that other compilers made with deep graphs, large constants, messages and plain C.

C58, a time, is a bound with slack. C60 to C62 on other tools and passes: tests/tools/test_opt.py
and test_opt_passes.py; C67 with more names: tests/lowering/test_c_names.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from all_paths import everywhere
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.utils.exceptions import VerifyException

import uopc
from uopc.dialects import tensor as ut
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import symbol
from uopc.dialects.numbers import dense_of_array
from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.lowering.c import emit_c, emit_header
from uopc.tools.opt import main as opt

pytestmark = pytest.mark.usefixtures("cache_folder")

STRICT = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]


def c_of(module, pipeline="uopc-cpu"):
    return emit_c(lower(module, CompileRequest(pipeline=pipeline)).module)


# Compile time


def test_c54_large_constants_cost_no_time_and_keep_their_values(graph):
    """64 MB beside an input, printed and parsed again on the way."""
    weight = np.random.default_rng(0).standard_normal((4096, 4096)).astype(np.float32)
    x = graph.input("x", (4096,))
    dense = dense_of_array(weight)
    wide = graph.expand(graph.reshape(x, 1, 4096), 4096, 4096)
    product = graph.op("mul", graph.add_op(ut.ConstantOp(dense, dense.type)), wide)
    module = graph.module(graph.reduce("add", product, 1))
    start = time.process_time()
    lowered = lower(read_program(module), CompileRequest())
    assert time.process_time() - start < 4
    assert lowered.plans[0].constants
    small = graph_with_constant(weight[:64, :64])
    given = np.linspace(-1, 1, 64, dtype=np.float32)
    result = uopc.run(str(small), [given])
    np.testing.assert_allclose(result, weight[:64, :64] @ given, rtol=1e-5, atol=1e-5)


def graph_with_constant(weight):
    n, k = weight.shape
    return f"""
func.func @main(%x: tensor<{k}xf32>) -> tensor<{n}xf32> {{
  %w = utensor.constant dense<"0x{weight.tobytes().hex()}"> : tensor<{n}x{k}xf32>
  %r = utensor.reshape %x : tensor<{k}xf32> -> tensor<1x{k}xf32>
  %e = utensor.expand %r : tensor<1x{k}xf32> -> tensor<{n}x{k}xf32>
  %p = utensor.mul %w, %e : tensor<{n}x{k}xf32>
  %s = utensor.reduce add %p axes [1] : tensor<{n}x{k}xf32>
  func.return %s : tensor<{n}xf32>
}}"""


@pytest.mark.parametrize("fuse_reduce", ["none", "all"])
def test_c56_sixty_doublings_stay_sixty(graph, fuse_reduce):
    x = y = graph.input("x", (4,))
    for _ in range(60):
        y = graph.op("add", graph.scaled(y, 0.5), graph.scaled(y, 0.5))
    values = np.array([1, -2.5, np.inf, 1e-40], np.float32)
    result = everywhere(graph.module(y), values, fuse_reduce=fuse_reduce)
    assert np.array_equal(result[:3], values[:3])
    assert x is not y


def test_c57_five_thousand_ops_in_a_chain(graph):
    x = graph.input("x", (4,), "i32")
    y, one = x, graph.full(3, x)
    for k in range(5000):
        y = graph.op("add" if k % 2 else "xor", y, one)
    limit = sys.getrecursionlimit()
    expected = np.arange(4, dtype=np.int32)
    result = everywhere(graph.module(y), expected)
    for k in range(5000):
        expected = expected + 3 if k % 2 else expected ^ 3
    assert result.tolist() == expected.tolist()
    assert sys.getrecursionlimit() == limit


def test_c57_two_thousand_movement_ops_in_a_chain(graph):
    x = graph.input("x", (2, 3))
    y = x
    for k in range(2000):
        y = graph.op("neg", graph.permute(y, 1, 0)) if k % 2 else graph.permute(y, 1, 0)
    result = everywhere(graph.module(y), np.arange(6, dtype=np.float32).reshape(2, 3))
    assert result.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_c58_import_is_lazy(cache_folder):
    code = (
        "import sys, uopc; heavy = {'numpy', 'xdsl', 'ml_dtypes'} & set(sys.modules); "
        "assert not heavy, heavy; assert callable(uopc.compile)"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert time.perf_counter() - start < 5


# Messages


def error_of(text: str, **options: object) -> UopcError:
    with pytest.raises(UopcError) as caught:
        uopc.compile(text, **options)  # pyright: ignore[reportArgumentType]
    return caught.value


def test_c60_c62_a_mistyped_pass_names_the_nearest(tmp_path, capsys):
    (tmp_path / "in.mlir").write_text("")
    assert opt([str(tmp_path / "in.mlir"), "-p", "linarize"]) == 1
    err = capsys.readouterr().err
    assert "error: there is no pass named 'linarize' [unknown-pass]" in err
    assert "did you mean linearize" in err
    assert opt([str(tmp_path / "in.mlir"), "-p", "kernelize{fuse-reduces=all}"]) == 1
    err = capsys.readouterr().err
    assert "did you mean fuse-reduce?" in err
    assert "options of kernelize: fuse-reduce" in err


def test_c61_a_wrong_index_count_has_a_place(tmp_path, capsys):
    path = tmp_path / "in.mlir"
    path.write_text(
        "func.func @f(%m: memref<4xf32>, %i: index) -> f32 {\n"
        '  %v = "memref.load"(%m, %i, %i) : (memref<4xf32>, index, index) -> f32\n'
        "  func.return %v : f32\n}\n"
    )
    assert opt([str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"{path}:2:8: error: 'memref.load' op ")
    assert "Traceback" not in err


WRONG = {
    "reduce add %x axes [2] : tensor<2x3xf32>": "reduce: axis 2 is out of range, expected 0 to 1",
    "permute %x [0, 0] : tensor<2x3xf32>": "permute: expected distinct axes, got [0, 0]",
    "expand %x : tensor<2x3xf32> -> tensor<2x4xf32>": "axis 1 has size 3, got 4",
    "reshape %x : tensor<2x3xf32> -> tensor<7xf32>": "expected 6, got 7 in 7",
    "shrink %x [0, 0] to [2, 4] : tensor<2x3xf32>": "axis 1 of size 3 has no elements 0 to 4",
    "pad %x low [0, -1] high [0, 0] value 0.0 : tensor<2x3xf32>": "axis 1 is padded by -1",
    "popcount %x : tensor<2x3xf32>": "expected signed or unsigned elements",
    "reduce xor %x axes [0] : tensor<2x3xf32>": "kind xor: expected signed, unsigned or i1",
    "bitcast %x : tensor<2x3xf32> -> tensor<2x3xi8>": "bitcast keeps the width: expected 32 bits",
    "iota axis 2 : tensor<2x3xi32>": "iota: axis 2 is out of range",
}


@pytest.mark.parametrize("op", WRONG)
def test_c61_every_mistake_has_a_place_and_both_sides(op):
    text = f"""func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {{
  %y = utensor.{op}
  func.return %x : tensor<2x3xf32>
}}"""
    error = error_of(text)
    assert WRONG[op] in error.message
    assert error.location is not None
    assert error.location.line == 2


def test_c63_what_has_no_form_says_what_has():
    n, m = "n = 1 to 8", "m = 0 to 8"
    square = f"tensor<?x?xf32, #utensor.sizes<[n, m], {m}, {n}>>"
    turned = f"tensor<?x?xf32, #utensor.sizes<[m, n], {m}, {n}>>"
    flat = f"tensor<?xf32, #utensor.sizes<[n * m], {m}, {n}>>"
    text = f"""func.func @main(%x: {square}) -> {turned} {{
  %f = utensor.reshape %x : {square} -> {flat}
  %g = utensor.neg %f : {flat}
  %h = utensor.reshape %g : {flat} -> {turned}
  %i = utensor.neg %h : {turned}
  func.return %i : {turned}
}}"""
    error = error_of(text)
    assert error.kind == "symbolic-reshape"
    assert error.message == "a reshape to nxm divides by m, which may be 0"
    assert error.hint == "give the symbol a lower bound of at least 1: it is 0"
    assert error.location is not None
    assert error.location.line in (2, 4)
    assert error.pass_name == "rangeify"


def test_c65_shape_errors_speak_of_the_program(graph):
    x, b = graph.input("x", (4,)), graph.input("b", ())
    with pytest.raises(
        VerifyException, match=r"operand 1 of utensor.add: expected tensor<4xf32>, got tensor<f32>"
    ):
        graph.op("add", x, b).owner.verify()
    wide = graph.expand(graph.reshape(graph.input("m", (5, 4)), 1, 5, 4), 2, 5, 4)
    with pytest.raises(VerifyException, match="axis 2 has size 4, got 3"):
        graph.expand(wide, 2, 5, 3).owner.verify()
    with pytest.raises(
        VerifyException, match="expand keeps the rank: expected 1, got 2; reshape first"
    ):
        graph.expand(x, 4, 4).owner.verify()


def test_c66_forms_of_constants():
    constants = {
        'dense<"0x0000803F00000040">': "tensor<2xf32>",
        "dense<[1.0, -2.5]>": "tensor<2xbf16>",
        "dense<[true, false, true]>": "tensor<3xi1>",
        "dense<-7>": "tensor<2x2xi8>",
        "dense<true>": "tensor<4xi1>",
        "0x7F800000": "tensor<2xf32>",
        "dense<[65504.0, -0.0]>": "tensor<2xf16>",
        "255": "tensor<2xui8>",
    }
    lines = [f"  %{k} = utensor.constant {c} : {t}" for k, (c, t) in enumerate(constants.items())]
    types = ", ".join(constants.values())
    names = ", ".join(f"%{k}" for k in range(len(lines)))
    body = "\n".join(lines)
    text = f"func.func @main() -> ({types}) {{\n{body}\n  func.return {names} : {types}\n}}"
    a, b, c, d, e, f, g, h = everywhere(text)
    assert a.tolist() == [1, 2]
    assert b.astype(float).tolist() == [1, -2.5]
    assert c.tolist() == [True, False, True]
    assert d.tolist() == [[-7, -7]] * 2
    assert e.tolist() == [True] * 4
    assert f.tolist() == [np.inf] * 2
    assert g.tolist() == [65504, 0]
    assert np.signbit(g[1])
    assert h.tolist() == [255, 255]
    error = error_of(text.replace('dense<"0x0000803F00000040">', "dense_resource<w>"))
    assert error.message.startswith("dense_resource blobs are not supported")
    assert error.location is not None
    assert error.location.line == 2


# C to take away


def compile_alone(tmp_path, source, compiler, *flags, suffix=".c"):
    path = tmp_path / f"plan{suffix}"
    path.write_text(source)
    command = [compiler, *flags, "-O2", "-c", "-o", str(tmp_path / "plan.o"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return tmp_path / "plan.o"


NAMES = ["for", "tanh", "main", "asm", "layer1.weight", "0x", "a b", "a_b", "a.b", '"; x', "*/"]


def test_c67_names_that_are_no_names(graph, tmp_path):
    values = [graph.input(f"v{k}", (3,)) for k in range(len(NAMES))]
    total = values[0]
    for value in values[1:]:
        total = graph.op("sub", total, value)
    module = graph.module(total)
    (function,) = module.body.block.ops
    function.properties["arg_attrs"] = ArrayAttr(
        [DictionaryAttr({"uopc.name": StringAttr(name)}) for name in NAMES]
    )
    function.properties["sym_name"] = StringAttr("main")
    text = c_of(module.clone()).text
    assert text == c_of(module.clone()).text
    compile_alone(tmp_path, text, "cc", *STRICT)
    for compiler in ("g++", "clang++"):
        if shutil.which(compiler):
            compile_alone(tmp_path, text, compiler, "-std=c++17", suffix=".cpp")
    arrays = [np.full(3, 2.0**k, np.float32) for k in range(len(NAMES))]
    expected = arrays[0] - sum(arrays[1:])
    assert everywhere(module, *arrays).tolist() == expected.tolist()
    exe = uopc.compile(module, debug=0)
    named = dict(zip(NAMES, arrays, strict=True))
    assert exe(**named).tolist() == expected.tolist()


def test_c68_sizes_are_arguments_and_no_buffer_is_static(graph):
    n = symbol("n", 0, 1000)
    x = graph.input("x", (n,))
    text = c_of(graph.module(graph.op("add", x, graph.full(10.0, x)))).text
    assert re.search(r"void main_?\(int64_t n, const float \*x, float \*out0\);", text)
    assert "1000" not in text
    assert not re.search(r"static (const )?\w+ \w+\[", text)
    assert "workspace" not in text


def test_c69_the_file_needs_nothing_but_libm(graph, tmp_path):
    x = graph.input("x", (8, 16))
    y = graph.softmax(x)
    module = graph.module(y, graph.op("sin", graph.op("pow", y, x)), graph.op("rem", x, y))
    for pipeline in ("uopc-cpu", "uopc-cpu-native"):
        lowered = lower(read_program(module), CompileRequest(pipeline=pipeline))
        text, header = emit_c(lowered.module).text, emit_header(lowered.module)
        (tmp_path / "plan.h").write_text(header)
        for compiler in filter(shutil.which, ("gcc", "clang")):
            code = compile_alone(tmp_path, '#include "plan.h"\n' + text, compiler, *STRICT)
            names = subprocess.run(["nm", "-u", str(code)], capture_output=True, text=True).stdout
            wanted = set(re.findall(r"U (\w+)", names)) - {"_GLOBAL_OFFSET_TABLE_"}
            assert wanted <= {"fma", "fmaf", "floor", "rint", "rintf", "memset", "memcpy"}, wanted
