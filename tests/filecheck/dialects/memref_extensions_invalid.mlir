// What is no memref.prefetch. One mistake a chunk.
// RUN: uopc-opt %s --split-input-file --verify-diagnostics > /dev/null

func.func @f(%x: memref<4x8xf32>, %i: index) {
  // expected-error@+1 {{memref.prefetch: expected 2 indices, one a dimension, got 1}}
  memref.prefetch %x[%i], read, locality<3>, data : memref<4x8xf32>
  func.return
}

// -----

func.func @f(%x: memref<4x8xf32>, %i: index) {
  // expected-error@+1 {{memref.prefetch: a locality is 0 to 3, got 4}}
  memref.prefetch %x[%i, %i], read, locality<4>, data : memref<4x8xf32>
  func.return
}

// -----

func.func @f(%x: memref<4x8xf32>, %i: index) {
  // expected-error@+1 {{Expected 'write'}}
  memref.prefetch %x[%i, %i], both, locality<3>, data : memref<4x8xf32>
  func.return
}
