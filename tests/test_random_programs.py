"""Random tensor programs: the reference semantics against C, compiled in every way there is.

Integers and truth values are exact. All compilers and levels agree on every bit of every float, and
no float is further from the reference than docs/numerics.md lets it be. A batch of programs is one
C file. `pytest tests/test_random_programs.py --hypothesis-profile=long` goes on for thousands, with
other programs each time.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from compiled_programs import Way, compare, lowered, outside, ways
from error_bounds import bounded_results
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import RandomProgram, build_program
from reduce_program import smaller
from sanitized import Call, run_sanitized

from uopc.dialects.errors import UopcError
from uopc.dialects.tensor import UTensor
from uopc.frontend.compile import CompileRequest

LONG = settings.get_current_profile_name() == "long"
BATCHES, BATCH = (50 if LONG else 2), 40

seeds = st.lists(st.integers(0, (1 << 40) - 1), min_size=BATCH, max_size=BATCH, unique=True)
batches = settings(
    max_examples=BATCHES,
    deadline=None,
    derandomize=not LONG,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def program(seed: int) -> RandomProgram:
    return build_program(random.Random(seed).randint, f"p{seed}")


def problems(
    programs: list[RandomProgram], request: CompileRequest, chosen: tuple[Way, ...]
) -> list[str]:
    """What is wrong with some programs; one by one where the compiler stumbles over the file."""
    try:
        return compare(programs, request, chosen)
    except UopcError as error:
        if len(programs) == 1:
            return [f"{error}\n{programs[0].function}"]
    half = len(programs) // 2
    parts = (programs[:half], programs[half:])
    return [line for part in parts for line in problems(part, request, chosen)]


@pytest.mark.parametrize(
    ("pipeline", "fuse_reduce"),
    [
        ("uopc-cpu", "none"),
        ("uopc-cpu-native", "none"),
        ("uopc-cpu-native", "all"),
        ("uopc-cpu-native", "auto"),
    ],
)
@batches
@given(seeds=seeds)
def test_compiled_programs_agree_with_the_reference(pipeline, fuse_reduce, cache_folder, seeds):
    request = CompileRequest(pipeline=pipeline, fuse_reduce=fuse_reduce)
    programs = [program(seed) for seed in seeds]
    if not problems(programs, request, ways()):
        return
    for p in programs:
        if problems([p], request, ways()):
            small = smaller(p, lambda q: bool(problems([q], request, ways())))
            found = "\n".join(problems([small], request, ways()))
            inputs = "\n".join(f"{k}: {a!r}" for k, a in enumerate(small.inputs))
            pytest.fail(f"{found}\ninputs {inputs}\nsizes {small.sizes}")
    pytest.fail("the programs are right one by one and wrong in one file")


@pytest.mark.parametrize("pipeline", ["uopc-cpu", "uopc-cpu-native"])
def test_no_access_outside_of_buffers(pipeline, tmp_path):
    """A batch in one C file with the checks of compilers built in; see support/sanitized.py."""
    programs = [program(seed) for seed in range(1000, 1000 + BATCH)]
    source = lowered(programs, CompileRequest(pipeline=pipeline)).program()
    calls = [Call(p.function.sym_name.data, p.inputs, p.sizes) for p in programs]
    results = run_sanitized(source, calls, tmp_path)
    for p, arrays in zip(programs, results, strict=True):
        bounded = bounded_results(p.function, p.inputs, p.sizes)
        for got, (value, error) in zip(arrays, bounded, strict=True):
            assert got is None or outside(got, value, error) is None


def test_what_is_compared_is_not_nothing():
    """Of the numbers compared, most have to be exact and next to none are unknown."""
    errors = [
        error.ravel()
        for p in map(program, range(600))
        for _, error in bounded_results(p.function, p.inputs, p.sizes)
    ]
    every = np.concatenate(errors)
    assert every.size > 5000
    assert np.mean(every == 0) > 0.8
    assert np.mean(np.isinf(every)) < 0.05
    ops = {op.name for p in map(program, range(600)) for op in p.function.walk()}
    assert {op.name for op in UTensor.operations} <= ops
