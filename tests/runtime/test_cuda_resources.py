from __future__ import annotations

from pathlib import Path

import pytest

from uopc.dialects.errors import UopcError
from uopc.runtime.cuda_compile import run_nvcc
from uopc.runtime.cuda_library import nvcc_program
from uopc.runtime.cuda_resources import (
    KernelResources,
    assembled_resources,
    find_target,
    occupancy,
    parse_report,
)

KERNELS = Path(__file__).parent / "kernels.cu"
REPORT = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'fine' for 'sm_90'
ptxas info    : Function properties for fine
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers
ptxas info    : Compiling entry function 'spilled' for 'sm_90'
ptxas info    : Function properties for spilled
    144 bytes stack frame, 132 bytes spill stores, 140 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 8448 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 4.0 ms
"""


def needs_nvcc() -> str:
    if (nvcc := nvcc_program()) is None:
        pytest.skip("no nvcc on PATH, in CUDA_HOME or in /usr/local/cuda")
    return nvcc


def test_report():
    assert parse_report(REPORT) == (
        KernelResources("fine", 10, 0, 0, 0, 0, 0),
        KernelResources("spilled", 255, 132, 140, 144, 8448, 1),
    )
    assert parse_report("") == ()


@pytest.mark.parametrize(
    ("architecture", "registers", "threads", "shared", "blocks", "filled"),
    [
        ("sm_90", 32, 256, 0, 8, 1.0),
        ("sm_90", 127, 256, 33_000, 2, 0.25),
        ("sm_90", 255, 1024, 0, 0, 0.0),
        ("sm_90", 64, 1024, 0, 1, 0.5),
        ("sm_90", 16, 32, 0, 32, 0.5),
        ("sm_75", 64, 256, 32 << 10, 2, 0.5),
        ("sm_80", 32, 128, 40 << 10, 4, 0.25),
        ("sm_86", 40, 192, 0, 8, 1.0),
        ("sm_90", 32, 128, 227 << 10, 1, 0.0625),
        ("sm_90", 32, 128, 228 << 10, 0, 0.0),
    ],
)
def test_occupancy(
    architecture: str, registers: int, threads: int, shared: int, blocks: int, filled: float
):
    assert occupancy(find_target(architecture), registers, threads, shared) == (blocks, filled)


def test_unknown_target():
    with pytest.raises(UopcError, match="no GPU 'sm_12' is known"):
        find_target("sm_12")
    assert find_target((8, 9)).architecture == "sm_89"


def test_a_kernel_that_spills(tmp_path: Path):
    needs_nvcc()
    body = "".join(f"v{i} = fmaf(v{i}, x[i + {i}], v{(i + 7) % 80});" for i in range(80))
    names = ", ".join(f"v{i} = x[{i}]" for i in range(80))
    total = " + ".join(f"v{i}" for i in range(80))
    source = (
        'extern "C" __global__ void __launch_bounds__(1024) k(const float *x, float *y) {'
        f"float {names}; for (int i = 0; i < 100; i++) {{ {body} }} y[threadIdx.x] = {total}; }}"
    )
    (found,) = assembled_resources(source, find_target("sm_90"))
    assert found.kernel == "k"
    assert found.registers == 64
    assert found.spill_stores > 0 and found.spill_loads > 0


def test_every_kernel_compiles_for_every_gpu_without_a_word(tmp_path: Path):
    """All the kernels that the emulator runs, for four GPUs in one run of nvcc."""
    nvcc = needs_nvcc()
    arguments = ["-std=c++17", "-fmad=false", "-fatbin", "-Werror", "all-warnings", "--threads=2"]
    for number in (75, 80, 90, 100):
        arguments += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
    arguments += ["-Xptxas", "-v", "-o", "plan.fatbin"]
    status, output = run_nvcc(nvcc, KERNELS.read_text(encoding="utf-8"), arguments, tmp_path)
    assert status == 0, output
    assert "warning" not in output.lower(), output
    found = parse_report(output)
    assert len(found) == 4 * 11
    assert all(kernel.spill_stores == kernel.spill_loads == 0 for kernel in found)
    shared = {kernel.kernel: kernel.shared for kernel in found}
    assert shared["product"] == 16 * (68 + 64) * 4
    assert shared["transpose"] == 32 * 33 * 4


def test_a_source_that_nvcc_refuses():
    needs_nvcc()
    with pytest.raises(UopcError) as caught:
        assembled_resources("nonsense", find_target("sm_90"))
    assert caught.value.kind == "compile-failed"
    assert "plan.cu(1): error" in caught.value.hint
