"""Helper functions of a CUDA file: those of C, as device functions.

A helper's text comes from c_helpers.py. Those that lean on a host compiler's builtins have a form
of their own here, by CUDA's intrinsics, which nvcc, NVRTC and the emulator all have.
"""

from __future__ import annotations

from uopc.lowering.c_prelude import Prelude, Writer

DEVICE = "[[maybe_unused]] static __device__ __forceinline__"
"""How a helper is declared."""


class CudaPrelude(Prelude):
    """The helpers of one CUDA file."""

    def need(self, name: str, write: Writer) -> str:
        own = OWN_FORMS.get(name)
        if own is not None:
            return super().need(name, lambda _: own)
        return super().need(name, lambda prelude: device_text(write(prelude)))


def device_text(text: str) -> str:
    """A helper's C text as a device function."""
    return text.replace("static inline", DEVICE)


def _function(result: str, name: str, parameters: str, body: str) -> str:
    return f"{DEVICE} {result} {name}({parameters})\n{{\n{body}\n}}"


def _returning(result: str, name: str, parameters: str, value: str) -> str:
    return _function(result, name, parameters, f"    return {value};")


def _bit_counts() -> dict[str, str]:
    found: dict[str, str] = {}
    for bits in (8, 16, 32, 64):
        c, u = f"int{bits}_t", f"uint{bits}_t"
        long = "ll" if bits == 64 else ""
        whole = "(unsigned long long)" if bits == 64 else "(unsigned)"
        signed = "(long long)" if bits == 64 else "(int)"
        less = f" - {32 - bits}" if bits < 32 else ""
        first = f"__ffs{long}({signed}({u})a) - 1"
        forms = {
            "clz": f"__clz{long}({signed}({u})a){less}",
            "ctz": f"a ? {first} : {bits}",
            "popcount": f"__popc{long}({whole}({u})a)",
        }
        for kind, value in forms.items():
            found[f"{kind}_i{bits}"] = _returning(c, f"{kind}_i{bits}", f"{c} a", f"({c})({value})")
    return found


_F16_TO_F32 = """\
    unsigned sign = (unsigned)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 0) {
        float small = (float)mantissa * 0x1p-24f;
        return sign ? -small : small;
    }
    exponent = exponent == 31 ? 255 : exponent + 112;
    if (exponent == 255 && mantissa)
        mantissa |= 0x200;
    return __uint_as_float(sign | exponent << 23 | mantissa << 13);"""

# Below 2**-14 an f16 is a multiple of 2**-24; adding 0.5 makes the float unit round to one.
_F32_TO_F16 = """\
    float shifted = (x < 0 ? -x : x) + 0.5f;
    unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x1ff));
    if (size >= 0x47800000)
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000)
        return (uint16_t)(sign | (__float_as_uint(shifted) - 0x3f000000));
    return (uint16_t)(sign | ((size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13));"""

OWN_FORMS: dict[str, str] = {
    **_bit_counts(),
    "bits_f32": _returning("int32_t", "bits_f32", "float x", "__float_as_int(x)"),
    "bits_f64": _returning("int64_t", "bits_f64", "double x", "__double_as_longlong(x)"),
    "from_bits_f32": _returning("float", "from_bits_f32", "int32_t bits", "__int_as_float(bits)"),
    "from_bits_f64": _returning(
        "double", "from_bits_f64", "int64_t bits", "__longlong_as_double(bits)"
    ),
    "f16_to_f32": _function("float", "f16_to_f32", "uint16_t h", _F16_TO_F32),
    "f32_to_f16": _function("uint16_t", "f32_to_f16", "float x", _F32_TO_F16),
    # The emulator compiles the text by a host compiler: see c_guards.py.
    "load_alone": """\
#if defined(UOPC_EMULATOR) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 14
#define load_alone() __asm__ volatile("")
#else
#define load_alone() ((void)0)
#endif""",
    "INF_F32": "#define INF_F32 __int_as_float(0x7f800000)",
    "INF_F64": "#define INF_F64 __longlong_as_double(0x7ff0000000000000ll)",
}
"""The helpers whose C text a device compiler would not take, by name."""

TYPES = """\
#if defined(__CUDACC_RTC__) /* NVRTC has no headers of its own */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#else
#include <stdint.h>
#endif"""
"""The integer types that the text uses."""
