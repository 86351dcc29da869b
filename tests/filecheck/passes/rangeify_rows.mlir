// RUN: uopc-opt %s -p "rangeify{tile-rows=true}" | filecheck %s
// RUN: uopc-opt %s -p rangeify | filecheck %s --check-prefix=PLAIN

// Values that a row's loops read several times are kept, where computing them again is dear.
// Without the option there is no tile.
// PLAIN-NOT: uloop.tile

// exp is asked for by the sum and by the result.
// CHECK-LABEL: ukernel.kernel @softmax
// CHECK: [[MAX:%.*]] = uloop.reduce max
// CHECK: [[E:%.*]] = math.exp
// CHECK-NEXT: [[ROW:%.*]] = uloop.tile [[E]] over (%k) local : memref<8xf32>
// CHECK-NEXT: [[MINE:%.*]] = uloop.read [[ROW]][%j] : memref<8xf32>
// CHECK: [[V:%.*]] = uloop.read [[ROW]][%m] : memref<8xf32>
// CHECK-NEXT: [[SUM:%.*]] = uloop.reduce add [[V]] over (%m) : f32
// CHECK-NEXT: arith.divf [[MINE]], [[SUM]] : f32
// CHECK-NOT: math.exp
ukernel.kernel @softmax ins(%x : memref<4x8xf32>) outs(%o : memref<4x8xf32>) {
  %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
  %top = utensor.reduce max %0 axes [1] : tensor<4x8xf32>
  %m1 = utensor.reshape %top : tensor<4xf32> -> tensor<4x1xf32>
  %m2 = utensor.expand %m1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %d = utensor.sub %0, %m2 : tensor<4x8xf32>
  %e = utensor.exp %d : tensor<4x8xf32>
  %s = utensor.reduce add %e axes [1] : tensor<4x8xf32>
  %s1 = utensor.reshape %s : tensor<4xf32> -> tensor<4x1xf32>
  %s2 = utensor.expand %s1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %r = utensor.div %e, %s2 : tensor<4x8xf32>
  ukernel.write %r, %o : tensor<4x8xf32>, memref<4x8xf32>
}

// A subtraction is computed again.
// CHECK-LABEL: ukernel.kernel @cheap
// CHECK-NOT: uloop.tile
ukernel.kernel @cheap ins(%x : memref<4x8xf32>) outs(%o : memref<4x8xf32>) {
  %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
  %d = utensor.neg %0 : tensor<4x8xf32>
  %s = utensor.reduce add %d axes [1] : tensor<4x8xf32>
  %s1 = utensor.reshape %s : tensor<4xf32> -> tensor<4x1xf32>
  %s2 = utensor.expand %s1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %r = utensor.mul %d, %s2 : tensor<4x8xf32>
  ukernel.write %r, %o : tensor<4x8xf32>, memref<4x8xf32>
}

// Down columns: the row's loop is not the outermost, a tile would be filled for each element.
// CHECK-LABEL: ukernel.kernel @columns
// CHECK-NOT: uloop.tile
ukernel.kernel @columns ins(%x : memref<4x8xf32>) outs(%o : memref<4x8xf32>) {
  %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
  %e = utensor.exp %0 : tensor<4x8xf32>
  %s = utensor.reduce add %e axes [0] : tensor<4x8xf32>
  %s1 = utensor.reshape %s : tensor<8xf32> -> tensor<1x8xf32>
  %s2 = utensor.expand %s1 : tensor<1x8xf32> -> tensor<4x8xf32>
  %r = utensor.div %e, %s2 : tensor<4x8xf32>
  ukernel.write %r, %o : tensor<4x8xf32>, memref<4x8xf32>
}

// A row of a size known at the call has no tile.
// CHECK-LABEL: ukernel.kernel @symbolic
// CHECK-NOT: uloop.tile
ukernel.kernel @symbolic sizes(%n = n = 1 to 8) ins(%x : memref<?xf32> of [n]) outs(%o : memref<?xf32> of [n]) {
  %0 = ukernel.read %x : memref<?xf32> -> tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>
  %e = utensor.exp %0 : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>
  %s = utensor.reduce add %e axes [0] : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>> -> tensor<f32>
  %s1 = utensor.reshape %s : tensor<f32> -> tensor<1xf32>
  %s2 = utensor.expand %s1 : tensor<1xf32> -> tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>
  %r = utensor.div %e, %s2 : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>
  ukernel.write %r, %o : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>, memref<?xf32>
}

// What lies behind a reshape has other axes.
// CHECK-LABEL: ukernel.kernel @reshaped
// CHECK-NOT: uloop.tile
ukernel.kernel @reshaped ins(%x : memref<4x8xf32>, %c : memref<1xf32>) outs(%o : memref<4x8xf32>) {
  %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
  %1 = ukernel.read %c : memref<1xf32> -> tensor<1xf32>
  %2 = utensor.expand %1 : tensor<1xf32> -> tensor<32xf32>
  %3 = utensor.reshape %2 : tensor<32xf32> -> tensor<4x8xf32>
  %e = utensor.add %0, %3 : tensor<4x8xf32>
  %s = utensor.reduce add %e axes [1] : tensor<4x8xf32>
  %s1 = utensor.reshape %s : tensor<4xf32> -> tensor<4x1xf32>
  %s2 = utensor.expand %s1 : tensor<4x1xf32> -> tensor<4x8xf32>
  %r = utensor.mul %e, %s2 : tensor<4x8xf32>
  ukernel.write %r, %o : tensor<4x8xf32>, memref<4x8xf32>
}
