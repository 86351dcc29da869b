"""Stores past the caches: the same bits, wherever the result lies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import parse_text
from uopc.lowering.c import emit_c
from uopc.passes.apply_schedule import apply_schedule
from uopc.passes.linearize import linearize_kernel
from uopc.runtime.library import load_library

KERNEL = """
ukernel.kernel @f ins(%x : memref<5x70xf32>) outs(%o : memref<5x70xf32>) {
  %i = uloop.range 5
  %j = uloop.range 70
  %v = uloop.load %x[%i, %j] : memref<5x70xf32>
  %y = arith.addf %v, %v : f32
  uloop.store %y, %o[%i, %j] : memref<5x70xf32>
}
"""


def source(schedule: str) -> str:
    """The kernel as C that others may call."""
    module = parse_text(KERNEL)
    kernel = module.body.block.first_op
    apply_schedule(kernel, schedule)  # type: ignore[arg-type]
    functions = linearize_kernel(kernel)  # type: ignore[arg-type]
    kernel.detach()  # type: ignore[union-attr]
    for function in functions:
        module.body.block.add_op(function)
    return emit_c(module, static_kernels=False).text


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_at_any_place(lanes: int, compiler: str, monkeypatch: pytest.MonkeyPatch):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    monkeypatch.setenv("UOPC_CC", compiler)
    text = source(f"split j = j0 j1:{lanes}:vector; stream")
    assert "streams_end();" in text
    function = load_library(text).function("f", 0, 2)
    x = np.random.default_rng(1).standard_normal((5, 70)).astype(np.float32)
    for offset in (0, 1, 3, 16):
        memory = np.full(5 * 70 + 64, 7, np.float32)
        start = (-memory.ctypes.data // 4) % 16 + offset
        function(x.ctypes.data, memory[start:].ctypes.data)
        assert (memory[start : start + 350] == (x + x).ravel()).all()
        assert (memory[:start] == 7).all()
        assert (memory[start + 350 :] == 7).all()


def test_what_is_updated_is_not_streamed():
    text = KERNEL.replace(
        "  uloop.store", "  uloop.update add %y, %o[%i, %j] : memref<5x70xf32>\n  uloop.store"
    )
    with pytest.raises(UopcError, match="an update reads what the kernel stores"):
        apply_schedule(parse_text(text).body.block.first_op, "stream")  # type: ignore[arg-type]
