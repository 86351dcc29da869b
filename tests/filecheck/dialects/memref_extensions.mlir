// memref.prefetch as MLIR spells it: read, printed, in both forms; and as C.
// RUN: uopc-opt %s | filecheck %s
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s
// RUN: uopc-opt %s -t c | filecheck %s --check-prefix=TEXT

func.func @f(%x: memref<4x8xf32>, %s: memref<f32>, %i: index) {
  // CHECK: memref.prefetch %x[%i, %i], read, locality<3>, data : memref<4x8xf32>
  // CHECK-NEXT: memref.prefetch %x[%i, %i], write, locality<0>, data {hot} : memref<4x8xf32>
  // CHECK-NEXT: memref.prefetch %s[], read, locality<1>, data : memref<f32>
  // TEXT: __builtin_prefetch(&x[i*8 + i], 0, 3);
  // TEXT-NEXT: __builtin_prefetch(&x[i*8 + i], 1, 0);
  // TEXT-NEXT: __builtin_prefetch(&s[0], 0, 1);
  memref.prefetch %x[%i, %i], read, locality<3>, data : memref<4x8xf32>
  memref.prefetch %x[%i, %i], write, locality<0>, data {hot} : memref<4x8xf32>
  memref.prefetch %s[], read, locality<1>, data : memref<f32>
  func.return
}
