// RUN: uopc-opt %s -p kernelize --split-input-file | filecheck %s
// RUN: uopc-opt %s -p "kernelize{fuse-reduce=auto}" --split-input-file | filecheck %s --check-prefix AUTO

// The example of the pass: cut at the reduction.
// CHECK-LABEL: ukernel.plan @f ins(%x : memref<4x8xf32>) attributes {input_names = ["x"]} {
// CHECK-NEXT:    %out0 = ukernel.output : memref<4xf32>
// CHECK-NEXT:    %tmp0 = ukernel.temp : memref<4xf32>
// CHECK-NEXT:    ukernel.launch @r_4 ins(%x : memref<4x8xf32>) outs(%tmp0 : memref<4xf32>)
// CHECK-NEXT:    ukernel.launch @e_4 ins(%tmp0 : memref<4xf32>) outs(%out0 : memref<4xf32>)
// CHECK-NEXT:    ukernel.return %out0 : memref<4xf32>
// CHECK-NEXT:  }
// CHECK-NEXT:  ukernel.kernel @r_4 ins(%x : memref<4x8xf32>) outs(%tmp0 : memref<4xf32>) attributes {flops = 64 : i64, bytes = 144 : i64, doc = "exp, reduce add [1]"} {
// CHECK-NEXT:    %x_1 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:    %e = utensor.exp %x_1 : tensor<4x8xf32>
// CHECK-NEXT:    %s = utensor.reduce add %e axes [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:    ukernel.write %s, %tmp0 : tensor<4xf32>, memref<4xf32>
// CHECK-NEXT:  }
// CHECK-NEXT:  ukernel.kernel @e_4 ins(%tmp0 : memref<4xf32>) outs(%out0 : memref<4xf32>) attributes {flops = 4 : i64, bytes = 32 : i64, doc = "sqrt"} {
// CHECK-NEXT:    %s = ukernel.read %tmp0 : memref<4xf32> -> tensor<4xf32>
// CHECK-NEXT:    %r = utensor.sqrt %s : tensor<4xf32>
// CHECK-NEXT:    ukernel.write %r, %out0 : tensor<4xf32>, memref<4xf32>
// CHECK-NEXT:  }

// AUTO-LABEL: ukernel.plan @f
// AUTO-NEXT:    %out0 = ukernel.output : memref<4xf32>
// AUTO-NEXT:    ukernel.launch @r_4 ins(%x : memref<4x8xf32>) outs(%out0 : memref<4xf32>)
func.func @f(%x : tensor<4x8xf32>) -> tensor<4xf32> {
  %e = utensor.exp %x : tensor<4x8xf32>
  %s = utensor.reduce add %e axes [1] : tensor<4x8xf32> -> tensor<4xf32>
  %r = utensor.sqrt %s : tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// -----
// Results that are inputs or other results cost no kernel; a result that others read is written
// once; `detach` is nothing; names come from uopc.name.
// CHECK-LABEL: ukernel.plan @aliases ins(%x : memref<4x8xf32>, %unused : memref<2xi8>) attributes {input_names = ["layer1.weight", "unused"]} {
// CHECK-NEXT:    %out0 = ukernel.output : memref<4xf32>
// CHECK-NEXT:    %out4 = ukernel.output : memref<8x4xf32>
// CHECK-NEXT:    %out5 = ukernel.output : memref<4xf32>
// CHECK-NEXT:    ukernel.launch @r_4 ins(%x : memref<4x8xf32>) outs(%out0 : memref<4xf32>)
// CHECK-NEXT:    ukernel.launch @e_8_4 ins(%x : memref<4x8xf32>) outs(%out4 : memref<8x4xf32>)
// CHECK-NEXT:    ukernel.launch @e_4 ins(%out0 : memref<4xf32>) outs(%out5 : memref<4xf32>)
// CHECK-NEXT:    %{{.*}} = ukernel.view %out0 : memref<4xf32> -> memref<4x1xf32>
// CHECK-NEXT:    %{{.*}} = ukernel.view %x : memref<4x8xf32> -> memref<32xf32>
// CHECK-NEXT:    ukernel.return %{{.*}}, %out0, %x, %{{.*}}, %out4, %out5 : memref<4x1xf32>, memref<4xf32>, memref<4x8xf32>, memref<32xf32>, memref<8x4xf32>, memref<4xf32>
func.func @aliases(%x : tensor<4x8xf32> {uopc.name = "layer1.weight"}, %unused : tensor<2xi8>)
    -> (tensor<4x1xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<8x4xf32>, tensor<4xf32>) {
  %m = utensor.reduce max %x axes [1] : tensor<4x8xf32> -> tensor<4xf32>
  %kept = utensor.reshape %m : tensor<4xf32> -> tensor<4x1xf32>
  %flat = utensor.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %d = utensor.stage detach %x : tensor<4x8xf32>
  %turned = utensor.permute %d [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %e = utensor.exp %m : tensor<4xf32>
  func.return %kept, %m, %d, %flat, %turned, %e : tensor<4x1xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<8x4xf32>, tensor<4xf32>
}

// -----
// Constants of many values are buffers, of one value are part of the kernels; equal ones are one.
// CHECK-LABEL: ukernel.plan @constants ins(%x : memref<3xi32>)
// CHECK-NEXT:    %const0 = ukernel.constant dense<[1, 2, 3]> : tensor<3xi32>
// CHECK-NEXT:    %out0 = ukernel.output : memref<3xi32>
// CHECK-NEXT:    %out1 = ukernel.output : memref<3xi32>
// CHECK-NEXT:    %out2 = ukernel.output : memref<2xf32>
// CHECK-NEXT:    ukernel.launch @e_3 ins(%const0 : memref<3xi32>) outs(%out1 : memref<3xi32>)
// CHECK-NEXT:    ukernel.launch @e_2 ins() outs(%out2 : memref<2xf32>)
// CHECK-NEXT:    ukernel.launch @e_3$1 ins(%x, %const0 : memref<3xi32>, memref<3xi32>) outs(%out0 : memref<3xi32>)
// CHECK:       ukernel.kernel @e_3 ins(%const0 : memref<3xi32>) outs(%out1 : memref<3xi32>) attributes {bytes = 24 : i64, doc = "copy"} {
// CHECK-NEXT:    %a = ukernel.read %const0 : memref<3xi32> -> tensor<3xi32>
// CHECK-NEXT:    ukernel.write %a, %out1 : tensor<3xi32>, memref<3xi32>
// CHECK:       ukernel.kernel @e_2 ins() outs(%out2 : memref<2xf32>) attributes {bytes = 8 : i64, doc = "constant"} {
// CHECK-NEXT:    %c = utensor.constant -0.0 : tensor<2xf32>
// CHECK:       ukernel.kernel @e_3$1 ins(%x : memref<3xi32>, %const0 : memref<3xi32>) outs(%out0 : memref<3xi32>) attributes {{.*}}doc = "mul, add"
// CHECK:         utensor.constant 5 : tensor<3xi32>
func.func @constants(%x : tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>, tensor<2xf32>) {
  %a = utensor.constant dense<[1, 2, 3]> : tensor<3xi32>
  %b = utensor.constant dense<[1, 2, 3]> : tensor<3xi32>
  %five = utensor.constant dense<[5, 5, 5]> : tensor<3xi32>
  %c = utensor.constant -0.0 : tensor<2xf32>
  %0 = utensor.mul %x, %b : tensor<3xi32>
  %1 = utensor.add %0, %five : tensor<3xi32>
  func.return %1, %a, %c : tensor<3xi32>, tensor<3xi32>, tensor<2xf32>
}

// -----
// Symbolic sizes: the plan takes them all, a kernel those it mentions.
// CHECK-LABEL: ukernel.plan @symbols sizes(%n = n = 1 to 64, %m = m = 2 to 8) ins(%x : memref<?x8xf32> of [n + 1, 8], %y : memref<?xf32> of [m])
// CHECK:         ukernel.launch @r_n_plus_1 sizes(%n) ins(%x : memref<?x8xf32>) outs(%out0 : memref<?xf32>)
// CHECK:         ukernel.launch @e_2_times_m sizes(%m) ins(%y : memref<?xf32>) outs(%out1 : memref<?xf32>)
// CHECK:       ukernel.kernel @r_n_plus_1 sizes(%n = n = 1 to 64) ins(%x : memref<?x8xf32> of [n + 1, 8]) outs(%out0 : memref<?xf32> of [n + 1]) attributes {flops = 520 : i64, bytes = 2340 : i64
// CHECK:       ukernel.kernel @e_2_times_m sizes(%m = m = 2 to 8)
// CHECK:         utensor.pad
func.func @symbols(%x : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>>,
                   %y : tensor<?xf32, #utensor.sizes<[m], m = 2 to 8>>)
    -> (tensor<?xf32, #utensor.sizes<[n + 1], n = 1 to 64>>, tensor<?xf32, #utensor.sizes<[m * 2], m = 2 to 8>>) {
  %0 = utensor.reduce add %x axes [1] : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<?xf32, #utensor.sizes<[n + 1], n = 1 to 64>>
  %1 = utensor.pad %y low [0] high [m], m = 2 to 8 value 1.0 : tensor<?xf32, #utensor.sizes<[m], m = 2 to 8>> -> tensor<?xf32, #utensor.sizes<[m * 2], m = 2 to 8>>
  func.return %0, %1 : tensor<?xf32, #utensor.sizes<[n + 1], n = 1 to 64>>, tensor<?xf32, #utensor.sizes<[m * 2], m = 2 to 8>>
}

// -----
// Scatter and argreduce have kernels, gather and iota do not.
// CHECK-LABEL: ukernel.plan @indexed
// CHECK:         ukernel.launch @r_3 ins(%x : memref<3x4xf32>) outs(%tmp0 : memref<3xi32>)
// CHECK:         ukernel.launch @e_10_4 ins(%t, %tmp0, %x : memref<10x4xf32>, memref<3xi32>, memref<3x4xf32>) outs(%tmp1 : memref<10x4xf32>)
// CHECK:         ukernel.launch @e_3_4 ins(%tmp1, %tmp0 : memref<10x4xf32>, memref<3xi32>) outs(%out0 : memref<3x4xf32>)
// CHECK:       ukernel.kernel @e_10_4
// CHECK-SAME:    doc = "scatter"
// CHECK:         utensor.scatter add
// CHECK-NEXT:    ukernel.write
// CHECK:       ukernel.kernel @e_3_4
// CHECK-SAME:    doc = "iota, add, gather, neg"
func.func @indexed(%t : tensor<10x4xf32>, %x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %i = utensor.argreduce max %x axis 1 : tensor<3x4xf32> -> tensor<3xi32>
  %s = utensor.scatter add %t, %i, %x axis 0 : tensor<10x4xf32>, tensor<3xi32>, tensor<3x4xf32> -> tensor<10x4xf32>
  %k = utensor.iota axis 0 : tensor<3xi32>
  %j = utensor.add %k, %i : tensor<3xi32>
  %g = utensor.gather %s, %j axis 0 : tensor<10x4xf32>, tensor<3xi32> -> tensor<3x4xf32>
  %r = utensor.neg %g : tensor<3x4xf32>
  func.return %r : tensor<3x4xf32>
}

// -----
// A loop: what a scatter changes here and there stays in its buffer, the counter has two that
// change places, what is never changed is read from outside, and a flag is written each time.
// CHECK-LABEL: ukernel.plan @scan
// CHECK:         %out0 = ukernel.output : memref<5x4xf32>
// CHECK:         ukernel.launch @e_5_4 ins() outs(%out0 : memref<5x4xf32>)
// CHECK:         ukernel.while (%[[I:.*]] = %{{.*}}, %next = %{{.*}} : memref<1xi32>, memref<1xi32>) {
// CHECK-NEXT:      %[[FLAG:.*]] = ukernel.temp : memref<i1>
// CHECK-NEXT:      %[[SEEN:.*]] = ukernel.view %[[FLAG]] : memref<i1> -> memref<1xi1>
// CHECK-NEXT:      ukernel.launch @e_1$1 ins(%[[I]] : memref<1xi32>) outs(%[[SEEN]] : memref<1xi1>)
// CHECK-NEXT:      ukernel.condition %[[FLAG]] : memref<i1>
// CHECK-NEXT:    } do {
// CHECK-NEXT:    ^bb0(%[[J:.*]]: memref<1xi32>, %[[NEXT:.*]]: memref<1xi32>):
// CHECK-NEXT:      ukernel.launch @e_5_4$1 ins(%[[J]], %x : memref<1xi32>, memref<5x4xf32>) outs(%out0 : memref<5x4xf32>)
// CHECK-NEXT:      ukernel.launch @e_1$2 ins(%[[J]] : memref<1xi32>) outs(%[[NEXT]] : memref<1xi32>)
// CHECK-NEXT:      ukernel.yield %[[NEXT]], %[[J]] : memref<1xi32>, memref<1xi32>
// CHECK:         ukernel.return %out0 : memref<5x4xf32>
// CHECK:       ukernel.kernel @e_5_4$1
// CHECK-SAME:    doc = "gather, exp, scatter"
// CHECK-NEXT:    %[[OLD:.*]] = ukernel.read %out0 : memref<5x4xf32> -> tensor<5x4xf32>
func.func @scan(%x : tensor<5x4xf32>) -> tensor<5x4xf32> {
  %i0 = utensor.constant 0 : tensor<1xi32>
  %y0 = utensor.constant 0.0 : tensor<5x4xf32>
  %r:3 = scf.while (%i = %i0, %y = %y0, %u = %x) : (tensor<1xi32>, tensor<5x4xf32>, tensor<5x4xf32>) -> (tensor<1xi32>, tensor<5x4xf32>, tensor<5x4xf32>) {
    %n = utensor.constant 5 : tensor<1xi32>
    %c = utensor.cmplt %i, %n : tensor<1xi32>
    %more = utensor.reshape %c : tensor<1xi1> -> tensor<i1>
    %flag = tensor.extract %more[] : tensor<i1>
    scf.condition(%flag) %i, %y, %u : tensor<1xi32>, tensor<5x4xf32>, tensor<5x4xf32>
  } do {
  ^bb0(%i : tensor<1xi32>, %y : tensor<5x4xf32>, %u : tensor<5x4xf32>):
    %row = utensor.gather %u, %i axis 0 : tensor<5x4xf32>, tensor<1xi32> -> tensor<1x4xf32>
    %e = utensor.exp %row : tensor<1x4xf32>
    %put = utensor.scatter set %y, %i, %e axis 0 : tensor<5x4xf32>, tensor<1xi32>, tensor<1x4xf32> -> tensor<5x4xf32>
    %one = utensor.constant 1 : tensor<1xi32>
    %j = utensor.add %i, %one : tensor<1xi32>
    scf.yield %j, %put, %u : tensor<1xi32>, tensor<5x4xf32>, tensor<5x4xf32>
  }
  func.return %r#1 : tensor<5x4xf32>
}

// -----
// A branch writes to the buffer of the result. A scatter whose operand is not needed any more is
// written in place.
// CHECK-LABEL: ukernel.plan @choose
// CHECK:         ukernel.if %go : memref<i1> {
// CHECK-NEXT:      ukernel.launch @e_4 ins(%x : memref<4xf32>) outs(%out0 : memref<4xf32>)
// CHECK-NEXT:      ukernel.launch @e_4$1 ins(%i : memref<1xi32>) outs(%out0 : memref<4xf32>)
// CHECK-NEXT:      ukernel.yield
// CHECK-NEXT:    } else {
// CHECK-NEXT:      ukernel.launch @e_4$2 ins(%x : memref<4xf32>) outs(%out0 : memref<4xf32>)
// CHECK-NEXT:      ukernel.yield
// CHECK-NEXT:    }
func.func @choose(%go : tensor<i1>, %x : tensor<4xf32>, %i : tensor<1xi32>) -> tensor<4xf32> {
  %flag = tensor.extract %go[] : tensor<i1>
  %r = scf.if %flag -> (tensor<4xf32>) {
    %e = utensor.exp %x : tensor<4xf32>
    %s = utensor.stage contiguous %e : tensor<4xf32>
    %one = utensor.constant 1.0 : tensor<1xf32>
    %p = utensor.scatter add %s, %i, %one axis 0 : tensor<4xf32>, tensor<1xi32>, tensor<1xf32> -> tensor<4xf32>
    scf.yield %p : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
