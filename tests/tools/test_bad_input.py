"""What a file may hold that is no program: each is answered in words, with status 1.

test_opt.py has text that is no MLIR, test_run.py arrays and command lines.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import uopc
from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.lowering.c import emit_c
from uopc.tools.opt import main as opt
from uopc.tools.run import main as run

F4 = "tensor<4xf32>"


def function(
    body: str, arguments: str = f"%x: {F4}", result: str = F4, returned: str = "%x"
) -> str:
    return f"""func.func @main({arguments}) -> {result} {{
{body}  func.return {returned} : {result}
}}
"""


TRUE_OR_NEGATED = f"""  %t = arith.constant true
  %y = scf.if %t -> ({F4}) {{
    scf.yield %x : {F4}
  }} else {{
    scf.yield %x : {F4}
  }}
"""

# The text of in.mlir, and all that is said but for lines that start with `  op: `.
PROGRAMS = {
    "empty": (
        "",
        "error: the module has 0 programs [no-such-function]\n"
        "  hint: expected a func.func on tensors\n",
    ),
    "no_tensors": (
        "func.func @main(%x: f32) -> f32 {\n  func.return %x : f32\n}\n",
        "error: the module has 0 programs [no-such-function]\n"
        "  hint: expected a func.func on tensors\n",
    ),
    "declared": (
        f"func.func private @main({F4}) -> {F4}\n",
        "in.mlir:1:1: error: @main is declared, not defined [not-a-tensor-function]\n"
        "  in pass: kernelize\n"
        "  hint: give it a body, or remove the declaration\n",
    ),
    "two": (
        function("") + function("").replace("@main", "@other"),
        "error: the module has 2 programs [no-such-function]\n"
        "  hint: choose one with --function=…: main, other\n",
    ),
    "one_name_twice": (
        function("") + function(""),
        "in.mlir:4:1: error: 'func.func' op defines symbol @main a second time; the first is "
        "'func.func' at in.mlir:1:1 [verify-failed]\n"
        "  hint: give one of them another name\n",
    ),
    "recursion": (
        function(f"  %y = func.call @main(%x) : ({F4}) -> {F4}\n"),
        "in.mlir:2:8: error: 'func.call' cannot be part of a kernel: it is no tensor op of uopc "
        "[unsupported-op]\n"
        "  in pass: kernelize\n"
        "  hint: nearest supported form: inline the callee: a plan is one function\n",
    ),
    "missing_symbol": (
        function(f"  %y = func.call @gone(%x) : ({F4}) -> {F4}\n"),
        "in.mlir:2:8: error: 'func.call' op refers to symbol @gone, which is not defined "
        "[verify-failed]\n"
        "  hint: define it in this module, or declare it: func.func private @name(...)\n",
    ),
    "control_flow": (
        f"func.func @main(%x: {F4}) -> {F4} {{\n  cf.br ^bb1\n^bb1:\n  func.return %x : {F4}\n}}\n",
        "in.mlir:1:1: error: @main has control flow (2 blocks) [not-a-tensor-function]\n"
        "  in pass: kernelize\n"
        "  hint: write it as one block; utensor.where chooses between two computed values\n",
    ),
    "scf_if": (
        function(TRUE_OR_NEGATED, returned="%y"),
        "in.mlir:3:8: error: 'scf.if' cannot be part of a plan: its flag is no element of a tensor "
        "[unsupported-op]\n"
        "  in pass: kernelize\n"
        "  hint: write tensor.extract %more[] : tensor<i1>\n",
    ),
    "mistyped_op": (
        function(f"  %y = utensor.ad %x, %x : {F4}\n"),
        "in.mlir:2:8: error: Operation utensor.ad is not registered; did you mean utensor.pad or "
        "utensor.and or utensor.add? [parse-error]\n"
        "    %y = utensor.ad %x, %x : tensor<4xf32>\n"
        "         ^^^^^^^^^^\n",
    ),
    "wrong_operand_type": (
        function(f"  %y = utensor.add %x, %b : {F4}\n", f"%x: {F4}, %b: tensor<f32>"),
        "in.mlir:2:24: error: operand is used with type tensor<4xf32>, but has been previously "
        "used or defined with type tensor<f32> [parse-error]\n"
        "    %y = utensor.add %x, %b : tensor<4xf32>\n"
        "                         ^^\n",
    ),
    "shapes_that_do_not_fit": (
        function(f"  %y = utensor.reshape %x : {F4} -> tensor<5xf32>\n"),
        "in.mlir:2:8: error: 'utensor.reshape' op reshape keeps the number of elements: expected "
        "4, got 5 in 5 [verify-failed]\n",
    ),
    "terabytes": (
        function("", "%x: tensor<1000000000000xf32>", "tensor<1000000000000xf32>"),
        "error: input 'x' has 1,000,000,000,000 elements [too-large]\n  hint: use --input\n",
    ),
    "beyond_64_bits": (
        function(
            "  %y = utensor.neg %x : tensor<4294967296x4294967296xf32>\n",
            "%x: tensor<4294967296x4294967296xf32>",
            "tensor<4294967296x4294967296xf32>",
        ),
        "in.mlir:2:25: error: tensor<4294967296x4294967296xf32> has 18446744073709551616 "
        "elements, more than the limit of 1099511627776 [parse-error]\n"
        "    %y = utensor.neg %x : tensor<4294967296x4294967296xf32>\n"
        "                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n",
    ),
    "rank": (
        function(f"  %y = utensor.neg %x : tensor<{'1x' * 40}f32>\n", f"%x: tensor<{'1x' * 40}f32>")
        .replace(f") -> {F4}", f") -> tensor<{'1x' * 40}f32>")
        .replace(f"%x : {F4}", f"%x : tensor<{'1x' * 40}f32>"),
        "in.mlir:2:25: error: a tensor of rank 40 is beyond the limit of 32 [parse-error]",
    ),
    "unbounded_size": (
        function("  %y = utensor.neg %x : tensor<?xf32>\n", "%x: tensor<?xf32>", "tensor<?xf32>"),
        "in.mlir:2:25: error: tensor<?xf32> has a dynamic size without bounds: expected an "
        "encoding such as #utensor.sizes<[n], n = 1 to 64> [parse-error]\n"
        "    %y = utensor.neg %x : tensor<?xf32>\n"
        "                          ^^^^^^^^^^^^^\n",
    ),
    "element_type": (
        function("  %y = utensor.neg %x : tensor<4xi3>\n", "%x: tensor<4xi3>", "tensor<4xi3>"),
        "in.mlir:2:25: error: element type i3 of tensor<4xi3> is not supported: expected f64, "
        "f32, f16, bf16, i1, i8, i16, i32, i64, ui8, ui16, ui32 or ui64 [parse-error]\n"
        "    %y = utensor.neg %x : tensor<4xi3>\n"
        "                          ^^^^^^^^^^^^\n",
    ),
    "short_blob": (
        function(
            '  %y = utensor.constant dense<"0x0000803F0000803F"> : tensor<3xf32>\n'
            f"  %z = utensor.neg %x : {F4}\n"
        ),
        "in.mlir:3:3: error: Shape mismatch in dense literal. Expected 3 elements from the type, "
        "but got 2 elements. [parse-error]\n"
        "    %z = utensor.neg %x : tensor<4xf32>\n"
        "    ^^\n",
    ),
    "number_beyond_its_type": (
        function("  %y = utensor.constant 300 : tensor<4xui8>\n"),
        "in.mlir:2:25: error: expected a number from 0 to 255 for ui8, got 300 [parse-error]\n"
        "    %y = utensor.constant 300 : tensor<4xui8>\n"
        "                          ^^^^\n",
    ),
    "resource": (
        function(f"  %y = utensor.constant dense_resource<w> : {F4}\n"),
        "in.mlir:2:25: error: dense_resource blobs are not supported, write the elements as "
        "dense<…> [parse-error]\n"
        "    %y = utensor.constant dense_resource<w> : tensor<4xf32>\n"
        "                          ^^^^^^^^^^^^^^\n",
    ),
    "nesting": (
        f"func.func @main(%x: {'tuple<' * 10000}f32{'>' * 10000}) {{\n}}\n",
        "brackets nest deeper than 80 levels [nesting-too-deep]",
    ),
    "not_text": (
        "\udcff\udcfe",
        "in.mlir:1:1: error: byte 0xff at offset 0 is not UTF-8 text [not-text]\n"
        "  hint: MLIR text in UTF-8 is expected; is this the right file?\n",
    ),
}  # fmt: skip


@pytest.fixture
def in_folder(tmp_path, monkeypatch, cache_folder) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", PROGRAMS)
def test_programs_that_are_none(in_folder, capsys, case):
    text, message = PROGRAMS[case]
    Path("in.mlir").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert run(["in.mlir", "-q"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    if "\n" not in message:
        assert message in err
        assert "Traceback" not in err
        return
    lines = [line for line in err.splitlines(True) if not line.startswith("  op: ")]
    assert "".join(lines) == message


KERNEL = """ukernel.kernel @k ins(%x : memref<4xf32>) outs(%o : memref<4xf32>) {{
  %i = uloop.range {end}
  %v = uloop.load %x[{at}] : memref<4xf32>
  uloop.store %v, {to}[%i] : memref<4xf32>
}}
"""
PLAN = """ukernel.plan @p ins(%x : memref<4xf32>) attributes {{input_names = ["x"]}} {{
  %o = ukernel.output : memref<4xf32>
  ukernel.launch @{kernel} ins(%x : memref<4xf32>) outs(%o : memref<4xf32>)
  ukernel.return %o : memref<4xf32>
}}
"""
GOOD = KERNEL.format(end=4, at="%i", to="%o")

# Kernels and plans written by hand; the first line of the answer.
HAND_WRITTEN = {
    "missing_kernel": (
        PLAN.format(kernel="gone"),
        "in.mlir:3:3: error: 'ukernel.launch' op refers to symbol @gone, which is not defined "
        "[verify-failed]",
    ),
    "plan_that_launches_itself": (
        PLAN.format(kernel="p"),
        "in.mlir:3:3: error: 'ukernel.launch' op there is no kernel @p [verify-failed]",
    ),
    "other_buffers": (
        PLAN.format(kernel="k") + GOOD.replace("%x : memref<4xf32>", "%x : memref<5xf32>", 1)
        .replace("%x[%i] : memref<4xf32>", "%x[%i] : memref<5xf32>"),
        "in.mlir:3:3: error: 'ukernel.launch' op @k expects (memref<5xf32>, memref<4xf32>) with 1 "
        "outputs, got (memref<4xf32>, memref<4xf32>) with 1 [verify-failed]",
    ),
    "divisor": (
        KERNEL.format(end=4, at="%i floordiv 0", to="%o"),
        "in.mlir:3:25: error: expected a positive divisor, got 0 [parse-error]",
    ),
    "end": (
        KERNEL.format(end=10**20, at="%i", to="%o"),
        f"in.mlir:2:8: error: 'uloop.range' op a range ends at 0 to {1 << 48}, got {10**20} "
        "[verify-failed]",
    ),
    "element": (
        GOOD.replace("f32", "i128"),
        "in.mlir:1:1: error: 'ukernel.kernel' op element type i128 of tensor<4xi128> is not "
        "supported: expected f64, f32, f16, bf16, i1, i8, i16, i32, i64, ui8, ui16, ui32 or ui64 "
        "[verify-failed]",
    ),
    "write_to_an_input": (
        KERNEL.format(end=4, at="%i", to="%x"),
        "in.mlir:4:3: error: 'memref.store': writes 'x', which is constant or llvm.readonly "
        "[unsupported-in-c]",
    ),
    "op_of_another_dialect": (
        GOOD.replace("uloop.store %v", '%w = "test.op"(%v) : (f32) -> f32\n  uloop.store %w'),
        "in.mlir:4:8: error: 'test.op' op is not legal at level linear, which has only arith, ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HAND_WRITTEN)
def test_kernels_that_are_none(in_folder, capsys, case):
    text, message = HAND_WRITTEN[case]
    Path("in.mlir").write_text(text)
    status = opt(["in.mlir", "-p", "plan-memory,linearize,lower-plan,expand-math", "-t", "c"])
    out, err = capsys.readouterr()
    assert (status, out) == (1, "")
    assert err.startswith(message)
    assert "Traceback" not in err


INJECTIONS = [
    "*/ int system(const char *); __attribute__((constructor)) void f(void) { system(x); } /*",
    "x\n#include </etc/passwd>\n",
    'x); system("touch pwned"); //',
    "??/\n#error",
    "\\",
    "\\\n",
    "%s%n",
    "`touch pwned`",
    "$(touch pwned)",
    "'; touch pwned; '",
    "\u202e变量\u2028",
    "a" * 10_000,
]


@pytest.mark.parametrize("name", INJECTIONS, ids=range(len(INJECTIONS)))
def test_names_inject_nothing(in_folder, capsys, name):
    """Names of functions, arguments, values and attributes end as C names or inside comments."""
    special = '"\\\n'
    quoted = "".join(f"\\{ord(c):02X}" if c in special else c for c in name)
    text = f"""func.func @"{quoted}"(%x: {F4} {{uopc.name = "{quoted}"}}, %y: {F4}) -> {F4} {{
  %z = utensor.add %x, %y {{doc = "{quoted}", uopc.name = "{quoted}"}} : {F4}
  %s = utensor.stage contiguous %z : {F4}
  %w = utensor.flip %s [0] : {F4}
  func.return %w : {F4}
}}
"""
    module = read_program(text)
    source = emit_c(lower(module, CompileRequest()).module).text
    assert source.isascii()
    done = subprocess.run(
        ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "-x", "c", "-",
         "-o", "k.o"], input=source, text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:2000]
    wanted = subprocess.run(["nm", "-u", "k.o"], text=True, capture_output=True).stdout.split()
    assert set(wanted[1::2]) <= {"_GLOBAL_OFFSET_TABLE_"}
    exe = uopc.compile(text, debug=0)
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    assert exe(x, y).tolist() == [4, 3, 2, 1]
    Path("in.mlir").write_text(text)
    assert run(["in.mlir", "--show", "all", "--check", "--debug", "2"]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\x00" not in out + err
    assert not Path("pwned").exists()


def test_a_thousand_arguments(in_folder):
    """More than ctypes passes one by one."""
    count = 1030
    arguments = ", ".join(f"%a{k}: tensor<2xi32>" for k in range(count))
    lines = [
        f"  %s{k + 1} = utensor.add %{'s' if k else 'a'}{k}, %a{k + 1} : tensor<2xi32>\n"
        for k in range(count - 1)
    ]
    text = function("".join(lines), arguments, "tensor<2xi32>", f"%s{count - 1}")
    exe = uopc.compile(text, opt_level=0, debug=0)
    result = exe(*(np.array([k, -k], np.int32) for k in range(count)))
    assert result.tolist() == [sum(range(count)), -sum(range(count))]


def test_names_given_twice_are_told_apart(in_folder):
    named = f'%a: {F4} {{uopc.name = "x"}}, %b: {F4} {{uopc.name = "x"}}'
    text = function(f"  %y = utensor.sub %a, %b : {F4}\n", named, returned="%y")
    exe = uopc.compile(text, debug=0)
    a, b = np.full(4, 5, np.float32), np.full(4, 2, np.float32)
    assert exe(a, b).tolist() == [3] * 4
