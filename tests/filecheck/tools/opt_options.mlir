// RUN: uopc-opt %s -p canonicalize | filecheck %s
// RUN: uopc-opt %s --pass-pipeline "builtin.module( canonicalize , func.func(cse,dce))" | filecheck %s
// RUN: uopc-opt %s -p canonicalize,cse --mlir-print-ir-after-change --print-ir-before=cse --timing -o /dev/null 2>&1 | filecheck %s --check-prefix DUMP
// RUN: not uopc-opt %s -p test_lower_linalg_to_snitch,canonicalise 2>&1 | filecheck %s --check-prefix MISTYPED
// RUN: not uopc-opt %s -p "approximate-math-with-bitcast{lag=true}" 2>&1 | filecheck %s --check-prefix OPTION
// RUN: uopc-opt --show-pipeline uopc_cpu | filecheck %s --check-prefix PIPELINE
// RUN: xdsl-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @sum(
// CHECK-NEXT:    arith.addi
// CHECK-NEXT:    func.return
func.func @sum(%a : i32) -> i32 {
  %unused = arith.constant 3 : i32
  %twice = arith.addi %a, %a : i32
  func.return %twice : i32
}

// DUMP:      // -----// IR Dump After canonicalize //----- //
// DUMP-NOT:  arith.constant
// DUMP:      // -----// IR Dump Before cse //----- //
// DUMP:      arith.addi
// DUMP-NOT:  IR Dump After cse
// DUMP:      ms      %       ops  phase
// DUMP:      4  parse
// DUMP:      3  canonicalize
// DUMP:      100.0            total

// MISTYPED:      pass-pipeline:1:{{[0-9]+}}: error: there is no pass named 'canonicalise' [unknown-pass]
// MISTYPED-NEXT:   test_lower_linalg_to_snitch,canonicalise
// MISTYPED-NEXT:                               ^^^^^^^^^^^^
// MISTYPED-NEXT:   hint: did you mean canonicalize

// OPTION: error: pass 'approximate-math-with-bitcast' has no option 'lag' [unknown-option]
// OPTION: hint: did you mean log? options of approximate-math-with-bitcast: log: bool (default true)

// PIPELINE: uopc-canonicalize,stage-broadcast-compute,stage-shared-reads,kernelize
