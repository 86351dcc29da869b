// Every chunk holds one mistake, and what is said of it.
// RUN: uopc-opt %s --split-input-file --verify-diagnostics > /dev/null

func.func @good(%a : i32) -> i32 {
  func.return %a : i32
}

// -----

func.func @wrong_index_count(%m : memref<4xf32>, %i : index) -> f32 {
  // expected-error@+1 {{'memref.load' op expected an index for each dimension}}
  %v = "memref.load"(%m, %i, %i) : (memref<4xf32>, index, index) -> f32
  func.return %v : f32
}

// -----

func.func @used_too_early(%a : i32) -> i32 {
  %b = arith.addi %c, %a : i32 // expected-error-re {{operand 0 (%c) is used where it is not defined, which 'arith.muli' defines at {{.*:[0-9]+:8}}}}
  %c = arith.muli %a, %a : i32
  func.return %b : i32
}

// -----

func.func @does_not_dominate(%p : i1) -> i32 {
  cf.cond_br %p, ^left, ^right
^left:
  %x = arith.constant 1 : i32
  cf.br ^end
^right:
  cf.br ^end
^end:
  // expected-error@+1 {{(%x) is used where it is not defined}}
  func.return %x : i32
}

// -----

func.func @leaves_region(%p : i1) -> i32 {
  scf.if %p {
    %x = arith.constant 1 : i32
  }
  // expected-error@+1 {{value %x is used but not defined where this use can see it}}
  func.return %x : i32
}

// -----

func.func private @twice()
// expected-error@below {{defines symbol @twice a second time; the first is 'func.func' at}}
func.func private @twice()

// -----

func.func private @helper(i32)
func.func @calls(%a : i32) {
  // expected-error@+1 {{did you mean @helper?}}
  func.call @helpr(%a) : (i32) -> ()
  func.return
}

// -----

func.func @unknown_op() {
  // expected-error@+1 {{Operation no.such is not registered [parse-error]}}
  "no.such"() : () -> ()
  func.return
}

// -----

// expected-error@+1 {{Expected shape type.}}
func.func private @negative(tensor<-1xf32>)

// -----

// expected-error@+1 {{a constant of 1000000000000 elements is too large}}
"test.op"() {big = dense<1.0> : tensor<1000000000000xf32>} : () -> ()

// -----

// expected-error@+1 {{brackets nest deeper than 80 levels [nesting-too-deep]}}
"t"() {a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]} : () -> ()
