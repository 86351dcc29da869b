// RUN: uopc-opt %s -p scatter-rows --split-input-file --check-values | filecheck %s
// RUN: uopc-opt %s -p "scatter-rows,kernelize{donated=true}" --split-input-file --check-values | filecheck %s --check-prefix PLAN
// RUN: uopc-opt %s -p "scatter-rows,kernelize" --split-input-file --check-values | filecheck %s --check-prefix COPY

// One row of a cache, at a position that is data: only that row is written.
// CHECK-LABEL: func.func @row
// CHECK:         %0 = utensor.shrink %k [0, 0, 0] to [3, 1, 5] : tensor<3x8x5xf32> -> tensor<3x1x5xf32>
// CHECK-NEXT:    %1 = utensor.reshape %p : tensor<i32> -> tensor<1xi32>
// CHECK-NEXT:    %r = utensor.scatter set %cache, %1, %0 axis 1
// CHECK-NEXT:    func.return %r
// PLAN-LABEL: ukernel.plan @row
// PLAN-SAME:    donated = [0 : i64]
// PLAN-NEXT:    ukernel.launch @e_3_8_5 ins(%p, %own : {{.*}}) outs(%cache :
// PLAN-NEXT:    ukernel.return %cache
// COPY-LABEL: ukernel.plan @row
// COPY:         ukernel.launch @e_3_8_5 ins(%cache, %p, %own : {{.*}}) outs(%out0 :
func.func @row(%cache : tensor<3x8x5xf32> {uopc.donated}, %own : tensor<3x1x5xf32>, %p : tensor<i32>) -> tensor<3x8x5xf32> {
  %i = utensor.iota axis 0 : tensor<8xi32>
  %p1 = utensor.reshape %p : tensor<i32> -> tensor<1xi32>
  %p2 = utensor.expand %p1 : tensor<1xi32> -> tensor<8xi32>
  %e = utensor.cmpeq %i, %p2 : tensor<8xi32>
  %e1 = utensor.reshape %e : tensor<8xi1> -> tensor<1x8x1xi1>
  %e2 = utensor.expand %e1 : tensor<1x8x1xi1> -> tensor<3x8x5xi1>
  %k = utensor.expand %own : tensor<3x1x5xf32> -> tensor<3x8x5xf32>
  %r = utensor.where %e2, %k, %cache : tensor<3x8x5xf32>
  func.return %r : tensor<3x8x5xf32>
}

// -----
// The number first, the position cast to a type that has room for it, along the last axis.
// CHECK-LABEL: func.func @column
// CHECK:         utensor.scatter set %x, %{{.*}}, %{{.*}} axis 1 : tensor<4x6xf32>
func.func @column(%x : tensor<4x6xf32> {uopc.donated}, %p : tensor<1xi64>) -> tensor<4x6xf32> {
  %i = utensor.iota axis 1 : tensor<4x6xi32>
  %w = utensor.cast %i : tensor<4x6xi32> -> tensor<4x6xi64>
  %p1 = utensor.reshape %p : tensor<1xi64> -> tensor<1x1xi64>
  %p2 = utensor.expand %p1 : tensor<1x1xi64> -> tensor<4x6xi64>
  %e = utensor.cmpeq %p2, %w : tensor<4x6xi64>
  %c = utensor.constant 2.0 : tensor<4x6xf32>
  %r = utensor.where %e, %c, %x : tensor<4x6xf32>
  func.return %r : tensor<4x6xf32>
}

// -----
// Left alone: what is not donated, a value that differs along the axis, another comparison, a
// number for each row, positions that wrap, and a result that is read only.
// CHECK-LABEL: func.func @others
// CHECK-NOT: utensor.scatter
func.func @others(%x : tensor<4x300xf32>, %y : tensor<4x300xf32> {uopc.donated}, %k : tensor<4x300xf32>, %p : tensor<1x1xi32>, %q : tensor<4x1xi32>, %b : tensor<1x1xi8>)
    -> (tensor<4x300xf32>, tensor<4x300xf32>, tensor<4x300xf32>, tensor<4x300xf32>, tensor<4x300xf32>, tensor<4xf32>) {
  %i = utensor.iota axis 1 : tensor<4x300xi32>
  %c = utensor.constant 2.0 : tensor<4x300xf32>
  %p2 = utensor.expand %p : tensor<1x1xi32> -> tensor<4x300xi32>
  %e = utensor.cmpeq %i, %p2 : tensor<4x300xi32>
  %0 = utensor.where %e, %c, %x : tensor<4x300xf32>
  %1 = utensor.where %e, %k, %y : tensor<4x300xf32>
  %l = utensor.cmple %i, %p2 : tensor<4x300xi32>
  %2 = utensor.where %l, %c, %y : tensor<4x300xf32>
  %q2 = utensor.expand %q : tensor<4x1xi32> -> tensor<4x300xi32>
  %f = utensor.cmpeq %i, %q2 : tensor<4x300xi32>
  %3 = utensor.where %f, %c, %y : tensor<4x300xf32>
  %s = utensor.cast %i : tensor<4x300xi32> -> tensor<4x300xi8>
  %b2 = utensor.expand %b : tensor<1x1xi8> -> tensor<4x300xi8>
  %g = utensor.cmpeq %s, %b2 : tensor<4x300xi8>
  %4 = utensor.where %g, %c, %y : tensor<4x300xf32>
  %h = utensor.where %e, %c, %y : tensor<4x300xf32>
  %5 = utensor.reduce add %h axes [1] : tensor<4x300xf32> -> tensor<4xf32>
  func.return %0, %1, %2, %3, %4, %5 : tensor<4x300xf32>, tensor<4x300xf32>, tensor<4x300xf32>, tensor<4x300xf32>, tensor<4x300xf32>, tensor<4xf32>
}

// -----
// A number that is padded is another one at other elements.
// CHECK-LABEL: func.func @padded
// CHECK-NOT: utensor.scatter
func.func @padded(%x : tensor<8xf32> {uopc.donated}, %p : tensor<1xi32>) -> tensor<8xf32> {
  %i = utensor.iota axis 0 : tensor<8xi32>
  %q = utensor.pad %p low [0] high [7] value 0 : tensor<1xi32> -> tensor<8xi32>
  %e = utensor.cmpeq %i, %q : tensor<8xi32>
  %c = utensor.constant 99.0 : tensor<8xf32>
  %r = utensor.where %e, %c, %x : tensor<8xf32>
  func.return %r : tensor<8xf32>
}
