from __future__ import annotations

import dataclasses
import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Buffer, KernelCall, LaunchConfig, Plan, Program, Symbol
from uopc.runtime.cuda_compile import CudaOptions
from uopc.runtime.cuda_driver import Device
from uopc.runtime.cuda_executable import load_cuda_program

SOURCE = """\
extern "C" {
__device__ float const0[4] = {1.0f, 2.0f, 3.0f, 4.0f};
}

/* r_n: reduce sum */
extern "C" __global__ void row_sum(long long n, const float *x, float *sums) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int j = 0; j < 4; j++) sum += x[i * 4 + j];
  sums[i] = sum;
}

/* e_n_4: div, mul */
extern "C" __global__ void divide(long long n, const float *x, const float *sums,
                                  const float *scale, float *out) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n * 4) out[i + OFFSET] = x[i] / sums[i / 4] * scale[i % 4];
}
"""


def by(symbol_size: type, threads: int) -> Any:
    """n blocks of that many threads, which is more than enough."""
    return LaunchConfig((symbol_size("n"), 1, 1), (threads, 1, 1))


@pytest.fixture
def program(symbol_size: type) -> Program:
    """x / sum(x, -1) * [1, 2, 3, 4] on n x 4 f32; then x itself, and the constant."""
    n = symbol_size("n")
    plan = Plan(
        "normalize",
        symbols=(Symbol("n", 0, 1 << 20),),
        inputs=(Buffer("in0", "x", "f32", (n, 4)),),
        constants=(Buffer("const0", "const0", "f32", (4,)),),
        temps=(Buffer("tmp0", "tmp0", "f32", (n,), offset=64),),
        outputs=(
            Buffer("out0", "scaled", "f32", (n, 4)),
            Buffer("out1", "same", "f32", (n, 4), alias="in0"),
            Buffer("out2", "weights", "f32", (4,), alias="const0"),
        ),
        kernels=(
            KernelCall("r_n", "k0", ("in0", "tmp0"), 1, 32, 160, ("n",)),
            KernelCall("e_n_4", "k1", ("in0", "tmp0", "const0", "out0"), 1, 32, 288, ("n",)),
        ),
        workspace_bytes=64 + (4 << 20),
    )
    return Program(
        SOURCE.replace("OFFSET", "0"),
        "cuda",
        (plan,),
        {"k0": "row_sum", "k1": "divide"},
        {"k0": by(symbol_size, 32), "k1": by(symbol_size, 32)},
    )


def broken(program: Program, source: str) -> Program:
    return dataclasses.replace(program, source=source)


def rows(count: int) -> np.ndarray:
    return np.arange(1, 4 * count + 1, dtype=np.float32).reshape(count, 4)


def expected(x: np.ndarray) -> np.ndarray:
    sums = ((x[:, 0] + x[:, 1]) + x[:, 2]) + x[:, 3]
    return x / sums[:, None] * np.array([1, 2, 3, 4], np.float32)


@pytest.mark.parametrize("options", [CudaOptions(), CudaOptions(graphs=False), CudaOptions(True)])
def test_calls_of_many_sizes(cuda_device: Device, program: Program, options: CudaOptions):
    """The same size three times: run, captured, replayed. 300000 rows are not staged."""
    exe = load_cuda_program(program, options=options)
    for count in (3, 3, 3, 0, 1, 0, 1, 1, 3):
        x = rows(count)
        scaled, same, weights = exe(x)
        np.testing.assert_array_equal(scaled, expected(x))
        np.testing.assert_array_equal(same, x)
        assert not np.shares_memory(same, x)
        np.testing.assert_array_equal(weights, [1, 2, 3, 4])
    assert exe.plan.name == "normalize"
    assert exe.source == program.source


def test_large_arrays_go_straight(cuda_device: Device, program: Program):
    exe = load_cuda_program(program)
    x = rows(200_000)
    for _ in range(3):
        np.testing.assert_array_equal(exe(x)[0], expected(x))
        x = x[::-1]


def test_results_go_into_arrays_that_exist(cuda_device: Device, program: Program):
    exe = load_cuda_program(program)
    x = rows(5)
    outputs = [np.empty((4, 5), np.float32).T, x, np.empty(4, np.float32)]
    right = expected(x)
    exe.run_into(outputs, [x])
    np.testing.assert_array_equal(outputs[0], right)
    np.testing.assert_array_equal(outputs[2], [1, 2, 3, 4])
    with pytest.raises(UopcError, match="has shape"):
        exe.run_into([np.empty((4, 4), np.float32), x, outputs[2]], [x])


def test_threads(cuda_device: Device, program: Program):
    exe = load_cuda_program(program)
    failed: list[object] = []

    def work(count: int) -> None:
        x = rows(count)
        for _ in range(5):
            if not np.array_equal(exe(x)[0], expected(x)):
                failed.append(count)

    threads = [threading.Thread(target=work, args=(count,)) for count in (1, 2, 3, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_memory_is_used_again_and_given_back(cuda_device: Device, program: Program):
    exe = load_cuda_program(program)
    exe(rows(7))
    before = cuda_device.memory.allocations
    for _ in range(4):
        exe(rows(7))
    assert cuda_device.memory.allocations == before
    idle = cuda_device.memory.idle_bytes
    del exe
    gc.collect()
    with cuda_device.in_use():
        pass
    assert cuda_device.memory.idle_bytes >= idle + program.plans[0].workspace_bytes


def test_debug_lines(cuda_device: Device, program: Program, capsys: pytest.CaptureFixture[str]):
    exe = load_cuda_program(program, debug=4)
    exe(rows(2))
    lines = capsys.readouterr().err
    assert '/* r_n: reduce sum */\nextern "C" __global__ void row_sum(long long n' in lines
    assert "\n  r_n  " in lines and "\n  e_n_4  " in lines and "(again: " in lines
    assert "\nnormalize: 2 kernels, schedule " in lines
    exe(rows(2))
    assert "__global__" not in capsys.readouterr().err
    load_cuda_program(program, debug=1)(rows(2))
    assert capsys.readouterr().err.startswith("normalize: 2 kernels, schedule ")


def test_a_fault_names_kernel_and_step(cuda_device: Device, program: Program):
    other = load_cuda_program(program)
    other(rows(3))
    source = SOURCE.replace("OFFSET", "(1ll << 40)")
    exe = load_cuda_program(broken(program, source))
    for _ in range(2):
        with pytest.raises(UopcError) as caught:
            exe(rows(3))
        assert caught.value.kind == "kernel-failed"
        assert caught.value.message.startswith(
            "kernel `e_n_4` (step 2 of 2 of plan `normalize`) failed with "
            "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
        )
    # The device was reset under it; it loads anew.
    np.testing.assert_array_equal(other(rows(3))[0], expected(rows(3)))


def test_a_fault_on_the_emulator_names_the_rest(emulated_device: Device, program: Program):
    source = SOURCE.replace("OFFSET", "1")
    exe = load_cuda_program(broken(program, source))
    with pytest.raises(UopcError) as caught:
        exe(rows(3))
    assert caught.value.message == (
        "kernel `e_n_4` (step 2 of 2 of plan `normalize`) failed with CUDA_ERROR_ILLEGAL_ADDRESS: "
        "an illegal memory access was encountered: kernel divide, block (0,0,0), thread (11,0,0), "
        "plan.cu:18: a store at offset 48 of an allocation of 48 bytes"
    )


def test_checks_keep_temporaries_apart(emulated_device: Device, program: Program):
    """Past the end of a temporary lies the rest of the workspace, but not when checked."""
    source = SOURCE.replace("OFFSET", "0").replace("sums[i] = sum;", "sums[i] = sums[i + 1] = sum;")
    changed = broken(program, source.replace("if (i >= n)", "if (i != 0)"))
    load_cuda_program(changed)(rows(1))
    with pytest.raises(UopcError) as caught:
        load_cuda_program(changed, options=CudaOptions(check=True))(rows(1))
    assert "a store of 4 bytes at offset 4 of an allocation of 4 bytes" in caught.value.message


def test_checks_show_what_no_kernel_wrote(emulated_device: Device, program: Program):
    source = SOURCE.replace("OFFSET", "0").replace("if (i < n * 4)", "if (i < n * 4 - 1)")
    exe = load_cuda_program(broken(program, source), options=CudaOptions(check=True))
    for _ in range(3):
        assert np.isnan(exe(rows(3))[0]).sum() == 1


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"static_shared_bytes": 50_000},
            "50000 bytes of static shared memory a block; the limit is 49152 on every GPU",
        ),
        (
            {"shared_bytes": 262_144, "static_shared_bytes": 64},
            "262208 bytes of shared memory a block; the limit is 232448 on sm_90",
        ),
    ],
)
def test_too_much_shared_memory_is_refused_before_compiling(
    emulated_device: Device, program: Program, config: dict[str, int], message: str
):
    launches = {**program.launches, "k1": dataclasses.replace(program.launches["k1"], **config)}
    changed = dataclasses.replace(program, source="no CUDA at all", launches=launches)
    with pytest.raises(UopcError) as caught:
        load_cuda_program(changed)
    assert caught.value.kind == "too-much-shared-memory"
    assert caught.value.message == (
        f"kernel `e_n_4` (step 2 of 2 of plan `normalize`) asks for {message}"
    )


def test_shared_memory_by_a_symbol(cuda_device: Device, program: Program, symbol_size: type):
    """Above 48 KiB it is asked for; above the GPU's it is refused at the call."""
    config = dataclasses.replace(program.launches["k0"], shared_bytes=symbol_size("n", 1024))
    exe = load_cuda_program(
        dataclasses.replace(program, launches={**program.launches, "k0": config})
    )
    np.testing.assert_array_equal(exe(rows(60))[0], expected(rows(60)))
    with pytest.raises(UopcError) as caught:
        exe(rows(1000))
    assert caught.value.kind == "too-much-shared-memory"
    assert "asks for 1024000 bytes of shared memory a block" in caught.value.message


def test_a_launch_that_is_refused_names_the_step(cuda_device: Device, program: Program):
    config = dataclasses.replace(program.launches["k1"], block=(2048, 1, 1))
    exe = load_cuda_program(
        dataclasses.replace(program, launches={**program.launches, "k1": config})
    )
    for _ in range(2):
        with pytest.raises(UopcError) as caught:
            exe(rows(3))
        assert caught.value.message.startswith(
            "kernel `e_n_4` (step 2 of 2 of plan `normalize`) cannot be launched with "
            "CUDA_ERROR_INVALID_VALUE: invalid argument"
        )
        assert caught.value.message.endswith(
            "(grid 3x1x1, block 2048x1x1, 0 bytes of dynamic shared memory)"
        )


@pytest.mark.parametrize("extent", [-1, 1 << 31, 1 << 32])
def test_launches_that_32_bits_do_not_spell(emulated_device: Device, program: Program, extent: int):
    config = dataclasses.replace(program.launches["k1"], grid=(extent, 1, 1))
    launches = {**program.launches, "k1": config}
    exe = load_cuda_program(dataclasses.replace(program, launches=launches))
    with pytest.raises(UopcError, match=rf"would be launched with grid \[{extent}, 1, 1\]"):
        exe(rows(3))


def refusal(action: Callable[[], object]) -> UopcError:
    with pytest.raises(UopcError) as caught:
        action()
    return caught.value


def test_programs_that_are_wrong(emulated_device: Device, program: Program, add_program: Program):
    assert refusal(lambda: load_cuda_program(add_program)).kind == "wrong-language"
    without = dataclasses.replace(program, launches={})
    assert refusal(lambda: load_cuda_program(without)).kind == "missing-launch"
    misnamed = dataclasses.replace(program, names={})
    assert refusal(lambda: load_cuda_program(misnamed)).kind == "missing-symbol"
    assert refusal(lambda: load_cuda_program(program, "other")).kind == "unknown-plan"


def test_out_of_memory(emulated_device: Device, program: Program):
    plan = dataclasses.replace(program.plans[0], workspace_bytes=1 << 50)
    exe = load_cuda_program(dataclasses.replace(program, plans=(plan,)))
    error = refusal(lambda: exe(rows(3)))
    assert error.kind == "out-of-memory"
    assert error.message.startswith(f"the device does not give {1 << 50} bytes: ")


def test_no_driver(program: Program, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("uopc.runtime.cuda_library.DRIVER_NAMES", ("libnothing.so.1",))
    monkeypatch.setattr("uopc.runtime.cuda_library._known", {})
    for choice in ("auto", "driver"):
        monkeypatch.setenv("UOPC_CUDA", choice)
        error = refusal(lambda: load_cuda_program(program))
        assert error.kind == "no-cuda"
        assert error.message == (
            "no CUDA driver with a GPU: looked for libnothing.so.1; "
            "UOPC_CUDA=emulator runs the same program on the CPU"
        )
