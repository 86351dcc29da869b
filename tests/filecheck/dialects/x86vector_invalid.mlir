// What is no x86vector.avx512.dot. One mistake a chunk.
// RUN: uopc-opt %s --split-input-file --verify-diagnostics > /dev/null

func.func @f(%s: vector<2xf32>, %a: vector<4xbf16>) {
  // expected-error@+1 {{x86vector.avx512.dot: expected 4, 8 or 16 lanes of f32, got vector<2xf32>}}
  %0 = x86vector.avx512.dot %s, %a, %a : vector<4xbf16> -> vector<2xf32>
  func.return
}

// -----

func.func @f(%s: vector<4xf64>, %a: vector<8xbf16>) {
  // expected-error@+1 {{x86vector.avx512.dot: expected 4, 8 or 16 lanes of f32, got vector<4xf64>}}
  %0 = x86vector.avx512.dot %s, %a, %a : vector<8xbf16> -> vector<4xf64>
  func.return
}

// -----

func.func @f(%s: vector<4xf32>, %a: vector<4xbf16>) {
  // expected-error@+1 {{x86vector.avx512.dot: expected vector<8xbf16>, two for each lane, got vector<4xbf16>}}
  %0 = x86vector.avx512.dot %s, %a, %a : vector<4xbf16> -> vector<4xf32>
  func.return
}
