// What each verifier of ukernel says. One mistake a chunk.
// RUN: uopc-opt %s --split-input-file --verify-diagnostics > /dev/null

// expected-error@+1 {{a kernel with 1 buffers cannot write 2 of them}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[]>, buffer_sizes = [#utensor.sizes<[4]>], outputs = 2 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0(%x: memref<4xf32>):
}) : () -> ()

// -----

// expected-error@+1 {{ukernel.kernel: expected sizes for 1 buffers, got 0}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[]>, buffer_sizes = [], outputs = 1 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0(%x: memref<4xf32>):
}) : () -> ()

// -----

// expected-error@+1 {{argument 0: sizes [5] do not fit memref<4xf32>}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[]>, buffer_sizes = [#utensor.sizes<[5]>], outputs = 1 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0(%x: memref<4xf32>):
}) : () -> ()

// -----

// expected-error@+1 {{argument 0: m is not over the sizes}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[n], n = 1 to 2>, buffer_sizes = [#utensor.sizes<[m], m = 1 to 2>], outputs = 1 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0(%n: index, %x: memref<?xf32>):
}) : () -> ()

// -----

// expected-error@+1 {{ukernel.kernel: expected a symbol, got n + 1}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[n + 1], n = 1 to 2>, buffer_sizes = [], outputs = 0 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0(%n: index):
}) : () -> ()

// -----

// expected-error@+1 {{ukernel.kernel: a symbol is listed twice}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[n, n], n = 1 to 2>, buffer_sizes = [], outputs = 0 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0(%n: index, %m: index):
}) : () -> ()

// -----

// expected-error@+1 {{ukernel.kernel: expected an argument for each of 1 symbols, got 0}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[n], n = 1 to 2>, buffer_sizes = [], outputs = 0 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0:
  %0 = "test.op"() : () -> index
}) : () -> ()

// -----

// expected-error@+1 {{a size argument is an index, got i32}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[n], n = 1 to 2>, buffer_sizes = [], outputs = 0 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0(%n: i32):
}) : () -> ()

// -----

// expected-error@+1 {{expected a memref, got f32}}
"ukernel.kernel"() <{sym_name = "k", symbols = #utensor.sizes<[]>, buffer_sizes = [#utensor.sizes<[]>], outputs = 0 : i64, flops = 0 : i64, bytes = 0 : i64}> ({
^bb0(%x: f32):
}) : () -> ()

// -----

// expected-error@+1 {{memref<?xf32> has a `?`: expected 'of [sizes]' after it}}
ukernel.kernel @k ins(%x : memref<?xf32>) outs() {
}

// -----

// expected-error@+1 {{the size 'm' has no bounds: expected 'm = LOW to HIGH'; known are n}}
ukernel.kernel @k sizes(%n = n = 1 to 2) ins(%x : memref<?xf32> of [m]) outs() {
}

// -----

ukernel.kernel @k ins(%x : memref<4xf32>) outs(%o : memref<5xf32>) {
  %0 = ukernel.read %x : memref<4xf32> -> tensor<4xf32>
  // expected-error@+1 {{ukernel.write: expected memref<4xf32> for tensor<4xf32>, got memref<5xf32>}}
  ukernel.write %0, %o : tensor<4xf32>, memref<5xf32>
}

// -----

ukernel.kernel @k ins(%x : memref<4xf32>) outs() {
  // expected-error@+1 {{ukernel.read: expected memref<4xi32> for tensor<4xi32>, got memref<4xf32>}}
  %0 = ukernel.read %x : memref<4xf32> -> tensor<4xi32>
}

// -----

// expected-error@+1 {{expected 1 input names, got 2}}
ukernel.plan @p ins(%x : memref<4xf32>) attributes {input_names = ["x", "y"]} {
  ukernel.return
}

// -----

// expected-error@+1 {{a plan ends in ukernel.return}}
ukernel.plan @p ins() {
  %t = ukernel.temp : memref<4xf32>
}

// -----

// expected-error@+1 {{ukernel.temp: m is not over the plan's sizes}}
ukernel.plan @p sizes(%n = n = 1 to 2) ins() {
  %t = ukernel.temp : memref<?xf32> of [m], m = 1 to 2
  ukernel.return
}

// -----

ukernel.plan @p ins() {
  // expected-error@+1 {{ukernel.temp: sizes [5] do not fit memref<4xf32>}}
  %t = "ukernel.temp"() <{sizes = #utensor.sizes<[5]>}> : () -> memref<4xf32>
  ukernel.return
}

// -----

ukernel.plan @p ins() {
  // expected-error@+1 {{ukernel.constant: expected memref<2xi32>, got memref<3xi32>}}
  %c = "ukernel.constant"() <{value = dense<1> : tensor<2xi32>}> : () -> memref<3xi32>
  ukernel.return
}

// -----

ukernel.plan @p ins(%x : memref<4xf32>) {
  // expected-error@+1 {{a view keeps the elements: 4 -> 5}}
  %v = ukernel.view %x : memref<4xf32> -> memref<5xf32>
  ukernel.return
}

// -----

ukernel.plan @p ins(%x : memref<4xf32>) {
  // expected-error@+1 {{a view keeps the element type: memref<4xf32> -> memref<4xi32>}}
  %v = ukernel.view %x : memref<4xf32> -> memref<4xi32>
  ukernel.return
}

// -----

ukernel.kernel @k ins(%x : memref<4xf32>) outs(%o : memref<4xf32>) {
}
ukernel.plan @p ins(%x : memref<4xf32>) {
  %o = ukernel.output : memref<5xf32>
  // expected-error@+1 {{@k expects (memref<4xf32>, memref<4xf32>) with 1 outputs, got (memref<4xf32>, memref<5xf32>) with 1}}
  ukernel.launch @k ins(%x : memref<4xf32>) outs(%o : memref<5xf32>)
  ukernel.return
}

// -----

ukernel.kernel @k ins(%x : memref<4xf32>) outs(%o : memref<4xf32>) {
}
ukernel.plan @p ins(%x : memref<4xf32>) {
  // expected-error@+1 {{@k expects (memref<4xf32>, memref<4xf32>) with 1 outputs, got (memref<4xf32>, memref<4xf32>) with 2}}
  ukernel.launch @k ins() outs(%x, %x : memref<4xf32>, memref<4xf32>)
  ukernel.return
}

// -----

ukernel.plan @p ins(%x : memref<4xf32>) {
  // expected-error@+1 {{@missing}}
  ukernel.launch @missing ins(%x : memref<4xf32>) outs()
  ukernel.return
}

// -----

ukernel.plan @p ins(%x : memref<4xf32>) {
  // expected-error@+1 {{2 operands have 1 types}}
  ukernel.launch @k ins(%x, %x : memref<4xf32>) outs()
  ukernel.return
}
