// RUN: uopc-opt %s -p convert-linalg-to-utensor | filecheck %s
// RUN: uopc-opt %s | uopc-opt -p convert-linalg-to-utensor | filecheck %s

// The example of the pass.
// CHECK-LABEL: func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>) -> tensor<4x2xf32> {
// CHECK:         utensor.mul %{{.*}}, %{{.*}} : tensor<4x2x8xf32>
// CHECK-NEXT:    %y = utensor.reduce add %{{.*}} axes [2] : tensor<4x2x8xf32> -> tensor<4x2xf32>
// CHECK-NEXT:    func.return %y : tensor<4x2xf32>
func.func @f(%x : tensor<4x8xf32>, %w : tensor<8x2xf32>) -> tensor<4x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %o = linalg.fill ins(%zero : f32) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x2xf32>) outs(%o : tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %y : tensor<4x2xf32>
}

// An op that xDSL does not have, with a window of two loops.
// CHECK-LABEL: func.func @pool
// CHECK:         utensor.reduce max %{{.*}} axes [4, 5] : tensor<1x2x2x4x2x2xf32> -> tensor<1x2x2x4xf32>
func.func @pool(%x : tensor<1x4x4x4xf32>, %k : tensor<2x2xf32>, %o : tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32> {
  %p = linalg.pooling_nhwc_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %k : tensor<1x4x4x4xf32>, tensor<2x2xf32>) outs(%o : tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  func.return %p : tensor<1x2x2x4xf32>
}

// CHECK-LABEL: func.func @elements
// CHECK:         utensor.add %x, %x : tensor<2x3xf32>
// CHECK:         utensor.reduce max %{{.*}} axes [1] : tensor<2x3xf32> -> tensor<2xf32>
// CHECK:         utensor.exp
func.func @elements(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = linalg.map { arith.addf } ins(%x, %x : tensor<2x3xf32>, tensor<2x3xf32>) outs(%x : tensor<2x3xf32>)
  %s = linalg.softmax dimension(1) ins(%a : tensor<2x3xf32>) outs(%x : tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %s : tensor<2x3xf32>
}
