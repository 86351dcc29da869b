// RUN: uopc-opt %s | uopc-opt | filecheck %s
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s

// CHECK: %p = uloop.pair %a, %b {note} : bf16
// CHECK-NEXT: %s = uloop.reduce dot %p, %p over (%k) {note} : i32 -> f32
ukernel.kernel @k ins(%x : memref<8xbf16>) outs(%o : memref<f32>) {
  %k = uloop.range 4 reduce
  %a = uloop.load %x[%k * 2] : memref<8xbf16>
  %b = uloop.load %x[%k * 2 + 1] : memref<8xbf16>
  %p = uloop.pair %a, %b {note} : bf16
  %s = uloop.reduce dot %p, %p over (%k) {note} : i32 -> f32
  uloop.store %s, %o[] : memref<f32>
}
