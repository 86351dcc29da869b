// Passes that lower kernels or plans name those that have to come before.
// RUN: not uopc-opt %s -p schedule 2>&1 | filecheck %s
// RUN: not uopc-opt %s -p apply-schedule 2>&1 | filecheck %s
// RUN: not uopc-opt %s -p gpu-map 2>&1 | filecheck %s
// RUN: not uopc-opt %s -p write-in-place 2>&1 | filecheck %s
// RUN: not uopc-opt %s -p linearize 2>&1 | filecheck %s
// RUN: not uopc-opt %s -p rangeify 2>&1 | filecheck %s --check-prefix CUT
// RUN: not uopc-opt %s -p plan-memory 2>&1 | filecheck %s --check-prefix CUT
// RUN: uopc-opt %s -p dedupe-kernels,prune-parameters | filecheck %s --check-prefix SAME
// RUN: not uopc-opt %s -p lower-plan 2>&1 | filecheck %s --check-prefix PLAN
// RUN: not uopc-opt %s -p kernelize,schedule 2>&1 | filecheck %s --check-prefix KERNEL
// RUN: not uopc-opt %s -p kernelize,apply-schedule 2>&1 | filecheck %s --check-prefix KERNEL
// RUN: not uopc-opt %s -p kernelize,gpu-map 2>&1 | filecheck %s --check-prefix KERNEL
// RUN: not uopc-opt %s -p kernelize,linearize 2>&1 | filecheck %s --check-prefix KERNEL

// CHECK: range_input.mlir:[[#]]:1: error: function @f is still on tensors [not-over-ranges]
// CHECK-NEXT: in pass: [[PASS:.*]]
// CHECK-NEXT: hint: run kernelize and rangeify before [[PASS]]

// CUT: error: function @f is still on tensors [not-over-ranges]
// CUT-NEXT: in pass: [[PASS:.*]]
// CUT-NEXT: hint: run kernelize before [[PASS]]

// SAME: utensor.exp

// PLAN: error: function @f is still on tensors [not-over-ranges]
// PLAN-NEXT: in pass: lower-plan
// PLAN-NEXT: hint: run kernelize, rangeify and linearize before lower-plan

// KERNEL: error: kernel @e_4 is still on tensors [not-over-ranges]
// KERNEL-NEXT: in pass: [[PASS:.*]]
// KERNEL-NEXT: hint: run rangeify before [[PASS]]
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = utensor.exp %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
