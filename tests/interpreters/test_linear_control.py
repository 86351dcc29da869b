"""Branches, general and parallel loops in the interpreter."""

from __future__ import annotations

import numpy as np
from linear_programs import parse

from uopc.interpreters.linear import LinearProgram, run_linear

CONTROL = """
func.func private @collatz(%n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %last, %steps = scf.while (%v = %n, %c = %zero) : (i64, i64) -> (i64, i64) {
    %go = arith.cmpi sgt, %v, %one : i64
    scf.condition(%go) %v, %c : i64, i64
  } do {
  ^bb0(%v: i64, %c: i64):
    %r = arith.remsi %v, %two : i64
    %odd = arith.cmpi eq, %r, %one : i64
    %next = scf.if %odd -> (i64) {
      %t = arith.muli %v, %three : i64
      %u = arith.addi %t, %one : i64
      scf.yield %u : i64
    } else {
      %h = arith.divsi %v, %two : i64
      scf.yield %h : i64
    }
    %d = arith.addi %c, %one : i64
    scf.yield %next, %d : i64, i64
  }
  func.return %steps : i64
}
func.func @f(%o: memref<60xi64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 60 : index
  scf.for %i = %zero to %end step %one {
    %j = arith.addi %i, %one : index
    %n = arith.index_cast %j : index to i64
    %s = func.call @collatz(%n) : (i64) -> i64
    memref.store %s, %o[%i] : memref<60xi64>
  }
  func.return
}
func.func @triangle(%o: memref<9xi64>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 9 : index
  %start = arith.constant 0 : i64
  scf.for %i = %zero to %end step %one {
    %s = scf.for %j = %zero to %i step %one iter_args(%a = %start) -> (i64) {
      %k = arith.index_cast %j : index to i64
      %b = arith.addi %a, %k : i64
      scf.yield %b : i64
    }
    memref.store %s, %o[%i] : memref<9xi64>
  }
  func.return
}
func.func @cases(%o: memref<6xi32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 6 : index
  scf.for %i = %zero to %end step %one {
    %v = scf.index_switch %i -> i32
    case 1 {
      %a = arith.constant 10 : i32
      scf.yield %a : i32
    }
    case 4 {
      %b = arith.constant 40 : i32
      scf.yield %b : i32
    }
    default {
      %c = arith.constant -1 : i32
      scf.yield %c : i32
    }
    memref.store %v, %o[%i] : memref<6xi32>
  }
  func.return
}
func.func @grid(%x: memref<3x5xf32>, %o: memref<3x5xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 3 : index
  %m = arith.constant 5 : index
  %start = arith.constant 0.0 : f32
  %sum = "scf.parallel"(%zero, %zero, %n, %m, %one, %one, %start)
      <{operandSegmentSizes = array<i32: 2, 2, 2, 1>}> ({
  ^bb0(%i: index, %j: index):
    %v = memref.load %x[%i, %j] : memref<3x5xf32>
    memref.store %v, %o[%i, %j] : memref<3x5xf32>
    scf.reduce(%v : f32) {
    ^bb1(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      scf.reduce.return %s : f32
    }
  }) : (index, index, index, index, index, index, f32) -> f32
  func.return %sum : f32
}
"""


def collatz(n):
    steps = 0
    while n > 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


def test_lanes_leave_a_loop_one_by_one():
    o = np.zeros(60, np.int64)
    program = LinearProgram(parse(CONTROL))
    program.run("f", [o])
    assert o.tolist() == [collatz(n) for n in range(1, 61)]
    assert program.run("collatz", [27]) == [111]


def test_inner_loops_of_different_lengths():
    o = np.zeros(9, np.int64)
    run_linear(parse(CONTROL), "triangle", [o])
    assert o.tolist() == [sum(range(i)) for i in range(9)]


def test_lanes_take_different_cases():
    o = np.zeros(6, np.int32)
    run_linear(parse(CONTROL), "cases", [o])
    assert o.tolist() == [-1, 10, -1, -1, 40, -1]


def test_a_parallel_loop_reduces_in_row_major_order():
    x = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    o = np.zeros((3, 5), np.float32)
    (total,) = run_linear(parse(CONTROL), "grid", [x, o])
    expected = np.float32(0)
    for v in x.reshape(-1):
        expected += v
    assert total == expected and (o == x).all()
