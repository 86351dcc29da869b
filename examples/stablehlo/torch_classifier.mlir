// A small classifier of torch.nn in the form that torch-mlir writes with --output-type=stablehlo:
//
//   Conv2d(1, 4, 3, stride=2), ReLU, MaxPool2d(2), Flatten, Linear(36, 10), Softmax(-1)
//
// Weights are constants of one value here, so that the text is short.
module attributes {torch.debug_module_name = "Classifier"} {
  func.func @forward(%arg0: tensor<2x1x14x14xf32>) -> tensor<2x10xf32> {
    %weight = stablehlo.constant dense<1.250000e-01> : tensor<4x1x3x3xf32>
    %bias = stablehlo.constant dense<[-5.000000e-01, 0.000000e+00, 2.500000e-01, 1.000000e+00]> : tensor<4xf32>
    %linear = stablehlo.constant dense<3.125000e-02> : tensor<10x36xf32>
    %linear_bias = stablehlo.constant dense<[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]> : tensor<10xf32>
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.convolution(%arg0, %weight) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[0, 0], [0, 0]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x14x14xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x6x6xf32>
    %1 = stablehlo.reshape %bias : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %2 = chlo.broadcast_add %0, %1 : (tensor<2x4x6x6xf32>, tensor<4x1x1xf32>) -> tensor<2x4x6x6xf32>
    %3 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<2x4x6x6xf32>
    %4 = stablehlo.maximum %2, %3 : tensor<2x4x6x6xf32>
    %5 = "stablehlo.reduce_window"(%4, %lowest) <{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
    %6 = stablehlo.reshape %5 : (tensor<2x4x3x3xf32>) -> tensor<2x36xf32>
    %7 = stablehlo.transpose %linear, dims = [1, 0] : (tensor<10x36xf32>) -> tensor<36x10xf32>
    %8 = stablehlo.dot_general %6, %7, contracting_dims = [1] x [0] : (tensor<2x36xf32>, tensor<36x10xf32>) -> tensor<2x10xf32>
    %9 = chlo.broadcast_add %8, %linear_bias : (tensor<2x10xf32>, tensor<10xf32>) -> tensor<2x10xf32>
    %10 = stablehlo.reduce(%9 init: %lowest) applies stablehlo.maximum across dimensions = [1] : (tensor<2x10xf32>, tensor<f32>) -> tensor<2xf32>
    %11 = stablehlo.reshape %10 : (tensor<2xf32>) -> tensor<2x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x10xf32>
    %13 = stablehlo.subtract %9, %12 : tensor<2x10xf32>
    %14 = stablehlo.exponential %13 : tensor<2x10xf32>
    %15 = stablehlo.reduce(%14 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x10xf32>, tensor<f32>) -> tensor<2xf32>
    %16 = stablehlo.reshape %15 : (tensor<2xf32>) -> tensor<2x1xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x10xf32>
    %18 = stablehlo.divide %14, %17 : tensor<2x10xf32>
    return %18 : tensor<2x10xf32>
  }
}
