"""Kernels for a GPU in the interpreter: numbers of threads, barriers, shuffles, shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.gpu_extensions import install
from uopc.dialects.locations import parse_text
from uopc.dialects.verification import verify_module
from uopc.interpreters.lanes import LANE_LIMIT
from uopc.interpreters.linear import run_linear

NAMES = ("bx", "by", "bz", "tx", "ty", "tz", "gx", "gy", "gz", "nx", "ny", "nz")
ARGUMENTS = ", ".join(f"%{name}: index" for name in NAMES)
SEGMENTS = "<{operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0>}>"


def launched(body, inputs="%x: memref<?xi32>", grid=(1, 1, 1), block=(32, 1, 1)):
    """A function @f whose body is one gpu.launch."""
    sizes = [*grid, *block]
    constants = [f"%s{k} = arith.constant {n} : index" for k, n in enumerate(sizes)]
    names = ", ".join(f"%s{k}" for k in range(6))
    indices = ", ".join(["index"] * 6)
    lines = "\n      ".join(body.strip().splitlines())
    setup = "\n    ".join(constants)
    return f"""
  func.func @f({inputs}) {{
    {setup}
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    "gpu.launch"({names}) {SEGMENTS} ({{
    ^bb0({ARGUMENTS}):
      {lines}
      "gpu.terminator"() : () -> ()
    }}) : ({indices}) -> ()
    func.return
  }}"""


def parse(text):
    install()
    module = parse_text(text)
    verify_module(module)
    return module


def run(text, *arrays):
    run_linear(parse(text), "f", arrays)
    return arrays[0]


NUMBERS = """
%0 = arith.muli %tz, %ny : index
%1 = arith.addi %0, %ty : index
%2 = arith.muli %1, %nx : index
%t = arith.addi %2, %tx : index
%3 = arith.muli %bz, %gy : index
%4 = arith.addi %3, %by : index
%5 = arith.muli %4, %gx : index
%b = arith.addi %5, %bx : index
%6 = arith.muli %nx, %ny : index
%7 = arith.muli %6, %nz : index
%8 = arith.muli %b, %7 : index
%i = arith.addi %8, %t : index
%v = arith.index_cast %i : index to i32
memref.store %v, %x[%i] : memref<?xi32>
"""


@pytest.mark.parametrize("grid", [(1, 1, 1), (3, 1, 1), (2, 3, 2), (500, 1, 1)])
@pytest.mark.parametrize("block", [(1, 1, 1), (33, 1, 1), (4, 5, 3), (16, 16, 2)])
def test_each_thread_knows_its_place(grid, block):
    count = int(np.prod(grid) * np.prod(block))
    x = run(launched(NUMBERS, grid=grid, block=block), np.zeros(count, np.int32))
    assert (x == np.arange(count)).all()


def test_more_threads_than_run_together():
    blocks = LANE_LIMIT // 256 * 2 + 3
    count = blocks * 256
    x = run(launched(NUMBERS, grid=(blocks, 1, 1), block=(256, 1, 1)), np.zeros(count, np.int32))
    assert (x == np.arange(count)).all()


def test_a_grid_without_blocks_does_nothing():
    assert run(launched(NUMBERS, grid=(0, 1, 1)), np.ones(4, np.int32)).tolist() == [1] * 4


def test_ops_that_tell_numbers():
    names = ("global_id", "thread_id", "block_id", "block_dim", "grid_dim")
    lines = [f'%n{k} = "gpu.{n}"() <{{dimension = #gpu<dim x>}}> : () -> index'
             for k, n in enumerate(names)]  # fmt: skip
    own = ("lane_id", "subgroup_id", "subgroup_size", "num_subgroups")
    lines += [f'%n{5 + k} = "gpu.{n}"() : () -> index' for k, n in enumerate(own)]
    for k in range(9):
        lines += [f"%c{k} = arith.constant {k} : index",
                  f"%v{k} = arith.index_cast %n{k} : index to i32",
                  f"memref.store %v{k}, %x[%c{k}, %n0] : memref<9x100xi32>"]  # fmt: skip
    text = launched("\n".join(lines), "%x: memref<9x100xi32>", grid=(2, 1, 1), block=(50, 1, 1))
    x = run(text, np.zeros((9, 100), np.int32))
    i = np.arange(100)
    expected = [i, i % 50, i // 50, 50 + 0 * i, 2 + 0 * i, i % 50 % 32, i % 50 // 32, 32 + 0 * i, 2]
    for got, want in zip(x, expected, strict=True):
        assert (got == want).all()


REVERSE = """
%s = memref.alloca() : memref<64xi32, #gpu.address_space<workgroup>>
%g = arith.muli %bx, %nx : index
%i = arith.addi %g, %tx : index
%v = memref.load %x[%i] : memref<?xi32>
memref.store %v, %s[%tx] : memref<64xi32, #gpu.address_space<workgroup>>
BARRIER
%last = arith.subi %nx, %one : index
%from = arith.subi %last, %tx : index
%r = memref.load %s[%from] : memref<64xi32, #gpu.address_space<workgroup>>
memref.store %r, %x[%i] : memref<?xi32>
"""
BARRIER = '"gpu.barrier"() : () -> ()'


@pytest.mark.parametrize("blocks", [1, 5])
def test_threads_of_a_block_share_memory(blocks):
    x = np.arange(64 * blocks, dtype=np.int32)
    text = launched(REVERSE.replace("BARRIER", BARRIER), grid=(blocks, 1, 1), block=(64, 1, 1))
    assert (run(text, x) == np.arange(64 * blocks).reshape(blocks, 64)[:, ::-1].ravel()).all()


def test_barriers_in_a_loop_that_all_threads_take():
    """Each round every thread adds its neighbour's number of the round before."""
    body = """
%s = memref.alloca() : memref<32xi32, #gpu.address_space<workgroup>>
%v = memref.load %x[%tx] : memref<?xi32>
memref.store %v, %s[%tx] : memref<32xi32, #gpu.address_space<workgroup>>
%rounds = arith.constant 5 : index
%n = arith.addi %tx, %one : index
%next = arith.remui %n, %nx : index
scf.for %k = %zero to %rounds step %one {
  "gpu.barrier"() : () -> ()
  %a = memref.load %s[%next] : memref<32xi32, #gpu.address_space<workgroup>>
  %b = memref.load %s[%tx] : memref<32xi32, #gpu.address_space<workgroup>>
  %c = arith.addi %a, %b : i32
  "gpu.barrier"() : () -> ()
  memref.store %c, %s[%tx] : memref<32xi32, #gpu.address_space<workgroup>>
}
%r = memref.load %s[%tx] : memref<32xi32, #gpu.address_space<workgroup>>
memref.store %r, %x[%tx] : memref<?xi32>
"""
    start = np.arange(32, dtype=np.int32) ** 2
    expected = start
    for _ in range(5):
        expected = expected + np.roll(expected, -1)
    assert (run(launched(body), start.copy()) == expected).all()


def shuffled(mode, offset, width=32):
    return f"""
%v = memref.load %x[%tx] : memref<?xi32>
%o = arith.constant {offset} : i32
%w = arith.constant {width} : i32
%r, %ok = "gpu.shuffle"(%v, %o, %w)
  <{{mode = #gpu<shuffle_mode {mode}>}}> : (i32, i32, i32) -> (i32, i1)
%none = arith.constant -1 : i32
%q = arith.select %ok, %r, %none : i32
memref.store %r, %x[%tx] : memref<?xi32>
memref.store %q, %y[%tx] : memref<?xi32>
"""


@pytest.mark.parametrize("width", [32, 8])
@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
def test_shuffles(mode, width):
    """Against the definition, lane by lane; the second result says whether there is such a lane."""
    offset = 3
    x, y = np.arange(64, dtype=np.int32) * 7, np.zeros(64, np.int32)
    text = launched(shuffled(mode, offset, width), "%x: memref<?xi32>, %y: memref<?xi32>",
                    block=(64, 1, 1))  # fmt: skip
    run(text, x, y)
    for t in range(64):
        first = t // width * width
        asked = {"xor": t ^ offset, "up": t - offset, "down": t + offset, "idx": first + offset}
        inside = first <= asked[mode] < first + width
        assert x[t] == 7 * (asked[mode] if inside else t)
        assert y[t] == (7 * asked[mode] if inside else -1)


def test_a_warp_may_branch_as_a_whole():
    half = """
%warp = arith.constant 32 : index
%low = arith.cmpi ult, %tx, %warp : index
scf.if %low {
  INSIDE
}
"""
    body = half.replace("INSIDE", shuffled("xor", 1).replace("\n", "\n  "))
    text = launched(body, "%x: memref<?xi32>, %y: memref<?xi32>", block=(64, 1, 1))
    x = run(text, np.arange(64, dtype=np.int32), np.zeros(64, np.int32))
    assert x.tolist() == [t ^ 1 for t in range(32)] + list(range(32, 64))


def test_threads_that_update_one_element_do_so_in_turn():
    body = """
%v = memref.load %y[%tx] : memref<32xi32>
%old = "memref.atomic_rmw"(%v, %x, %zero) <{kind = 1 : i64}> : (i32, memref<?xi32>, index) -> i32
memref.store %old, %y[%tx] : memref<32xi32>
"""
    y = np.arange(1, 33, dtype=np.int32)
    x = run(launched(body, "%x: memref<?xi32>, %y: memref<32xi32>"), np.zeros(1, np.int32), y)
    assert x.tolist() == [33 * 16]
    assert y.tolist() == [k * (k + 1) // 2 for k in range(32)]


KERNEL = """
"gpu.module"() <{sym_name = "kernels"}> ({
  func.func private @twice(%v: i32) -> i32 {
    %w = arith.addi %v, %v : i32
    func.return %w : i32
  }
  "gpu.func"() <{function_type = (index, memref<?xi32>) -> (), kernel}> ({
  ^bb0(%n: index, %x: memref<?xi32>):
    %i = "gpu.global_id"() <{dimension = #gpu<dim x>}> : () -> index
    %in = arith.cmpi ult, %i, %n : index
    scf.if %in {
      %v = memref.load %x[%i] : memref<?xi32>
      %w = func.call @twice(%v) : (i32) -> i32
      memref.store %w, %x[%i] : memref<?xi32>
    }
    "gpu.return"() : () -> ()
  }) {sym_name = "double"} : () -> ()
}) : () -> ()
func.func @f(%n: index, %g: index, %x: memref<?xi32>) {
  %one = arith.constant 1 : index
  %c = arith.constant THREADS : index
  "gpu.launch_func"(%g, %one, %one, %c, %one, %one, %n, %x)
    <{kernel = @kernels::@double,
      operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 0>}>
    : (index, index, index, index, index, index, index, memref<?xi32>) -> ()
  func.return
}
"""


def test_a_kernel_of_a_gpu_module_is_launched():
    x = np.arange(100, dtype=np.int32)
    run_linear(parse(KERNEL.replace("THREADS", "32")), "f", [90, 4, x])
    assert x.tolist() == [2 * k if k < 90 else k for k in range(100)]


def fails(kind, words, text, *arrays, size=32):
    arrays = arrays or (np.zeros(size, np.int32),)
    with pytest.raises(UopcError) as caught:
        run(text, *arrays)
    assert caught.value.kind == kind
    assert words in caught.value.message, caught.value.message
    return caught.value


def test_threads_that_touch_one_element_between_barriers():
    error = fails(
        "data-race",
        "'memref.load' touches an element of shared memory that another thread touches too",
        launched(REVERSE.replace("BARRIER", ""), block=(64, 1, 1)),
        size=64,
    )
    assert "gpu.barrier" in error.hint


def test_several_threads_that_write_one_element():
    body = """
%s = memref.alloca() : memref<1xi32, #gpu.address_space<workgroup>>
%v = arith.index_cast %tx : index to i32
memref.store %v, %s[%zero] : memref<1xi32, #gpu.address_space<workgroup>>
"""
    fails("data-race", "'memref.store'", launched(body))


def test_barriers_that_some_threads_do_not_reach():
    body = """
%c = arith.constant 40 : index
%some = arith.cmpi ult, %tx, %c : index
scf.if %some {
  "gpu.barrier"() : () -> ()
}
"""
    fails(
        "divergent-barrier",
        "40 of 64 threads of block 0 reach 'gpu.barrier', and the others do not",
        launched(body, grid=(3, 1, 1), block=(64, 1, 1)),
    )


def test_blocks_may_differ_in_their_barriers():
    body = """
%first = arith.cmpi eq, %bx, %zero : index
scf.if %first {
  "gpu.barrier"() : () -> ()
}
"""
    run(launched(body, grid=(3, 1, 1)), np.zeros(1, np.int32))


def test_shuffles_that_some_threads_do_not_reach():
    body = """
%c = arith.constant 16 : index
%some = arith.cmpi ult, %tx, %c : index
scf.if %some {
  INSIDE
}
""".replace("INSIDE", shuffled("xor", 1).replace("\n", "\n  "))
    text = launched(body, "%x: memref<?xi32>, %y: memref<?xi32>")
    arrays = (np.zeros(32, np.int32), np.zeros(32, np.int32))
    fails("divergent-shuffle", "16 of 32 threads of a warp reach 'gpu.shuffle'", text, *arrays)


def test_shuffles_from_threads_that_are_not_there():
    text = launched(shuffled("xor", 16), "%x: memref<?xi32>, %y: memref<?xi32>", block=(20, 1, 1))
    arrays = (np.zeros(32, np.int32), np.zeros(32, np.int32))
    fails("divergent-shuffle", "asks a thread beyond the 20 of its block", text, *arrays)


def test_accesses_outside_of_buffers_in_a_kernel():
    fails(
        "out-of-bounds",
        "'memref.store' touches [32] of a buffer of shape [32]",
        launched(NUMBERS, block=(33, 1, 1)),
    )


@pytest.mark.parametrize("threads", [0, 1025])
def test_blocks_of_too_few_or_too_many_threads(threads):
    module = parse(KERNEL.replace("THREADS", str(threads)))
    with pytest.raises(UopcError, match=f"1 x 1 x 1 blocks of {threads} x 1 x 1 threads"):
        run_linear(module, "f", [1, 1, np.zeros(4, np.int32)])


def test_ops_of_threads_outside_of_a_kernel():
    text = "func.func @f(%x: memref<?xi32>) {\n" + BARRIER + "\nfunc.return\n}"
    fails("not-interpreted", "'gpu.barrier' stands outside of a kernel", text)
