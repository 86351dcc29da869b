// Half types are stored in 16 bits; each op computes in f32 and rounds once, sums stay in f32.
func.func @half(%a: tensor<32x64xf16>, %b: tensor<32x64xbf16>)
    -> (tensor<32xf16>, tensor<32xbf16>, tensor<32x64xbf16>) {
  %exp = utensor.exp %a : tensor<32x64xf16>
  %sum = utensor.reduce add %exp axes [1] : tensor<32x64xf16>
  %square = utensor.mul %b, %b : tensor<32x64xbf16>
  %norm = utensor.reduce add %square axes [1] : tensor<32x64xbf16>
  %root = utensor.sqrt %norm : tensor<32xbf16>
  %converted = utensor.cast %a : tensor<32x64xf16> -> tensor<32x64xbf16>
  func.return %sum, %root, %converted : tensor<32xf16>, tensor<32xbf16>, tensor<32x64xbf16>
}
