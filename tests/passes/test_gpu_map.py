"""gpu-map and linearize for GPUs: what kernels of every shape compute on the emulator, and in which
order sums are taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import symbol
from uopc.frontend.compile import CompileRequest, compile_request, lower, read_program
from uopc.frontend.compile import compile as compile_program
from uopc.runtime.cuda_compile import CudaOptions
from uopc.runtime.cuda_executable import CudaExecutable, load_cuda_program
from uopc.runtime.debug import kernel_source

Array = np.ndarray[Any, np.dtype[Any]]
RANDOM = np.random.default_rng(11)
SHAPED = "apply-schedule,linearize,lower-plan,expand-math"


@pytest.fixture(autouse=True)
def emulator(cache_folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("UOPC_CUDA", "emulator")
    yield


def on_gpu(program: Any, **options: Any) -> CudaExecutable:
    """Compiled with all checks of the emulator."""
    lowered = lower(read_program(program), CompileRequest(target="cuda", **options))
    return load_cuda_program(lowered.cuda_program(), options=CudaOptions(check=True), debug=0)


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


def tree_sum(x: Array, lanes: int) -> np.float32:
    """A sum in the order of the GPU's: a chain a lane, then halves of warps, then of their sums."""
    lane = np.zeros(lanes, np.float32)
    for start in range(0, x.size, lanes):
        part = x[start : start + lanes]
        lane[: part.size] += part
    for count in (min(lanes, 32), lanes // 32):
        number = np.arange(lane.size)
        step = count // 2
        while step:
            lane = lane + lane[number ^ step]
            step //= 2
        lane = lane[::32]
    return lane[0]


def lanes_of(executable: CudaExecutable, symbol_: str) -> int:
    """How many threads share a row: those of a block, or of a warp where rows share a block."""
    program = executable.program
    threads = program.launches[symbol_].block[0]
    assert isinstance(threads, int)
    source = kernel_source(executable.source, program.names[symbol_])
    return threads if "sums" in source else min(threads, 32)


# -- order of sums ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3, 5, 300])
def test_rows_are_summed_in_the_order_of_the_tree(graph, rows: int):
    shapes = [(rows, columns) for columns in (33, 64, 1000, 1025, 3000)]
    module = graph.module(*(graph.reduce("add", graph.input("x", s), 1) for s in shapes))
    executable = on_gpu(module)
    arrays = [floats(*s) for s in shapes]
    calls = executable.plan.kernels
    assert len(calls) == len(shapes)
    for a, got, call in zip(arrays, executable(*arrays), calls, strict=True):
        lanes = lanes_of(executable, call.symbol)
        assert lanes >= 32
        np.testing.assert_array_equal(got, np.array([tree_sum(row, lanes) for row in a]))


def test_all_elements_are_summed_by_one_block(graph):
    counts = (2, 31, 63, 64, 100, 5000, 30_000)
    module = graph.module(*(graph.reduce("add", graph.input("x", (n,)), 0) for n in counts))
    executable = on_gpu(module)
    arrays = [floats(n) for n in counts]
    for a, got, call in zip(arrays, executable(*arrays), executable.plan.kernels, strict=True):
        lanes = lanes_of(executable, call.symbol)
        assert (lanes > 1) == (a.size >= 32)
        assert got == (tree_sum(a, lanes) if lanes > 1 else np.cumsum(a, dtype=np.float32)[-1])


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i32", "i64", "i8", "ui8", "i1"])
def test_reductions_of_all_types(graph, dtype: str):
    from uopc.dialects.element_types import element_type_named

    row = element_type_named(dtype)
    x = graph.input("x", (5, 1100), dtype)
    kinds = ("add", "max", "min", "mul")
    module = graph.module(*(graph.reduce(kind, x, axis) for kind in kinds for axis in (0, 1)))
    a = (RANDOM.integers(0, 3, (5, 1100)) - (row.kind in ("signed", "float"))).astype(row.numpy)
    got = on_gpu(module)(a)
    expected = compile_program(module, "interpreter")(a)
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_array_equal(g, e)


def test_a_nan_wins_in_every_lane(graph):
    columns = (1, 7, 32, 100, 1024, 1030)
    inputs = [graph.input("x", (6, n)) for n in columns]
    results = [graph.reduce(kind, x, 1) for x in inputs for kind in ("max", "min")]
    arrays = [floats(6, n) for n in columns]
    for a in arrays:
        for row in range(5):
            a[row, row * (a.shape[1] - 1) // 4] = np.nan
    got = on_gpu(graph.module(*results))(*arrays)
    for a, largest, smallest in zip(arrays, got[::2], got[1::2], strict=True):
        assert np.isnan(largest[:5]).all() and np.isnan(smallest[:5]).all()
        assert (largest[5], smallest[5]) == (a[5].max(), a[5].min())


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i64", "i8", "ui8"])
def test_positions_of_the_first_extremes(dtype: str):
    """Few distinct numbers, so that many lanes have equals; NaNs, infinities, both zeros."""
    from uopc.dialects.element_types import element_type_named

    row = element_type_named(dtype)
    shapes = ((6, 7), (5, 700), (3, 5000))
    inputs = ", ".join(f"%x{k}: tensor<{m}x{n}x{dtype}>" for k, (m, n) in enumerate(shapes))
    lines = [
        f"%r{k}{kind} = utensor.argreduce {kind} %x{k} axis 1 : "
        f"tensor<{m}x{n}x{dtype}> -> tensor<{m}xi32>"
        for k, (m, n) in enumerate(shapes)
        for kind in ("max", "min")
    ]
    names = ", ".join(line.split(" ")[0] for line in lines)
    types = ", ".join(line.split("-> ")[1] for line in lines)
    text = f"func.func @f({inputs}) -> ({types}) {{\n" + "\n".join(lines)
    text += f"\nfunc.return {names} : {types}\n}}"
    arrays = []
    for m, n in shapes:
        a = RANDOM.integers(0, 3, (m, n)).astype(np.float64)
        if row.is_float:
            a = np.where(a == 0, -0.0, a - 1)
            a[0], a[1] = -np.inf, np.inf
            a[2, n // 2 :: 2] = np.nan
        arrays.append(a.astype(row.numpy))
    executable = on_gpu(text)
    assert any(launch.block[0] > 1 for launch in executable.program.launches.values())
    assert "__shfl_xor_sync" in executable.source
    for got, expected in zip(
        executable(*arrays), compile_program(text, "interpreter")(*arrays), strict=True
    ):
        np.testing.assert_array_equal(got, expected)


# -- kernels of several reductions -----------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 40), (64, 128), (2, 1500), (300, 33)])
def test_softmax_in_one_kernel(graph, rows: int, columns: int):
    module = graph.module(graph.softmax(graph.input("x", (rows, columns))))
    executable = on_gpu(module, fuse_reduce="all")
    assert len(executable.plan.kernels) == 1
    a = floats(rows, columns)
    e = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    np.testing.assert_allclose(executable(a), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_rows_of_a_symbolic_number_and_length(graph):
    n, m = symbol("n", 0, 70), symbol("m", 1, 2000)
    module = graph.module(graph.softmax(graph.input("x", (n, m))))
    executable = on_gpu(module, fuse_reduce="all")
    for rows, columns in [(0, 5), (1, 1), (7, 31), (70, 2000)]:
        a = floats(rows, columns)
        e = np.exp(a.astype(np.float64) - a.max(1, keepdims=True, initial=-np.inf))
        np.testing.assert_allclose(executable(a), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_reductions_along_any_axes(graph):
    axes = ((0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2))
    x = graph.input("x", (9, 20, 70), "i32")
    executable = on_gpu(graph.module(*(graph.reduce("add", x, *each) for each in axes)))
    a = RANDOM.integers(-9, 9, (9, 20, 70)).astype(np.int32)
    for each, got in zip(axes, executable(a), strict=True):
        np.testing.assert_array_equal(got, a.sum(each, dtype=np.int32))


def test_a_reduction_inside_of_a_reduction(graph):
    """Fused attention: each thread computes the inner ones by itself."""
    q = graph.input("q", (20, 40))
    k = graph.input("k", (40, 30))
    v = graph.input("v", (30, 10))
    module = graph.module(graph.matmul(graph.softmax(graph.matmul(q, k)), v))
    a, b, c = floats(20, 40), floats(40, 30), floats(30, 10)
    s = a.astype(np.float64) @ b
    e = np.exp(s - s.max(1, keepdims=True))
    expected = (e / e.sum(1, keepdims=True)) @ c
    for fuse_reduce in ("none", "all"):
        got = on_gpu(module, fuse_reduce=fuse_reduce)(a, b, c)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


# -- products --------------------------------------------------------------------------------------


SIZES = (
    (64, 64, 16),
    (65, 67, 33),
    (16, 16, 8),
    (17, 90, 100),
    (130, 64, 7),
    (1, 64, 64),
    (70, 80, 1),
)


@pytest.mark.parametrize("dtype", ["f32", "i32", "f16"])
def test_products(graph, dtype: str):
    from uopc.dialects.element_types import element_type_named

    row = element_type_named(dtype)
    results: list[Any] = []
    arrays: list[Array] = []
    sizes = SIZES[1:4] if dtype == "f16" else SIZES
    for m, n, k in sizes:
        shapes = ((m, k), (k, n))
        results.append(graph.matmul(*(graph.input("x", s, dtype) for s in shapes)))
        arrays += [RANDOM.integers(-3, 4, s).astype(row.numpy) for s in shapes]
    executable = on_gpu(graph.module(*results))
    got = executable(*arrays)
    for position, (m, n, k) in enumerate(sizes):
        a, b = arrays[2 * position : 2 * position + 2]
        exact = a.astype(np.int64) @ b.astype(np.int64)
        np.testing.assert_array_equal(got[position], exact.astype(row.numpy))
        name = executable.program.names[executable.plan.kernels[position].symbol]
        tiled = "__shared__" in kernel_source(executable.source, name)
        assert tiled == (min(m, n) >= 16 and k >= 8), (m, n, k)


def test_products_of_symbolic_sizes(graph):
    m, n, k = (symbol(s, 0, 200) for s in "mnk")
    executable = on_gpu(
        graph.module(graph.matmul(graph.input("a", (m, k)), graph.input("b", (k, n))))
    )
    assert "__shared__" in executable.source
    for sizes in [(1, 1, 1), (0, 4, 3), (5, 7, 0), (64, 64, 16), (131, 66, 37)]:
        a = RANDOM.integers(-3, 4, (sizes[0], sizes[2])).astype(np.float32)
        b = RANDOM.integers(-3, 4, (sizes[2], sizes[1])).astype(np.float32)
        np.testing.assert_array_equal(executable(a, b), a @ b)


def batched(graph, transposed: bool) -> Any:
    """sum over k of a[z, i, k] * b[z, k, j], or the result's transpose."""
    a, b = graph.input("a", (3, 70, 20)), graph.input("b", (3, 20, 65))
    wide_a = graph.expand(graph.reshape(a, 3, 70, 1, 20), 3, 70, 65, 20)
    turned = graph.reshape(graph.permute(b, 0, 2, 1), 3, 1, 65, 20)
    product = graph.op("mul", wide_a, graph.expand(turned, 3, 70, 65, 20))
    result = graph.reduce("add", product, 3)
    return graph.module(graph.permute(result, 0, 2, 1) if transposed else result)


@pytest.mark.parametrize("transposed", [False, True])
def test_batched_products(graph, transposed: bool):
    executable = on_gpu(batched(graph, transposed))
    a = RANDOM.integers(-3, 4, (3, 70, 20)).astype(np.float32)
    b = RANDOM.integers(-3, 4, (3, 20, 65)).astype(np.float32)
    expected = a @ b
    np.testing.assert_array_equal(
        executable(a, b), expected.transpose(0, 2, 1) if transposed else expected
    )
    product, *_ = executable.plan.kernels
    assert executable.program.launches[product.symbol].grid == (2, 2, 3)


def test_without_tiles_and_shared_rows_the_sums_are_the_same_numbers(graph):
    module = graph.module(graph.matmul(graph.input("a", (40, 50)), graph.input("b", (50, 30))))
    plain = "uopc-canonicalize,kernelize,rangeify,plan-memory,"
    plain += "gpu-map{products=false rows=false},apply-schedule,linearize,lower-plan,expand-math"
    a, b = (RANDOM.integers(-3, 4, s).astype(np.float32) for s in ((40, 50), (50, 30)))
    executable = on_gpu(module, pipeline=plain)
    assert "__shared__" not in executable.source
    np.testing.assert_array_equal(executable(a, b), a @ b)


# -- the same bits as C ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
def test_elementwise_results_are_those_of_c_to_the_bit(graph, dtype: str):
    from uopc.dialects.element_types import element_type_named

    names = ("exp", "log", "sin", "sqrt", "rsqrt", "recip", "erf", "round")
    x, y = graph.input("x", (7, 333), dtype), graph.input("y", (7, 333), dtype)
    results = [graph.op(name, x) for name in names]
    results += [graph.op(name, x, y) for name in ("add", "mul", "div", "max", "min", "mod")]
    module = graph.module(*results)
    row = element_type_named(dtype)
    a = np.concatenate([floats(6, 333) * 4, 10.0 ** RANDOM.uniform(-30, 30, (1, 333))])
    a[0, :6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40]
    b = floats(7, 333)
    with np.errstate(all="ignore"):
        a, b = a.astype(row.numpy), b.astype(row.numpy)
    got = compile_request(module, CompileRequest(target="cuda"))(a, b)
    expected = compile_request(module, CompileRequest(target="c"))(a, b)
    integer = f"u{row.bits // 8}"
    for name, g, e in zip([*names, "binary"] * 2, got, expected, strict=False):
        numbers = ~np.isnan(e.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(g.astype(np.float64)), ~numbers, name)
        np.testing.assert_array_equal(g.view(integer)[numbers], e.view(integer)[numbers], name)


# -- schedules by hand, and what is refused --------------------------------------------------------

COPY = """
ukernel.plan @copy ins(%x : memref<{0}x{0}xf32>) {{
  %o = ukernel.output : memref<{0}x{0}xf32>
  ukernel.launch @k ins(%x : memref<{0}x{0}xf32>) outs(%o : memref<{0}x{0}xf32>)
  ukernel.return %o : memref<{0}x{0}xf32>
}}
ukernel.kernel @k ins(%x : memref<{0}x{0}xf32>) outs(%o : memref<{0}x{0}xf32>)
    attributes {{target = "cuda", schedule = "{1}"}} {{
  %i = uloop.range {0}
  %j = uloop.range {0}
  %v = uloop.load %x[%j, %i] : memref<{0}x{0}xf32>
  uloop.store %v, %o[%i, %j] : memref<{0}x{0}xf32>
}}
"""


def transpose(size: int, schedule: str) -> CudaExecutable:
    return on_gpu(COPY.format(size, schedule), pipeline=SHAPED)


@pytest.mark.parametrize("size", [32, 64, 100])
def test_a_transpose_through_shared_memory(size: int):
    executable = transpose(
        size,
        "split i = i0:block i1:32; split j = j0:block j1:32; "
        "tile v over j1 i1 as a b in shared; split a = a0 a1:8:lane; mark b lane; "
        "split i1 = i2 i3:8:lane; mark j1 lane; order i0 j0 i2 i3 j1",
    )
    a = floats(size, size)
    np.testing.assert_array_equal(executable(a), a.T)
    assert "__syncthreads" in executable.source


def test_tiles_of_more_than_48_kilobytes_are_dynamic():
    executable = transpose(
        128, "tile v over i j as a b in shared; mark b lane; split j = j0 j1:128:lane"
    )
    (config,) = executable.program.launches.values()
    assert (config.shared_bytes, config.static_shared_bytes) == (65536, 0)
    a = floats(128, 128)
    np.testing.assert_array_equal(executable(a), a.T)


def test_a_tile_that_no_gpu_holds_is_refused_before_compiling():
    with pytest.raises(UopcError) as caught:
        transpose(300, "tile v over i j as a b in shared; mark b lane; split j = j0 j1:100:lane")
    assert caught.value.kind == "too-much-shared-memory"
    assert "360000 bytes" in caught.value.message
    assert "232448 on sm_90" in caught.value.message


def test_threads_of_a_block_are_bounded():
    a = floats(64, 64)
    schedule = "split i = i0 i1:8:lane; split j = j0:block j1:8:lane; order i1"
    np.testing.assert_array_equal(transpose(64, schedule)(a), a.T)
    with pytest.raises(UopcError, match="ask for 4096 threads") as caught:
        transpose(64, "mark i lane; mark j lane")
    assert caught.value.kind == "bad-lanes"


REDUCE = """
ukernel.kernel @k ins(%x : memref<8x64xf32>) outs(%o : memref<8xf32>)
    attributes {{target = "cuda", schedule = "{0}"}} {{
  %i = uloop.range 8
  %j = uloop.range 64 reduce
  %v = uloop.load %x[%i, %j] : memref<8x64xf32>
  %s = uloop.reduce add %v over (%j) : f32
  uloop.store %s, %o[%i] : memref<8xf32>
}}
"""


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("mark j block", "over blocks"),
        ("split i = i0 i1:2:lane; split j = j0 j1:64:lane; order i0 i1", "over 64 lanes"),
        ("split j = j0 j1:24:lane; split i = i0 i1:2:lane; order i0 i1", "over 24 lanes"),
    ],
)
def test_what_threads_cannot_reduce_is_refused(schedule: str, message: str):
    with pytest.raises(UopcError, match=message) as caught:
        lower_kernel(REDUCE.format(schedule))
    assert caught.value.kind == "bad-lanes"
    assert caught.value.hint


def test_a_region_with_an_order_of_its_own_is_refused():
    region = """%n = arith.constant 0.0 : f32
  %s = uloop.reduce %v init %n over (%j) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    uloop.yield %c : f32
  } : f32 -> f32"""
    text = REDUCE.replace("%s = uloop.reduce add %v over (%j) : f32", region.replace("{", "{{"))
    text = text.replace("  } : f32", "  }} : f32")
    with pytest.raises(UopcError, match="its steps have one order"):
        lower_kernel(text.format("split j = j0 j1:32:lane"))


def lower_kernel(text: str) -> None:
    from uopc.dialects.registry import make_context
    from uopc.passes.manager import run_passes
    from uopc.passes.registry import pass_factories
    from uopc.passes.resolve import resolve_pipeline

    passes = resolve_pipeline("apply-schedule,linearize", pass_factories())
    run_passes(make_context(), read_program(text), passes)


# -- programs as a whole ---------------------------------------------------------------------------


def test_indices_beyond_32_bits_are_computed_in_64(graph):
    n = symbol("n", 1, 1 << 36)
    x = graph.input("x", (n, 8))
    executable = on_gpu(graph.module(graph.op("add", x, x), graph.reduce("add", x, 1)))
    assert "int32_t" not in executable.source.partition("extern")[2]
    a = RANDOM.integers(-9, 9, (70, 8)).astype(np.float32)
    double, sums = executable(a)
    np.testing.assert_array_equal(double, a + a)
    np.testing.assert_array_equal(sums, a.sum(1))


def test_a_program_without_kernels(graph):
    executable = on_gpu(graph.module(graph.input("x", (3, 4))))
    a = floats(3, 4)
    np.testing.assert_array_equal(executable(a), a)


TWO_PLANS = """
func.func @first(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %c = utensor.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %y = utensor.add %x, %c : tensor<3xf32>
  func.return %y, %c : tensor<3xf32>, tensor<3xf32>
}
func.func @second(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = utensor.constant dense<[5.0, 6.0, 7.0]> : tensor<3xf32>
  %y = utensor.add %x, %c : tensor<3xf32>
  func.return %y : tensor<3xf32>
}
"""


def test_the_constants_of_several_plans_in_one_file():
    program = lower(read_program(TWO_PLANS), CompileRequest(target="cuda")).cuda_program()
    x = np.zeros(3, np.float32)
    first = load_cuda_program(program, "first", debug=0)(x)
    np.testing.assert_array_equal(first, [[1, 2, 3], [1, 2, 3]])
    np.testing.assert_array_equal(load_cuda_program(program, "second", debug=0)(x), [5, 6, 7])


@pytest.mark.parametrize("kind", ["add", "max", "set"])
def test_scatter_updates_in_order(kind: str):
    text = f"""
    func.func @f(%x: tensor<300xi32>, %at: tensor<50xi32>, %y: tensor<50xi32>) -> tensor<300xi32> {{
      %z = utensor.scatter {kind} %x, %at, %y axis 0
        : tensor<300xi32>, tensor<50xi32>, tensor<50xi32> -> tensor<300xi32>
      func.return %z : tensor<300xi32>
    }}"""
    inputs = (
        RANDOM.integers(-9, 9, 300).astype(np.int32),
        RANDOM.integers(-3, 40, 50).astype(np.int32),
        RANDOM.integers(-9, 9, 50).astype(np.int32),
    )
    expected = compile_program(text, "interpreter")(*inputs)
    np.testing.assert_array_equal(on_gpu(text)(*inputs), expected)
