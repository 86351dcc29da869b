// One compiled program for every length from 1 to 64: n is an argument of the C function.
func.func @mean_rows(%x: tensor<?x8xf32, #utensor.sizes<[n, 8], n = 1 to 64>>)
    -> (tensor<?x8xf32, #utensor.sizes<[n, 8], n = 1 to 64>>, tensor<8xf32>) {
  %one = utensor.constant 1.0 : tensor<?x8xf32, #utensor.sizes<[n, 8], n = 1 to 64>>
  %y = utensor.add %x, %one : tensor<?x8xf32, #utensor.sizes<[n, 8], n = 1 to 64>>
  %sum = utensor.reduce add %y axes [0] : tensor<?x8xf32, #utensor.sizes<[n, 8], n = 1 to 64>>
  func.return %y, %sum
    : tensor<?x8xf32, #utensor.sizes<[n, 8], n = 1 to 64>>, tensor<8xf32>
}
