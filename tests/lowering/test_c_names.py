"""Names from anywhere become C identifiers; text from anywhere stays inside its comment."""

from __future__ import annotations

import ctypes
import shutil
import time
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, func, memref, scf, test
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    i32,
)
from xdsl.ir import Block, Region, SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import parse_text
from uopc.lowering.c import emit_c
from uopc.lowering.c_names import Names, comment, is_reserved, sanitize
from uopc.lowering.c_target import CTarget

INDEX = IndexType()
HOSTILE = [
    *("for", "tanh", "main", "asm", "layer1.weight", "0x", "a b", "a_b", "a.b", "printf", "exp"),
    *("restrict", "class", "and", "INFINITY", "NAN", "__x", "_X", "int8_t", "INT32_MAX", "uint"),
    *('*/ system("rm"); /*', "naïve", "变量", "", " ", "x\ny", "??/", "linux", "errno", "true"),
    *("f32x8", "max_f32", "bits_f32", "std", "expf", "memcpy", "double", "wchar_t", "j0", "E2BIG"),
    *("a" * 500, "9lives", "-", "x__y", "uopc_x", "EOF", "M_PI", "new", "char8_t", "operator"),
    *("unix", "signed", "bool", "nullptr", "alignas", "_Bool", "NULL", "i386", "typeof", "thread"),
]


def named(symbol: str, argument: str) -> func.FuncOp:
    """func @symbol(%x, %y): y[0] = x[0] + x[0], everything called `argument`."""
    t = MemRefType(f32, [1])
    attributes = ArrayAttr(
        [DictionaryAttr({"uopc.name": StringAttr(argument)}), DictionaryAttr({})]
    )
    function = func.FuncOp(symbol, ([t, t], []), arg_attrs=attributes)
    function.attributes["uopc.doc"] = StringAttr(f"{argument} \\")
    body = function.body.block
    zero = arith.ConstantOp(IntegerAttr(0, INDEX))
    load = memref.LoadOp.get(body.args[0], [zero])
    total = arith.AddfOp(load, load)
    store = memref.StoreOp.get(total, body.args[1], [zero])
    body.add_ops([zero, load, total, store, func.ReturnOp()])
    return function


def test_hostile_names_compile_everywhere(build: Any) -> None:
    module = ModuleOp([named(name or "empty", name) for name in HOSTILE])
    made = emit_c(module)
    assert len(set(made.names.values())) == len(HOSTILE)
    assert emit_c(module).text == made.text
    for compiler in filter(shutil.which, ("gcc", "clang", "g++", "clang++")):
        flags = ["-Wshadow"] if compiler == "gcc" else []
        library = build(made.text, compiler, *flags)
        for name in HOSTILE:
            x, y = np.array([1.5], np.float32), np.zeros(1, np.float32)
            library(made.names[name or "empty"], x, y)
            assert y[0] == 3.0


def test_hostile_names_in_gnu_mode(build: Any) -> None:
    """Modes with more macros (`linux`, `unix`) take the same file."""
    made = emit_c(ModuleOp([named(name or "empty", name) for name in HOSTILE]))
    build("#define _GNU_SOURCE\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
          "#include <string.h>\n#include <unistd.h>\n#include <errno.h>\n" + made.text,
          "gcc", "-std=gnu17")  # fmt: skip


def test_names_are_read_where_they_can_be() -> None:
    assert [sanitize(n) for n in ("x", "acc", "layer1.weight", "a b", "0x", "for")] == [
        *("x", "acc", "layer1_weight", "a_b", "v0x", "for_")
    ]
    names = Names()
    assert [names.take("x") for _ in range(3)] == ["x", "x_1", "x_2"]
    names.open()
    assert names.take("y") == "y"
    names.close()
    assert names.take("y") == "y"
    assert not is_reserved("softmax") and not is_reserved("out0") and not is_reserved("r_4_8")


@pytest.mark.parametrize(
    "text",
    ["*/ x /* y", "/", "*", "a\\", "??/", "/*/", "*//*", "x\n*/\ny", "\0\a", "//\\\n", "*" * 300],
)
def test_comments_stay_closed(text: str) -> None:
    lines = comment(text)
    inside = "\n".join(lines)[2:-2]
    assert "*/" not in inside and "/*" not in inside and "??/" not in inside
    assert not any(line.endswith("\\") for line in lines)


def test_comments_compile(build: Any) -> None:
    texts = [
        "*/ int injected; /*",
        "a\\\nb ??/ c",
        "/* /* */",
        "x" * 300,
        "é ∑ 变",
        "*" * 200 + "/",
    ]
    functions = [named(f"f{i}", text) for i, text in enumerate(texts)]
    made = emit_c(ModuleOp(functions))
    for compiler in filter(shutil.which, ("gcc", "clang++")):
        build(made.text, compiler)


ERRORS = {
    "tensor": (
        'func.func @f(%x: tensor<4xf32>) { func.return }',
        "type tensor<4xf32> has no form in C",
    ),
    "width": ("func.func @f(%x: i7) { func.return }", "type i7 has no form in C"),
    "strides": (
        """func.func @f(%x: memref<?x?xf32>, %o: memref<1xf32>) {
             %c1 = arith.constant 1 : index
             %v = memref.load %x[%c1, %c1] : memref<?x?xf32>
             memref.store %v, %x[%c1, %c1] : memref<?x?xf32>
             func.return
           }""",
        "strides of 'x' are not known",
    ),
    "dim": (
        """func.func @f(%x: memref<?xf32>) -> index {
             %c0 = arith.constant 0 : index
             %n = memref.dim %x, %c0 : memref<?xf32>
             func.return %n : index
           }""",
        "pass the size as an index argument",
    ),
    "readonly": (
        """func.func @f(%x: memref<1xf32> {llvm.readonly}) {
             %c0 = arith.constant 0 : index
             %v = arith.constant 0.0 : f32
             memref.store %v, %x[%c0] : memref<1xf32>
             func.return
           }""",
        "writes 'x', which is constant or llvm.readonly",
    ),
    "missing": (
        "func.func @f() { func.call @g() : () -> () func.return }",
        "no function @g",
    ),
    "extern": ("func.func private @system(memref<4xi8>)", "external function @system"),
    "blocks": (
        "func.func @f() { cf.br ^a ^a: func.return }",
        "branches between blocks",
    ),
    "twice": (
        "func.func @f() { func.return } func.func @f() { func.return }",
        "symbol @f is defined twice",
    ),
    "vector": (
        "func.func @f(%x: vector<4xf32>) { func.return }",
        "crosses a function's border",
    ),
    "scalable": (
        """func.func @f(%x: memref<8xf32>) {
             %c0 = arith.constant 0 : index
             %v = vector.load %x[%c0] : memref<8xf32>, vector<[4]xf32>
             vector.store %v, %x[%c0] : memref<8xf32>, vector<[4]xf32>
             func.return
           }""",
        "vectors may have 1 to 65536 lanes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(ERRORS))
def test_what_c_cannot_say(case: str) -> None:
    text, message = ERRORS[case]
    module = parse_text(text, "case.mlir")
    with pytest.raises(UopcError) as error:
        emit_c(module)
    shown = str(error.value)
    assert error.value.kind == "unsupported-in-c"
    assert message in shown and "hint: " in shown, shown
    assert shown.startswith("case.mlir:"), shown


def test_unsupported_op_names_op_place_and_hint() -> None:
    function = func.FuncOp("f", ([], []))
    function.body.block.add_ops([test.TestOp(), func.ReturnOp()])
    with pytest.raises(UopcError, match=r"'test.op': has no form in C") as error:
        emit_c(ModuleOp([function]))
    assert "supported are func, scf, memref, arith, math and vector" in error.value.hint


def test_target_writes_all_or_nothing() -> None:
    from io import StringIO

    from xdsl.context import Context

    out = StringIO()
    good = named("good", "x")
    bad = func.FuncOp("bad", ([], []))
    bad.body.block.add_ops([test.TestOp(), func.ReturnOp()])
    with pytest.raises(UopcError):
        CTarget().emit(Context(), ModuleOp([good, bad]), out)
    assert out.getvalue() == ""
    CTarget().emit(Context(), ModuleOp([named("good", "x")]), out)
    assert "void good(float *x, float *arg1)" in out.getvalue()
    header = StringIO()
    CTarget(header=True).emit(Context(), ModuleOp([named("good", "x")]), header)
    assert "#ifndef UOPC_GOOD_H" in header.getvalue()


def test_private_functions_are_static_unless_asked() -> None:
    kernel = named("kernel", "x")
    kernel.properties["sym_visibility"] = StringAttr("private")
    assert "static void kernel(" in emit_c(ModuleOp([kernel])).text
    assert "static void" not in emit_c(ModuleOp([kernel.clone()]), static_kernels=False).text


def test_nesting_too_deep_is_an_error() -> None:
    inner = Block([scf.YieldOp()], arg_types=[INDEX])
    t = MemRefType(f32, [1])
    function = func.FuncOp("deep", ([INDEX, t], []))
    n = function.body.block.args[0]
    for level in range(200):
        ops: list[Any] = [scf.ForOp(n, n, n, [], Region(inner)), scf.YieldOp()]
        if level == 0:
            zero = arith.ConstantOp(FloatAttr(0.0, f32))
            store = memref.StoreOp.get(zero, function.body.block.args[1], [inner.args[0]])
            last = inner.last_op
            assert last is not None
            inner.insert_ops_before([zero, store], last)
        inner = Block(ops, arg_types=[INDEX])
    last = inner.last_op
    assert last is not None
    loops = [op for op in inner.ops if op is not last]
    for op in loops:
        op.detach()
    function.body.block.add_ops([*loops, func.ReturnOp()])
    with pytest.raises(UopcError, match="nest more than") as error:
        emit_c(ModuleOp([function]))
    assert error.value.kind == "nesting-too-deep"


def chain(length: int, used_twice: bool) -> ModuleOp:
    t = MemRefType(f32, [DYNAMIC_INDEX])
    function = func.FuncOp("chain", ([t], []))
    body = function.body.block
    zero = arith.ConstantOp(IntegerAttr(0, INDEX))
    load = memref.LoadOp.get(body.args[0], [zero])
    body.add_ops([zero, load])
    value: SSAValue = load.res
    for _ in range(length):
        op = arith.AddfOp(value, value if used_twice else load.res)
        body.add_op(op)
        value = op.result
    body.add_ops([memref.StoreOp.get(value, body.args[0], [zero]), func.ReturnOp()])
    return ModuleOp([function])


def test_long_chains_are_fast_and_do_not_explode(build: Any) -> None:
    for used_twice in (False, True):
        module = chain(5000, used_twice)
        start = time.perf_counter()
        text = emit_c(module).text
        spent = time.perf_counter() - start
        assert spent < 2.0, spent  # 0.15 s where nothing else runs
        assert max(map(len, text.splitlines())) < 200 and len(text) < 300_000
    x = np.array([1.0], np.float32)
    build(emit_c(chain(5000, False)).text, "gcc", "-O0")("chain", x)
    assert x[0] == 5001.0


def test_large_constants_are_fast_and_exact(build: Any) -> None:
    values = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    values[:4] = [np.float32(1e-45), np.float32(3.4028235e38), -0.0, 1.0]
    t = MemRefType(f32, [200_000])
    dense = DenseIntOrFPElementsAttr.from_list(TensorType(f32, [200_000]), values.tolist())
    data = memref.GlobalOp.get(StringAttr("weights"), t, dense, constant=UnitAttr())
    function = func.FuncOp("get", ([INDEX], [f32]))
    body = function.body.block
    get = memref.GetGlobalOp("weights", t)
    load = memref.LoadOp.get(get, [body.args[0]])
    body.add_ops([get, load, func.ReturnOp(load)])
    start = time.perf_counter()
    text = emit_c(ModuleOp([data, function])).text
    assert time.perf_counter() - start < 2.0
    library = build(text, "gcc", "-O1")
    got = [library("get", i, restype=ctypes.c_float) for i in range(0, 200_000, 499)]
    assert np.array_equal(np.array(got, np.float32).view(np.uint32), values[::499].view(np.uint32))
    first = [library("get", i, restype=ctypes.c_float) for i in range(4)]
    assert np.array_equal(np.array(first, np.float32).view(np.uint32), values[:4].view(np.uint32))


def test_unused_values_leave_no_trace(build: Any) -> None:
    text = """
    func.func @f(%n: index, %x: memref<4xi32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i32
      %dead = memref.load %x[%c0] : memref<4xi32>
      %sum = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> (i32) {
        %v = memref.load %x[%i] : memref<4xi32>
        %s = arith.addi %a, %v : i32
        scf.yield %s : i32
      }
      %y = memref.load %x[%c1] : memref<4xi32>
      %t = arith.cmpi eq, %y, %y : i32
      %z = arith.extui %t : i1 to i32
      memref.store %z, %x[%c0] : memref<4xi32>
      func.return
    }
    func.func private @never(%x: memref<1xi32>) { func.return }
    """
    made = emit_c(parse_text(text)).text
    assert "for (" not in made and "dead" not in made and "y" not in made.split("void f(")[2]
    for compiler in filter(shutil.which, ("gcc", "clang", "g++", "clang++")):
        build(made, compiler, "-O2")


def test_kernel_reads_like_c() -> None:
    text = """
    func.func private @r_4(%x: memref<4x8xf32> {llvm.noalias, llvm.readonly},
                           %o: memref<4xf32> {llvm.noalias})
        attributes {uopc.doc = "max over axis 1, then relu"} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %low = arith.constant 0xFF800000 : f32
      %zero = arith.constant 0.0 : f32
      scf.for %i = %c0 to %c4 step %c1 {
        %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%acc = %low) -> (f32) {
          %v = memref.load %x[%i, %j] : memref<4x8xf32>
          %n = arith.maximumf %acc, %v : f32
          scf.yield %n : f32
        }
        %r = arith.maximumf %m, %zero : f32
        memref.store %r, %o[%i] : memref<4xf32>
      }
      func.return
    }
    func.func @plan(%x: memref<4x8xf32>, %o: memref<4xf32>) {
      func.call @r_4(%x, %o) : (memref<4x8xf32>, memref<4xf32>) -> ()
      func.return
    }
    """
    made = emit_c(parse_text(text)).text
    assert """
/* max over axis 1, then relu */
static void r_4(const float *restrict x, float *restrict o)
{
    for (int64_t i = 0; i < 4; i++) {
        float acc = -INF_F32;
        for (int64_t j = 0; j < 8; j++) {
            acc = max_f32(acc, x[i*8 + j]);
        }
        o[i] = acc <= 0.0f ? 0.0f : acc;
    }
}
""" in made  # fmt: skip


def test_i32_is_not_widened_by_constants(build: Any) -> None:
    t = MemRefType(i32, [2])
    function = func.FuncOp("f", ([t], []))
    body = function.body.block
    ops: list[Any] = [arith.ConstantOp(IntegerAttr(v, INDEX)) for v in (0, 1)]
    big = arith.ConstantOp(IntegerAttr(2**31 - 1, IntegerType(32)))
    load = memref.LoadOp.get(body.args[0], [ops[0]])
    total = arith.AddiOp(load, big)
    double = arith.MuliOp(total, total)
    body.add_ops([*ops, big, load, total, double])
    body.add_ops([memref.StoreOp.get(double, body.args[0], [ops[1]]), func.ReturnOp()])
    x = np.array([2**31 - 1, 0], np.int32)
    flags = ["-fsanitize=undefined", "-fsanitize-trap=undefined"]
    build(emit_c(ModuleOp([function])).text, "clang", "-O2", *flags)("f", x)
    assert x[1] == 4
