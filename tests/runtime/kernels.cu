// Kernels as a person writes them, for the emulator, a GPU and nvcc alike.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

// scale[] is a constant of the program; offset is in constant memory.
extern "C" {
__device__ float scale[4] = {1.0f, 2.0f, 3.0f, 4.0f};
}
__constant__ float offset = 0.5f;

extern "C" __global__ void __launch_bounds__(256)
copy(long long n, const float *__restrict__ from, float *__restrict__ to) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    to[i] = from[i];
}

// to = from * scale[i % 4] + offset
extern "C" __global__ void scaled(long long n, const float *from, const float *factors, float *to) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) to[i] = fmaf(from[i], factors[i % 4], offset);
}

// a [m, k] times b [k, n], by tiles of 64x64x16, 4x4 sums a thread; m, n of 64, k of 16.
extern "C" __global__ void __launch_bounds__(256)
product(long long m, long long n, long long k, const float *__restrict__ a,
        const float *__restrict__ b, float *__restrict__ c) {
  __shared__ __align__(16) float left[16][68];
  __shared__ __align__(16) float right[16][64];
  const int t = threadIdx.x, tx = t & 15, ty = t >> 4;
  const long long row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sums[4][4] = {};
  for (long long step = 0; step < k; step += 16) {
    const float4 x =
        *reinterpret_cast<const float4 *>(a + (row + (t >> 2)) * k + step + (t & 3) * 4);
    left[(t & 3) * 4 + 0][t >> 2] = x.x;
    left[(t & 3) * 4 + 1][t >> 2] = x.y;
    left[(t & 3) * 4 + 2][t >> 2] = x.z;
    left[(t & 3) * 4 + 3][t >> 2] = x.w;
    *reinterpret_cast<float4 *>(&right[t >> 4][(t & 15) * 4]) =
        *reinterpret_cast<const float4 *>(b + (step + (t >> 4)) * n + column + (t & 15) * 4);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) {
      const float4 u = *reinterpret_cast<const float4 *>(&left[i][ty * 4]);
      const float4 v = *reinterpret_cast<const float4 *>(&right[i][tx * 4]);
      const float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int p = 0; p < 4; p++)
#pragma unroll
        for (int q = 0; q < 4; q++) sums[p][q] = fmaf(us[p], vs[q], sums[p][q]);
    }
    __syncthreads();
  }
  for (int p = 0; p < 4; p++)
    *reinterpret_cast<float4 *>(c + (row + ty * 4 + p) * n + column + tx * 4) =
        make_float4(sums[p][0], sums[p][1], sums[p][2], sums[p][3]);
}

// One block of 256 threads a row; the row lies in dynamic shared memory.
extern "C" __global__ void softmax(long long columns, const float *x, float *y) {
  extern __shared__ __align__(16) float row[];
  __shared__ float parts[8];
  const int t = threadIdx.x;
  const float *from = x + blockIdx.x * columns;
  float *to = y + blockIdx.x * columns;
  float largest = __int_as_float(0xff800000);
  for (int i = t; i < columns; i += 256) {
    row[i] = from[i];
    largest = fmaxf(largest, row[i]);
  }
  for (int by = 16; by; by >>= 1)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, by));
  if ((t & 31) == 0) parts[t >> 5] = largest;
  __syncthreads();
  largest = parts[t & 7];
  for (int by = 4; by; by >>= 1)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, by));
  __syncthreads();
  float sum = 0.0f;
  for (int i = t; i < columns; i += 256) {
    row[i] = expf(row[i] - largest);
    sum += row[i];
  }
  for (int by = 16; by; by >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, by);
  if ((t & 31) == 0) parts[t >> 5] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int i = 0; i < 8; i++) sum += parts[i];
  for (int i = t; i < columns; i += 256) to[i] = row[i] / sum;
}

// 32x33 tile, 32x8 threads.
extern "C" __global__ void transpose(long long rows, long long columns, const float *x, float *y) {
  __shared__ float tile[32][33];
  const int tx = threadIdx.x, ty = threadIdx.y;
  for (int i = ty; i < 32; i += 8) {
    const long long r = blockIdx.y * 32 + i, c = blockIdx.x * 32 + tx;
    if (r < rows && c < columns) tile[i][tx] = x[r * columns + c];
  }
  __syncthreads();
  for (int i = ty; i < 32; i += 8) {
    const long long r = blockIdx.x * 32 + i, c = blockIdx.y * 32 + tx;
    if (r < columns && c < rows) y[r * rows + c] = tile[tx][i];
  }
}

// One warp computes a 16x16 tile: f16 times f16 plus zero, in f32, times two.
extern "C" __global__ void matrix(long long k, const __half *a, const __half *b, float *c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::fill_fragment(sums, 0.0f);
  for (long long i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(left, a + blockIdx.x * 16 * k + i, (unsigned)k);
    wmma::load_matrix_sync(right, b + i, (unsigned)k);
    wmma::mma_sync(sums, left, right, sums);
  }
  for (int i = 0; i < sums.num_elements; i++) sums.x[i] = sums.x[i] * 2.0f;
  wmma::store_matrix_sync(c + blockIdx.x * 256, sums, 16, wmma::mem_row_major);
}

extern "C" __global__ void halves(long long n, const __half *x, const __half *y, __half *z,
                                  __nv_bfloat16 *b) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  z[i] = __hfma(x[i], y[i], __hadd(x[i], y[i]));
  b[i] = __float2bfloat16_rn(__half2float(x[i]) * __half2float(y[i]));
}

// Counts of each remainder by 8; sum, smallest and largest of all; in f32 and f64 too.
extern "C" __global__ void atomics(long long n, const int *x, int *counts, int *extremes,
                                   float *sum, double *precise, unsigned long long *wide) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&counts[x[i] & 7], 1);
  atomicMin(&extremes[0], x[i]);
  atomicMax(&extremes[1], x[i]);
  atomicAdd(sum, (float)x[i]);
  atomicAdd(precise, (double)x[i]);
  unsigned long long seen = atomicCAS(wide, 0ull, 0ull), expected;
  do {
    expected = seen;
    seen = atomicCAS(wide, expected, expected + (unsigned long long)x[i]);
  } while (seen != expected);
}

// Each warp: votes, shuffles of all kinds in groups of 8, a 64-bit value.
extern "C" __global__ void warps(const int *x, int *y, unsigned long long *wide) {
  const int t = threadIdx.x, value = x[t];
  const unsigned all = 0xffffffffu;
  y[t * 8 + 0] = __shfl_sync(all, value, 3, 8);
  y[t * 8 + 1] = __shfl_up_sync(all, value, 1, 8);
  y[t * 8 + 2] = __shfl_down_sync(all, value, 2, 8);
  y[t * 8 + 3] = __shfl_xor_sync(all, value, 5);
  y[t * 8 + 4] = (int)__ballot_sync(all, value & 1);
  y[t * 8 + 5] = __all_sync(all, value >= 0);
  y[t * 8 + 6] = __any_sync(all, value == 40);
  y[t * 8 + 7] = __syncthreads_count(value & 1);
  wide[t] = __shfl_xor_sync(all, (unsigned long long)value << 40, 1);
}

// Two stages of 128 floats by asynchronous copies.
extern "C" __global__ void pipeline(long long steps, const float *x, float *y) {
  __shared__ __align__(16) float stage[2][128];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t * 4], x + t * 4, 16);
  __pipeline_commit();
  float sum = 0.0f;
  for (long long i = 0; i < steps; i++) {
    if (i + 1 < steps)
      __pipeline_memcpy_async(&stage[(i + 1) & 1][t * 4], x + (i + 1) * 128 + t * 4, 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += stage[i & 1][127 - t * 4];
    __syncthreads();
  }
  y[t] = sum;
}

// Where a thread stands, for grids and blocks of three dimensions.
extern "C" __global__ void places(int *out) {
  const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] = block * 1000 + thread;
}
