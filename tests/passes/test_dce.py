"""uopc-dce removes what is dead, all of it, in linear time, and nothing else."""

from __future__ import annotations

import time

from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from uopc.dialects.locations import parse_text
from uopc.dialects.registry import make_context
from uopc.dialects.sizes import tensor_type
from uopc.dialects.tensor_elementwise import AddOp
from uopc.passes.dce import erase_dead_ops
from uopc.passes.manager import garbage_collector_off


def cleaned(text: str) -> tuple[int, str]:
    module = parse_text(text, context=make_context(allow_unregistered=True))
    count = erase_dead_ops(module)
    module.verify()
    return count, str(module)


def test_a_dead_chain_of_five_thousand():
    tensor = tensor_type(f32, (4,))
    block = Block(arg_types=[tensor])
    value: SSAValue = block.args[0]
    for _ in range(5000):
        op = AddOp(value, value)
        block.add_op(op)
        value = op.result
    block.add_op(ReturnOp(block.args[0]))
    module = ModuleOp([FuncOp("f", ((tensor,), (tensor,)), Region(block))])
    with garbage_collector_off():
        start = time.process_time()
        assert erase_dead_ops(module) == 5000
        spent = time.process_time() - start
    assert spent < 1, f"{spent} s: 0.05 s is usual"
    assert block.first_op is block.last_op


def test_effects_symbols_and_terminators_stay():
    count, text = cleaned("""
    func.func private @unused(%x: f32) -> f32
    func.func @f(%x: f32, %m: memref<1xf32>, %i: index) -> f32 {
      memref.store %x, %m[%i] : memref<1xf32>
      %0 = func.call @unused(%x) : (f32) -> f32
      %1 = "test.unknown"(%x) : (f32) -> f32
      %2 = arith.negf %x : f32
      %3 = arith.negf %2 : f32
      func.return %x : f32
    }""")
    assert count == 2
    assert "negf" not in text
    assert "memref.store" in text and "func.call" in text and "test.unknown" in text
    assert "@unused" in text


def test_ops_with_regions_go_with_all_that_only_they_use():
    count, text = cleaned("""
    func.func @f(%c: i1, %x: f32) -> f32 {
      %0 = arith.negf %x : f32
      %1 = scf.if %c -> (f32) {
        %2 = arith.addf %0, %0 : f32
        %3 = arith.mulf %0, %0 : f32
        scf.yield %2 : f32
      } else {
        scf.yield %0 : f32
      }
      func.return %x : f32
    }""")
    assert "scf" not in text and "arith" not in text
    assert count == 3  # with the if its body goes


def test_dead_across_blocks_in_any_order():
    _, text = cleaned("""
    func.func @f(%x: f32) -> f32 {
      cf.br ^second
    ^third:
      %1 = arith.negf %0 : f32
      func.return %x : f32
    ^second:
      %0 = arith.negf %x : f32
      cf.br ^third
    }""")
    assert "negf" not in text
