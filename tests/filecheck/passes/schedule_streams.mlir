// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false}" | filecheck %s
// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false},apply-schedule" | uopc-opt | filecheck %s --check-prefix=APPLIED
// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false},apply-schedule,linearize" | filecheck %s --check-prefix=LOOPS
// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false},apply-schedule,linearize" -t c | filecheck %s --check-prefix=TEXT

// A result of 64 MiB is written past the caches.
// CHECK: @large {{.*}}schedule = "split j = j0 j1:2:unroll j2:16:vector; stream"
// APPLIED: uloop.store nontemporal %y, %o[%i, %j0 * 32 + %j1 * 16 + %j2] : memref<4096x4096xf32>
// LOOPS: vector.store {{.*}} {nontemporal = true} : memref<4096x4096xf32>, vector<16xf32>
// TEXT: void stream_f32x16(float *p, f32x16 v)
// TEXT: stream_f32x16(o +
// TEXT: streams_end();
ukernel.kernel @large ins(%x : memref<4096x4096xf32>) outs(%o : memref<4096x4096xf32>) {
  %i = uloop.range 4096
  %j = uloop.range 4096
  %v = uloop.load %x[%i, %j] : memref<4096x4096xf32>
  %y = arith.addf %v, %v : f32
  uloop.store %y, %o[%i, %j] : memref<4096x4096xf32>
}

// A small one is not.
// CHECK: ukernel.kernel @small ins(%x : memref<64x64xf32>) outs(%o : memref<64x64xf32>) {
ukernel.kernel @small ins(%x : memref<64x64xf32>) outs(%o : memref<64x64xf32>) {
  %i = uloop.range 64
  %j = uloop.range 64
  %v = uloop.load %x[%i, %j] : memref<64x64xf32>
  %y = arith.addf %v, %v : f32
  uloop.store %y, %o[%i, %j] : memref<64x64xf32>
}
