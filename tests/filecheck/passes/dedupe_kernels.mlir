// RUN: uopc-opt %s -p dedupe-kernels | filecheck %s

// CHECK-LABEL: ukernel.plan @sums
// CHECK:         ukernel.launch @r_16 ins(%a : memref<16x16xf32>) outs(%x : memref<16xf32>)
// CHECK-NEXT:    ukernel.launch @r_16 ins(%b : memref<16x16xf32>) outs(%y : memref<16xf32>)
// CHECK-NEXT:    ukernel.launch @minus_zero ins() outs(%x : memref<16xf32>)
// CHECK-NEXT:    ukernel.launch @zero ins() outs(%x : memref<16xf32>)
// CHECK-NEXT:    ukernel.launch @zero ins() outs(%y : memref<16xf32>)
// CHECK-NEXT:    ukernel.launch @max ins(%b : memref<16x16xf32>) outs(%y : memref<16xf32>)
// CHECK-NEXT:    ukernel.launch @scheduled ins(%b : memref<16x16xf32>) outs(%y : memref<16xf32>)
ukernel.plan @sums ins(%a : memref<16x16xf32>, %b : memref<16x16xf32>) {
  %x = ukernel.output : memref<16xf32>
  %y = ukernel.output : memref<16xf32>
  ukernel.launch @r_16 ins(%a : memref<16x16xf32>) outs(%x : memref<16xf32>)
  ukernel.launch @r_16$1 ins(%b : memref<16x16xf32>) outs(%y : memref<16xf32>)
  ukernel.launch @minus_zero ins() outs(%x : memref<16xf32>)
  ukernel.launch @zero ins() outs(%x : memref<16xf32>)
  ukernel.launch @zero_again ins() outs(%y : memref<16xf32>)
  ukernel.launch @max ins(%b : memref<16x16xf32>) outs(%y : memref<16xf32>)
  ukernel.launch @scheduled ins(%b : memref<16x16xf32>) outs(%y : memref<16xf32>)
  ukernel.return %x, %y : memref<16xf32>, memref<16xf32>
}

// CHECK:     ukernel.kernel @r_16 ins(%p : memref<16x16xf32>)
// CHECK-NOT: ukernel.kernel @r_16$1
// CHECK-NOT: ukernel.kernel @zero_again
// CHECK:     ukernel.kernel @scheduled
ukernel.kernel @r_16 ins(%p : memref<16x16xf32>) outs(%q : memref<16xf32>) attributes {doc = "one"} {
  %v = ukernel.read %p : memref<16x16xf32> -> tensor<16x16xf32>
  %s = utensor.reduce add %v axes [1] : tensor<16x16xf32> -> tensor<16xf32>
  ukernel.write %s, %q : tensor<16xf32>, memref<16xf32>
}
// Other names, another description, other whereabouts.
ukernel.kernel @r_16$1 ins(%other : memref<16x16xf32>) outs(%sink : memref<16xf32>) attributes {doc = "two"} {
  %w = ukernel.read %other : memref<16x16xf32> -> tensor<16x16xf32>
  %t = utensor.reduce add %w axes [1] : tensor<16x16xf32> -> tensor<16xf32>
  ukernel.write %t, %sink : tensor<16xf32>, memref<16xf32>
}
ukernel.kernel @minus_zero ins() outs(%q : memref<16xf32>) {
  %z = utensor.constant -0.0 : tensor<16xf32>
  ukernel.write %z, %q : tensor<16xf32>, memref<16xf32>
}
ukernel.kernel @zero ins() outs(%q : memref<16xf32>) {
  %z = utensor.constant 0.0 : tensor<16xf32>
  ukernel.write %z, %q : tensor<16xf32>, memref<16xf32>
}
ukernel.kernel @zero_again ins() outs(%q : memref<16xf32>) {
  %z = utensor.constant 0.0 : tensor<16xf32>
  ukernel.write %z, %q : tensor<16xf32>, memref<16xf32>
}
ukernel.kernel @max ins(%p : memref<16x16xf32>) outs(%q : memref<16xf32>) {
  %v = ukernel.read %p : memref<16x16xf32> -> tensor<16x16xf32>
  %s = utensor.reduce max %v axes [1] : tensor<16x16xf32> -> tensor<16xf32>
  ukernel.write %s, %q : tensor<16xf32>, memref<16xf32>
}
ukernel.kernel @scheduled ins(%p : memref<16x16xf32>) outs(%q : memref<16xf32>) attributes {schedule = "split(0, 4)"} {
  %v = ukernel.read %p : memref<16x16xf32> -> tensor<16x16xf32>
  %s = utensor.reduce add %v axes [1] : tensor<16x16xf32> -> tensor<16xf32>
  ukernel.write %s, %q : tensor<16xf32>, memref<16xf32>
}
