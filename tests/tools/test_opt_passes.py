"""What uopc-opt does around passes: verification, levels, dumps, timing, failures."""

import gc
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import f32, i32
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from uopc.dialects.errors import UopcError
from uopc.tools.opt import UopcOptMain, main

TEXT = (
    "func.func @f(%a : i32) -> i32 {\n"
    "  %b = arith.addi %a, %a : i32\n"
    "  %c = arith.muli %b, %b : i32\n"
    "  func.return %c : i32\n"
    "}\n"
)


def function_of(module):
    return next(op for op in module.walk() if isinstance(op, func.FuncOp))


@dataclass(frozen=True)
class Breaker(ModulePass):
    """Leaves a module that is wrong in one of several ways."""

    name = "breaker"
    how: str = "type"

    def apply(self, ctx, op):
        body = function_of(op).body.block
        add = body.first_op
        match self.how:
            case "type":
                object.__setattr__(add.results[0], "_type", f32)
                add.results[0]._type = f32
            case "order":
                add.detach()
                body.insert_op_before(add, body.last_op)
            case "symbol":
                body.insert_op_before(func.CallOp("gone", [], []), body.last_op)
            case "copy":
                op.body.block.add_op(function_of(op).clone())
            case "terminator":
                last = body.last_op
                last.detach()
                last.erase()
            case "new":
                broken = arith.AddiOp.create(operands=[add.results[0]], result_types=[i32])
                body.insert_op_before(broken, body.last_op)
            case "parent":
                add.parent = None


@dataclass(frozen=True)
class Raiser(ModulePass):
    """Raises."""

    name = "raiser"
    what: str = "bug"

    def apply(self, ctx, op):
        assert not gc.isenabled()
        match self.what:
            case "bug":
                {}["no such key"]
            case "failed":
                raise PassFailedException("cannot do this")
            case "user":
                raise UopcError("bad-axis", "axis 2 is out of range")
            case "deep":
                self.apply(ctx, op)
            case "memory":
                raise MemoryError
            case "file":
                Path("/no/such/file").read_text()
            case "interrupt":
                raise KeyboardInterrupt


@dataclass(frozen=True)
class ToLinear(ModulePass):
    """Claims that only upstream ops are left."""

    name = "to-linear"
    level_after: ClassVar[str] = "linear"

    def apply(self, ctx, op):
        pass


@pytest.fixture
def run(tmp_path, capsys):
    path = tmp_path / "in.mlir"

    def run_on(*arguments, text=TEXT):
        path.write_text(text)
        status = main([str(path), *arguments], extra_passes=(Breaker, Raiser, ToLinear))
        out, err = capsys.readouterr()
        return status, out, err.replace(str(tmp_path) + "/", "")

    return run_on


@pytest.mark.parametrize(
    ("how", "place", "words"),
    [
        ("type", "in.mlir:2:8", "'arith.addi' op"),
        ("order", "in.mlir:3:8", "'arith.muli' op operand 0 (%b) is used where it is not defined"),
        ("symbol", "in.mlir:1:1", "refers to symbol @gone, which is not defined"),
        ("copy", "in.mlir:1:1", "defines symbol @f a second time"),
        ("terminator", "in.mlir:3:8", "is not a terminator"),
        ("new", "in.mlir:2:8", "'arith.addi' op"),
        ("parent", "in.mlir:2:8", "stands in a block that is not its parent"),
    ],
)
def test_a_broken_module_names_the_pass_and_the_op(run, how, place, words):
    status, out, err = run("-p", f"canonicalize,breaker{{how={how}}},cse")
    assert (status, out) == (1, "")
    first, *rest = err.splitlines()
    assert first.startswith(f"{place}: error: ") and first.endswith("[verify-failed]")
    assert words in first
    assert any(re.match(r"  op: .*[a-z]+\.[a-z]+", line) for line in rest)
    assert "  in pass: breaker" in rest
    assert "--print-ir-before=breaker" in err
    assert "Traceback" not in err
    assert max(map(len, rest)) < 350


def test_input_that_does_not_verify_has_no_pass(run):
    status, _, err = run(text=TEXT.replace("func.return %c : i32", "func.return"))
    assert status == 1
    assert err.startswith("in.mlir:4:3: error: 'func.return' op ")
    assert "in pass" not in err


def test_disable_verify_checks_nothing(run):
    status, out, _ = run("-p", "breaker{how=order}", "--disable-verify")
    assert status == 0
    assert out.index("muli") < out.index("addi")


def test_the_level_is_checked_after_the_pass_that_declares_it(run):
    text = '"test.op"() : () -> ()\n' + TEXT
    assert run("-p", "to-linear")[0] == 0
    status, _, err = run("-p", "cse,to-linear", text=text)
    assert status == 1
    assert err.startswith("in.mlir:1:1: error: 'test.op' op is not legal at level linear")
    assert "[illegal-op]" in err and "in pass: to-linear" in err
    assert run("-p", "to-linear", "--disable-verify", text=text)[0] == 0


@pytest.mark.parametrize(
    ("what", "status", "words"),
    [
        ("bug", 2, "internal error in pass raiser: KeyError: 'no such key' [internal-error]"),
        ("failed", 1, "error: cannot do this [pass-failed]\n  in pass: raiser"),
        ("user", 1, "error: axis 2 is out of range [bad-axis]\n  in pass: raiser"),
        ("deep", 1, "error: the program nests too deep for this pass"),
        ("memory", 1, "error: memory ran out [out-of-memory]"),
        ("file", 1, "No such file or directory: '/no/such/file' [pass-failed]"),
        ("interrupt", 130, "interrupted"),
    ],
)
def test_what_a_pass_raises(run, what, status, words):
    assert gc.isenabled()
    got, out, err = run("-p", f"raiser{{what={what}}}")
    assert (got, out) == (status, "")
    assert words in err and "Traceback" not in err
    assert gc.isenabled()


def test_traceback_on_request(run):
    status, _, err = run("-p", "raiser", "--show-traceback")
    assert status == 2
    assert "Traceback (most recent call last)" in err and "KeyError" in err
    assert "suggest" not in err and "--show-traceback shows where" in err


def test_a_bug_in_one_chunk_does_not_stop_the_others(run):
    status, out, _ = run(
        "-p", "raiser", "--split-input-file", text=TEXT + "// -----\nfunc.func @g(\n"
    )
    assert (status, out) == (2, "")


def test_dumps(run):
    passes = "canonicalize,breaker{how=copy},cse"
    _, _, err = run("-p", passes, "--print-ir-before-all", "--disable-verify")
    assert re.findall(r"Dump (\w+ \S+)", err) == [
        "Before canonicalize",
        "Before breaker",
        "Before cse",
    ]
    _, _, err = run("-p", passes, "--mlir-print-ir-after-change", "--disable-verify")
    assert re.findall(r"Dump (\w+ \S+)", err) == ["After breaker"]
    _, _, err = run("-p", passes, "--print-ir-after=cse,canonicalize", "--disable-verify")
    assert re.findall(r"Dump (\w+ \S+)", err) == ["After canonicalize", "After cse"]
    _, _, err = run("-p", passes, "--print-ir-after-failure")
    assert re.findall(r"Dump (\w+ \S+ \S+)", err) == ["After breaker Failed"]
    _, _, err = run("-p", "cse", "--print-ir-before=dce")
    assert err == "note: pass 'dce' does not run here, so nothing is printed\n"
    _, out, _ = run("-p", "cse,dce", "--print-between-passes")
    assert out.startswith("IR after cse:\n")


def test_the_dump_shows_a_module_that_does_not_verify(run):
    status, _, err = run("-p", "breaker{how=order}", "--print-ir-after-all")
    assert status == 1
    assert err.index("arith.muli") < err.index("arith.addi") < err.index("[verify-failed]")


def test_timing(run):
    status, out, err = run("-p", "canonicalize,cse", "--timing", "--time-passes")
    assert status == 0
    rows = [line.split() for line in err.splitlines()[2:]]
    assert [row[-1] for row in rows] == [
        "parse", "verify", "canonicalize", "verify", "cse", "verify", "print", "total",
    ]  # fmt: skip
    assert rows[0][2] == "4"
    assert abs(sum(float(row[1]) for row in rows[:-1]) - 100) < 1
    assert "Pass canonicalize took " in out


def test_timing_adds_up_over_chunks(run):
    _, _, err = run("-p", "cse", "--timing", "--split-input-file", text=TEXT + "// -----\n" + TEXT)
    assert err.count(" cse\n") == 1
    assert re.search(r" 8  parse\n", err)


def test_main_class_for_downstream_tools(tmp_path, capsys):
    path = tmp_path / "in.mlir"
    path.write_text(TEXT)
    UopcOptMain(args=[str(path), "-p", "to-linear"], extra_passes=(ToLinear,)).run()
    assert "arith.addi" in capsys.readouterr().out
    with pytest.raises(UopcError, match="no pass named 'nope'"):
        UopcOptMain(args=["-p", "nope"])
    path.write_text("func.func @f(")
    with pytest.raises(SystemExit) as leaving:
        UopcOptMain(args=[str(path)]).run()
    assert leaving.value.code == 1
