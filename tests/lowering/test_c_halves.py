"""Vectors of half types in C: every f16 widened, floats of all kinds rounded, in every width."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from uopc.dialects.locations import parse_text
from uopc.dialects.upstream_fixes import install
from uopc.lowering.c import emit_c

install()
WIDTHS = (1, 2, 3, 4, 8, 16, 32)
HALVES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
COUNT = 96 * 1024


def conversion(op: str, source: str, target: str, width: int) -> str:
    return f"""
func.func @{op}_{source}_{target}_{width}(%x: memref<{COUNT}x{source}>, %o: memref<{COUNT}x{target}>) {{
  %zero = arith.constant 0 : index
  %step = arith.constant {width} : index
  %end = arith.constant {COUNT} : index
  scf.for %i = %zero to %end step %step {{
    %v = vector.load %x[%i] : memref<{COUNT}x{source}>, vector<{width}x{source}>
    %w = arith.{op} %v : vector<{width}x{source}> to vector<{width}x{target}>
    vector.store %w, %o[%i] : memref<{COUNT}x{target}>, vector<{width}x{target}>
  }}
  func.return
}}"""  # noqa: E501


def floats() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Floats of every exponent, and what lies at and beside the middle between two f16 or bf16."""
    rng = np.random.default_rng(3)
    anything = rng.integers(0, 1 << 32, COUNT // 2, dtype=np.uint64).astype(np.uint32)
    middles = (rng.integers(0x3300, 0x4790, COUNT // 4) << 16) + rng.integers(
        0, 16, COUNT // 4
    ) * 4096
    beside = middles + rng.integers(-1, 2, COUNT // 4)
    bits = np.concatenate([anything, middles.astype(np.uint32), beside.astype(np.uint32)])
    special = [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0x477FEFFF, 0x477FF000]
    bits[: len(special)] = special
    return bits.view(np.float32)


@pytest.mark.parametrize(
    "flags",
    [("gcc", "-O2", "-march=native"), ("gcc", "-O2"), ("gcc", "-O0", "-mf16c")],
    ids=" ".join,
)
def test_conversions_of_whole_vectors(build: Any, flags: tuple[str, ...]) -> None:
    forms = [("extf", h, "f32", w) for h in HALVES for w in WIDTHS]
    forms += [("truncf", "f32", h, w) for h in HALVES for w in WIDTHS]
    library = build(emit_c(parse_text("\n".join(conversion(*f) for f in forms))).text, *flags)
    dtypes = {"f32": np.float32, **HALVES}
    for op, source, target, width in forms:
        if source == "f32":
            x = floats()
        else:
            x = np.resize(np.arange(1 << 16, dtype=np.uint16), COUNT).view(dtypes[source])
        with np.errstate(all="ignore"):
            expected = x.astype(dtypes[target])
        out = np.zeros(COUNT, dtypes[target])
        library(f"{op}_{source}_{target}_{width}", x, out)
        bits = np.uint16 if out.itemsize == 2 else np.uint32
        nan = np.isnan(expected.astype(np.float32))
        assert (np.isnan(out.astype(np.float32)) == nan).all(), (op, source, target, width)
        same = out.view(bits) == expected.view(bits)
        assert (same | nan).all(), (op, source, target, width, x[~(same | nan)][:5])
