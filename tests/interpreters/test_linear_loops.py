"""Loops in the interpreter whose order counts, and those whose iterations run together."""

from __future__ import annotations

import numpy as np
from linear_programs import IN_PLACE, PREFIX, parse

from uopc.interpreters.lanes import LANE_LIMIT
from uopc.interpreters.linear import LinearProgram, run_linear

HISTOGRAM = """
func.func @f(%k: memref<1000xindex>, %h: memref<7xi64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %more = arith.constant 1 : i64
  %end = arith.constant 1000 : index
  scf.for %i = %zero to %end step %one {
    %n = memref.load %k[%i] : memref<1000xindex>
    %old = memref.load %h[%n] : memref<7xi64>
    %new = arith.addi %old, %more : i64
    memref.store %new, %h[%n] : memref<7xi64>
  }
  func.return
}
"""
LAST_WINS = """
func.func @f(%x: memref<8x50xf32>, %o: memref<57xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 8 : index
  %m = arith.constant 50 : index
  scf.for %i = %zero to %n step %one {
    scf.for %j = %zero to %m step %one {
      %v = memref.load %x[%i, %j] : memref<8x50xf32>
      %k = arith.addi %i, %j : index
      memref.store %v, %o[%k] : memref<57xf32>
    }
  }
  func.return
}
"""
SCRATCH = """
func.func @f(%x: memref<40xf32>, %o: memref<40xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %end = arith.constant 40 : index
  %shared = memref.alloca() : memref<4xf32>
  scf.for %i = %zero to %end step %four {
    %own = memref.alloca() : memref<4xf32>
    scf.for %j = %zero to %four step %one {
      %k = arith.addi %i, %j : index
      %a = memref.load %x[%k] : memref<40xf32>
      memref.store %a, %own[%j] : memref<4xf32>
      memref.store %a, %shared[%j] : memref<4xf32>
    }
    scf.for %j = %zero to %four step %one {
      %three = arith.constant 3 : index
      %r = arith.subi %three, %j : index
      %a = memref.load %own[%r] : memref<4xf32>
      %b = memref.load %shared[%r] : memref<4xf32>
      %s = arith.addf %a, %b : f32
      %k = arith.addi %i, %j : index
      memref.store %s, %o[%k] : memref<40xf32>
    }
  }
  func.return
}
"""


def test_a_chain_through_memory_runs_in_order():
    x = np.arange(100, dtype=np.int32)
    expected = np.cumsum(x, dtype=np.int32)
    run_linear(parse(PREFIX), "f", [x])
    assert (x == expected).all()


def test_iterations_that_meet_by_chance_run_in_order():
    k = np.random.default_rng(0).integers(0, 7, 1000)
    h = np.zeros(7, np.int64)
    run_linear(parse(HISTOGRAM), "f", [k, h])
    assert (h == np.bincount(k, minlength=7)).all()


def test_of_several_stores_to_an_element_the_last_wins():
    x = np.random.default_rng(0).random((8, 50)).astype(np.float32)
    o = np.zeros(57, np.float32)
    run_linear(parse(LAST_WINS), "f", [x, o])
    expected = np.zeros(57, np.float32)
    for i in range(8):
        expected[i : i + 50] = x[i]
    assert (o == expected).all()


def test_each_iteration_may_change_its_own_element():
    x = np.arange(300, dtype=np.float32)
    program = LinearProgram(parse(IN_PLACE))
    program.run("f", [x])
    assert (x == 2 * np.arange(300)).all()


def test_scratch_memory_inside_and_outside_of_a_loop():
    x, o = np.arange(40, dtype=np.float32), np.zeros(40, np.float32)
    run_linear(parse(SCRATCH), "f", [x, o])
    assert (o == 2 * x.reshape(10, 4)[:, ::-1].reshape(-1)).all()


def test_more_iterations_than_lanes():
    count = LANE_LIMIT + 1000
    text = IN_PLACE.replace("300", str(count))
    x = np.ones(count, np.float32)
    run_linear(parse(text), "f", [x])
    assert (x == 2).all()
