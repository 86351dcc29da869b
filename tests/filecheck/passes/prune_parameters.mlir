// RUN: uopc-opt %s -p prune-parameters | filecheck %s

// CHECK-LABEL: ukernel.plan @f sizes(%n = n = 1 to 9) ins(%x : memref<?xf32> of [n], %y : memref<4xf32>)
// CHECK-NEXT:    %o = ukernel.output : memref<4xf32>
// CHECK-NEXT:    %p = ukernel.output : memref<4xf32>
// CHECK-NEXT:    %read = ukernel.temp : memref<4xf32>
// CHECK-NEXT:    ukernel.launch @e_4 ins(%y : memref<4xf32>) outs(%read : memref<4xf32>)
// CHECK-NEXT:    ukernel.launch @e_4 ins(%read : memref<4xf32>) outs(%o : memref<4xf32>)
// CHECK-NEXT:    ukernel.launch @linear ins(%y : memref<4xf32>) outs(%p : memref<4xf32>)
// CHECK-NEXT:    ukernel.return
ukernel.plan @f sizes(%n = n = 1 to 9) ins(%x : memref<?xf32> of [n], %y : memref<4xf32>) {
  %o = ukernel.output : memref<4xf32>
  %p = ukernel.output : memref<4xf32>
  %c = ukernel.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %unread = ukernel.temp : memref<2xf32>
  %read = ukernel.temp : memref<4xf32>
  ukernel.launch @lonely ins(%c : memref<2xf32>) outs(%unread : memref<2xf32>)
  %w = ukernel.view %unread : memref<2xf32> -> memref<2x1xf32>
  ukernel.launch @e_4 sizes(%n) ins(%x, %y : memref<?xf32>, memref<4xf32>) outs(%read : memref<4xf32>)
  ukernel.launch @e_4 sizes(%n) ins(%x, %read : memref<?xf32>, memref<4xf32>) outs(%o : memref<4xf32>)
  ukernel.launch @linear ins(%w, %y : memref<2x1xf32>, memref<4xf32>) outs(%p : memref<4xf32>)
  ukernel.return %o, %p : memref<4xf32>, memref<4xf32>
}

// CHECK-LABEL: ukernel.kernel @e_4 ins(%b : memref<4xf32>) outs(%o : memref<4xf32>) attributes {bytes = 32 : i64} {
// CHECK-NEXT:    %0 = ukernel.read %b
// CHECK-NEXT:    %1 = utensor.neg %0
// CHECK-NEXT:    ukernel.write %1, %o
ukernel.kernel @e_4 sizes(%n = n = 1 to 9) ins(%a : memref<?xf32> of [n], %b : memref<4xf32>) outs(%o : memref<4xf32>) attributes {bytes = 68 : i64} {
  %0 = ukernel.read %a : memref<?xf32> -> tensor<?xf32, #utensor.sizes<[n], n = 1 to 9>>
  %unused = utensor.exp %0 : tensor<?xf32, #utensor.sizes<[n], n = 1 to 9>>
  %1 = ukernel.read %b : memref<4xf32> -> tensor<4xf32>
  %2 = utensor.neg %1 : tensor<4xf32>
  ukernel.write %2, %o : tensor<4xf32>, memref<4xf32>
}

// CHECK-NOT: @lonely
ukernel.kernel @lonely ins(%a : memref<2xf32>) outs(%o : memref<2xf32>) {
  %0 = ukernel.read %a : memref<2xf32> -> tensor<2xf32>
  ukernel.write %0, %o : tensor<2xf32>, memref<2xf32>
}

// A kernel that linearize made a function of.
// CHECK-LABEL: func.func private @linear(%b: memref<4xf32> {llvm.noalias, llvm.readonly}, %o: memref<4xf32> {llvm.noalias}) {
// CHECK-NEXT:    %c0 = arith.constant 0
// CHECK-NEXT:    %v = memref.load %b[%c0]
func.func private @linear(%a : memref<2x1xf32> {llvm.noalias}, %b : memref<4xf32> {llvm.noalias, llvm.readonly}, %o : memref<4xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %dead = memref.load %a[%c0, %c0] : memref<2x1xf32>
  %v = memref.load %b[%c0] : memref<4xf32>
  memref.store %v, %o[%c0] : memref<4xf32>
  func.return
}

// A size stays where a type mentions it; a kernel that was never launched stays.
// CHECK-LABEL: ukernel.kernel @sized sizes(%m = m = 1 to 3) ins() outs(%o : memref<2xf32>) {
ukernel.kernel @sized sizes(%n = n = 1 to 9, %m = m = 1 to 3) ins(%a : memref<?xf32> of [n]) outs(%o : memref<2xf32>) {
  %0 = utensor.constant 1.0 : tensor<?x2xf32, #utensor.sizes<[m, 2], m = 1 to 3>>
  %1 = utensor.reduce add %0 axes [0] : tensor<?x2xf32, #utensor.sizes<[m, 2], m = 1 to 3>> -> tensor<2xf32>
  ukernel.write %1, %o : tensor<2xf32>, memref<2xf32>
}
