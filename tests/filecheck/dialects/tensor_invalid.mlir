// What each verifier of utensor says. One mistake a chunk.
// RUN: uopc-opt %s --split-input-file --verify-diagnostics > /dev/null

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{utensor.not: expected signed, unsigned or i1 elements, got tensor<4x6xf32>}}
  %r = "utensor.not"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2xi1>) {
  // expected-error@+1 {{utensor.sub: expected float, signed or unsigned elements, got tensor<2xi1>}}
  %r = "utensor.sub"(%x, %x) : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  func.return
}

// -----

func.func @f(%x: tensor<2xi8>) {
  // expected-error@+1 {{utensor.sin: expected float elements, got tensor<2xi8>}}
  %r = "utensor.sin"(%x) : (tensor<2xi8>) -> tensor<2xi8>
  func.return
}

// -----

func.func @f(%x: tensor<2xf32>, %y: tensor<2xf64>) {
  // expected-error@+1 {{operand 1 of utensor.add: expected tensor<2xf32>, got tensor<2xf64>}}
  %r = "utensor.add"(%x, %y) : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{result of utensor.cmplt: expected tensor<4x6xi1>, got tensor<4x6xf32>}}
  %r = "utensor.cmplt"(%x, %x) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2xf80>) {
  // expected-error@+1 {{element type f80 of tensor<2xf80> is not supported: expected f64, f32, f16, bf16, i1, i8, i16, i32, i64, ui8, ui16, ui32 or ui64}}
  %r = "utensor.neg"(%x) : (tensor<2xf80>) -> tensor<2xf80>
  func.return
}

// -----

func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{tensor<?xf32> has a dynamic size without bounds: expected an encoding such as #utensor.sizes<[n], n = 1 to 64>}}
  %r = "utensor.neg"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<2097152x1048576xf32>) {
  // expected-error@+1 {{has 2199023255552 elements, more than the limit of 1099511627776}}
  %r = "utensor.neg"(%x) : (tensor<2097152x1048576xf32>) -> tensor<2097152x1048576xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32, #utensor.sizes<[5]>>) {
  // expected-error@+1 {{contradicts its encoding's 5}}
  %r = "utensor.neg"(%x) : (tensor<4xf32, #utensor.sizes<[5]>>) -> tensor<4xf32, #utensor.sizes<[5]>>
  func.return
}

// -----

func.func @f(%c: tensor<3xi1>, %x: tensor<4x6xf32>) {
  // expected-error@+1 {{the condition: expected tensor<4x6xi1>, got tensor<3xi1>}}
  %r = "utensor.where"(%c, %x, %x) : (tensor<3xi1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{result of utensor.cast: expected tensor<4x6xi32>, got tensor<24xi32>}}
  %r = "utensor.cast"(%x) : (tensor<4x6xf32>) -> tensor<24xi32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{bitcast keeps the width: expected 32 bits, got i64}}
  %r = utensor.bitcast %x : tensor<4x6xf32> -> tensor<4x6xi64>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{reshape keeps the number of elements: expected 24, got 25 in 5x5}}
  %r = utensor.reshape %x : tensor<4x6xf32> -> tensor<5x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{result of utensor.reshape: expected tensor<24xf32>, got tensor<24xi32>}}
  %r = utensor.reshape %x : tensor<4x6xf32> -> tensor<24xi32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{permute needs each axis once: expected 2 axes, got [0]}}
  %r = utensor.permute %x [0] : tensor<4x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{permute: expected distinct axes, got [0, 0]}}
  %r = utensor.permute %x [0, 0] : tensor<4x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{expand keeps the rank: expected 2, got 1; reshape first}}
  %r = utensor.expand %x : tensor<4x6xf32> -> tensor<24xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{expand repeats axes of size 1: axis 0 has size 4, got 8}}
  %r = utensor.expand %x : tensor<4x6xf32> -> tensor<8x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{flip: axis -1 is out of range, expected 0 to 1 for rank 2}}
  %r = utensor.flip %x [-1] : tensor<4x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{flip: axis 0 is out of range, a tensor of rank 0 has no axes}}
  %r = utensor.flip %x [0] : tensor<f32> -> tensor<f32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{shrink needs a begin, an end and a step an axis: expected 2 of each, got 1, 1 and 1}}
  %r = utensor.shrink %x [0] to [4] : tensor<4x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{shrink: step 0 of axis 1: expected at least 1}}
  %r = utensor.shrink %x [0, 0] to [4, 6] step [1, 0] : tensor<4x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{shrink: axis 1 of size 6 has no elements 4 to 3: expected 0 <= begin <= end <= size}}
  %r = utensor.shrink %x [0, 4] to [4, 3] : tensor<4x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{pad needs a low and a high an axis: expected 2 of each, got 1 and 2}}
  %r = utensor.pad %x low [0] high [0, 0] value 0.0 : tensor<4x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{pad: axis 1 is padded by -1: expected at least 0; shrink removes}}
  %r = utensor.pad %x low [0, 0] high [0, -1] value 0.0 : tensor<4x6xf32> -> tensor<4x5xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{unknown kind 'mean': expected one of add, mul, max, min, and, or, xor}}
  %r = utensor.reduce mean %x axes [0] : tensor<4x6xf32> -> tensor<6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{kind xor: expected signed, unsigned or i1 elements, got tensor<4x6xf32>}}
  %r = utensor.reduce xor %x axes [0] : tensor<4x6xf32> -> tensor<6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{result of utensor.reduce: expected tensor<6xf32>, got tensor<4xf32>}}
  %r = utensor.reduce add %x axes [0] : tensor<4x6xf32> -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{unknown kind 'add': expected max or min}}
  %r = utensor.argreduce add %x axis 0 : tensor<4x6xf32> -> tensor<6xi32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{positions are i32 or i64, got i16}}
  %r = utensor.argreduce max %x axis 0 : tensor<4x6xf32> -> tensor<6xi16>
  func.return
}

// -----

func.func @f(%x: tensor<0x4xf32>) {
  // expected-error@+1 {{argreduce needs at least one element along axis 0, got size 0}}
  %r = utensor.argreduce max %x axis 0 : tensor<0x4xf32> -> tensor<4xi32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{unknown kind 'copy': expected contiguous or detach}}
  %r = utensor.stage copy %x : tensor<4x6xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{the value of utensor.constant: expected f32, got i32}}
  %r = "utensor.constant"() <{value = 1 : i32}> : () -> tensor<2xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{the value of utensor.constant: expected tensor<2xf32>, got tensor<3xf32>}}
  %r = "utensor.constant"() <{value = dense<1.0> : tensor<3xf32>}> : () -> tensor<2xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected a number or a dense attribute, got "x"; dense_resource blobs are not supported, write the elements as dense<…>}}
  %r = "utensor.constant"() <{value = "x"}> : () -> tensor<2xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{expected a number from 0 to 255 for ui8, got 300}}
  %r = utensor.constant 300 : tensor<2xui8>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{iota: axis 1 is out of range, expected 0 to 0 for rank 1}}
  %r = utensor.iota axis 1 : tensor<2xi32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{iota: expected float, signed or unsigned elements, got tensor<2xi1>}}
  %r = utensor.iota axis 0 : tensor<2xi1>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %i: tensor<3xf32>) {
  // expected-error@+1 {{the indices: expected signed or unsigned elements, got tensor<3xf32>}}
  %r = utensor.gather %x, %i axis 0 : tensor<4x6xf32>, tensor<3xf32> -> tensor<3x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<0x6xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{gather needs elements along axis 0, got size 0}}
  %r = utensor.gather %x, %i axis 0 : tensor<0x6xf32>, tensor<3xi32> -> tensor<3x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{result of utensor.gather: expected tensor<3x6xf32>, got tensor<3xf32>}}
  %r = utensor.gather %x, %i axis 0 : tensor<4x6xf32>, tensor<3xi32> -> tensor<3xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %i: tensor<3xi32>) {
  // expected-error@+1 {{the updates of utensor.scatter: expected tensor<3x6xf32>, got tensor<4x6xf32>}}
  %r = utensor.scatter add %x, %i, %x axis 0 : tensor<4x6xf32>, tensor<3xi32>, tensor<4x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>, %i: tensor<3xi32>, %u: tensor<3x6xf32>) {
  // expected-error@+1 {{unknown kind 'sub': expected one of set, add, mul, max, min, and, or, xor}}
  %r = utensor.scatter sub %x, %i, %u axis 0 : tensor<4x6xf32>, tensor<3xi32>, tensor<3x6xf32> -> tensor<4x6xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{the size 'n' has no bounds: expected 'n = LOW to HIGH'}}
  %r = utensor.shrink %x [0, 0] to [n, 6] : tensor<4x6xf32>
  func.return
}
