"""The dot product of pairs of bf16 in C: the interpreter's bits, with or without an instruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uopc.dialects.locations import parse_text
from uopc.interpreters.pairs import dot
from uopc.lowering.c import emit_c
from uopc.passes.cpu_targets import cpu_target

STEPS = 4000
TEXT = """
func.func @dot(%s: memref<?xf32>, %a: memref<?xbf16>, %b: memref<?xbf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %lanes = arith.constant LANES : index
  scf.for %k = %c0 to %n step %lanes {
    %k2 = arith.muli %k, %c2 : index
    %x = vector.load %a[%k2] : memref<?xbf16>, vector<TWICExbf16>
    %y = vector.load %b[%k2] : memref<?xbf16>, vector<TWICExbf16>
    %old = vector.load %s[%k] : memref<?xf32>, vector<LANESxf32>
    %new = x86vector.avx512.dot %old, %x, %y : vector<TWICExbf16> -> vector<LANESxf32>
    vector.store %new, %s[%k] : memref<?xf32>, vector<LANESxf32>
  }
  func.return
}
"""
PLAIN = ("-mno-avx512bf16",)
INSTRUCTION = tuple(cpu_target("avx512bf16").compiler_flags)


def numbers(count: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Sums and factors: any bits, sums of about one size, and sums close to the smallest number."""
    rng = np.random.default_rng(11)
    a, b, c = (rng.integers(0, 1 << 32, count, dtype=np.uint32) for _ in range(3))
    third = count // 3
    middle, last = slice(third, 2 * third), slice(2 * third, None)
    for x in (a, b):
        x[middle] = (x[middle] & 0x83FF83FF) | 0x3C003C00
        x[last] = (x[last] & 0x80FF80FF) | 0x1F801F80
    c[middle] = (c[middle] & 0x83FFFFFF) | 0x3C000000
    c[last] = (c[last] & 0x80000007) + rng.integers(0x007FFFFC, 0x00800004, len(c[last]))
    return c.view(np.float32), a.view(np.int32), b.view(np.int32)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(
    ("compiler", "flags"),
    [("gcc", ("-O0", *PLAIN)), ("clang", ("-O2", *PLAIN)),
     ("gcc", ("-O3", "-masm=intel", *INSTRUCTION)),
     ("gcc", ("-O2", *INSTRUCTION)), ("clang", ("-O0", *INSTRUCTION))],
    ids=lambda v: v if isinstance(v, str) else " ".join(v)[:12],
)  # fmt: skip
def test_the_bits_are_the_interpreters(
    build: Any, lanes: int, compiler: str, flags: tuple[str, ...]
) -> None:
    if "-mavx512bf16" in flags and (lacks := cpu_target("avx512bf16").misses()):
        pytest.skip(f"this machine cannot run the instruction: {lacks}")
    text = TEXT.replace("LANES", str(lanes)).replace("TWICE", str(2 * lanes))
    library = build(emit_c(parse_text(text)).text, compiler, *flags)
    c, a, b = numbers(48 * STEPS // 16)
    with np.errstate(all="ignore"):
        want = dot(c, a, b)
    got = c.copy()
    library("dot", got, a.view(np.uint16), b.view(np.uint16), len(c))
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), np.flatnonzero(~same)[:5]
    assert (np.abs(want[2 * len(c) // 3 :]) == 0).any()  # some are flushed
