// RUN: uopc-opt %s -p "uopc-canonicalize,stage-broadcast-compute{rows=false},kernelize{fuse-reduce=auto},rangeify{tile-rows=true},schedule{target=avx2}" | filecheck %s
// RUN: uopc-opt %s -p "uopc-canonicalize,stage-broadcast-compute{rows=false},kernelize{fuse-reduce=auto},rangeify{tile-rows=true},schedule{target=avx2},apply-schedule" | filecheck %s --check-prefix=APPLIED

// Causal attention of two heads: one kernel, whose rows of scores and weights are tiles.

// CHECK-LABEL: ukernel.kernel @r_2_64_16
// CHECK-SAME: contract; split j = j0 ji:16; tile q2 over p ji as pp pji; tile w over l as pl;
// CHECK-SAME: capture y2 ji as y2_ji; capture e2 ji as e2_ji; capture w ji as w_ji;
// CHECK-SAME: split ji = jiu:unroll jiv:8:vector;
// CHECK-SAME: layout y2 n y2_jiu y2_jiv; layout e2 m e2_jiu e2_jiv; layout w pl w_jiu w_jiv;
// CHECK-SAME: split n = n0 n1:6:unroll; split q = q0 q1:4:unroll; split r = r0 r1:4:unroll;
// CHECK-SAME: split k = k0 k1:6:unroll; order i j0 pp pji n0 p q0 m r0 pl k0 l;
// CHECK-SAME: bound l = j0*16 + 16 finite; bound pl = j0*16 + 16; bound r0 = (j0*16 + 19) floordiv 4;
// CHECK-SAME: bound m = j0*16 + 16; bound q0 = (j0*16 + 19) floordiv 4;
// CHECK-SAME: bound n0 = (j0*16 + 21) floordiv 6
// CHECK-NOT: ukernel.kernel

// Scores of six keys by sixteen queries, then the rows, then sixteen queries by six columns.
// APPLIED: %q2 = uloop.tile %0 over (%pp, %pji) local : memref<8x16xf32>
// APPLIED: %s = uloop.reduce fma %1, %k2 over (%p) : f32
// APPLIED: %y2 = uloop.tile %y over (%n0, %n1, %y2_jiu, %y2_jiv) local : memref<11x6x2x8xf32>
// APPLIED: %2 = uloop.reduce max %y4 over (%q0) : f32
// APPLIED: %e2 = uloop.tile %e over (%m, %e2_jiu, %e2_jiv) local : memref<64x2x8xf32>
// APPLIED: %w = uloop.tile %4 over (%pl, %w_jiu, %w_jiv) local : memref<64x2x8xf32>
// APPLIED: %o = uloop.reduce fma %5, %v2 over (%l) : f32
// APPLIED: uloop.store %o, %out0[%i, %j0 * 16 + %jiu * 8 + %jiv, %k0 * 6 + %k1] : memref<2x64x16xf32>
func.func @f(%q: tensor<2x64x8xf32>, %k: tensor<2x64x8xf32>, %v: tensor<2x64x16xf32>) -> tensor<2x64x16xf32> {
  %q4 = utensor.reshape %q : tensor<2x64x8xf32> -> tensor<2x64x1x8xf32>
  %qe = utensor.expand %q4 : tensor<2x64x1x8xf32> -> tensor<2x64x64x8xf32>
  %k4 = utensor.reshape %k : tensor<2x64x8xf32> -> tensor<2x1x64x8xf32>
  %ke = utensor.expand %k4 : tensor<2x1x64x8xf32> -> tensor<2x64x64x8xf32>
  %qk = utensor.mul %qe, %ke : tensor<2x64x64x8xf32>
  %s = utensor.reduce add %qk axes [3] : tensor<2x64x64x8xf32>
  %f = utensor.constant 0.25 : tensor<2x64x64xf32>
  %key = utensor.iota axis 2 : tensor<2x64x64xi32>
  %query = utensor.iota axis 1 : tensor<2x64x64xi32>
  %seen = utensor.cmple %key, %query : tensor<2x64x64xi32>
  %z = utensor.mul %s, %f : tensor<2x64x64xf32>
  %low = utensor.constant -inf : tensor<2x64x64xf32>
  %y = utensor.where %seen, %z, %low : tensor<2x64x64xf32>
  %m = utensor.reduce max %y axes [2] : tensor<2x64x64xf32>
  %m1 = utensor.reshape %m : tensor<2x64xf32> -> tensor<2x64x1xf32>
  %me = utensor.expand %m1 : tensor<2x64x1xf32> -> tensor<2x64x64xf32>
  %yd = utensor.sub %y, %me : tensor<2x64x64xf32>
  %e = utensor.exp %yd : tensor<2x64x64xf32>
  %l = utensor.reduce add %e axes [2] : tensor<2x64x64xf32>
  %l1 = utensor.reshape %l : tensor<2x64xf32> -> tensor<2x64x1xf32>
  %le = utensor.expand %l1 : tensor<2x64x1xf32> -> tensor<2x64x64xf32>
  %w = utensor.div %e, %le : tensor<2x64x64xf32>
  %w4 = utensor.reshape %w : tensor<2x64x64xf32> -> tensor<2x64x1x64xf32>
  %we = utensor.expand %w4 : tensor<2x64x1x64xf32> -> tensor<2x64x16x64xf32>
  %vt = utensor.permute %v [0, 2, 1] : tensor<2x64x16xf32>
  %v4 = utensor.reshape %vt : tensor<2x16x64xf32> -> tensor<2x1x16x64xf32>
  %ve = utensor.expand %v4 : tensor<2x1x16x64xf32> -> tensor<2x64x16x64xf32>
  %wv = utensor.mul %we, %ve : tensor<2x64x16x64xf32>
  %o = utensor.reduce add %wv axes [3] : tensor<2x64x16x64xf32>
  func.return %o : tensor<2x64x16xf32>
}
