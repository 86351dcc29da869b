"""uopc-opt as a user meets it: arguments, input files, output, exit status."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from uopc.dialects.source_text import NESTING_LIMIT
from uopc.tools.opt import main

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "uopc-opt"
GOOD = "func.func @f(%a : i32) -> i32 {\n  %d = arith.constant 1 : i32\n  func.return %a : i32\n}\n"


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.mlir"
    path.write_text(GOOD)
    return str(path)


def write(tmp_path, text):
    path = tmp_path / "input.mlir"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_prints_the_module(good, capsys):
    assert main([good]) == 0
    out, err = capsys.readouterr()
    assert "arith.constant 1 : i32" in out
    assert err == ""


def test_empty_input_is_an_empty_module(tmp_path, capsys):
    assert main([write(tmp_path, "// nothing\n")]) == 0
    assert capsys.readouterr().out.split() == ["builtin.module", "{", "}"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--timng"], "did you mean --timing?"),
        (["-t", "mlri"], "did you mean mlir?"),
        (["-f", "mlri"], "did you mean mlir?"),
        (["-p", "cse", "--pass-pipeline", "cse"], "both given"),
        (["-p", "cannonicalize"], "did you mean canonicalize"),
        (["-p", "cse{x=1}"], "cse has no options"),
        (["-p", "cse{"], "not closed"),
        (["-p", "cse)"], "closes nothing"),
        (["-p", "cse(dce)"], "stand in braces"),
        (["-p", "func.func(cse"], "not closed"),
        (["-p", "cse dce"], "`,` is expected"),
        (["-p", "{"], "the name of a pass is expected"),
        (["--print-ir-before=cees"], "did you mean dce or cse?"),
        (["--show-pipeline", "uopc-gpus"], "There are: uopc-cpu"),
        (["extra.mlir"], "more than one input file"),
        (["-o"], "expected one argument"),
        (["-p", "approximate-math-with-bitcast{log=2}"], "expects bool, got '2'"),
        (["-p", "apply-individual-rewrite"], "needs option"),
    ],
)
def test_wrong_arguments(good, capsys, arguments, message):
    assert main([good, *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "error: " in err and "Traceback" not in err


HOSTILE = {
    "binary": (b"\x7fELF\xff\xfe\x00", "is not UTF-8 text [not-text]"),
    "bytecode": (b"ML\xefR\x01", "MLIR bytecode"),
    "nul": ("\x00\x01", "parse-error"),
    "nested regions": ("module {" * 10_000, "nest deeper than"),
    "nested attributes": ('"t"() {a = ' + "[" * 10_000, "nest deeper than"),
    "nested minus": (
        "module attributes {a = affine_map<(d0) -> (" + "- " * 5000 + "d0)>} {}",
        "nests too deep",
    ),
    "long sum": (
        "module attributes {a = affine_map<(d0) -> (" + "d0 + 1 + " * 900 + "d0)>} {}",
        "nests too deep",
    ),
    "huge integer": (f"%a = arith.constant {'1' * 5000} : i32", "input.mlir:1:"),
    "out of range": ("%a = arith.constant 12345678901 : i32", "input.mlir:1:"),
    "huge constant": ("%a = arith.constant dense<1> : tensor<1000000000000xi8>", "too large"),
    "unknown dialect": ('\n  "no.such"() : () -> ()', "input.mlir:2:3: error: Operation no.such"),
    "mistyped op": ("%a = arith.constatn 1 : i32", "1:6: error: Operation arith.constatn is not"),
    "unknown type": ("func.func private @f(!no.such)", "input.mlir:1:"),
    "open string": ('%a = "test.op' + " (i32) -> i32" * 20, "input.mlir:1:6"),
    "cut off": ("func.func @f(", "input.mlir:1:"),
    "wrong blob": (
        '%a = arith.constant dense<"0x0011"> : tensor<3xi8>',
        "Expected 3 elements",
    ),
    "escapes": ('"\x1b[31m"() : () -> ()', "error"),
    "undefined": ("%a = arith.addi %b, %b : i32", "input.mlir:1:17: error: value %b is used"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input(tmp_path, capsys, name):
    text, message = HOSTILE[name]
    assert main([write(tmp_path, text), "-o", str(tmp_path / "out.mlir")]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err and "\x1b" not in err
    assert not (tmp_path / "out.mlir").exists()
    assert max(map(len, err.splitlines())) < 1500


def test_nesting_up_to_the_limit_works(tmp_path, capsys):
    depth = NESTING_LIMIT // 2
    text = '"t.op"() ({\n' * depth + "}) : () -> ()\n" * depth
    path = write(tmp_path, text)
    assert main([path, "--allow-unregistered-dialect", "-p", "canonicalize,cse"]) == 0
    nested = "[" * (NESTING_LIMIT - 1) + "]" * (NESTING_LIMIT - 1)
    path = write(tmp_path, f"module attributes {{a = {nested}}} {{}}")
    assert main([path]) == 0


@pytest.mark.parametrize("path", ["/no/such/file.mlir", "/", "a\0b"])
def test_files_that_cannot_be_read(capsys, path):
    assert main([path]) == 1
    assert "[cannot-read]" in capsys.readouterr().err


def test_output_is_written_at_once(good, tmp_path):
    target = tmp_path / "out.mlir"
    target.write_text("old")
    target.chmod(0o640)
    assert main([good, "-o", str(target), "-p", "nope"]) == 1
    assert target.read_text() == "old"
    assert main([good, "-o", str(target)]) == 0
    assert "@f" in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert main([good, "-o", good]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.mlir", "out.mlir"]
    assert main([good, "-o", "/dev/null"]) == 0
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("target", ["/no/such/dir/out.mlir", "/"])
def test_output_that_cannot_be_written(good, capsys, target):
    assert main([good, "-o", target]) == 1
    assert "[cannot-write]" in capsys.readouterr().err


def test_split_input_runs_all_chunks(tmp_path, capsys):
    chunks = [GOOD, "func.func @bad(\n", GOOD.replace("@f", "@g")]
    path = write(tmp_path, "// -----\n".join(chunks))
    assert main([path, "--split-input-file"]) == 1
    out, err = capsys.readouterr()
    assert "@f" in out and "@g" in out and out.count("// -----") == 1
    assert "input.mlir:6:" in err
    assert main([path, "--split-input-file", "-o", str(tmp_path / "o")]) == 1
    assert not (tmp_path / "o").exists()


def test_marks_inside_a_line_do_not_split(tmp_path, capsys):
    path = write(tmp_path, "// -----// IR Dump After cse //----- //\n" + GOOD)
    assert main([path, "--split-input-file"]) == 0
    assert capsys.readouterr().out.count("module") == 1


def test_verify_diagnostics_sets_the_status(tmp_path, capsys):
    bad = '// expected-error@+1 {{not registered}}\n"no.such"() : () -> ()\n'
    assert main([write(tmp_path, bad), "--verify-diagnostics"]) == 0
    wrong = write(tmp_path, bad.replace("not registered", "other words"))
    assert main([wrong, "--verify-diagnostics"]) == 1
    err = capsys.readouterr().err
    assert "unexpected error: Operation no.such is not registered" in err
    assert "expected error 'other words' was not produced at line 2" in err
    assert main([write(tmp_path, GOOD), "--verify-diagnostics"]) == 0


def test_parsing_diagnostics_are_printed(tmp_path, capsys):
    assert main([write(tmp_path, "func.func @f("), "--parsing-diagnostics"]) == 0
    assert "input.mlir:1:" in capsys.readouterr().out


def test_locations_are_printed_on_request(good, capsys):
    assert main([good, "--print-debuginfo"]) == 0
    assert 'loc("' in (out := capsys.readouterr().out)
    assert 'good.mlir":2:8)' in out


def test_disable_verify_is_undone(tmp_path, capsys):
    from xdsl.ir import Attribute

    before = Attribute.__post_init__
    bad = '%v = "arith.addi"() : () -> i32'
    assert main([write(tmp_path, bad)]) == 1
    assert main([write(tmp_path, bad), "--disable-verify", "--print-op-generic"]) == 0
    assert '"arith.addi"()' in capsys.readouterr().out
    assert Attribute.__post_init__ is before


def test_list_passes_and_show_pipeline(capsys):
    assert main(["--show-pipeline", "uopc_cpu"]) == 0
    assert capsys.readouterr().out.startswith("uopc-canonicalize,")
    assert main(["--list-passes"]) == 0
    out = capsys.readouterr().out
    assert "\n  cse" in out
    assert "\n      pattern-name: str (required)\n" in out


def test_underscores_and_mlir_form(good, capsys):
    text = "builtin.module(convert_scf_to_cf, func.func(canonicalize,any(cse)))"
    assert main([good, "--pass-pipeline", text]) == 0
    assert "arith.constant" not in capsys.readouterr().out


def run_script(*arguments, stdin="", **options):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        input=stdin,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )


def test_script_works_from_a_bare_checkout(tmp_path):
    done = run_script("-p", "canonicalize", stdin=GOOD, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "arith.constant" not in done.stdout


def test_help_is_quick():
    seconds = []
    for _ in range(3):
        before = os.times().children_user
        assert "--pass-pipeline" in run_script("--help").stdout
        seconds.append(os.times().children_user - before)
    assert min(seconds) < 0.8  # processor time, which load on the machine disturbs least; 0.35 s


def test_reader_that_goes_away():
    script = (
        f"{sys.executable} {SCRIPT} --list-passes | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True)
    assert done.stdout.strip() in ("141", "0")
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk():
    done = subprocess.run(
        ["bash", "-c", f"echo | {sys.executable} {SCRIPT} > /dev/full"],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert "No space left" in done.stderr and "Traceback" not in done.stderr
