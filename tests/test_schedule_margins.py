"""Products of every size from 1 to 67 around a register tile: the interpreter's bits, and nothing
written beside the result."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from uopc.dialects.locations import parse_text
from uopc.frontend.compile import CompileRequest, lower
from uopc.interpreters.programs import programs
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program

OTHER = 17
CANARY = np.float32(-12345.5)
MARGIN = 32
WAYS = (("gcc", 0), ("gcc", 3), ("clang", 2))


def product(name: str, m: int, n: int, k: int) -> str:
    """A matrix product."""
    cube = f"tensor<{m}x{n}x{k}xf32>"
    return f"""
func.func @{name}(%a: tensor<{m}x{k}xf32>, %b: tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %bt = utensor.permute %b [1, 0] : tensor<{k}x{n}xf32> -> tensor<{n}x{k}xf32>
  %a3 = utensor.reshape %a : tensor<{m}x{k}xf32> -> tensor<{m}x1x{k}xf32>
  %ae = utensor.expand %a3 : tensor<{m}x1x{k}xf32> -> {cube}
  %b3 = utensor.reshape %bt : tensor<{n}x{k}xf32> -> tensor<1x{n}x{k}xf32>
  %be = utensor.expand %b3 : tensor<1x{n}x{k}xf32> -> {cube}
  %p = utensor.mul %ae, %be : {cube}
  %c = utensor.reduce add %p axes [2] : {cube}
  func.return %c : tensor<{m}x{n}xf32>
}}"""


def sizes_of(dimension: int, start: int) -> list[tuple[int, int, int]]:
    """Every size of one dimension, from a start in steps of three, so that workers share them."""
    found: list[tuple[int, int, int]] = []
    for size in range(1 + start, 68, 3):
        sizes = [OTHER, OTHER, OTHER]
        sizes[dimension] = size
        found.append((sizes[0], sizes[1], sizes[2]))
    return found


@pytest.mark.parametrize("start", range(3))
@pytest.mark.parametrize("dimension", range(3))
def test_every_size_around_a_tile(dimension: int, start: int, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(dimension)
    cases = {f"p{m}_{n}_{k}": (m, n, k) for m, n, k in sizes_of(dimension, start)}
    texts = [product(name, *sizes) for name, sizes in cases.items()]
    lowered = lower(parse_text("\n".join(texts)), CompileRequest(pipeline="uopc-cpu-native"))
    program = lowered.program()
    assert {p.level for p in programs(lowered.module)} == {"linear"}
    interpreted = {p.name: p for p in programs(lowered.module)}
    for name, (m, n, k) in cases.items():
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        expected: Any = interpreted[name].run([a, b]).results[0]
        for compiler, level in WAYS:
            if shutil.which(compiler) is None:
                continue  # CI has both
            monkeypatch.setenv("UOPC_CC", compiler)
            executable = load_program(program, name, options=CompileOptions(opt_level=level))
            memory = np.full(m * n + 2 * MARGIN, CANARY, np.float32)
            inside = memory[MARGIN : MARGIN + m * n].reshape(m, n)
            executable.run_into([inside], [a, b])
            assert inside.tobytes() == expected.tobytes(), (name, compiler, level)
            assert (memory[:MARGIN] == CANARY).all() and (memory[-MARGIN:] == CANARY).all(), name
