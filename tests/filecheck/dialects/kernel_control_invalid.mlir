// What the verifiers of ukernel.while and ukernel.if say. One mistake a chunk.
// RUN: uopc-opt %s --split-input-file --verify-diagnostics > /dev/null

ukernel.plan @f ins(%x : memref<4xi1>) {
  // expected-error@+1 {{ukernel.if: expected a flag of type memref<i1>, got memref<4xi1>}}
  ukernel.if %x : memref<4xi1> {
    ukernel.yield
  }
  ukernel.return
}

// -----

ukernel.plan @f ins(%go : memref<i1>) {
  %a = ukernel.temp : memref<4xf32>
  %b = ukernel.temp : memref<8xf32>
  // expected-error@+1 {{ukernel.while: buffers of different types change places}}
  %r, %s = ukernel.while (%p = %a, %q = %b : memref<4xf32>, memref<8xf32>) {
    ukernel.condition %go : memref<i1>
  } do {
  ^bb0(%p2 : memref<4xf32>, %q2 : memref<8xf32>):
    ukernel.yield %q2, %p2 : memref<8xf32>, memref<4xf32>
  }
  ukernel.return
}

// -----

ukernel.plan @f ins(%go : memref<i1>) {
  %a = ukernel.temp : memref<4xf32>
  %b = ukernel.temp : memref<4xf32>
  // expected-error@+1 {{ukernel.yield lists each argument of its region once, in any order}}
  %r, %s = ukernel.while (%p = %a, %q = %b : memref<4xf32>, memref<4xf32>) {
    ukernel.condition %go : memref<i1>
  } do {
  ^bb0(%p2 : memref<4xf32>, %q2 : memref<4xf32>):
    ukernel.yield %p2, %p2 : memref<4xf32>, memref<4xf32>
  }
  ukernel.return
}

// -----

ukernel.plan @f ins(%go : memref<i1>) {
  %a = ukernel.temp : memref<4xf32>
  // expected-error@+1 {{ukernel.while: a buffer is carried twice}}
  %r, %s = ukernel.while (%p = %a, %q = %a : memref<4xf32>, memref<4xf32>) {
    ukernel.condition %go : memref<i1>
  } do {
  ^bb0(%p2 : memref<4xf32>, %q2 : memref<4xf32>):
    ukernel.yield %p2, %q2 : memref<4xf32>, memref<4xf32>
  }
  ukernel.return
}

// -----

ukernel.plan @f ins(%go : memref<i1>) {
  // expected-error@+1 {{ukernel.while: its second region ends in ukernel.yield}}
  ukernel.while {
    ukernel.condition %go : memref<i1>
  } do {
    %a = ukernel.temp : memref<4xf32>
  }
  ukernel.return
}

// -----

// expected-error@+1 {{ukernel.output stands in a loop or branch of a plan}}
ukernel.plan @f ins(%go : memref<i1>) {
  ukernel.if %go : memref<i1> {
    %a = ukernel.output : memref<4xf32>
    ukernel.yield
  }
  ukernel.return
}
