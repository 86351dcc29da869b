// RUN: uopc-opt %s -p gpu-map | filecheck %s
// RUN: uopc-opt %s -p gpu-map,apply-schedule,linearize | filecheck %s --check-prefix LINEAR

// Every element is a thread's.
ukernel.kernel @e_n_8 sizes(%n = n = 1 to 64) ins(%x : memref<?x8xf32> of [n, 8]) outs(%o : memref<?x8xf32> of [n, 8]) {
  %i = uloop.range %n max 64
  %j = uloop.range 8
  %v = uloop.load %x[%i, %j] : memref<?x8xf32>
  %w = arith.addf %v, %v : f32
  uloop.store %w, %o[%i, %j] : memref<?x8xf32>
}
// CHECK: @e_n_8
// CHECK-SAME: attributes {target = "cuda", schedule = "merge i j as i; split i = ib:block it:256:lane"}

// An empty axis cannot be divided by: the last is split, the others are blocks.
ukernel.kernel @e_n_m sizes(%n = n = 0 to 9, %m = m = 0 to 9) ins(%x : memref<?x?xi32> of [n, m]) outs(%o : memref<?x?xi32> of [n, m]) {
  %i = uloop.range %n max 9
  %j = uloop.range %m max 9
  %v = uloop.load %x[%i, %j] : memref<?x?xi32>
  uloop.store %v, %o[%i, %j] : memref<?x?xi32>
}
// CHECK: schedule = "mark i block; split j = jb:block jt:32:lane"

// Rows of up to 1024 elements: a warp each.
ukernel.kernel @r_64 ins(%x : memref<64x128xf32>) outs(%o : memref<64xf32>) {
  %i = uloop.range 64
  %j = uloop.range 128 reduce
  %v = uloop.load %x[%i, %j] : memref<64x128xf32>
  %s = uloop.reduce add %v over (%j) : f32
  uloop.store %s, %o[%i] : memref<64xf32>
}
// CHECK: schedule = "split i = ib:block iw:4:lane; split j = j0 jt:32:lane; order ib iw"

// Longer ones: a block each.
ukernel.kernel @r_7 ins(%x : memref<7x5000xf32>) outs(%o : memref<7xf32>) {
  %i = uloop.range 7
  %j = uloop.range 5000 reduce
  %v = uloop.load %x[%i, %j] : memref<7x5000xf32>
  %s = uloop.reduce max %v over (%j) : f32
  uloop.store %s, %o[%i] : memref<7xf32>
}
// CHECK: schedule = "mark i block; split j = j0 jt:512:lane; order i"

// Columns: each thread has one, and neighbours read neighbours.
ukernel.kernel @r_9000 ins(%x : memref<50x9000xf32>) outs(%o : memref<9000xf32>) {
  %i = uloop.range 9000
  %j = uloop.range 50 reduce
  %v = uloop.load %x[%j, %i] : memref<50x9000xf32>
  %s = uloop.reduce add %v over (%j) : f32
  uloop.store %s, %o[%i] : memref<9000xf32>
}
// CHECK: schedule = "split i = ib:block it:256:lane"

// A product: panels in shared memory.
ukernel.kernel @r_96_80 ins(%a : memref<96x40xf32>, %b : memref<40x80xf32>) outs(%o : memref<96x80xf32>) {
  %i = uloop.range 96
  %j = uloop.range 80
  %k = uloop.range 40 reduce
  %x = uloop.load %a[%i, %k] : memref<96x40xf32>
  %y = uloop.load %b[%k, %j] : memref<40x80xf32>
  %p = arith.mulf %x, %y : f32
  %s = uloop.reduce add %p over (%k) : f32
  uloop.store %s, %o[%i, %j] : memref<96x80xf32>
}
// CHECK: schedule = "contract; split i = i0:block iu:4:unroll i1:16:lane; split j = j0:block ju:4:unroll j1:16:lane; split k = k0 k1:16; tile x over iu i1 k1 as piu pi1 pk1 in shared; mark pk1 lane; tile y over k1 ju j1 as pk12 pju pj1 in shared; mark pk12 lane; order i0 j0 i1 j1"

// What has a schedule, or another target, is left alone.
ukernel.kernel @mine ins(%x : memref<8xf32>) outs(%o : memref<8xf32>) attributes {schedule = "mark i lane"} {
  %i = uloop.range 8
  %v = uloop.load %x[%i] : memref<8xf32>
  uloop.store %v, %o[%i] : memref<8xf32>
}
// CHECK: @mine
// CHECK-SAME: attributes {target = "cuda", schedule = "mark i lane"}
ukernel.kernel @other ins(%x : memref<8xf32>) outs(%o : memref<8xf32>) attributes {target = "c"} {
  %i = uloop.range 8
  %v = uloop.load %x[%i] : memref<8xf32>
  uloop.store %v, %o[%i] : memref<8xf32>
}
// CHECK: @other
// CHECK-SAME: attributes {target = "c"} {

// LINEAR:       builtin.module attributes {gpu.container_module} {
// LINEAR:         "gpu.module"() <{sym_name = "kernels"}> ({
// LINEAR:         ^bb0(%n: index, %x: memref<?x8xf32>, %o: memref<?x8xf32>):
// LINEAR-NEXT:      %x_1 = memref.collapse_shape %x {{.*}} : memref<?x8xf32> into memref<?xf32>
// LINEAR:           %block_x = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
// LINEAR-NEXT:      %thread = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
// LINEAR:           scf.if %{{.*}} {
// LINEAR:             memref.load %x_1[%[[AT:.*]]] : memref<?xf32>
// LINEAR:             memref.store %{{.*}}, %o_1[%[[AT]]] : memref<?xf32>
// LINEAR:           "gpu.return"() : () -> ()
// LINEAR-NEXT:    }) {sym_name = "e_n_8", gpu.known_block_size = array<i32: 256, 1, 1>, arg_attrs = [{}, {llvm.noalias, llvm.readonly, llvm.align = 16 : i64}, {llvm.noalias, llvm.align = 16 : i64}], uopc.grids = [affine_map<(d0) -> (((d0 + 31) floordiv 32), 1, 1)>], uopc.index_bits = 32 : i64}

// The whole steps of a row, then a tree of shuffles; one thread of the warp stores.
// LINEAR:         ^bb0(%x: memref<64x128xf32>, %o: memref<64xf32>):
// LINEAR:           %[[SUM:.*]] = scf.for %j0 = {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32) {
// LINEAR:           %[[A:.*]], %{{.*}} = "gpu.shuffle"(%[[SUM]], %{{.*}}, %{{.*}}) <{mode = #gpu<shuffle_mode xor>}> : (f32, i32, i32) -> (f32, i1)
// LINEAR-NEXT:      %[[B:.*]] = arith.addf %[[SUM]], %[[A]] : f32
// LINEAR:           %[[C:.*]], %{{.*}} = "gpu.shuffle"(%[[B]]
// LINEAR-NEXT:      %[[D:.*]] = arith.addf %[[B]], %[[C]] : f32
// LINEAR:           scf.if %{{.*}} {
// LINEAR:             memref.store

// A block's warps meet in shared memory.
// LINEAR:         ^bb0(%x: memref<7x5000xf32>, %o: memref<7xf32>):
// LINEAR:           %sums = memref.alloca() : memref<16xf32, #gpu.address_space<workgroup>>
// LINEAR:           memref.store %{{.*}}, %sums
// LINEAR:           "gpu.barrier"() : () -> ()
// LINEAR:           %{{.*}} = memref.load %sums

// LINEAR:         ^bb0(%a: memref<96x40xf32>, %b: memref<40x80xf32>, %o: memref<96x80xf32>):
// LINEAR:           memref.alloca() : memref<4x16x16xf32, #gpu.address_space<workgroup>>
// LINEAR:           memref.alloca() : memref<16x4x16xf32, #gpu.address_space<workgroup>>
// LINEAR:           scf.for %k0
// LINEAR-NEXT:        "gpu.barrier"() : () -> ()
// LINEAR:             "gpu.barrier"() : () -> ()
// LINEAR:             scf.for %k1
// LINEAR:               math.fma
