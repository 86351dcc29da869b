// LayerNorm into a linear layer: the normalized rows are read once an output column, so
// stage-broadcast-compute gives them a buffer.
func.func @layernorm_linear(%x: tensor<128x256xf32>, %w: tensor<256x256xf32>) -> tensor<128x256xf32> {
  %mean_sum = utensor.reduce add %x axes [1] : tensor<128x256xf32>
  %mean_scale = utensor.constant 0.00390625 : tensor<128xf32>
  %mean = utensor.mul %mean_sum, %mean_scale : tensor<128xf32>
  %means_col = utensor.reshape %mean : tensor<128xf32> -> tensor<128x1xf32>
  %means = utensor.expand %means_col : tensor<128x1xf32> -> tensor<128x256xf32>
  %centered = utensor.sub %x, %means : tensor<128x256xf32>
  %squares = utensor.mul %centered, %centered : tensor<128x256xf32>
  %variance_sum = utensor.reduce add %squares axes [1] : tensor<128x256xf32>
  %variance_scale = utensor.constant 0.00390625 : tensor<128xf32>
  %variance = utensor.mul %variance_sum, %variance_scale : tensor<128xf32>
  %epsilon = utensor.constant 1.0e-05 : tensor<128xf32>
  %padded = utensor.add %variance, %epsilon : tensor<128xf32>
  %scale = utensor.rsqrt %padded : tensor<128xf32>
  %scales_col = utensor.reshape %scale : tensor<128xf32> -> tensor<128x1xf32>
  %scales = utensor.expand %scales_col : tensor<128x1xf32> -> tensor<128x256xf32>
  %normal = utensor.mul %centered, %scales : tensor<128x256xf32>
  %y_a3 = utensor.reshape %normal : tensor<128x256xf32> -> tensor<128x1x256xf32>
  %y_a = utensor.expand %y_a3 : tensor<128x1x256xf32> -> tensor<128x256x256xf32>
  %y_bt = utensor.permute %w [1, 0] : tensor<256x256xf32>
  %y_b3 = utensor.reshape %y_bt : tensor<256x256xf32> -> tensor<1x256x256xf32>
  %y_b = utensor.expand %y_b3 : tensor<1x256x256xf32> -> tensor<128x256x256xf32>
  %y_products = utensor.mul %y_a, %y_b : tensor<128x256x256xf32>
  %y = utensor.reduce add %y_products axes [2] : tensor<128x256x256xf32>
  func.return %y : tensor<128x256xf32>
}
