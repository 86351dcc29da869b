// RUN: uopc-opt %s -p "schedule{target=avx512bf16 threads=false}" | filecheck %s
// RUN: uopc-opt %s -p "schedule{target=avx512bf16 threads=false},apply-schedule" | uopc-opt | filecheck %s --check-prefix=APPLIED
// RUN: uopc-opt %s -p "schedule{target=avx512bf16 threads=false},apply-schedule,linearize" | uopc-opt | filecheck %s --check-prefix=LOOPS
// RUN: uopc-opt %s -p "schedule{target=avx512bf16 threads=false},apply-schedule,linearize" -t c | filecheck %s --check-prefix=TEXT
// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false}" | filecheck %s --check-prefix=WIDENED

// Rows whose pairs are neighbours are read as they are; the panel's are made of two rows of it.
// CHECK: @product {{.*}}schedule = "pair k as k; split j = {{.*}}; tile b_pair over k jj as pk pj;
// WIDENED: @product {{.*}}schedule = "contract; {{.*}}tile b_wide over k jj as pk pj;
// APPLIED-LABEL: @product
// APPLIED: %k = uloop.range 32 reduce
// APPLIED: %[[low:.*]] = uloop.load %x[%i0 * 6 + %i1, %k * 2] : memref<64x64xbf16>
// APPLIED: uloop.pair %{{.*}}, %{{.*}} : bf16
// APPLIED: uloop.tile %{{.*}} over (%pk, %{{.*}}) local : memref<32x{{.*}}xi32>
// APPLIED: uloop.reduce dot %{{.*}}, %{{.*}} over (%k) : i32 -> f32
// LOOPS-LABEL: @product
// LOOPS: arith.extui %{{.*}} : vector<16xi16> to vector<16xi32>
// LOOPS: arith.shli %{{.*}} : vector<16xi32>
// LOOPS: vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// LOOPS: x86vector.avx512.dot %{{.*}}, %{{.*}}, %{{.*}} : vector<32xbf16> -> vector<16xf32>
// TEXT: #if defined(__AVX512BF16__)
// TEXT-NEXT: __asm__("{{.}}vdpbf16ps %2, %1, %0|vdpbf16ps %0, %1, %2}" : "+v"(sum) : "v"(a), "v"(b));
// TEXT: = dot_f32x16(
ukernel.kernel @product ins(%x : memref<64x64xbf16>, %y : memref<64x64xbf16>) outs(%o : memref<64x64xbf16>) {
  %i = uloop.range 64
  %j = uloop.range 64
  %k = uloop.range 64 reduce
  %a = uloop.load %x[%i, %k] : memref<64x64xbf16>
  %b = uloop.load %y[%k, %j] : memref<64x64xbf16>
  %p = arith.mulf %a, %b : bf16
  %w = arith.extf %p : bf16 to f32
  %s = uloop.reduce add %w over (%k) : f32
  %t = arith.truncf %s : f32 to bf16
  uloop.store %t, %o[%i, %j] : memref<64x64xbf16>
}

// Of an odd number the last pair has one number and a zero; rows are paired apart, by vectors.
// CHECK: @odd {{.*}}schedule = "pair k as k; {{.*}}tile b_pair over k jj as pk pj; {{.*}}tile a_pair over i1 k as qi1 qk; split qk = qk0 qk1:16:vector;
// APPLIED-LABEL: @odd
// APPLIED: %k = uloop.range 33 reduce
// APPLIED: uloop.load %y[%pk * 2 + 1, %{{.*}}] where (63 - %pk * 2) : memref<65x64xbf16>
ukernel.kernel @odd ins(%x : memref<64x65xbf16>, %y : memref<65x64xbf16>) outs(%o : memref<64x64xbf16>) {
  %i = uloop.range 64
  %j = uloop.range 64
  %k = uloop.range 65 reduce
  %a = uloop.load %x[%i, %k] : memref<64x65xbf16>
  %b = uloop.load %y[%k, %j] : memref<65x64xbf16>
  %p = arith.mulf %a, %b : bf16
  %w = arith.extf %p : bf16 to f32
  %s = uloop.reduce add %w over (%k) : f32
  %t = arith.truncf %s : f32 to bf16
  uloop.store %t, %o[%i, %j] : memref<64x64xbf16>
}

// Rows of a transposed factor: two vectors of neighbours make a vector of pairs.
// CHECK: @turned {{.*}}schedule = "pair k as k; {{.*}}tile a_pair over i1 k as qi1 qk; layout a_pair qk qi1; mark qi1 vector;
ukernel.kernel @turned ins(%x : memref<64x64xbf16>, %y : memref<64x64xbf16>) outs(%o : memref<64x64xbf16>) {
  %i = uloop.range 64
  %j = uloop.range 64
  %k = uloop.range 64 reduce
  %a = uloop.load %x[%k, %i] : memref<64x64xbf16>
  %b = uloop.load %y[%k, %j] : memref<64x64xbf16>
  %p = arith.mulf %a, %b : bf16
  %w = arith.extf %p : bf16 to f32
  %s = uloop.reduce add %w over (%k) : f32
  %t = arith.truncf %s : f32 to bf16
  uloop.store %t, %o[%i, %j] : memref<64x64xbf16>
}

// Few rows, and halves of the other type, are widened.
// CHECK: @few {{.*}}schedule = "contract;
ukernel.kernel @few ins(%x : memref<4x64xbf16>, %y : memref<64x64xbf16>) outs(%o : memref<4x64xbf16>) {
  %i = uloop.range 4
  %j = uloop.range 64
  %k = uloop.range 64 reduce
  %a = uloop.load %x[%i, %k] : memref<4x64xbf16>
  %b = uloop.load %y[%k, %j] : memref<64x64xbf16>
  %p = arith.mulf %a, %b : bf16
  %w = arith.extf %p : bf16 to f32
  %s = uloop.reduce add %w over (%k) : f32
  %t = arith.truncf %s : f32 to bf16
  uloop.store %t, %o[%i, %j] : memref<4x64xbf16>
}

// CHECK: @other {{.*}}schedule = "contract;
ukernel.kernel @other ins(%x : memref<64x64xf16>, %y : memref<64x64xf16>) outs(%o : memref<64x64xf16>) {
  %i = uloop.range 64
  %j = uloop.range 64
  %k = uloop.range 64 reduce
  %a = uloop.load %x[%i, %k] : memref<64x64xf16>
  %b = uloop.load %y[%k, %j] : memref<64x64xf16>
  %p = arith.mulf %a, %b : f16
  %w = arith.extf %p : f16 to f32
  %s = uloop.reduce add %w over (%k) : f32
  %t = arith.truncf %s : f32 to f16
  uloop.store %t, %o[%i, %j] : memref<64x64xf16>
}
