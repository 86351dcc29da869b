// RUN: uopc-opt %s -p lower-plan | filecheck %s
// RUN: uopc-opt %s -p lower-plan | xdsl-opt | filecheck %s

// The example of the pass.
// CHECK-LABEL: func.func @f(%x: memref<4x8xf32> {llvm.noalias, llvm.readonly, uopc.name = "x"}, %out0: memref<4x8xf32> {llvm.noalias}, %workspace: memref<64xi8>) {
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %tmp0 = memref.view %workspace[%[[ZERO]]][] : memref<64xi8> to memref<4xf32>
// CHECK-NEXT:    func.call @r_4(%x, %tmp0) : (memref<4x8xf32>, memref<4xf32>) -> ()
// CHECK-NEXT:    func.call @e_4_8(%x, %tmp0, %out0) : (memref<4x8xf32>, memref<4xf32>, memref<4x8xf32>) -> ()
// CHECK-NEXT:    func.return
ukernel.plan @f ins(%x : memref<4x8xf32>) attributes {input_names = ["x"], workspace = 64 : i64} {
  %out0 = ukernel.output : memref<4x8xf32>
  %tmp0 = ukernel.temp at 0 : memref<4xf32>
  ukernel.launch @r_4 ins(%x : memref<4x8xf32>) outs(%tmp0 : memref<4xf32>)
  ukernel.launch @e_4_8 ins(%x, %tmp0 : memref<4x8xf32>, memref<4xf32>) outs(%out0 : memref<4x8xf32>)
  ukernel.return %out0 : memref<4x8xf32>
}

// Unsigned buffers, constants, views, results that are others: outputs in order of the results.
// CHECK:       "memref.global"() <{sym_name = "const0$1", type = memref<3xi8>, initial_value = dense<[1, -1, 3]> : tensor<3xi8>, sym_visibility = "private", constant}>
// CHECK-LABEL: func.func @g(%in0: memref<3xi8> {llvm.noalias, llvm.readonly, uopc.name = "a b", uopc.unsigned}, %out0: memref<3xi8> {llvm.noalias, uopc.unsigned}, %out2: memref<1xi8> {llvm.noalias, uopc.unsigned}) {
// CHECK-NEXT:    %c = memref.get_global @const0$1 : memref<3xi8>
// CHECK-NEXT:    func.call @bytes(%in0, %c, %out0) : (memref<3xi8>, memref<3xi8>, memref<3xi8>) -> ()
// CHECK-NEXT:    %[[VIEW:.*]] = memref.reinterpret_cast %out0 to offset: [0], sizes: [3, 1], strides: [1, 1] : memref<3xi8> to memref<3x1xi8>
// CHECK-NEXT:    func.call @column(%[[VIEW]], %out2)
// CHECK-NEXT:    func.return
ukernel.plan @g ins(%in0 : memref<3xui8>) attributes {input_names = ["a b"]} {
  %second = ukernel.output : memref<1xui8>
  %first = ukernel.output : memref<3xui8>
  %c = ukernel.constant dense<[1, 255, 3]> : tensor<3xui8>
  ukernel.launch @bytes ins(%in0, %c : memref<3xui8>, memref<3xui8>) outs(%first : memref<3xui8>)
  %flat = ukernel.view %first : memref<3xui8> -> memref<1x3xui8>
  %column = ukernel.view %flat : memref<1x3xui8> -> memref<3x1xui8>
  ukernel.launch @column ins(%column : memref<3x1xui8>) outs(%second : memref<1xui8>)
  ukernel.return %first, %in0, %second, %flat : memref<3xui8>, memref<3xui8>, memref<1xui8>, memref<1x3xui8>
}

// Symbolic sizes: an inner one makes a buffer flat, views compute their size.
// CHECK-LABEL: func.func @h(%n: index, %x: memref<?xf32> {{.*}}, %out0: memref<?xf32> {{.*}}, %workspace: memref<4096xi8>) {
// CHECK:         %[[SQUARE:.*]] = arith.muli %n, %n : index
// CHECK:         %[[SIZE:.*]] = arith.muli %[[SQUARE]], %{{.*}} : index
// CHECK:         %[[OFFSET:.*]] = arith.constant 128 : index
// CHECK:         %t = memref.view %workspace[%[[OFFSET]]][%[[SIZE]]] : memref<4096xi8> to memref<?xf32>
// CHECK-NEXT:    func.call @dynamic(%n, %x, %t) : (index, memref<?xf32>, memref<?xf32>) -> ()
// CHECK:         memref.reinterpret_cast %t to offset: [0], sizes: [%[[SQUARE]], 2], strides: [2, 1] : memref<?xf32> to memref<?x2xf32>
ukernel.plan @h sizes(%n = n = 2 to 16) ins(%x : memref<?x?xf32> of [n, n * 2]) attributes {workspace = 4096 : i64} {
  %o = ukernel.output : memref<?xf32> of [n], n = 2 to 16
  %t = ukernel.temp at 128 : memref<?x?xf32> of [n, n * 2], n = 2 to 16
  ukernel.launch @dynamic sizes(%n) ins(%x : memref<?x?xf32>) outs(%t : memref<?x?xf32>)
  %v = ukernel.view %t : memref<?x?xf32> -> memref<?x2xf32> of [n * n, 2], n = 2 to 16
  ukernel.launch @pairs sizes(%n) ins(%v : memref<?x2xf32>) outs(%o : memref<?xf32>)
  ukernel.return %o : memref<?xf32>
}

func.func private @r_4(%a : memref<4x8xf32>, %b : memref<4xf32>) {
  func.return
}
func.func private @e_4_8(%a : memref<4x8xf32>, %b : memref<4xf32>, %c : memref<4x8xf32>) {
  func.return
}
func.func private @bytes(%a : memref<3xi8>, %b : memref<3xi8>, %c : memref<3xi8>) {
  func.return
}
func.func private @column(%a : memref<3x1xi8>, %b : memref<1xi8>) {
  func.return
}
func.func private @dynamic(%n : index, %a : memref<?xf32>, %b : memref<?xf32>) {
  func.return
}
func.func private @pairs(%n : index, %a : memref<?x2xf32>, %b : memref<?xf32>) {
  func.return
}
func.func private @const0() {
  func.return
}
