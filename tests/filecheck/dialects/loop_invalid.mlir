// What each verifier of uloop says. One mistake a chunk.
// RUN: uopc-opt %s --split-input-file --verify-diagnostics > /dev/null

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{a range ends at 0 to 281474976710656, got -1}}
  %j = uloop.range -1
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{a range whose end is not a number needs 'max N'}}
  %j = uloop.range %i
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{the end of a range of kind vector is a number}}
  %j = uloop.range %i max 4 vector
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{max is 0 to 281474976710656, got -4}}
  %j = uloop.range %i max -4
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{unknown kind 'spin': expected one of loop, reduce, unroll, vector, thread, block, lane}}
  %j = "uloop.range"() <{end = affine_map<() -> (4)>, kind = "spin"}> : () -> index
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{the map () -> (4) needs 0 operands and no symbols, got 1}}
  %j = "uloop.range"(%i) <{end = affine_map<() -> (4)>, kind = "loop"}> : (index) -> index
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{expected a range to have an end}}
  %j = "uloop.range"() <{end = affine_map<() -> ()>, kind = "loop"}> : () -> index
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{expected a positive divisor, got 0}}
  %j = "uloop.index"(%i) <{map = affine_map<(d0) -> (d0 floordiv 0)>}> : (index) -> i32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{expected a positive divisor, got 0}}
  %j = uloop.index %i mod 0 : i32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{uloop.index gives an integer, got f32}}
  %j = uloop.index %i : f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{expected 2 index expressions, one a dimension, got 1}}
  %v = uloop.load %x[%i] : memref<4x8xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{uloop.load: expected f32, got f64}}
  %v = "uloop.load"(%x, %i) <{map = affine_map<(d0) -> (d0, d0)>}> : (memref<4x8xf32>, index) -> f64
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  // expected-error@+1 {{uloop.read reads a uloop.tile; a buffer is read by uloop.load}}
  %v = uloop.read %x[%i, %i] : memref<4x8xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{uloop.store: expected i32, got f32}}
  "uloop.store"(%v, %p, %i) <{map = affine_map<(d0) -> (d0)>}> : (f32, memref<4xi32>, index) -> ()
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{unknown kind 'sub': expected one of set, add, mul, max, min, umax, umin, and, or, xor}}
  uloop.update sub %v, %o[%i] : memref<4xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{kind xor is for integers, got f32}}
  uloop.update xor %v, %o[%i] : memref<4xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{unknown kind 'mean': expected one of add, mul, max, min, umax, umin, and, or, xor, fma}}
  %r = uloop.reduce mean %v over (%i) : f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{kind and is for integers, got f32}}
  %r = uloop.reduce and %v over (%i) : f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{reduce fma: expected 2 values of one type, got f32}}
  %r = uloop.reduce fma %v over (%i) : f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{the ranges of uloop.reduce: expected distinct ranges}}
  %r = uloop.reduce add %v over (%i, %i) : f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  %d = uloop.load %p[%i] : memref<4xi32>
  %e = uloop.value %d : i32 in 0 to 3
  // expected-error@+1 {{the ranges of uloop.reduce: expected the result of a uloop.range}}
  %r = uloop.reduce add %v over (%e) : f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{a reduce without a kind needs a region}}
  %r = "uloop.reduce"(%v, %v, %i) <{operandSegmentSizes = array<i32: 1, 1, 1>}> ({
  }) : (f32, f32, index) -> f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{a reduce of a kind has no init and no region}}
  %r = "uloop.reduce"(%v, %v, %i) <{kind = "add", operandSegmentSizes = array<i32: 1, 1, 1>}> ({
  }) : (f32, f32, index) -> f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{the region of uloop.reduce takes the accumulators and the values: expected f32, f32, got f32}}
  %r = uloop.reduce %v init %v over (%i) {
  ^bb0(%a : f32):
    uloop.yield %a : f32
  } : f32 -> f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  %d = uloop.load %p[%i] : memref<4xi32>
  // expected-error@+1 {{the region of uloop.reduce yields the new accumulators}}
  %r = uloop.reduce %v init %v over (%i) {
  ^bb0(%a : f32, %b : f32):
    uloop.yield %d : i32
  } : f32 -> f32
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{expected results f32, got f64}}
  %r = "uloop.reduce"(%v, %i) <{kind = "add", operandSegmentSizes = array<i32: 1, 0, 1>}> ({
  }) : (f32, index) -> f64
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{unknown kind 'heap': expected one of local, register, shared}}
  %t = uloop.tile %v over (%i) heap : memref<4xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{a tile has one dimension a range: expected 1, got memref<4x4xf32>}}
  %t = uloop.tile %v over (%i) local : memref<4x4xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{dimension 0 of the tile has 3 places for a range of 4}}
  %t = uloop.tile %v over (%i) local : memref<3xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %v = uloop.load %x[%i, %i] : memref<4x8xf32>
  // expected-error@+1 {{a tile of f32 cannot be memref<4xf64>}}
  %t = "uloop.tile"(%v, %i) <{space = "local"}> : (f32, index) -> memref<4xf64>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %d = uloop.load %p[%i] : memref<4xi32>
  // expected-error@+1 {{the bounds of uloop.value: expected 4 <= 3}}
  %e = uloop.value %d : i32 in 4 to 3
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %d = uloop.load %p[%i] : memref<4xi32>
  // expected-error@+1 {{an upper bound that is not a number needs 'max N'}}
  %e = uloop.value %d : i32 in 0 to %i
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %j = uloop.range 8
  // expected-error@+1 {{prefetch: expected 2 index expressions, one a dimension, got 1}}
  %v = uloop.load %x[%i, %j] prefetch [%i + 1] : memref<4x8xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %j = uloop.range 8
  // expected-error@+1 {{prefetch: expected ranges and sizes that the load depends on}}
  %v = uloop.load %x[0, %j] prefetch [%i, %j] : memref<4x8xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %j = uloop.range 8
  // expected-error@+1 {{prefetch: expected another place than the load's own}}
  %v = uloop.load %x[%i, %j] prefetch [%i, %j] : memref<4x8xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4x8xf32>, %p : memref<4xi32>) outs(%o : memref<4xf32>) {
  %i = uloop.range 4
  %j = uloop.range 8
  %v = uloop.load %x[%i, %j] : memref<4x8xf32>
  // expected-error@+1 {{Expected ':'}}
  uloop.store %v, %o[%i] prefetch [%i + 1] : memref<4xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4xbf16>) outs(%o : memref<f32>) {
  %k = uloop.range 4 reduce
  %v = uloop.load %x[%k] : memref<4xbf16>
  // expected-error@+1 {{kind dot is for pairs of bf16, each an i32, got bf16}}
  %s = uloop.reduce dot %v, %v over (%k) : bf16 -> f32
  uloop.store %s, %o[] : memref<f32>
}

// -----

ukernel.kernel @k ins(%x : memref<4xbf16>) outs(%o : memref<f32>) {
  %k = uloop.range 4 reduce
  %v = uloop.load %x[%k] : memref<4xbf16>
  %p = uloop.pair %v, %v : bf16
  // expected-error@+1 {{reduce dot: expected 2 values of one type, got i32}}
  %s = uloop.reduce dot %p over (%k) : i32 -> f32
  uloop.store %s, %o[] : memref<f32>
}

// -----

ukernel.kernel @k ins(%x : memref<4xbf16>) outs(%o : memref<f64>) {
  %k = uloop.range 4 reduce
  %v = uloop.load %x[%k] : memref<4xbf16>
  %p = uloop.pair %v, %v : bf16
  // expected-error@+1 {{a sum of pairs of bf16 is f32, got f64}}
  %s = uloop.reduce dot %p, %p over (%k) : i32 -> f64
  uloop.store %s, %o[] : memref<f64>
}

// -----

ukernel.kernel @k ins(%x : memref<4xf32>) outs(%o : memref<i32>) {
  %k = uloop.range 4
  %v = uloop.load %x[%k] : memref<4xf32>
  // expected-error@+1 {{a pair is of bf16, got f32}}
  %p = uloop.pair %v, %v : f32
}
