"""uopc-run: results to files and back, and what it answers to inputs that do not fit."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from uopc.tools.run import main

TEXT = """\
func.func @main(%x: tensor<2x3xf32>, %n: tensor<3xi8>) -> (tensor<2xf32>, tensor<3xi8>) {
  %s = utensor.reduce add %x axes [1] : tensor<2x3xf32>
  %m = utensor.neg %n : tensor<3xi8>
  func.return %s, %m : tensor<2xf32>, tensor<3xi8>
}
"""
X, N = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2, -128], np.int8)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, cache_folder):
    """Runs uopc-run on a program in a folder of its own: status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def on(*arguments: str, text: str = TEXT) -> tuple[int, str, str]:
        Path("in.mlir").write_text(text)
        status = main(["in.mlir", *arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return on


@pytest.mark.parametrize("form", ["named", "numbered", "npy"])
@pytest.mark.parametrize("target", ["c", "interpreter"])
def test_results_of_arrays_from_files(run, form, target):
    if form == "named":
        np.savez("in.npz", n=N, x=X)
    elif form == "numbered":
        np.savez("in.npz", X, N)
    else:
        np.save("x.npy", X)
        np.save("n.npy", N)
    given = ["-i", "x.npy", "-i", "n.npy"] if form == "npy" else ["-i", "in.npz"]
    assert run(*given, "--target", target, "-o", "out.npz", "-q") == (0, "", "")
    with np.load("out.npz") as results:
        assert results["out0"].tolist() == [3, 12]
        assert results["out1"].tolist() == [-1, -2, -128]
    assert sorted(path.name for path in Path().glob("out*")) == ["out.npz"]


@pytest.mark.parametrize("target", ["c", "interpreter"])
def test_timing_tells_where_the_time_goes(run, target):
    status, out, err = run("--timing", "-q", "--target", target)
    assert (status, out) == (0, "")
    labels = [line.split(maxsplit=2)[-1].split("  ")[-1] for line in err.splitlines()]
    assert labels[2] == "read"
    assert labels[-2:] == ["first call", "total"]
    if target == "c":
        assert "print C" in labels
        assert "C compiler -O2, load" in labels
        assert any(label.endswith("linearize") for label in labels)


def test_one_result_as_npy_and_bf16_through_files(run):
    text = """func.func @main(%x: tensor<2xbf16>) -> tensor<2xbf16> {
  %y = utensor.add %x, %x : tensor<2xbf16>
  func.return %y : tensor<2xbf16>
}"""
    x = np.array([1.5, -3], ml_dtypes.bfloat16)
    np.save("x.npy", x.view(np.uint16))
    assert run("-i", "x.npy", "-o", "y.npy", "-q", text=text)[0] == 0
    assert np.load("y.npy").view(ml_dtypes.bfloat16).tolist() == [3, -6]
    assert run("-i", "y.npy", "-o", "z.npy", "-q", text=text)[0] == 0


def test_seeds_decide_the_inputs(run):
    outputs = [run("--seed", seed)[1] for seed in ("1", "1", "2")]
    assert outputs[0] == outputs[1] != outputs[2]


def test_check_finds_what_differs(run, monkeypatch):
    import uopc.tools.run as tool

    monkeypatch.setattr(tool, "_call", lambda exe, *rest: differing(exe))
    status, out, err = run("--check", "-q")
    assert (status, err) == (1, "")
    assert out == (
        "check: out0 agrees with numpy, largest difference 0\n"
        "check: out1 differs from numpy at [1]: expected 2, got 3\n"
    )


def differing(exe):
    wrong = type(exe).__name__ != "InterpretedExecutable"
    return {"out0": np.zeros(2, np.float32), "out1": np.array([1, 2 + wrong, 3], np.int8)}


# The file of arrays, what goes wrong, what is said.
FILES = {
    "wrong_shape": (
        {"x": X.T, "n": N},
        "error: input `x` has shape [3, 2]; expected float32[2, 3] [wrong-shape]\n"
        "  hint: this program was compiled for this one shape; reshape or slice the array\n",
    ),
    "wrong_dtype": (
        {"x": X.astype(np.float64), "n": N},
        "error: input `x` has dtype float64; expected float32 [wrong-dtype]\n"
        '  hint: no dtype is converted silently; convert it: array.astype("float32")\n',
    ),
    "byte_order": (
        {"x": X.astype(">f4"), "n": N},
        "error: input `x` has its bytes in the other order (>f4); expected float32 in this "
        "machine's order [byte-order]\n"
        '  hint: convert it: array.astype("float32")\n',
    ),
    "wrong_names": (
        {"y": X, "n": N},
        "error: the file has arrays n, y [wrong-input-names]\n  hint: expected x, n\n",
    ),
    "objects": (
        {"x": np.array([{}], object), "n": N},
        "error: 'in.npz' cannot be read: Object arrays cannot be loaded when "
        "allow_pickle=False [bad-input-file]\n",
    ),
}


@pytest.mark.parametrize("target", ["c", "interpreter"])
@pytest.mark.parametrize("case", FILES)
def test_arrays_that_do_not_fit(run, case, target):
    arrays, message = FILES[case]
    np.savez("in.npz", **arrays)
    assert run("-i", "in.npz", "-q", "--target", target) == (1, "", message)


# What is on the command line, and what is said to it.
ARGUMENTS = {
    "count": (
        ["-i", "x.npy"],
        "error: main takes 2 inputs: `x`, `n`; got 1 [wrong-input-count]\n",
    ),
    "mixed": (
        ["-i", "x.npy", "-i", "in.npz"],
        "error: give either one .npz or .npy files, not both [mixed-inputs]\n",
    ),
    "missing": (
        ["-i", "gone.npz"],
        "error: 'gone.npz' cannot be read: No such file or directory [bad-input-file]\n",
    ),
    "suffix": (["-i", "in.mlir"], "error: 'in.mlir' is neither .npy nor .npz [bad-input-file]\n"),
    "not_a_zip": (
        ["-i", "bad.npz"],
        "error: 'bad.npz' is damaged: File is not a zip file [bad-input-file]\n",
    ),
    "empty": (
        ["-i", "empty.npy"],
        "error: 'empty.npy' cannot be read: No data left in file [bad-input-file]\n",
    ),
    "two_in_one": (
        ["-o", "out.npy"],
        "error: 2 results do not fit one .npy: use .npz [bad-output-file]\n",
    ),
    "nowhere": (
        ["-o", "gone/out.npz"],
        "error: 'gone/out.npz' cannot be written: No such file or directory [bad-output-file]\n",
    ),
    "output_suffix": (
        ["-o", "out.txt"],
        "error: 'out.txt' is neither .npy nor .npz [bad-output-file]\n",
    ),
    "function": (
        ["--function", "other"],
        "error: there is no program @other [no-such-function]\n"
        "  hint: choose one with --function=…: main\n",
    ),
    "size": (
        ["--size", "k=3"],
        "error: the program has no size 'k' [unknown-size]\n  hint: it has: none\n",
    ),
    "seed": (
        ["--seed", "-1"],
        "error: argument --seed: expected a number from 0 on, got '-1' [bad-argument]\n"
        "  hint: uopc-run --help lists all options\n",
    ),
    "option": (
        ["--debg", "1"],
        "error: there is no option --debg [bad-argument]\n"
        "  hint: did you mean --debug? --help lists all\n",
    ),
    "choice": (
        ["--debug", "9"],
        "error: argument --debug: invalid choice: 9 (choose from 0, 1, 2, 3, 4) [bad-argument]\n"
        "  hint: uopc-run --help lists all options\n",
    ),
    "pipeline": (
        ["--pass-pipeline", "uopc-canonicalize"],
        "error: the pipeline 'uopc-canonicalize' does not end in loops [incomplete-pipeline]\n"
        "  hint: expected it to have linearize and lower-plan, as uopc-cpu has\n",
    ),
    "pass": (
        ["--pass-pipeline", "canonicalize"],
        "pass-pipeline:1:1: error: there is no pass named 'canonicalize' [unknown-pass]\n"
        "  canonicalize\n  ^^^^^^^^^^^^\n"
        "  hint: did you mean uopc-canonicalize? --list-passes lists all\n",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_make_no_sense(run, case):
    np.save("x.npy", X)
    np.savez("in.npz", x=X, n=N)
    Path("bad.npz").write_bytes(b"PK\x03\x04 garbage")
    Path("empty.npy").write_bytes(b"")
    arguments, message = ARGUMENTS[case]
    assert run("-q", *arguments) == (1, "", message)
    assert not [path for path in Path().rglob("*") if path.name.startswith("out")]


def test_an_npz_that_claims_to_be_huge(run):
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }".ljust(117)
    Path("x.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + head + b"\n")
    status, out, err = run("-i", "x.npy", "-i", "x.npy", "-q")
    assert (status, out) == (1, "")
    assert err.startswith("error: 'x.npy' ")
    assert err.endswith("[bad-input-file]\n")


def test_a_program_without_inputs(run):
    text = """func.func @main() -> tensor<2xi32> {
  %c = utensor.constant dense<[4, -5]> : tensor<2xi32>
  func.return %c : tensor<2xi32>
}"""
    assert run(text=text) == (0, "out0: int32 2\n[ 4 -5]\n", "")


GPU = """\
func.func @main(%n: index, %x: memref<8xf32> {llvm.noalias, llvm.readonly, uopc.name = "x"},
                %out0: memref<8xf32> {llvm.noalias}) -> i32 {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%tx] : memref<8xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %out0[%tx] : memref<8xf32>
    gpu.terminator
  }
  %r = arith.index_cast %n : index to i32
  func.return %r : i32
}
"""


def test_programs_in_loops_and_in_threads_are_interpreted(run):
    np.savez("in.npz", x=np.arange(8, dtype=np.float32))
    given = ["-i", "in.npz", "--size", "n=5", "-q", "-o", "out.npz"]
    assert run(*given, "--target", "interpreter", text=GPU) == (0, "", "")
    with np.load("out.npz") as results:
        assert results["out0"].tolist() == [2 * k for k in range(8)]
        assert results["out1"] == 5


def test_programs_in_loops_of_sizes_that_nothing_tells(run):
    text = GPU.replace("memref<8xf32>", "memref<?xf32>")
    status, _, errors = run("--target", "interpreter", text=text)
    assert status == 1
    assert "error: nothing tells the sizes of 'x' of @main [index-unbound]" in errors
