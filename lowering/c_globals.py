"""memref.global as C arrays: exact, and fast for large ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, UnitAttr

from uopc.lowering.c_types import F32, Scalar, scalar_type

PER_LINE = 12
"""Values on a line of a long array."""
READABLE = 4096
"""Up to so many floats print as shortest decimals, more as fixed digits (ten times as fast)."""


def global_array(op: memref.GlobalOp, name: str, is_public: bool) -> list[str]:
    """The lines that define the array. Its type is known to have a form in C."""
    t = scalar_type(op.type.element_type)
    assert t is not None
    count = math.prod(op.type.get_shape())
    const = "const " if op.constant is not None else ""
    declaration = f"{const}{t.ctype} {name}[{max(count, 1)}]"
    align = op.alignment.value.data if op.alignment is not None else 0
    if count * t.size >= 64:
        align = max(align, 64)
    aligned = f" __attribute__((aligned({align})))" if align > t.size else ""
    lines = [f"extern {declaration};"] if is_public else []
    head = f"{'' if is_public else 'static '}{declaration}{aligned}"
    if isinstance(op.initial_value, UnitAttr):
        return [*lines, f"{head};"]
    values = array_values(op.initial_value, t, count)
    if len(values) <= PER_LINE and sum(map(len, values)) + len(head) < 90:
        return [*lines, f"{head} = {{{', '.join(values)}}};"]
    rows = [f"    {', '.join(values[i : i + PER_LINE])}," for i in range(0, len(values), PER_LINE)]
    return [*lines, f"{head} = {{", *rows, "};"]


def array_values(dense: DenseIntOrFPElementsAttr[Any], t: Scalar, count: int) -> list[str]:
    """The elements as C constants; `0` alone stands for an array of zeros."""
    data = dense.data.data
    if not any(data):
        return ["0"]
    array = np.frombuffer(data, f"<{_CODES[t.key]}")
    if array.size == 1 and count != 1:
        array = np.broadcast_to(array, (count,))
    if t.is_bool:
        return [str(int(v != 0)) for v in array.tolist()]
    if not t.is_float or t.is_half:
        return [_integer(v, t) for v in array.tolist()]
    return _floats(array, t)


_CODES = {
    "f64": "f8",
    "f32": "f4",
    "f16": "u2",
    "bf16": "u2",
    "index": "i8",
    "i1": "i1",
    **{f"i{n}": f"i{n // 8}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"u{n // 8}" for n in (8, 16, 32, 64)},
}


def _integer(value: int, t: Scalar) -> str:
    if value == t.low and t.bits >= 32 and t.signed:
        return f"INT{t.bits}_MIN"
    return f"{value}u" if value > 0x7FFFFFFFFFFFFFFF else str(value)


def _floats(array: np.ndarray[Any, Any], t: Scalar) -> list[str]:
    suffix = "f" if t is F32 else ""
    finite = np.isfinite(array)
    if finite.all() and array.size > READABLE:
        # 9 and 17 digits name a float and a double uniquely, also when read as a double first.
        form = "%.9g" if t is F32 else "%.17g"
        texts: list[str] = [*(f"{form}\n" * array.size % tuple(array.tolist())).split()]
        for i in np.flatnonzero((array == 0) & np.signbit(array)).tolist():
            texts[i] = "-0.0"  # as an integer, -0 is 0
        return texts
    texts = [f"{v!s}{suffix}" for v in array]
    for i in np.flatnonzero(~finite).tolist():
        texts[i] = _special(array, i, t)
    return texts


def _special(array: np.ndarray[Any, Any], index: int, t: Scalar) -> str:
    bits = int(array.view(f"<u{t.size}")[index])
    suffix = "f" if t is F32 else ""
    fraction = 23 if t is F32 else 52
    sign = "-" if bits >> (t.bits - 1) else ""
    mantissa = bits & ((1 << fraction) - 1)
    if not mantissa:
        return f"{sign}__builtin_inf{suffix}()"
    quiet = mantissa >> (fraction - 1)
    payload = mantissa & ((1 << (fraction - 1)) - 1)
    return f'{sign}__builtin_nan{"" if quiet else "s"}{suffix}("0x{payload:x}")'
