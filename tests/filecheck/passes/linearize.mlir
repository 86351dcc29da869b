// RUN: uopc-opt %s -p linearize --split-input-file | filecheck %s

// The load that does not depend on the inner loop is outside of it; the accumulator lives in the
// loop that its index mentions; sibling reductions run in sibling loops of the row's loop.
ukernel.kernel @softmax ins(%x : memref<4x8xf32>, %b : memref<4xf32>) outs(%o : memref<4x8xf32>) {
  %i = uloop.range 4
  %j = uloop.range 8
  %k = uloop.range 8 reduce
  %l = uloop.range 8 reduce
  %v = uloop.load %x[%i, %j] : memref<4x8xf32>
  %w = uloop.load %x[%i, %k] : memref<4x8xf32>
  %m = uloop.reduce max %w over (%k) : f32
  %u = uloop.load %x[%i, %l] : memref<4x8xf32>
  %bias = uloop.load %b[%i] : memref<4xf32>
  %d = arith.subf %u, %m : f32
  %s = uloop.reduce add %d over (%l) : f32
  %e = arith.subf %v, %m : f32
  %q = arith.divf %e, %s : f32
  %r = arith.addf %q, %bias : f32
  uloop.store %r, %o[%i, %j] : memref<4x8xf32>
}

// CHECK-LABEL: func.func private @softmax(%x: memref<4x8xf32> {llvm.noalias, llvm.readonly}, %b: memref<4xf32> {llvm.noalias, llvm.readonly}, %o: memref<4x8xf32> {llvm.noalias})
// CHECK: scf.for %i =
// CHECK-NEXT: %m = scf.for %k = {{.*}} iter_args([[ACC:%.*]] = {{%.*}}) -> (f32) {
// CHECK-NEXT: [[W:%.*]] = memref.load %x[%i, %k] : memref<4x8xf32>
// CHECK-NEXT: [[M:%.*]] = arith.maximumf [[ACC]], [[W]] : f32
// CHECK-NEXT: scf.yield [[M]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: %s = scf.for %l = {{.*}} -> (f32) {
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: %bias = memref.load %b[%i] : memref<4xf32>
// CHECK-NEXT: scf.for %j =
// CHECK-NOT: memref.load %b
// CHECK: memref.store {{%.*}}, %o[%i, %j] : memref<4x8xf32>
// CHECK-NOT: uloop

// -----

// A tile is filled in the loop whose index it depends on, before it is read.
ukernel.kernel @tile ins(%x : memref<4x8xf32>) outs(%o : memref<4x8xf32>) {
  %i = uloop.range 4
  %p = uloop.range 8
  %j = uloop.range 8
  %v = uloop.load %x[%i, %p] : memref<4x8xf32>
  %t = uloop.tile %v over (%p) local : memref<8xf32>
  %w = uloop.read %t[7 - %j] : memref<8xf32>
  uloop.store %w, %o[%i, %j] : memref<4x8xf32>
}

// CHECK-LABEL: func.func private @tile
// CHECK: scf.for %i =
// CHECK-NEXT: %t = memref.alloca() : memref<8xf32>
// CHECK-NEXT: scf.for %p =
// CHECK: memref.store {{%.*}}, %t[%p] : memref<8xf32>
// CHECK: scf.for %j =
// CHECK: [[AT:%.*]] = arith.subi {{%.*}}, %j : index
// CHECK-NEXT: [[W:%.*]] = memref.load %t[[[AT]]] : memref<8xf32>
// CHECK-NEXT: memref.store [[W]], %o[%i, %j] : memref<4x8xf32>

// -----

// A guard over loops is one test around their body.
ukernel.kernel @guard ins(%x : memref<10xf32>) outs(%o : memref<10xf32>) {
  %i0 = uloop.range 3
  %i1 = uloop.range 4
  %v = uloop.load %x[%i0 * 4 + %i1] : memref<10xf32>
  uloop.store %v, %o[%i0 * 4 + %i1] : memref<10xf32>
  uloop.guard (9 - %i0 * 4 - %i1)
}

// CHECK-LABEL: func.func private @guard
// CHECK: scf.for %i0 =
// CHECK: scf.for %i1 =
// CHECK: [[IN:%.*]] = arith.cmpi
// CHECK-NEXT: scf.if [[IN]] {
// CHECK: memref.load %x
// CHECK: memref.store
// CHECK-NEXT: }

// -----

// Copies and lanes: whole steps first, then the rest with what it needs of them.
ukernel.kernel @lanes ins(%x : memref<21xf32>) outs(%o : memref<21xf32>) {
  %i0 = uloop.range 2
  %i1 = uloop.range 2 unroll
  %i2 = uloop.range 8 vector
  %v = uloop.load %x[%i0 * 16 + %i1 * 8 + %i2] : memref<21xf32>
  %w = arith.addf %v, %v : f32
  uloop.store %w, %o[%i0 * 16 + %i1 * 8 + %i2] : memref<21xf32>
  uloop.guard (20 - %i0 * 16 - %i1 * 8 - %i2)
}

// CHECK-LABEL: func.func private @lanes
// CHECK: scf.for %i0 =
// CHECK-COUNT-2: vector.store {{%.*}}, %o[{{%.*}}] : memref<21xf32>, vector<8xf32>
// CHECK-NEXT: }
// CHECK: [[MASK:%.*]] = vector.create_mask {{%.*}} : vector<8xi1>
// CHECK: vector.maskedload %x[{{%.*}}], [[MASK]]
// CHECK: vector.maskedstore %o[{{%.*}}], [[MASK]]
// CHECK-NOT: vector.maskedstore
// CHECK: func.return

// -----

// A reduction over copies and lanes is a tree.
ukernel.kernel @tree ins(%x : memref<64xf32>) outs(%o : memref<f32>) {
  %k0 = uloop.range 4
  %k1 = uloop.range 2 unroll
  %k2 = uloop.range 8 vector
  %v = uloop.load %x[%k0 * 16 + %k1 * 8 + %k2] : memref<64xf32>
  %a = uloop.reduce add %v over (%k0) : f32
  %b = uloop.reduce add %a over (%k1) : f32
  %c = uloop.reduce add %b over (%k2) : f32
  uloop.store %c, %o[] : memref<f32>
}

// CHECK-LABEL: func.func private @tree
// CHECK: [[P:%.*]], [[Q:%.*]] = scf.for %k0 = {{.*}} -> (vector<8xf32>, vector<8xf32>) {
// CHECK: }
// CHECK-NEXT: %b = arith.addf [[P]], [[Q]] : vector<8xf32>
// CHECK-NEXT: vector.shuffle %b, %b [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
// CHECK-NEXT: vector.shuffle %b, %b [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
// CHECK-NEXT: arith.addf {{%.*}}, {{%.*}} : vector<4xf32>
// CHECK: %c = vector.extract {{%.*}}[0] : f32 from vector<1xf32>

// -----

// Threads share the outermost loop: one function runs a part, another one all of them.
ukernel.kernel @parts ins(%x : memref<4x8xf32>) outs(%o : memref<4x8xf32>) {
  %i = uloop.range 4 thread
  %j = uloop.range 8
  %v = uloop.load %x[%i, %j] : memref<4x8xf32>
  uloop.store %v, %o[%i, %j] : memref<4x8xf32>
}

// CHECK-LABEL: func.func private @parts$part(%i: index, %x: memref<4x8xf32>
// CHECK: scf.for %j =
// CHECK: memref.store {{%.*}}, %o[%i, %j]
// CHECK-LABEL: func.func private @parts(%x: memref<4x8xf32>
// CHECK: "scf.parallel"
// CHECK: func.call @parts$part(%i, %x, %o)

// -----

// As many parts as a size says; those that need no guard are told apart in the part.
ukernel.kernel @open sizes(%n = n = 0 to 99) ins(%x : memref<?x8xf32> of [n, 8]) outs(%o : memref<?x8xf32> of [n, 8]) {
  %i = uloop.range (%n + 3) floordiv 4 max 25 thread
  %i1 = uloop.range 4 unroll
  %j = uloop.range 8
  %v = uloop.load %x[%i * 4 + %i1, %j] : memref<?x8xf32>
  uloop.store %v, %o[%i * 4 + %i1, %j] : memref<?x8xf32>
  uloop.guard (%n - 1 - %i * 4 - %i1)
}

// CHECK-LABEL: func.func private @open$part(%i: index, %n: index, %x: memref<?x8xf32>
// CHECK: %[[whole:.*]] = arith.divui %n, %{{.*}} : index
// CHECK: arith.cmpi slt, %i, %[[whole]] : index
// CHECK: scf.if
// CHECK-LABEL: func.func private @open(%n: index, %x: memref<?x8xf32>
// CHECK: %[[end:.*]] = arith.divui %{{.*}}, %{{.*}} : index
// CHECK: "scf.parallel"(%{{.*}}, %[[end]], %{{.*}})
// CHECK: func.call @open$part(%i, %n, %x, %o)

// -----

// Several values combined by a region, and an update in order under a condition.
ukernel.kernel @update ins(%x : memref<8xf32>, %at : memref<8xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %zero = arith.constant 0.0 : f32
  uloop.store %zero, %o[%i] : memref<4xf32>
  %k = uloop.range 8
  %v = uloop.load %x[%k] : memref<8xf32>
  %p = uloop.load %at[%k] : memref<8xi32>
  %q = uloop.value %p : i32 in -1 to 4
  uloop.update add %v, %o[%q] where (%q, 3 - %q) : memref<4xf32>
}

// CHECK-LABEL: func.func private @update
// CHECK: scf.for %i =
// CHECK: }
// CHECK: scf.for %k =
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: scf.if {{%.*}} {
// CHECK: memref.load %o
// CHECK: arith.addf
// CHECK: memref.store

// -----

// Conditions stand where their parts are known: the rows' outside of the columns' loop, and what
// joins them there, too. A masked load is an scf.if that gives 0.
ukernel.kernel @masked sizes(%n = n = 1 to 9) ins(%x : memref<?x4xf32> of [n, 4]) outs(%o : memref<?x4xf32> of [n + 2, 4]) {
  %i = uloop.range %n + 2 max 11
  %j = uloop.range 4
  %v = uloop.load %x[%i - 1, %j] where (%i - 1, %n - %i) : memref<?x4xf32>
  %c = uloop.valid (%i - 1, %n - %i)
  %two = arith.constant 2.0 : f32
  %r = arith.select %c, %v, %two : f32
  uloop.store %r, %o[%i, %j] : memref<?x4xf32>
}

// CHECK-LABEL: func.func private @masked(%n: index, %x: memref<?x4xf32>
// CHECK: scf.for %i = {{%.*}} to {{%.*}} step
// CHECK-NEXT: [[ABOVE:%.*]] = arith.cmpi sge, %i, {{%.*}} : index
// CHECK-NEXT: [[BELOW:%.*]] = arith.cmpi {{s[gl]e}}, {{%.*}}, {{%.*}} : index
// CHECK-NEXT: [[INSIDE:%.*]] = arith.andi [[ABOVE]], [[BELOW]] : i1
// CHECK-NEXT: [[ROW:%.*]] = arith.subi %i, {{%.*}} : index
// CHECK-NEXT: scf.for %j
// CHECK-NEXT: [[V:%.*]] = scf.if [[INSIDE]] -> (f32) {
// CHECK-NEXT:   [[L:%.*]] = memref.load %x[[[ROW]], %j] : memref<?x4xf32
// CHECK-NEXT:   scf.yield [[L]] : f32
// CHECK-NEXT: } else {
// CHECK-NEXT:   scf.yield {{%.*}} : f32
// CHECK-NEXT: }
// CHECK-NEXT: [[R:%.*]] = arith.select [[INSIDE]], [[V]], {{%.*}} : f32
// CHECK-NEXT: memref.store [[R]], %o[%i, %j] : memref<?x4xf32

// -----

// A tile whose range was split is flat where it is read by whole numbers of that range.
// CHECK-LABEL: func.func private @flat_tile
// CHECK: memref.alloca() : memref<8xf32>
// CHECK: vector.store
// CHECK-NOT: arith.divsi
// CHECK-NOT: arith.remsi
ukernel.kernel @flat_tile ins(%x : memref<8xf32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %q0 = uloop.range 2
  %q1 = uloop.range 4 vector
  %k = uloop.range 8 reduce
  %v = uloop.load %x[%q0 * 4 + %q1] : memref<8xf32>
  %t = uloop.tile %v over (%q0, %q1) local : memref<2x4xf32>
  %r = uloop.read %t[%k floordiv 4, %k mod 4] : memref<2x4xf32>
  %s = uloop.reduce add %r over (%k) : f32
  uloop.store %s, %o[%i] : memref<4xf32>
}

// -----

// A length known at the call: whole vectors up to n // 8, then a rest under a prefix mask.
ukernel.kernel @symbolic sizes(%n = n = 0 to 100) ins(%x : memref<?xf32> of [n]) outs(%o : memref<1xf32>) {
  %k0 = uloop.range (%n + 7) floordiv 8 max 13 reduce
  %k1 = uloop.range 8 vector
  %v = uloop.load %x[%k0 * 8 + %k1] : memref<?xf32>
  %a = uloop.reduce add %v over (%k0) : f32
  %s = uloop.reduce add %a over (%k1) : f32
  uloop.store %s, %o[0] : memref<1xf32>
  uloop.guard (%n - %k0 * 8 - %k1 - 1)
}

// CHECK-LABEL: func.func private @symbolic
// CHECK: [[WHOLE:%.*]] = arith.divui %n, {{%.*}} : index
// CHECK: [[SUM:%.*]] = scf.for %k0 = {{%.*}} to [[WHOLE]] step
// CHECK-NOT: maskedload
// CHECK: vector.load %x
// CHECK: [[END:%.*]] = arith.divui {{%.*}}, {{%.*}} : index
// CHECK: scf.for {{%.*}} = [[WHOLE]] to [[END]] step {{%.*}} iter_args({{%.*}} = [[SUM]])
// CHECK: vector.create_mask
// CHECK: vector.maskedload %x
// CHECK: arith.select

// -----

// A tile in registers is its rows; read along its copies it is transposed by shuffles.
// CHECK-LABEL: func.func private @square
// CHECK-NOT: memref.alloca
// CHECK: [[A:%.*]] = vector.load %x[[[ZERO:%.*]], [[ZERO]]] : memref<2x2xf32>, vector<2xf32>
// CHECK: [[B:%.*]] = vector.load %x[{{%.*}}, [[ZERO]]] : memref<2x2xf32>, vector<2xf32>
// CHECK: [[C:%.*]] = vector.shuffle [[A]], [[B]] [0, 2] : vector<2xf32>, vector<2xf32>
// CHECK: [[D:%.*]] = vector.shuffle [[A]], [[B]] [1, 3] : vector<2xf32>, vector<2xf32>
// CHECK: vector.store [[C]], %o
// CHECK: vector.store [[D]], %o
ukernel.kernel @square ins(%x : memref<2x2xf32>) outs(%o : memref<2x2xf32>) {
  %i = uloop.range 2 unroll
  %j = uloop.range 2 vector
  %p = uloop.range 2 vector
  %q = uloop.range 2 unroll
  %v = uloop.load %x[%q, %p] : memref<2x2xf32>
  %t = uloop.tile %v over (%p, %q) register : memref<2x2xf32>
  %r = uloop.read %t[%i, %j] : memref<2x2xf32>
  uloop.store %r, %o[%i, %j] : memref<2x2xf32>
}
