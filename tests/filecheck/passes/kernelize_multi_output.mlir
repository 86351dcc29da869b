// RUN: uopc-opt %s -p "kernelize{multi-output=true}" --split-input-file | filecheck %s
// RUN: uopc-opt %s -p "kernelize{multi-output=true},rangeify" --split-input-file --check-values | filecheck %s --check-prefix LOOPS
// RUN: uopc-opt %s -p kernelize --split-input-file | filecheck %s --check-prefix APART

// The example of kernel_cut/multi_output.py: three results of one parameter, %g read once.
// CHECK-LABEL: ukernel.plan @step
// CHECK:         ukernel.launch @e_4_6 ins(%m, %g, %v, %p : {{.*}}) outs(%out0, %out1, %out2 : {{.*}})
// CHECK-NEXT:    ukernel.return
// CHECK:       ukernel.kernel @e_4_6
// CHECK:         ukernel.write %m1, %out0
// CHECK-NEXT:    ukernel.write %v1, %out1
// CHECK-NEXT:    ukernel.write %p1, %out2
// LOOPS-LABEL: ukernel.kernel @e_4_6
// LOOPS-NEXT:    %i = uloop.range 4
// LOOPS-NEXT:    %j = uloop.range 6
// LOOPS-NOT:     uloop.range
// LOOPS:         uloop.store %m1, %out0[%i, %j]
// LOOPS:         uloop.store %v1, %out1[%i, %j]
// LOOPS:         uloop.store %p1, %out2[%i, %j]
// APART-LABEL: ukernel.plan @step
// APART-COUNT-3: ukernel.launch
func.func @step(%m : tensor<4x6xf32>, %v : tensor<4x6xf32>, %p : tensor<4x6xf32>, %g : tensor<4x6xf32>)
    -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %m1 = utensor.add %m, %g : tensor<4x6xf32>
  %gg = utensor.mul %g, %g : tensor<4x6xf32>
  %v1 = utensor.add %v, %gg : tensor<4x6xf32>
  %c = utensor.mul %m1, %v1 : tensor<4x6xf32>
  %p1 = utensor.sub %p, %c : tensor<4x6xf32>
  func.return %m1, %v1, %p1 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

// -----
// A reshape keeps elements at their number, a permute does not: %a and %b share, %c reads %x elsewhere.
// CHECK-LABEL: ukernel.plan @numbers
// CHECK:         ukernel.launch @e_6 ins(%x : {{.*}}) outs(%out0, %out1
// CHECK-NEXT:    ukernel.launch @e_6$1 ins(%x : {{.*}}) outs(%out2
func.func @numbers(%x : tensor<2x3xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %f = utensor.reshape %x : tensor<2x3xf32> -> tensor<6xf32>
  %a = utensor.exp %f : tensor<6xf32>
  %b = utensor.neg %f : tensor<6xf32>
  %t = utensor.permute %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %u = utensor.reshape %t : tensor<3x2xf32> -> tensor<6xf32>
  %c = utensor.exp %u : tensor<6xf32>
  func.return %a, %b, %c : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----
// The sum reads %a between: a kernel of %a and %b would stand behind it. So each has its own.
// CHECK-LABEL: ukernel.plan @between
// CHECK:         ukernel.launch @e_4 ins(%x : {{.*}}) outs(%out0
// CHECK:         ukernel.launch @r_1 ins(%out0
// CHECK-NEXT:    ukernel.launch @e_4$1 ins(%x, %tmp0
func.func @between(%x : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = utensor.exp %x : tensor<4xf32>
  %s = utensor.reduce add %a axes [0] : tensor<4xf32> -> tensor<f32>
  %r = utensor.reshape %s : tensor<f32> -> tensor<1xf32>
  %e = utensor.expand %r : tensor<1xf32> -> tensor<4xf32>
  %b = utensor.mul %x, %e : tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----
// Sizes known at the call: one kernel. Other sizes, or nothing in common: two.
// CHECK-LABEL: ukernel.plan @open
// CHECK:         ukernel.launch @e_n sizes(%n) ins(%x : {{.*}}) outs(%out0, %out1
// CHECK-NEXT:    ukernel.launch @e_3 ins(%y : {{.*}}) outs(%out2
func.func @open(%x : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>, %y : tensor<3xf32>)
    -> (tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>, tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>, tensor<3xf32>) {
  %a = utensor.exp %x : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>
  %b = utensor.neg %x : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>
  %c = utensor.exp %y : tensor<3xf32>
  func.return %a, %b, %c : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>, tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>, tensor<3xf32>
}
