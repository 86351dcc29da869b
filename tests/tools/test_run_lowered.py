"""uopc-run on what uopc-opt has lowered in part: what remains runs, or it is said what does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import uopc
from uopc.tools.opt import main as opt
from uopc.tools.run import main as run

TEXT = """\
func.func @main(%x: tensor<64x32xf32>) -> (tensor<64xf32>, tensor<64x32xf32>) {
  %e = utensor.exp %x : tensor<64x32xf32>
  %s = utensor.reduce add %e axes [1] : tensor<64x32xf32> -> tensor<64xf32>
  %n = utensor.neg %x : tensor<64x32xf32>
  func.return %s, %n : tensor<64xf32>, tensor<64x32xf32>
}
"""
TO_RANGES = "kernelize,rangeify"
PLACED = f"{TO_RANGES},prune-parameters,plan-memory"
SCHEDULED = f"{PLACED},schedule,apply-schedule"
LINEAR = f"{SCHEDULED},linearize"
AFTER_RANGES = "schedule,apply-schedule,linearize,lower-plan,expand-math"

# What was run before, how the kernels are called, and what remains of uopc-cpu-native.
STAGES = {
    "ranges": (
        TO_RANGES,
        "over ranges",
        f"prune-parameters,write-in-place,plan-memory,{AFTER_RANGES}",
    ),
    "scheduled": (SCHEDULED, "over ranges and scheduled", "linearize,lower-plan,expand-math"),
    "linear": (LINEAR, "linear", "lower-plan,expand-math"),
}


@pytest.fixture
def lowered(tmp_path, monkeypatch, capsys, cache_folder):
    """Writes in.mlir, with the passes run on it."""
    monkeypatch.chdir(tmp_path)

    def write(passes: str) -> None:
        Path("whole.mlir").write_text(TEXT)
        assert opt(["whole.mlir", "-p", passes, "-o", "in.mlir"]) == 0
        capsys.readouterr()

    return write


@pytest.mark.parametrize("stage", STAGES)
def test_a_whole_pipeline_says_what_remains_and_that_runs(lowered, capsys, stage):
    passes, words, left = STAGES[stage]
    lowered(passes)
    assert run(["in.mlir"]) == 1
    assert capsys.readouterr().err == (
        f"error: the kernels are {words} already, and the pipeline starts on tensors "
        f'[already-lowered]\n  hint: give the passes that remain: --pass-pipeline "{left}"\n'
    )
    with pytest.raises(uopc.UopcError) as caught:
        uopc.compile(Path("in.mlir"))
    assert caught.value.kind == "already-lowered"
    assert caught.value.hint == f'give the passes that remain: pipeline="{left}"'
    assert run(["in.mlir", "--pass-pipeline", left, "--check", "-q"]) == 0
    out, err = capsys.readouterr()
    assert (out.count("agrees with numpy"), err) == (2, "")


@pytest.mark.parametrize("stage", STAGES)
def test_a_plan_is_interpreted(lowered, capsys, stage):
    passes, _, left = STAGES[stage]
    lowered(passes)
    for target in ("interpreter", "interpreter:linear"):
        given = ["--target", target, "--pass-pipeline", left]
        assert run(["in.mlir", *given, "-q", "-o", f"{target}.npz"]) == 0
    with np.load("interpreter.npz") as one, np.load("interpreter:linear.npz") as other:
        for name in ("out0", "out1"):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-5)


def test_linear_kernels_are_shown_and_timed(lowered, capsys):
    lowered(LINEAR)
    given = ["in.mlir", "--pass-pipeline", "lower-plan,expand-math", "-q"]
    assert run([*given, "--show", "plan", "--debug", "2"]) == 0
    out, err = capsys.readouterr()
    assert "exp, reduce add [1]" in out
    assert "r_64" in err


def test_nothing_is_left_to_do(lowered, capsys):
    lowered("uopc-cpu")
    assert run(["in.mlir"]) == 1
    assert capsys.readouterr().err == (
        "error: @main is a function over buffers already, and no pass remains [already-lowered]\n"
        "  hint: uopc-opt FILE -t c prints it as C, and --target interpreter runs it\n"
    )
    assert run(["in.mlir", "--target", "interpreter", "-q"]) == 0


def test_linear_kernels_of_a_gpu_cannot_be_resumed(lowered, capsys):
    lowered(f"{PLACED},gpu-map,apply-schedule,linearize")
    assert run(["in.mlir", "--target", "cuda", "--pass-pipeline", "lower-plan"]) == 1
    assert "is a GPU's and linear already" in capsys.readouterr().err


def test_kernels_of_a_gpu_are_no_c(lowered, capsys):
    lowered("uopc-canonicalize")
    assert run(["in.mlir", "--pass-pipeline", "uopc-cuda"]) == 1
    assert capsys.readouterr().err == (
        "error: the pipeline makes kernels of a GPU, and the target is c [bad-option]\n"
        "  hint: choose --target cuda, or a pipeline without gpu-map\n"
    )
