// RUN: uopc-opt %s --pass-pipeline uopc-cse | filecheck %s

// The example at the top of the pass.
// CHECK-LABEL: func.func @example
// CHECK-NEXT:    %0 = utensor.mul %x, %y : tensor<4xf32>
// CHECK-NEXT:    %1 = utensor.add %0, %0 : tensor<4xf32>
// CHECK-NEXT:    func.return %1 : tensor<4xf32>
func.func @example(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = utensor.mul %x, %y : tensor<4xf32>
  %1 = utensor.mul %y, %x : tensor<4xf32>
  %2 = utensor.add %0, %1 : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// The same ops in another function are another matter; dead ones stay.
// CHECK-LABEL: func.func @other
// CHECK-NEXT:    utensor.mul %x, %y : tensor<4xf32>
// CHECK-NEXT:    func.return %x
func.func @other(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = utensor.mul %x, %y : tensor<4xf32>
  func.return %x : tensor<4xf32>
}

// A region sees what stands before it, in upstream dialects too.
// CHECK-LABEL: func.func @nested
// CHECK:         %[[A:.*]] = arith.addf %x, %x : f32
// CHECK-NEXT:    scf.if %c
// CHECK-NEXT:      scf.yield %[[A]] : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      arith.mulf %[[A]], %[[A]] : f32
func.func @nested(%c: i1, %x: f32) -> (f32, f32) {
  %0 = arith.addf %x, %x : f32
  %1 = scf.if %c -> (f32) {
    %2 = arith.addf %x, %x : f32
    scf.yield %2 : f32
  } else {
    %3 = arith.addf %x, %x : f32
    %4 = arith.mulf %3, %0 : f32
    scf.yield %4 : f32
  }
  func.return %0, %1 : f32, f32
}

// Two ranges are two, however alike; two loads at one place are one.
// CHECK-LABEL: ukernel.kernel @ranges
// CHECK-COUNT-2: uloop.range 8
// CHECK-COUNT-2: uloop.load
// CHECK-NOT:     uloop.load
ukernel.kernel @ranges ins(%a : memref<8xf32>) outs(%o : memref<8xf32>) {
  %i = uloop.range 8
  %j = uloop.range 8
  %0 = uloop.load %a[%i] : memref<8xf32>
  %1 = uloop.load %a[%i] : memref<8xf32>
  %2 = uloop.load %a[%j] : memref<8xf32>
  %3 = arith.addf %0, %1 : f32
  %4 = arith.addf %3, %2 : f32
  uloop.store %4, %o[%i] : memref<8xf32>
}
