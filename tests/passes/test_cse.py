"""uopc-cse merges what is the same, and only that."""

from __future__ import annotations

import time

from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from uopc.dialects.locations import parse_text
from uopc.dialects.registry import make_context
from uopc.dialects.sizes import tensor_type
from uopc.dialects.tensor_elementwise import AddOp
from uopc.passes.cse import merge_equal_ops
from uopc.passes.manager import garbage_collector_off


def merged(text: str) -> str:
    module = parse_text(text, context=make_context(allow_unregistered=True))
    merge_equal_ops(module)
    module.verify()
    return str(module)


def test_wide_and_many_duplicates_are_linear():
    tensor = tensor_type(f32, (4,))
    block = Block(arg_types=[tensor, tensor])
    ops = [AddOp(*block.args) for _ in range(5000)]
    block.add_ops(ops)
    block.add_op(ReturnOp(*ops))
    function = FuncOp("f", ((tensor, tensor), (tensor,) * 5000), Region(block))
    module = ModuleOp([function])
    with garbage_collector_off():
        start = time.process_time()
        assert merge_equal_ops(module) == 4999
        spent = time.process_time() - start
    assert spent < 1, f"{spent} s: 0.05 s is usual"
    assert len(set(block.last_op.operands)) == 1


def test_what_differs_stays():
    text = merged("""
    func.func @f(%x: tensor<4x4xf32>, %m: memref<4xf32>, %i: index) {
      %0 = utensor.permute %x [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
      %1 = utensor.permute %x [0, 1] : tensor<4x4xf32> -> tensor<4x4xf32>
      %2 = utensor.cast %x : tensor<4x4xf32> -> tensor<4x4xi32>
      %3 = utensor.cast %x : tensor<4x4xf32> -> tensor<4x4xi8>
      %4 = utensor.exp %x {note = "a"} : tensor<4x4xf32>
      %5 = utensor.exp %x : tensor<4x4xf32>
      %6 = utensor.sub %4, %5 : tensor<4x4xf32>
      %7 = utensor.sub %5, %4 : tensor<4x4xf32>
      %8 = arith.constant 0.0 : f32
      %9 = arith.constant -0.0 : f32
      %10 = memref.alloc() : memref<4xf32>
      %11 = memref.alloc() : memref<4xf32>
      %12 = memref.load %m[%i] : memref<4xf32>
      memref.store %12, %m[%i] : memref<4xf32>
      %13 = memref.load %m[%i] : memref<4xf32>
      %14 = "test.unknown"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %15 = "test.unknown"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      func.return
    }""")
    assert text.count(" = ") == 16 + text.count("note = ")


def test_ranges_are_distinct_and_what_they_index_is_not():
    text = merged("""
    ukernel.kernel @k ins(%a : memref<8xf32>) outs(%o : memref<8xf32>) {
      %i = uloop.range 8
      %j = uloop.range 8
      %0 = uloop.load %a[%i] : memref<8xf32>
      %1 = uloop.load %a[%i] : memref<8xf32>
      %2 = uloop.load %a[%j] : memref<8xf32>
      %3 = arith.addf %0, %1 : f32
      %4 = arith.addf %3, %2 : f32
      uloop.store %4, %o[%i] : memref<8xf32>
    }""")
    assert text.count("uloop.range") == 2
    assert text.count("uloop.load") == 2


def test_nested_regions_see_outer_values_and_functions_do_not():
    text = merged("""
    func.func @f(%c: i1, %x: f32) -> f32 {
      %0 = arith.addf %x, %x : f32
      %1 = scf.if %c -> (f32) {
        %2 = arith.addf %x, %x : f32
        %3 = arith.mulf %2, %2 : f32
        scf.yield %3 : f32
      } else {
        %4 = arith.mulf %0, %0 : f32
        scf.yield %4 : f32
      }
      %5 = arith.mulf %0, %0 : f32
      %6 = arith.addf %1, %5 : f32
      func.return %6 : f32
    }
    func.func @g(%x: f32) -> f32 {
      %0 = arith.addf %x, %x : f32
      func.return %0 : f32
    }""")
    assert text.count("arith.mulf") == 3
    assert text.count("arith.addf") == 3


def test_large_constants_merge_by_identity_only_and_small_ones_by_value():
    text = merged("""
    func.func @f() -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = utensor.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %1 = utensor.constant dense<[1.0, 2.0]> : tensor<2xf32>
      func.return %0, %1 : tensor<2xf32>, tensor<2xf32>
    }""")
    assert text.count("utensor.constant") == 1


def test_names_move_to_values_without_one():
    text = merged("""
    func.func @f(%x: f32) -> f32 {
      %0 = arith.negf %x : f32
      %named = arith.negf %x : f32
      func.return %named : f32
    }""")
    assert "%named = arith.negf" in text
