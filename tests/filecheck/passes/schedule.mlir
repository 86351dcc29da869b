// RUN: uopc-opt %s -p "schedule{target=avx2}" | filecheck %s
// RUN: uopc-opt %s -p "schedule{target=avx512}" | filecheck %s --check-prefix=WIDE
// RUN: uopc-opt %s -p "schedule{target=portable}" | filecheck %s --check-prefix=PLAIN
// RUN: uopc-opt %s -p "schedule{level=0}" | filecheck %s --check-prefix=PLAIN

// PLAIN: ukernel.kernel @product ins(%A : memref<517x253xf32>, %B : memref<253x389xf32>) outs(%C : memref<517x389xf32>) {
// PLAIN: ukernel.kernel @rows ins(%x : memref<4x640xf32>) outs(%o : memref<4xf32>) {

// A product whose second factor's columns are neighbours: it is packed, 6 rows read it at once.
// CHECK: @product {{.*}}schedule = "contract; split j = j0 jj:16; tile B_at over k jj as pk pj; split jj = j1:unroll j2:8:vector; split pj = pj1:unroll pj2:8:vector; split i = i0 i1:6:unroll; order j0 pk i0 k"
// WIDE: @product {{.*}}schedule = "contract; split j = j0 jj:32; tile B_at over k jj as pk pj; split jj = j1:unroll j2:16:vector; split pj = pj1:unroll pj2:16:vector; split i = i0 i1:12:unroll; order j0 pk i0 k"
ukernel.kernel @product ins(%A : memref<517x253xf32>, %B : memref<253x389xf32>) outs(%C : memref<517x389xf32>) {
  %i = uloop.range 517
  %j = uloop.range 389
  %k = uloop.range 253 reduce
  %a = uloop.load %A[%i, %k] : memref<517x253xf32>
  %0 = uloop.load %B[%k, %j] : memref<253x389xf32>
  %p = arith.mulf %a, %0 : f32
  %c = uloop.reduce add %p over (%k) : f32
  uloop.store %c, %C[%i, %j] : memref<517x389xf32>
}

// A sum along rows: four vectors of partial sums.
// CHECK: @rows {{.*}}schedule = "split k = k0 k1:4:unroll k2:8:vector"
// WIDE: @rows {{.*}}schedule = "split k = k0 k1:4:unroll k2:16:vector"
ukernel.kernel @rows ins(%x : memref<4x640xf32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %k = uloop.range 640 reduce
  %v = uloop.load %x[%i, %k] : memref<4x640xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[%i] : memref<4xf32>
}

// A sum down columns: as many vectors of columns at a time as three quarters of the registers hold.
// CHECK: @columns {{.*}}schedule = "split j = j0 j1:10:unroll j2:8:vector; order j0 k"
ukernel.kernel @columns ins(%x : memref<640x640xf32>) outs(%o : memref<640xf32>) {
  %j = uloop.range 640
  %k = uloop.range 640 reduce
  %v = uloop.load %x[%k, %j] : memref<640x640xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[%j] : memref<640xf32>
}

// A kernel that somebody has scheduled keeps its schedule.
// CHECK: @mine {{.*}}schedule = "split k = k0 k1:2:unroll"
ukernel.kernel @mine ins(%x : memref<640xf32>) outs(%o : memref<f32>) attributes {schedule = "split k = k0 k1:2:unroll"} {
  %k = uloop.range 640 reduce
  %v = uloop.load %x[%k] : memref<640xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[] : memref<f32>
}

// No rule for it: plain loops.
// CHECK: ukernel.kernel @chain ins(%x : memref<640xf32>) outs(%o : memref<640xf32>) {
// WIDE: ukernel.kernel @chain ins(%x : memref<640xf32>) outs(%o : memref<640xf32>) {
ukernel.kernel @chain ins(%x : memref<640xf32>) outs(%o : memref<640xf32>) {
  %i = uloop.range 640
  %v = uloop.load %x[%i] : memref<640xf32>
  %w = arith.addf %v, %v : f32
  uloop.store %w, %o[%i] : memref<640xf32>
}

// An exponential is lanes where rows are whole vectors; other functions and rows are left to the
// compiler.
// CHECK: @exponential {{.*}}schedule = "split j = j0 j1:2:unroll j2:8:vector"
// WIDE: @exponential {{.*}}schedule = "split j = j0 j2:16:vector"
ukernel.kernel @exponential ins(%x : memref<3x48xf32>) outs(%o : memref<3x48xf32>) {
  %i = uloop.range 3
  %j = uloop.range 48
  %v = uloop.load %x[%i, %j] : memref<3x48xf32>
  %w = math.exp %v : f32
  uloop.store %w, %o[%i, %j] : memref<3x48xf32>
}
// CHECK: ukernel.kernel @odd ins(%x : memref<3x50xf32>) outs(%o : memref<3x50xf32>) {
ukernel.kernel @odd ins(%x : memref<3x50xf32>) outs(%o : memref<3x50xf32>) {
  %i = uloop.range 3
  %j = uloop.range 50
  %v = uloop.load %x[%i, %j] : memref<3x50xf32>
  %w = math.exp %v : f32
  uloop.store %w, %o[%i, %j] : memref<3x50xf32>
}

// One range that threads share and lanes cut: parts of whole vectors.
// CHECK: @long {{.*}}schedule = "split i = it:thread i0:4096 i1:2:unroll i2:8:vector; stream"
// WIDE: @long {{.*}}schedule = "split i = it:thread i0:2048 i1:2:unroll i2:16:vector; stream"
ukernel.kernel @long ins(%x : memref<16777216xf32>) outs(%o : memref<16777216xf32>) attributes {bytes = 134217728 : i64} {
  %i = uloop.range 16777216
  %v = uloop.load %x[%i] : memref<16777216xf32>
  %w = arith.addf %v, %v : f32
  uloop.store %w, %o[%i] : memref<16777216xf32>
}

// A transpose goes square by square: read along rows, exchanged in registers.
// CHECK: @transpose {{.*}}schedule = "split i = i0 i1:8:unroll; split j = j0 j1:8:vector; tile v over i1 j1 as p q in register; mark q unroll; mark p vector; order i0 j0"
// WIDE: @transpose {{.*}}schedule = "split i = i0 i1:16:unroll; split j = j0 j1:16:vector; tile v over i1 j1 as p q in register; mark q unroll; mark p vector; order i0 j0"
ukernel.kernel @transpose ins(%x : memref<1024x4080xf32>) outs(%o : memref<4080x1024xf32>) {
  %i = uloop.range 4080
  %j = uloop.range 1024
  %v = uloop.load %x[%j, %i] : memref<1024x4080xf32>
  uloop.store %v, %o[%i, %j] : memref<4080x1024xf32>
}

// One of 16 MiB is written past the caches, two lines of a row at a time, and reads whole rows.
// CHECK: @large {{.*}}schedule = "split i = i0 i1:8:unroll; split j = j0 jb:2 j1:8:vector; tile v over i1 j1 as p q in register; mark q unroll; mark p vector; order j0 i0 jb; stream"
// WIDE: @large {{.*}}schedule = "split i = i0 i1:16:unroll; split j = j0 jb:2 j1:16:vector; tile v over i1 j1 as p q in register; mark q unroll; mark p vector; order j0 i0 jb; stream"
ukernel.kernel @large ins(%x : memref<1024x4096xf32>) outs(%o : memref<4096x1024xf32>) {
  %i = uloop.range 4096
  %j = uloop.range 1024
  %v = uloop.load %x[%j, %i] : memref<1024x4096xf32>
  uloop.store %v, %o[%i, %j] : memref<4096x1024xf32>
}

// A product of halves: the panel holds them as f32, and so do the rows that it meets.
// CHECK: @halves {{.*}}schedule = "contract; split j = j0 jj:16; tile B_at_wide over k jj as pk pj; split jj = j1:unroll j2:8:vector; split pj = pj1:unroll pj2:8:vector; split i = i0 i1:6:unroll; tile A_at_wide over i1 k as qi1 qk; split qk = qk0 qk1:8:vector; order j0 pk i0 qk0 k"
ukernel.kernel @halves ins(%A : memref<512x256xf16>, %B : memref<256x384xf16>) outs(%C : memref<512x384xf16>) {
  %i = uloop.range 512
  %j = uloop.range 384
  %k = uloop.range 256 reduce
  %0 = uloop.load %A[%i, %k] : memref<512x256xf16>
  %1 = uloop.load %B[%k, %j] : memref<256x384xf16>
  %p = arith.mulf %0, %1 : f16
  %w = arith.extf %p : f16 to f32
  %c = uloop.reduce add %w over (%k) : f32
  %h = arith.truncf %c : f32 to f16
  uloop.store %h, %C[%i, %j] : memref<512x384xf16>
}

// The position of a row's extreme: lanes too, since of equal elements the smaller position wins.
// CHECK: @argmax {{.*}}schedule = "split k = k0 k1:4:unroll k2:8:vector"
ukernel.kernel @argmax ins(%x : memref<4x640xf32>) outs(%o : memref<4xi32>) {
  %i = uloop.range 4
  %k = uloop.range 640 reduce
  %v = uloop.load %x[%i, %k] : memref<4x640xf32>
  %p = uloop.index %k : i32
  %0 = arith.constant 0xff800000 : f32
  %1 = arith.constant 0 : i32
  %m, %a = uloop.reduce %v, %p init %0, %1 over (%k) {
  ^bb0(%best: f32, %at: i32, %y: f32, %q: i32):
    %2 = arith.cmpf ugt, %y, %best : f32
    %3 = arith.cmpf ord, %best, %best : f32
    %4 = arith.andi %2, %3 : i1
    %5 = arith.select %4, %y, %best : f32
    %6 = arith.select %4, %q, %at : i32
    uloop.yield %5, %6 : f32, i32
  } : f32, i32 -> f32, i32
  uloop.store %a, %o[%i] : memref<4xi32>
}

// The last extreme, not the first: another region, whose order is its author's.
// CHECK: ukernel.kernel @last ins(%x : memref<4x640xf32>) outs(%o : memref<4xi32>) {
ukernel.kernel @last ins(%x : memref<4x640xf32>) outs(%o : memref<4xi32>) {
  %i = uloop.range 4
  %k = uloop.range 640 reduce
  %v = uloop.load %x[%i, %k] : memref<4x640xf32>
  %p = uloop.index %k : i32
  %0 = arith.constant 0xff800000 : f32
  %1 = arith.constant 0 : i32
  %m, %a = uloop.reduce %v, %p init %0, %1 over (%k) {
  ^bb0(%best: f32, %at: i32, %y: f32, %q: i32):
    %2 = arith.cmpf oge, %y, %best : f32
    %5 = arith.select %2, %y, %best : f32
    %6 = arith.select %2, %q, %at : i32
    uloop.yield %5, %6 : f32, i32
  } : f32, i32 -> f32, i32
  uloop.store %a, %o[%i] : memref<4xi32>
}
