// RUN: uopc-opt %s --pass-pipeline stage_broadcast_compute | filecheck %s
// RUN: uopc-opt %s --pass-pipeline stage-broadcast-compute{factor=16} | filecheck %s --check-prefix=FACTOR
// RUN: uopc-opt %s --pass-pipeline stage-broadcast-compute{min-work=100000} | filecheck %s --check-prefix=WORK

// The example at the top of the pass.
// CHECK-LABEL: func.func @example
// CHECK-NEXT:    %0 = utensor.exp %x : tensor<64x64xf32>
// CHECK-NEXT:    %1 = utensor.stage contiguous %0 : tensor<64x64xf32>
// CHECK-NEXT:    %2 = utensor.reshape %1 : tensor<64x64xf32> -> tensor<64x1x64xf32>
// CHECK-NEXT:    %3 = utensor.expand %2 : tensor<64x1x64xf32> -> tensor<64x8x64xf32>
// CHECK-NEXT:    func.return %3
// FACTOR-LABEL: func.func @example
// FACTOR-NOT:    utensor.stage
// FACTOR:        func.return
// WORK-LABEL:  func.func @example
// WORK-NOT:      utensor.stage
// WORK:          func.return
func.func @example(%x: tensor<64x64xf32>) -> tensor<64x8x64xf32> {
  %0 = utensor.exp %x : tensor<64x64xf32>
  %1 = utensor.reshape %0 : tensor<64x64xf32> -> tensor<64x1x64xf32>
  %2 = utensor.expand %1 : tensor<64x1x64xf32> -> tensor<64x8x64xf32>
  func.return %2 : tensor<64x8x64xf32>
}

// relu(a @ b) @ c: the reduction is a buffer anyway, the relu on it becomes one.
// CHECK-LABEL: func.func @relu_between_products
// CHECK:         utensor.reduce add
// CHECK:         %[[W:.*]] = utensor.where
// CHECK-NEXT:    %[[S:.*]] = utensor.stage contiguous %[[W]] : tensor<64x64xf32>
// CHECK-NEXT:    utensor.reshape %[[S]]
// CHECK-NOT:     utensor.stage
// CHECK:         func.return
// FACTOR-LABEL: func.func @relu_between_products
// FACTOR:        utensor.stage contiguous
// WORK-LABEL:  func.func @relu_between_products
// WORK-NOT:      utensor.stage
// WORK:          func.return
func.func @relu_between_products(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>)
    -> tensor<64x64xf32> {
  %0 = utensor.reshape %a : tensor<64x64xf32> -> tensor<64x1x64xf32>
  %1 = utensor.expand %0 : tensor<64x1x64xf32> -> tensor<64x64x64xf32>
  %2 = utensor.permute %b [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = utensor.reshape %2 : tensor<64x64xf32> -> tensor<1x64x64xf32>
  %4 = utensor.expand %3 : tensor<1x64x64xf32> -> tensor<64x64x64xf32>
  %5 = utensor.mul %1, %4 : tensor<64x64x64xf32>
  %6 = utensor.reduce add %5 axes [2] : tensor<64x64x64xf32> -> tensor<64x64xf32>
  %zero = utensor.constant 0.0 : tensor<64x64xf32>
  %7 = utensor.cmplt %zero, %6 : tensor<64x64xf32>
  %8 = utensor.where %7, %6, %zero : tensor<64x64xf32>
  %9 = utensor.reshape %8 : tensor<64x64xf32> -> tensor<64x1x64xf32>
  %10 = utensor.expand %9 : tensor<64x1x64xf32> -> tensor<64x64x64xf32>
  %11 = utensor.permute %c [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %12 = utensor.reshape %11 : tensor<64x64xf32> -> tensor<1x64x64xf32>
  %13 = utensor.expand %12 : tensor<1x64x64xf32> -> tensor<64x64x64xf32>
  %14 = utensor.mul %10, %13 : tensor<64x64x64xf32>
  %15 = utensor.reduce add %14 axes [2] : tensor<64x64x64xf32> -> tensor<64x64xf32>
  func.return %15 : tensor<64x64xf32>
}

// A bare cast is cheaper than a buffer, and so is a scalar.
// CHECK-LABEL: func.func @cheap
// CHECK-NOT:     utensor.stage
// CHECK:         func.return
func.func @cheap(%x: tensor<64x1x64xf16>, %y: tensor<f32>)
    -> (tensor<64x8x64xf32>, tensor<128x128xf32>) {
  %0 = utensor.cast %x : tensor<64x1x64xf16> -> tensor<64x1x64xf32>
  %1 = utensor.expand %0 : tensor<64x1x64xf32> -> tensor<64x8x64xf32>
  %2 = utensor.exp %y : tensor<f32>
  %3 = utensor.reshape %2 : tensor<f32> -> tensor<1x1xf32>
  %4 = utensor.expand %3 : tensor<1x1xf32> -> tensor<128x128xf32>
  func.return %1, %4 : tensor<64x8x64xf32>, tensor<128x128xf32>
}
