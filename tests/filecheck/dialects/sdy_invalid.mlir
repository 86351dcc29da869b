// RUN: not uopc-opt %s 2>&1 | filecheck %s

// What is between angle brackets must end.
// CHECK: sdy_invalid.mlir:{{[0-9]+}}:{{[0-9]+}}: error: expected '>' [parse-error]
sdy.mesh @mesh = <["x"
