// RUN: uopc-opt %s | uopc-opt | filecheck %s
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s

// CHECK: ukernel.plan @loops
ukernel.plan @loops ins(%x : memref<4xf32>, %go : memref<i1>) {
  %out0 = ukernel.output : memref<4xf32>
  %a = ukernel.temp : memref<4xf32>
  %b = ukernel.temp : memref<4xf32>
  // A loop whose two buffers change places.
  // CHECK: %[[R:.*]], %{{.*}} = ukernel.while (%[[P:.*]] = %a, %[[Q:.*]] = %b : memref<4xf32>, memref<4xf32>) {
  %r, %s = ukernel.while (%p = %a, %q = %b : memref<4xf32>, memref<4xf32>) {
    // CHECK-NEXT: %flag = ukernel.temp : memref<i1>
    %flag = ukernel.temp : memref<i1>
    ukernel.launch @test ins(%p : memref<4xf32>) outs(%flag : memref<i1>)
    // CHECK: ukernel.condition %flag : memref<i1>
    ukernel.condition %flag : memref<i1>
  // CHECK-NEXT: } do {
  } do {
  // CHECK-NEXT: ^bb0(%[[P2:.*]]: memref<4xf32>, %[[Q2:.*]]: memref<4xf32>):
  ^bb0(%p2 : memref<4xf32>, %q2 : memref<4xf32>):
    // CHECK-NEXT: ukernel.launch @step ins(%[[P2]] : memref<4xf32>) outs(%[[Q2]] : memref<4xf32>)
    ukernel.launch @step ins(%p2 : memref<4xf32>) outs(%q2 : memref<4xf32>)
    // CHECK-NEXT: ukernel.yield %[[Q2]], %[[P2]] : memref<4xf32>, memref<4xf32>
    ukernel.yield %q2, %p2 : memref<4xf32>, memref<4xf32>
  }
  // Nothing is carried; a branch with one region, and one with two.
  // CHECK: ukernel.while {
  // CHECK-NEXT: ukernel.condition %go : memref<i1>
  ukernel.while {
    ukernel.condition %go : memref<i1>
  } do {
    // CHECK: ukernel.if %go : memref<i1> {
    // CHECK-NEXT: ukernel.launch @step ins(%[[R]] : memref<4xf32>) outs(%out0 : memref<4xf32>)
    // CHECK-NEXT: ukernel.yield
    // CHECK-NEXT: }
    ukernel.if %go : memref<i1> {
      ukernel.launch @step ins(%r : memref<4xf32>) outs(%out0 : memref<4xf32>)
      ukernel.yield
    }
    // CHECK-NEXT: ukernel.if %go : memref<i1> {
    // CHECK-NEXT: ukernel.yield
    // CHECK-NEXT: } else {
    // CHECK-NEXT: ukernel.launch @step
    ukernel.if %go : memref<i1> {
      ukernel.yield
    } else {
      ukernel.launch @step ins(%x : memref<4xf32>) outs(%out0 : memref<4xf32>)
      ukernel.yield
    }
    ukernel.yield
  }
  ukernel.return %out0 : memref<4xf32>
}

ukernel.kernel @test ins(%x : memref<4xf32>) outs(%o : memref<i1>) {
  %c = utensor.constant false : tensor<i1>
  ukernel.write %c, %o : tensor<i1>, memref<i1>
}
ukernel.kernel @step ins(%x : memref<4xf32>) outs(%o : memref<4xf32>) {
  %0 = ukernel.read %x : memref<4xf32> -> tensor<4xf32>
  ukernel.write %0, %o : tensor<4xf32>, memref<4xf32>
}
