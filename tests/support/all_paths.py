"""One program on every path: the reference semantics, C at -O0 and C at -O3.

result = everywhere(text, x)                 # the C's result, after all were found equal
results = everywhere(text, x, ulps=4)        # the reference may differ by rounding
"""

from __future__ import annotations

from typing import Any

import numpy as np
from compiled_programs import bits, free_sizes

from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.frontend.compile import compile as compile_program
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program

Array = np.ndarray[Any, np.dtype[Any]]


def everywhere(
    program: Any,
    *inputs: Array,
    ulps: int = 0,
    sizes: dict[str, int] | None = None,
    fuse_reduce: str = "none",
) -> Any:
    """Run a program on all paths and hold them against each other; C's array, or its tuple.

    Both levels of C have the same bits. The reference has them too where `ulps` is 0.
    """
    reference = compile_program(program, target="interpreter", debug=0)
    lowered = lower(read_program(program), CompileRequest(fuse_reduce=fuse_reduce))
    name, source = lowered.chosen(None), lowered.program()
    executables = [reference] + [
        load_program(source, name, options=CompileOptions(opt_level=level), debug=0)
        for level in (0, 3)
    ]
    runs: list[list[Array]] = []
    result: Any = None
    for executable in executables:
        result = executable(*inputs, **free_sizes(executable.plan, sizes or {}))
        runs.append(list(result) if isinstance(result, tuple) else [result])
    truth, plain, fast = runs
    for k, (expected, a, b) in enumerate(zip(truth, plain, fast, strict=True)):
        assert np.array_equal(bits(a), bits(b)), f"result {k} at -O0: {a}, at -O3: {b}"
        assert expected.dtype == a.dtype
        assert expected.shape == a.shape
        if not ulps:
            assert np.array_equal(bits(a), bits(expected)), f"result {k}: {a}, not {expected}"
            continue
        wide, exact = a.astype(np.float64), expected.astype(np.float64)
        with np.errstate(all="ignore"):
            step = np.spacing(np.abs(expected)).astype(np.float64)
            near = np.abs(wide - exact) <= ulps * step
        assert np.all(near | (wide == exact) | (np.isnan(wide) & np.isnan(exact))), (
            f"result {k}: {a}, not {expected}"
        )
    return result
