// RUN: uopc-opt %s -p "stage-shared-reads{reads=3 min-work=256}" --split-input-file | filecheck %s

// A sum that grows is staged where it reads three buffers; then the count starts again.
func.func @residual(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>, %d: tensor<16x16xf32>) -> (tensor<16xf32>, tensor<16x16xf32>) {
  %0 = utensor.add %a, %b : tensor<16x16xf32>
  %1 = utensor.add %0, %c : tensor<16x16xf32>
  %r = utensor.reduce add %1 axes [1] : tensor<16x16xf32>
  %2 = utensor.add %1, %d : tensor<16x16xf32>
  func.return %r, %2 : tensor<16xf32>, tensor<16x16xf32>
}

// CHECK-LABEL: func.func @residual
// CHECK: [[SUM:%.*]] = utensor.add {{%.*}}, %c
// CHECK-NEXT: [[STAGE:%.*]] = utensor.stage contiguous [[SUM]]
// CHECK-NEXT: utensor.reduce add [[STAGE]]
// CHECK-NEXT: utensor.add [[STAGE]], %d
// CHECK-NOT: utensor.stage

// -----

// Not: one user, few reads, or little work.
func.func @left(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>, %s: tensor<4xf32>, %t: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = utensor.add %a, %b : tensor<16x16xf32>
  %1 = utensor.exp %0 : tensor<16x16xf32>
  %2 = utensor.add %0, %c : tensor<16x16xf32>
  %3 = utensor.add %s, %t : tensor<4xf32>
  %4 = utensor.add %3, %u : tensor<4xf32>
  %5 = utensor.exp %4 : tensor<4xf32>
  func.return %1, %2, %4, %5 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @left
// CHECK-NOT: utensor.stage
