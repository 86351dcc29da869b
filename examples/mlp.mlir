// A two-layer perceptron, forward: logits, and the best class of each row.
func.func @mlp(%x: tensor<32x64xf32>, %w1: tensor<64x128xf32>, %b1: tensor<128xf32>, %w2: tensor<128x10xf32>, %b2: tensor<10xf32>) -> (tensor<32x10xf32>, tensor<32xi32>) {
  %xw1_a3 = utensor.reshape %x : tensor<32x64xf32> -> tensor<32x1x64xf32>
  %xw1_a = utensor.expand %xw1_a3 : tensor<32x1x64xf32> -> tensor<32x128x64xf32>
  %xw1_bt = utensor.permute %w1 [1, 0] : tensor<64x128xf32>
  %xw1_b3 = utensor.reshape %xw1_bt : tensor<128x64xf32> -> tensor<1x128x64xf32>
  %xw1_b = utensor.expand %xw1_b3 : tensor<1x128x64xf32> -> tensor<32x128x64xf32>
  %xw1_products = utensor.mul %xw1_a, %xw1_b : tensor<32x128x64xf32>
  %xw1 = utensor.reduce add %xw1_products axes [2] : tensor<32x128x64xf32>
  %bias1_row = utensor.reshape %b1 : tensor<128xf32> -> tensor<1x128xf32>
  %bias1 = utensor.expand %bias1_row : tensor<1x128xf32> -> tensor<32x128xf32>
  %h = utensor.add %xw1, %bias1 : tensor<32x128xf32>
  %zero = utensor.constant 0.0 : tensor<32x128xf32>
  %hidden = utensor.max %h, %zero : tensor<32x128xf32>
  %hw2_a3 = utensor.reshape %hidden : tensor<32x128xf32> -> tensor<32x1x128xf32>
  %hw2_a = utensor.expand %hw2_a3 : tensor<32x1x128xf32> -> tensor<32x10x128xf32>
  %hw2_bt = utensor.permute %w2 [1, 0] : tensor<128x10xf32>
  %hw2_b3 = utensor.reshape %hw2_bt : tensor<10x128xf32> -> tensor<1x10x128xf32>
  %hw2_b = utensor.expand %hw2_b3 : tensor<1x10x128xf32> -> tensor<32x10x128xf32>
  %hw2_products = utensor.mul %hw2_a, %hw2_b : tensor<32x10x128xf32>
  %hw2 = utensor.reduce add %hw2_products axes [2] : tensor<32x10x128xf32>
  %bias2_row = utensor.reshape %b2 : tensor<10xf32> -> tensor<1x10xf32>
  %bias2 = utensor.expand %bias2_row : tensor<1x10xf32> -> tensor<32x10xf32>
  %logits = utensor.add %hw2, %bias2 : tensor<32x10xf32>
  %digit = utensor.argreduce max %logits axis 1 : tensor<32x10xf32> -> tensor<32xi32>
  func.return %logits, %digit : tensor<32x10xf32>, tensor<32xi32>
}
