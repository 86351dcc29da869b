"""uopc-opt --check-values: ten broken passes at all levels are each blamed by name."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import AffineMapAttr, i32
from xdsl.ir.affine import AffineConstantExpr, AffineMap
from xdsl.passes import ModulePass

from uopc.dialects import kernel, loop, tensor
from uopc.dialects import tensor_elementwise as ew
from uopc.dialects import tensor_movement as mv
from uopc.dialects.numbers import scalar_value
from uopc.dialects.sizes import SizesAttr
from uopc.tools.opt import main

EXAMPLES = Path(__file__).parents[2] / "examples"
TO_RANGES = "kernelize,rangeify"
TO_LOOPS = "kernelize,rangeify,plan-memory,linearize,lower-plan"


def first(module, kind, condition=lambda op: True):
    return next(op for op in module.walk() if isinstance(op, kind) and condition(op))


def replaced(op, value):
    op.results[0].replace_all_uses_with(value)
    op.detach()
    op.erase()


@dataclass(frozen=True)
class WrongTail(ModulePass):
    """The last index of a loop is left out."""

    name = "wrong-tail"

    def apply(self, ctx, op):
        r = first(op, loop.RangeOp, lambda r: r.kind.data == "loop" and r.constant_end > 1)
        end = AffineMap(0, 0, (AffineConstantExpr(r.constant_end - 1),))
        r.properties["end"] = AffineMapAttr(end)


@dataclass(frozen=True)
class ShiftedArgument(ModulePass):
    """The inputs of a launch move one place."""

    name = "shifted-argument"

    def apply(self, ctx, op):
        launch = first(op, kernel.LaunchOp, lambda o: len(o.inputs) > 1)
        a, b = launch.inputs[0], launch.inputs[1]
        start = len(launch.sizes)
        launch.operands[start], launch.operands[start + 1] = b, a


@dataclass(frozen=True)
class DroppedMask(ModulePass):
    """A choice between a padded element and the value outside is not made."""

    name = "dropped-mask"

    def apply(self, ctx, op):
        select = first(op, arith.SelectOp)
        replaced(select, select.lhs)


@dataclass(frozen=True)
class WrongAccumulatorScope(ModulePass):
    """A sum starts anew in each step."""

    name = "wrong-accumulator-scope"

    def apply(self, ctx, op):
        inner = first(op, scf.ForOp, lambda o: len(o.iter_args) == 1)
        inner.body.block.args[1].replace_all_uses_with(inner.iter_args[0])


@dataclass(frozen=True)
class SwappedAxes(ModulePass):
    """A transposition of a square is taken for nothing."""

    name = "swapped-axes"

    def apply(self, ctx, op):
        permute = first(op, mv.PermuteOp, lambda o: o.operand.type == o.result.type)
        replaced(permute, permute.operand)


@dataclass(frozen=True)
class FoldedNan(ModulePass):
    """x - x is taken for 0, which it is not for NaN and the infinities."""

    name = "folded-nan"

    def apply(self, ctx, op):
        sub = first(op, ew.SubOp, lambda o: o.lhs is o.rhs)
        zero = tensor.ConstantOp(0.0, sub.result.type)
        sub.parent.insert_op_before(zero, sub)
        replaced(sub, zero.result)


@dataclass(frozen=True)
class LostSignOfZero(ModulePass):
    """x + 0 is taken for x, which it is not for -0."""

    name = "lost-sign-of-zero"

    def apply(self, ctx, op):
        def adds_zero(o):
            constant = o.rhs.owner
            return isinstance(constant, tensor.ConstantOp) and scalar_value(constant.value) == 0

        add = first(op, ew.AddOp, adds_zero)
        replaced(add, add.lhs)


@dataclass(frozen=True)
class OffByOneShrink(ModulePass):
    """A part of an axis is taken one place too late."""

    name = "off-by-one-shrink"

    def apply(self, ctx, op):
        shrink = first(op, mv.ShrinkOp)
        for name in ("begins", "ends"):
            sizes = shrink.properties[name].data
            shrink.properties[name] = SizesAttr((sizes[0] + 1, *sizes[1:]))


@dataclass(frozen=True)
class ReorderedStore(ModulePass):
    """Of two stores to a buffer the later one comes first."""

    name = "reordered-store"

    def apply(self, ctx, op):
        early = first(op, memref.StoreOp)
        late = first(op, memref.StoreOp, lambda o: o is not early)
        late.detach()
        early.parent.insert_op_before(late, early)


@dataclass(frozen=True)
class WrongCast(ModulePass):
    """A signed number is widened as if it were unsigned."""

    name = "wrong-cast"

    def apply(self, ctx, op):
        old = first(op, arith.ExtSIOp)
        new = arith.ExtUIOp(old.input, i32)
        old.parent.insert_op_before(new, old)
        replaced(old, new.result)


@dataclass(frozen=True)
class Honest(ModulePass):
    """Changes nothing."""

    name = "honest"

    def apply(self, ctx, op):
        pass


BROKEN = (
    WrongTail, ShiftedArgument, DroppedMask, WrongAccumulatorScope, SwappedAxes, FoldedNan,
    LostSignOfZero, OffByOneShrink, ReorderedStore, WrongCast,
)  # fmt: skip

SUMS = """\
func.func @sums(%x: tensor<6x8xf32>, %y: tensor<6x8xf32>) -> (tensor<6xf32>, tensor<6x8xf32>) {
  %a = utensor.mul %x, %y : tensor<6x8xf32>
  %b = utensor.add %a, %y : tensor<6x8xf32>
  %s = utensor.reduce add %b axes [1] : tensor<6x8xf32> -> tensor<6xf32>
  %d = utensor.sub %x, %b : tensor<6x8xf32>
  func.return %s, %d : tensor<6xf32>, tensor<6x8xf32>
}
"""
SQUARE = """\
func.func @square(%x: tensor<5x5xf32>) -> tensor<5x5xf32> {
  %e = utensor.exp %x : tensor<5x5xf32>
  %t = utensor.permute %e [1, 0] : tensor<5x5xf32>
  %z = utensor.sub %t, %x : tensor<5x5xf32>
  %n = utensor.neg %z : tensor<5x5xf32>
  func.return %n : tensor<5x5xf32>
}
"""
ZEROS = """\
func.func @zeros(%x: tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>) {
  %zero = utensor.constant 0.0 : tensor<40xf32>
  %d = utensor.sub %x, %x : tensor<40xf32>
  %s = utensor.add %x, %zero : tensor<40xf32>
  %r = utensor.recip %s : tensor<40xf32>
  func.return %d, %r : tensor<40xf32>, tensor<40xf32>
}
"""
PARTS = """\
func.func @parts(%x: tensor<9xf32>) -> tensor<8xf32> {
  %a = utensor.abs %x : tensor<9xf32>
  %s = utensor.shrink %a [2] to [6] : tensor<9xf32> -> tensor<4xf32>
  %p = utensor.pad %s low [3] high [1] value 2.0 : tensor<4xf32> -> tensor<8xf32>
  func.return %p : tensor<8xf32>
}
"""
WIDER = """\
func.func @wider(%x: tensor<12xi8>) -> tensor<12xi32> {
  %w = utensor.cast %x : tensor<12xi8> -> tensor<12xi32>
  func.return %w : tensor<12xi32>
}
"""
STORES = """\
func.func @stores(%a: f32, %b: f32, %x: memref<4xf32>) {
  %zero = arith.constant 0 : index
  %c = arith.addf %a, %b : f32
  memref.store %a, %x[%zero] : memref<4xf32>
  memref.store %c, %x[%zero] : memref<4xf32>
  func.return
}
"""

CASES = {
    "wrong-tail": (SUMS, TO_RANGES, "@sums"),
    "shifted-argument": (SUMS, "kernelize", "@sums"),
    "dropped-mask": (PARTS, TO_RANGES, "@parts"),
    "wrong-accumulator-scope": (SUMS, TO_LOOPS, "@sums"),
    "swapped-axes": (SQUARE, "honest", "@square"),
    "folded-nan": (ZEROS, "honest", "@zeros"),
    "lost-sign-of-zero": (ZEROS, "honest", "@zeros"),
    "off-by-one-shrink": (PARTS, "honest", "@parts"),
    "reordered-store": (STORES, "honest", "@stores"),
    "wrong-cast": (WIDER, TO_LOOPS, "@wider"),
}
PLACES = {
    "swapped-axes": "in.mlir:3:8",
    "folded-nan": "in.mlir:3:8",
    "lost-sign-of-zero": "in.mlir:4:8",
    "off-by-one-shrink": "in.mlir:3:8",
}
"""Where the op stands that a pass on tensors breaks."""


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run_on(text, *arguments):
        Path("in.mlir").write_text(text)
        status = main(["in.mlir", *arguments], extra_passes=(*BROKEN, Honest))
        out, err = capsys.readouterr()
        return status, out, err

    return run_on


@pytest.mark.parametrize("name", CASES)
def test_a_broken_pass_is_blamed_by_name(run, name):
    text, before, program = CASES[name]
    status, out, err = run(text, "-p", f"{before},{name},honest", "--check-values")
    assert (status, out) == (1, ""), err
    heading = next(line for line in err.splitlines() if "error: " in line)
    assert f"error: pass {name} changes a value of {program}: " in heading
    assert heading.endswith("[value-changed]")
    assert f"  in pass: {name}" in err.splitlines()
    assert ", expected " in heading or "running it fails" in heading
    assert "  op: " in err
    assert "in.reproducer.mlir" in err
    assert "Traceback" not in err
    if name in PLACES:
        assert err.startswith(PLACES[name])
    # What is left shows the same error, by the command that it states.
    reduced = Path("in.reproducer.mlir").read_text()
    lines = reduced.splitlines()
    assert lines[0].startswith("// RUN: not uopc-opt %s -p ") and name in lines[0]
    argument = lines[0].partition("--check-values=")[2].split()[0].replace("%S/", "")
    again, _, error = run(reduced, "-p", name, f"--check-values={argument}")
    assert again == 1 and f"pass {name} changes a value" in error


@pytest.mark.parametrize(
    ("name", "ops"),
    [("swapped-axes", 3), ("folded-nan", 3), ("lost-sign-of-zero", 4), ("off-by-one-shrink", 3),
     ("wrong-tail", 8), ("wrong-cast", 12)],
)  # fmt: skip
def test_little_is_left(run, name, ops):
    text, before, _ = CASES[name]
    run(text, "-p", f"{before},{name}", "--check-values", "--reproducer", "small.mlir")
    body = [
        line for line in Path("small.mlir").read_text().splitlines()
        if " = " in line or "return" in line or "func" in line
    ]  # fmt: skip
    assert len(body) <= ops, "\n".join(body)


@pytest.mark.parametrize("example", ["softmax", "half", "integers", "symbolic", "movement"])
def test_the_pipeline_changes_nothing(run, example):
    text = (EXAMPLES / f"{example}.mlir").read_text()
    status, _, err = run(text, "-p", "uopc-cpu-native", "--check-values=3")
    assert (status, err) == (0, "")


def test_the_first_difference_is_told_with_its_numbers(run):
    np.savez("x.npz", x=np.arange(25, dtype=np.float32).reshape(5, 5))
    status, _, err = run(
        SQUARE.replace("utensor.exp", "utensor.neg"),
        "-p", "swapped-axes", "--check-values=x.npz",
    )  # fmt: skip
    assert status == 1
    message = "result 0 at [0, 1] is 2.0, expected 6.0 (20 of 25 elements differ)"
    assert f"pass swapped-axes changes a value of @square: {message}" in err
    assert "on the arrays of x.npz" in err


def test_the_arguments_are_checked(run):
    status, _, err = run(SQUARE, "-p", "honest", "--check-values=x.mlir")
    assert status == 1 and "[bad-argument]" in err and "--check-values=SEED" in err
    status, _, err = run(SQUARE, "-p", "honest", "--check-values=none.npz")
    assert status == 1 and "[bad-input-file]" in err
    np.savez("y.npz", y=np.zeros(3, np.float32))
    status, _, err = run(SQUARE, "-p", "honest", "--check-values=y.npz")
    assert status == 1 and "[wrong-input-names]" in err and "@square takes x" in err
    np.savez("z.npz", x=np.zeros((5, 5)))
    status, _, err = run(SQUARE, "-p", "honest", "--check-values=z.npz")
    assert status == 1 and "has dtype float64, expected float32" in err


def test_what_cannot_be_interpreted_is_noted(run):
    text = SQUARE.replace("utensor.neg %z", '"test.op"(%z)').replace(
        "func.return %n", "func.return %n"
    )
    text = text.replace('"test.op"(%z) : tensor<5x5xf32>',
                        '"test.op"(%z) : (tensor<5x5xf32>) -> tensor<5x5xf32>')  # fmt: skip
    status, _, err = run(text, "-p", "honest", "--check-values")
    assert status == 0
    assert "note: @square is not checked" in err and "test.op" in err


def test_every_chunk_is_checked(run):
    status, _, err = run(
        f"{WIDER}// -----\n{SQUARE}", "-p", "swapped-axes", "--check-values", "--split-input-file"
    )
    assert status != 0 and "@square" in err


def test_the_command_itself(tmp_path):
    source = tmp_path / "s.mlir"
    source.write_text(SUMS)
    command = [sys.executable, "-m", "uopc.tools.opt", str(source), "-p", "uopc-cpu"]
    done = subprocess.run([*command, "--check-values"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "func.func @sums" in done.stdout


def test_pairs_of_bf16_are_right(tmp_path, capsys):
    """Special values among the inputs, odd and even depths, at every pass down to loops."""
    for depth in (2, 3, 4, 17):
        file = tmp_path / f"pairs{depth}.mlir"
        a, b, c = f"33x{depth}", f"{depth}x16", "33x16"
        cube = f"tensor<33x16x{depth}xbf16>"
        file.write_text(f"""
func.func @f(%a: tensor<{a}xbf16>, %b: tensor<{b}xbf16>) -> tensor<{c}xbf16> {{
  %t = utensor.permute %b [1, 0] : tensor<{b}xbf16>
  %a3 = utensor.reshape %a : tensor<{a}xbf16> -> tensor<33x1x{depth}xbf16>
  %ae = utensor.expand %a3 : tensor<33x1x{depth}xbf16> -> {cube}
  %b3 = utensor.reshape %t : tensor<16x{depth}xbf16> -> tensor<1x16x{depth}xbf16>
  %be = utensor.expand %b3 : tensor<1x16x{depth}xbf16> -> {cube}
  %p = utensor.mul %ae, %be : {cube}
  %c = utensor.reduce add %p axes [2] : {cube}
  func.return %c : tensor<{c}xbf16>
}}""")
        passes = "uopc-cpu-native"
        words = [str(file), "-p", passes, "--target-cpu", "avx512bf16", "--check-values=0"]
        assert main(words) == 0, capsys.readouterr().err
        assert ("x86vector.avx512.dot" in capsys.readouterr().out) == (depth != 3)


def test_a_file_without_a_program_is_told(tmp_path, capsys):
    file = tmp_path / "kernel.mlir"
    file.write_text("""
ukernel.kernel @k ins(%x : memref<4xf32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i] : memref<4xf32>
  uloop.store %v, %o[%i] : memref<4xf32>
}""")
    assert main([str(file), "-p", "apply-schedule", "--check-values"]) == 0
    assert "nothing is checked" in capsys.readouterr().err
