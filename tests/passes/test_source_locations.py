"""Places of tensor ops on their way down: kernels, ranges, loops, and the comments in C."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, IntAttr, StringAttr, UnknownLoc

from uopc.dialects import kernel, loop
from uopc.dialects.locations import fused_location, location_of, parse_text, places_text
from uopc.lowering.c import emit_c

SOFTMAX = """\
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %max = utensor.reduce max %x axes [1] : tensor<4x8xf32>
  %column = utensor.reshape %max : tensor<4xf32> -> tensor<4x1xf32>
  %rows = utensor.expand %column : tensor<4x1xf32> -> tensor<4x8xf32>
  %shifted = utensor.sub %x, %rows : tensor<4x8xf32>
  %e = utensor.exp %shifted : tensor<4x8xf32>
  %sum = utensor.reduce add %e axes [1] : tensor<4x8xf32>
  func.return %e, %sum : tensor<4x8xf32>, tensor<4xf32>
}
""".replace("-> tensor<4x8xf32> {", "-> (tensor<4x8xf32>, tensor<4xf32>) {")


@pytest.fixture
def lowered(run_pipeline):
    """The program at some level, as read from a file in a folder."""
    return lambda pipeline, name="dir/softmax.mlir": run_pipeline(
        parse_text(SOFTMAX, name), pipeline
    )


def lines(op):
    """The lines of an op's location, all of a fused one."""
    parts = op.location.locations if isinstance(op.location, FusedLoc) else [op.location]
    return [p.line.data for p in parts if isinstance(p, FileLineColLoc)]


def test_a_kernel_is_where_its_ops_are(lowered):
    module = lowered("kernelize")
    kernels = [op for op in module.walk() if isinstance(op, kernel.KernelOp)]
    # What it writes comes first: that is the place an error tells.
    assert [lines(k) for k in kernels] == [[2], [6, 3, 4, 5], [7]]
    assert [location_of(k).line for k in kernels] == [2, 6, 7]


@pytest.mark.parametrize("pipeline", ["kernelize,rangeify", "kernelize,rangeify,plan-memory"])
def test_ops_over_ranges_are_where_their_tensor_ops_are(lowered, pipeline):
    module = lowered(pipeline)
    reduces = [op for op in module.walk() if isinstance(op, loop.ReduceOp)]
    assert [lines(op) for op in reduces] == [[2], [7]]
    assert [lines(op) for op in module.walk() if isinstance(op, arith.SubfOp)] == [[5]]
    stores = [op for op in module.walk() if isinstance(op, loop.StoreOp)]
    assert [lines(op) for op in stores] == [[2], [6], [7]]


@pytest.mark.parametrize("pipeline", ["uopc-cpu"])
def test_loops_are_where_their_tensor_ops_are(lowered, pipeline):
    module = lowered(pipeline)
    functions = {
        op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)
    }
    kernels = [op for name, op in functions.items() if name != "softmax"]
    assert [lines(k)[0] for k in kernels] == [2, 6, 7]
    stores = [op for op in module.walk() if isinstance(op, memref.StoreOp)]
    assert [lines(op) for op in stores] == [[2], [6], [7]]
    sums = [op for op in functions["r_4$1"].walk() if isinstance(op, arith.AddfOp)]
    assert [lines(op) for op in sums] == [[7]]


@pytest.mark.parametrize("pipeline", ["uopc-cpu", "uopc-cpu-native{fuse-reduce=none}"])
def test_the_comments_of_kernels_in_c(lowered, pipeline):
    text = emit_c(lowered(pipeline)).text
    comments = re.findall(r"/\* (.*softmax\.mlir.*) \*/", text)
    assert comments == [
        "reduce max [1]; softmax.mlir:2",
        "sub, exp; softmax.mlir:3-6",
        "reduce add [1]; softmax.mlir:7",
    ]
    assert "dir/" not in text  # what is printed does not depend on folders


def test_a_text_without_a_file_has_no_places(lowered):
    text = emit_c(lowered("uopc-cpu", "<text>")).text
    assert "/* reduce max [1] */" in text and "<text>" not in text


def place(file, line):
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(1))


def test_fused_locations_are_flat_and_have_each_place_once():
    a, b, c = place("a", 1), place("a", 2), place("b", 3)
    both = fused_location([a, b, a])
    assert list(both.locations) == [a, b]
    assert list(fused_location([UnknownLoc(), c, both]).locations) == [c, a, b]
    assert fused_location([UnknownLoc()]) == UnknownLoc()
    assert fused_location([]) == UnknownLoc()


def test_places_in_words():
    assert places_text(fused_location([place("x/a.mlir", 9), place("a.mlir", 4)])) == "a.mlir:4-9"
    both = fused_location([place("a.mlir", 1), place("c\\b.py", 7)])
    assert places_text(both) == "a.mlir:1, b.py:7"
    assert places_text(place("a.mlir", 1)) == ""
    hostile = fused_location([place("a*/ system(\n.mlir", 1)])
    assert "\n" not in places_text(hostile)


def test_a_file_name_cannot_leave_the_comment(lowered):
    text = emit_c(lowered("uopc-cpu", "dir/a*/int x;.mlir")).text
    assert "*/int" not in text
