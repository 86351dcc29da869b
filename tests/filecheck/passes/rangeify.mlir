// RUN: uopc-opt %s -p rangeify --split-input-file | filecheck %s

// Softmax in one kernel: the maximum and the sum are asked for at the row's index only.
ukernel.kernel @softmax ins(%x : memref<4x8xf32>) outs(%o : memref<4x8xf32>) {
  %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
  %m = utensor.reduce max %0 axes [1] : tensor<4x8xf32>
  %m1 = utensor.reshape %m : tensor<4xf32> -> tensor<4x1xf32>
  %m2 = utensor.expand %m1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = utensor.sub %0, %m2 : tensor<4x8xf32>
  %e = utensor.exp %d : tensor<4x8xf32>
  %s = utensor.reduce add %e axes [1] : tensor<4x8xf32>
  %s1 = utensor.reshape %s : tensor<4xf32> -> tensor<4x1xf32>
  %s2 = utensor.expand %s1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %y = utensor.div %e, %s2 : tensor<4x8xf32>
  ukernel.write %y, %o : tensor<4x8xf32>, memref<4x8xf32>
}

// CHECK-LABEL: ukernel.kernel @softmax
// CHECK-NEXT: %i = uloop.range 4
// CHECK-NEXT: %j = uloop.range 8
// CHECK-NEXT: [[X:%.*]] = uloop.load %x[%i, %j] : memref<4x8xf32>
// CHECK-NEXT: %k = uloop.range 8 reduce
// CHECK-NEXT: [[X1:%.*]] = uloop.load %x[%i, %k] : memref<4x8xf32>
// CHECK-NEXT: %m = uloop.reduce max [[X1]] over (%k) : f32
// CHECK-NEXT: %d = arith.subf [[X]], %m : f32
// CHECK-NEXT: %e = math.exp %d : f32
// CHECK-NEXT: %l = uloop.range 8 reduce
// CHECK-NEXT: [[X2:%.*]] = uloop.load %x[%i, %l] : memref<4x8xf32>
// CHECK-NEXT: [[D:%.*]] = arith.subf [[X2]], %m : f32
// CHECK-NEXT: [[E:%.*]] = math.exp [[D]] : f32
// CHECK-NEXT: %s = uloop.reduce add [[E]] over (%l) : f32
// CHECK-NEXT: %y = arith.divf %e, %s : f32
// CHECK-NEXT: uloop.store %y, %o[%i, %j] : memref<4x8xf32>

// -----

// Movement ops are index arithmetic; a pad of another value than 0 is a choice, and the load below
// it is masked. Unsigned numbers are signless, and compare unsigned.
ukernel.kernel @movement ins(%x : memref<4x8xui8>) outs(%o : memref<6xi32>) {
  %0 = ukernel.read %x : memref<4x8xui8> -> tensor<4x8xui8>
  %p = utensor.pad %0 low [1, 0] high [1, 2] value 3 : tensor<4x8xui8>
  %f = utensor.flip %p [1] : tensor<6x10xui8>
  %a = utensor.argreduce max %f axis 1 : tensor<6x10xui8>
  ukernel.write %a, %o : tensor<6xi32>, memref<6xi32>
}

// CHECK-LABEL: ukernel.kernel @movement ins(%x : memref<4x8xi8>)
// CHECK: [[V:%.*]] = uloop.load %x[%i - 1, 9 - %j] where (%i - 1, 4 - %i, %j - 2) : memref<4x8xi8>
// CHECK: [[IN:%.*]] = uloop.valid (%i - 1, 4 - %i, %j - 2)
// CHECK: %p = arith.select [[IN]], [[V]], {{%.*}} : i8
// CHECK: [[K:%.*]] = uloop.index %j : i32
// CHECK: {{%.*}}, %a = uloop.reduce %p, [[K]] init {{%.*}}, {{%.*}} over (%j) {
// CHECK: arith.cmpi ugt
// CHECK: } : i8, i32 -> i8, i32

// -----

// A pad with 0 is what a masked load gives anyway.
ukernel.kernel @zero_pad ins(%x : memref<4xf32>) outs(%o : memref<6xf32>) {
  %0 = ukernel.read %x : memref<4xf32> -> tensor<4xf32>
  %p = utensor.pad %0 low [1] high [1] value 0.0 : tensor<4xf32>
  ukernel.write %p, %o : tensor<6xf32>, memref<6xf32>
}

// CHECK-LABEL: ukernel.kernel @zero_pad
// CHECK: [[V:%.*]] = uloop.load %x[%i - 1] where (%i - 1, 4 - %i) : memref<4xf32>
// CHECK-NEXT: uloop.store [[V]], %o[%i] : memref<6xf32>

// -----

// Reshapes keep the axes that they do not touch; sizes may be symbols; gathered positions clamp.
ukernel.kernel @gather sizes(%n = n = 1 to 64) ins(%x : memref<?x8xf32> of [n, 8], %ix : memref<3xi32>) outs(%o : memref<?x3xf32> of [4*n, 3]) {
  %0 = ukernel.read %x : memref<?x8xf32> -> tensor<?x8xf32, #utensor.sizes<[n, 8], n = 1 to 64>>
  %1 = utensor.reshape %0 : tensor<?x8xf32, #utensor.sizes<[n, 8], n = 1 to 64>> -> tensor<?x2xf32, #utensor.sizes<[4*n, 2], n = 1 to 64>>
  %i = ukernel.read %ix : memref<3xi32> -> tensor<3xi32>
  %g = utensor.gather %1, %i axis 1 : tensor<?x2xf32, #utensor.sizes<[4*n, 2], n = 1 to 64>>, tensor<3xi32>
  ukernel.write %g, %o : tensor<?x3xf32, #utensor.sizes<[4*n, 3], n = 1 to 64>>, memref<?x3xf32>
}

// CHECK-LABEL: ukernel.kernel @gather
// CHECK: %i = uloop.range %n * 4 max 256
// CHECK: [[POSITION:%.*]] = uloop.value {{%.*}} : i32 in 0 to 1
// CHECK: uloop.load %x[%i floordiv 4, [[POSITION]] + %i mod 4 * 2] : memref<?x8xf32>

// -----

// A scatter copies, then updates in order; what is out of range is dropped.
ukernel.kernel @scatter ins(%x : memref<4x8xf32>, %ix : memref<3xi32>, %u : memref<3x8xf32>) outs(%o : memref<4x8xf32>) {
  %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
  %i = ukernel.read %ix : memref<3xi32> -> tensor<3xi32>
  %1 = ukernel.read %u : memref<3x8xf32> -> tensor<3x8xf32>
  %g = utensor.scatter add %0, %i, %1 axis 0 : tensor<4x8xf32>, tensor<3xi32>, tensor<3x8xf32>
  ukernel.write %g, %o : tensor<4x8xf32>, memref<4x8xf32>
}

// CHECK-LABEL: ukernel.kernel @scatter
// CHECK: uloop.store {{%.*}}, %o[%i, %j] : memref<4x8xf32>
// CHECK: [[AT:%.*]] = uloop.value {{%.*}} : i32 in -1 to 4
// CHECK: uloop.update add {{%.*}}, %o[[[AT]], %l] where ([[AT]], 3 - [[AT]]) : memref<4x8xf32>

// -----

// Sums of half types run in f32 and are rounded once.
ukernel.kernel @half ins(%x : memref<4x8xf16>) outs(%o : memref<4xf16>) {
  %0 = ukernel.read %x : memref<4x8xf16> -> tensor<4x8xf16>
  %s = utensor.reduce add %0 axes [1] : tensor<4x8xf16>
  ukernel.write %s, %o : tensor<4xf16>, memref<4xf16>
}

// CHECK-LABEL: ukernel.kernel @half
// CHECK: [[WIDE:%.*]] = arith.extf {{%.*}} : f16 to f32
// CHECK-NEXT: [[SUM:%.*]] = uloop.reduce add [[WIDE]] over (%j) : f32
// CHECK-NEXT: %s = arith.truncf [[SUM]] : f32 to f16

// -----

// An axis on which neither the updates nor their places depend still counts its updates: it stands
// among the conditions. Places that are unsigned clamp as such.
ukernel.kernel @equal_updates ins(%x : memref<4xi32>) outs(%o : memref<4xi32>) {
  %0 = ukernel.read %x : memref<4xi32> -> tensor<4xi32>
  %1 = utensor.iota axis 1 : tensor<3x2xui8>
  %2 = utensor.constant 7 : tensor<3x2xi32>
  %3 = utensor.scatter add %0, %1, %2 axis 0 : tensor<4xi32>, tensor<3x2xui8>, tensor<3x2xi32>
  ukernel.write %3, %o : tensor<4xi32>, memref<4xi32>
}

// CHECK-LABEL: ukernel.kernel @equal_updates
// CHECK: %j = uloop.range 3
// CHECK-NEXT: %k = uloop.range 2
// CHECK-NEXT: [[NUMBER:%.*]] = uloop.index %k : i8
// CHECK-NEXT: [[AT:%.*]] = uloop.value [[NUMBER]] : i8 unsigned in -1 to 4
// CHECK-NEXT: [[SEVEN:%.*]] = arith.constant 7 : i32
// CHECK-NEXT: uloop.update add [[SEVEN]], %o[[[AT]]] where ([[AT]], 3 - [[AT]], %j) : memref<4xi32>

// -----

// An argreduce carries the best and its position. A NaN is better than any number, the first wins.
ukernel.kernel @arg ins(%x : memref<4x8xf32>) outs(%o : memref<4xi64>) {
  %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
  %1 = utensor.argreduce min %0 axis 1 : tensor<4x8xf32> -> tensor<4xi64>
  ukernel.write %1, %o : tensor<4xi64>, memref<4xi64>
}

// CHECK-LABEL: ukernel.kernel @arg
// CHECK: [[X:%.*]] = uloop.load %x[%i, %j] : memref<4x8xf32>
// CHECK-NEXT: [[K:%.*]] = uloop.index %j : i64
// CHECK-NEXT: [[WORST:%.*]] = arith.constant 0x7f800000 : f32
// CHECK-NEXT: [[FIRST:%.*]] = arith.constant 0 : i64
// CHECK-NEXT: [[BEST:%.*]], [[AT:%.*]] = uloop.reduce [[X]], [[K]] init [[WORST]], [[FIRST]] over (%j) {
// CHECK-NEXT: ^bb0(%best: f32, %at: i64, %x_1: f32, %k: i64):
// CHECK-NEXT:   [[BEYOND:%.*]] = arith.cmpf ult, %x_1, %best : f32
// CHECK-NEXT:   [[NONE:%.*]] = arith.cmpf ord, %best, %best : f32
// CHECK-NEXT:   [[BETTER:%.*]] = arith.andi [[BEYOND]], [[NONE]] : i1
// CHECK-NEXT:   [[X1:%.*]] = arith.select [[BETTER]], %x_1, %best : f32
// CHECK-NEXT:   [[K1:%.*]] = arith.select [[BETTER]], %k, %at : i64
// CHECK-NEXT:   uloop.yield [[X1]], [[K1]] : f32, i64
// CHECK: uloop.store [[AT]], %o[%i] : memref<4xi64>

// -----

// A size 1 axis beside a symbol that may be 0 divides by nothing.
ukernel.kernel @ones sizes(%n = n = 0 to 6) ins(%x : memref<?xf32> of [n]) outs(%o : memref<1x?xf32> of [1, n]) {
  %0 = ukernel.read %x : memref<?xf32> -> tensor<?xf32, #utensor.sizes<[n], n = 0 to 6>>
  %1 = utensor.reshape %0 : tensor<?xf32, #utensor.sizes<[n], n = 0 to 6>> -> tensor<1x?xf32, #utensor.sizes<[1, n], n = 0 to 6>>
  ukernel.write %1, %o : tensor<1x?xf32, #utensor.sizes<[1, n], n = 0 to 6>>, memref<1x?xf32>
}

// CHECK-LABEL: ukernel.kernel @ones
// CHECK: %i = uloop.range %n max 6
// CHECK-NEXT: [[V:%.*]] = uloop.load %x[%i] : memref<?xf32>
// CHECK-NEXT: uloop.store [[V]], %o[0, %i] : memref<1x?xf32>
