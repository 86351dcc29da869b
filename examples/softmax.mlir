// Softmax over the rows of a matrix. Two reductions cut it into three kernels; with
// --fuse-reduce all it is one.
func.func @softmax(%x: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %max = utensor.reduce max %x axes [1] : tensor<64x128xf32>
  %column = utensor.reshape %max : tensor<64xf32> -> tensor<64x1xf32>
  %rows = utensor.expand %column : tensor<64x1xf32> -> tensor<64x128xf32>
  %shifted = utensor.sub %x, %rows : tensor<64x128xf32>
  %e = utensor.exp %shifted : tensor<64x128xf32>
  %sum = utensor.reduce add %e axes [1] : tensor<64x128xf32>
  %total = utensor.reshape %sum : tensor<64xf32> -> tensor<64x1xf32>
  %totals = utensor.expand %total : tensor<64x1xf32> -> tensor<64x128xf32>
  %y = utensor.div %e, %totals : tensor<64x128xf32>
  func.return %y : tensor<64x128xf32>
}
