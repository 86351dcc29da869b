// Programs that were once compiled wrongly, found by test_random_programs.py.


// Two conditions joined in the innermost loop were asked for outside of it.
func.func @conjunction_outside_its_loop(%x: tensor<2x3x4xf64>, %c: tensor<7x6x6xi1>) -> tensor<6x2x5xf64> {
  %0 = utensor.pad %x low [1, 0, 1] high [3, 1, 1] value -2.0 : tensor<2x3x4xf64> -> tensor<6x4x6xf64>
  %1 = utensor.permute %0 [2, 1, 0] : tensor<6x4x6xf64> -> tensor<6x4x6xf64>
  %2 = utensor.flip %1 [0, 2] : tensor<6x4x6xf64> -> tensor<6x4x6xf64>
  %3 = utensor.pad %2 low [1, 0, 0] high [0, 2, 0] value 0.0 : tensor<6x4x6xf64> -> tensor<7x6x6xf64>
  %4 = utensor.where %c, %3, %3 : tensor<7x6x6xf64>
  %5 = utensor.shrink %4 [1, 2, 0] to [7, 6, 5] step [1, 2, 1] : tensor<7x6x6xf64> -> tensor<6x2x5xf64>
  func.return %5 : tensor<6x2x5xf64>
}

// GCC 12 at -O3, and at -O2 where it was unrolled, masked the wrong lanes: c_guards.py.
func.func @pairs_under_one_condition(%x: tensor<?x2xi32, #utensor.sizes<[n, 2], n = 2 to 6>>) -> tensor<?x2xi32, #utensor.sizes<[n + 3, 2], n = 2 to 6>> {
  %0 = utensor.pad %x low [1, 0] high [2, 0] value 0 : tensor<?x2xi32, #utensor.sizes<[n, 2], n = 2 to 6>> -> tensor<?x2xi32, #utensor.sizes<[n + 3, 2], n = 2 to 6>>
  func.return %0 : tensor<?x2xi32, #utensor.sizes<[n + 3, 2], n = 2 to 6>>
}

// The axis of the positions on which they do not depend had no loop: one update of three.
func.func @scatter_of_equal_updates(%x: tensor<4x2xi32>) -> tensor<4x2xi32> {
  %0 = utensor.iota axis 1 : tensor<3x3xui32>
  %1 = utensor.constant 7 : tensor<3x3x2xi32>
  %2 = utensor.scatter add %x, %0, %1 axis 0 : tensor<4x2xi32>, tensor<3x3xui32>, tensor<3x3x2xi32> -> tensor<4x2xi32>
  func.return %2 : tensor<4x2xi32>
}

func.func @scatter_of_no_updates(%x: tensor<4x2xi32>) -> tensor<4x2xi32> {
  %0 = utensor.constant 0 : tensor<0xi32>
  %1 = utensor.constant 7 : tensor<0x2xi32>
  %2 = utensor.scatter set %x, %0, %1 axis 0 : tensor<4x2xi32>, tensor<0xi32>, tensor<0x2xi32> -> tensor<4x2xi32>
  func.return %2 : tensor<4x2xi32>
}

// n to 1xn was refused: it seemed to divide by n, which may be 0.
func.func @an_axis_of_size_1_before_a_symbol(%x: tensor<?xf32, #utensor.sizes<[n], n = 0 to 6>>) -> tensor<1x?xf32, #utensor.sizes<[1, n], n = 0 to 6>> {
  %0 = utensor.neg %x : tensor<?xf32, #utensor.sizes<[n], n = 0 to 6>>
  %1 = utensor.reshape %0 : tensor<?xf32, #utensor.sizes<[n], n = 0 to 6>> -> tensor<1x?xf32, #utensor.sizes<[1, n], n = 0 to 6>>
  func.return %1 : tensor<1x?xf32, #utensor.sizes<[1, n], n = 0 to 6>>
}

// The remainder of floats is a call, which took vectors where an axis was one.
func.func @remainders_of_vectors(%x: tensor<3x32xf32>, %y: tensor<32xf64>) -> (tensor<3xf32>, tensor<32xf64>, tensor<3x32xf32>) {
  %one = utensor.constant 1.5 : tensor<3x32xf32>
  %0 = utensor.rem %x, %one : tensor<3x32xf32>
  %1 = utensor.reduce max %0 axes [1] : tensor<3x32xf32>
  %2 = utensor.mod %y, %y : tensor<32xf64>
  %3 = utensor.floordiv %0, %x : tensor<3x32xf32>
  func.return %1, %2, %3 : tensor<3xf32>, tensor<32xf64>, tensor<3x32xf32>
}

// GCC 12 at -O3 masked the wrong lanes of a load inside of `c ? a : b`, in a loop of 7 steps.
func.func @loads_in_a_choice(%x: tensor<7x7xui32>, %y: tensor<7x7xui32>) -> tensor<7x7xui32> {
  %0 = utensor.constant 4 : tensor<7x7xui32>
  %1 = utensor.cmplt %x, %0 : tensor<7x7xui32>
  %2 = utensor.where %1, %x, %y : tensor<7x7xui32>
  func.return %2 : tensor<7x7xui32>
}

// Rows found by number, times a matrix: copies of rows were scheduled, which a gather cannot have.
func.func @product_of_gathered_rows(%x: tensor<9x16xf32>, %rows: tensor<8xi32>, %w: tensor<16x24xf32>) -> (tensor<8x24xf32>, tensor<24x8xf32>) {
  %0 = utensor.gather %x, %rows axis 0 : tensor<9x16xf32>, tensor<8xi32> -> tensor<8x16xf32>
  %1 = utensor.reshape %0 : tensor<8x16xf32> -> tensor<8x1x16xf32>
  %2 = utensor.expand %1 : tensor<8x1x16xf32> -> tensor<8x24x16xf32>
  %3 = utensor.permute %w [1, 0] : tensor<16x24xf32> -> tensor<24x16xf32>
  %4 = utensor.reshape %3 : tensor<24x16xf32> -> tensor<1x24x16xf32>
  %5 = utensor.expand %4 : tensor<1x24x16xf32> -> tensor<8x24x16xf32>
  %6 = utensor.mul %2, %5 : tensor<8x24x16xf32>
  %7 = utensor.reduce add %6 axes [2] : tensor<8x24x16xf32> -> tensor<8x24xf32>
  %8 = utensor.reshape %3 : tensor<24x16xf32> -> tensor<24x1x16xf32>
  %9 = utensor.expand %8 : tensor<24x1x16xf32> -> tensor<24x8x16xf32>
  %10 = utensor.reshape %0 : tensor<8x16xf32> -> tensor<1x8x16xf32>
  %11 = utensor.expand %10 : tensor<1x8x16xf32> -> tensor<24x8x16xf32>
  %12 = utensor.mul %9, %11 : tensor<24x8x16xf32>
  %13 = utensor.reduce add %12 axes [2] : tensor<24x8x16xf32> -> tensor<24x8xf32>
  func.return %7, %13 : tensor<8x24xf32>, tensor<24x8xf32>
}

// The same along a sum: each element of a vector by a row number of its own.
func.func @sum_of_gathered_elements(%x: tensor<9x32xf32>, %rows: tensor<32xi32>) -> tensor<f32> {
  %0 = utensor.gather %x, %rows axis 0 : tensor<9x32xf32>, tensor<32xi32> -> tensor<32x32xf32>
  %1 = utensor.reduce add %0 axes [0, 1] : tensor<32x32xf32> -> tensor<f32>
  func.return %1 : tensor<f32>
}

// A product's sum over two axes, the inner one short, where rows are gathered along both.
func.func @short_sum_of_gathered_rows(%x: tensor<9x24xf32>, %rows: tensor<3x8xi32>, %w: tensor<3x8x16xf32>) -> tensor<24x16xf32> {
  %0 = utensor.gather %x, %rows axis 0 : tensor<9x24xf32>, tensor<3x8xi32> -> tensor<3x8x24xf32>
  %1 = utensor.reshape %0 : tensor<3x8x24xf32> -> tensor<3x8x24x1xf32>
  %2 = utensor.expand %1 : tensor<3x8x24x1xf32> -> tensor<3x8x24x16xf32>
  %3 = utensor.reshape %w : tensor<3x8x16xf32> -> tensor<3x8x1x16xf32>
  %4 = utensor.expand %3 : tensor<3x8x1x16xf32> -> tensor<3x8x24x16xf32>
  %5 = utensor.mul %2, %4 : tensor<3x8x24x16xf32>
  %6 = utensor.reduce add %5 axes [0, 1] : tensor<3x8x24x16xf32> -> tensor<24x16xf32>
  func.return %6 : tensor<24x16xf32>
}
