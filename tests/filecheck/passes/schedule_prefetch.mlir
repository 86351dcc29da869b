// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false}" | filecheck %s
// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false},apply-schedule" | uopc-opt | filecheck %s --check-prefix=APPLIED
// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false},apply-schedule,linearize" | uopc-opt | filecheck %s --check-prefix=LOOPS
// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false},apply-schedule,linearize" -t c | filecheck %s --check-prefix=TEXT

// Rows of 16 KiB of an input of 16 MiB: while exp of one fills the tile, the next is asked for; the
// sweep before, for the maximum, is as fast as memory and asks for nothing.
// CHECK: @large {{.*}}schedule = "split l = {{.*}}; split j = j0 j1:4:unroll j2:16:vector; prefetch v along i"
// APPLIED: uloop.load %x[%i, %k0 * 64 + %k1 * 16 + %k2] prefetch [%i + 1, %k0 * 64 + %k1 * 16 + %k2] : memref<1024x4096xf32>
// APPLIED: uloop.load %x[%i, %l0 * 64 + %l1 * 16 + %l2] : memref<1024x4096xf32>
// LOOPS: %[[next:.*]] = arith.addi %i, %
// LOOPS-NEXT: %[[row:.*]] = arith.minsi %{{.*}}, %[[next]] : index
// LOOPS: memref.prefetch %x[%[[row]], %[[at:.*]]], read, locality<3>, data : memref<1024x4096xf32>
// LOOPS-NEXT: vector.load %x[%i, %[[at]]] : memref<1024x4096xf32>, vector<16xf32>
// TEXT: = min_i64(1023, i + 1);
// TEXT: __builtin_prefetch(&x[
ukernel.kernel @large ins(%x : memref<1024x4096xf32>) outs(%o : memref<1024x4096xf32>) {
  %i = uloop.range 1024
  %j = uloop.range 4096
  %k = uloop.range 4096
  %v = uloop.load %x[%i, %k] : memref<1024x4096xf32>
  %l = uloop.range 4096 reduce
  %v2 = uloop.load %x[%i, %l] : memref<1024x4096xf32>
  %max = uloop.reduce max %v2 over (%l) : f32
  %1 = arith.subf %v, %max : f32
  %2 = math.exp %1 : f32
  %row = uloop.tile %2 over (%k) local : memref<4096xf32>
  %3 = uloop.read %row[%j] : memref<4096xf32>
  %m = uloop.range 4096 reduce
  %4 = uloop.read %row[%m] : memref<4096xf32>
  %add = uloop.reduce add %4 over (%m) : f32
  %5 = arith.divf %3, %add : f32
  uloop.store %5, %o[%i, %j] : memref<1024x4096xf32>
}

// What the caches hold is not asked for.
// CHECK: @small {{.*}}; split j = j0 j1:4:unroll j2:16:vector"
ukernel.kernel @small ins(%x : memref<256x4096xf32>) outs(%o : memref<256x4096xf32>) {
  %i = uloop.range 256
  %j = uloop.range 4096
  %k = uloop.range 4096
  %v = uloop.load %x[%i, %k] : memref<256x4096xf32>
  %l = uloop.range 4096 reduce
  %v2 = uloop.load %x[%i, %l] : memref<256x4096xf32>
  %max = uloop.reduce max %v2 over (%l) : f32
  %1 = arith.subf %v, %max : f32
  %2 = math.exp %1 : f32
  %row = uloop.tile %2 over (%k) local : memref<4096xf32>
  %3 = uloop.read %row[%j] : memref<4096xf32>
  %m = uloop.range 4096 reduce
  %4 = uloop.read %row[%m] : memref<4096xf32>
  %add = uloop.reduce add %4 over (%m) : f32
  %5 = arith.divf %3, %add : f32
  uloop.store %5, %o[%i, %j] : memref<256x4096xf32>
}

// Short rows follow one another as one stream.
// CHECK: @short {{.*}}; split j = j0 j1:4:unroll j2:16:vector"
ukernel.kernel @short ins(%x : memref<8192x512xf32>) outs(%o : memref<8192x512xf32>) {
  %i = uloop.range 8192
  %j = uloop.range 512
  %k = uloop.range 512
  %v = uloop.load %x[%i, %k] : memref<8192x512xf32>
  %l = uloop.range 512 reduce
  %v2 = uloop.load %x[%i, %l] : memref<8192x512xf32>
  %max = uloop.reduce max %v2 over (%l) : f32
  %1 = arith.subf %v, %max : f32
  %2 = math.exp %1 : f32
  %row = uloop.tile %2 over (%k) local : memref<512xf32>
  %3 = uloop.read %row[%j] : memref<512xf32>
  %m = uloop.range 512 reduce
  %4 = uloop.read %row[%m] : memref<512xf32>
  %add = uloop.reduce add %4 over (%m) : f32
  %5 = arith.divf %3, %add : f32
  uloop.store %5, %o[%i, %j] : memref<8192x512xf32>
}

// A row of 512 KiB is gone again before it is read.
// CHECK: @long {{.*}}; split j = j0 j1:4:unroll j2:16:vector"
ukernel.kernel @long ins(%x : memref<32x131072xf32>) outs(%o : memref<32x131072xf32>) {
  %i = uloop.range 32
  %j = uloop.range 131072
  %k = uloop.range 131072
  %v = uloop.load %x[%i, %k] : memref<32x131072xf32>
  %l = uloop.range 131072 reduce
  %v2 = uloop.load %x[%i, %l] : memref<32x131072xf32>
  %max = uloop.reduce max %v2 over (%l) : f32
  %1 = arith.subf %v, %max : f32
  %2 = math.exp %1 : f32
  %row = uloop.tile %2 over (%k) local : memref<131072xf32>
  %3 = uloop.read %row[%j] : memref<131072xf32>
  %m = uloop.range 131072 reduce
  %4 = uloop.read %row[%m] : memref<131072xf32>
  %add = uloop.reduce add %4 over (%m) : f32
  %5 = arith.divf %3, %add : f32
  uloop.store %5, %o[%i, %j] : memref<32x131072xf32>
}

// A sum of exp, kept by no tile, takes as long; the last sweep does not. Each row of a matrix of the
// batch asks for the next one of that matrix.
// CHECK: @batch {{.*}}; split j = j0 j1:4:unroll j2:16:vector; prefetch v along i"
ukernel.kernel @batch ins(%x : memref<4x256x4096xf32>) outs(%o : memref<4x256x4096xf32>) {
  %b = uloop.range 4
  %i = uloop.range 256
  %j = uloop.range 4096
  %k = uloop.range 4096 reduce
  %v = uloop.load %x[%b, %i, %k] : memref<4x256x4096xf32>
  %l = uloop.range 4096 reduce
  %v2 = uloop.load %x[%b, %i, %l] : memref<4x256x4096xf32>
  %v3 = uloop.load %x[%b, %i, %j] : memref<4x256x4096xf32>
  %max = uloop.reduce max %v2 over (%l) : f32
  %1 = arith.subf %v, %max : f32
  %2 = math.exp %1 : f32
  %add = uloop.reduce add %2 over (%k) : f32
  %3 = math.log %add : f32
  %4 = arith.subf %v3, %3 : f32
  uloop.store %4, %o[%b, %i, %j] : memref<4x256x4096xf32>
}

// Squares do not take long enough for a next row to come beside them.
// CHECK: @squares {{.*}}; split j = j0 j1:4:unroll j2:16:vector"
ukernel.kernel @squares ins(%x : memref<1024x4096xf32>) outs(%o : memref<1024x4096xf32>) {
  %i = uloop.range 1024
  %j = uloop.range 4096
  %k = uloop.range 4096 reduce
  %v = uloop.load %x[%i, %k] : memref<1024x4096xf32>
  %l = uloop.range 4096 reduce
  %v2 = uloop.load %x[%i, %l] : memref<1024x4096xf32>
  %v3 = uloop.load %x[%i, %j] : memref<1024x4096xf32>
  %max = uloop.reduce max %v2 over (%l) : f32
  %1 = arith.subf %v, %max : f32
  %2 = arith.mulf %1, %1 : f32
  %add = uloop.reduce add %2 over (%k) : f32
  %4 = arith.divf %v3, %add : f32
  uloop.store %4, %o[%i, %j] : memref<1024x4096xf32>
}
