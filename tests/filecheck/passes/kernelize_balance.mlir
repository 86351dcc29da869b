// RUN: uopc-opt %s -p "kernelize{fuse-reduce=auto}" --split-input-file | filecheck %s
// RUN: uopc-opt %s -p "kernelize{fuse-reduce=auto balance=2}" --split-input-file | filecheck %s --check-prefix TWO
// RUN: uopc-opt %s -p "kernelize{fuse-reduce=auto balance=1}" --split-input-file | filecheck %s --check-prefix ONE
// RUN: uopc-opt %s -p "kernelize{fuse-reduce=auto},rangeify" --split-input-file --check-values | filecheck %s --check-prefix LOOPS
// RUN: not uopc-opt %s -p "kernelize{fuse-reduce=auto balance=0}" --split-input-file 2>&1 | filecheck %s --check-prefix ZERO
// RUN: not uopc-opt %s -p "kernelize{balance=-4}" --split-input-file 2>&1 | filecheck %s --check-prefix LESS
// RUN: not uopc-opt %s -p "kernelize{balance=1.5}" --split-input-file 2>&1 | filecheck %s --check-prefix HALF

// ZERO: error: balance: expected a positive integer, got 0 [bad-option]
// ZERO-NEXT:   in pass: kernelize
// ZERO-NEXT:   hint: 4 is measured: operations in the time in which one byte travels
// LESS: error: balance: expected a positive integer, got -4 [bad-option]
// HALF: error: option 'balance' of pass 'kernelize' expects int, got '1.5' [bad-option-value]

// Two summed, twice: 2 * 8192 * 9 operations, and 2 * (8 * 8192 + 8192) are as many.
// CHECK-LABEL: ukernel.plan @even
// CHECK-NEXT:    ukernel.output
// CHECK-NEXT:    ukernel.launch @r_2_8192
// CHECK-NEXT:    ukernel.return
// TWO-LABEL: ukernel.plan @even
// TWO-NEXT:    ukernel.output
// TWO-NEXT:    ukernel.launch @r_2_8192
// TWO-NEXT:    ukernel.return
// ONE-LABEL: ukernel.plan @even
// ONE:         ukernel.launch @r_8192
// ONE-NEXT:    ukernel.launch @e_2_8192
// LOOPS-LABEL: ukernel.kernel @r_2_8192
// LOOPS-NEXT:    %i = uloop.range 2
// LOOPS-NEXT:    %j = uloop.range 8192
// LOOPS:         %k = uloop.range 2 reduce
// LOOPS:         uloop.reduce add %{{.*}} over (%k) : f32
func.func @even(%x : tensor<2x8192xf32>) -> tensor<2x8192xf32> {
  %s = utensor.reduce add %x axes [0] : tensor<2x8192xf32> -> tensor<8192xf32>
  %t = utensor.reshape %s : tensor<8192xf32> -> tensor<1x8192xf32>
  %u = utensor.expand %t : tensor<1x8192xf32> -> tensor<2x8192xf32>
  %y = utensor.mul %x, %u : tensor<2x8192xf32>
  func.return %y : tensor<2x8192xf32>
}

// -----
// One more: 18 * 8193 is more than 2 * (8 * 8193 + 8192).
// CHECK-LABEL: ukernel.plan @odd
// CHECK-NEXT:    ukernel.output
// CHECK-NEXT:    ukernel.launch @r_2_8193
// TWO-LABEL: ukernel.plan @odd
// TWO:         ukernel.launch @r_8193
// TWO-NEXT:    ukernel.launch @e_2_8193
func.func @odd(%x : tensor<2x8193xf32>) -> tensor<2x8193xf32> {
  %s = utensor.reduce add %x axes [0] : tensor<2x8193xf32> -> tensor<8193xf32>
  %t = utensor.reshape %s : tensor<8193xf32> -> tensor<1x8193xf32>
  %u = utensor.expand %t : tensor<1x8193xf32> -> tensor<2x8193xf32>
  %y = utensor.mul %x, %u : tensor<2x8193xf32>
  func.return %y : tensor<2x8193xf32>
}

// -----
// Eight summed, eight times: cut, but for few columns, where a launch costs more.
// CHECK-LABEL: ukernel.plan @eight
// CHECK:         ukernel.launch @r_1024
// CHECK-NEXT:    ukernel.launch @e_8_1024
// CHECK-NEXT:    ukernel.launch @r_8_64
// CHECK-NEXT:    ukernel.return
func.func @eight(%x : tensor<8x1024xf32>, %z : tensor<8x64xf32>) -> (tensor<8x1024xf32>, tensor<8x64xf32>) {
  %s = utensor.reduce add %x axes [0] : tensor<8x1024xf32> -> tensor<1024xf32>
  %t = utensor.reshape %s : tensor<1024xf32> -> tensor<1x1024xf32>
  %u = utensor.expand %t : tensor<1x1024xf32> -> tensor<8x1024xf32>
  %y = utensor.mul %x, %u : tensor<8x1024xf32>
  %a = utensor.reduce add %z axes [0] : tensor<8x64xf32> -> tensor<64xf32>
  %b = utensor.reshape %a : tensor<64xf32> -> tensor<1x64xf32>
  %c = utensor.expand %b : tensor<1x64xf32> -> tensor<8x64xf32>
  %w = utensor.mul %z, %c : tensor<8x64xf32>
  func.return %y, %w : tensor<8x1024xf32>, tensor<8x64xf32>
}

// -----
// Computed once in its reader's loops: fused at any balance.
// ONE-LABEL: ukernel.plan @once
// ONE-NEXT:    ukernel.output
// ONE-NEXT:    ukernel.launch @r_4096_64_4
// ONE-NEXT:    ukernel.return
func.func @once(%x : tensor<4096x64x4xf32>) -> tensor<4096x64x4xf32> {
  %s = utensor.reduce add %x axes [2] : tensor<4096x64x4xf32> -> tensor<4096x64xf32>
  %t = utensor.reshape %s : tensor<4096x64xf32> -> tensor<4096x64x1xf32>
  %u = utensor.expand %t : tensor<4096x64x1xf32> -> tensor<4096x64x4xf32>
  %y = utensor.mul %x, %u : tensor<4096x64x4xf32>
  func.return %y : tensor<4096x64x4xf32>
}
