// RUN: uopc-opt %s | filecheck %s
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s
// RUN: uopc-opt %s -p convert-stablehlo-to-utensor | filecheck %s --check-prefix=UTENSOR

// Shardings are read, and dropped where StableHLO is converted.

// CHECK: sdy.mesh @mesh = <["x"=2]> {a = 1 : i32}
// UTENSOR-NOT: sdy.mesh
sdy.mesh @mesh = <["x"=2]> {a = 1 : i32}

// CHECK: func.func @main(%x: tensor<2xui32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// CHECK: %0 = sdy.sharding_constraint %x <@mesh, [{?}]> : tensor<2xui32>
// UTENSOR: func.func @main
// UTENSOR-NEXT: %0 = utensor.add %x, %x : tensor<2xui32>
func.func @main(%x: tensor<2xui32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<2xui32> {
  %0 = sdy.sharding_constraint %x <@mesh, [{?}]> : tensor<2xui32>
  %1 = stablehlo.add %0, %0 : tensor<2xui32>
  return %1 : tensor<2xui32>
}
