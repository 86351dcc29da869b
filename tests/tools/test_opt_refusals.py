"""What uopc-opt and uopc-run say to wrong options, missing programs and files that end early."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from uopc.tools.opt import main as opt
from uopc.tools.run import main as run

TEXT = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = utensor.exp %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(TEXT)
    return "in.mlir"


@pytest.mark.parametrize("tool", [opt, run])
def test_values_are_refused_though_no_pass_looks_at_them(program, capsys, tool):
    pipeline = ["--pass-pipeline", "uopc-cpu"]
    assert tool([program, *pipeline, "--target-cpu", "foo"]) == 1
    assert "error: there is no CPU target 'foo' [unknown-target]" in capsys.readouterr().err
    for beam in ("-2", "65"):
        assert tool([program, *pipeline, "--beam", beam]) == 1
        assert capsys.readouterr().err == (
            f"error: beam is {beam} [bad-option]\n  hint: expected 0 to 64\n"
        )


@pytest.mark.skipif(shutil.which("mlir-opt") is not None, reason="mlir-opt is installed")
def test_a_program_that_is_not_there(program, capsys):
    assert opt([program, "-p", "mlir-opt"]) == 1
    assert capsys.readouterr().err == (
        "error: the pass runs a program that is not there: mlir-opt is not available "
        "[missing-dependency]\n"
        "  in pass: mlir-opt\n"
        "  hint: install MLIR so that mlir-opt is on PATH, or leave the pass out\n"
    )


@pytest.mark.skipif(importlib.util.find_spec("llvmlite") is not None, reason="it is installed")
def test_a_package_that_is_not_there(program, capsys):
    assert opt([program, "-p", "uopc-cpu", "-t", "llvm"]) == 1
    assert capsys.readouterr().err == (
        "error: target llvm needs the Python package 'llvmlite' [missing-dependency]\n"
        "  hint: pip install llvmlite\n"
    )


def test_a_target_of_xdsl_that_takes_other_programs(program, capsys):
    assert opt([program, "-t", "arm-asm"]) == 1
    assert capsys.readouterr().err == (
        "error: target arm-asm does not take this program [cannot-translate]\n"
        "  hint: run passes that lower it to the ops which the target prints\n"
    )


def test_a_file_that_ends_inside_a_function(program, capsys):
    Path(program).write_text(TEXT.rstrip().removesuffix("}"))
    assert opt([program]) == 1
    assert capsys.readouterr().err == (
        "in.mlir:3:33: error: expected '}' or another op; the file ends inside a region "
        "[parse-error]\n"
        "    func.return %y : tensor<4xf32>\n"
        "                                  ^\n"
        "  hint: a '{' before this place is not closed\n"
    )


def test_a_word_where_an_op_belongs(program, capsys):
    Path(program).write_text(TEXT.rstrip().removesuffix("}") + ") }")
    assert opt([program]) == 1
    assert "error: expected an op, a block's label such as ^bb0, or '}'" in capsys.readouterr().err
