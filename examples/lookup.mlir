// Rows gathered from a table by position, and a histogram by scatter.
func.func @lookup(%table: tensor<10x4xf32>, %ids: tensor<6xi32>) -> (tensor<6x4xf32>, tensor<10xi32>) {
  %rows = utensor.gather %table, %ids axis 0 : tensor<10x4xf32>, tensor<6xi32> -> tensor<6x4xf32>
  %zero = utensor.constant 0 : tensor<10xi32>
  %one = utensor.constant 1 : tensor<6xi32>
  %counts = utensor.scatter add %zero, %ids, %one axis 0
    : tensor<10xi32>, tensor<6xi32>, tensor<6xi32> -> tensor<10xi32>
  func.return %rows, %counts : tensor<6x4xf32>, tensor<10xi32>
}
