"""Kernels with a mistake each: what the emulator says of them, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.runtime.cuda_compile import CudaOptions, compile_cuda
from uopc.runtime.cuda_driver import Arguments, CudaError, Device

SOURCE = (Path(__file__).parent / "faults.cu").read_text(encoding="utf-8")

LAUNCH_FAILED = "CUDA_ERROR_LAUNCH_FAILED (719): unspecified launch failure"
ILLEGAL_ADDRESS = "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"
MISALIGNED = "CUDA_ERROR_MISALIGNED_ADDRESS (716): misaligned address"

ALWAYS = {
    "diverge": f"{LAUNCH_FAILED}: kernel diverge, block (0,0,0), plan.cu:5: a barrier that not "
    "all threads reach: 100 of 128 threads wait in __syncthreads at plan.cu:5, thread (0,0,0) "
    "first; 28 have returned",
    "two_barriers": f"{LAUNCH_FAILED}: kernel two_barriers, block (0,0,0), thread (127,0,0), "
    "plan.cu:13: threads of one block stand at two barriers: thread (0,0,0) is in __syncthreads "
    "at plan.cu:11, thread (127,0,0) is in __syncthreads at plan.cu:13",
    "lone_shuffle": f"{LAUNCH_FAILED}: kernel lone_shuffle, block (0,0,0), plan.cu:88: a warp "
    "operation that not all its lanes reach: 64 of 128 threads wait in __shfl_xor_sync at "
    "plan.cu:88, thread (0,0,0) first; 64 have returned",
    "outside_the_mask": f"{LAUNCH_FAILED}: kernel outside_the_mask, block (0,0,0), thread "
    "(15,0,0), plan.cu:93: thread (0,0,0) reads from lane 16, which takes no part in the shuffle",
    "trap": f"{LAUNCH_FAILED}: kernel trap, block (0,0,0), thread (5,0,0), plan.cu:98: __trap()",
    "deep": f"{LAUNCH_FAILED}: kernel deep, block (0,0,0), thread (0,0,0), plan.cu:102: the "
    "thread's local memory is used up",
    "divides": f"{LAUNCH_FAILED}: kernel divides, block (0,0,0), thread (0,0,0), plan.cu:109: an "
    "integer division by zero",
}
PLAIN = {
    "past_the_end": f"{ILLEGAL_ADDRESS}: kernel past_the_end, block (1,0,0), thread (127,0,0), "
    "plan.cu:19: a store at offset 1024 of an allocation of 1024 bytes",
    "misaligned": f"{MISALIGNED}: kernel misaligned, block (0,0,0), thread (0,0,0), plan.cu:28: a "
    "vector access at an address that is not aligned to it",
    "dynamic_overflow": f"{ILLEGAL_ADDRESS}: kernel dynamic_overflow, block (0,0,0), thread "
    "(96,0,0), plan.cu:82: a store at offset 384 of dynamic shared memory of 384 bytes",
}
CHECKED = {
    "past_the_end": f"{ILLEGAL_ADDRESS}: kernel past_the_end, block (1,0,0), thread (127,0,0), "
    "plan.cu:19: a store of 4 bytes at offset 1024 of an allocation of 1024 bytes",
    "far_away": f"{ILLEGAL_ADDRESS}: kernel far_away, block (0,0,0), thread (0,0,0), plan.cu:23: a "
    "load of 4 bytes at offset -800 of an allocation of 1024 bytes",
    "misaligned": f"{MISALIGNED}: kernel misaligned, block (0,0,0), thread (0,0,0), plan.cu:28: a "
    "load of 16 bytes at an address that is not aligned to it",
    "race": f"{LAUNCH_FAILED}: kernel race, block (0,0,0), thread (0,0,0), plan.cu:35: a load from "
    "shared memory that no thread of the block has written yet",
    "read_before_write": f"{LAUNCH_FAILED}: kernel read_before_write, block (0,0,0), thread "
    "(31,0,0), plan.cu:43: a race in shared memory: a store, with a load by thread (127,0,0) at "
    "plan.cu:42 and no barrier between them",
    "warp_race": f"{LAUNCH_FAILED}: kernel warp_race, block (0,0,0), thread (0,0,0), plan.cu:50: a "
    "load from shared memory that no thread of the block has written yet",
    "block_race": f"{LAUNCH_FAILED}: kernel block_race, block (1,0,0), thread (0,0,0), plan.cu:61: "
    "a race in global memory: a store, with a store by another block's thread (0,0,0) at "
    "plan.cu:61 and no barrier between them",
    "uninitialised": f"{LAUNCH_FAILED}: kernel uninitialised, block (0,0,0), thread (127,0,0), "
    "plan.cu:68: a load from shared memory that no thread of the block has written yet",
    "shared_overflow": f"{ILLEGAL_ADDRESS}: kernel shared_overflow, block (0,0,0), thread "
    "(63,0,0), plan.cu:75: a store of 4 bytes at offset 256 of shared `left` of 256 bytes",
    "dynamic_overflow": f"{ILLEGAL_ADDRESS}: kernel dynamic_overflow, block (0,0,0), thread "
    "(96,0,0), plan.cu:82: a store of 4 bytes at offset 384 of dynamic shared memory of 384 bytes",
    "late": f"{LAUNCH_FAILED}: kernel late, block (0,0,0), thread (0,0,0), plan.cu:120: a load "
    "from shared memory that no thread of the block has written yet",
}
SHARED_BYTES = {"dynamic_overflow": 384}
CASES = [
    *((False, name, text) for name, text in {**ALWAYS, **PLAIN}.items()),
    *((True, name, text) for name, text in {**ALWAYS, **CHECKED}.items()),
]


def launch(device: Device, name: str, check: bool, blocks: int = 2) -> np.ndarray:
    """Run a kernel on 256 floats, all zero; what they hold afterwards."""
    options = CudaOptions(check=check)
    cubin = compile_cuda(SOURCE, device.architecture, device.libraries, options)
    with device.in_use():
        module, stream = device.load(cubin), device.stream()
        memory = device.memory.take(1024)
        stream.fill(memory, 0, 1024)
        function = module.function(name)
        stream.launch(
            function,
            (blocks, 1, 1),
            (128, 1, 1),
            Arguments([], [memory, memory]),
            SHARED_BYTES.get(name, 0),
        )
        stream.synchronize()
        result = np.empty(256, np.float32)
        stream.copy_out(result.ctypes.data, memory, 1024)
        stream.synchronize()
        stream.destroy()
        device.memory.give(memory, 1024)
        module.unload()
    return result


@pytest.mark.parametrize(("check", "name", "text"), CASES)
def test_fault(emulated_device: Device, check: bool, name: str, text: str):
    with pytest.raises(CudaError) as caught:
        launch(emulated_device, name, check)
    assert caught.value.message == f"cuStreamSynchronize failed with {text}"
    assert caught.value.breaks_context
    # As on a GPU nothing works before a reset, and all does after it.
    with pytest.raises(CudaError), emulated_device.in_use():
        emulated_device.stream()
    with emulated_device.alone():
        emulated_device.reset()
    np.testing.assert_array_equal(launch(emulated_device, "fine", check), 2)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "status"), [("trap", 719), ("misaligned", 716)])
def test_faults_of_a_gpu(cuda_device: Device, name: str, status: int):
    with pytest.raises(CudaError) as caught:
        launch(cuda_device, name, check=False)
    assert caught.value.status == status


def test_correct_kernels_pass_the_checks(emulated_device: Device):
    launch(emulated_device, "fine", check=True)
    launch(emulated_device, "warp_in_step", check=True, blocks=1)


def test_a_copy_that_is_not_waited_for_shows_as_nan(emulated_device: Device):
    assert np.isnan(launch(emulated_device, "late", check=False)[:128]).all()


def test_memory_nobody_wrote_is_nan(emulated_device: Device):
    with emulated_device.in_use():
        stream = emulated_device.stream()
        memory = emulated_device.memory.take(4012)
        result = np.empty(1003, np.float32)
        stream.copy_out(result.ctypes.data, memory, 4012)
        stream.synchronize()
    assert np.isnan(result).all()


@pytest.mark.parametrize(
    ("grid", "block", "shared", "text"),
    [
        ((0, 1, 1), (1, 1, 1), 0, "a grid of (0,1,1) blocks; it may be "),
        ((1, 65536, 1), (1, 1, 1), 0, "a grid of (1,65536,1) blocks; it may be "),
        ((1, 1, 1), (1025, 1, 1), 0, "a block of (1025,1,1) threads; it may be "),
        ((1, 1, 1), (32, 32, 2), 0, "a block of (32,32,2) threads; it may be "),
        ((1, 1, 1), (1, 1, 65), 0, "a block of (1,1,65) threads; it may be "),
        ((1, 1, 1), (1, 1, 1), 49153, "49153 bytes of shared memory, 49152 allowed"),
    ],
)
def test_launches_that_are_refused(
    emulated_device: Device,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    text: str,
):
    options = CudaOptions()
    cubin = compile_cuda(SOURCE, emulated_device.architecture, emulated_device.libraries, options)
    with emulated_device.in_use():
        function = emulated_device.load(cubin).function("fine")
        stream = emulated_device.stream()
        memory = emulated_device.memory.take(1024)
        with pytest.raises(CudaError) as caught:
            stream.launch(function, grid, block, Arguments([], [memory]), shared)
        assert f"CUDA_ERROR_INVALID_VALUE (1): invalid argument: {text}" in caught.value.message
        assert not caught.value.breaks_context
        if shared:
            function.allow_shared_bytes(shared)
            stream.launch(function, grid, block, Arguments([], [memory]), shared)
            with pytest.raises(CudaError, match="232449 bytes of dynamic shared memory beside"):
                function.allow_shared_bytes(232449)
        stream.synchronize()


def test_static_shared_memory_over_the_limit(emulated_device: Device):
    source = (
        'extern "C" __global__ void k(float *y) { __shared__ float s[12289];'
        " s[threadIdx.x] = y[0]; __syncthreads(); y[threadIdx.x] = s[0]; }"
    )
    with pytest.raises(UopcError) as caught:
        compile_cuda(source, emulated_device.architecture, emulated_device.libraries, CudaOptions())
    assert caught.value.kind == "compile-failed"
    assert (
        "ptxas error   : Entry function 'k' uses too much shared data (0xc004 bytes, 0xc000 max)"
    ) in caught.value.hint


def test_source_that_does_not_compile(cuda_device: Device):
    with pytest.raises(UopcError) as caught:
        compile_cuda(
            '\nextern "C" __global__ void k() { nonsense(); }',
            cuda_device.architecture,
            cuda_device.libraries,
            CudaOptions(),
        )
    assert caught.value.kind == "compile-failed"
    assert re.search(r"plan\.cu[:(]2.*nonsense", caught.value.hint)
    kept = Path(caught.value.message.rsplit("kept in ", 1)[1])
    assert "nonsense" in kept.read_text(encoding="utf-8")


def test_a_kernel_that_is_not_there(cuda_device: Device):
    cubin = compile_cuda(SOURCE, cuda_device.architecture, cuda_device.libraries, CudaOptions())
    with cuda_device.in_use():
        module = cuda_device.load(cubin)
        for name in ("nothing", "not_c"):
            with pytest.raises(UopcError) as caught:
                module.function(name)
            assert caught.value.kind == "missing-symbol"
        with pytest.raises(UopcError, match="has no 'nowhere'"):
            module.address("nowhere")


def test_code_for_another_machine(emulated_device: Device):
    for_a_gpu = bytearray(b"\x7fELF\x02\x01\x01" + bytes(57))
    for_a_gpu[18:20] = (190).to_bytes(2, "little")
    with emulated_device.in_use():
        with pytest.raises(CudaError) as caught:
            emulated_device.load(bytes(for_a_gpu))
        assert caught.value.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"
        with pytest.raises(CudaError) as caught:
            emulated_device.load(b"nonsense")
        assert caught.value.name == "CUDA_ERROR_INVALID_IMAGE"


def test_names_of_the_c_library_are_free(emulated_device: Device):
    """A kernel may be called what libc calls a function of its own."""
    source = 'extern "C" __global__ void write(float *y) { y[threadIdx.x] = 3.0f; }'
    cubin = compile_cuda(
        source, emulated_device.architecture, emulated_device.libraries, CudaOptions()
    )
    with emulated_device.in_use():
        function = emulated_device.load(cubin).function("write")
        stream, memory = emulated_device.stream(), emulated_device.memory.take(16)
        stream.launch(function, (1, 1, 1), (4, 1, 1), Arguments([], [memory]))
        result = np.empty(4, np.float32)
        stream.copy_out(result.ctypes.data, memory, 16)
        stream.synchronize()
    np.testing.assert_array_equal(result, 3)
