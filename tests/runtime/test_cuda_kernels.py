"""The same kernels on the emulator and, where one is found, on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from uopc.runtime.cuda_compile import CudaOptions, compile_cuda
from uopc.runtime.cuda_driver import Arguments, Device, Extents, Module, current_device

SOURCE = (Path(__file__).parent / "kernels.cu").read_text(encoding="utf-8")
RANDOM = np.random.default_rng(3)
Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(params=["plain", "checked"])
def module(cuda_device: Device, request: pytest.FixtureRequest) -> Iterator[Module]:
    options = CudaOptions(check=request.param == "checked")
    cubin = compile_cuda(SOURCE, cuda_device.architecture, cuda_device.libraries, options)
    with cuda_device.in_use():
        loaded = cuda_device.load(cubin)
        yield loaded
        loaded.unload()


def run(
    module: Module,
    name: str,
    grid: Extents,
    block: Extents,
    integers: Sequence[int],
    arrays: Sequence[Array],
    shared_bytes: int = 0,
) -> list[Array]:
    """Launch a kernel on copies of `arrays`; what they hold afterwards."""
    device = current_device()
    stream = device.stream()
    blocks = [device.memory.take(array.nbytes) for array in arrays]
    for block_start, array in zip(blocks, arrays, strict=True):
        stream.copy_in(block_start, array.ctypes.data, array.nbytes)
    arguments = Arguments(integers, blocks)
    stream.launch(module.function(name), grid, block, arguments, shared_bytes)
    results = [np.empty_like(array) for array in arrays]
    for block_start, result in zip(blocks, results, strict=True):
        stream.copy_out(result.ctypes.data, block_start, result.nbytes)
    stream.synchronize()
    stream.destroy()
    for block_start, array in zip(blocks, arrays, strict=True):
        device.memory.give(block_start, array.nbytes)
    return results


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape, np.float32)


@pytest.mark.parametrize("count", [1, 31, 256, 1000, 100_001])
def test_copy(module: Module, count: int):
    x = floats(count)
    _, y = run(module, "copy", (3, 1, 1), (256, 1, 1), [count], [x, np.zeros_like(x)])
    np.testing.assert_array_equal(y, x)


def test_constants(module: Module):
    x = floats(10)
    address = module.address("scale")
    device = current_device()
    stream = device.stream()
    scale, y = np.empty(4, np.float32), np.empty_like(x)
    blocks = [device.memory.take(x.nbytes) for _ in range(2)]
    stream.copy_in(blocks[0], x.ctypes.data, x.nbytes)
    arguments = Arguments([10], [blocks[0], address, blocks[1]])
    stream.launch(module.function("scaled"), (1, 1, 1), (32, 1, 1), arguments)
    stream.copy_out(scale.ctypes.data, address, scale.nbytes)
    stream.copy_out(y.ctypes.data, blocks[1], y.nbytes)
    stream.synchronize()
    np.testing.assert_array_equal(scale, [1, 2, 3, 4])
    exact = x.astype(np.float64) * np.resize(scale, 10) + 0.5
    np.testing.assert_array_equal(y, exact.astype(np.float32))


def test_tiled_product(module: Module):
    a, b = floats(128, 64), floats(64, 192)
    c = np.zeros((128, 192), np.float32)
    *_, c = run(module, "product", (3, 2, 1), (256, 1, 1), [128, 192, 64], [a, b, c])
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)


def test_softmax_by_shuffles(module: Module):
    x = floats(7, 777)
    _, y = run(module, "softmax", (7, 1, 1), (256, 1, 1), [777], [x, x * 0], 777 * 4)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, exact / exact.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (100, 70), (32, 64), (33, 31)])
def test_transpose(module: Module, rows: int, columns: int):
    x, y = floats(rows, columns), np.zeros((columns, rows), np.float32)
    grid = (-(-columns // 32), -(-rows // 32), 1)
    _, y = run(module, "transpose", grid, (32, 8, 1), [rows, columns], [x, y])
    np.testing.assert_array_equal(y, x.T)


def test_matrix_fragments(module: Module):
    a, b = floats(48, 64).astype(np.float16), floats(16, 64).astype(np.float16)
    c = np.zeros((48, 16), np.float32)
    *_, c = run(module, "matrix", (3, 1, 1), (32, 1, 1), [64], [a, b, c])
    exact = 2 * (a.astype(np.float64) @ b.astype(np.float64).T)
    np.testing.assert_allclose(c, exact, rtol=1e-4, atol=1e-4)


def test_half_types(module: Module):
    """Every f16 once, zeros, infinities and subnormals too; NaN for NaN."""
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    y = RANDOM.permutation(x)
    arrays = [x, y, np.zeros_like(x), np.zeros(65536, ml_dtypes.bfloat16)]
    _, _, z, b = run(module, "halves", (256, 1, 1), (256, 1, 1), [65536], arrays)
    with np.errstate(all="ignore"):
        total = (x + y).astype(np.float64)
        # An f64 holds the product, and the sum to more than twice an f16's bits.
        exact = (x.astype(np.float64) * y.astype(np.float64) + total).astype(np.float16)
        product = (x.astype(np.float32) * y.astype(np.float32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(z, exact)
    np.testing.assert_array_equal(b.astype(np.float32), product.astype(np.float32))


def test_atomics(module: Module):
    x = RANDOM.integers(0, 1000, 1000).astype(np.int32)
    arrays = [
        x,
        np.zeros(8, np.int32),
        np.array([1 << 30, -1], np.int32),
        np.zeros(1, np.float32),
        np.zeros(1, np.float64),
        np.zeros(1, np.uint64),
    ]
    _, counts, extremes, total, precise, wide = run(
        module, "atomics", (4, 1, 1), (256, 1, 1), [1000], arrays
    )
    np.testing.assert_array_equal(counts, np.bincount(x & 7, minlength=8))
    np.testing.assert_array_equal(extremes, [x.min(), x.max()])
    assert total[0] == precise[0] == wide[0] == x.sum()


def test_warp_operations(module: Module):
    x = np.arange(64, dtype=np.int32)
    _, y, wide = run(
        module,
        "warps",
        (1, 1, 1),
        (64, 1, 1),
        [],
        [x, np.zeros((64, 8), np.int32), np.zeros(64, np.uint64)],
    )
    group, lane = x // 8 * 8, x % 8
    np.testing.assert_array_equal(y[:, 0], group + 3)
    np.testing.assert_array_equal(y[:, 1], np.where(lane < 1, x, x - 1))
    np.testing.assert_array_equal(y[:, 2], np.where(lane > 5, x, x + 2))
    np.testing.assert_array_equal(y[:, 3], x ^ 5)
    np.testing.assert_array_equal(y[:, 4].view(np.uint32), 0xAAAAAAAA)
    np.testing.assert_array_equal(y[:, 5], 1)
    np.testing.assert_array_equal(y[:, 6], x >= 32)
    np.testing.assert_array_equal(y[:, 7], 32)
    np.testing.assert_array_equal(wide, (x ^ 1).astype(np.uint64) << np.uint64(40))


def test_asynchronous_copies(module: Module):
    x = floats(5, 128)
    _, y = run(module, "pipeline", (1, 1, 1), (32, 1, 1), [5], [x, np.zeros(32, np.float32)])
    expected = np.zeros(32, np.float32)
    for row in x:
        expected += row[::-1][::4]
    np.testing.assert_array_equal(y, expected)


def test_grids_and_blocks_of_three_dimensions(module: Module):
    (out,) = run(module, "places", (2, 3, 4), (3, 4, 5), [], [np.zeros((24, 60), np.int32)])
    np.testing.assert_array_equal(out, np.arange(24)[:, None] * 1000 + np.arange(60))


def test_emulated_product_of_256_takes_less_than_two_seconds(emulated_device: Device):
    cubin = compile_cuda(
        SOURCE, emulated_device.architecture, emulated_device.libraries, CudaOptions()
    )
    a, b = floats(256, 256), floats(256, 256)
    with emulated_device.in_use():
        module = emulated_device.load(cubin)
        start = time.perf_counter()
        *_, c = run(module, "product", (4, 4, 1), (256, 1, 1), [256] * 3, [a, b, a * 0])
        assert time.perf_counter() - start < 2
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


def test_single_roundings(cuda_device: Device, bits_of: Callable[[str], Array]):
    """A product and a sum are two roundings; fmaf is one; conversions saturate."""
    exact = bits_of(
        "volatile float a = 1.0f + 0x1p-12f, b = a, c = -1.0f;"
        "y[0] = a * b + c; y[1] = fmaf(a, b, c); y[2] = 1.0f / 3.0f; y[3] = sqrtf(2.0f);"
        "volatile float big = 3e9f; y[4] = (float)__float2int_rz(big);"
        "y[5] = (float)__float2uint_rn(-big); y[6] = 0x1p-140f * 0.5f;"
        "y[7] = (float)__float2int_rn(2.5f);"
    )
    one = np.float32(1) + np.float32(2.0**-12)
    np.testing.assert_array_equal(
        exact,
        np.array(
            [
                one * one - np.float32(1),
                float(one) * float(one) - 1,
                np.float32(1) / np.float32(3),
                np.sqrt(np.float32(2)),
                2147483647,
                0,
                2.0**-141,
                2,
            ],
            np.float32,
        ),
    )


@pytest.fixture
def bits_of(cuda_device: Device) -> Callable[[str], Array]:
    """What eight floats hold after statements that one thread runs."""

    def evaluate(statements: str) -> Array:
        source = f'extern "C" __global__ void k(float *y) {{ {statements} }}'
        cubin = compile_cuda(source, cuda_device.architecture, cuda_device.libraries, CudaOptions())
        with cuda_device.in_use():
            return run(
                cuda_device.load(cubin), "k", (1, 1, 1), (1, 1, 1), [], [np.zeros(8, np.float32)]
            )[0]

    return evaluate
