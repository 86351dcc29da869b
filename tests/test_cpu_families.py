"""Every example for every CPU family: no vector wider than its registers, and one family's C gives
the same bits wherever it runs, an emulated AArch64 included."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_programs import bits
from sanitized import Call, run_built, shape_of
from xdsl.dialects.builtin import ModuleOp, VectorType

import uopc
from uopc.dialects.element_types import element_type, element_type_named
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import parse_file
from uopc.frontend.compile import CompileRequest, Lowered, lower
from uopc.passes.cpu_targets import cpu_target, cpu_targets

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.mlir"))
FAMILIES = tuple(cpu_targets())
CROSS, EMULATOR = "aarch64-linux-gnu-gcc", ("qemu-aarch64", "qemu-aarch64-static")
Array = np.ndarray[Any, np.dtype[Any]]


@cache
def examples_for(family: str) -> Lowered:
    """All examples as one module, for a CPU family."""
    functions = []
    for path in EXAMPLES:
        (function,) = parse_file(str(path)).body.block.ops
        function.detach()
        functions.append(function)
    return lower(ModuleOp(functions), CompileRequest(target_cpu=family, fuse_reduce="auto"))


def calls_of(lowered: Lowered) -> list[Call]:
    """A call of each example, the same at each time of asking."""
    rng = np.random.default_rng(5)
    calls: list[Call] = []
    for plan in lowered.plans:
        sizes = {s.name: min(37, s.upper) for s in plan.symbols}
        inputs: list[Array] = []
        for buffer in plan.inputs:
            dtype = element_type_named(buffer.dtype).numpy
            values = rng.standard_normal(shape_of(buffer, sizes)) * 3
            inputs.append((np.abs(values) if dtype.kind == "u" else values).astype(dtype))
        calls.append(Call(plan.name, inputs, sizes))
    return calls


@pytest.mark.parametrize("family", FAMILIES)
def test_no_vector_is_wider_than_a_register(family: str) -> None:
    most = cpu_target(family).vector_bytes
    lowered = examples_for(family)
    widths: set[int] = set()
    for op in lowered.module.walk():
        for value in op.results:
            if isinstance(value.type, VectorType):
                row = element_type(value.type.element_type)
                assert row is not None
                lanes = value.type.get_shape()[0]
                widths.add(lanes * (0 if row.is_bool else row.bytes))
                assert lanes * (0 if row.is_bool else row.bytes) <= most, op
    for width in re.findall(r"vector_size\((\d+)\)", lowered.program().source):
        assert int(width) <= max(most, 16)  # halves, one by one, by instructions for eight
    assert most == 0 or most in widths


@cache
def on_this_machine(family: str, folder: Path) -> tuple[list[list[Array | None]], list[Call]]:
    lowered = examples_for(family)
    calls = calls_of(lowered)
    flags = () if cpu_target(family).misses() else cpu_target(family).compiler_flags
    command = ["gcc", "-O2", "-ffp-contract=off", *flags]
    return run_built(lowered.program(), calls, folder, command), calls


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "neon"])
def test_the_flags_of_a_family_run_it(family: str, tmp_path: Path) -> None:
    """With the family's instructions and without, plain x86-64 or what gcc's default is."""
    if missing := cpu_target(family).misses():
        pytest.skip(missing)
    results, calls = on_this_machine(family, tmp_path)
    plain = run_built(
        examples_for(family).program(), calls, tmp_path, ["gcc", "-O0", "-ffp-contract=off"]
    )
    same_bits(results, plain)


def test_neon_is_compiled_and_run(tmp_path: Path) -> None:
    if shutil.which(CROSS) is None:
        pytest.skip(f"there is no {CROSS} here (Debian: gcc-aarch64-linux-gnu)")
    runner = next((name for name in EMULATOR if shutil.which(name)), None)
    if runner is None:
        pytest.skip("there is no qemu-aarch64 here (Debian: qemu-user-static)")
    here, calls = on_this_machine("neon", tmp_path)
    lowered = examples_for("neon")
    command = [CROSS, "-O2", "-static", "-Wall", "-Werror", "-ffp-contract=off"]
    there = run_built(lowered.program(), calls, tmp_path, command, [runner])
    same_bits(here, there)


def same_bits(
    first: Sequence[Sequence[Array | None]], second: Sequence[Sequence[Array | None]]
) -> None:
    for a, b in zip(first, second, strict=True):
        for x, y in zip(a, b, strict=True):
            assert (x is None) == (y is None)
            if x is not None and y is not None:
                np.testing.assert_array_equal(bits(x), bits(y))


SOFTMAX = next(path for path in EXAMPLES if path.stem == "softmax")


def run_softmax(**options: Any) -> Callable[..., Array]:
    return uopc.compile(SOFTMAX, **options)


def test_a_target_may_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    assert "vector_size(16)" in uopc.compile(SOFTMAX, target_cpu="sse2").source
    results = [run_softmax(target_cpu=name)(x) for name in ("sse2", "portable", "native")]
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-5)
    monkeypatch.setenv("UOPC_TARGET_CPU", "portable")
    assert "vector_size" not in uopc.compile(SOFTMAX).source
    monkeypatch.setenv("UOPC_TARGET_CPU", "pdp11")
    with pytest.raises(UopcError, match="there is no CPU target 'pdp11'"):
        uopc.compile(SOFTMAX)


def test_code_for_another_machine_is_not_run() -> None:
    if not cpu_target("neon").misses():
        pytest.skip("this machine is an AArch64")
    with pytest.raises(UopcError) as caught:
        uopc.compile(SOFTMAX, target_cpu="neon")
    assert caught.value.kind == "other-machine"
    assert "cannot run code for the CPU target 'neon': its architecture is" in caught.value.message
    assert "--target-cpu neon -t c" in caught.value.hint
