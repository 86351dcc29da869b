"""The CUDA emitter on gpu programs that others wrote: run on the emulator, refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.frontend.compile import read_program
from uopc.lowering.cuda import CudaSource, emit_cuda
from uopc.lowering.plan import Buffer, KernelCall, LaunchConfig, Plan, Program
from uopc.runtime.cuda_compile import CudaOptions
from uopc.runtime.cuda_executable import CudaExecutable, load_cuda_program

PROGRAM = Path(__file__).parents[1] / "filecheck" / "lowering" / "cuda.mlir"


@pytest.fixture(autouse=True)
def emulator(cache_folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("UOPC_CUDA", "emulator")
    yield


def emit(text: str) -> CudaSource:
    return emit_cuda(read_program(text))


def kernel(body: str, arguments: str = "", types: str = "", name: str = "k") -> str:
    return f"""
"gpu.module"() <{{sym_name = "m"}}> ({{
  "gpu.func"() <{{function_type = ({types}) -> (), kernel}}> ({{
  ^bb0({arguments}):
    {body}
    "gpu.return"() : () -> ()
  }}) {{sym_name = "{name}"}} : () -> ()
}}) : () -> ()"""


def loaded(
    source: CudaSource,
    symbol: str,
    buffers: list[tuple[str, tuple[int, ...]]],
    config: LaunchConfig,
) -> CudaExecutable:
    """A plan of one launch: all buffers but the last are inputs, which the last repeats."""
    inputs = tuple(Buffer(f"in{k}", f"in{k}", t, s) for k, (t, s) in enumerate(buffers[:-1]))
    (dtype, shape) = buffers[-1]
    output = Buffer("out0", "out0", dtype, shape)
    refs = (*(b.ref for b in inputs), "out0")
    plan = Plan(
        "plan",
        inputs=inputs,
        outputs=(output,),
        kernels=(KernelCall(symbol, symbol, refs, 1, 0, 0),),
    )
    program = Program(source.text, "cuda", (plan,), names=source.names, launches={symbol: config})
    return load_cuda_program(program, options=CudaOptions(check=True), debug=0)


NUMBERS = """
    %bx = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
    %by = "gpu.block_id"() <{dimension = #gpu<dim y>}> : () -> index
    %tx = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %ty = "gpu.thread_id"() <{dimension = #gpu<dim y>}> : () -> index
    %dx = "gpu.block_dim"() <{dimension = #gpu<dim x>}> : () -> index
    %dy = "gpu.block_dim"() <{dimension = #gpu<dim y>}> : () -> index
    %gx = "gpu.grid_dim"() <{dimension = #gpu<dim x>}> : () -> index
    %i = "gpu.global_id"() <{dimension = #gpu<dim x>}> : () -> index
    %j = "gpu.global_id"() <{dimension = #gpu<dim y>}> : () -> index
    %lane = "gpu.lane_id"() : () -> index
    %warp = "gpu.subgroup_id"() : () -> index
    %size = "gpu.subgroup_size"() : () -> index
    %0 = arith.muli %gx, %dx : index
    %1 = arith.muli %j, %0 : index
    %at = arith.addi %1, %i : index
    %2 = arith.muli %by, %dy : index
    %3 = arith.addi %2, %ty : index
    %4 = arith.cmpi eq, %3, %j : index
    %5 = arith.muli %bx, %dx : index
    %6 = arith.addi %5, %tx : index
    %7 = arith.cmpi eq, %6, %i : index
    %8 = arith.andi %4, %7 : i1
    %9 = arith.muli %warp, %size : index
    %10 = arith.addi %9, %lane : index
    %11 = arith.constant -1 : index
    %12 = arith.select %8, %10, %11 : index
    %13 = arith.index_cast %12 : index to i64
    memref.store %13, %o[%at] : memref<?xi64>"""


def test_numbers_of_threads_and_blocks():
    source = emit(kernel(NUMBERS, "%o: memref<?xi64>", "memref<?xi64>"))
    executable = loaded(source, "k", [("i64", (6, 96))], LaunchConfig((3, 2, 1), (32, 3, 1)))
    thread = np.arange(32) + 32 * np.arange(3)[:, None]
    np.testing.assert_array_equal(executable(), np.tile(thread, (2, 3)))


def test_a_launch_inside_of_a_function_becomes_a_kernel():
    source = emit(PROGRAM.read_text())
    executable = loaded(
        source, "fill_kernel", [("i32", (64,))], LaunchConfig((2, 1, 1), (32, 1, 1))
    )
    np.testing.assert_array_equal(executable(), np.full(64, 7))


ACROSS = """
    %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
    %v = memref.load %x[%t] : memref<32xTYPE>
    %by = arith.constant BY : i32
    %width = arith.constant WIDTH : i32
    %r, %ok = "gpu.shuffle"(%v, %by, %width) <{mode = #gpu<shuffle_mode MODE>}>
      : (TYPE, i32, i32) -> (TYPE, i1)
    memref.store %r, %o[%t] : memref<32xTYPE>"""


@pytest.mark.parametrize(
    ("mode", "by", "width", "source_lane"),
    [
        ("xor", 5, 32, lambda t: t ^ 5),
        ("idx", 3, 8, lambda t: t // 8 * 8 + 3),
        ("up", 2, 16, lambda t: np.where(t % 16 < 2, t, t - 2)),
        ("down", 1, 32, lambda t: np.where(t == 31, t, t + 1)),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i8", "i1", "i64"])
def test_shuffles(mode: str, by: int, width: int, source_lane, dtype: str):
    from uopc.dialects.element_types import element_type_named

    text = ACROSS.replace("MODE", mode).replace("BY", str(by)).replace("WIDTH", str(width))
    memref = f"memref<32x{dtype}>"
    body = text.replace("TYPE", dtype)
    source = emit(kernel(body, f"%x: {memref}, %o: {memref}", f"{memref}, {memref}"))
    x = (np.arange(32) * 3 % 7).astype(element_type_named(dtype).numpy)
    executable = loaded(source, "k", [(dtype, (32,))] * 2, LaunchConfig((1, 1, 1), (32, 1, 1)))
    np.testing.assert_array_equal(executable(x), x[source_lane(np.arange(32))])


HELPERS = """
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %a = memref.load %x[%zero] : memref<2xTYPE>
    %b = memref.load %x[%one] : memref<2xTYPE>
    %0 = arith.floordivsi %a, %b : TYPE
    %1 = arith.remsi %a, %b : TYPE
    %2 = arith.shli %a, %b : TYPE
    %3 = arith.shrsi %a, %b : TYPE
    %4 = math.ctlz %a : TYPE
    %5 = math.cttz %a : TYPE
    %6 = math.ctpop %a : TYPE
    %7 = math.ipowi %a, %b : TYPE
    %8 = arith.maxui %a, %b : TYPE"""


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integer_helpers_are_those_of_c(bits: int):
    """The text of the helpers differs from C's; what they compute does not."""
    from uopc.lowering.plan import KernelCall as Call
    from uopc.runtime.executable import load_program

    results = range(9)
    stores = "".join(
        f"\n    %c{k} = arith.constant {k} : index"
        f"\n    memref.store %{k}, %o[%c{k}] : memref<9xi{bits}>"
        for k in results
    )
    body = HELPERS.replace("TYPE", f"i{bits}") + stores
    types = f"memref<2xi{bits}>, memref<9xi{bits}>"
    source = emit(kernel(body, f"%x: memref<2xi{bits}>, %o: memref<9xi{bits}>", types))
    buffers = [(f"i{bits}", (2,)), (f"i{bits}", (9,))]
    executable = loaded(source, "k", buffers, LaunchConfig((1, 1, 1), (1, 1, 1)))
    from uopc.lowering.c import emit_c

    function = (
        f"func.func @k(%x: memref<2xi{bits}>, %o: memref<9xi{bits}>) {{ {body} func.return }}"
    )
    text = emit_c(read_program(function))
    plan = Plan(
        "k",
        inputs=(Buffer("in0", "x", f"i{bits}", (2,)),),
        outputs=(Buffer("out0", "o", f"i{bits}", (9,)),),
        kernels=(Call("k", "k", ("in0", "out0"), 1, 0, 0),),
    )
    plain = load_program(Program(text.text, "c", (plan,), names=text.names), debug=0)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    for a, b in [(7, 2), (-7, 2), (7, 0), (low, -1), (high, high), (0, 5), (-1, bits), (low, 1)]:
        x = np.array([a, b], f"i{bits // 8}")
        np.testing.assert_array_equal(executable(x), plain(x), f"{a}, {b}")


@pytest.mark.parametrize("name", ["float4", "threadIdx", "half", "for", "a b", "é", "int3", "x$1"])
def test_names_that_mean_something_in_cuda(name: str):
    body = '%t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index\n'
    body += "memref.store %t, %o[%t] : memref<32xindex>"
    source = emit(kernel(body, "%o: memref<32xindex>", "memref<32xindex>", name))
    executable = loaded(source, name, [("i64", (32,))], LaunchConfig((1, 1, 1), (32, 1, 1)))
    np.testing.assert_array_equal(executable(), np.arange(32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f() { func.return }", "the module has no kernel"),
        (kernel('%0 = "strange.op"() : () -> i32'), "not a registered op"),
        (
            kernel(
                "%0 = memref.alloc() : memref<4xf32>\nmemref.store %x, %0[%n] : memref<4xf32>",
                "%x: f32, %n: index",
                "f32, index",
            ),
            "memref.alloc",
        ),
        (
            kernel(
                '%0 = "gpu.all_reduce"(%x) <{op = #gpu<all_reduce_op add>}> ({}) : (f32) -> f32\n'
                '%1 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index\n'
                "memref.store %0, %o[%1] : memref<4xf32>",
                "%x: f32, %o: memref<4xf32>",
                "f32, memref<4xf32>",
            ),
            "order in which it combines",
        ),
        (
            kernel(
                "%0 = memref.alloca(%n) : memref<?xf32, #gpu.address_space<workgroup>>\n"
                '%1 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index\n'
                "%2 = memref.load %0[%1] : memref<?xf32, #gpu.address_space<workgroup>>\n"
                "memref.store %2, %o[%1] : memref<4xf32>",
                "%n: index, %o: memref<4xf32>",
                "index, memref<4xf32>",
            ),
            "known at run time only",
        ),
        (
            kernel(
                "%0 = vector.load %o[%n] : memref<4xf32>, vector<8xf32>\n"
                "vector.store %0, %o[%n] : memref<4xf32>, vector<8xf32>",
                "%n: index, %o: memref<4xf32>",
                "index, memref<4xf32>",
            ),
            "vector<8xf32> has no form in CUDA",
        ),
        (
            kernel(
                "memref.prefetch %o[%n], read, locality<3>, data : memref<4xf32>",
                "%n: index, %o: memref<4xf32>",
                "index, memref<4xf32>",
            ),
            "memref.prefetch.*has no form in CUDA",
        ),
    ],
)
def test_what_has_no_form_in_cuda_is_named(text: str, message: str):
    from xdsl.parser import Parser

    from uopc.dialects.registry import make_context

    module = Parser(make_context(allow_unregistered=True), text).parse_module()
    with pytest.raises(UopcError, match=message) as caught:
        emit_cuda(module)
    assert caught.value.kind == "unsupported-in-cuda"
    assert caught.value.hint
