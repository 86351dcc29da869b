// RUN: uopc-opt %s -p "stage-broadcast-compute{rows=false}" | filecheck %s
// RUN: uopc-opt %s -p stage-broadcast-compute | filecheck %s --check-prefix=ROWS

// What is the same for a whole row is computed before the row's loop: with rows=false it stays.
// CHECK-LABEL: func.func @row
// CHECK-NOT: utensor.stage
// ROWS-LABEL: func.func @row
// ROWS: utensor.stage contiguous
func.func @row(%x : tensor<8192x64xf32>, %s : tensor<8192x1xf32>) -> tensor<8192x64xf32> {
  %0 = utensor.recip %s : tensor<8192x1xf32>
  %1 = utensor.expand %0 : tensor<8192x1xf32> -> tensor<8192x64xf32>
  %2 = utensor.mul %x, %1 : tensor<8192x64xf32>
  func.return %2 : tensor<8192x64xf32>
}

// Repeated along an axis before its own: the loop over that computes it again.
// CHECK-LABEL: func.func @column
// CHECK: utensor.stage contiguous
func.func @column(%x : tensor<64x8192xf32>, %s : tensor<1x8192xf32>) -> tensor<64x8192xf32> {
  %0 = utensor.recip %s : tensor<1x8192xf32>
  %1 = utensor.expand %0 : tensor<1x8192xf32> -> tensor<64x8192xf32>
  %2 = utensor.mul %x, %1 : tensor<64x8192xf32>
  func.return %2 : tensor<64x8192xf32>
}

// A mask of positions is as fast to compute as to read.
// CHECK-LABEL: func.func @mask
// CHECK-NOT: utensor.stage
// ROWS-LABEL: func.func @mask
// ROWS-NOT: utensor.stage
func.func @mask(%x : tensor<8x128x128xf32>) -> tensor<8x128x128xf32> {
  %i = utensor.iota axis 0 : tensor<128x128xi64>
  %j = utensor.iota axis 1 : tensor<128x128xi64>
  %m = utensor.cmple %j, %i : tensor<128x128xi64>
  %m1 = utensor.reshape %m : tensor<128x128xi1> -> tensor<1x128x128xi1>
  %m2 = utensor.expand %m1 : tensor<1x128x128xi1> -> tensor<8x128x128xi1>
  %z = utensor.constant 0.0 : tensor<8x128x128xf32>
  %r = utensor.where %m2, %x, %z : tensor<8x128x128xf32>
  func.return %r : tensor<8x128x128xf32>
}

// A product sums over the value's own axis, innermost: its columns would compute it again.
// CHECK-LABEL: func.func @product
// ROWS-LABEL: func.func @product
// CHECK: utensor.exp
// CHECK-NEXT: utensor.stage contiguous
func.func @product(%x : tensor<256x512xf32>, %y : tensor<256x64xf32>) -> tensor<512x64xf32> {
  %0 = utensor.exp %x : tensor<256x512xf32>
  %1 = utensor.reshape %0 : tensor<256x512xf32> -> tensor<256x512x1xf32>
  %2 = utensor.expand %1 : tensor<256x512x1xf32> -> tensor<256x512x64xf32>
  %3 = utensor.reshape %y : tensor<256x64xf32> -> tensor<256x1x64xf32>
  %4 = utensor.expand %3 : tensor<256x1x64xf32> -> tensor<256x512x64xf32>
  %5 = utensor.mul %2, %4 : tensor<256x512x64xf32>
  %6 = utensor.reduce add %5 axes [0] : tensor<256x512x64xf32> -> tensor<512x64xf32>
  func.return %6 : tensor<512x64xf32>
}
