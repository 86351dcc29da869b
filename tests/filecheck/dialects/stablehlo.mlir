// RUN: uopc-opt %s | filecheck %s
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s

// What JAX writes is read, in its own form and in generic form, and printed alike.

// CHECK-LABEL: func.func public @elementwise
func.func public @elementwise(%x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<i1>, %s: tensor<f32>) -> tensor<4xi1> {
  // CHECK-NEXT: stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
  %c = stablehlo.constant dense<1.0> : tensor<4xf32>
  // CHECK-NEXT: stablehlo.add %x, %y : tensor<4xf32>
  %0 = stablehlo.add %x, %y : tensor<4xf32>
  // CHECK-NEXT: stablehlo.exponential %{{.*}} : tensor<4xf32>
  %1 = stablehlo.exponential %0 : tensor<4xf32>
  // CHECK-NEXT: stablehlo.select %p, %{{.*}}, %{{.*}} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.select %p, %1, %c : tensor<i1>, tensor<4xf32>
  // CHECK-NEXT: stablehlo.clamp %s, %{{.*}}, %s : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.clamp %s, %2, %s : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK-NEXT: stablehlo.convert %{{.*}} : (tensor<4xf32>) -> tensor<4xf16>
  %4 = stablehlo.convert %3 : (tensor<4xf32>) -> tensor<4xf16>
  // CHECK-NEXT: stablehlo.reduce_precision %{{.*}}, format = e5m2 : tensor<4xf16>
  %5 = stablehlo.reduce_precision %4, format = e5m2 : tensor<4xf16>
  // CHECK-NEXT: chlo.erf_inv %{{.*}} : tensor<4xf16>
  %6 = chlo.erf_inv %5 : tensor<4xf16> -> tensor<4xf16>
  // CHECK-NEXT: stablehlo.compare LT, %{{.*}}, %{{.*}}, FLOAT : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  %7 = stablehlo.compare LT, %6, %5, FLOAT : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xi1>
  return %7 : tensor<4xi1>
}

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<4x8xf32>, %v: tensor<f32>, %i: tensor<i32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: stablehlo.iota dim = 1 : tensor<4x8xi32>
  %0 = stablehlo.iota dim = 1 : tensor<4x8xi32>
  // CHECK-NEXT: stablehlo.broadcast_in_dim %v, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  %1 = stablehlo.broadcast_in_dim %v, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  // CHECK-NEXT: stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: stablehlo.slice %x [0:4, 0:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  %3 = stablehlo.slice %x [0:4, 0:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: stablehlo.pad %x, %v, low = [1, -1], high = [0, 2], interior = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<5x16xf32>
  %4 = stablehlo.pad %x, %v, low = [1, -1], high = [0, 2], interior = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<5x16xf32>
  // CHECK-NEXT: stablehlo.concatenate %x, %x, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %5 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT: stablehlo.reverse %x, dims = [0, 1] : tensor<4x8xf32>
  %6 = stablehlo.reverse %x, dims = [0, 1] : tensor<4x8xf32>
  // CHECK-NEXT: stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 3] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %7 = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 3] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  return %7 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @products
func.func @products(%x: tensor<2x4x3xf32>, %y: tensor<2x3x5xf32>, %k: tensor<2x3x7xf32>) -> tensor<2x4x5xf32> {
  // CHECK-NEXT: stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, HIGHEST] : (tensor<2x4x3xf32>, tensor<2x3x5xf32>) -> tensor<2x4x5xf32>
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, HIGHEST] : (tensor<2x4x3xf32>, tensor<2x3x5xf32>) -> tensor<2x4x5xf32>
  // CHECK-NEXT: stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = {{\[\[}}1, 0]], rhs_dilate = [1], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x3xf32>, tensor<2x3x7xf32>) -> tensor<2x2x7xf32>
  %1 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 0]], rhs_dilate = [1], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x3xf32>, tensor<2x3x7xf32>) -> tensor<2x2x7xf32>
  return %0 : tensor<2x4x5xf32>
}

// CHECK-LABEL: func.func @regions
func.func @regions(%x: tensor<4x8xf32>, %i: tensor<4x8xi32>, %v: tensor<f32>, %j: tensor<i32>) -> tensor<4xf32> {
  // CHECK-NEXT: stablehlo.reduce(%x init: %v) across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32> reducer(%{{.*}}: tensor<f32>, %{{.*}}: tensor<f32>) {
  // CHECK-NEXT:   stablehlo.add
  // CHECK-NEXT:   stablehlo.return
  %0 = stablehlo.reduce(%x init: %v) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: stablehlo.reduce(%x init: %v), (%i init: %j) across dimensions = [1] : {{.*}} reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {
  // CHECK-NEXT:   stablehlo.return %b, %c : tensor<f32>, tensor<i32>
  %1:2 = stablehlo.reduce(%x init: %v), (%i init: %j) across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<i32>, %d: tensor<i32>) {
    stablehlo.return %b, %c : tensor<f32>, tensor<i32>
  }
  // CHECK: stablehlo.while(%n = %j, %s = %{{.*}}) : tensor<i32>, tensor<4xf32> cond {
  // CHECK-NEXT:   stablehlo.compare LT, %n, %j, SIGNED
  // CHECK:      } do {
  // CHECK-NEXT:   stablehlo.return %n, %s
  %2:2 = stablehlo.while(%n = %j, %s = %0) : tensor<i32>, tensor<4xf32>
    cond {
      %3 = stablehlo.compare LT, %n, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      stablehlo.return %n, %s : tensor<i32>, tensor<4xf32>
    }
  return %2#1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<6xi32>, %s: tensor<2xui64>, %i: tensor<2x1xi64>, %u: tensor<2xi32>) -> tensor<3xi32> {
  // CHECK-NEXT: chlo.top_k(%x, k = 3) : (tensor<6xi32>) -> (tensor<3xi32>, tensor<3xi32>)
  %values, %indices = chlo.top_k(%x, k = 3) : tensor<6xi32> -> (tensor<3xi32>, tensor<3xi32>)
  // CHECK-NEXT: stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %state, %bits = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  // CHECK-NEXT: stablehlo.custom_call @Sharding(%x) {backend_config = ""} : (tensor<6xi32>) -> tensor<6xi32>
  %0 = stablehlo.custom_call @Sharding(%x) {backend_config = ""} : (tensor<6xi32>) -> tensor<6xi32>
  // CHECK-NEXT: "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
  %1 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<6xi32>, tensor<2x1xi64>, tensor<2xi32>) -> tensor<6xi32>
  return %values : tensor<3xi32>
}
