"""Loads under one condition, side by side: right at every level, whatever a compiler makes of them.

GCC 12.2 with AVX2 gave zeros for the second row and others without the asm statement of c_guards.
"""

from __future__ import annotations

import numpy as np
import pytest
from compiled_programs import compiler, ways

from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program


def program(element: str, columns: int, unroll: bool) -> str:
    """Rows padded above and below: the second axis's loop is unrolled by the C compiler."""
    sizes, padded = f"[n, {columns}], n = 2 to 64", f"[n + 3, {columns}], n = 2 to 64"
    x = f"tensor<?x{columns}x{element}, #utensor.sizes<{sizes}>>"
    y = f"tensor<?x{columns}x{element}, #utensor.sizes<{padded}>>"
    zero = "0" if element.startswith("i") else "0.0"
    twice = f"  %b = utensor.flip %a [1] : {y}\n  %c = utensor.add %a, %b : {y}\n" if unroll else ""
    return f"""func.func @main(%x: {x}) -> {y} {{
  %a = utensor.pad %x low [1, 0] high [2, 0] value {zero} : {x} -> {y}
{twice}  func.return {"%c" if unroll else "%a"} : {y}
}}
"""


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("element", ["i32", "f64"])
def test_neighbours_under_one_condition(cache_folder, element, columns, unroll):
    module = read_program(program(element, columns, unroll))
    source = lower(module, CompileRequest(pipeline="uopc-cpu")).program()
    if columns == 2:
        assert "load_alone();" in source.source
    for way in ways():
        with compiler(way.compiler):
            options = CompileOptions(opt_level=way.opt_level)
            exe = load_program(source, "main", options=options, debug=0)
        for n in (2, 4, 7, 37):
            x = np.arange(1, n * columns + 1).reshape(n, columns)
            x = x.astype({"i32": np.int32, "f64": np.float64}[element])
            expected = np.pad(x, ((1, 2), (0, 0)))
            if unroll:
                expected = expected + expected[:, ::-1]
            np.testing.assert_array_equal(exe(x), expected)
