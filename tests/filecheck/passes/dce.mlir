// RUN: uopc-opt %s --pass-pipeline uopc-dce | filecheck %s

// The example at the top of the pass.
// CHECK-LABEL: func.func @example
// CHECK-NEXT:    %0 = utensor.abs %x : tensor<4xf32>
// CHECK-NEXT:    func.return %0 : tensor<4xf32>
func.func @example(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = utensor.exp %x : tensor<4xf32>
  %1 = utensor.neg %0 : tensor<4xf32>
  %2 = utensor.abs %x : tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// Effects stay, and what they need.
// CHECK-LABEL: func.func @effects
// CHECK-NEXT:    %[[N:.*]] = arith.negf %x : f32
// CHECK-NEXT:    memref.store %[[N]], %m[%i] : memref<4xf32>
// CHECK-NEXT:    func.call @extern(%x) : (f32) -> f32
// CHECK-NEXT:    func.return
func.func private @extern(%x: f32) -> f32
func.func @effects(%x: f32, %c: i1, %m: memref<4xf32>, %i: index) {
  %0 = arith.negf %x : f32
  memref.store %0, %m[%i] : memref<4xf32>
  %1 = func.call @extern(%x) : (f32) -> f32
  %2 = scf.if %c -> (f32) {
    %3 = arith.negf %x : f32
    scf.yield %3 : f32
  } else {
    scf.yield %x : f32
  }
  func.return
}
