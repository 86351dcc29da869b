// Kernels with a mistake each. Tests name the lines: add at the end only.
#include <cuda_pipeline.h>
extern "C" __global__ void diverge(float *y) {
  if (threadIdx.x < 100)
    __syncthreads();
  y[threadIdx.x] = 1.0f;
}

extern "C" __global__ void two_barriers(float *y) {
  if (threadIdx.x < 64)
    __syncthreads();
  else
    __syncthreads();
  y[threadIdx.x] = 1.0f;
}

extern "C" __global__ void past_the_end(float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i + 1] = 1.0f;
}

extern "C" __global__ void far_away(float *y) {
  y[threadIdx.x] = y[(int)threadIdx.x - 200];
}

extern "C" __global__ void misaligned(float *y) {
  float4 *wide = reinterpret_cast<float4 *>(y + 1);
  const float4 value = wide[threadIdx.x & 7];
  *reinterpret_cast<float4 *>(y) = value;
}

extern "C" __global__ void race(float *y) {
  __shared__ float s[128];
  s[threadIdx.x] = 1.0f;
  y[threadIdx.x] = s[(threadIdx.x + 32) % 128];
}

extern "C" __global__ void read_before_write(float *y) {
  __shared__ float s[128];
  s[threadIdx.x] = 1.0f;
  __syncthreads();
  const float value = s[(threadIdx.x + 32) % 128];
  s[threadIdx.x] = value + 1.0f;
  y[threadIdx.x] = value;
}

extern "C" __global__ void warp_race(float *y) {
  __shared__ float s[128];
  s[threadIdx.x] = 1.0f;
  y[threadIdx.x] = s[threadIdx.x ^ 1];
}

extern "C" __global__ void warp_in_step(float *y) {
  __shared__ float s[128];
  s[threadIdx.x] = 1.0f;
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x ^ 1];
}

extern "C" __global__ void block_race(float *y) {
  y[threadIdx.x] = (float)blockIdx.x;
}

extern "C" __global__ void uninitialised(float *y) {
  __shared__ float s[128];
  if (threadIdx.x < 100) s[threadIdx.x] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void shared_overflow(float *y) {
  __shared__ float left[64];
  __shared__ float right[64];
  if (threadIdx.x < 64) right[threadIdx.x] = 2.0f;
  if (threadIdx.x < 64) left[threadIdx.x + 1] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = left[threadIdx.x % 64] + right[threadIdx.x % 64];
}

extern "C" __global__ void dynamic_overflow(float *y) {
  extern __shared__ float s[];
  s[threadIdx.x] = 1.0f;
  y[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void lone_shuffle(float *y) {
  if (threadIdx.x % 32 < 16)
    y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

extern "C" __global__ void outside_the_mask(float *y) {
  if (threadIdx.x % 32 < 16)
    y[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, 1.0f, 16);
}

extern "C" __global__ void trap(float *y) {
  if (threadIdx.x == 5)
    __trap();
  y[threadIdx.x] = 1.0f;
}

extern "C" __global__ void deep(float *y) {
  volatile char local[200000];
  local[threadIdx.x] = 1;
  y[threadIdx.x] = (float)local[threadIdx.x];
}

extern "C" __global__ void divides(int *y) {
  y[threadIdx.x] = 7 / y[threadIdx.x];
}

extern "C" __global__ void fine(float *y) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = 2.0f;
}

extern "C" __global__ void late(const float *x, float *y) {
  __shared__ __align__(16) float s[512];
  __pipeline_memcpy_async(&s[threadIdx.x * 4], x + (threadIdx.x & 31) * 4, 16);
  __pipeline_commit();
  y[threadIdx.x] = s[threadIdx.x * 4];
}

__global__ void not_c(float *y) { y[0] = 1.0f; }
