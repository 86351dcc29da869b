"""ONNX models in the tools: uopc-run's inputs, uopc-opt's C with its weights in a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx_models import model, node, perceptron, perceptron_result

from uopc.tools import opt, run

MAIN = """\
#include <stdio.h>
#include "model.weights.h"
#include "model.h"
static _Alignas(64) char weights[MODEL_WEIGHTS_BYTES];
static _Alignas(64) signed char work[1 << 20];
int main(void)
{
    static float x[3*64], y[3*40];
    FILE *file = fopen("model.weights", "rb");
    if (!file || fread(weights, 1, sizeof weights, file) != sizeof weights)
        return 1;
    for (int i = 0; i < 3*64; i++)
        x[i] = (float)(i % 7) - 3;
    test(x, (const float *)(weights + MODEL_WEIGHTS_0),
        (const float *)(weights + MODEL_WEIGHTS_1), y, work);
    for (int i = 0; i < 3*40; i++)
        printf("%a\\n", y[i]);
    return 0;
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, cache_folder):
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_bytes(perceptron()[0].SerializeToString())


def test_run_takes_inputs_by_name(capsys):
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    np.savez("x.npz", x=x)
    assert run.main(["model.onnx", "--input", "x.npz", "-o", "y.npy", "--check", "-q"]) == 0
    assert "check: out0 agrees" in capsys.readouterr().out
    np.testing.assert_allclose(np.load("y.npy"), perceptron_result(x, perceptron()[1]), 1e-4, 1e-4)
    assert run.main(["model.onnx", "--size", "batch=2", "--target", "interpreter", "-q"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.onnx"], "error: input 'x' has sizes that the model leaves open: batch"),
        (["model.onnx", "--size", "batch=two"], "error: size 'batch=two': expected NAME=NUMBER"),
        (["absent.onnx"], "error: cannot read 'absent.onnx': No such file or directory"),
        (["nonzero.onnx"], "error: node 'nz' (NonZero): the shape of its result depends on data"),
    ],
)
def test_what_is_wrong_is_a_line_and_status_1(capsys, arguments, message):
    proto = model([node("NonZero", "x", "y", name="nz")], {"x": [3]}, ["y"])
    Path("nonzero.onnx").write_bytes(proto.SerializeToString())
    assert run.main(arguments) == 1
    assert capsys.readouterr().err.startswith(message)
    if "--size" not in arguments:
        assert opt.main(arguments) == 1
        error = capsys.readouterr().err
        assert error.startswith(message.partition(" that")[0])
        assert "Traceback" not in error


def test_opt_says_that_weights_are_arguments(capsys):
    assert opt.main(["model.onnx", "-f", 'onnx{sizes="batch=2"}']) == 0
    out, err = capsys.readouterr()
    assert "func.func @test(%x: tensor<2x64xf32>, %fc1.weight: tensor<64x32xf32>," in out
    assert "note: 2 constants, 13,312 bytes, are arguments of the function" in err
    assert opt.main(["model.onnx", "-f", 'onnx{sizes="batch=2" weights=embedded}']) == 0
    out, err = capsys.readouterr()
    assert "func.func @test(%x: tensor<2x64xf32>) ->" in out
    assert err == ""


def test_the_c_of_a_model_with_its_weights_in_a_file(capsys):
    reads = ["-f", 'onnx{sizes="batch=3" weights=model.weights}']
    for target, name in (("c", "model.c"), ("c{header=true}", "model.h")):
        assert opt.main(["model.onnx", *reads, "-p", "uopc-cpu", "-t", target, "-o", name]) == 0
    assert Path("model.weights").stat().st_size == 13312
    Path("main.c").write_text(MAIN)
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run(["cc", *flags, "main.c", "model.c", "-o", "main", "-lm"], check=True)
    printed = subprocess.run(["./main"], check=True, capture_output=True, text=True).stdout
    got = np.array([float.fromhex(line) for line in printed.split()]).reshape(3, 40)
    x = (np.arange(3 * 64) % 7 - 3).astype(np.float32).reshape(3, 64)
    np.testing.assert_allclose(got, perceptron_result(x, perceptron()[1]), 1e-4, 1e-4)


def test_weights_that_cannot_be_written(capsys):
    reads = 'onnx{sizes="batch=3" weights="no/such/folder"}'
    assert opt.main(["model.onnx", "-f", reads]) == 1
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def test_a_model_becomes_c_without_naming_passes(capsys):
    model_ = ["model.onnx", "-f", 'onnx{sizes="batch=2"}', "-t", "c"]
    assert opt.main(model_) == 0
    plain = capsys.readouterr().out
    assert opt.main([*model_, "-p", "uopc-cpu"]) == 0
    assert "void test(" in plain and plain == capsys.readouterr().out
