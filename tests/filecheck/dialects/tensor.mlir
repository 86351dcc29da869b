// Every op of utensor: both text forms read back to the same, and are printed alike again.
// RUN: uopc-opt %s | filecheck %s
// The generic form of a constant with a NaN is left out: xDSL reads its bits as an integer.
// RUN: uopc-opt %s --print-op-generic | uopc-opt | filecheck %s

// CHECK-LABEL: func.func @floats(
func.func @floats(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xi1>) {
  // CHECK-NEXT: %r0 = utensor.neg %a : tensor<4xf32>
  %r0 = utensor.neg %a : tensor<4xf32>
  // CHECK-NEXT: %r1 = utensor.abs %a : tensor<4xf32>
  %r1 = utensor.abs %a : tensor<4xf32>
  // CHECK-NEXT: %r2 = utensor.sign %a : tensor<4xf32>
  %r2 = utensor.sign %a : tensor<4xf32>
  // CHECK-NEXT: %r3 = utensor.floor %a : tensor<4xf32>
  %r3 = utensor.floor %a : tensor<4xf32>
  // CHECK-NEXT: %r4 = utensor.ceil %a : tensor<4xf32>
  %r4 = utensor.ceil %a : tensor<4xf32>
  // CHECK-NEXT: %r5 = utensor.trunc %a : tensor<4xf32>
  %r5 = utensor.trunc %a : tensor<4xf32>
  // CHECK-NEXT: %r6 = utensor.round %a : tensor<4xf32>
  %r6 = utensor.round %a : tensor<4xf32>
  // CHECK-NEXT: %r7 = utensor.sqrt %a : tensor<4xf32>
  %r7 = utensor.sqrt %a : tensor<4xf32>
  // CHECK-NEXT: %r8 = utensor.rsqrt %a : tensor<4xf32>
  %r8 = utensor.rsqrt %a : tensor<4xf32>
  // CHECK-NEXT: %r9 = utensor.recip %a : tensor<4xf32>
  %r9 = utensor.recip %a : tensor<4xf32>
  // CHECK-NEXT: %r10 = utensor.cbrt %a : tensor<4xf32>
  %r10 = utensor.cbrt %a : tensor<4xf32>
  // CHECK-NEXT: %r11 = utensor.exp %a : tensor<4xf32>
  %r11 = utensor.exp %a : tensor<4xf32>
  // CHECK-NEXT: %r12 = utensor.exp2 %a : tensor<4xf32>
  %r12 = utensor.exp2 %a : tensor<4xf32>
  // CHECK-NEXT: %r13 = utensor.expm1 %a : tensor<4xf32>
  %r13 = utensor.expm1 %a : tensor<4xf32>
  // CHECK-NEXT: %r14 = utensor.log %a : tensor<4xf32>
  %r14 = utensor.log %a : tensor<4xf32>
  // CHECK-NEXT: %r15 = utensor.log2 %a : tensor<4xf32>
  %r15 = utensor.log2 %a : tensor<4xf32>
  // CHECK-NEXT: %r16 = utensor.log10 %a : tensor<4xf32>
  %r16 = utensor.log10 %a : tensor<4xf32>
  // CHECK-NEXT: %r17 = utensor.log1p %a : tensor<4xf32>
  %r17 = utensor.log1p %a : tensor<4xf32>
  // CHECK-NEXT: %r18 = utensor.sin %a : tensor<4xf32>
  %r18 = utensor.sin %a : tensor<4xf32>
  // CHECK-NEXT: %r19 = utensor.cos %a : tensor<4xf32>
  %r19 = utensor.cos %a : tensor<4xf32>
  // CHECK-NEXT: %r20 = utensor.tan %a : tensor<4xf32>
  %r20 = utensor.tan %a : tensor<4xf32>
  // CHECK-NEXT: %r21 = utensor.asin %a : tensor<4xf32>
  %r21 = utensor.asin %a : tensor<4xf32>
  // CHECK-NEXT: %r22 = utensor.acos %a : tensor<4xf32>
  %r22 = utensor.acos %a : tensor<4xf32>
  // CHECK-NEXT: %r23 = utensor.atan %a : tensor<4xf32>
  %r23 = utensor.atan %a : tensor<4xf32>
  // CHECK-NEXT: %r24 = utensor.sinh %a : tensor<4xf32>
  %r24 = utensor.sinh %a : tensor<4xf32>
  // CHECK-NEXT: %r25 = utensor.cosh %a : tensor<4xf32>
  %r25 = utensor.cosh %a : tensor<4xf32>
  // CHECK-NEXT: %r26 = utensor.tanh %a : tensor<4xf32>
  %r26 = utensor.tanh %a : tensor<4xf32>
  // CHECK-NEXT: %r27 = utensor.asinh %a : tensor<4xf32>
  %r27 = utensor.asinh %a : tensor<4xf32>
  // CHECK-NEXT: %r28 = utensor.acosh %a : tensor<4xf32>
  %r28 = utensor.acosh %a : tensor<4xf32>
  // CHECK-NEXT: %r29 = utensor.atanh %a : tensor<4xf32>
  %r29 = utensor.atanh %a : tensor<4xf32>
  // CHECK-NEXT: %r30 = utensor.erf %a : tensor<4xf32>
  %r30 = utensor.erf %a : tensor<4xf32>
  // CHECK-NEXT: %r31 = utensor.add %a, %b : tensor<4xf32>
  %r31 = utensor.add %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r32 = utensor.sub %a, %b : tensor<4xf32>
  %r32 = utensor.sub %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r33 = utensor.mul %a, %b : tensor<4xf32>
  %r33 = utensor.mul %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r34 = utensor.div %a, %b : tensor<4xf32>
  %r34 = utensor.div %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r35 = utensor.floordiv %a, %b : tensor<4xf32>
  %r35 = utensor.floordiv %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r36 = utensor.mod %a, %b : tensor<4xf32>
  %r36 = utensor.mod %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r37 = utensor.rem %a, %b : tensor<4xf32>
  %r37 = utensor.rem %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r38 = utensor.pow %a, %b : tensor<4xf32>
  %r38 = utensor.pow %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r39 = utensor.atan2 %a, %b : tensor<4xf32>
  %r39 = utensor.atan2 %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r40 = utensor.max %a, %b : tensor<4xf32>
  %r40 = utensor.max %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r41 = utensor.min %a, %b : tensor<4xf32>
  %r41 = utensor.min %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r42 = utensor.cmplt %a, %b : tensor<4xf32>
  %r42 = utensor.cmplt %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r43 = utensor.cmple %a, %b : tensor<4xf32>
  %r43 = utensor.cmple %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r44 = utensor.cmpeq %a, %b : tensor<4xf32>
  %r44 = utensor.cmpeq %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r45 = utensor.cmpne %a, %b : tensor<4xf32>
  %r45 = utensor.cmpne %a, %b : tensor<4xf32>
  // CHECK-NEXT: %r46 = utensor.where %c, %a, %b : tensor<4xf32>
  %r46 = utensor.where %c, %a, %b : tensor<4xf32>
  func.return
}

// CHECK-LABEL: func.func @integers(
func.func @integers(%a: tensor<4xi32>, %b: tensor<4xi32>, %c: tensor<4xi1>) {
  // CHECK-NEXT: %r0 = utensor.not %a : tensor<4xi32>
  %r0 = utensor.not %a : tensor<4xi32>
  // CHECK-NEXT: %r1 = utensor.popcount %a : tensor<4xi32>
  %r1 = utensor.popcount %a : tensor<4xi32>
  // CHECK-NEXT: %r2 = utensor.clz %a : tensor<4xi32>
  %r2 = utensor.clz %a : tensor<4xi32>
  // CHECK-NEXT: %r3 = utensor.neg %a : tensor<4xi32>
  %r3 = utensor.neg %a : tensor<4xi32>
  // CHECK-NEXT: %r4 = utensor.abs %a : tensor<4xi32>
  %r4 = utensor.abs %a : tensor<4xi32>
  // CHECK-NEXT: %r5 = utensor.sign %a : tensor<4xi32>
  %r5 = utensor.sign %a : tensor<4xi32>
  // CHECK-NEXT: %r6 = utensor.add %a, %b : tensor<4xi32>
  %r6 = utensor.add %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r7 = utensor.sub %a, %b : tensor<4xi32>
  %r7 = utensor.sub %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r8 = utensor.mul %a, %b : tensor<4xi32>
  %r8 = utensor.mul %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r9 = utensor.floordiv %a, %b : tensor<4xi32>
  %r9 = utensor.floordiv %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r10 = utensor.truncdiv %a, %b : tensor<4xi32>
  %r10 = utensor.truncdiv %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r11 = utensor.mod %a, %b : tensor<4xi32>
  %r11 = utensor.mod %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r12 = utensor.rem %a, %b : tensor<4xi32>
  %r12 = utensor.rem %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r13 = utensor.pow %a, %b : tensor<4xi32>
  %r13 = utensor.pow %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r14 = utensor.max %a, %b : tensor<4xi32>
  %r14 = utensor.max %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r15 = utensor.min %a, %b : tensor<4xi32>
  %r15 = utensor.min %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r16 = utensor.and %a, %b : tensor<4xi32>
  %r16 = utensor.and %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r17 = utensor.or %a, %b : tensor<4xi32>
  %r17 = utensor.or %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r18 = utensor.xor %a, %b : tensor<4xi32>
  %r18 = utensor.xor %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r19 = utensor.shl %a, %b : tensor<4xi32>
  %r19 = utensor.shl %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r20 = utensor.shr %a, %b : tensor<4xi32>
  %r20 = utensor.shr %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r21 = utensor.cmplt %a, %b : tensor<4xi32>
  %r21 = utensor.cmplt %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r22 = utensor.cmple %a, %b : tensor<4xi32>
  %r22 = utensor.cmple %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r23 = utensor.cmpeq %a, %b : tensor<4xi32>
  %r23 = utensor.cmpeq %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r24 = utensor.cmpne %a, %b : tensor<4xi32>
  %r24 = utensor.cmpne %a, %b : tensor<4xi32>
  // CHECK-NEXT: %r25 = utensor.where %c, %a, %b : tensor<4xi32>
  %r25 = utensor.where %c, %a, %b : tensor<4xi32>
  func.return
}

// CHECK-LABEL: func.func @truths(
func.func @truths(%a: tensor<4xi1>, %b: tensor<4xi1>, %c: tensor<4xi1>) {
  // CHECK-NEXT: %r0 = utensor.not %a : tensor<4xi1>
  %r0 = utensor.not %a : tensor<4xi1>
  // CHECK-NEXT: %r1 = utensor.add %a, %b : tensor<4xi1>
  %r1 = utensor.add %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r2 = utensor.mul %a, %b : tensor<4xi1>
  %r2 = utensor.mul %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r3 = utensor.max %a, %b : tensor<4xi1>
  %r3 = utensor.max %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r4 = utensor.min %a, %b : tensor<4xi1>
  %r4 = utensor.min %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r5 = utensor.and %a, %b : tensor<4xi1>
  %r5 = utensor.and %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r6 = utensor.or %a, %b : tensor<4xi1>
  %r6 = utensor.or %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r7 = utensor.xor %a, %b : tensor<4xi1>
  %r7 = utensor.xor %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r8 = utensor.cmplt %a, %b : tensor<4xi1>
  %r8 = utensor.cmplt %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r9 = utensor.cmple %a, %b : tensor<4xi1>
  %r9 = utensor.cmple %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r10 = utensor.cmpeq %a, %b : tensor<4xi1>
  %r10 = utensor.cmpeq %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r11 = utensor.cmpne %a, %b : tensor<4xi1>
  %r11 = utensor.cmpne %a, %b : tensor<4xi1>
  // CHECK-NEXT: %r12 = utensor.where %c, %a, %b : tensor<4xi1>
  %r12 = utensor.where %c, %a, %b : tensor<4xi1>
  func.return
}

// CHECK-LABEL: func.func @element_types(
func.func @element_types(%f64: tensor<2xf64>, %f32: tensor<2xf32>, %f16: tensor<2xf16>, %bf16: tensor<2xbf16>, %i1: tensor<2xi1>, %i8: tensor<2xi8>, %i16: tensor<2xi16>, %i32: tensor<2xi32>, %i64: tensor<2xi64>, %ui8: tensor<2xui8>, %ui16: tensor<2xui16>, %ui32: tensor<2xui32>, %ui64: tensor<2xui64>) {
  // CHECK-NEXT: %r0 = utensor.max %f64, %f64 : tensor<2xf64>
  %r0 = utensor.max %f64, %f64 : tensor<2xf64>
  // CHECK-NEXT: %r1 = utensor.max %f32, %f32 : tensor<2xf32>
  %r1 = utensor.max %f32, %f32 : tensor<2xf32>
  // CHECK-NEXT: %r2 = utensor.max %f16, %f16 : tensor<2xf16>
  %r2 = utensor.max %f16, %f16 : tensor<2xf16>
  // CHECK-NEXT: %r3 = utensor.max %bf16, %bf16 : tensor<2xbf16>
  %r3 = utensor.max %bf16, %bf16 : tensor<2xbf16>
  // CHECK-NEXT: %r4 = utensor.max %i1, %i1 : tensor<2xi1>
  %r4 = utensor.max %i1, %i1 : tensor<2xi1>
  // CHECK-NEXT: %r5 = utensor.max %i8, %i8 : tensor<2xi8>
  %r5 = utensor.max %i8, %i8 : tensor<2xi8>
  // CHECK-NEXT: %r6 = utensor.max %i16, %i16 : tensor<2xi16>
  %r6 = utensor.max %i16, %i16 : tensor<2xi16>
  // CHECK-NEXT: %r7 = utensor.max %i32, %i32 : tensor<2xi32>
  %r7 = utensor.max %i32, %i32 : tensor<2xi32>
  // CHECK-NEXT: %r8 = utensor.max %i64, %i64 : tensor<2xi64>
  %r8 = utensor.max %i64, %i64 : tensor<2xi64>
  // CHECK-NEXT: %r9 = utensor.max %ui8, %ui8 : tensor<2xui8>
  %r9 = utensor.max %ui8, %ui8 : tensor<2xui8>
  // CHECK-NEXT: %r10 = utensor.max %ui16, %ui16 : tensor<2xui16>
  %r10 = utensor.max %ui16, %ui16 : tensor<2xui16>
  // CHECK-NEXT: %r11 = utensor.max %ui32, %ui32 : tensor<2xui32>
  %r11 = utensor.max %ui32, %ui32 : tensor<2xui32>
  // CHECK-NEXT: %r12 = utensor.max %ui64, %ui64 : tensor<2xui64>
  %r12 = utensor.max %ui64, %ui64 : tensor<2xui64>
  // CHECK-NEXT: %c0 = utensor.cast %f64 : tensor<2xf64> -> tensor<2xi8>
  %c0 = utensor.cast %f64 : tensor<2xf64> -> tensor<2xi8>
  // CHECK-NEXT: %c1 = utensor.cast %f32 : tensor<2xf32> -> tensor<2xi16>
  %c1 = utensor.cast %f32 : tensor<2xf32> -> tensor<2xi16>
  // CHECK-NEXT: %c2 = utensor.cast %f16 : tensor<2xf16> -> tensor<2xi32>
  %c2 = utensor.cast %f16 : tensor<2xf16> -> tensor<2xi32>
  // CHECK-NEXT: %c3 = utensor.cast %bf16 : tensor<2xbf16> -> tensor<2xi64>
  %c3 = utensor.cast %bf16 : tensor<2xbf16> -> tensor<2xi64>
  // CHECK-NEXT: %c4 = utensor.cast %i1 : tensor<2xi1> -> tensor<2xui8>
  %c4 = utensor.cast %i1 : tensor<2xi1> -> tensor<2xui8>
  // CHECK-NEXT: %c5 = utensor.cast %i8 : tensor<2xi8> -> tensor<2xui16>
  %c5 = utensor.cast %i8 : tensor<2xi8> -> tensor<2xui16>
  // CHECK-NEXT: %c6 = utensor.cast %i16 : tensor<2xi16> -> tensor<2xui32>
  %c6 = utensor.cast %i16 : tensor<2xi16> -> tensor<2xui32>
  // CHECK-NEXT: %c7 = utensor.cast %i32 : tensor<2xi32> -> tensor<2xui64>
  %c7 = utensor.cast %i32 : tensor<2xi32> -> tensor<2xui64>
  // CHECK-NEXT: %c8 = utensor.cast %i64 : tensor<2xi64> -> tensor<2xf64>
  %c8 = utensor.cast %i64 : tensor<2xi64> -> tensor<2xf64>
  // CHECK-NEXT: %c9 = utensor.cast %ui8 : tensor<2xui8> -> tensor<2xf32>
  %c9 = utensor.cast %ui8 : tensor<2xui8> -> tensor<2xf32>
  // CHECK-NEXT: %c10 = utensor.cast %ui16 : tensor<2xui16> -> tensor<2xf16>
  %c10 = utensor.cast %ui16 : tensor<2xui16> -> tensor<2xf16>
  // CHECK-NEXT: %c11 = utensor.cast %ui32 : tensor<2xui32> -> tensor<2xbf16>
  %c11 = utensor.cast %ui32 : tensor<2xui32> -> tensor<2xbf16>
  // CHECK-NEXT: %c12 = utensor.cast %ui64 : tensor<2xui64> -> tensor<2xi1>
  %c12 = utensor.cast %ui64 : tensor<2xui64> -> tensor<2xi1>
  // CHECK-NEXT: %b0 = utensor.bitcast %bf16 : tensor<2xbf16> -> tensor<2xui16>
  %b0 = utensor.bitcast %bf16 : tensor<2xbf16> -> tensor<2xui16>
  // CHECK-NEXT: %b1 = utensor.bitcast %i64 : tensor<2xi64> -> tensor<2xf64>
  %b1 = utensor.bitcast %i64 : tensor<2xi64> -> tensor<2xf64>
  func.return
}

// CHECK-LABEL: func.func @rank_zero_and_size_zero(
func.func @rank_zero_and_size_zero(%s: tensor<f32>, %z: tensor<0x4xf32>, %o: tensor<1x1xf32>) {
  // CHECK-NEXT: %0 = utensor.reshape %s : tensor<f32> -> tensor<1x1xf32>
  %0 = utensor.reshape %s : tensor<f32> -> tensor<1x1xf32>
  // CHECK-NEXT: %1 = utensor.reshape %z : tensor<0x4xf32> -> tensor<7x0xf32>
  %1 = utensor.reshape %z : tensor<0x4xf32> -> tensor<7x0xf32>
  // CHECK-NEXT: %2 = utensor.reshape %o : tensor<1x1xf32> -> tensor<f32>
  %2 = utensor.reshape %o : tensor<1x1xf32> -> tensor<f32>
  // CHECK-NEXT: %3 = utensor.permute %s [] : tensor<f32> -> tensor<f32>
  %3 = utensor.permute %s [] : tensor<f32> -> tensor<f32>
  // CHECK-NEXT: %4 = utensor.flip %s [] : tensor<f32> -> tensor<f32>
  %4 = utensor.flip %s [] : tensor<f32> -> tensor<f32>
  // CHECK-NEXT: %5 = utensor.expand %s : tensor<f32> -> tensor<f32>
  %5 = utensor.expand %s : tensor<f32> -> tensor<f32>
  // CHECK-NEXT: %6 = utensor.expand %o : tensor<1x1xf32> -> tensor<0x9xf32>
  %6 = utensor.expand %o : tensor<1x1xf32> -> tensor<0x9xf32>
  // CHECK-NEXT: %7 = utensor.shrink %s [] to [] : tensor<f32> -> tensor<f32>
  %7 = utensor.shrink %s [] to [] : tensor<f32> -> tensor<f32>
  // CHECK-NEXT: %8 = utensor.pad %s low [] high [] value -0.0 : tensor<f32> -> tensor<f32>
  %8 = utensor.pad %s low [] high [] value -0.0 : tensor<f32> -> tensor<f32>
  // CHECK-NEXT: %9 = utensor.reduce add %s axes [] : tensor<f32> -> tensor<f32>
  %9 = utensor.reduce add %s axes [] : tensor<f32> -> tensor<f32>
  // CHECK-NEXT: %10 = utensor.reduce max %z axes [0] : tensor<0x4xf32> -> tensor<4xf32>
  %10 = utensor.reduce max %z axes [0] : tensor<0x4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %11 = utensor.pad %z low [2, 0] high [0, 1] value inf : tensor<0x4xf32> -> tensor<2x5xf32>
  %11 = utensor.pad %z low [2, 0] high [0, 1] value inf : tensor<0x4xf32> -> tensor<2x5xf32>
  func.return
}

// CHECK-LABEL: func.func @movement_and_reductions(
func.func @movement_and_reductions(%x: tensor<4x8xf32>, %i: tensor<3xi64>, %u: tensor<3x8xf32>) {
  // CHECK-NEXT: %0 = utensor.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %0 = utensor.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  // CHECK-NEXT: %1 = utensor.permute %x [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = utensor.permute %x [1, 0] : tensor<4x8xf32>
  // CHECK-NEXT: %2 = utensor.flip %x [0, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = utensor.flip %x [0, 1] : tensor<4x8xf32>
  // CHECK-NEXT: %3 = utensor.shrink %x [1, 0] to [3, 8] step [1, 2] : tensor<4x8xf32> -> tensor<2x4xf32>
  %3 = utensor.shrink %x [1, 0] to [3, 8] step [1, 2] : tensor<4x8xf32>
  // CHECK-NEXT: %4 = utensor.pad %x low [1, 0] high [0, 2] value nan : tensor<4x8xf32> -> tensor<5x10xf32>
  %4 = utensor.pad %x low [1, 0] high [0, 2] value nan : tensor<4x8xf32>
  // CHECK-NEXT: %5 = utensor.reduce mul %x axes [0, 1] : tensor<4x8xf32> -> tensor<f32>
  %5 = utensor.reduce mul %x axes [0, 1] : tensor<4x8xf32>
  // CHECK-NEXT: %6 = utensor.argreduce min %x axis 1 : tensor<4x8xf32> -> tensor<4xi32>
  %6 = utensor.argreduce min %x axis 1 : tensor<4x8xf32>
  // CHECK-NEXT: %7 = utensor.argreduce max %x axis 0 : tensor<4x8xf32> -> tensor<8xi64>
  %7 = utensor.argreduce max %x axis 0 : tensor<4x8xf32> -> tensor<8xi64>
  // CHECK-NEXT: %8 = utensor.gather %x, %i axis 0 : tensor<4x8xf32>, tensor<3xi64> -> tensor<3x8xf32>
  %8 = utensor.gather %x, %i axis 0 : tensor<4x8xf32>, tensor<3xi64>
  // CHECK-NEXT: %9 = utensor.scatter set %x, %i, %u axis 0 : tensor<4x8xf32>, tensor<3xi64>, tensor<3x8xf32> -> tensor<4x8xf32>
  %9 = utensor.scatter set %x, %i, %u axis 0 : tensor<4x8xf32>, tensor<3xi64>, tensor<3x8xf32>
  // CHECK-NEXT: %10 = utensor.stage contiguous %x : tensor<4x8xf32>
  %10 = utensor.stage %x : tensor<4x8xf32>
  // CHECK-NEXT: %11 = utensor.stage detach %x {note = "kept"} : tensor<4x8xf32>
  %11 = utensor.stage detach %x {note = "kept"} : tensor<4x8xf32>
  func.return
}

// CHECK-LABEL: func.func @constants(
func.func @constants() {
  // CHECK-NEXT: %0 = utensor.iota axis 1 : tensor<4x8xi32>
  %0 = utensor.iota axis 1 : tensor<4x8xi32>
  // CHECK-NEXT: %1 = utensor.constant 1.5 : tensor<4xf32>
  %1 = utensor.constant 1.50e0 : tensor<4xf32>
  // CHECK-NEXT: %2 = utensor.constant 3.0 : tensor<4xbf16>
  %2 = utensor.constant 3 : tensor<4xbf16>
  // CHECK-NEXT: %3 = utensor.constant 0.1 : tensor<2xf16>
  %3 = utensor.constant 0.1 : tensor<2xf16>
  // CHECK-NEXT: %4 = utensor.constant -inf : tensor<f64>
  %4 = utensor.constant -inf : tensor<f64>
  // CHECK-NEXT: %5 = utensor.constant nan : tensor<1xf32>
  %5 = utensor.constant 0x7FC00001 : tensor<1xf32>
  // CHECK-NEXT: %6 = utensor.constant 1.0e-05 : tensor<1xf32>
  %6 = utensor.constant 0.00001 : tensor<1xf32>
  // CHECK-NEXT: %7 = utensor.constant -1 : tensor<1xi8>
  %7 = utensor.constant 255 : tensor<1xi8>
  // CHECK-NEXT: %8 = utensor.constant 18446744073709551615 : tensor<1xui64>
  %8 = utensor.constant 18446744073709551615 : tensor<1xui64>
  // CHECK-NEXT: %9 = utensor.constant true : tensor<0xi1>
  %9 = utensor.constant true : tensor<0xi1>
  // CHECK-NEXT: %10 = utensor.constant dense<[[1, 2], [3, -4]]> : tensor<2x2xi64>
  %10 = utensor.constant dense<[[1, 2], [3, -4]]> : tensor<2x2xi64>
  // CHECK-NEXT: %11 = utensor.constant dense<[true, false]> : tensor<2xi1>
  %11 = utensor.constant dense<[true, false]> : tensor<2xi1>
  // CHECK-NEXT: %12 = utensor.constant dense<7> : tensor<5xui8>
  %12 = utensor.constant dense<7> : tensor<5xui8>
  // CHECK-NEXT: %13 = utensor.constant dense<> : tensor<0x3xf32>
  %13 = utensor.constant dense<> : tensor<0x3xf32>
  func.return
}

// CHECK-LABEL: func.func @symbolic_sizes(
func.func @symbolic_sizes(%x: tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>>) {
  // CHECK-NEXT: %0 = utensor.add %x, %x : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>>
  %0 = utensor.add %x, %x : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>>
  // CHECK-NEXT: %1 = utensor.reshape %x : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<?xf32, #utensor.sizes<[8*n + 8], n = 1 to 64>>
  %1 = utensor.reshape %x : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<?xf32, #utensor.sizes<[8*n + 8], n = 1 to 64>>
  // CHECK-NEXT: %2 = utensor.shrink %x [n, 0], n = 1 to 64 to [n + 1, 8], n = 1 to 64 : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<1x8xf32>
  %2 = utensor.shrink %x [n, 0], n = 1 to 64 to [n + 1, 8], n = 1 to 64 : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<1x8xf32>
  // CHECK-NEXT: %3 = utensor.pad %x low [n floordiv 2, 0], n = 1 to 64 high [m, 0], m = 0 to 3 value 0.0 : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<?x8xf32, #utensor.sizes<[m + n + n floordiv 2 + 1, 8], m = 0 to 3, n = 1 to 64>>
  %3 = utensor.pad %x low [n floordiv 2, 0], n = 1 to 64 high [m, 0], m = 0 to 3 value 0.0 : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<?x8xf32, #utensor.sizes<[m + n + n floordiv 2 + 1, 8], m = 0 to 3, n = 1 to 64>>
  // CHECK-NEXT: %4 = utensor.reduce max %x axes [0] : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<8xf32>
  %4 = utensor.reduce max %x axes [0] : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<8xf32>
  // CHECK-NEXT: %5 = utensor.permute %x [1, 0] : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<8x?xf32, #utensor.sizes<[8, n + 1], n = 1 to 64>>
  %5 = utensor.permute %x [1, 0] : tensor<?x8xf32, #utensor.sizes<[n + 1, 8], n = 1 to 64>> -> tensor<8x?xf32, #utensor.sizes<[8, n + 1], n = 1 to 64>>
  // CHECK-NEXT: %6 = utensor.iota axis 0 : tensor<?xi32, #utensor.sizes<[min(m + 2, n)], m = 0 to 3, n = 1 to 64>>
  %6 = utensor.iota axis 0 : tensor<?xi32, #utensor.sizes<[min(m + 2, n)], m = 0 to 3, n = 1 to 64>>
  // CHECK-NEXT: %7 = utensor.constant 1.0 : tensor<?xf32, #utensor.sizes<[n mod 3], n = 1 to 64>>
  %7 = utensor.constant 1.0 : tensor<?xf32, #utensor.sizes<[n mod 3], n = 1 to 64>>
  func.return
}
