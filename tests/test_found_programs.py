"""Programs that were once compiled wrongly, found by test_random_programs.py.

found_programs.mlir says what went wrong with each. All run in every way there is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from compiled_programs import compare, ways
from random_programs import RandomProgram
from xdsl.dialects.func import FuncOp

from uopc.dialects.locations import parse_file
from uopc.dialects.sizes import sizes_of
from uopc.dialects.tensor_elementwise import element_of, tensor_of
from uopc.frontend.compile import CompileRequest

FILE = Path(__file__).with_name("found_programs.mlir")


def random_inputs(function: FuncOp, sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays: list[np.ndarray] = []
    for argument in function.body.block.args:
        tensor = tensor_of(argument)
        shape = [n if isinstance(n, int) else n.evaluate_named(sizes) for n in sizes_of(tensor)]
        arrays.append(rng.integers(0, 9, shape).astype(element_of(tensor).numpy))
    return arrays


@pytest.mark.parametrize(
    ("pipeline", "fuse_reduce"),
    [("uopc-cpu", "none"), ("uopc-cpu-native", "none"), ("uopc-cpu-native", "all")],
)
@pytest.mark.parametrize("n", [0, 2, 4])
def test_found(cache_folder, pipeline, fuse_reduce, n):
    programs: list[RandomProgram] = []
    for function in list(parse_file(str(FILE)).body.block.ops):
        assert isinstance(function, FuncOp)
        if n < 2 and "n = 2 to" in str(function.function_type):
            continue
        function.detach()
        programs.append(RandomProgram(function, random_inputs(function, {"n": n}), {"n": n}))
    assert programs
    request = CompileRequest(pipeline=pipeline, fuse_reduce=fuse_reduce)
    assert compare(programs, request, ways()) == []
