"""Functions on tensors at sizes from 1 to 67, held to docs/numerics.md in every way to run them.

    check_family(Family(lambda x: x.softmax(-1), lambda n: [(17, n)], schedule="vector"), …)

The functions of a family, one a size, become one C file. Of each, the interpreter of its loops says
the bits, and the reference semantics how far they may be from the true values; then gcc at three
levels and clang have to have the bits, with memory around every result that nothing may write to,
and once more with address and undefined-behaviour checks. What is too small to be worth a thread
gets threads all the same, in a second C file that runs on 1, 2, 3 and 8 of them.

The sizes are those around whole vectors; with `--hypothesis-profile=long` they are all.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from compiled_programs import outside
from error_bounds import bounded_results
from hypothesis import settings
from sanitized import Call, run_sanitized
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from uopc.dialects.element_types import element_type_named
from uopc.dialects.kernel import KernelOp
from uopc.frontend.build import build_module
from uopc.frontend.compile import CompileRequest, Lowered, lower
from uopc.frontend.graph import evaluation_order, resolved
from uopc.frontend.tensor import Tensor
from uopc.interpreters.programs import programs
from uopc.lowering.plan import Program
from uopc.passes import schedule_threads
from uopc.passes.manager import garbage_collector_off
from uopc.passes.pipelines import PIPELINES
from uopc.runtime.buffers import numpy_dtype
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import chosen_plan, load_program

Array = np.ndarray[Any, np.dtype[Any]]

MARGIN = 64
"""Bytes around a result: as many as its alignment, so that code for aligned memory runs."""
CANARY = 0xA5
WAYS = (("gcc", 0), ("gcc", 2), ("gcc", 3), ("clang", 2))
THREADS = (1, 2, 3, 8)
EVERY_SIZE = range(1, 68)
AROUND_LANES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65, 67)
"""One less, as many and one more than whole vectors of a few sizes, and some that are odd."""
SIZES = EVERY_SIZE if settings.get_current_profile_name() == "long" else AROUND_LANES


class Family(NamedTuple):
    """A function of tensors, and their shapes by a size."""

    function: Callable[..., Any]
    shapes: Callable[[int], Sequence[tuple[int, ...]]]
    dtypes: str = "f32"
    """Of all inputs, or of each: `f32 i32`. Integers are from 0 up to what is in `below`."""
    schedule: str = ""
    """What some schedule has to say."""
    below: Callable[[int], int] = lambda n: 100
    donated: Collection[int] = ()
    """Inputs that may be written over."""
    target: str | None = None
    """The CPU family whose kernels these are, on any machine; this machine's by default."""


class Case(NamedTuple):
    """A function of the module and its inputs."""

    function: FuncOp
    inputs: list[Array]

    @property
    def name(self) -> str:
        return self.function.sym_name.data


def case(
    name: str, function: Callable[..., Any], arrays: Sequence[Array], donated: Collection[int] = ()
) -> Case:
    """What a function on tensors computes of arrays."""
    tensors = [Tensor(a) for a in arrays]
    result = function(*tensors)
    results = result if isinstance(result, tuple | list) else [result]
    roots = [resolved(r.node) for r in results]
    order = evaluation_order(roots)
    given = [t.node for t in tensors]
    inputs = [node for node in order if node.op == "buffer"]
    over = [k for k, node in enumerate(inputs) if node in given and given.index(node) in donated]
    (op,) = build_module(order, roots, name, donated=over).body.block.ops
    assert isinstance(op, FuncOp)
    op.detach()
    return Case(op, [node.array for node in inputs if node.array is not None])


def cases_of(family: Family, sizes: Iterable[int]) -> list[Case]:
    rng = np.random.default_rng(17)
    cases: list[Case] = []
    for n in sizes:
        shapes = family.shapes(n)
        dtypes = family.dtypes.split()
        arrays = [
            _numbers(rng, shape, dtypes[k % len(dtypes)], family.below(n))
            for k, shape in enumerate(shapes)
        ]
        cases.append(case(f"s{n}", family.function, arrays, family.donated))
    return cases


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, below: int) -> Array:
    kind = element_type_named(dtype).numpy
    if dtype[0] in "fb":
        return rng.standard_normal(shape).astype(kind)
    return rng.integers(0, below, shape).astype(kind)


def check_family(
    family: Family, monkeypatch: pytest.MonkeyPatch, folder: Path, sizes: Sequence[int] = SIZES
) -> None:
    """Fail where bits differ, values are off, or memory around a result is written."""
    cases = cases_of(family, sizes)
    if family.schedule:
        chosen = schedules_of(cases[-3:], family.target)
        assert any(family.schedule in each for each in chosen), chosen
    _check(_lowered(cases, family.target), cases, monkeypatch, WAYS, (1,), folder)
    monkeypatch.setattr(schedule_threads, "PAYS_FROM_SECONDS", 0.0)
    monkeypatch.setattr(schedule_threads, "PART_SECONDS", 1e-12)
    some = cases[::5]
    _check(_lowered(some, family.target), some, monkeypatch, WAYS[1:2], THREADS, folder)


def _lowered(cases: Iterable[Case], target: str | None) -> Lowered:
    with garbage_collector_off():
        module = ModuleOp([c.function.clone() for c in cases])
        return lower(module, CompileRequest(target_cpu=target), verify=False)


def schedules_of(cases: Iterable[Case], target: str | None = None) -> list[str]:
    """The schedules that are chosen for the kernels of some functions."""
    passes = PIPELINES["uopc-cpu-native"]
    passes = (*passes[: passes.index("schedule") + 1], "linearize")
    module = ModuleOp([c.function.clone() for c in cases])
    lower(module, CompileRequest(pipeline=",".join(passes), target_cpu=target), level="uloop")
    kernels = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
    return ["" if k.schedule is None else k.schedule.data for k in kernels]


def _check(
    lowered: Lowered,
    cases: list[Case],
    monkeypatch: pytest.MonkeyPatch,
    ways: Iterable[tuple[str, int]],
    threads: Iterable[int],
    folder: Path,
) -> None:
    program = lowered.program()
    expected = interpreted(lowered.module, program, cases)
    for each, results in zip(cases, expected, strict=True):
        for got, (value, error) in zip(
            results, bounded_results(each.function, each.inputs, {}), strict=True
        ):
            wrong = None if got is None else outside(got, value, error)
            assert wrong is None, f"{each.name}: {wrong}"
    for compiler, level in ways:
        if shutil.which(compiler) is None:
            continue  # CI has both
        monkeypatch.setenv("UOPC_CC", compiler)
        for count in threads:
            monkeypatch.setenv("UOPC_THREADS", str(count))
            for each, results in zip(cases, expected, strict=True):
                got = run_in_margins(program, each, CompileOptions(opt_level=level))
                compare(got, results, f"{each.name}, {compiler} -O{level}, {count} threads")
    monkeypatch.delenv("UOPC_CC", raising=False)
    checked = run_sanitized(program, [Call(c.name, c.inputs, {}) for c in cases], folder)
    for each, got, results in zip(cases, checked, expected, strict=True):
        compare(got, results, f"{each.name}, sanitized")


def interpreted(
    module: ModuleOp, program: Program, cases: Iterable[Case]
) -> list[list[Array | None]]:
    """The results by the interpreter of what the C is printed from; None for an input's memory."""
    linear = {p.name: p for p in programs(module)}
    assert {p.level for p in linear.values()} == {"linear"}
    found: list[list[Array | None]] = []
    for each in cases:
        results = linear[each.name].run([a.copy() for a in each.inputs]).results
        plan = chosen_plan(program, each.name)
        shapes = [tuple(int(str(n)) for n in buffer.shape) for buffer in plan.outputs]
        found.append(
            [results[k].reshape(shape) if k in results else None for k, shape in enumerate(shapes)]
        )
    return found


def run_in_margins(program: Program, each: Case, options: CompileOptions) -> list[Array]:
    """The results, written into the middle of memory that has to stay as it is around them."""
    executable = load_program(program, each.name, options=options)
    held: list[Array] = []
    inside: list[Array] = []
    for buffer in executable.plan.outputs:
        shape = tuple(int(str(n)) for n in buffer.shape)
        dtype = numpy_dtype(buffer.dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        memory = aligned(size + 2 * MARGIN)
        memory[:] = CANARY
        held.append(memory)
        inside.append(memory[MARGIN : MARGIN + size].view(dtype).reshape(shape))
    executable.run_into(inside, [a.copy() for a in each.inputs])
    for memory, result in zip(held, inside, strict=True):
        size = result.nbytes
        assert (memory[:MARGIN] == CANARY).all(), f"{each.name} wrote before a result"
        assert (memory[MARGIN + size :] == CANARY).all(), f"{each.name} wrote behind a result"
    return inside


def aligned(size: int) -> Array:
    """Bytes from a multiple of MARGIN on."""
    memory = np.empty(size + MARGIN, np.uint8)
    start = -memory.ctypes.data % MARGIN
    return memory[start : start + size]


def compare(got: Sequence[Array | None], expected: Sequence[Array | None], what: str) -> None:
    """The same bits, or NaN both; None stands for what is another's memory."""
    assert len(got) == len(expected), what
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        if a is None or b is None:
            continue
        assert (a.shape, a.dtype) == (b.shape, b.dtype), what
        bits = np.dtype(f"u{a.dtype.itemsize}")
        equal = (a.view(bits) == b.view(bits)) | ((a != a) & (b != b))
        assert equal.all(), f"{what}: result {k} at {np.argwhere(~equal)[0].tolist()}"
