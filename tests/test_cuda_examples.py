"""Every example for a GPU: on the emulator (and a GPU where one is) against the reference, and
through nvcc and NVRTC."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from xdsl.dialects.builtin import ModuleOp

from uopc.dialects.errors import UopcError
from uopc.frontend.compile import CompileRequest, Lowered, lower, read_program
from uopc.frontend.compile import compile as compile_program
from uopc.runtime.cuda_compile import CudaOptions, nvrtc_flags, run_nvrtc
from uopc.runtime.cuda_driver import current_device
from uopc.runtime.cuda_executable import load_cuda_program
from uopc.runtime.cuda_library import NVRTC_CALLS, Calls, nvcc_program, nvrtc_library
from uopc.runtime.cuda_resources import parse_report

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.mlir"))
_STRICT = ("-Xptxas", "-v", "-Xptxas", "-warn-spills", "-Werror", "all-warnings")
LONG = settings.get_current_profile_name() == "long"
ARCHITECTURES = (75, 80, 86, 89, 90, 100) if LONG else (75, 90, 100)
FUSE_REDUCE = ("none", "all")


@pytest.fixture(scope="module", params=["emulator", pytest.param("driver", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest):
    before = os.environ.get("UOPC_CUDA")
    os.environ["UOPC_CUDA"] = request.param
    try:
        yield current_device()
    except UopcError as error:
        if error.kind != "no-cuda":
            raise
        pytest.skip(error.message)
    finally:
        if before is None:
            del os.environ["UOPC_CUDA"]
        else:
            os.environ["UOPC_CUDA"] = before


def source_of_all(fuse_reduce: str) -> str:
    """The CUDA text of all examples in one module."""
    functions = [op.clone() for path in EXAMPLES for op in read_program(path).body.block.ops]
    request = CompileRequest(target="cuda", fuse_reduce=fuse_reduce)
    return lower(ModuleOp(functions), request).cuda_program().source


def lowered(path: Path, fuse_reduce: str) -> Lowered:
    return lower(read_program(path), CompileRequest(target="cuda", fuse_reduce=fuse_reduce))


def inputs_of(plan: Any, sizes: dict[str, int]) -> list[np.ndarray[Any, Any]]:
    from uopc.dialects.element_types import element_type_named

    random = np.random.default_rng(7)
    found: list[np.ndarray[Any, Any]] = []
    for buffer in plan.inputs:
        shape = [s if isinstance(s, int) else s.evaluate_named(sizes) for s in buffer.shape]
        row = element_type_named(buffer.dtype)
        if row.is_float:
            found.append(random.standard_normal(shape).astype(row.numpy))
        else:
            found.append(random.integers(max(row.limits[0], -9), 10, shape).astype(row.numpy))
    return found


@pytest.mark.parametrize("fuse_reduce", FUSE_REDUCE)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_agree_with_the_reference(device, cache_folder, path: Path, fuse_reduce: str):
    executable = compile_program(path, "cuda", fuse_reduce=fuse_reduce)
    reference = compile_program(path, "interpreter")
    for n in (1, 5, 64):
        sizes = {s.name: min(max(n, s.lower), s.upper) for s in executable.plan.symbols}
        inputs = inputs_of(executable.plan, sizes)
        got, expected = executable(*inputs), reference(*inputs)
        if not isinstance(got, tuple):
            got, expected = (got,), (expected,)
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == b.dtype
            if a.dtype.kind in "biu":
                np.testing.assert_array_equal(a, b)
            else:
                step = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(a.dtype.name, 2.0**-16)
                a, b = a.astype(np.float64), b.astype(np.float64)
                np.testing.assert_allclose(a, b, rtol=step, atol=step * np.abs(b).max())
        if not sizes:
            break


@pytest.mark.parametrize("name", ["softmax", "mlp", "lookup", "matmul_chain"])
def test_examples_have_no_races(device, cache_folder, name: str):
    """Checked code reports races between barriers, reads of what nobody wrote, and bounds."""
    path = next(p for p in EXAMPLES if p.stem == name)
    program = lowered(path, "none").cuda_program()
    executable = load_cuda_program(program, options=CudaOptions(check=True))
    executable(*inputs_of(executable.plan, {}))


def test_nvcc_takes_all_examples_without_a_warning_or_a_spill(tmp_path: Path):
    nvcc = nvcc_program()
    if nvcc is None:
        pytest.skip("no nvcc: looked on PATH, in CUDA_HOME and in /usr/local/cuda")
    files: list[str] = []
    kernels = 0
    for fuse_reduce in FUSE_REDUCE:
        source = source_of_all(fuse_reduce)
        kernels += source.count("__global__")
        (tmp_path / f"{fuse_reduce}.cu").write_text(source)
        files.append(f"{fuse_reduce}.cu")
    codes = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in ARCHITECTURES]
    done = subprocess.run(
        [nvcc, "-fatbin", "-std=c++17", "-fmad=false", *_STRICT, *codes, *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-3000:]
    report = parse_report(output)
    assert len(report) == kernels * len(ARCHITECTURES)
    assert not [r for r in report if r.spill_stores or r.spill_loads]


def test_nvrtc_takes_all_examples_without_a_word():
    """No GPU is needed: NVRTC is a wheel (extra `cuda`)."""
    library = nvrtc_library()
    if library is None:
        pytest.skip("no NVRTC: looked in the system, the wheel of uopc[cuda] and /usr/local/cuda")
    nvrtc = Calls(library, NVRTC_CALLS)
    wanted = [(f"sm_{a}", CudaOptions()) for a in (75, 80, 86, 87, 89, 90, 100)]
    wanted.append(("sm_90", CudaOptions(check=True)))
    for source in map(source_of_all, FUSE_REDUCE):
        for architecture, options in wanted:
            status, cubin, log = run_nvrtc(nvrtc, source, nvrtc_flags(architecture, options))
            assert (status, log) == (0, ""), architecture
            assert cubin.startswith(b"\x7fELF")


def test_nvrtc_tells_of_warnings():
    """That the log of source which compiles would show what is odd in it."""
    library = nvrtc_library()
    if library is None:
        pytest.skip("no NVRTC: looked in the system, the wheel of uopc[cuda] and /usr/local/cuda")
    source = 'extern "C" __global__ void k() { int unused; }'
    flags = nvrtc_flags("sm_90", CudaOptions())
    status, _, log = run_nvrtc(Calls(library, NVRTC_CALLS), source, flags)
    assert status == 0 and "plan.cu(1): warning" in log
