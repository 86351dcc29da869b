"""Memory in the interpreter: views, and accesses that are outside or not allowed."""

from __future__ import annotations

import numpy as np
from linear_programs import IN_PLACE, PREFIX, VECTORS, fails, parse

from uopc.interpreters.linear import run_linear

VIEWS = """
"memref.global"() <{sym_name = "table", sym_visibility = "private", type = memref<6xi32>,
  initial_value = dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>, constant}> : () -> ()
func.func @f(%bytes: memref<64xi8>, %o: memref<3xi32>) -> index {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %eight = arith.constant 8 : index
  %t = memref.get_global @table : memref<6xi32>
  %grid = memref.expand_shape %t [[0, 1]] output_shape [2, 3] : memref<6xi32> into memref<2x3xi32>
  %column = memref.subview %grid[0, 1] [2, 2] [1, 1]
    : memref<2x3xi32> to memref<2x2xi32, strided<[3, 1], offset: 1>>
  %v = memref.view %bytes[%eight][%three] : memref<64xi8> to memref<?xi32>
  %a = memref.load %column[%one, %zero] : memref<2x2xi32, strided<[3, 1], offset: 1>>
  memref.store %a, %v[%two] : memref<?xi32>
  %flat = memref.collapse_shape %grid [[0, 1]] : memref<2x3xi32> into memref<6xi32>
  %b = memref.load %flat[%three] : memref<6xi32>
  memref.store %b, %v[%zero] : memref<?xi32>
  %c = memref.reinterpret_cast %t to offset: [1], sizes: [2], strides: [3]
    : memref<6xi32> to memref<2xi32, strided<[3], offset: 1>>
  %d = memref.load %c[%one] : memref<2xi32, strided<[3], offset: 1>>
  memref.store %d, %v[%one] : memref<?xi32>
  %fixed = "memref.cast"(%v) : (memref<?xi32>) -> memref<3xi32>
  "memref.copy"(%fixed, %o) : (memref<3xi32>, memref<3xi32>) -> ()
  %n = memref.dim %v, %zero : memref<?xi32>
  func.return %n : index
}
"""


def test_views_share_memory():
    data, o = np.zeros(64, np.int8), np.zeros(3, np.int32)
    (n,) = run_linear(parse(VIEWS), "f", [data, o])
    assert (o.tolist(), n) == ([4, 5, 5], 3)
    assert data[8:20].view(np.int32).tolist() == [4, 5, 5]


def test_accesses_outside_are_told_with_op_and_indices():
    text = PREFIX.replace("%end = arith.constant 100", "%end = arith.constant 103")
    error = fails(
        "out-of-bounds",
        "'memref.load' touches [100] of a buffer of shape [100]: index 0 is not from 0 to 99",
        text, "f", np.zeros(100, np.int32),
    )  # fmt: skip
    assert error.location is not None and error.location.line == 9
    assert "memref.load" in error.op_text
    text = VECTORS.replace("vector.create_mask %left", "vector.create_mask %columns")
    shape = np.zeros((5, 11), np.float32)
    fails("out-of-bounds", "touches [0, 11]", text, "f", shape, shape.copy(), shape[:, 0].copy())
    text = VIEWS.replace("arith.constant 8 : index", "arith.constant 60 : index")
    message = "a view of 12 bytes from byte 60 on does not fit 64 bytes"
    fails("out-of-bounds", message, text, "f", np.zeros(64, np.int8), np.zeros(3, np.int32))
    text = VIEWS.replace("[0, 1] [2, 2]", "[1, 1] [2, 2]").replace("offset: 1>>", "offset: 4>>")
    fails(
        "out-of-bounds", "takes 1 to 2 of axis 0", text, "f",
        np.zeros(64, np.int8), np.zeros(3, np.int32),
    )  # fmt: skip
    fails("out-of-bounds", "takes place 4 of 4", VECTORS, "parts", np.zeros(16, np.float32), 4)


def test_what_may_only_be_read():
    x = np.zeros(300, np.float32)
    x.flags.writeable = False
    fails("read-only", "'memref.store' writes to a buffer", IN_PLACE, "f", x)
