// RUN: uopc-opt %s | uopc-opt | filecheck %s
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s

// CHECK: %0 = x86vector.avx512.dot %s, %a, %b : vector<32xbf16> -> vector<16xf32>
// CHECK: %1 = x86vector.avx512.dot %t, %c, %c {here = 1 : i32} : vector<8xbf16> -> vector<4xf32>
func.func @sums(%s: vector<16xf32>, %a: vector<32xbf16>, %b: vector<32xbf16>, %t: vector<4xf32>, %c: vector<8xbf16>) {
  %0 = x86vector.avx512.dot %s, %a, %b : vector<32xbf16> -> vector<16xf32>
  %1 = x86vector.avx512.dot %t, %c, %c {here = 1 : i32} : vector<8xbf16> -> vector<4xf32>
  func.return
}
