"""The interpreter of functions of loops: what is called, and what never ends."""

from __future__ import annotations

import math

import numpy as np
from linear_programs import IN_PLACE, fails

from uopc.interpreters.linear_core import TimeLimit


def test_a_step_of_nothing():
    text = IN_PLACE.replace("%one = arith.constant 1", "%one = arith.constant 0")
    fails("bad-step", "a loop's step is not positive", text, "f", np.zeros(300, np.float32))


def test_what_is_called_must_be_there():
    fails("no-function", "there is no function @g with a body", IN_PLACE, "g")
    fails("bad-input", "@f takes 1 arguments, got 0", IN_PLACE, "f")
    fails("bad-input", "has dtype int64, expected float32", IN_PLACE, "f", np.zeros(300, np.int64))
    fails("bad-input", "has shape (3,)", IN_PLACE, "f", np.zeros(3, np.float32))
    unknown = 'func.func @f() {\n  "test.op"() : () -> ()\n  func.return\n}'
    fails("not-interpreted", "'test.op' has no meaning among loops and scalars", unknown, "f")
    endless = "func.func @f() {\n  func.call @f() : () -> ()\n  func.return\n}"
    fails("nesting-too-deep", "@f calls functions", endless, "f")
    huge = """
    func.func @f() {
      %a = memref.alloca() : memref<1000000x1000000x1000xf64>
      func.return
    }"""
    fails("out-of-memory", "memory ran out while @f", huge, "f")
    external = (
        "func.func private @g()\nfunc.func @f() {\n  func.call @g() : () -> ()\n  func.return\n}"
    )
    fails("not-interpreted", "@g is called and has no body", external, "f")


def test_loops_that_never_end_can_be_stopped():
    text = """
    func.func @f() {
      %true = arith.constant true
      scf.while () : () -> () {
        scf.condition(%true)
      } do {
        scf.yield
      }
      func.return
    }"""
    with TimeLimit.seconds(0.05):
        fails("took-too-long", "the time for interpreting a loop is over", text, "f")
    assert TimeLimit.until == math.inf
