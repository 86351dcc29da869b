"""Plans whose kernels hold utensor ops."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.parser import Parser

from uopc.dialects.errors import UopcError
from uopc.dialects.registry import make_context
from uopc.interpreters.kernel import run_plan


def parse(text: str):
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return module


ROWS = """
ukernel.kernel @total sizes(%n = n = 0 to 8)
    ins(%x : memref<?x8xf32> of [n + 1, 8]) outs(%o : memref<?xf32> of [n + 1]) {
  %0 = ukernel.read %x : memref<?x8xf32>
    -> tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 0 to 8>>
  %1 = utensor.reduce add %0 axes [1] : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 0 to 8>>
  ukernel.write %1, %o : tensor<?xf32, #utensor.sizes<[n + 1], n = 0 to 8>>, memref<?xf32>
}
ukernel.kernel @scaled sizes(%n = n = 0 to 8)
    ins(%x : memref<?xf32> of [n + 1], %f : memref<1xf32>) outs(%o : memref<?xf32> of [n + 1]) {
  %0 = ukernel.read %x : memref<?xf32> -> tensor<?xf32, #utensor.sizes<[n + 1], n = 0 to 8>>
  %1 = ukernel.read %f : memref<1xf32> -> tensor<1xf32>
  %2 = utensor.expand %1 : tensor<1xf32> -> tensor<?xf32, #utensor.sizes<[n + 1], n = 0 to 8>>
  %3 = utensor.mul %0, %2 : tensor<?xf32, #utensor.sizes<[n + 1], n = 0 to 8>>
  ukernel.write %3, %o : tensor<?xf32, #utensor.sizes<[n + 1], n = 0 to 8>>, memref<?xf32>
}
ukernel.plan @main sizes(%n = n = 0 to 8) ins(%x : memref<?x8xf32> of [n + 1, 8]) {
  %t = ukernel.temp : memref<?xf32> of [n + 1], n = 0 to 8
  %c = ukernel.constant dense<[3.0]> : tensor<1xf32>
  %o = ukernel.output : memref<?xf32> of [n + 1], n = 0 to 8
  ukernel.launch @total sizes(%n) ins(%x : memref<?x8xf32>) outs(%t : memref<?xf32>)
  ukernel.launch @scaled sizes(%n) ins(%t, %c : memref<?xf32>, memref<1xf32>)
    outs(%o : memref<?xf32>)
  %v = ukernel.view %x : memref<?x8xf32> -> memref<?xf32> of [8*n + 8], n = 0 to 8
  ukernel.return %o, %v : memref<?xf32>, memref<?xf32>
}
"""


@pytest.mark.parametrize("n", [0, 1, 8])
def test_a_plan(n):
    x = np.arange((n + 1) * 8, dtype=np.float32).reshape(-1, 8)
    total, view = run_plan(parse(ROWS), "main", [x])
    assert np.array_equal(total, x.sum(axis=1) * 3)
    assert np.array_equal(view, x.ravel())
    assert not np.shares_memory(view, x)


def test_a_kernel_may_read_and_write_one_buffer():
    module = parse("""
    ukernel.kernel @swap ins(%a : memref<4xi32>, %b : memref<4xi32>)
        outs(%c : memref<4xi32>, %d : memref<4xi32>) {
      %0 = ukernel.read %a : memref<4xi32> -> tensor<4xi32>
      %1 = ukernel.read %b : memref<4xi32> -> tensor<4xi32>
      ukernel.write %1, %c : tensor<4xi32>, memref<4xi32>
      ukernel.write %0, %d : tensor<4xi32>, memref<4xi32>
    }
    ukernel.kernel @copy ins(%a : memref<4xi32>) outs(%c : memref<4xi32>) {
      %0 = ukernel.read %a : memref<4xi32> -> tensor<4xi32>
      ukernel.write %0, %c : tensor<4xi32>, memref<4xi32>
    }
    ukernel.plan @main ins(%x : memref<4xi32>, %y : memref<4xi32>) {
      %s = ukernel.temp : memref<4xi32>
      %t = ukernel.temp : memref<4xi32>
      ukernel.launch @copy ins(%x : memref<4xi32>) outs(%s : memref<4xi32>)
      ukernel.launch @copy ins(%y : memref<4xi32>) outs(%t : memref<4xi32>)
      ukernel.launch @swap ins(%s, %t : memref<4xi32>, memref<4xi32>)
        outs(%s, %t : memref<4xi32>, memref<4xi32>)
      ukernel.return %s, %t : memref<4xi32>, memref<4xi32>
    }""")
    x, y = np.arange(4, dtype=np.int32), np.arange(4, 8, dtype=np.int32)
    first, second = run_plan(module, "main", [x, y])
    assert np.array_equal(first, y) and np.array_equal(second, x)


def test_what_was_never_written_is_seen():
    module = parse("""
    ukernel.plan @main ins() {
      %s = ukernel.temp : memref<2xf32>
      %b = ukernel.temp : memref<2xi1>
      ukernel.return %s, %b : memref<2xf32>, memref<2xi1>
    }""")
    floats, truths = run_plan(module, "main", [])
    assert floats.view(np.uint32).tolist() == [0xA5A5A5A5] * 2
    assert truths.dtype == np.bool_


def test_unsigned_buffers_of_a_signless_kernel():
    module = parse("""
    ukernel.kernel @copy ins(%a : memref<2xi8>) outs(%c : memref<2xi8>) {
      %0 = ukernel.read %a : memref<2xi8> -> tensor<2xi8>
      ukernel.write %0, %c : tensor<2xi8>, memref<2xi8>
    }
    ukernel.plan @main ins(%x : memref<2xui8>) {
      %o = ukernel.output : memref<2xui8>
      ukernel.launch @copy ins(%x : memref<2xui8>) outs(%o : memref<2xui8>)
      ukernel.return %o : memref<2xui8>
    }""")
    (got,) = run_plan(module, "main", [np.array([200, 3], np.uint8)])
    assert got.dtype == np.uint8 and got.tolist() == [200, 3]


def fails(kind, message, *arguments):
    with pytest.raises(UopcError) as caught:
        run_plan(*arguments)
    assert (caught.value.kind, caught.value.message) == (kind, message)
    return caught.value


def test_mistakes():
    module = parse(ROWS)
    error = fails("no-function", "there is no plan @f", module, "f", [])
    assert error.hint == "there are @main"
    fails("bad-input", "@main takes 1 inputs, got 0", module, "main", [])
    fails(
        "symbol-out-of-bounds",
        "size 'n' is 9, expected 0 to 8",
        module,
        "main",
        [np.zeros((10, 8), np.float32)],
    )
    foreign = parse("""
    ukernel.plan @main ins() {
      %c = arith.constant 1 : index
      ukernel.return
    }""")
    fails("not-interpreted", "'arith.constant' has no meaning in a plan", foreign, "main", [])
    lowered = parse("""
    ukernel.kernel @k ins() outs(%o : memref<1xf32>) {
      %i = uloop.range 1
      %0 = ukernel.read %o : memref<1xf32> -> tensor<1xf32>
      ukernel.write %0, %o : tensor<1xf32>, memref<1xf32>
    }
    ukernel.plan @main ins() {
      %o = ukernel.output : memref<1xf32>
      ukernel.launch @k ins() outs(%o : memref<1xf32>)
      ukernel.return %o : memref<1xf32>
    }""")
    message = "'uloop.range' has no meaning in a kernel at the level of utensor"
    fails("not-interpreted", message, lowered, "main", [])
