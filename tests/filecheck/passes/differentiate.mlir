// RUN: uopc-opt %s --split-input-file -p differentiate | filecheck %s
// RUN: uopc-opt %s --split-input-file -p 'differentiate{wrt=y values=false into=slope}' | filecheck %s --check-prefix WRT

// The example at the top of the pass.
// CHECK-LABEL: func.func @f(
// CHECK:       func.func @f_gradient(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:    %0 = utensor.mul %x, %y : tensor<4xf32>
// CHECK-NEXT:    %1 = utensor.reduce add %0 axes [0] : tensor<4xf32> -> tensor<f32>
// CHECK-NEXT:    %2 = utensor.constant 1.0 : tensor<4xf32>
// CHECK-NEXT:    %3 = utensor.mul %2, %y : tensor<4xf32>
// CHECK-NEXT:    %4 = utensor.mul %2, %x : tensor<4xf32>
// CHECK-NEXT:    func.return %1, %3, %4 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
// WRT:         func.func @slope(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
// WRT-NEXT:      %0 = utensor.constant 1.0 : tensor<4xf32>
// WRT-NEXT:      %1 = utensor.mul %0, %x : tensor<4xf32>
// WRT-NEXT:      func.return %1 : tensor<4xf32>
func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<f32> {
  %0 = utensor.mul %x, %y : tensor<4xf32>
  %1 = utensor.reduce add %0 axes [0] : tensor<4xf32> -> tensor<f32>
  func.return %1 : tensor<f32>
}

// -----

// A result of several elements takes weights; what is equal to the forward program is not computed
// again; a detached path and whole numbers have no gradient.
// CHECK-LABEL: func.func @g_gradient(%y: tensor<4xf32>, %k: tensor<4xi32>, %weights: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:    %0 = utensor.exp %y : tensor<4xf32>
// CHECK-NEXT:    %1 = utensor.stage detach %0 : tensor<4xf32>
// CHECK-NEXT:    %2 = utensor.cast %k : tensor<4xi32> -> tensor<4xf32>
// CHECK-NEXT:    %3 = utensor.mul %0, %1 : tensor<4xf32>
// CHECK-NEXT:    %4 = utensor.add %3, %2 : tensor<4xf32>
// CHECK-NEXT:    %5 = utensor.mul %weights, %1 : tensor<4xf32>
// CHECK-NEXT:    %6 = utensor.mul %5, %0 : tensor<4xf32>
// CHECK-NEXT:    func.return %4, %6 : tensor<4xf32>, tensor<4xf32>
func.func @g(%y: tensor<4xf32>, %k: tensor<4xi32>) -> tensor<4xf32> {
  %0 = utensor.exp %y : tensor<4xf32>
  %1 = utensor.stage detach %0 : tensor<4xf32>
  %2 = utensor.cast %k : tensor<4xi32> -> tensor<4xf32>
  %3 = utensor.mul %0, %1 : tensor<4xf32>
  %4 = utensor.add %3, %2 : tensor<4xf32>
  func.return %4 : tensor<4xf32>
}
