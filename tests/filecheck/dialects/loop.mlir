// Every op of uloop: both text forms read back to the same, and are printed alike again.
// RUN: uopc-opt %s | filecheck %s
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s

// CHECK-LABEL: ukernel.kernel @all
ukernel.kernel @all sizes(%n = n = 1 to 8)
    ins(%x : memref<?x8xf32> of [n + 1, 8], %p : memref<4xi32>, %s : memref<f32>)
    outs(%o : memref<?xf32> of [n + 1], %q : memref<4xi32>) {
  // CHECK-NEXT: %i = uloop.range %n + 1 max 9
  // CHECK-NEXT: %j = uloop.range 8 vector
  // CHECK-NEXT: %k = uloop.range 4 reduce {note = "inner"}
  // CHECK-NEXT: %u = uloop.range 2 unroll
  // CHECK-NEXT: %t0 = uloop.range %n max 8 thread
  // CHECK-NEXT: %t1 = uloop.range min(%n, %i floordiv 2 + 1) max 5
  // CHECK-NEXT: %z = uloop.range 0 block
  // CHECK-NEXT: %y = uloop.range 1 lane
  %i = uloop.range 1 + %n max 9
  %j = uloop.range 2 * 4 vector
  %k = uloop.range 4 reduce {note = "inner"}
  %u = uloop.range 2 unroll
  %t0 = uloop.range %n max 8 thread
  %t1 = uloop.range min(%n, %i floordiv 2 + 1) max 5
  %z = uloop.range 0 block
  %y = uloop.range 1 lane

  // Expressions: what they are printed as reads back to the same map.
  // CHECK-NEXT: %e0 = uloop.index %i * 2 + %j floordiv 3 - 1 : i32
  // CHECK-NEXT: %e1 = uloop.index 7 - %i : i64
  // CHECK-NEXT: %e2 = uloop.index (%i + %j) mod 3 * 4 : ui8
  // CHECK-NEXT: %e3 = uloop.index %i - (%j + 1) floordiv 2 : i16
  // CHECK-NEXT: %e4 = uloop.index 12 : i8
  // CHECK-NEXT: %e5 = uloop.index %i + %j ceildiv 2 : i32
  // CHECK-NEXT: %e6 = uloop.index %i * -1 + %j : i32
  // CHECK-NEXT: %e7 = uloop.index 8 - %i * 3 : i32
  %e0 = uloop.index 2 * %i + %j floordiv 3 - 1 : i32
  %e1 = uloop.index 7 - %i : i64
  %e2 = uloop.index 4 * ((%i + %j) mod 3) : ui8
  %e3 = uloop.index %i - (%j + 1) floordiv 2 : i16
  %e4 = uloop.index 3 * 4 : i8
  %e5 = uloop.index %i * 1 + %j ceildiv 2 : i32
  %e6 = uloop.index 0 - %i + %j : i32
  %e7 = uloop.index 8 - 3 * %i : i32

  // CHECK-NEXT: %a = uloop.load %x[%i, 7 - %j] : memref<?x8xf32>
  // CHECK-NEXT: %b = uloop.load %x[%i, %j - 1] where (%j - 1, 6 - %i) : memref<?x8xf32>
  // CHECK-NEXT: %c = uloop.load %s[] : memref<f32>
  // CHECK-NEXT: %d = uloop.load %p[%k] {hot} : memref<4xi32>
  // CHECK-NEXT: %a1 = uloop.load %x[%i, %j - 1] where (%j - 1) prefetch [%i + 1, %j - 1] {hot} : memref<?x8xf32>
  %a = uloop.load %x[%i, 7 - %j] : memref<?x8xf32>
  %b = uloop.load %x[%i, %j - 1] where (%j - 1, 6 - %i) : memref<?x8xf32>
  %c = uloop.load %s[] : memref<f32>
  %d = uloop.load %p[%k] {hot} : memref<4xi32>
  %a1 = uloop.load %x[%i, %j - 1] where (%j - 1) prefetch [%i + 1, %j - 1] {hot} : memref<?x8xf32>

  // CHECK-NEXT: %v = uloop.value %d : i32 in 0 to 7
  // CHECK-NEXT: %w = uloop.value %d : i32 unsigned in -1 to %n max 8
  // CHECK-NEXT: %ok = uloop.valid (%v - 1, 8 - %w)
  // CHECK-NEXT: uloop.guard (7 - %i)
  %v = uloop.value %d : i32 in 0 to 7
  %w = uloop.value %d : i32 unsigned in -1 to %n max 8
  %ok = uloop.valid (%v - 1, 8 - %w)
  uloop.guard (7 - %i)

  // CHECK-NEXT: %t = uloop.tile %a over (%i, %j) local : memref<9x8xf32>
  // CHECK-NEXT: %g = uloop.read %t[%i, %j] : memref<9x8xf32>
  // CHECK-NEXT: %t2 = uloop.tile %c over () register : memref<f32>
  // CHECK-NEXT: %h = uloop.read %t2[] : memref<f32>
  %t = uloop.tile %a over (%i, %j) local : memref<9x8xf32>
  %g = uloop.read %t[%i, %j] : memref<9x8xf32>
  %t2 = uloop.tile %c over () register : memref<f32>
  %h = uloop.read %t2[] : memref<f32>

  // CHECK-NEXT: %r0 = uloop.reduce add %a over (%j) : f32
  // CHECK-NEXT: %r1 = uloop.reduce fma %a, %g over (%j, %k) : f32
  // CHECK-NEXT: %r2 = uloop.reduce umax %d over (%k) {note = 1 : i64} : i32
  %r0 = uloop.reduce add %a over (%j) : f32
  %r1 = uloop.reduce fma %a, %g over (%j, %k) : f32
  %r2 = uloop.reduce umax %d over (%k) {note = 1 : i64} : i32

  // CHECK-NEXT: %r3, %r4 = uloop.reduce %a, %e0 init %c, %d over (%j) {
  // CHECK-NEXT: ^bb0(%m0: f32, %m1: i32, %n0: f32, %n1: i32):
  // CHECK-NEXT:   uloop.yield %n0, %n1 : f32, i32
  // CHECK-NEXT: } : f32, i32 -> f32, i32
  %r3, %r4 = uloop.reduce %a, %e0 init %c, %d over (%j) {
  ^bb0(%m0 : f32, %m1 : i32, %n0 : f32, %n1 : i32):
    uloop.yield %n0, %n1 : f32, i32
  } : f32, i32 -> f32, i32

  // CHECK-NEXT: uloop.store %r0, %o[%i] : memref<?xf32>
  // CHECK-NEXT: uloop.store %r3, %o[%i] where (%i - 1) : memref<?xf32>
  // CHECK-NEXT: uloop.update set %d, %q[%k] : memref<4xi32>
  // CHECK-NEXT: uloop.update umin %d, %q[%v] where (%w) {last} : memref<4xi32>
  uloop.store %r0, %o[%i] : memref<?xf32>
  uloop.store %r3, %o[%i] where (%i - 1) : memref<?xf32>
  uloop.update set %d, %q[%k] : memref<4xi32>
  uloop.update umin %d, %q[%v] where (%w) {last} : memref<4xi32>
}
