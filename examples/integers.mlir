// Integers wrap, divide by floor or toward zero, and saturate when they come from floats.
func.func @integers(%a: tensor<16xi32>, %b: tensor<16xi32>, %u: tensor<16xui8>, %f: tensor<16xf32>)
    -> (tensor<16xi32>, tensor<16xi32>, tensor<16xi32>, tensor<16xui8>, tensor<16xi8>, tensor<i32>) {
  %floor = utensor.floordiv %a, %b : tensor<16xi32>
  %mod = utensor.mod %a, %b : tensor<16xi32>
  %toward_zero = utensor.truncdiv %a, %b : tensor<16xi32>
  %wrapped = utensor.add %u, %u : tensor<16xui8>
  %big = utensor.constant 100.0 : tensor<16xf32>
  %scaled = utensor.mul %f, %big : tensor<16xf32>
  %saturated = utensor.cast %scaled : tensor<16xf32> -> tensor<16xi8>
  %product = utensor.mul %a, %b : tensor<16xi32>
  %sum = utensor.reduce add %product axes [0] : tensor<16xi32>
  func.return %floor, %mod, %toward_zero, %wrapped, %saturated, %sum
    : tensor<16xi32>, tensor<16xi32>, tensor<16xi32>, tensor<16xui8>, tensor<16xi8>, tensor<i32>
}
