// Every op of ukernel: both text forms read back to the same, and are printed alike again.
// RUN: uopc-opt %s | filecheck %s
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s

// CHECK-LABEL:   ukernel.kernel @r_4 ins(%x : memref<4x8xf32>) outs(%o : memref<4xf32>)
// CHECK-SAME:      attributes {flops = 32 : i64, doc = "a \22max\22", note} {
// CHECK-NEXT:      %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:      %1 = utensor.reduce max %0 axes [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:      ukernel.write %1, %o : tensor<4xf32>, memref<4xf32>
// CHECK-NEXT:    }
ukernel.kernel @r_4 ins(%x : memref<4x8xf32>) outs(%o : memref<4xf32>)
    attributes {flops = 32 : i64, doc = "a \"max\"", note} {
  %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
  %1 = utensor.reduce max %0 axes [1] : tensor<4x8xf32>
  ukernel.write %1, %o : tensor<4xf32>, memref<4xf32>
}

// CHECK-LABEL:   ukernel.kernel @"copy of" sizes(%a = n = 1 to 8, %b = m = 0 to 3)
// CHECK-SAME:      ins(%x : memref<?x?xf32> of [m + n, 2*m]) outs(%o : memref<?x?xf32> of [m + n, 2*m])
// CHECK-SAME:      attributes {bytes = 99 : i64, target = "c", schedule = "split"} {
// CHECK-NEXT:      %0 = ukernel.read %x : memref<?x?xf32> -> [[T:.*]]
// CHECK-NEXT:      ukernel.write %0, %o : [[T]], memref<?x?xf32>
ukernel.kernel @"copy of" sizes(%a = n = 1 to 8, %b = m = 0 to 3)
    ins(%x : memref<?x?xf32> of [n + m, 2*m]) outs(%o : memref<?x?xf32> of [m + n, m + m])
    attributes {bytes = 99 : i64, target = "c", schedule = "split", flops = 0 : i64} {
  %0 = ukernel.read %x : memref<?x?xf32>
    -> tensor<?x?xf32, #utensor.sizes<[n + m, 2*m], m = 0 to 3, n = 1 to 8>>
  ukernel.write %0, %o
    : tensor<?x?xf32, #utensor.sizes<[n + m, 2*m], m = 0 to 3, n = 1 to 8>>, memref<?x?xf32>
}

// CHECK-LABEL:   ukernel.kernel @nothing ins() outs() {
// CHECK-NEXT:    }
ukernel.kernel @nothing ins() outs() {
}

// CHECK-LABEL:   ukernel.plan @main sizes(%n = n = 1 to 8)
// CHECK-SAME:      ins(%x : memref<4x8xf32>, %y : memref<?x6xf32> of [n + 3, 6])
// CHECK-SAME:      attributes {kept, input_names = ["x", "layer1.weight"], workspace = 192 : i64} {
// CHECK-NEXT:      %t0 = ukernel.temp at 64 : memref<4xf32>
// CHECK-NEXT:      %t1 = ukernel.temp {why = "later"} : memref<?xf32> of [n + 1], n = 1 to 8
// CHECK-NEXT:      %o = ukernel.output : memref<?x6xf32> of [n + 3, 6], n = 1 to 8
// CHECK-NEXT:      %c = ukernel.constant dense<[1.0, 2.0]> : tensor<2xf32>
// CHECK-NEXT:      %v = ukernel.view %x : memref<4x8xf32> -> memref<32xf32>
// CHECK-NEXT:      %w = ukernel.view %o : memref<?x6xf32> -> memref<?xf32> of [6*n + 18], n = 1 to 8
// CHECK-NEXT:      ukernel.launch @r_4 ins(%x : memref<4x8xf32>) outs(%t0 : memref<4xf32>)
// CHECK-NEXT:      %three = arith.constant 3 : index
ukernel.plan @main sizes(%n = n = 1 to 8)
    ins(%x : memref<4x8xf32>, %y : memref<?x6xf32> of [n + 3, 6])
    attributes {input_names = ["x", "layer1.weight"], workspace = 192 : i64, kept} {
  %t0 = ukernel.temp at 64 : memref<4xf32>
  %t1 = ukernel.temp {why = "later"} : memref<?xf32> of [n + 1], n = 1 to 8
  %o = ukernel.output : memref<?x6xf32> of [n + 3, 6], n = 1 to 8
  %c = ukernel.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %v = ukernel.view %x : memref<4x8xf32> -> memref<32xf32>
  %w = ukernel.view %o : memref<?x6xf32> -> memref<?xf32> of [6*n + 18], n = 1 to 8
  ukernel.launch @r_4 ins(%x : memref<4x8xf32>) outs(%t0 : memref<4xf32>)
  %three = arith.constant 3 : index
  // CHECK-NEXT:      ukernel.launch @nothing ins() outs() {note = 1 : i64}
  // CHECK-NEXT:      ukernel.return %o, %w, %c : memref<?x6xf32>, memref<?xf32>, memref<2xf32>
  ukernel.launch @nothing ins() outs() {note = 1 : i64}
  ukernel.return %o, %w, %c : memref<?x6xf32>, memref<?xf32>, memref<2xf32>
}

// CHECK-LABEL:   ukernel.plan @sized sizes(%n = n = 1 to 8, %m = m = 0 to 3) ins() {
// CHECK-NEXT:      %i = ukernel.temp
// CHECK-NEXT:      %o = ukernel.output
// CHECK-NEXT:      ukernel.launch @"copy of" sizes(%n, %m) ins(%i : memref<?x?xf32>) outs(%o : memref<?x?xf32>)
// CHECK-NEXT:      ukernel.return
// CHECK-NEXT:    }
ukernel.plan @sized sizes(%n = n = 1 to 8, %m = m = 0 to 3) ins() {
  %i = ukernel.temp : memref<?x?xf32> of [n + m, 2*m], n = 1 to 8, m = 0 to 3
  %o = ukernel.output : memref<?x?xf32> of [n + m, 2*m], n = 1 to 8, m = 0 to 3
  ukernel.launch @"copy of" sizes(%n, %m) ins(%i : memref<?x?xf32>) outs(%o : memref<?x?xf32>)
  ukernel.return
}
