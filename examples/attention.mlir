// One head of causal attention: softmax(q k^T / sqrt(d), masked) v.
func.func @attention(%q: tensor<48x32xf32>, %k: tensor<48x32xf32>, %v: tensor<48x32xf32>) -> tensor<48x32xf32> {
  %kt = utensor.permute %k [1, 0] : tensor<48x32xf32>
  %scores_a3 = utensor.reshape %q : tensor<48x32xf32> -> tensor<48x1x32xf32>
  %scores_a = utensor.expand %scores_a3 : tensor<48x1x32xf32> -> tensor<48x48x32xf32>
  %scores_bt = utensor.permute %kt [1, 0] : tensor<32x48xf32>
  %scores_b3 = utensor.reshape %scores_bt : tensor<48x32xf32> -> tensor<1x48x32xf32>
  %scores_b = utensor.expand %scores_b3 : tensor<1x48x32xf32> -> tensor<48x48x32xf32>
  %scores_products = utensor.mul %scores_a, %scores_b : tensor<48x48x32xf32>
  %scores = utensor.reduce add %scores_products axes [2] : tensor<48x48x32xf32>
  %factor = utensor.constant 0.1767766952966369 : tensor<48x48xf32>
  %scaled = utensor.mul %scores, %factor : tensor<48x48xf32>
  %query = utensor.iota axis 0 : tensor<48x48xi32>
  %key = utensor.iota axis 1 : tensor<48x48xi32>
  %causal = utensor.cmple %key, %query : tensor<48x48xi32>
  %masked = utensor.constant -inf : tensor<48x48xf32>
  %visible = utensor.where %causal, %scaled, %masked : tensor<48x48xf32>
  %largest = utensor.reduce max %visible axes [1] : tensor<48x48xf32>
  %largests_col = utensor.reshape %largest : tensor<48xf32> -> tensor<48x1xf32>
  %largests = utensor.expand %largests_col : tensor<48x1xf32> -> tensor<48x48xf32>
  %shifted = utensor.sub %visible, %largests : tensor<48x48xf32>
  %e = utensor.exp %shifted : tensor<48x48xf32>
  %total = utensor.reduce add %e axes [1] : tensor<48x48xf32>
  %totals_col = utensor.reshape %total : tensor<48xf32> -> tensor<48x1xf32>
  %totals = utensor.expand %totals_col : tensor<48x1xf32> -> tensor<48x48xf32>
  %weights = utensor.div %e, %totals : tensor<48x48xf32>
  %out_a3 = utensor.reshape %weights : tensor<48x48xf32> -> tensor<48x1x48xf32>
  %out_a = utensor.expand %out_a3 : tensor<48x1x48xf32> -> tensor<48x32x48xf32>
  %out_bt = utensor.permute %v [1, 0] : tensor<48x32xf32>
  %out_b3 = utensor.reshape %out_bt : tensor<32x48xf32> -> tensor<1x32x48xf32>
  %out_b = utensor.expand %out_b3 : tensor<1x32x48xf32> -> tensor<48x32x48xf32>
  %out_products = utensor.mul %out_a, %out_b : tensor<48x32x48xf32>
  %out = utensor.reduce add %out_products axes [2] : tensor<48x32x48xf32>
  func.return %out : tensor<48x32xf32>
}
