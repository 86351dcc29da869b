// RUN: uopc-opt %s -p "schedule{target=avx512}" | filecheck %s
// RUN: uopc-opt %s -p "schedule{target=avx512},apply-schedule" | uopc-opt | filecheck %s --check-prefix=APPLIED
// RUN: uopc-opt %s -p "schedule{target=avx512 threads=false},apply-schedule,linearize" | filecheck %s --check-prefix=LOOPS

// Rows of four whole vectors: eight of them and what the window reaches beside them are kept once.
// CHECK: @image {{.*}}schedule = "contract; split y = y0 y1:8; tile x_at over c y1+ky x+kx as pc pky pkx; split pkx = pkx0 pkx1:16:vector; split x = x0 x1:3:unroll x2:16:vector; split o = o0 o1:8:unroll; mark kx unroll; order b y0 pc pky pkx0 o0 y1 x0 c ky"
// APPLIED: uloop.tile %{{.*}} over (%pc, %pky, %pkx0, %pkx1) local : memref<16x10x5x16xf32>
// APPLIED: uloop.read %x_at[%c, %y1 + %ky,
// LOOPS: %x_at = memref.alloca() : memref<12818xf32>
// LOOPS: vector.fma %{{.*}} : vector<16xf32>
ukernel.kernel @image ins(%in : memref<2x16x66x66xf32>, %w : memref<32x16x3x3xf32>) outs(%out : memref<2x32x64x64xf32>) {
  %b = uloop.range 2
  %o = uloop.range 32
  %y = uloop.range 64
  %x = uloop.range 64
  %c = uloop.range 16 reduce
  %ky = uloop.range 3 reduce
  %kx = uloop.range 3 reduce
  %x_at = uloop.load %in[%b, %c, %y + %ky, %x + %kx] : memref<2x16x66x66xf32>
  %f = uloop.load %w[%o, %c, %ky, %kx] : memref<32x16x3x3xf32>
  %p = arith.mulf %x_at, %f : f32
  %s = uloop.reduce add %p over (%c, %ky, %kx) : f32
  uloop.store %s, %out[%b, %o, %y, %x] : memref<2x32x64x64xf32>
}

// Rows two apart; a window whose columns are two apart has no vectors of neighbours and is packed.
// CHECK: @rows_apart {{.*}}; tile x_at over c y1*2+ky x+kx as pc pky pkx;
ukernel.kernel @rows_apart ins(%in : memref<16x67x66xf32>, %w : memref<32x16x3x3xf32>) outs(%out : memref<32x32x64xf32>) {
  %o = uloop.range 32
  %y = uloop.range 32
  %x = uloop.range 64
  %c = uloop.range 16 reduce
  %ky = uloop.range 3 reduce
  %kx = uloop.range 3 reduce
  %x_at = uloop.load %in[%c, %y * 2 + %ky, %x + %kx] : memref<16x67x66xf32>
  %f = uloop.load %w[%o, %c, %ky, %kx] : memref<32x16x3x3xf32>
  %p = arith.mulf %x_at, %f : f32
  %s = uloop.reduce add %p over (%c, %ky, %kx) : f32
  uloop.store %s, %out[%o, %y, %x] : memref<32x32x64xf32>
}

// CHECK: @columns_apart {{.*}}; tile x_at over c ky kx {{.*}} as pc pky pkx
ukernel.kernel @columns_apart ins(%in : memref<16x66x129xf32>, %w : memref<32x16x3x3xf32>) outs(%out : memref<32x64x64xf32>) {
  %o = uloop.range 32
  %y = uloop.range 64
  %x = uloop.range 64
  %c = uloop.range 16 reduce
  %ky = uloop.range 3 reduce
  %kx = uloop.range 3 reduce
  %x_at = uloop.load %in[%c, %y + %ky, %x * 2 + %kx] : memref<16x66x129xf32>
  %f = uloop.load %w[%o, %c, %ky, %kx] : memref<32x16x3x3xf32>
  %p = arith.mulf %x_at, %f : f32
  %s = uloop.reduce add %p over (%c, %ky, %kx) : f32
  uloop.store %s, %out[%o, %y, %x] : memref<32x64x64xf32>
}

// A signal is an image of one row.
// CHECK: @signal {{.*}}schedule = "contract; tile x_at over c x+k as pc pk; split pk = pk0 pk1:16:vector; split x = x0 x1:3:unroll x2:16:vector; split o = o0 o1:8:unroll; mark k unroll; order pc pk0 o0 x0 c
ukernel.kernel @signal ins(%in : memref<16x131xf32>, %w : memref<32x16x4xf32>) outs(%out : memref<32x128xf32>) {
  %o = uloop.range 32
  %x = uloop.range 128
  %c = uloop.range 16 reduce
  %k = uloop.range 4 reduce
  %x_at = uloop.load %in[%c, %x + %k] : memref<16x131xf32>
  %f = uloop.load %w[%o, %c, %k] : memref<32x16x4xf32>
  %p = arith.mulf %x_at, %f : f32
  %s = uloop.reduce add %p over (%c, %k) : f32
  uloop.store %s, %out[%o, %x] : memref<32x128xf32>
}
