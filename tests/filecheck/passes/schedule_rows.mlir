// RUN: uopc-opt %s -p "schedule{target=avx512}" | filecheck %s
// RUN: uopc-opt %s -p "schedule{target=avx2}" | filecheck %s --check-prefix=NARROW

// Every sweep over a row is cut into copies and lanes alike.
// CHECK: @softmax {{.*}}schedule = "split l = l0 l1:4:unroll l2:16:vector; split k = k0 k1:4:unroll k2:16:vector; split m = m0 m1:4:unroll m2:16:vector; split j = j0 j1:4:unroll j2:16:vector; split i = i0:thread i1:50"
// NARROW: @softmax {{.*}}schedule = "split l = l0 l1:2:unroll l2:8:vector; split k = k0 k1:2:unroll k2:8:vector; split m = m0 m1:2:unroll m2:8:vector; split j = j0 j1:2:unroll j2:8:vector; split i = i0:thread i1:50"
ukernel.kernel @softmax ins(%x : memref<4000x200xf32>) outs(%o : memref<4000x200xf32>) attributes {flops = 4000000 : i64, bytes = 6400000 : i64} {
  %i = uloop.range 4000
  %j = uloop.range 200
  %k = uloop.range 200
  %v = uloop.load %x[%i, %k] : memref<4000x200xf32>
  %l = uloop.range 200 reduce
  %v2 = uloop.load %x[%i, %l] : memref<4000x200xf32>
  %max = uloop.reduce max %v2 over (%l) : f32
  %1 = arith.subf %v, %max : f32
  %2 = math.exp %1 : f32
  %row = uloop.tile %2 over (%k) local : memref<200xf32>
  %3 = uloop.read %row[%j] : memref<200xf32>
  %m = uloop.range 200 reduce
  %4 = uloop.read %row[%m] : memref<200xf32>
  %add = uloop.reduce add %4 over (%m) : f32
  %5 = arith.divf %3, %add : f32
  uloop.store %5, %o[%i, %j] : memref<4000x200xf32>
}

// A transposed first factor of many rows is packed as well, a strip of eight tiles at a time.
// CHECK: @transposed {{.*}}schedule = "contract; split j = j0 jj:48; tile b over k jj as pk pj; split jj = j1:unroll j2:16:vector; split pj = pj1:unroll pj2:16:vector; split i = is i0:8 i1:8:unroll; tile a over k i0 i1 as qk qi0 qi1; layout a qi0 qk qi1; mark qi1 vector; order is qk qi0 j0 pk i0 k"
// NARROW: @transposed {{.*}}split i = is i0:8 i1:6:unroll; tile a over k i0 i1 as qk qi0 qi1; layout a qi0 qk qi1; mark qi1 unroll; order is qk qi0 j0 pk i0 k"
ukernel.kernel @transposed ins(%A : memref<1024x1024xf32>, %B : memref<1024x1024xf32>) outs(%C : memref<1024x1024xf32>) {
  %i = uloop.range 1024
  %j = uloop.range 1024
  %k = uloop.range 1024 reduce
  %a = uloop.load %A[%k, %i] : memref<1024x1024xf32>
  %b = uloop.load %B[%k, %j] : memref<1024x1024xf32>
  %p = arith.mulf %a, %b : f32
  %c = uloop.reduce add %p over (%k) : f32
  uloop.store %c, %C[%i, %j] : memref<1024x1024xf32>
}

// Columns of four vectors: two panels, so that two threads have equal shares.
// CHECK: @heads {{.*}}split k = k0 kj:32; tile v over l kj as pl pk; split kj = k1:unroll k2:16:vector; split pk = pk1:unroll pk2:16:vector; split j = j0 j1:12:unroll
ukernel.kernel @heads ins(%P : memref<256x256xf32>, %V : memref<256x64xf32>) outs(%C : memref<256x64xf32>) {
  %j = uloop.range 256
  %k = uloop.range 64
  %l = uloop.range 256 reduce
  %p = uloop.load %P[%j, %l] : memref<256x256xf32>
  %v = uloop.load %V[%l, %k] : memref<256x64xf32>
  %0 = arith.mulf %p, %v : f32
  %c = uloop.reduce add %0 over (%l) : f32
  uloop.store %c, %C[%j, %k] : memref<256x64xf32>
}
