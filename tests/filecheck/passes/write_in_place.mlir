// RUN: uopc-opt %s -p write-in-place --split-input-file --check-values | filecheck %s
// RUN: uopc-opt %s -p "write-in-place,plan-memory,schedule{target=avx2},apply-schedule,linearize,lower-plan" --split-input-file --check-values | filecheck %s --check-prefix LINEAR

// The example of the pass: the second kernel writes over what the first one wrote.
// CHECK-LABEL: ukernel.plan @example
// CHECK:         %tmp0 = ukernel.temp : memref<64xf32>
// CHECK-NEXT:    ukernel.launch @double ins(%x : memref<64xf32>) outs(%tmp0 : memref<64xf32>)
// CHECK-NEXT:    ukernel.launch @add ins(%x : memref<64xf32>) outs(%tmp0 : memref<64xf32>)
// CHECK-NEXT:    ukernel.launch @last ins(%tmp0 : memref<64xf32>) outs(%out0 : memref<1xf32>)
// CHECK:       ukernel.kernel @add ins(%b : memref<64xf32>) outs(%o : memref<64xf32>)
// CHECK-NEXT:    %i = uloop.range 64
// CHECK-NEXT:    %0 = uloop.load %o[%i] : memref<64xf32>
// LINEAR-LABEL: func.func @example
// LINEAR-SAME:    %workspace: memref<256xi8>
// LINEAR:       func.func private @add(%b: memref<64xf32> {llvm.noalias, llvm.readonly}, %o: memref<64xf32> {llvm.noalias})
ukernel.plan @example ins(%x : memref<64xf32>) {
  %out0 = ukernel.output : memref<1xf32>
  %tmp0 = ukernel.temp : memref<64xf32>
  ukernel.launch @double ins(%x : memref<64xf32>) outs(%tmp0 : memref<64xf32>)
  %tmp1 = ukernel.temp : memref<64xf32>
  ukernel.launch @add ins(%tmp0, %x : memref<64xf32>, memref<64xf32>) outs(%tmp1 : memref<64xf32>)
  ukernel.launch @last ins(%tmp1 : memref<64xf32>) outs(%out0 : memref<1xf32>)
  ukernel.return %out0 : memref<1xf32>
}
ukernel.kernel @double ins(%a : memref<64xf32>) outs(%o : memref<64xf32>) {
  %i = uloop.range 64
  %0 = uloop.load %a[%i] : memref<64xf32>
  %1 = arith.addf %0, %0 : f32
  uloop.store %1, %o[%i] : memref<64xf32>
}
ukernel.kernel @add ins(%a : memref<64xf32>, %b : memref<64xf32>) outs(%o : memref<64xf32>) {
  %i = uloop.range 64
  %0 = uloop.load %a[%i] : memref<64xf32>
  %1 = uloop.load %b[%i] : memref<64xf32>
  %2 = arith.addf %0, %1 : f32
  uloop.store %2, %o[%i] : memref<64xf32>
}
ukernel.kernel @last ins(%a : memref<64xf32>) outs(%o : memref<1xf32>) {
  %0 = uloop.load %a[63] : memref<64xf32>
  uloop.store %0, %o[0] : memref<1xf32>
}

// -----
// A donated input becomes the result; one that is not donated does not. A temporary that becomes
// an output is that output from the start.
// CHECK-LABEL: ukernel.plan @donated
// CHECK-NEXT:    %out1 = ukernel.output : memref<8xf32>
// CHECK-NEXT:    ukernel.launch @add ins(%y : memref<8xf32>) outs(%x : memref<8xf32>)
// CHECK-NEXT:    ukernel.launch @double ins(%y : memref<8xf32>) outs(%out1 : memref<8xf32>)
// CHECK-NEXT:    ukernel.launch @add ins(%y : memref<8xf32>) outs(%out1 : memref<8xf32>)
// CHECK-NEXT:    ukernel.return %x, %out1
// LINEAR-LABEL: func.func @donated(%x: memref<8xf32> {llvm.noalias, uopc.donated, uopc.name = "x", uopc.result = 0 : i64}, %y: memref<8xf32> {llvm.noalias, llvm.readonly, uopc.name = "y"}, %out1: memref<8xf32> {llvm.noalias})
ukernel.plan @donated ins(%x : memref<8xf32>, %y : memref<8xf32>) attributes {input_names = ["x", "y"], donated = [0 : i64]} {
  %out0 = ukernel.output : memref<8xf32>
  %out1 = ukernel.output : memref<8xf32>
  ukernel.launch @add ins(%x, %y : memref<8xf32>, memref<8xf32>) outs(%out0 : memref<8xf32>)
  %tmp0 = ukernel.temp : memref<8xf32>
  ukernel.launch @double ins(%y : memref<8xf32>) outs(%tmp0 : memref<8xf32>)
  ukernel.launch @add ins(%tmp0, %y : memref<8xf32>, memref<8xf32>) outs(%out1 : memref<8xf32>)
  ukernel.return %out0, %out1 : memref<8xf32>, memref<8xf32>
}
ukernel.kernel @double ins(%a : memref<8xf32>) outs(%o : memref<8xf32>) {
  %i = uloop.range 8
  %0 = uloop.load %a[%i] : memref<8xf32>
  %1 = arith.addf %0, %0 : f32
  uloop.store %1, %o[%i] : memref<8xf32>
}
ukernel.kernel @add ins(%a : memref<8xf32>, %b : memref<8xf32>) outs(%o : memref<8xf32>) {
  %i = uloop.range 8
  %0 = uloop.load %a[%i] : memref<8xf32>
  %1 = uloop.load %b[%i] : memref<8xf32>
  %2 = arith.addf %0, %1 : f32
  uloop.store %2, %o[%i] : memref<8xf32>
}

// -----
// Two results of one kernel: the second is made of the first input too, and still reads it before.
// CHECK-LABEL: ukernel.plan @two
// CHECK:         ukernel.launch @both ins(%g : memref<5x7xf32>) outs(%m, %p :
// CHECK-NEXT:    ukernel.return %m, %p
ukernel.plan @two ins(%m : memref<5x7xf32>, %p : memref<5x7xf32>, %g : memref<5x7xf32>) attributes {donated = [0 : i64, 1 : i64]} {
  %out0 = ukernel.output : memref<5x7xf32>
  %out1 = ukernel.output : memref<5x7xf32>
  ukernel.launch @both ins(%m, %p, %g : memref<5x7xf32>, memref<5x7xf32>, memref<5x7xf32>) outs(%out0, %out1 : memref<5x7xf32>, memref<5x7xf32>)
  ukernel.return %out0, %out1 : memref<5x7xf32>, memref<5x7xf32>
}
ukernel.kernel @both ins(%m : memref<5x7xf32>, %p : memref<5x7xf32>, %g : memref<5x7xf32>) outs(%m1 : memref<5x7xf32>, %p1 : memref<5x7xf32>) {
  %i = uloop.range 5
  %j = uloop.range 7
  %0 = uloop.load %m[%i, %j] : memref<5x7xf32>
  %1 = uloop.load %g[%i, %j] : memref<5x7xf32>
  %2 = arith.addf %0, %1 : f32
  uloop.store %2, %m1[%i, %j] : memref<5x7xf32>
  %3 = uloop.load %p[%i, %j] : memref<5x7xf32>
  %4 = arith.subf %3, %2 : f32
  %5 = arith.mulf %4, %0 : f32
  uloop.store %5, %p1[%i, %j] : memref<5x7xf32>
}

// -----
// Nothing is written over that is read later (%tmp0 by @add), at another place (@turn), more than
// once in a step (@row), or returned (%x). Of @add's inputs only the second may be, in both launches.
// CHECK-LABEL: ukernel.plan @kept
// CHECK:         %tmp0 = ukernel.temp
// CHECK:         %tmp1 = ukernel.temp
// CHECK-NEXT:    ukernel.launch @turn ins(%tmp0 : {{.*}}) outs(%tmp1
// CHECK-NEXT:    ukernel.launch @row ins(%tmp1 : {{.*}}) outs(%out0
// CHECK-NEXT:    ukernel.launch @add ins(%tmp0 : {{.*}}) outs(%out0
// CHECK-NEXT:    ukernel.launch @add ins(%x : {{.*}}) outs(%out0
ukernel.plan @kept ins(%x : memref<4x4xf32>) attributes {donated = [0 : i64]} {
  %out0 = ukernel.output : memref<4x4xf32>
  %tmp0 = ukernel.temp : memref<4x4xf32>
  ukernel.launch @turn ins(%x : memref<4x4xf32>) outs(%tmp0 : memref<4x4xf32>)
  %tmp1 = ukernel.temp : memref<4x4xf32>
  ukernel.launch @turn ins(%tmp0 : memref<4x4xf32>) outs(%tmp1 : memref<4x4xf32>)
  %tmp2 = ukernel.temp : memref<4x4xf32>
  ukernel.launch @row ins(%tmp1 : memref<4x4xf32>) outs(%tmp2 : memref<4x4xf32>)
  %tmp3 = ukernel.temp : memref<4x4xf32>
  ukernel.launch @add ins(%tmp0, %tmp2 : memref<4x4xf32>, memref<4x4xf32>) outs(%tmp3 : memref<4x4xf32>)
  ukernel.launch @add ins(%x, %tmp3 : memref<4x4xf32>, memref<4x4xf32>) outs(%out0 : memref<4x4xf32>)
  ukernel.return %x, %out0 : memref<4x4xf32>, memref<4x4xf32>
}
ukernel.kernel @turn ins(%a : memref<4x4xf32>) outs(%o : memref<4x4xf32>) {
  %i = uloop.range 4
  %j = uloop.range 4
  %0 = uloop.load %a[%j, %i] : memref<4x4xf32>
  uloop.store %0, %o[%i, %j] : memref<4x4xf32>
}
ukernel.kernel @row ins(%a : memref<4x4xf32>) outs(%o : memref<4x4xf32>) {
  %i = uloop.range 4
  %j = uloop.range 4
  %k = uloop.range 4 reduce
  %0 = uloop.load %a[%i, %k] : memref<4x4xf32>
  %1 = uloop.reduce add %0 over (%k) : f32
  %2 = uloop.load %a[%i, %j] : memref<4x4xf32>
  %3 = arith.mulf %1, %2 : f32
  uloop.store %3, %o[%i, %j] : memref<4x4xf32>
}
ukernel.kernel @add ins(%a : memref<4x4xf32>, %b : memref<4x4xf32>) outs(%o : memref<4x4xf32>) {
  %i = uloop.range 4
  %j = uloop.range 4
  %0 = uloop.load %a[%i, %j] : memref<4x4xf32>
  %1 = uloop.load %b[%i, %j] : memref<4x4xf32>
  %2 = arith.addf %0, %1 : f32
  uloop.store %2, %o[%i, %j] : memref<4x4xf32>
}
