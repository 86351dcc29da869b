// RUN: uopc-opt %s --pass-pipeline expand-math | filecheck %s

// CHECK-LABEL: func.func @scalar(
// CHECK-SAME:      %x: f32
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:    %[[ROOT:.*]] = math.sqrt %x : f32
// CHECK-NEXT:    %[[Y:.*]] = arith.divf %[[ONE]], %[[ROOT]] : f32
// CHECK-NEXT:    func.return %[[Y]] : f32
func.func @scalar(%x: f32) -> f32 {
  %y = math.rsqrt %x : f32
  func.return %y : f32
}

// CHECK-LABEL: func.func @vector(
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<8xf64>
// CHECK-NEXT:    %[[ROOT:.*]] = math.sqrt %x : vector<8xf64>
// CHECK-NEXT:    arith.divf %[[ONE]], %[[ROOT]] : vector<8xf64>
func.func @vector(%x: vector<8xf64>) -> vector<8xf64> {
  %y = math.rsqrt %x : vector<8xf64>
  func.return %y : vector<8xf64>
}

// A half format is computed in f32 and rounded once.
// CHECK-LABEL: func.func @half(
// CHECK-NEXT:    %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %x : bf16 to f32
// CHECK-NEXT:    %[[ROOT:.*]] = math.sqrt %[[WIDE]] : f32
// CHECK-NEXT:    %[[QUOTIENT:.*]] = arith.divf %[[ONE]], %[[ROOT]] : f32
// CHECK-NEXT:    arith.truncf %[[QUOTIENT]] : f32 to bf16
func.func @half(%x: bf16) -> bf16 {
  %y = math.rsqrt %x : bf16
  func.return %y : bf16
}

// Constants leave the loops.
// CHECK-LABEL: func.func @loop(
// CHECK-NOT:     scf.for
// CHECK:         arith.constant 1.44269{{.*}} : f32
// CHECK:         scf.for
// CHECK-NOT:     arith.constant
// CHECK-NOT:     math.exp
// CHECK:         math.fma
// CHECK:         arith.bitcast
// CHECK-NOT:     arith.constant
// CHECK:         memref.store
func.func @loop(%x: memref<16xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 16 : index
  scf.for %i = %zero to %end step %one {
    %v = memref.load %x[%i] : memref<16xf32>
    %e = math.exp %v : f32
    memref.store %e, %x[%i] : memref<16xf32>
  }
  func.return
}

// What is exact already stays.
// CHECK-LABEL: func.func @exact(
// CHECK-NEXT:    math.floor
// CHECK-NEXT:    math.roundeven
// CHECK-NEXT:    math.copysign
// CHECK-NEXT:    math.fma
// CHECK-NEXT:    func.return
func.func @exact(%x: f32) -> f32 {
  %a = math.floor %x : f32
  %b = math.roundeven %a : f32
  %c = math.copysign %b, %x : f32
  %d = math.fma %a, %b, %c : f32
  func.return %d : f32
}
