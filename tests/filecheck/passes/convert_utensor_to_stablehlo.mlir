// RUN: uopc-opt %s -p convert-utensor-to-stablehlo --split-input-file | filecheck %s

// The example of the pass.
// CHECK-LABEL: func.func @f(%x: tensor<4x8xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %0 = stablehlo.exponential %x : tensor<4x8xf32>
// CHECK-NEXT:    %[[INF:.*]] = stablehlo.constant dense<0xff800000> : tensor<f32>
// CHECK-NEXT:    %{{.*}} = stablehlo.reduce(%0 init: %[[INF]]) across dimensions = [1]
// CHECK-NEXT:      stablehlo.maximum
func.func @f(%x : tensor<4x8xf32>) -> tensor<4xf32> {
  %0 = utensor.exp %x : tensor<4x8xf32>
  %1 = utensor.reduce max %0 axes [1] : tensor<4x8xf32> -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----
// Halves are summed in f32. A sum of i1 is their parity.
// CHECK-LABEL: func.func @sums
// CHECK-NEXT:    stablehlo.convert %x : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK:         stablehlo.convert %{{.*}} : (tensor<f32>) -> tensor<bf16>
// CHECK:         stablehlo.xor
func.func @sums(%x : tensor<8xbf16>, %b : tensor<8xi1>) -> (tensor<bf16>, tensor<i1>) {
  %0 = utensor.reduce add %x axes [0] : tensor<8xbf16> -> tensor<bf16>
  %1 = utensor.reduce add %b axes [0] : tensor<8xi1> -> tensor<i1>
  func.return %0, %1 : tensor<bf16>, tensor<i1>
}

// -----
// Loops are StableHLO's.
// CHECK-LABEL: func.func @loop
// CHECK:         stablehlo.while
// CHECK:           stablehlo.compare LT
// CHECK:           stablehlo.add
func.func @loop(%n : tensor<i32>) -> tensor<i32> {
  %zero = utensor.constant 0 : tensor<i32>
  %r = scf.while (%i = %zero) : (tensor<i32>) -> tensor<i32> {
    %c = utensor.cmplt %i, %n : tensor<i32>
    %flag = tensor.extract %c[] : tensor<i1>
    scf.condition(%flag) %i : tensor<i32>
  } do {
  ^bb0(%i : tensor<i32>):
    %one = utensor.constant 1 : tensor<i32>
    %j = utensor.add %i, %one : tensor<i32>
    scf.yield %j : tensor<i32>
  }
  func.return %r : tensor<i32>
}
