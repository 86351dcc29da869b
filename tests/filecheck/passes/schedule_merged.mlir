// RUN: uopc-opt %s -p "schedule{target=avx512}" | filecheck %s
// RUN: uopc-opt %s -p "schedule{target=avx512},apply-schedule" | filecheck %s --check-prefix=APPLIED

// A convolution of rows of 56 pixels: two rows fill seven vectors of 16, four fourteen: of panels of three the last has two, not one.
// CHECK: @image {{.*}}schedule = "contract; split y = y0 y1:4; tile x_at over c ky kx y1 x as pc pky pkx py px; merge y1 x as yx; split yx = x0 x1:3:unroll x2:16:vector; split px = px1:unroll px2:8:vector; merge c ky as cky; merge cky kx as ckykx; mark pkx unroll; split o = o0 o1:8:unroll; order b y0 pc pky py x0 o0 ckykx"
// APPLIED: uloop.read %x_at[%ckykx floordiv 9, %ckykx floordiv 3 mod 3, %ckykx mod 3, {{.*}}] : memref<16x3x3x4x7x8xf32>
// APPLIED: uloop.store %s, %out[%b, %o0 * 8 + %o1, %y0 * 4 + (%x0 * 48 + %x1 * 16 + %x2) floordiv 56, (%x0 * 48 + %x1 * 16 + %x2) mod 56]
ukernel.kernel @image ins(%in : memref<2x16x58x58xf32>, %w : memref<32x16x3x3xf32>) outs(%out : memref<2x32x56x56xf32>) {
  %b = uloop.range 2
  %o = uloop.range 32
  %y = uloop.range 56
  %x = uloop.range 56
  %c = uloop.range 16 reduce
  %ky = uloop.range 3 reduce
  %kx = uloop.range 3 reduce
  %x_at = uloop.load %in[%b, %c, %y + %ky, %x + %kx] : memref<2x16x58x58xf32>
  %f = uloop.load %w[%o, %c, %ky, %kx] : memref<32x16x3x3xf32>
  %p = arith.mulf %x_at, %f : f32
  %s = uloop.reduce add %p over (%c, %ky, %kx) : f32
  uloop.store %s, %out[%b, %o, %y, %x] : memref<2x32x56x56xf32>
}

// A mask of positions is not even along merged lanes: a row at a time.
// CHECK: @masked {{.*}}schedule = "contract; split x = x0 xj:64;
ukernel.kernel @masked ins(%in : memref<16x56x56xf32>, %w : memref<32x16xf32>) outs(%out : memref<32x56x56xf32>) {
  %o = uloop.range 32
  %y = uloop.range 56
  %x = uloop.range 56
  %c = uloop.range 16 reduce
  %x_at = uloop.load %in[%c, %y, %x] : memref<16x56x56xf32>
  %f = uloop.load %w[%o, %c] : memref<32x16xf32>
  %p = arith.mulf %x_at, %f : f32
  %s = uloop.reduce add %p over (%c) : f32
  %below = uloop.valid (%y - %x)
  %zero = arith.constant 0.0 : f32
  %m = arith.select %below, %s, %zero : f32
  uloop.store %m, %out[%o, %y, %x] : memref<32x56x56xf32>
}

// The rows of a batch follow one another in memory: a sum over them is over one range.
// CHECK: @gradient {{.*}}schedule = "merge k l as kl; contract; split j = j0 jj:
ukernel.kernel @gradient ins(%x : memref<4x256x96xf32>, %y : memref<4x256x384xf32>) outs(%o : memref<96x384xf32>) {
  %i = uloop.range 96
  %j = uloop.range 384
  %k = uloop.range 4 reduce
  %l = uloop.range 256 reduce
  %0 = uloop.load %x[%k, %l, %i] : memref<4x256x96xf32>
  %1 = uloop.load %y[%k, %l, %j] : memref<4x256x384xf32>
  %2 = arith.mulf %0, %1 : f32
  %3 = uloop.reduce add %2 over (%k, %l) : f32
  uloop.store %3, %o[%i, %j] : memref<96x384xf32>
}

// So do rows of the result, of which one factor only depends.
// CHECK: @layer {{.*}}schedule = "merge i j as ij; contract; split k = k0 kj:
ukernel.kernel @layer ins(%x : memref<4x256x96xf32>, %w : memref<96x384xf32>) outs(%o : memref<4x256x384xf32>) {
  %i = uloop.range 4
  %j = uloop.range 256
  %k = uloop.range 384
  %l = uloop.range 96 reduce
  %0 = uloop.load %x[%i, %j, %l] : memref<4x256x96xf32>
  %1 = uloop.load %w[%l, %k] : memref<96x384xf32>
  %2 = arith.mulf %0, %1 : f32
  %3 = uloop.reduce add %2 over (%l) : f32
  uloop.store %3, %o[%i, %j, %k] : memref<4x256x384xf32>
}

// Not where the batches of one factor lie apart.
// CHECK: @apart {{.*}}schedule = "contract; split j = j0 jj:
ukernel.kernel @apart ins(%x : memref<4x260x96xf32>, %y : memref<4x256x384xf32>) outs(%o : memref<96x384xf32>) {
  %i = uloop.range 96
  %j = uloop.range 384
  %k = uloop.range 4 reduce
  %l = uloop.range 256 reduce
  %0 = uloop.load %x[%k, %l, %i] : memref<4x260x96xf32>
  %1 = uloop.load %y[%k, %l, %j] : memref<4x256x384xf32>
  %2 = arith.mulf %0, %1 : f32
  %3 = uloop.reduce add %2 over (%k, %l) : f32
  uloop.store %3, %o[%i, %j] : memref<96x384xf32>
}
