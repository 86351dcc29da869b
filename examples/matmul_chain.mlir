// (A @ B) @ C. A product is movement ops, mul and reduce. Cut at the inner reduction it is two
// kernels of n**3 steps; --fuse-reduce all makes one of n**4.
func.func @matmul_chain(%a: tensor<128x128xf32>, %b: tensor<128x128xf32>,
                        %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %a3 = utensor.reshape %a : tensor<128x128xf32> -> tensor<128x1x128xf32>
  %ae = utensor.expand %a3 : tensor<128x1x128xf32> -> tensor<128x128x128xf32>
  %bt = utensor.permute %b [1, 0] : tensor<128x128xf32>
  %b3 = utensor.reshape %bt : tensor<128x128xf32> -> tensor<1x128x128xf32>
  %be = utensor.expand %b3 : tensor<1x128x128xf32> -> tensor<128x128x128xf32>
  %ab3 = utensor.mul %ae, %be : tensor<128x128x128xf32>
  %ab = utensor.reduce add %ab3 axes [2] : tensor<128x128x128xf32>
  %d3 = utensor.reshape %ab : tensor<128x128xf32> -> tensor<128x1x128xf32>
  %de = utensor.expand %d3 : tensor<128x1x128xf32> -> tensor<128x128x128xf32>
  %ct = utensor.permute %c [1, 0] : tensor<128x128xf32>
  %c3 = utensor.reshape %ct : tensor<128x128xf32> -> tensor<1x128x128xf32>
  %ce = utensor.expand %c3 : tensor<1x128x128xf32> -> tensor<128x128x128xf32>
  %abc3 = utensor.mul %de, %ce : tensor<128x128x128xf32>
  %abc = utensor.reduce add %abc3 axes [2] : tensor<128x128x128xf32>
  func.return %abc : tensor<128x128xf32>
}
