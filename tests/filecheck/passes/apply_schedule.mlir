// RUN: uopc-opt %s -p apply-schedule --split-input-file | filecheck %s

// A product with a register tile of 6 rows by 2 vectors, and its second factor packed.
ukernel.kernel @product ins(%A : memref<517x253xf32>, %B : memref<253x389xf32>) outs(%C : memref<517x389xf32>) attributes {schedule = "contract; split j = j0 jj:16; tile b over k jj as pk pj; split jj = j1:unroll j2:8:vector; split pj = p1:unroll p2:8:vector; split i = i0 i1:6:unroll; order j0 pk i0 k"} {
  %i = uloop.range 517
  %j = uloop.range 389
  %k = uloop.range 253 reduce
  %a = uloop.load %A[%i, %k] : memref<517x253xf32>
  %b = uloop.load %B[%k, %j] : memref<253x389xf32>
  %p = arith.mulf %a, %b : f32
  %c = uloop.reduce add %p over (%k) : f32
  uloop.store %c, %C[%i, %j] : memref<517x389xf32>
}

// CHECK-LABEL: ukernel.kernel @product ins(%A : memref<517x253xf32>, %B : memref<253x389xf32>) outs(%C : memref<517x389xf32>) {
// CHECK-NEXT: %j0 = uloop.range 25
// CHECK-NEXT: %pk = uloop.range 253
// CHECK-NEXT: %i0 = uloop.range 87
// CHECK-NEXT: %k = uloop.range 253 reduce
// CHECK-NEXT: %i1 = uloop.range 6 unroll
// CHECK-NEXT: %j1 = uloop.range 2 unroll
// CHECK-NEXT: %j2 = uloop.range 8 vector
// CHECK-NEXT: %p1 = uloop.range 2 unroll
// CHECK-NEXT: %p2 = uloop.range 8 vector
// CHECK-NEXT: %a = uloop.load %A[%i0 * 6 + %i1, %k] : memref<517x253xf32>
// CHECK-NEXT: [[LOAD:%.*]] = uloop.load %B[%pk, %j0 * 16 + %p1 * 8 + %p2] : memref<253x389xf32>
// CHECK-NEXT: %b = uloop.tile [[LOAD]] over (%pk, %p1, %p2) local : memref<253x2x8xf32>
// CHECK-NEXT: [[READ:%.*]] = uloop.read %b[%k, %j1, %j2] : memref<253x2x8xf32>
// CHECK-NEXT: %c = uloop.reduce fma %a, [[READ]] over (%k) : f32
// CHECK-NEXT: uloop.store %c, %C[%i0 * 6 + %i1, %j0 * 16 + %j1 * 8 + %j2] : memref<517x389xf32>
// CHECK-DAG: uloop.guard (%j0 * -16 - %j1 * 8 - %j2 + 388)
// CHECK-DAG: uloop.guard (%j0 * -16 - %p1 * 8 - %p2 + 388)
// CHECK-DAG: uloop.guard (%i0 * -6 - %i1 + 516)

// -----

// A split of a reduction: 8 partial sums along the lanes, 2 copies of them, then trees.
ukernel.kernel @rows ins(%x : memref<4x64xf32>) outs(%o : memref<4xf32>) attributes {schedule = "split k = k0 k1:2:unroll k2:8:vector"} {
  %i = uloop.range 4
  %k = uloop.range 64 reduce
  %v = uloop.load %x[%i, %k] : memref<4x64xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[%i] : memref<4xf32>
}

// CHECK-LABEL: ukernel.kernel @rows
// CHECK: [[V:%.*]] = uloop.load %x[%i, %k0 * 16 + %k1 * 8 + %k2] : memref<4x64xf32>
// CHECK-NEXT: [[A:%.*]] = uloop.reduce add [[V]] over (%k0) : f32
// CHECK-NEXT: [[B:%.*]] = uloop.reduce add [[A]] over (%k1) : f32
// CHECK-NEXT: [[C:%.*]] = uloop.reduce add [[B]] over (%k2) : f32
// CHECK-NEXT: uloop.store [[C]], %o[%i] : memref<4xf32>
// CHECK-NOT: uloop.guard

// -----

// One accumulator in order, where the split says so.
ukernel.kernel @chain ins(%x : memref<60xf32>) outs(%o : memref<f32>) attributes {schedule = "split k = k0 k1:4:unroll chain"} {
  %k = uloop.range 60 reduce
  %v = uloop.load %x[%k] : memref<60xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[] : memref<f32>
}

// CHECK-LABEL: ukernel.kernel @chain
// CHECK: uloop.reduce add {{%.*}} over (%k0, %k1) : f32
// CHECK-NEXT: uloop.store

// -----

// Two ranges as one, a tile that captures a loop's index, and its dimensions turned.
ukernel.kernel @moves ins(%x : memref<4x6xf32>) outs(%o : memref<4x6xf32>) attributes {schedule = "tile v over j as p; capture v i as q; layout v p q; order i j q p"} {
  %i = uloop.range 4
  %j = uloop.range 6
  %v = uloop.load %x[%i, %j] : memref<4x6xf32>
  uloop.store %v, %o[%i, %j] : memref<4x6xf32>
}

// CHECK-LABEL: ukernel.kernel @moves
// CHECK: %v = uloop.tile {{%.*}} over (%p, %q) local : memref<6x4xf32>
// CHECK-NEXT: {{%.*}} = uloop.read %v[%j, %i] : memref<6x4xf32>

// -----

ukernel.kernel @merged ins(%x : memref<4x6xf32>) outs(%o : memref<4x6xf32>) attributes {schedule = "merge i j as m; mark m thread"} {
  %i = uloop.range 4
  %j = uloop.range 6
  %v = uloop.load %x[%i, %j] : memref<4x6xf32>
  uloop.store %v, %o[%i, %j] : memref<4x6xf32>
}

// CHECK-LABEL: ukernel.kernel @merged
// CHECK: %m = uloop.range 24 thread
// CHECK-NEXT: %v = uloop.load %x[%m floordiv 6, %m mod 6] : memref<4x6xf32>

// -----

ukernel.kernel @fused ins(%x : memref<6xf32>, %y : memref<6xf32>) outs(%o : memref<6xf32>, %u : memref<6xf32>) attributes {schedule = "fuse j into i"} {
  %i = uloop.range 6
  %v = uloop.load %x[%i] : memref<6xf32>
  uloop.store %v, %o[%i] : memref<6xf32>
  %j = uloop.range 6
  %w = uloop.load %y[%j] : memref<6xf32>
  uloop.store %w, %u[%j] : memref<6xf32>
}

// CHECK-LABEL: ukernel.kernel @fused
// CHECK: uloop.store %v, %o[%i] : memref<6xf32>
// CHECK: uloop.store %w, %u[%i] : memref<6xf32>

// -----

// A product of halves: both factors are widened, the packed ones once.
ukernel.kernel @halves ins(%A : memref<32x64xf16>, %B : memref<64x16xf16>) outs(%C : memref<32x16xf16>) attributes {schedule = "contract; tile b_wide over k j as pk pj; split j = j0 j1:16:vector; split pj = pj0 pj1:16:vector; order j0 pk i k"} {
  %i = uloop.range 32
  %j = uloop.range 16
  %k = uloop.range 64 reduce
  %a = uloop.load %A[%i, %k] : memref<32x64xf16>
  %b = uloop.load %B[%k, %j] : memref<64x16xf16>
  %p = arith.mulf %a, %b : f16
  %w = arith.extf %p : f16 to f32
  %c = uloop.reduce add %w over (%k) : f32
  %h = arith.truncf %c : f32 to f16
  uloop.store %h, %C[%i, %j] : memref<32x16xf16>
}

// CHECK-LABEL: ukernel.kernel @halves
// CHECK: %a_wide = arith.extf %a : f16 to f32
// CHECK: [[B:%.*]] = arith.extf %b : f16 to f32
// CHECK-NEXT: %b_wide = uloop.tile [[B]] over (%pk, %pj0, %pj1) local : memref<64x1x16xf32>
// CHECK-NEXT: [[R:%.*]] = uloop.read %b_wide[%k, 0, %j0 * 16 + %j1] : memref<64x1x16xf32>
// CHECK-NEXT: uloop.reduce fma %a_wide, [[R]] over (%k) : f32

// -----

// A range ends where its steps add nothing; a tile has more places than it fills.
ukernel.kernel @triangle ins(%x : memref<20x20xf32>) outs(%o : memref<20xf32>) attributes {schedule = "split k = k0 k1:8; bound k0 = min(i floordiv 8 + 1, 3); tile v over k1 as p; pad v p to 12"} {
  %i = uloop.range 20
  %k = uloop.range 20 reduce
  %v = uloop.load %x[%i, %k] where (%i - %k) : memref<20x20xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[%i] : memref<20xf32>
}

// CHECK-LABEL: ukernel.kernel @triangle
// CHECK: %k0 = uloop.range %i floordiv 8 + 1 max 3 reduce
// CHECK: uloop.tile {{%.*}} over (%p) local : memref<12xf32>

// -----

ukernel.kernel @least ins(%x : memref<36x36xf32>) outs(%o : memref<36xf32>) attributes {schedule = "split i = i0 i1:16; split k = k0 k1:8; order i0 i1; bound k0 = min(i0 * 2 + 2, 5)"} {
  %i = uloop.range 36
  %k = uloop.range 36 reduce
  %v = uloop.load %x[%i, %k] where (%i - %k) : memref<36x36xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[%i] : memref<36xf32>
}

// CHECK-LABEL: ukernel.kernel @least
// CHECK: %k0 = uloop.range min(5, %i0 * 2 + 2) max 5 reduce

// -----

// Lanes of an argmax each keep the first of their own; at the end the smaller position wins.
ukernel.kernel @argmax ins(%x : memref<4x64xi32>) outs(%o : memref<4xi32>) attributes {schedule = "split k = k0 k2:8:vector"} {
  %i = uloop.range 4
  %k = uloop.range 64 reduce
  %v = uloop.load %x[%i, %k] : memref<4x64xi32>
  %p = uloop.index %k : i32
  %0 = arith.constant -2147483648 : i32
  %1 = arith.constant 0 : i32
  %m, %a = uloop.reduce %v, %p init %0, %1 over (%k) {
  ^bb0(%best: i32, %at: i32, %y: i32, %q: i32):
    %2 = arith.cmpi sgt, %y, %best : i32
    %3 = arith.select %2, %y, %best : i32
    %4 = arith.select %2, %q, %at : i32
    uloop.yield %3, %4 : i32, i32
  } : i32, i32 -> i32, i32
  uloop.store %a, %o[%i] : memref<4xi32>
}

// CHECK-LABEL: ukernel.kernel @argmax
// CHECK: %p = uloop.index %k0 * 8 + %k2 : i32
// CHECK: [[M:%.*]], [[A:%.*]] = uloop.reduce %v, %p init {{%.*}}, {{%.*}} over (%k0) {
// CHECK: %m, %a = uloop.reduce [[M]], [[A]] init {{%.*}}, {{%.*}} over (%k2) {
// CHECK-NEXT: ^bb0([[BEST:%.*]]: i32, [[AT:%.*]]: i32, [[X:%.*]]: i32, [[K:%.*]]: i32):
// CHECK-NEXT: [[BETTER:%.*]] = arith.cmpi sgt, [[X]], [[BEST]] : i32
// CHECK-NEXT: [[SAME:%.*]] = arith.cmpi eq, [[X]], [[BEST]] : i32
// CHECK-NEXT: [[BEFORE:%.*]] = arith.cmpi slt, [[K]], [[AT]] : i32
// CHECK-NEXT: [[FIRST:%.*]] = arith.andi [[SAME]], [[BEFORE]] : i1
// CHECK-NEXT: arith.ori [[BETTER]], [[FIRST]] : i1

// A halo: of an image under a window one place for each sum, read by several steps.
// CHECK-LABEL: ukernel.kernel @halo
// CHECK: %p = uloop.range 6
// CHECK: %q = uloop.range 18
// CHECK: %[[v:.*]] = uloop.load %x[%i0 * 4 + %p, %q] where (%i0 * -4 - %p + 11) : memref<12x18xf32>
// CHECK: %a = uloop.tile %[[v]] over (%p, %q) local : memref<6x18xf32>
// CHECK: uloop.read %a[%i1 + %k, %j + %l] : memref<6x18xf32>
// CHECK: uloop.guard (%i0 * -4 - %i1 + 9)
ukernel.kernel @halo ins(%x : memref<12x18xf32>) outs(%o : memref<10x16xf32>) attributes {schedule = "split i = i0 i1:4; tile a over i1+k j+l as p q; order i0 p q i1 j"} {
  %i = uloop.range 10
  %j = uloop.range 16
  %k = uloop.range 3 reduce
  %l = uloop.range 3 reduce
  %a = uloop.load %x[%i + %k, %j + %l] : memref<12x18xf32>
  %s = uloop.reduce add %a over (%k, %l) : f32
  uloop.store %s, %o[%i, %j] : memref<10x16xf32>
}
