// RUN: uopc-run %s --size n=3 --seed 1 --check --show plan | filecheck %s
// RUN: uopc-run %s --size n=3 --seed 1 --target interpreter | filecheck %s --check-prefix VALUES
// RUN: not uopc-run %s --size n=9 2>&1 | filecheck %s --check-prefix BOUNDS
// RUN: uopc-run %s --show c -q | filecheck %s --check-prefix SOURCE

// What uopc-run prints: the plan, the C, results, how they compare with the reference.

// CHECK: main(x: f32[nx4], ids: i8[2]) -> f32[n], i8[], n = 1 to 8
// CHECK-NEXT:   kernel  reads  writes  operations  bytes  computes
// CHECK-NEXT:   r_n     in0    out0            32    160  reduce max [1]
// CHECK-NEXT:   r_1     in1    out1             2      3  reduce add [0]
// CHECK-NEXT: out0: float32 3
// CHECK-NEXT: {{^\[[0-9. -]+\]$}}
// CHECK-NEXT: out1: int8 scalar
// CHECK-NEXT: {{^-?[0-9]+$}}
// CHECK-NEXT: check: out0 agrees with numpy, largest difference 0
// CHECK-NEXT: check: out1 agrees with numpy, largest difference 0

// VALUES: {{^}}out0: float32 3
// VALUES-NEXT: {{^\[[0-9. -]+\]$}}
// VALUES-NEXT: out1: int8 scalar
// VALUES-NEXT: {{^-?[0-9]+$}}

// BOUNDS: error: size 'n' is 9, expected 1 to 8 [symbol-out-of-bounds]
// BOUNDS-NEXT: hint: call with a size within the bounds, or compile with wider ones

// SOURCE: void main_(int64_t n, const float *x, const int8_t *ids, float *out0, int8_t *out1);
func.func @main(%x: tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 8>>, %ids: tensor<2xi8>)
    -> (tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>, tensor<i8>) {
  %m = utensor.reduce max %x axes [1] : tensor<?x4xf32, #utensor.sizes<[n, 4], n = 1 to 8>>
  %s = utensor.reduce add %ids axes [0] : tensor<2xi8>
  func.return %m, %s : tensor<?xf32, #utensor.sizes<[n], n = 1 to 8>>, tensor<i8>
}
