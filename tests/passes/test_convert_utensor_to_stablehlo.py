"""Out to StableHLO: what our own import and XLA make of it is what the program says."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from compiled_programs import bits
from random_control import ControlProgram
from random_programs import RandomProgram, build_program
from stablehlo_export import exported, generic_text, imported, run_by_xla
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from uopc.dialects.errors import UnsupportedError
from uopc.frontend.compile import read_program
from uopc.interpreters.tensor import run_function

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.mlir"))
TOLERANCES = {2: 1e-2, 4: 1e-4, 8: 1e-9}


def static_program(seed: int) -> RandomProgram:
    """A random program whose sizes are numbers."""
    while (program := build_program(random.Random(seed).randint, "main")).sizes:
        seed += 1000
    return program


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_come_back_the_same(seed):
    program = static_program(seed)
    back = imported(exported(ModuleOp([program.function.clone()])))
    expected = run_function(ModuleOp([program.function.clone()]), "main", program.inputs)
    for got, value in zip(run_function(back, "main", program.inputs), expected, strict=True):
        assert np.array_equal(bits(got), bits(value))


@pytest.mark.parametrize("seed", range(6))
def test_loops_come_back_the_same(seed):
    module = read_program(ControlProgram(seed, "main").text)
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(-5, 6, shape).astype(np.int32) for shape in ((), (4,), (3, 4))]
    back = imported(read_program(generic_text(exported(module))))
    expected = run_function(module, "main", inputs)
    for got, value in zip(run_function(back, "main", inputs), expected, strict=True):
        assert np.array_equal(got, value)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_by_xla(path):
    pytest.importorskip("jax", reason="XLA comes with the extra `jax`")
    module = read_program(path)
    function = next(op for op in module.body.block.ops if isinstance(op, FuncOp))
    name = function.sym_name.data
    if path.stem == "symbolic":
        with pytest.raises(UnsupportedError, match="is a symbol"):
            exported(module)
        return
    rng = np.random.default_rng(3)
    inputs: list[np.ndarray] = []
    for argument in function.body.block.args:
        from uopc.dialects.tensor_elementwise import element_of, tensor_of

        row, shape = element_of(tensor_of(argument)), tensor_of(argument).get_shape()
        numbers = rng.standard_normal(shape) if row.is_float else rng.integers(0, 5, shape)
        inputs.append(np.asarray(numbers).astype(row.numpy))
    text = generic_text(exported(module)).replace(f'"{name}"', '"main"')
    compare(run_by_xla(text, inputs), run_function(module, name, inputs))


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_by_xla(seed):
    pytest.importorskip("jax", reason="XLA comes with the extra `jax`")
    program = static_program(seed)
    module = ModuleOp([program.function.clone()])
    got = run_by_xla(generic_text(exported(module)), program.inputs)
    compare(got, run_function(module, "main", program.inputs))


def compare(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Integers to the bit; floats within a tolerance, XLA's order and functions being its own."""
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if b.dtype.kind in "biu":
            assert np.array_equal(a, b)
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(x - y) <= TOLERANCES[b.dtype.itemsize] * np.maximum(1, np.abs(y))
        assert np.all((x == y) | (np.isnan(x) & np.isnan(y)) | near)
