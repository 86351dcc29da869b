// RUN: uopc-opt %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: uopc-opt %s --split-input-file --verify-diagnostics -t cuda | filecheck %s --check-prefix=CUDA

// What mlir-opt prints: a kernel with memory of its block, a shuffle, and both kinds of launch.

// CUDA: extern "C" __global__ void __launch_bounds__(64)
// CUDA-NEXT: reverse(const float *x, float *o)
// CUDA-NEXT: {
// CUDA-NEXT:   __shared__ __align__(16) float s[64];
// CUDA-NEXT:   int64_t t = threadIdx.x;
// CUDA-NEXT:   int64_t d = blockDim.x;
// CUDA-NEXT:   s[t] = x[t];
// CUDA-NEXT:   __syncthreads();
// CUDA-NEXT:   float q = __shfl_xor_sync(0xffffffffu, s[d - 1 - t], 1);
// CUDA-NEXT:   o[t] = q;
// CUDA-NEXT: }
// CUDA: main_kernel(float *x)
// CUDA:   float v = x[tx];
// CHECK: "gpu.module"() <{sym_name = "kernels"}> ({
// CHECK-NEXT: "gpu.func"() <{function_type = (memref<64xf32>, memref<64xf32>) -> (), kernel}> ({
// CHECK-NEXT: ^bb0(%x: memref<64xf32>, %o: memref<64xf32>):
// CHECK-NEXT: %s = memref.alloca() : memref<64xf32, #gpu.address_space<workgroup>>
// CHECK-NEXT: %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @reverse(%x: memref<64xf32> {llvm.readonly}, %o: memref<64xf32>)
        workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>)
        kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
      %t = gpu.thread_id x
      %d = gpu.block_dim x upper_bound 64
      %lane = gpu.lane_id
      %v = memref.load %x[%t] : memref<64xf32>
      memref.store %v, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %c1 = arith.constant 1 : index
      %l = arith.subi %d, %c1 : index
      %f = arith.subi %l, %t : index
      %r = memref.load %s[%f] : memref<64xf32, #gpu.address_space<workgroup>>
      %off = arith.constant 1 : i32
      %w = arith.constant 32 : i32
      %q, %ok = gpu.shuffle xor %r, %off, %w : f32
      memref.store %q, %o[%t] : memref<64xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<64xf32>, %o: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    // CHECK: "gpu.launch_func"(%c1, %c1, %c1, %c64, %c1, %c1, %x, %o) <{kernel = @kernels::@reverse,
    gpu.launch_func @kernels::@reverse blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<64xf32>, %o : memref<64xf32>)
    // CHECK: "gpu.launch"(%c1, %c1, %c1, %c64, %c1, %c1)
    // CHECK-NEXT: ^bb0(%bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index,
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
        threads(%tx, %ty, %tz) in (%nx = %c64, %ny = %c1, %nz = %c1) {
      %v = memref.load %x[%tx] : memref<64xf32>
      %y = arith.addf %v, %v : f32
      memref.store %y, %x[%tx] : memref<64xf32>
      gpu.terminator
    }
    func.return
  }
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{uopc reads launches that the host waits for: leave out 'async'}}
  %t = gpu.launch_func async @k::@f blocks in (%n, %n, %n) threads in (%n, %n, %n)
  func.return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{clusters of blocks are not supported}}
  gpu.launch clusters(%cx, %cy, %cz) in (%a = %n, %b = %n, %c = %n)
    blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)
    threads(%tx, %ty, %tz) in (%nx = %n, %ny = %n, %nz = %n) {
    gpu.terminator
  }
  func.return
}

// -----

func.func @f(%n: index) {
  // expected-error@+1 {{expected @MODULE::@KERNEL}}
  gpu.launch_func 5 blocks in (%n, %n, %n) threads in (%n, %n, %n)
  func.return
}
