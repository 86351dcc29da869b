// RUN: uopc-opt %s --pass-pipeline uopc-canonicalize | filecheck %s
// RUN: uopc-opt %s --pass-pipeline uopc-canonicalize{keep-detach} | filecheck %s --check-prefix=KEEP

// The example at the top of the pass.
// CHECK-LABEL: func.func @example
// CHECK-NEXT:    %[[ZERO:.*]] = utensor.constant 0 : tensor<4xi32>
// CHECK-NEXT:    %[[R:.*]] = utensor.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:    func.return %[[ZERO]], %[[R]] : tensor<4xi32>, tensor<4x1xf32>
func.func @example(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xi32>, tensor<4x1xf32>) {
  %zero = utensor.constant 0 : tensor<4xi32>
  %one = utensor.constant 1.0 : tensor<2x2xf32>
  %0 = utensor.mul %i, %zero : tensor<4xi32>
  %1 = utensor.reshape %x : tensor<4xf32> -> tensor<2x2xf32>
  %2 = utensor.mul %one, %1 : tensor<2x2xf32>
  %3 = utensor.reshape %2 : tensor<2x2xf32> -> tensor<4x1xf32>
  func.return %0, %3 : tensor<4xi32>, tensor<4x1xf32>
}

// What runs as a NaN or as -0 is not folded: x * 0, x - x, x + 0.0, x == x.
// CHECK-LABEL: func.func @floats_stay
// CHECK:         utensor.mul %x, %{{.*}} : tensor<4xf32>
// CHECK:         utensor.sub %x, %x : tensor<4xf32>
// CHECK:         utensor.add %x, %{{.*}} : tensor<4xf32>
// CHECK:         utensor.cmpeq %x, %x : tensor<4xf32>
func.func @floats_stay(%x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %zero = utensor.constant 0.0 : tensor<4xf32>
  %0 = utensor.mul %x, %zero : tensor<4xf32>
  %1 = utensor.sub %x, %x : tensor<4xf32>
  %2 = utensor.add %x, %zero : tensor<4xf32>
  %3 = utensor.cmpeq %x, %x : tensor<4xf32>
  func.return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}

// CHECK-LABEL: func.func @floats_go
// CHECK-NEXT:    func.return %x, %x, %x, %x :
func.func @floats_go(%x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %minus_zero = utensor.constant -0.0 : tensor<4xf32>
  %zero = utensor.constant 0.0 : tensor<4xf32>
  %one = utensor.constant 1.0 : tensor<4xf32>
  %0 = utensor.add %minus_zero, %x : tensor<4xf32>
  %1 = utensor.sub %x, %zero : tensor<4xf32>
  %2 = utensor.div %x, %one : tensor<4xf32>
  %3 = utensor.neg %x : tensor<4xf32>
  %4 = utensor.neg %3 : tensor<4xf32>
  func.return %0, %1, %2, %4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Integers wrap, constants meet and stand second.
// CHECK-LABEL: func.func @integers
// CHECK-NEXT:    %[[WRAPPED:.*]] = utensor.constant -127 : tensor<4xi8>
// CHECK-NEXT:    %[[SUM:.*]] = utensor.add %x, %[[WRAPPED]] : tensor<4xi8>
// CHECK-NEXT:    func.return %[[SUM]] : tensor<4xi8>
func.func @integers(%x: tensor<4xi8>) -> tensor<4xi8> {
  %a = utensor.constant 100 : tensor<4xi8>
  %b = utensor.constant 29 : tensor<4xi8>
  %0 = utensor.add %a, %x : tensor<4xi8>
  %1 = utensor.add %b, %0 : tensor<4xi8>
  func.return %1 : tensor<4xi8>
}

// Numbers are folded as they run: halves round each time, casts saturate, NaN becomes 0.
// CHECK-LABEL: func.func @folded
// CHECK-DAG:     utensor.constant 2048.0 : tensor<2xf16>
// CHECK-DAG:     utensor.constant 127 : tensor<2xi8>
// CHECK-DAG:     utensor.constant 0 : tensor<2xi8>
// CHECK-DAG:     utensor.constant nan : tensor<2xf32>
// CHECK-NOT:     utensor.cast
// CHECK:         func.return
func.func @folded() -> (tensor<2xf16>, tensor<2xi8>, tensor<2xi8>, tensor<2xf32>) {
  %0 = utensor.constant 2048.0 : tensor<2xf16>
  %1 = utensor.constant 1.0 : tensor<2xf16>
  %2 = utensor.add %0, %1 : tensor<2xf16>
  %3 = utensor.constant dense<[300.0, 300.0]> : tensor<2xf32>
  %4 = utensor.cast %3 : tensor<2xf32> -> tensor<2xi8>
  %5 = utensor.constant nan : tensor<2xf32>
  %6 = utensor.cast %5 : tensor<2xf32> -> tensor<2xi8>
  %7 = utensor.max %3, %5 : tensor<2xf32>
  func.return %2, %4, %6, %7 : tensor<2xf16>, tensor<2xi8>, tensor<2xi8>, tensor<2xf32>
}

// A cast that loses nothing is skipped; one that saturates where the other wraps is not.
// CHECK-LABEL: func.func @casts
// CHECK-NEXT:    %[[WIDE:.*]] = utensor.cast %i : tensor<4xi16> -> tensor<4xf32>
// CHECK-NEXT:    %[[BYTE:.*]] = utensor.cast %[[WIDE]] : tensor<4xf32> -> tensor<4xi8>
// CHECK-NEXT:    func.return %h, %[[BYTE]]
func.func @casts(%h: tensor<4xf16>, %i: tensor<4xi16>) -> (tensor<4xf16>, tensor<4xi8>) {
  %0 = utensor.cast %h : tensor<4xf16> -> tensor<4xf32>
  %1 = utensor.cast %0 : tensor<4xf32> -> tensor<4xf16>
  %2 = utensor.cast %i : tensor<4xi16> -> tensor<4xf32>
  %3 = utensor.cast %2 : tensor<4xf32> -> tensor<4xi8>
  func.return %1, %3 : tensor<4xf16>, tensor<4xi8>
}

// CHECK-LABEL: func.func @movement
// CHECK-NEXT:    %[[P:.*]] = utensor.permute %x [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
// CHECK-NEXT:    %[[S:.*]] = utensor.shrink %x [0, 0, 1] to [2, 3, 4] step [1, 1, 2] : tensor<2x3x4xf32> -> tensor<2x3x2xf32>
// CHECK-NEXT:    %[[PAD:.*]] = utensor.pad %x low [1, 0, 2] high [0, 0, 3] value 0.0 : tensor<2x3x4xf32> -> tensor<3x3x9xf32>
// CHECK-NEXT:    %[[F:.*]] = utensor.flip %x [0, 2] : tensor<2x3x4xf32>
// CHECK-NEXT:    func.return %[[P]], %[[S]], %[[PAD]], %[[F]]
func.func @movement(%x: tensor<2x3x4xf32>)
    -> (tensor<3x4x2xf32>, tensor<2x3x2xf32>, tensor<3x3x9xf32>, tensor<2x3x4xf32>) {
  %0 = utensor.permute %x [0, 2, 1] : tensor<2x3x4xf32> -> tensor<2x4x3xf32>
  %1 = utensor.permute %0 [2, 1, 0] : tensor<2x4x3xf32> -> tensor<3x4x2xf32>
  %2 = utensor.shrink %x [0, 0, 1] to [2, 3, 4] : tensor<2x3x4xf32> -> tensor<2x3x3xf32>
  %3 = utensor.shrink %2 [0, 0, 0] to [2, 3, 3] step [1, 1, 2] : tensor<2x3x3xf32> -> tensor<2x3x2xf32>
  %4 = utensor.pad %x low [0, 0, 2] high [0, 0, 0] value 0.0 : tensor<2x3x4xf32> -> tensor<2x3x6xf32>
  %5 = utensor.pad %4 low [1, 0, 0] high [0, 0, 3] value 0.0 : tensor<2x3x6xf32> -> tensor<3x3x9xf32>
  %6 = utensor.flip %x [1, 2] : tensor<2x3x4xf32>
  %7 = utensor.flip %6 [1, 0] : tensor<2x3x4xf32>
  func.return %1, %3, %5, %7 : tensor<3x4x2xf32>, tensor<2x3x2xf32>, tensor<3x3x9xf32>, tensor<2x3x4xf32>
}

// A sum of floats starts from 0, so of one element it is x + 0.0; a maximum is x.
// Sums of floats do not merge, maxima do.
// CHECK-LABEL: func.func @reductions
// CHECK-NEXT:    %[[R:.*]] = utensor.reshape %x : tensor<4x1xf32> -> tensor<4xf32>
// CHECK-NEXT:    %[[ZERO:.*]] = utensor.constant 0.0 : tensor<4xf32>
// CHECK-NEXT:    %[[SUM:.*]] = utensor.add %[[R]], %[[ZERO]] : tensor<4xf32>
// CHECK-NEXT:    %[[MAX:.*]] = utensor.reduce max %y axes [0, 1] : tensor<4x8xf32> -> tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = utensor.reduce add %y axes [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:    %[[B:.*]] = utensor.reduce add %[[A]] axes [0] : tensor<4xf32> -> tensor<f32>
// CHECK-NEXT:    func.return %[[SUM]], %[[R]], %[[MAX]], %[[B]]
func.func @reductions(%x: tensor<4x1xf32>, %y: tensor<4x8xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) {
  %0 = utensor.reduce add %x axes [1] : tensor<4x1xf32> -> tensor<4xf32>
  %1 = utensor.reduce max %x axes [1] : tensor<4x1xf32> -> tensor<4xf32>
  %2 = utensor.reduce max %y axes [1] : tensor<4x8xf32> -> tensor<4xf32>
  %3 = utensor.reduce max %2 axes [0] : tensor<4xf32> -> tensor<f32>
  %4 = utensor.reduce add %y axes [1] : tensor<4x8xf32> -> tensor<4xf32>
  %5 = utensor.reduce add %4 axes [0] : tensor<4xf32> -> tensor<f32>
  func.return %0, %1, %3, %5 : tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>
}

// No elements: a result is any constant, a reduction its identity, a padding only padding.
// CHECK-LABEL: func.func @empty
// CHECK-DAG:     %[[E:.*]] = utensor.constant 0.0 : tensor<0x4xf32>
// CHECK-DAG:     %[[L:.*]] = utensor.constant -inf : tensor<4xf32>
// CHECK-DAG:     %[[P:.*]] = utensor.constant 7.0 : tensor<2x4xf32>
// CHECK:         func.return %[[E]], %[[L]], %[[P]]
func.func @empty(%x: tensor<0x4xf32>) -> (tensor<0x4xf32>, tensor<4xf32>, tensor<2x4xf32>) {
  %0 = utensor.exp %x : tensor<0x4xf32>
  %1 = utensor.reduce max %0 axes [0] : tensor<0x4xf32> -> tensor<4xf32>
  %2 = utensor.pad %0 low [1, 0] high [1, 0] value 7.0 : tensor<0x4xf32> -> tensor<2x4xf32>
  func.return %0, %1, %2 : tensor<0x4xf32>, tensor<4xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @stages
// CHECK-NEXT:    %[[E:.*]] = utensor.exp %x : tensor<4xf32>
// CHECK-NEXT:    %[[S:.*]] = utensor.stage contiguous %[[E]] : tensor<4xf32>
// CHECK-NEXT:    func.return %[[S]]
// KEEP-LABEL:  func.func @stages
// KEEP:          %[[D:.*]] = utensor.stage detach %{{.*}} : tensor<4xf32>
// KEEP-NEXT:     func.return %[[D]]
func.func @stages(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = utensor.exp %x : tensor<4xf32>
  %1 = utensor.stage contiguous %0 : tensor<4xf32>
  %2 = utensor.stage contiguous %1 : tensor<4xf32>
  %3 = utensor.stage detach %2 : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}

// Sizes known at the call only.
// CHECK-LABEL: func.func @symbolic
// CHECK-NEXT:    func.return %x
func.func @symbolic(%x: tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 64>>)
    -> tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 64>> {
  %0 = utensor.reshape %x : tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 64>>
    -> tensor<?xf32, #utensor.sizes<[4 * n], n = 1 to 64>>
  %1 = utensor.reshape %0 : tensor<?xf32, #utensor.sizes<[4 * n], n = 1 to 64>>
    -> tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 64>>
  %2 = utensor.flip %1 [0] : tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 64>>
  %3 = utensor.flip %2 [0] : tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 64>>
  func.return %3 : tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 64>>
}

// -----
// permute(reduce(x)) is a reduction in the reader's order, where the last axis moves and nobody
// else reads it.
// CHECK-LABEL: func.func @permuted_sum
// CHECK-NEXT:    %0 = utensor.permute %x [2, 1, 0] : tensor<2x3x4xf32> -> tensor<4x3x2xf32>
// CHECK-NEXT:    %1 = utensor.reduce add %0 axes [2] : tensor<4x3x2xf32> -> tensor<4x3xf32>
// CHECK-NEXT:    %2 = utensor.reduce mul %x axes [0] : tensor<2x3x4xf32> -> tensor<3x4xf32>
// CHECK-NEXT:    %3 = utensor.permute %2 [1, 0]
// CHECK-NEXT:    %4 = utensor.reduce max %y axes [3]
// CHECK-NEXT:    %5 = utensor.permute %4 [1, 0, 2]
func.func @permuted_sum(%x: tensor<2x3x4xf32>, %y: tensor<2x3x4x5xf32>)
    -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x4xf32>, tensor<3x2x4xf32>) {
  %0 = utensor.reduce add %x axes [0] : tensor<2x3x4xf32> -> tensor<3x4xf32>
  %1 = utensor.permute %0 [1, 0] : tensor<3x4xf32> -> tensor<4x3xf32>
  %2 = utensor.reduce mul %x axes [0] : tensor<2x3x4xf32> -> tensor<3x4xf32>
  %3 = utensor.permute %2 [1, 0] : tensor<3x4xf32> -> tensor<4x3xf32>
  %4 = utensor.reduce max %y axes [3] : tensor<2x3x4x5xf32> -> tensor<2x3x4xf32>
  %5 = utensor.permute %4 [1, 0, 2] : tensor<2x3x4xf32> -> tensor<3x2x4xf32>
  func.return %1, %3, %2, %5 : tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x4xf32>, tensor<3x2x4xf32>
}
