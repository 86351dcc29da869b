// RUN: uopc-opt %s -t cuda | filecheck %s

// Kernels of a gpu.module, a function that one calls, a constant, and a gpu.launch in a function.

"memref.global"() <{sym_name = "const0", type = memref<3xf32>, initial_value = dense<[1.0, 0.1, -2.5]> : tensor<3xf32>, sym_visibility = "private", constant}> : () -> ()

"gpu.module"() <{sym_name = "kernels"}> ({
  func.func private @twice(%x: f32) -> f32 {
    %y = arith.addf %x, %x : f32
    func.return %y : f32
  }

  // Threads of a block exchange values by shuffles, and through shared memory.
  "gpu.func"() <{function_type = (index, memref<?xf32>, memref<?xf16>, memref<3xf32>) -> (), kernel}> ({
  ^bb0(%n: index, %x: memref<?xf32>, %h: memref<?xf16>, %c: memref<3xf32>):
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %b = "gpu.block_id"() <{dimension = #gpu<dim y>}> : () -> index
    %d = "gpu.block_dim"() <{dimension = #gpu<dim x>}> : () -> index
    %s = memref.alloca() : memref<64xf32, #gpu.address_space<workgroup>>
    %base = arith.muli %b, %d : index
    %i = arith.addi %base, %t : index
    %in = arith.cmpi slt, %i, %n : index
    %zero = arith.constant 0.0 : f32
    %v = scf.if %in -> (f32) {
      %l = memref.load %x[%i] : memref<?xf32>
      %m = func.call @twice(%l) : (f32) -> f32
      scf.yield %m : f32
    } else {
      scf.yield %zero : f32
    }
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %o, %ok = "gpu.shuffle"(%v, %one, %width) <{mode = #gpu<shuffle_mode xor>}> : (f32, i32, i32) -> (f32, i1)
    memref.store %o, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    "gpu.barrier"() : () -> ()
    %c1 = arith.constant 1 : index
    %back = arith.subi %d, %t : index
    %at = arith.subi %back, %c1 : index
    %r = memref.load %s[%at] : memref<64xf32, #gpu.address_space<workgroup>>
    %nan = arith.constant 0x7FC00001 : f32
    %low = arith.constant 0xFF800000 : f32
    %w = arith.maximumf %r, %low : f32
    %k = memref.load %c[%c1] : memref<3xf32>
    %f = math.fma %w, %k, %nan : f32
    scf.if %in {
      memref.store %f, %x[%i] : memref<?xf32>
      %half = memref.load %h[%i] : memref<?xf16>
      %sum = arith.addf %half, %half : f16
      memref.store %sum, %h[%i] : memref<?xf16>
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "exchange", gpu.known_block_size = array<i32: 64, 1, 1>, uopc.doc = "neighbours */ swap", arg_attrs = [{}, {llvm.noalias}, {llvm.noalias}, {llvm.noalias, llvm.readonly}]} : () -> ()
}) : () -> ()

func.func @fill(%n: index, %x: memref<?xi32>) {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %seven = arith.constant 7 : i32
  "gpu.launch"(%n, %c1, %c1, %c32, %c1, %c1) <{operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0>}> ({
  ^bb0(%bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index,
       %gx: index, %gy: index, %gz: index, %sx: index, %sy: index, %sz: index):
    %0 = arith.muli %bx, %sx : index
    %1 = arith.addi %0, %tx : index
    memref.store %seven, %x[%1] : memref<?xi32>
    "gpu.terminator"() : () -> ()
  }) : (index, index, index, index, index, index) -> ()
  func.return
}

// CHECK:       #if defined(__CUDACC_RTC__)
// CHECK:       typedef long long int64_t;
// CHECK:       #include <stdint.h>
// CHECK-NEXT:  #endif

// CHECK:       extern "C" {
// CHECK-NEXT:  __device__ __align__(16) float const0[3] = {1.0f, 0.1f, -2.5f};
// CHECK-NEXT:  }

// CHECK:       static __device__ __forceinline__ float f16_to_f32(uint16_t h)
// CHECK:       __uint_as_float(
// CHECK:       static __device__ __forceinline__ uint16_t f32_to_f16(float x)

// CHECK:       static __device__ float twice(float x);
// CHECK:       static __device__ float twice(float x)
// CHECK-NEXT:  {
// CHECK-NEXT:      return x + x;
// CHECK-NEXT:  }

// CHECK:       /* neighbours * / swap */
// CHECK-NEXT:  extern "C" __global__ void __launch_bounds__(64)
// CHECK-NEXT:  exchange(long long n, float *__restrict__ x, uint16_t *__restrict__ h, const float *__restrict__ c)
// CHECK-NEXT:  {
// CHECK-NEXT:      int64_t t = threadIdx.x;
// CHECK-NEXT:      int64_t b = blockIdx.y;
// CHECK-NEXT:      int64_t d = blockDim.x;
// CHECK-NEXT:      __shared__ __align__(16) float s[64];
// CHECK:           if (in) {
// CHECK-NEXT:          float m = twice(x[i]);
// CHECK:           float o = __shfl_xor_sync(0xffffffffu, v, 1);
// CHECK-NEXT:      s[t] = o;
// CHECK-NEXT:      __syncthreads();
// CHECK:           fmaf({{.*}}, c[1], __int_as_float((int)0x7fc00001u))
// CHECK:               f32_to_f16({{.*}} + {{.*}});

// CHECK:       extern "C" __global__ void
// CHECK-NEXT:  fill_kernel(int32_t *x)
// CHECK-NEXT:  {
// CHECK-NEXT:      int64_t bx = blockIdx.x;
// CHECK-NEXT:      int64_t tx = threadIdx.x;
// CHECK-NEXT:      int64_t sx = blockDim.x;
// CHECK-NEXT:      x[bx*sx + tx] = 7;
// CHECK-NEXT:  }
