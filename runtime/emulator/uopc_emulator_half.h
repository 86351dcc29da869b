// Half types (cuda_fp16.h, cuda_bf16.h): bits in memory, every operation rounded once.
//
// A sum, difference, product or quotient of two halves is exact enough in f32 (24 bits, more than
// twice 11 and two) that rounding it again gives what one rounding would. A fused multiply-add
// goes through f64, and from there to the half in one rounding.
#pragma once

UOPC_INLINE unsigned short uopc_f16_bits(float value) {
  const unsigned bits = uopc_bits<unsigned>(value);
  const unsigned sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;                         // NaN, the one CUDA gives
  if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);  // rounds to 2**16
  if (magnitude < 0x33000001u) return (unsigned short)sign;           // half the least and below
  unsigned kept, dropped, tie;
  if (magnitude < 0x38800000u) {  // below 2**-14: fewer bits
    const unsigned shift = 126 - (magnitude >> 23);
    const unsigned significand = (magnitude & 0x7fffffu) | 0x800000u;
    kept = significand >> shift;
    dropped = significand & ((1u << shift) - 1);
    tie = 1u << (shift - 1);
  } else {
    kept = (magnitude - 0x38000000u) >> 13;
    dropped = magnitude & 0x1fffu;
    tie = 0x1000u;
  }
  kept += dropped > tie || (dropped == tie && (kept & 1u));
  return (unsigned short)(sign | kept);
}

UOPC_INLINE float uopc_f16_value(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ffu;
  if (exponent == 31) return uopc_bits<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent) return uopc_bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
  return uopc_bits<float>(sign | uopc_bits<unsigned>((float)fraction * 0x1p-24f));
}

UOPC_INLINE unsigned short uopc_bf16_bits(float value) {
  const unsigned bits = uopc_bits<unsigned>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

UOPC_INLINE float uopc_bf16_value(unsigned short half) {
  return uopc_bits<float>((unsigned)half << 16);
}

// f64 to f32 rounded to odd: a second rounding, to fewer bits, then errs nowhere.
UOPC_INLINE float uopc_to_odd(double value) {
  const float nearest = (float)value;
  if ((double)nearest == value || value != value) return nearest;
  unsigned bits = uopc_bits<unsigned>(nearest);
  if (__builtin_fabs((double)nearest) > __builtin_fabs(value)) bits--;  // toward zero
  return uopc_bits<float>(bits | 1u);
}

#define UOPC_HALF_TYPE(type, raw, encode, decode)                                                 \
  struct alignas(2) raw {                                                                         \
    unsigned short x;                                                                             \
  };                                                                                              \
  struct alignas(2) type {                                                                        \
    unsigned short bits;                                                                          \
    type() = default;                                                                             \
    type(float value) : bits(encode(value)) {}                                                    \
    type(double value) : bits(encode(uopc_to_odd(value))) {}                                      \
    type(int value) : type((double)value) {}                                                      \
    type(unsigned value) : type((double)value) {}                                                 \
    type(raw value) : bits(value.x) {}                                                            \
    operator float() const { return decode(bits); }                                               \
    operator raw() const { return {bits}; }                                                       \
  };                                                                                              \
  UOPC_INLINE float uopc_float(type x) { return decode(x.bits); }                                 \
  UOPC_INLINE type operator+(type x, type y) { return type(uopc_float(x) + uopc_float(y)); }      \
  UOPC_INLINE type operator-(type x, type y) { return type(uopc_float(x) - uopc_float(y)); }      \
  UOPC_INLINE type operator*(type x, type y) { return type(uopc_float(x) * uopc_float(y)); }      \
  UOPC_INLINE type operator/(type x, type y) { return type(uopc_float(x) / uopc_float(y)); }      \
  UOPC_INLINE type operator-(type x) {                                                            \
    x.bits ^= 0x8000u;                                                                            \
    return x;                                                                                     \
  }                                                                                               \
  UOPC_INLINE type &operator+=(type &x, type y) { return x = x + y; }                             \
  UOPC_INLINE type &operator-=(type &x, type y) { return x = x - y; }                             \
  UOPC_INLINE type &operator*=(type &x, type y) { return x = x * y; }                             \
  UOPC_INLINE type &operator/=(type &x, type y) { return x = x / y; }                             \
  UOPC_INLINE bool operator==(type x, type y) { return uopc_float(x) == uopc_float(y); }          \
  UOPC_INLINE bool operator!=(type x, type y) { return uopc_float(x) != uopc_float(y); }          \
  UOPC_INLINE bool operator<(type x, type y) { return uopc_float(x) < uopc_float(y); }            \
  UOPC_INLINE bool operator>(type x, type y) { return uopc_float(x) > uopc_float(y); }            \
  UOPC_INLINE bool operator<=(type x, type y) { return uopc_float(x) <= uopc_float(y); }          \
  UOPC_INLINE bool operator>=(type x, type y) { return uopc_float(x) >= uopc_float(y); }          \
  UOPC_INLINE type __hadd(type x, type y) { return x + y; }                                       \
  UOPC_INLINE type __hsub(type x, type y) { return x - y; }                                       \
  UOPC_INLINE type __hmul(type x, type y) { return x * y; }                                       \
  UOPC_INLINE type __hdiv(type x, type y) { return x / y; }                                       \
  UOPC_INLINE type __hneg(type x) { return -x; }                                                  \
  UOPC_INLINE bool __hisnan(type x) { return uopc_float(x) != uopc_float(x); }                    \
  UOPC_INLINE type __hfma(type x, type y, type z) {                                               \
    return type((double)uopc_float(x) * (double)uopc_float(y) + (double)uopc_float(z));           \
  }                                                                                               \
  struct alignas(4) type##2 {                                                                     \
    type x, y;                                                                                    \
  };

UOPC_HALF_TYPE(__half, __half_raw, uopc_f16_bits, uopc_f16_value)
UOPC_HALF_TYPE(__nv_bfloat16, __nv_bfloat16_raw, uopc_bf16_bits, uopc_bf16_value)
typedef __nv_bfloat162 nv_bfloat162;
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;

UOPC_INLINE __half __float2half(float x) { return __half(x); }
UOPC_INLINE __half __float2half_rn(float x) { return __half(x); }
UOPC_INLINE __half __double2half(double x) { return __half(x); }
UOPC_INLINE float __half2float(__half x) { return uopc_float(x); }
UOPC_INLINE __half __ushort_as_half(unsigned short x) { return __half(__half_raw{x}); }
UOPC_INLINE unsigned short __half_as_ushort(__half x) { return x.bits; }
UOPC_INLINE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
UOPC_INLINE __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
UOPC_INLINE __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
UOPC_INLINE float2 __half22float2(__half2 pair) { return {uopc_float(pair.x), uopc_float(pair.y)}; }
UOPC_INLINE __half __low2half(__half2 pair) { return pair.x; }
UOPC_INLINE __half __high2half(__half2 pair) { return pair.y; }

UOPC_INLINE __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
UOPC_INLINE __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
UOPC_INLINE __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
UOPC_INLINE float __bfloat162float(__nv_bfloat16 x) { return uopc_float(x); }
UOPC_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) {
  return __nv_bfloat16(__nv_bfloat16_raw{x});
}
UOPC_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
UOPC_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
UOPC_INLINE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
UOPC_INLINE float2 __bfloat1622float2(__nv_bfloat162 pair) {
  return {uopc_float(pair.x), uopc_float(pair.y)};
}
