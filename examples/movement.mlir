// A zoo of movement ops: none of them is a kernel by itself, all are index arithmetic.
func.func @movement(%x: tensor<6x8xf32>) -> (tensor<5x9xf32>, tensor<4x3x2xf32>, tensor<48xf32>) {
  %padded = utensor.pad %x low [1, 0] high [2, 1] value -1.0 : tensor<6x8xf32> -> tensor<9x9xf32>
  %flipped = utensor.flip %padded [0, 1] : tensor<9x9xf32>
  %strided = utensor.shrink %flipped [0, 0] to [9, 9] step [2, 1] : tensor<9x9xf32> -> tensor<5x9xf32>
  %twice = utensor.add %strided, %strided : tensor<5x9xf32>
  %corner = utensor.shrink %x [0, 1] to [4, 7] : tensor<6x8xf32> -> tensor<4x6xf32>
  %cube = utensor.reshape %corner : tensor<4x6xf32> -> tensor<4x2x3xf32>
  %turned = utensor.permute %cube [0, 2, 1] : tensor<4x2x3xf32>
  %flat = utensor.reshape %x : tensor<6x8xf32> -> tensor<48xf32>
  func.return %twice, %turned, %flat : tensor<5x9xf32>, tensor<4x3x2xf32>, tensor<48xf32>
}
