// RUN: uopc-opt %s -p convert-stablehlo-to-utensor --split-input-file | filecheck %s

// The example of the pass.
// CHECK-LABEL: func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %0 = utensor.exp %x : tensor<4x8xf32>
// CHECK-NEXT:    %1 = utensor.reduce add %0 axes [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:    func.return %1 : tensor<4xf32>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<4x8xf32>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A function is written out where it is called; addition of truth values is or.
// CHECK-LABEL: func.func public @main
// CHECK-NEXT:    utensor.or %a, %a : tensor<2xi1>
// CHECK-NEXT:    func.return
// CHECK-NOT:   func.func
func.func public @main(%a: tensor<2xi1>) -> tensor<2xi1> {
  %0 = call @twice(%a) : (tensor<2xi1>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}
func.func private @twice(%a: tensor<2xi1>) -> tensor<2xi1> {
  %0 = stablehlo.add %a, %a : tensor<2xi1>
  return %0 : tensor<2xi1>
}

// -----

// A matrix product: movement ops, mul, reduce. Halves are multiplied and summed in f32.
// CHECK-LABEL: func.func @main
// CHECK:         utensor.cast %x : tensor<2x3xbf16> -> tensor<2x3xf32>
// CHECK:         utensor.mul %{{.*}}, %{{.*}} : tensor<2x4x3xf32>
// CHECK-NEXT:    utensor.reduce add %{{.*}} axes [2] : tensor<2x4x3xf32> -> tensor<2x4xf32>
// CHECK-NEXT:    utensor.cast %{{.*}} : tensor<2x4xf32> -> tensor<2x4xbf16>
func.func @main(%x: tensor<2x3xbf16>, %y: tensor<3x4xbf16>) -> tensor<2x4xbf16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xbf16>, tensor<3x4xbf16>) -> tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}

// -----

// Rows at positions: one gather, one scatter, along the axis.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    utensor.reshape %i : tensor<2x1xi32> -> tensor<2xi32>
// CHECK-NEXT:    utensor.gather %x, %{{.*}} axis 0 : tensor<5x3xf32>, tensor<2xi32> -> tensor<2x3xf32>
// CHECK:         utensor.scatter add %x, %{{.*}}, %{{.*}} axis 0
func.func @main(%x: tensor<5x3xf32>, %i: tensor<2x1xi32>) -> tensor<5x3xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  %1 = "stablehlo.scatter"(%x, %i, %0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<5x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<5x3xf32>
  return %1 : tensor<5x3xf32>
}

// -----

// A loop whose steps are counted is written out; its counter is known.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: utensor.add
// CHECK-NOT:     utensor.add
// CHECK:         func.return
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %three = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %one : tensor<i32>
      %2 = stablehlo.add %s, %x : tensor<4xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<4xf32>
    }
  return %0#1 : tensor<4xf32>
}
