// Mathematical functions and integer intrinsics.
//
// + - * / sqrt and fma are rounded once on both sides and so agree in every bit. exp, tanh, pow and
// their kin come from the host's library here and from CUDA's there: close, not equal.
#pragma once

#define UOPC_UNARY(name)                                                                          \
  UOPC_INLINE float name##f(float x) { return __builtin_##name##f(x); }                           \
  UOPC_INLINE double name(double x) { return __builtin_##name(x); }                               \
  UOPC_INLINE float name(float x) { return __builtin_##name##f(x); }
#define UOPC_BINARY(name)                                                                         \
  UOPC_INLINE float name##f(float x, float y) { return __builtin_##name##f(x, y); }               \
  UOPC_INLINE double name(double x, double y) { return __builtin_##name(x, y); }                  \
  UOPC_INLINE float name(float x, float y) { return __builtin_##name##f(x, y); }

UOPC_UNARY(sqrt) UOPC_UNARY(cbrt) UOPC_UNARY(fabs)
UOPC_UNARY(floor) UOPC_UNARY(ceil) UOPC_UNARY(trunc) UOPC_UNARY(round)
UOPC_UNARY(rint) UOPC_UNARY(nearbyint)
UOPC_UNARY(exp) UOPC_UNARY(exp2) UOPC_UNARY(exp10) UOPC_UNARY(expm1)
UOPC_UNARY(log) UOPC_UNARY(log2) UOPC_UNARY(log10) UOPC_UNARY(log1p)
UOPC_UNARY(sin) UOPC_UNARY(cos) UOPC_UNARY(tan) UOPC_UNARY(asin) UOPC_UNARY(acos) UOPC_UNARY(atan)
UOPC_UNARY(sinh) UOPC_UNARY(cosh) UOPC_UNARY(tanh)
UOPC_UNARY(asinh) UOPC_UNARY(acosh) UOPC_UNARY(atanh)
UOPC_UNARY(erf) UOPC_UNARY(erfc) UOPC_UNARY(lgamma) UOPC_UNARY(tgamma)
UOPC_BINARY(fmin) UOPC_BINARY(fmax) UOPC_BINARY(fmod) UOPC_BINARY(remainder)
UOPC_BINARY(pow) UOPC_BINARY(atan2) UOPC_BINARY(hypot) UOPC_BINARY(copysign) UOPC_BINARY(nextafter)
UOPC_BINARY(fdim)

UOPC_INLINE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
UOPC_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
UOPC_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
UOPC_INLINE float ldexpf(float x, int power) { return __builtin_ldexpf(x, power); }
UOPC_INLINE double ldexp(double x, int power) { return __builtin_ldexp(x, power); }
UOPC_INLINE float rsqrtf(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }
UOPC_INLINE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
UOPC_INLINE bool isnan(float x) { return __builtin_isnan(x); }
UOPC_INLINE bool isnan(double x) { return __builtin_isnan(x); }
UOPC_INLINE bool isinf(float x) { return __builtin_isinf(x); }
UOPC_INLINE bool isinf(double x) { return __builtin_isinf(x); }
UOPC_INLINE bool isfinite(float x) { return __builtin_isfinite(x); }
UOPC_INLINE bool isfinite(double x) { return __builtin_isfinite(x); }
UOPC_INLINE bool signbit(float x) { return __builtin_signbit(x); }
UOPC_INLINE bool signbit(double x) { return __builtin_signbit(x); }

// The fast ones, which a GPU computes to fewer bits.
UOPC_INLINE float __expf(float x) { return __builtin_expf(x); }
UOPC_INLINE float __exp10f(float x) { return __builtin_exp10f(x); }
UOPC_INLINE float __logf(float x) { return __builtin_logf(x); }
UOPC_INLINE float __log2f(float x) { return __builtin_log2f(x); }
UOPC_INLINE float __sinf(float x) { return __builtin_sinf(x); }
UOPC_INLINE float __cosf(float x) { return __builtin_cosf(x); }
UOPC_INLINE float __powf(float x, float y) { return __builtin_powf(x, y); }
UOPC_INLINE float __fdividef(float x, float y) { return x / y; }

// Rounded to nearest, and never fused.
UOPC_INLINE float __fadd_rn(float x, float y) { return x + y; }
UOPC_INLINE float __fsub_rn(float x, float y) { return x - y; }
UOPC_INLINE float __fmul_rn(float x, float y) { return x * y; }
UOPC_INLINE float __fdiv_rn(float x, float y) { return x / y; }
UOPC_INLINE float __frcp_rn(float x) { return 1.0f / x; }
UOPC_INLINE float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
UOPC_INLINE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
UOPC_INLINE double __dadd_rn(double x, double y) { return x + y; }
UOPC_INLINE double __dsub_rn(double x, double y) { return x - y; }
UOPC_INLINE double __dmul_rn(double x, double y) { return x * y; }
UOPC_INLINE double __ddiv_rn(double x, double y) { return x / y; }
UOPC_INLINE double __drcp_rn(double x) { return 1.0 / x; }
UOPC_INLINE double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
UOPC_INLINE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }

// -- minima and maxima ----------------------------------------------------------------------------

#define UOPC_EXTREMA(type)                                                                        \
  UOPC_INLINE type min(type x, type y) { return y < x ? y : x; }                                  \
  UOPC_INLINE type max(type x, type y) { return x < y ? y : x; }
UOPC_EXTREMA(int)
UOPC_EXTREMA(unsigned)
UOPC_EXTREMA(long)
UOPC_EXTREMA(unsigned long)
UOPC_EXTREMA(long long)
UOPC_EXTREMA(unsigned long long)
UOPC_INLINE float min(float x, float y) { return __builtin_fminf(x, y); }
UOPC_INLINE float max(float x, float y) { return __builtin_fmaxf(x, y); }
UOPC_INLINE double min(double x, double y) { return __builtin_fmin(x, y); }
UOPC_INLINE double max(double x, double y) { return __builtin_fmax(x, y); }
UOPC_INLINE int abs(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }
UOPC_INLINE long long llabs(long long x) { return x < 0 ? (long long)(0ull - x) : x; }

// -- bits -----------------------------------------------------------------------------------------

template <class To, class From> UOPC_INLINE To uopc_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "of one size");
  To result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}
UOPC_INLINE int __float_as_int(float x) { return uopc_bits<int>(x); }
UOPC_INLINE unsigned __float_as_uint(float x) { return uopc_bits<unsigned>(x); }
UOPC_INLINE float __int_as_float(int x) { return uopc_bits<float>(x); }
UOPC_INLINE float __uint_as_float(unsigned x) { return uopc_bits<float>(x); }
UOPC_INLINE long long __double_as_longlong(double x) { return uopc_bits<long long>(x); }
UOPC_INLINE double __longlong_as_double(long long x) { return uopc_bits<double>(x); }
UOPC_INLINE int __double2hiint(double x) { return (int)(uopc_bits<unsigned long long>(x) >> 32); }
UOPC_INLINE int __double2loint(double x) { return (int)uopc_bits<unsigned long long>(x); }
UOPC_INLINE double __hiloint2double(int high, int low) {
  return uopc_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}

UOPC_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
UOPC_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
UOPC_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
UOPC_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
UOPC_INLINE int __ffs(int x) { return __builtin_ffs(x); }
UOPC_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
UOPC_INLINE unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int bit = 0; bit < 32; bit++) result |= (x >> bit & 1u) << (31 - bit);
  return result;
}
UOPC_INLINE int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
UOPC_INLINE unsigned __umulhi(unsigned x, unsigned y) {
  return (unsigned)(((unsigned long long)x * y) >> 32);
}
UOPC_INLINE long long __mul64hi(long long x, long long y) {
  return (long long)(((__int128)x * y) >> 64);
}
UOPC_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}

// -- conversions that saturate, as a GPU's do; NaN gives 0 (64-bit results: 1 << 63) ---------------

template <class To, class From> UOPC_INLINE To uopc_saturated(From value) {
  constexpr bool is_signed = (To)-1 < (To)0;
  constexpr int bits = sizeof(To) * 8;
  constexpr To highest = is_signed ? (To)(((unsigned long long)1 << (bits - 1)) - 1) : (To)-1;
  constexpr To lowest = is_signed ? (To)(-highest - 1) : (To)0;
  if (value != value) return bits == 64 ? (To)((unsigned long long)1 << 63) : (To)0;
  // 2 to the power of the bits: the first value that is too large, exact in From.
  constexpr From limit = (From)((unsigned long long)1 << (bits - 1)) * (is_signed ? 1 : 2);
  if (value >= limit) return highest;
  if (value <= (is_signed ? -limit : (From)0)) return lowest;
  return (To)value;
}
#define UOPC_CONVERSION(from_name, to_name, from, to)                                             \
  UOPC_INLINE to __##from_name##2##to_name##_rn(from x) {                                         \
    return uopc_saturated<to>(__builtin_rint((double)x));                                         \
  }                                                                                               \
  UOPC_INLINE to __##from_name##2##to_name##_rz(from x) {                                         \
    return uopc_saturated<to>(__builtin_trunc((double)x));                                        \
  }                                                                                               \
  UOPC_INLINE to __##from_name##2##to_name##_rd(from x) {                                         \
    return uopc_saturated<to>(__builtin_floor((double)x));                                        \
  }                                                                                               \
  UOPC_INLINE to __##from_name##2##to_name##_ru(from x) {                                         \
    return uopc_saturated<to>(__builtin_ceil((double)x));                                         \
  }
UOPC_CONVERSION(float, int, float, int)
UOPC_CONVERSION(float, uint, float, unsigned)
UOPC_CONVERSION(float, ll, float, long long)
UOPC_CONVERSION(float, ull, float, unsigned long long)
UOPC_CONVERSION(double, int, double, int)
UOPC_CONVERSION(double, uint, double, unsigned)
UOPC_CONVERSION(double, ll, double, long long)
UOPC_CONVERSION(double, ull, double, unsigned long long)
UOPC_INLINE float __double2float_rn(double x) { return (float)x; }
UOPC_INLINE float __int2float_rn(int x) { return (float)x; }
UOPC_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
UOPC_INLINE float __ll2float_rn(long long x) { return (float)x; }
UOPC_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
UOPC_INLINE double __ll2double_rn(long long x) { return (double)x; }
UOPC_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }

// Loads past the caches are loads.
template <class T> UOPC_INLINE T __ldg(const T *address) { return *address; }
template <class T> UOPC_INLINE T __ldcs(const T *address) { return *address; }
template <class T> UOPC_INLINE T __ldcg(const T *address) { return *address; }
template <class T> UOPC_INLINE void __stcs(T *address, T value) { *address = value; }
template <class T> UOPC_INLINE void __stcg(T *address, T value) { *address = value; }
