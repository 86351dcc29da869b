// RUN: uopc-opt %s -p plan-memory | filecheck %s
// RUN: uopc-opt %s -p "plan-memory{reuse=false alignment=256}" | filecheck %s --check-prefix APART
// RUN: not uopc-opt %s -p "plan-memory{alignment=48}" 2>&1 | filecheck %s --check-prefix BAD

// The example of the pass: the third temp lies where the first was.
// CHECK-LABEL: ukernel.plan @f ins(%x : memref<64xf32>) attributes {workspace = 512 : i64} {
// CHECK:         %tmp0 = ukernel.temp at 0 : memref<64xf32>
// CHECK:         %tmp1 = ukernel.temp at 256 : memref<64xf32>
// CHECK:         %tmp2 = ukernel.temp at 0 : memref<64xf32>
// APART-LABEL: ukernel.plan @f ins(%x : memref<64xf32>) attributes {workspace = 768 : i64} {
// APART:         ukernel.temp at 0 :
// APART:         ukernel.temp at 256 :
// APART:         ukernel.temp at 512 :
// BAD: error: alignment: expected a power of two that is at least 8, got 48 [bad-option]
// BAD:   in pass: plan-memory
ukernel.plan @f ins(%x : memref<64xf32>) {
  %out0 = ukernel.output : memref<64xf32>
  %tmp0 = ukernel.temp : memref<64xf32>
  ukernel.launch @copy ins(%x : memref<64xf32>) outs(%tmp0 : memref<64xf32>)
  %tmp1 = ukernel.temp : memref<64xf32>
  ukernel.launch @copy ins(%tmp0 : memref<64xf32>) outs(%tmp1 : memref<64xf32>)
  %tmp2 = ukernel.temp : memref<64xf32>
  ukernel.launch @copy ins(%tmp1 : memref<64xf32>) outs(%tmp2 : memref<64xf32>)
  ukernel.launch @copy ins(%tmp2 : memref<64xf32>) outs(%out0 : memref<64xf32>)
  ukernel.return %out0 : memref<64xf32>
}

// A view keeps its temp alive; sizes count at their upper bounds, rounded up; the largest goes
// first, and a small one into the gap that it leaves when it is dead.
// CHECK-LABEL: ukernel.plan @g
// CHECK-SAME:    workspace = 512 : i64
// CHECK:         %big = ukernel.temp at 0 : memref<?xf32> of [n]
// CHECK:         %small = ukernel.temp at 448 : memref<3xi8>
// CHECK:         %later = ukernel.temp at 0 : memref<64xf32>
// CHECK:         %last = ukernel.temp at 256 : memref<3xi8>
ukernel.plan @g sizes(%n = n = 1 to 100) ins(%x : memref<?xf32> of [n], %y : memref<3xi8>, %z : memref<64xf32>) {
  %out0 = ukernel.output : memref<3xi8>
  %big = ukernel.temp : memref<?xf32> of [n], n = 1 to 100
  ukernel.launch @dynamic sizes(%n) ins(%x : memref<?xf32>) outs(%big : memref<?xf32>)
  %small = ukernel.temp : memref<3xi8>
  ukernel.launch @bytes sizes(%n) ins(%big, %y : memref<?xf32>, memref<3xi8>) outs(%small : memref<3xi8>)
  %again = ukernel.view %small : memref<3xi8> -> memref<3x1xi8>
  %later = ukernel.temp : memref<64xf32>
  ukernel.launch @copy ins(%z : memref<64xf32>) outs(%later : memref<64xf32>)
  %last = ukernel.temp : memref<3xi8>
  ukernel.launch @mixed ins(%later, %again : memref<64xf32>, memref<3x1xi8>) outs(%last : memref<3xi8>)
  ukernel.launch @three ins(%last : memref<3xi8>) outs(%out0 : memref<3xi8>)
  ukernel.return %out0 : memref<3xi8>
}

ukernel.kernel @copy ins(%a : memref<64xf32>) outs(%b : memref<64xf32>) {
  %0 = ukernel.read %a : memref<64xf32> -> tensor<64xf32>
  ukernel.write %0, %b : tensor<64xf32>, memref<64xf32>
}
ukernel.kernel @dynamic sizes(%n = n = 1 to 100) ins(%a : memref<?xf32> of [n]) outs(%b : memref<?xf32> of [n]) {
}
ukernel.kernel @bytes sizes(%n = n = 1 to 100) ins(%a : memref<?xf32> of [n], %b : memref<3xi8>) outs(%c : memref<3xi8>) {
}
ukernel.kernel @mixed ins(%a : memref<64xf32>, %b : memref<3x1xi8>) outs(%c : memref<3xi8>) {
}
ukernel.kernel @three ins(%a : memref<3xi8>) outs(%c : memref<3xi8>) {
}
