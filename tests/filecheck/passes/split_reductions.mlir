// RUN: uopc-opt %s -p split-reductions | filecheck %s
// RUN: not uopc-opt %s -p "split-reductions{parts=1}" 2>&1 | filecheck %s --check-prefix=BAD

// BAD: error: parts is 1
// BAD: expected at least 2

// CHECK-LABEL: func.func @whole
// CHECK-NEXT: [[CUT:%.*]] = utensor.reshape %x : tensor<4096x4096xf32> -> tensor<1024x4x4096xf32>
// CHECK-NEXT: [[PARTS:%.*]] = utensor.reduce add [[CUT]] axes [1, 2] : tensor<1024x4x4096xf32> -> tensor<1024xf32>
// CHECK-NEXT: utensor.reduce add [[PARTS]] axes [0] : tensor<1024xf32> -> tensor<f32>
func.func @whole(%x : tensor<4096x4096xf32>) -> tensor<f32> {
  %s = utensor.reduce add %x axes [0, 1] : tensor<4096x4096xf32> -> tensor<f32>
  func.return %s : tensor<f32>
}

// Of 300000 elements 60 parts are even. The kept axes stay where they are.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT: [[CUT:%.*]] = utensor.reshape %x : tensor<3x300000x2xi32> -> tensor<3x60x5000x2xi32>
// CHECK-NEXT: [[PARTS:%.*]] = utensor.reduce max [[CUT]] axes [2] : tensor<3x60x5000x2xi32> -> tensor<3x60x2xi32>
// CHECK-NEXT: utensor.reduce max [[PARTS]] axes [1] : tensor<3x60x2xi32> -> tensor<3x2xi32>
func.func @kept(%x : tensor<3x300000x2xi32>) -> tensor<3x2xi32> {
  %s = utensor.reduce max %x axes [1] : tensor<3x300000x2xi32> -> tensor<3x2xi32>
  func.return %s : tensor<3x2xi32>
}

// Enough results; too short; a prime; a sum of halves; nothing at all.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: utensor.reshape
func.func @stay(%a : tensor<64x8192xf32>, %b : tensor<1000xf32>, %c : tensor<1000003xf32>, %d : tensor<1048576xf16>, %e : tensor<0x1048576xf32>)
    -> (tensor<64xf32>, tensor<f32>, tensor<f32>, tensor<f16>, tensor<0xf32>) {
  %0 = utensor.reduce add %a axes [1] : tensor<64x8192xf32> -> tensor<64xf32>
  %1 = utensor.reduce add %b axes [0] : tensor<1000xf32> -> tensor<f32>
  %2 = utensor.reduce add %c axes [0] : tensor<1000003xf32> -> tensor<f32>
  %3 = utensor.reduce add %d axes [0] : tensor<1048576xf16> -> tensor<f16>
  %4 = utensor.reduce add %e axes [1] : tensor<0x1048576xf32> -> tensor<0xf32>
  func.return %0, %1, %2, %3, %4 : tensor<64xf32>, tensor<f32>, tensor<f32>, tensor<f16>, tensor<0xf32>
}
