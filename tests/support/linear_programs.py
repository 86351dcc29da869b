"""Programs of upstream ops as text, for the interpreter of loops and its errors."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import parse_text
from uopc.dialects.upstream_fixes import install
from uopc.dialects.verification import verify_module
from uopc.interpreters.linear import run_linear


def parse(text: str) -> ModuleOp:
    install()
    module = parse_text(text)
    verify_module(module)
    return module


def fails(kind, words, text, name, *arguments):
    with pytest.raises(UopcError) as caught:
        run_linear(parse(text), name, list(arguments))
    assert caught.value.kind == kind
    assert words in caught.value.message
    return caught.value


PREFIX = """
func.func @f(%x: memref<100xi32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 100 : index
  scf.for %i = %one to %end step %one {
    %p = arith.subi %i, %one : index
    %a = memref.load %x[%p] : memref<100xi32>
    %b = memref.load %x[%i] : memref<100xi32>
    %s = arith.addi %a, %b : i32
    memref.store %s, %x[%i] : memref<100xi32>
  }
  func.return
}
"""

IN_PLACE = """
func.func @f(%x: memref<300xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 300 : index
  scf.for %i = %zero to %end step %one {
    %a = memref.load %x[%i] : memref<300xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %x[%i] : memref<300xf32>
  }
  func.return
}
"""

VECTORS = """
func.func @f(%x: memref<5x11xf32>, %o: memref<5x11xf32>, %s: memref<5xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %rows = arith.constant 5 : index
  %columns = arith.constant 11 : index
  %nothing = arith.constant dense<0.0> : vector<4xf32>
  %none = arith.constant 0.0 : f32
  scf.for %i = %zero to %rows step %one {
    %total = scf.for %j = %zero to %columns step %four iter_args(%a = %none) -> (f32) {
      %left = arith.subi %columns, %j : index
      %mask = vector.create_mask %left : vector<4xi1>
      %v = vector.maskedload %x[%i, %j], %mask, %nothing
        : memref<5x11xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      %w = arith.addf %v, %v : vector<4xf32>
      vector.maskedstore %o[%i, %j], %mask, %w
        : memref<5x11xf32>, vector<4xi1>, vector<4xf32>
      %b = vector.reduction <add>, %v, %a : vector<4xf32> into f32
      scf.yield %b : f32
    }
    memref.store %total, %s[%i] : memref<5xf32>
  }
  func.return
}
func.func @parts(%x: memref<16xf32>, %k: index) -> (vector<4xf32>, f32, vector<2x4xf32>) {
  %zero = arith.constant 0 : index
  %a = vector.load %x[%zero] : memref<16xf32>, vector<4xf32>
  %four = arith.constant 4 : index
  %b = vector.load %x[%four] : memref<16xf32>, vector<4xf32>
  %c = vector.shuffle %a, %b [0, 5, -1, 7] : vector<4xf32>, vector<4xf32>
  %d = vector.extract %b[%k] : f32 from vector<4xf32>
  %e = vector.insert %d, %c [2] : f32 into vector<4xf32>
  %wide = vector.broadcast %e : vector<4xf32> to vector<2x4xf32>
  %f = vector.insert %a, %wide [1] : vector<4xf32> into vector<2x4xf32>
  func.return %e, %d, %f : vector<4xf32>, f32, vector<2x4xf32>
}
"""
