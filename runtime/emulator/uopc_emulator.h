// CUDA C++ as a host compiler can read it: this file stands in front of every kernel source.
//
// A kernel's threads are fibers. `uopc_current` is the one that runs; whatever threads do together
// goes to the emulator by `uopc_shared_host`.
#pragma once
#include "module.h"

#define UOPC_EMULATOR 1

#define UOPC_HIDDEN __attribute__((visibility("hidden")))
#define UOPC_INLINE static inline __attribute__((always_inline))
#define UOPC_UNCHECKED __attribute__((no_sanitize("thread")))

// Defined in the first translation unit that includes this, which is the only one.
UOPC_HIDDEN uopc_thread *uopc_current;
UOPC_HIDDEN uopc_host uopc_shared_host;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __managed__
#define __constant__
// The section's variables are one copy for all blocks, which run one after another.
#define __shared__ static __attribute__((section("uopc_shared")))

#define threadIdx (uopc_current->thread)
#define blockIdx (uopc_current->block)
#define blockDim (uopc_current->block_size)
#define gridDim (uopc_current->grid_size)
#define warpSize 32

typedef uopc_index uint3;
typedef uopc_index dim3;
typedef __SIZE_TYPE__ size_t;

// -- vector types ---------------------------------------------------------------------------------

#define UOPC_MAKE_VECTORS(name, scalar)                                                           \
  UOPC_INLINE name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }                       \
  UOPC_INLINE name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; }          \
  UOPC_INLINE name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) {                    \
    return {x, y, z, w};                                                                          \
  }

#define UOPC_VECTOR2(name, scalar, alignment)                                                     \
  struct alignas(alignment) name {                                                                \
    scalar x, y;                                                                                  \
  };
#define UOPC_VECTOR3(name, scalar)                                                                \
  struct name {                                                                                   \
    scalar x, y, z;                                                                               \
  };
#define UOPC_VECTOR4(name, scalar, alignment)                                                     \
  struct alignas(alignment) name {                                                                \
    scalar x, y, z, w;                                                                            \
  };

// Types of 16 bytes are copied as one access, as a GPU does, so that a misaligned one faults.
#define UOPC_COPIED_WHOLE(name, scalar)                                                           \
  typedef scalar whole __attribute__((vector_size(16), may_alias));                               \
  name() = default;                                                                               \
  name(const name &other) { *(whole *)this = *(const whole *)&other; }                            \
  name &operator=(const name &other) {                                                            \
    *(whole *)this = *(const whole *)&other;                                                      \
    return *this;                                                                                 \
  }
#define UOPC_WIDE2(name, scalar)                                                                  \
  struct alignas(16) name {                                                                       \
    scalar x, y;                                                                                  \
    name(scalar a, scalar b) : x(a), y(b) {}                                                      \
    UOPC_COPIED_WHOLE(name, scalar)                                                               \
  };
#define UOPC_WIDE4(name, scalar)                                                                  \
  struct alignas(16) name {                                                                       \
    scalar x, y, z, w;                                                                            \
    name(scalar a, scalar b, scalar c, scalar d) : x(a), y(b), z(c), w(d) {}                      \
    UOPC_COPIED_WHOLE(name, scalar)                                                               \
  };

#define UOPC_VECTORS(name, scalar, size)                                                          \
  UOPC_VECTOR2(name##2, scalar, 2 * size)                                                         \
  UOPC_VECTOR4(name##4, scalar, 4 * size)                                                         \
  UOPC_MAKE_VECTORS(name, scalar)
#define UOPC_VECTORS_32(name, scalar)                                                             \
  UOPC_VECTOR2(name##2, scalar, 8)                                                                \
  UOPC_WIDE4(name##4, scalar)                                                                     \
  UOPC_MAKE_VECTORS(name, scalar)
#define UOPC_VECTORS_64(name, scalar)                                                             \
  UOPC_WIDE2(name##2, scalar)                                                                     \
  UOPC_VECTOR4(name##4, scalar, 16)                                                               \
  UOPC_MAKE_VECTORS(name, scalar)

UOPC_VECTOR3(char3, signed char)
UOPC_VECTOR3(uchar3, unsigned char)
UOPC_VECTOR3(short3, short)
UOPC_VECTOR3(ushort3, unsigned short)
UOPC_VECTOR3(int3, int)
UOPC_VECTOR3(float3, float)
UOPC_VECTOR3(longlong3, long long)
UOPC_VECTOR3(ulonglong3, unsigned long long)
UOPC_VECTOR3(double3, double)
UOPC_VECTORS(char, signed char, 1)
UOPC_VECTORS(uchar, unsigned char, 1)
UOPC_VECTORS(short, short, 2)
UOPC_VECTORS(ushort, unsigned short, 2)
UOPC_VECTORS_32(int, int)
UOPC_VECTORS_32(uint, unsigned)
UOPC_VECTORS_32(float, float)
UOPC_VECTORS_64(longlong, long long)
UOPC_VECTORS_64(ulonglong, unsigned long long)
UOPC_VECTORS_64(double, double)

// -- barriers, shuffles, votes --------------------------------------------------------------------

// The place of a call, as default arguments: those are what is evaluated at the call.
#define UOPC_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define UOPC_SITE (uopc_site{file, line})

UOPC_INLINE unsigned long long uopc_together(uopc_operation operation, unsigned mask,
                                             unsigned long long value, int argument, int width,
                                             uopc_site site) {
  return uopc_shared_host.collective(operation, mask, value, argument, width, site);
}

UOPC_INLINE void __syncthreads(UOPC_HERE) { uopc_together(UOPC_BARRIER, 0, 0, 0, 0, UOPC_SITE); }
UOPC_INLINE int __syncthreads_or(int predicate, UOPC_HERE) {
  return (int)uopc_together(UOPC_BARRIER_OR, 0, predicate != 0, 0, 0, UOPC_SITE);
}
UOPC_INLINE int __syncthreads_and(int predicate, UOPC_HERE) {
  return (int)uopc_together(UOPC_BARRIER_AND, 0, predicate != 0, 0, 0, UOPC_SITE);
}
UOPC_INLINE int __syncthreads_count(int predicate, UOPC_HERE) {
  return (int)uopc_together(UOPC_BARRIER_COUNT, 0, predicate != 0, 0, 0, UOPC_SITE);
}
UOPC_INLINE void __syncwarp(unsigned mask = ~0u, UOPC_HERE) {
  uopc_together(UOPC_SYNC_WARP, mask, 0, 0, 0, UOPC_SITE);
}

template <class T>
UOPC_INLINE T uopc_shuffle(uopc_operation operation, unsigned mask, T value, int argument,
                           int width, uopc_site site) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = uopc_together(operation, mask, bits, argument, width, site);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
UOPC_INLINE T __shfl_sync(unsigned mask, T value, int lane, int width = 32, UOPC_HERE) {
  return uopc_shuffle(UOPC_SHUFFLE, mask, value, lane, width, UOPC_SITE);
}
template <class T>
UOPC_INLINE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, UOPC_HERE) {
  return uopc_shuffle(UOPC_SHUFFLE_XOR, mask, value, lanes, width, UOPC_SITE);
}
template <class T>
UOPC_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, UOPC_HERE) {
  return uopc_shuffle(UOPC_SHUFFLE_DOWN, mask, value, (int)by, width, UOPC_SITE);
}
template <class T>
UOPC_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, UOPC_HERE) {
  return uopc_shuffle(UOPC_SHUFFLE_UP, mask, value, (int)by, width, UOPC_SITE);
}

UOPC_INLINE unsigned __ballot_sync(unsigned mask, int predicate, UOPC_HERE) {
  return (unsigned)uopc_together(UOPC_BALLOT, mask, predicate != 0, 0, 0, UOPC_SITE);
}
UOPC_INLINE int __all_sync(unsigned mask, int predicate, UOPC_HERE) {
  return (int)uopc_together(UOPC_ALL, mask, predicate != 0, 0, 0, UOPC_SITE);
}
UOPC_INLINE int __any_sync(unsigned mask, int predicate, UOPC_HERE) {
  return (int)uopc_together(UOPC_ANY, mask, predicate != 0, 0, 0, UOPC_SITE);
}

UOPC_INLINE void __threadfence() {}
UOPC_INLINE void __threadfence_block() {}
UOPC_INLINE void __trap(UOPC_HERE) { uopc_shared_host.trap("__trap()", UOPC_SITE); }

extern "C" int printf(const char *, ...);

// Where `extern __shared__` arrays lie; their declarations are rewritten into a call of this.
template <class T> UOPC_INLINE T *uopc_dynamic_shared() { return (T *)uopc_current->dynamic_shared; }

// -- asynchronous copies to shared memory (cuda_pipeline.h) ---------------------------------------

UOPC_INLINE void __pipeline_memcpy_async(void *to, const void *from, size_t size,
                                         size_t zero_fill = 0, UOPC_HERE) {
  uopc_shared_host.copy_async(to, from, (unsigned)size, (unsigned)(size - zero_fill), UOPC_SITE);
}
UOPC_INLINE void __pipeline_commit() { uopc_shared_host.copy_commit(); }
UOPC_INLINE void __pipeline_wait_prior(unsigned groups_left) {
  uopc_shared_host.copy_wait(groups_left);
}

#include "uopc_emulator_math.h"
#include "uopc_emulator_atomics.h"
#include "uopc_emulator_half.h"
#include "uopc_emulator_wmma.h"
#include "uopc_emulator_hooks.h"
