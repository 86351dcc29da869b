// RUN: uopc-opt %s -p rangeify | filecheck %s

// Positions compared are a condition on indices, also where they were cast.
// CHECK-LABEL: ukernel.kernel @causal
// CHECK: uloop.valid (%i - %j)
// CHECK-NOT: arith.cmpi
ukernel.kernel @causal ins(%x : memref<8x8xf32>) outs(%o : memref<8x8xf32>) {
  %0 = ukernel.read %x : memref<8x8xf32> -> tensor<8x8xf32>
  %i = utensor.iota axis 0 : tensor<8x8xi64>
  %j = utensor.iota axis 1 : tensor<8x8xi64>
  %a = utensor.cast %i : tensor<8x8xi64> -> tensor<8x8xi32>
  %b = utensor.cast %j : tensor<8x8xi64> -> tensor<8x8xi32>
  %m = utensor.cmple %b, %a : tensor<8x8xi32>
  %z = utensor.constant 0.0 : tensor<8x8xf32>
  %r = utensor.where %m, %0, %z : tensor<8x8xf32>
  ukernel.write %r, %o : tensor<8x8xf32>, memref<8x8xf32>
}

// A position against a number.
// CHECK-LABEL: ukernel.kernel @first
// CHECK: uloop.valid (4 - %i)
ukernel.kernel @first ins() outs(%o : memref<8xi1>) {
  %i = utensor.iota axis 0 : tensor<8xui8>
  %n = utensor.constant 5 : tensor<8xui8>
  %m = utensor.cmplt %i, %n : tensor<8xui8>
  ukernel.write %m, %o : tensor<8xi1>, memref<8xi1>
}

// 300 positions wrap in eight bits: numbers are compared.
// CHECK-LABEL: ukernel.kernel @wraps
// CHECK: arith.cmpi
ukernel.kernel @wraps ins() outs(%o : memref<300xi1>) {
  %i = utensor.iota axis 0 : tensor<300xi8>
  %n = utensor.constant 5 : tensor<300xi8>
  %m = utensor.cmplt %i, %n : tensor<300xi8>
  ukernel.write %m, %o : tensor<300xi1>, memref<300xi1>
}
