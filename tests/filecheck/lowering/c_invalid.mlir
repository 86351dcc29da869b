// RUN: not uopc-opt %s -t c 2>&1 | filecheck %s

// An error names op, place and what to do; nothing of the file is written.

func.func @first(%x: memref<2xf32>) {
  func.return
}

func.func @second(%x: memref<?x?xf32>) -> f32 {
  %c1 = arith.constant 1 : index
  %v = memref.load %x[%c1, %c1] : memref<?x?xf32>
  func.return %v : f32
}

// CHECK-NOT: void first
// CHECK: c_invalid.mlir:11:8: error: 'memref.load': the strides of 'x' are not known to the C function [unsupported-in-c]
// CHECK: hint: make the inner dimensions static
