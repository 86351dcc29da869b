"""Many programs in one C file, compiled in several ways and held against the reference.

differences = compare(programs, CompileRequest(fuse_reduce="auto"), ways())   # []: all right
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from error_bounds import bounded_results
from random_programs import RandomProgram
from xdsl.dialects.builtin import ModuleOp

from uopc.frontend.compile import CompileRequest, Lowered, lower
from uopc.lowering.plan import Plan
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program


@dataclass(frozen=True)
class Way:
    """A compiler and its level."""

    compiler: str
    opt_level: int


def ways() -> tuple[Way, ...]:
    """cc at -O0 and -O3, and clang where there is one."""
    found = (Way("cc", 0), Way("cc", 3))
    return (*found, Way("clang", 2)) if shutil.which("clang") else found


@contextmanager
def compiler(name: str) -> Iterator[None]:
    before = os.environ.get("UOPC_CC")
    os.environ["UOPC_CC"] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ["UOPC_CC"]
        else:
            os.environ["UOPC_CC"] = before


def lowered(programs: Sequence[RandomProgram], request: CompileRequest) -> Lowered:
    """One module of all programs, down to loops."""
    module = ModuleOp([p.function.clone() for p in programs])
    return lower(module, request)


def compare(
    programs: Sequence[RandomProgram], request: CompileRequest, chosen: Sequence[Way]
) -> list[str]:
    """How the programs compiled in the chosen ways differ from each other and the reference."""
    program = lowered(programs, request).program()
    found: dict[Way, list[list[np.ndarray]]] = {}
    for way in chosen:
        options = CompileOptions(opt_level=way.opt_level)
        with compiler(way.compiler):
            loaded = [
                load_program(program, p.function.sym_name.data, options=options, debug=0)
                for p in programs
            ]
        found[way] = [
            as_list(exe(*p.inputs, **free_sizes(exe.plan, p.sizes)))
            for exe, p in zip(loaded, programs, strict=True)
        ]
    lines: list[str] = []
    for number, p in enumerate(programs):
        name = p.function.sym_name.data
        for way in chosen[1:]:
            pairs = zip(found[chosen[0]][number], found[way][number], strict=True)
            for k, (a, b) in enumerate(pairs):
                if not np.array_equal(bits(a), bits(b)):
                    lines.append(f"{name} result {k}: {chosen[0]} gives {a}, {way} gives {b}")
        expected = bounded_results(p.function, p.inputs, p.sizes)
        for k, (got, (value, error)) in enumerate(
            zip(found[chosen[0]][number], expected, strict=True)
        ):
            wrong = outside(got, value, error)
            if wrong is not None:
                lines.append(f"{name} result {k} ({request.passes()}): {wrong}\n{p.function}")
    return lines


def free_sizes(plan: Plan, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes that no input's shape tells."""
    told = {str(extent) for buffer in plan.inputs for extent in buffer.shape}
    return {s.name: sizes[s.name] for s in plan.symbols if s.name not in told}


def as_list(results: object) -> list[np.ndarray]:
    return list(results) if isinstance(results, tuple) else [results]  # pyright: ignore


def bits(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, all NaNs alike."""
    if array.dtype.kind in "biu":
        return array
    plain = np.where(array != array, array.dtype.type(0), array)
    width = f"u{array.dtype.itemsize}"
    return np.stack([np.asarray(plain).view(width), np.asarray(array != array).astype(width)])


def outside(got: np.ndarray, value: np.ndarray, error: np.ndarray) -> str | None:
    """Where a result is further from the reference than it may be; None if nowhere."""
    if got.dtype != value.dtype or got.shape != value.shape:
        return f"expected {value.dtype}{value.shape}, got {got.dtype}{got.shape}"
    both_nan = (got != got) & (value != value)
    a, b = (x if x.dtype.kind in "biu" else x.astype(np.float64) for x in (got, value))
    if a.dtype.kind in "biu":
        right = (a == b) | (error > 0)
    else:
        same = (a == b) & (np.signbit(a) == np.signbit(b))
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= error
        right = np.where(error == 0, same | both_nan, near | both_nan | np.isinf(error))
    if right.all():
        return None
    at = tuple(int(k) for k in np.argwhere(~right)[0])
    return f"at {list(at)} expected {value[at]!r} ± {error[at]}, got {got[at]!r}"
