"""The texts of the scalar helper functions: one writer a helper.

Each function here asks a prelude for one helper and returns its name. What the helpers compute
where C leaves a result open is the table of docs/numerics.md: x / 0 is all ones, x % 0 is x,
INT_MIN / -1 wraps, shifts by the width or more are as by infinitely many single steps, floats to
integers saturate and NaN gives 0, NaN wins in max and min, and -0 < +0.
"""

from __future__ import annotations

from uopc.lowering.c_prelude import Prelude
from uopc.lowering.c_types import BF16, F16, F32, F64, Scalar


def _suffix(t: Scalar) -> str:
    return "f" if t is F32 else ""


def integer_minimum(t: Scalar) -> str:
    """INT32_MIN."""
    return f"INT{t.bits}_MIN"


def divide(prelude: Prelude, t: Scalar, kind: str) -> str:
    """div, rem, floordiv, ceildiv (signed) or divu, remu, ceildivu, on int{t.bits}_t."""
    c, u = t.ctype, t.unsigned
    negated = f"({c})(0 - ({u})a)"
    bodies = {
        "div": f"return b == 0 ? -1 : b == -1 ? {negated} : ({c})(a / b);",
        "rem": f"return b == 0 ? a : b == -1 ? 0 : ({c})(a % b);",
        "floordiv": (
            f"if (b == 0)\n        return -1;\n    if (b == -1)\n        return {negated};\n"
            f"    return ({c})(a / b - (a % b != 0 && (a < 0) != (b < 0)));"
        ),
        "ceildiv": (
            f"if (b == 0)\n        return -1;\n    if (b == -1)\n        return {negated};\n"
            f"    return ({c})(a / b + (a % b != 0 && (a < 0) == (b < 0)));"
        ),
        "divu": f"return b == 0 ? -1 : ({c})(({u})a / ({u})b);",
        "remu": f"return b == 0 ? a : ({c})(({u})a % ({u})b);",
        "ceildivu": f"return b == 0 ? -1 : ({c})(({u})a / ({u})b + (({u})a % ({u})b != 0));",
    }
    name = f"{kind}_{t.name}"
    return prelude.need(
        name, lambda _: f"static inline {c} {name}({c} a, {c} b)\n{{\n    {bodies[kind]}\n}}"
    )


def shift(prelude: Prelude, t: Scalar, kind: str) -> str:
    """shl, shru (zero fill) or shr (sign fill); the amount is read as unsigned."""
    c, u, n = t.ctype, t.unsigned, t.bits
    wide = "uint64_t" if n == 64 else "uint32_t"
    bodies = {
        "shl": f"({u})b < {n} ? ({c})(({wide})a << b) : 0",
        "shru": f"({u})b < {n} ? ({c})(({u})a >> b) : 0",
        "shr": f"({c})(a >> (({u})b < {n} ? b : {n - 1}))",
    }
    name = f"{kind}_{t.name}"
    return prelude.need(
        name,
        lambda _: f"static inline {c} {name}({c} a, {c} b)\n{{\n    return {bodies[kind]};\n}}",
    )


def integer_extreme(prelude: Prelude, t: Scalar, kind: str) -> str:
    """min, max (signed) or minu, maxu."""
    c = t.ctype
    cast = f"({t.unsigned})" if kind.endswith("u") else ""
    sign = "<" if kind.startswith("min") else ">"
    name = f"{kind}_{t.name}"
    return prelude.need(
        name,
        lambda _: (
            f"static inline {c} {name}({c} a, {c} b)\n"
            f"{{\n    return {cast}a {sign} {cast}b ? a : b;\n}}"
        ),
    )


def multiply_high(prelude: Prelude, t: Scalar, signed: bool) -> str:
    """mulhi or mulhiu: the upper half of the product of two words."""
    c, u, n = t.ctype, t.unsigned, t.bits
    name = f"{'mulhi' if signed else 'mulhiu'}_{t.name}"
    if n < 64:
        # Twice the width, no more: GCC 12 at -O3 takes the signed instruction for a product of
        # unsigned 16-bit numbers in 64 bits.
        cast = f"{'int' if signed else 'uint'}{max(2 * n, 32)}_t"
        inner = "" if signed else f"({u})"
        body = f"    return ({c})((({cast}){inner}a * ({cast}){inner}b) >> {n});"
    else:
        body = """    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    uint64_t low = (x & 0xffffffffu) * (y & 0xffffffffu);
    uint64_t left = (x >> 32) * (y & 0xffffffffu) + (low >> 32);
    uint64_t right = (x & 0xffffffffu) * (y >> 32) + (left & 0xffffffffu);
    uint64_t high = (x >> 32) * (y >> 32) + (left >> 32) + (right >> 32);
"""
        if signed:
            body += "    high -= (a < 0 ? y : 0) + (b < 0 ? x : 0);\n"
        body += "    return (int64_t)high;"
    return prelude.need(name, lambda _: f"static inline {c} {name}({c} a, {c} b)\n{{\n{body}\n}}")


def integer_power(prelude: Prelude, t: Scalar) -> str:
    """pow: wraps; a negative exponent gives 1 / base**n by the division table."""
    c, u, n = t.ctype, t.unsigned, t.bits
    wide = "uint64_t" if n == 64 else "uint32_t"
    name = f"pow_{t.name}"
    return prelude.need(
        name,
        lambda _: (
            f"""static inline {c} {name}({c} base, {c} exponent)
{{
    {wide} result = 1, factor = ({wide})base;
    {u} left = ({u})exponent;
    if (exponent < 0)
        return base == 0 ? -1 : base == 1 ? 1 : base != -1 ? 0 : exponent % 2 ? -1 : 1;
    for (; left; left >>= 1) {{
        if (left & 1)
            result *= factor;
        factor *= factor;
    }}
    return ({c})result;
}}"""
        ),
    )


def bit_count(prelude: Prelude, t: Scalar, kind: str) -> str:
    """clz, ctz or popcount; of zero, the width, the width and 0."""
    c, u, n = t.ctype, t.unsigned, t.bits
    long = "ll" if n == 64 else ""
    cast = "(unsigned long long)" if n == 64 else "(unsigned)"
    bodies = {
        "clz": f"a ? __builtin_clz{long}({cast}({u})a)" + (f" - {32 - n}" if n < 32 else ""),
        "ctz": f"a ? __builtin_ctz{long}({cast}({u})a)",
        "popcount": f"__builtin_popcount{long}({cast}({u})a)",
    }
    tail = f" : {n}" if kind != "popcount" else ""
    name = f"{kind}_{t.name}"
    return prelude.need(
        name,
        lambda _: (
            f"static inline {c} {name}({c} a)\n{{\n    return ({c})({bodies[kind]}{tail});\n}}"
        ),
    )


def loop_step(prelude: Prelude, t: Scalar) -> str:
    """step: the next value of a loop counter below `end`, or `end`; never overflows."""
    c, u = t.ctype, t.unsigned
    name = f"step_{t.name}"
    return prelude.need(
        name,
        lambda _: (
            f"""static inline {c} {name}({c} i, {c} step, {c} end)
{{
    {u} left = ({u})(({u})end - ({u})i);
    return step > 0 && left > ({u})step ? ({c})(i + step) : end;
}}"""
        ),
    )


def bits_of_float(prelude: Prelude, t: Scalar) -> str:
    """bits: the bits of a float as a signed integer."""
    name = f"bits_{t.key}"
    return prelude.need(
        name,
        lambda _: (
            f"""static inline int{t.bits}_t {name}({t.ctype} x)
{{
    int{t.bits}_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}}"""
        ),
    )


def float_of_bits(prelude: Prelude, t: Scalar) -> str:
    """from_bits: the float with the given bits."""
    name = f"from_bits_{t.key}"
    return prelude.need(
        name,
        lambda _: (
            f"""static inline {t.ctype} {name}(int{t.bits}_t bits)
{{
    {t.ctype} x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}}"""
        ),
    )


def float_extreme(prelude: Prelude, t: Scalar, kind: str) -> str:
    """max, min (NaN wins), maxnum, minnum (NaN loses); -0 < +0 in all four."""
    c = t.ctype
    sign = ">" if kind.startswith("max") else "<"
    merge = "&" if kind.startswith("max") else "|"
    name = f"{kind}_{t.key}"

    def write(prelude: Prelude) -> str:
        bits, of_bits = bits_of_float(prelude, t), float_of_bits(prelude, t)
        unordered = (
            "if (a != a)\n        return b;\n    return b != b ? a : zero;"
            if "num" in kind
            else "return a == b ? zero : a + b;"
        )
        # Equal numbers have equal bits unless they are zeros; then the signs decide.
        return f"""static inline {c} {name}({c} a, {c} b)
{{
    {c} zero;
    if (a {sign} b)
        return a;
    if (b {sign} a)
        return b;
    zero = {of_bits}({bits}(a) {merge} {bits}(b));
    {unordered}
}}"""

    return prelude.need(name, write)


def float_to_integer(prelude: Prelude, source: Scalar, target: Scalar, signed: bool) -> str:
    """i32_from_f32, u8_from_f64: truncates, saturates, NaN gives 0; unsigned bits in a signed int.

    The upper limit is compared as a power of two, which a float holds exactly.
    """
    c, n = target.ctype, target.bits
    s = _suffix(source)
    name = f"{'i' if signed else 'u'}{n}_from_{source.key}"
    if signed:
        top = f"{2.0 ** (n - 1)!r}{s}"
        body = (
            f"if (x != x)\n        return 0;\n"
            f"    if (x <= -{top})\n        return {integer_minimum(target)};\n"
            f"    return x >= {top} ? INT{n}_MAX : ({c})x;"
        )
    else:
        top = f"{2.0**n!r}{s}"
        body = f"if (!(x > 0))\n        return 0;\n    return x >= {top} ? -1 : ({c})(uint{n}_t)x;"
    return prelude.need(
        name, lambda _: f"static inline {c} {name}({source.ctype} x)\n{{\n    {body}\n}}"
    )


def has_builtin(prelude: Prelude) -> str:
    """has_builtin: whether this compiler has an instruction's builtin; clang has dropped some."""
    return prelude.need(
        "has_builtin",
        lambda _: (
            """#if defined(__has_builtin)
#define has_builtin(name) __has_builtin(name)
#else
#define has_builtin(name) 0
#endif"""
        ),
    )


def half_to_float(prelude: Prelude, t: Scalar) -> str:
    """f16_to_f32 or bf16_to_f32: exact."""
    name = f"{t.key}_to_f32"

    def bf16(prelude: Prelude) -> str:
        of_bits = float_of_bits(prelude, F32)
        return f"""static inline float {name}(uint16_t h)
{{
    return {of_bits}((int32_t)((uint32_t)h << 16));
}}"""

    def f16(prelude: Prelude) -> str:
        has_builtin(prelude)
        # A subnormal is mantissa * 2**-24, which a float holds exactly.
        return f"""static inline float {name}(uint16_t h)
{{
#if defined(__F16C__) && has_builtin(__builtin_ia32_vcvtph2ps)
{_F16C_TYPES}
    half8 from = {{(short)h}};
    float4 to = __builtin_ia32_vcvtph2ps(from);
    return to[0];
#else
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    uint32_t bits;
    float to;
    if (exponent == 0) {{
        float small = (float)mantissa * 0x1p-24f;
        return sign ? -small : small;
    }}
    exponent = exponent == 31 ? 255 : exponent + 112;
    if (exponent == 255 && mantissa)
        mantissa |= 0x200;
    bits = sign | exponent << 23 | mantissa << 13;
    __builtin_memcpy(&to, &bits, sizeof to);
    return to;
#endif
}}"""

    return prelude.need(name, f16 if t is F16 else bf16)


def float_to_half(prelude: Prelude, source: Scalar, t: Scalar) -> str:
    """f32_to_f16, f64_to_f16, f32_to_bf16 or f64_to_bf16: to nearest even, in one rounding."""
    name = f"{source.key}_to_{t.key}"
    if source is F64:
        return prelude.need(name, lambda p: _double_to_half(p, name, t))
    if t is BF16:
        return prelude.need(name, lambda p: _float_to_bf16(p, name))
    return prelude.need(name, lambda p: _float_to_f16(p, name))


def _double_to_half(prelude: Prelude, name: str, t: Scalar) -> str:
    bits, of_bits = bits_of_float(prelude, F32), float_of_bits(prelude, F32)
    half = float_to_half(prelude, F32, t)
    # Round to odd first: a float's last bit then says "more to come", so the second rounding sees
    # what the first dropped (Boldo and Melquiond, 2008).
    return f"""static inline uint16_t {name}(double x)
{{
    float near = (float)x;
    int32_t bits = {bits}(near);
    if ((double)near != x && x == x && !(bits & 1))
        near = {of_bits}(bits + (((double)near < x) == (x > 0) ? 1 : -1));
    return {half}(near);
}}"""


def _float_to_bf16(prelude: Prelude, name: str) -> str:
    bits = bits_of_float(prelude, F32)
    return f"""static inline uint16_t {name}(float x)
{{
    uint32_t bits = (uint32_t){bits}(x);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}}"""


def _float_to_f16(prelude: Prelude, name: str) -> str:
    has_builtin(prelude)
    # Below 2**-14 an f16 is a multiple of 2**-24; adding 0.5 makes the float unit round to one.
    return f"""static inline uint16_t {name}(float x)
{{
#if defined(__F16C__) && has_builtin(__builtin_ia32_vcvtps2ph)
{_F16C_TYPES}
    float4 from = {{x}};
    half8 to = __builtin_ia32_vcvtps2ph(from, 0);
    return (uint16_t)to[0];
#else
    float shifted = (x < 0 ? -x : x) + 0.5f;
    uint32_t bits, sign, size;
    __builtin_memcpy(&bits, &x, sizeof bits);
    sign = bits >> 16 & 0x8000;
    size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x1ff));
    if (size >= 0x47800000)
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) {{
        __builtin_memcpy(&bits, &shifted, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }}
    return (uint16_t)(sign | ((size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13));
#endif
}}"""


_F16C_TYPES = """\
    typedef short half8 __attribute__((vector_size(16)));
    typedef float float4 __attribute__((vector_size(16)));"""


def long_to_bf16(prelude: Prelude, signed: bool) -> str:
    """i64_to_bf16 or u64_to_bf16 in one rounding: the low bits are first merged into one."""
    name = f"{'i' if signed else 'u'}64_to_bf16"

    def write(prelude: Prelude) -> str:
        half = float_to_half(prelude, F64, BF16)
        negative = "a < 0" if signed else "0"
        return f"""static inline uint16_t {name}(int64_t a)
{{
    int negative = {negative};
    uint64_t size = negative ? 0 - (uint64_t)a : (uint64_t)a;
    double x;
    if (size >> 52)
        size = (size & ~(uint64_t)0xfff) | (size & 0xfff ? 0x800 : 0);
    x = (double)size;
    return {half}(negative ? -x : x);
}}"""

    return prelude.need(name, write)


def float_power(prelude: Prelude, t: Scalar) -> str:
    """powi: a float to an integer power."""
    name = f"powi_{t.key}"
    prelude.header("math.h")
    return prelude.need(
        name,
        lambda _: (
            f"""static inline {t.ctype} {name}({t.ctype} base, int64_t exponent)
{{
    return ({t.ctype})pow((double)base, (double)exponent);
}}"""
        ),
    )
