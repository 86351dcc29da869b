// RUN: not uopc-opt %s -p 'differentiate' 2>&1 | filecheck %s --check-prefix MANY
// RUN: not uopc-opt %s -p 'differentiate{function=bits}' 2>&1 | filecheck %s --check-prefix BITS
// RUN: not uopc-opt %s -p 'differentiate{function=calls}' 2>&1 | filecheck %s --check-prefix CALL
// RUN: not uopc-opt %s -p 'differentiate{function=whole}' 2>&1 | filecheck %s --check-prefix WHOLE
// RUN: not uopc-opt %s -p 'differentiate{function=bits wrt=z}' 2>&1 | filecheck %s --check-prefix NAME
// RUN: not uopc-opt %s -p 'differentiate{function=calls wrt=k}' 2>&1 | filecheck %s --check-prefix TYPE
// RUN: not uopc-opt %s -p 'differentiate{function=apart of=1}' 2>&1 | filecheck %s --check-prefix APART
// RUN: not uopc-opt %s -p 'differentiate{function=apart of=2}' 2>&1 | filecheck %s --check-prefix RESULT
// RUN: not uopc-opt %s -p 'differentiate{function=apart into=bits}' 2>&1 | filecheck %s --check-prefix TAKEN

// MANY: error: the module has 4 public functions [no-such-function]
// MANY-NEXT: in pass: differentiate
// MANY-NEXT: hint: choose one with function=…: bits, calls, whole, apart

// BITS: differentiate_errors.mlir:21:8: error: bitcast has no gradient: bits are no smooth function of a number [no-gradient]
// BITS: op: %0 = "utensor.bitcast"(%1) : (tensor<4xi32>) -> tensor<4xf32>
// BITS-NEXT: in pass: differentiate
// BITS-NEXT: hint: detach what comes before it, so that no gradient goes there
func.func @bits(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = utensor.bitcast %x : tensor<4xf32> -> tensor<4xi32>
  %1 = utensor.bitcast %0 : tensor<4xi32> -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// NAME: error: @bits has no argument 'z' [bad-option]
// NAME: hint: its arguments are x; numbers count from 0

// CALL: error: func.call has no gradient: it is no op of utensor [no-gradient]
// CALL: op: %0 = "func.call"(%x) <{callee = @bits}> : (tensor<4xf32>) -> tensor<4xf32>
// CALL: hint: write it as ops of utensor first
// TYPE: error: argument 'k' is tensor<4xi32> [no-gradient]
func.func @calls(%x: tensor<4xf32>, %k: tensor<4xi32>) -> tensor<4xf32> {
  %0 = func.call @bits(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// WHOLE: error: result 0 is tensor<4xi32> [no-gradient]
// WHOLE: hint: gradients need floats
func.func @whole(%x: tensor<4xf32>) -> tensor<4xi32> {
  %0 = utensor.cast %x : tensor<4xf32> -> tensor<4xi32>
  func.return %0 : tensor<4xi32>
}

// APART: error: result 1 depends on none of the arguments [no-gradient]
// RESULT: error: there is no result 2 [bad-option]
// RESULT: hint: @apart has 2, counted from 0
// TAKEN: error: there is a @bits already [bad-option]
func.func @apart(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = utensor.constant 1.0 : tensor<4xf32>
  func.return %x, %0 : tensor<4xf32>, tensor<4xf32>
}
