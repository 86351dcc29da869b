"""500 random tensor programs on the emulated GPU, held against the interpreters.

The interpreter of the same linear IR gives the same bits. As in test_random_programs.py integers
are exact and no float is further from the reference than docs/numerics.md lets it be. A batch of
programs is one .cu file; every second batch is compiled with the emulator's checks for races,
bounds and memory that nobody wrote. `pytest tests/test_random_cuda_programs.py
--hypothesis-profile=long` goes on for thousands.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from compiled_programs import as_list, bits, free_sizes, outside
from error_bounds import bounded_results
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import RandomProgram, build_program
from reduce_program import smaller
from xdsl.dialects.builtin import ModuleOp

from uopc.dialects.errors import UopcError
from uopc.frontend.compile import CompileRequest, lower
from uopc.frontend.interpreted import InterpretedExecutable
from uopc.passes.pipelines import pipeline_text
from uopc.runtime.cuda_compile import CudaOptions
from uopc.runtime.cuda_executable import load_cuda_program

LONG = settings.get_current_profile_name() == "long"
BATCHES, BATCH = (50, 40) if LONG else (1, 125)

seeds = st.lists(st.integers(0, (1 << 40) - 1), min_size=BATCH, max_size=BATCH, unique=True)
batches = settings(
    max_examples=BATCHES,
    deadline=None,
    derandomize=not LONG,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def emulator(cache_folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("UOPC_CUDA", "emulator")
    yield


def program(seed: int) -> RandomProgram:
    return build_program(random.Random(seed).randint, f"p{seed}")


def problems(programs: Sequence[RandomProgram], request: CompileRequest, check: bool) -> list[str]:
    """What is wrong with some programs; one by one where the file as a whole fails."""
    try:
        return differences(programs, request, check)
    except UopcError as error:
        if len(programs) == 1:
            return [f"{error}\n{programs[0].function}"]
    half = len(programs) // 2
    parts = (programs[:half], programs[half:])
    return [line for part in parts for line in problems(part, request, check)]


def differences(
    programs: Sequence[RandomProgram], request: CompileRequest, check: bool
) -> list[str]:
    module = ModuleOp([p.function.clone() for p in programs])
    lowered = lower(module, request)
    compiled = lowered.cuda_program()
    options = CudaOptions(check=check)
    lines: list[str] = []
    for p in programs:
        name = p.function.sym_name.data
        executable = load_cuda_program(compiled, name, options=options, debug=0)
        results = as_list(executable(*p.inputs, **free_sizes(executable.plan, p.sizes)))
        interpreter = InterpretedExecutable(ModuleOp([p.function.clone()]), name)
        interpreter.use(lowered.module, lowered.plans)
        sizes = free_sizes(interpreter.plan, p.sizes)
        interpreted = as_list(interpreter(*p.inputs, **sizes))
        for k, (got, same) in enumerate(zip(results, interpreted, strict=True)):
            if not np.array_equal(bits(got), bits(same)):
                lines.append(f"{name} result {k}: interpreted {same}, got {got}\n{p.function}")
        expected = bounded_results(p.function, p.inputs, p.sizes)
        for k, (got, (value, error)) in enumerate(zip(results, expected, strict=True)):
            wrong = outside(got, value, error)
            if wrong is not None:
                lines.append(f"{name} result {k}: {wrong}\n{p.function}")
    return lines


@pytest.mark.parametrize("check", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("fuse_reduce", ["none", "all"])
@batches
@given(seeds=seeds)
def test_programs_on_the_emulator_agree_with_the_interpreters(fuse_reduce, check, seeds):
    pipeline = "uopc-cuda"
    if fuse_reduce != "none":  # the programs are small: group their neighbours all the same
        pipeline = pipeline_text(pipeline).replace("gpu-map", "gpu-map{vectors-from=1}")
        pipeline = pipeline.replace("kernelize,", f"kernelize{{fuse-reduce={fuse_reduce}}},")
    request = CompileRequest(target="cuda", pipeline=pipeline)
    others = 2 * ("none", "all").index(fuse_reduce) + check  # no program twice
    programs = [program(4 * seed + others) for seed in seeds]
    if not problems(programs, request, check):
        return
    for p in programs:
        if problems([p], request, check):
            small = smaller(p, lambda q: bool(problems([q], request, check)))
            found = "\n".join(problems([small], request, check))
            inputs = "\n".join(f"{k}: {a!r}" for k, a in enumerate(small.inputs))
            pytest.fail(f"{found}\ninputs {inputs}\nsizes {small.sizes}")
    pytest.fail("the programs are right one by one and wrong in one file")
