"""`uopc-run --target cuda`: results, and the table of what kernels take of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from uopc.runtime.cuda_library import nvcc_program
from uopc.tools import resources
from uopc.tools.run import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def emulator(cache_folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("UOPC_CUDA", "emulator")
    yield


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_program_runs_on_the_emulator_and_agrees(capsys):
    program = str(EXAMPLES / "symbolic.mlir")
    status, out, _ = run(capsys, program, "--target", "cuda", "--size", "n=7", "--check", "-q")
    assert status == 0
    assert "out0 agrees with numpy, largest difference 0\n" in out


def test_the_source_is_shown(capsys):
    _, out, _ = run(capsys, str(EXAMPLES / "half.mlir"), "--target", "cuda", "--show", "cuda", "-q")
    assert 'extern "C" __global__ void __launch_bounds__(' in out


def test_resources_are_a_table(capsys):
    program = str(EXAMPLES / "matmul_chain.mlir")
    status, out, _ = run(capsys, program, "--target", "cuda", "--show", "resources", "-q")
    assert status == 0
    title, head, row = out.splitlines()[:3]
    assert title == "resources on sm_90"
    assert head.split() == list(resources.HEAD)
    name, grid, block, registers, spills, shared, *_ = row.split()
    assert (name, grid, block, shared) == ("r_128_128", "2x2x1", "256", "8192")
    if nvcc_program() is None:
        assert (registers, spills) == ("?", "?")
    else:
        assert int(registers) > 0
        assert spills == "0"


def test_without_nvcc_the_table_says_what_it_looked_for(capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("uopc.runtime.cuda_resources.nvcc_program", lambda: None)
    program = str(EXAMPLES / "softmax.mlir")
    status, out, _ = run(capsys, program, "--target", "cuda", "--show", "resources", "-q")
    assert status == 0
    assert " ?  " in out
    assert "at most 100%" in out
    assert "looked for it on PATH" in out


def test_resources_are_of_a_gpu_only(capsys):
    status, _, err = run(capsys, str(EXAMPLES / "softmax.mlir"), "--show", "resources", "-q")
    assert status == 1
    assert "add --target cuda" in err


def test_without_a_gpu_one_line_says_what_was_looked_for(capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UOPC_CUDA", "driver")
    status, _, err = run(capsys, str(EXAMPLES / "softmax.mlir"), "--target", "cuda", "-q")
    if status == 0:
        pytest.skip("there is a GPU")
    assert status == 1
    assert "looked for" in err
    assert "emulator" in err
    assert len(err.splitlines()) <= 2
