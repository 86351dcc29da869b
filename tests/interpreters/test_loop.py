"""The interpreter of kernels over ranges: each op, and the bits of the linear form."""

from __future__ import annotations

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.dialects.verification import verify_module
from uopc.interpreters.kernel import run_kernel
from uopc.interpreters.linear import LinearProgram
from uopc.interpreters.loop import is_over_ranges
from uopc.passes.linearize import linearize_kernel


def parse(text):
    module = parse_text(text)
    verify_module(module)
    return module


def kernel_of(module):
    return next(op for op in module.body.block.ops if isinstance(op, KernelOp))


def run(text, *buffers, **sizes):
    """Run a kernel, and what linearize makes of it: both give the same bits."""
    module = parse(text)
    kernel = kernel_of(module)
    assert is_over_ranges(kernel)
    inputs = kernel.inputs_count
    copies = [np.array(b) for b in buffers]
    run_kernel(kernel, sizes, list(buffers))
    module.body.block.add_ops(linearize_kernel(kernel))
    kernel.detach()
    LinearProgram(module).run(kernel.sym_name.data, [*sizes.values(), *copies])
    for ours, theirs in zip(buffers[inputs:], copies[inputs:], strict=True):
        unsigned = f"u{ours.dtype.itemsize}"
        both_nan = (ours != ours) & (theirs != theirs)
        assert ((ours.view(unsigned) == theirs.view(unsigned)) | both_nan).all()
    return buffers[inputs] if len(buffers) == inputs + 1 else buffers[inputs:]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def in_order(values, start=0.0):
    total = np.float32(start)
    for v in values:
        total = np.float32(total + v)
    return total


ROWS = """
ukernel.kernel @k ins(%x : memref<6x40xf32>) outs(%o : memref<6xf32>) {{
  %i = uloop.range 6
  %j = uloop.range 40 reduce
  %v = uloop.load %x[%i, %j] : memref<6x40xf32>
  %s = uloop.reduce {kind} %v over (%j) : f32
  uloop.store %s, %o[%i] : memref<6xf32>
}}
"""


def test_sums_go_from_step_to_step():
    x = numbers(6, 40)
    got = run(ROWS.format(kind="add"), x, np.zeros(6, np.float32))
    assert got.tolist() == [in_order(row) for row in x]


@pytest.mark.parametrize("kind", ["mul", "max", "min"])
def test_float_kinds(kind):
    x = numbers(6, 40)
    x[1, 3], x[2, 5], x[3] = np.nan, np.inf, -0.0
    run(ROWS.format(kind=kind), x, np.zeros(6, np.float32))


@pytest.mark.parametrize("kind", ["add", "mul", "max", "min", "umax", "umin", "and", "or", "xor"])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_integer_kinds(kind, width):
    text = ROWS.format(kind=kind).replace("f32", f"i{width}")
    limits = np.iinfo(f"int{width}")
    x = np.random.default_rng(1).integers(limits.min, limits.max, (6, 40), f"int{width}")
    run(text, x, np.zeros(6, f"int{width}"))


def test_halves_are_rounded_at_every_step():
    x = numbers(6, 40).astype(np.float16)
    run(ROWS.format(kind="add").replace("f32", "f16"), x, np.zeros(6, np.float16))


def test_a_reduction_of_products_rounds_once_a_step():
    text = """
    ukernel.kernel @k ins(%x : memref<3x50xf32>, %y : memref<50xf32>) outs(%o : memref<3xf32>) {
      %i = uloop.range 3
      %j = uloop.range 50 reduce
      %a = uloop.load %x[%i, %j] : memref<3x50xf32>
      %b = uloop.load %y[%j] : memref<50xf32>
      %s = uloop.reduce fma %a, %b over (%j) : f32
      uloop.store %s, %o[%i] : memref<3xf32>
    }
    """
    run(text, numbers(3, 50), numbers(50, seed=1), np.zeros(3, np.float32))


def test_ranges_follow_each_other_as_they_stand():
    text = """
    ukernel.kernel @k ins(%x : memref<4x5x7xf32>) outs(%o : memref<5xf32>) {
      %a = uloop.range 7 reduce
      %i = uloop.range 5
      %b = uloop.range 4 reduce
      %v = uloop.load %x[%b, %i, %a] : memref<4x5x7xf32>
      %s = uloop.reduce add %v over (%b, %a) : f32
      uloop.store %s, %o[%i] : memref<5xf32>
    }
    """
    x = numbers(4, 5, 7)
    got = run(text, x, np.zeros(5, np.float32))
    assert got.tolist() == [in_order(x[:, i].T.reshape(-1)) for i in range(5)]


def test_trees_of_copies_and_lanes():
    text = """
    ukernel.kernel @k ins(%x : memref<2x12x3x4xf32>) outs(%o : memref<2xf32>) {
      %i = uloop.range 2
      %j = uloop.range 12 reduce
      %u = uloop.range 3 unroll
      %v = uloop.range 4 vector
      %0 = uloop.load %x[%i, %j, %u, %v] : memref<2x12x3x4xf32>
      %1 = uloop.reduce add %0 over (%j) : f32
      %2 = uloop.reduce add %1 over (%u, %v) : f32
      uloop.store %2, %o[%i] : memref<2xf32>
    }
    """
    run(text, numbers(2, 12, 3, 4), np.zeros(2, np.float32))


def test_unrolled_steps_of_a_loop_follow_one_another():
    text = """
    ukernel.kernel @k ins(%x : memref<5x12x3xf32>) outs(%o : memref<5xf32>) {
      %i = uloop.range 5
      %j = uloop.range 12 reduce
      %u = uloop.range 3 unroll
      %0 = uloop.load %x[%i, %j, %u] : memref<5x12x3xf32>
      %1 = uloop.reduce add %0 over (%j, %u) : f32
      uloop.store %1, %o[%i] : memref<5xf32>
    }
    """
    x = numbers(5, 12, 3)
    got = run(text, x, np.zeros(5, np.float32))
    assert got.tolist() == [in_order(row.reshape(-1)) for row in x]


FIRST = """
ukernel.kernel @k ins(%x : memref<4x9xf32>, %w : memref<4xf32>) outs(%o : memref<4xi32>) {
  %i = uloop.range 4
  %j = uloop.range 9 reduce
  %v = uloop.load %x[%i, %j] : memref<4x9xf32>
  %outside = uloop.load %w[%i] : memref<4xf32>
  %k = uloop.index %j * 2 + 1 : i32
  %least = arith.constant -1.0e30 : f32
  %none = arith.constant -1 : i32
  %b, %p = uloop.reduce %v, %k init %least, %none over (%j) {
  ^bb0(%best: f32, %at: i32, %new: f32, %number: i32):
    %scaled = arith.mulf %new, %outside : f32
    %more = arith.cmpf ogt, %scaled, %best : f32
    %c = arith.select %more, %scaled, %best : f32
    %d = arith.select %more, %number, %at : i32
    uloop.yield %c, %d : f32, i32
  } : f32, i32 -> f32, i32
  uloop.store %p, %o[%i] : memref<4xi32>
}
"""


def test_a_region_combines_several_values_and_reads_from_outside():
    x, w = numbers(4, 9), np.array([1, -1, 2, 0], np.float32)
    got = run(FIRST, x, w, np.zeros(4, np.int32))
    assert got.tolist() == [int(np.argmax(r * f)) * 2 + 1 for r, f in zip(x, w, strict=True)]


PADDED = """
ukernel.kernel @k ins(%x : memref<5xf32>) outs(%o : memref<9xf32>) {
  %i = uloop.range 9
  %v = uloop.load %x[%i - 2] where (%i - 2, 6 - %i) : memref<5xf32>
  %c = uloop.valid (%i - 2, 6 - %i)
  %w = arith.constant 7.0 : f32
  %s = arith.select %c, %v, %w : f32
  uloop.store %s, %o[8 - %i] where (8 - %i) : memref<9xf32>
}
"""


def test_conditions_of_loads_and_stores():
    x = np.arange(5, dtype=np.float32)
    got = run(PADDED, x, np.zeros(9, np.float32))
    assert got.tolist() == [7, 7, 4, 3, 2, 1, 0, 7, 7]


def test_guards_cut_a_tail():
    text = """
    ukernel.kernel @k ins(%x : memref<10xf32>) outs(%o : memref<10xf32>, %t : memref<1xf32>) {
      %i = uloop.range 3
      %j = uloop.range 4
      uloop.guard (9 - %i * 4 - %j)
      %v = uloop.load %x[%i * 4 + %j] : memref<10xf32>
      %one = arith.constant 1.0 : f32
      %w = arith.addf %v, %one : f32
      uloop.store %w, %o[%i * 4 + %j] : memref<10xf32>
    }
    """
    x = numbers(10)
    got, rest = run(text, x, np.zeros(10, np.float32), np.zeros(1, np.float32))
    assert (got == x + np.float32(1)).all() and rest[0] == 0


def test_guards_leave_steps_of_a_sum_out():
    text = """
    ukernel.kernel @k ins(%x : memref<3x10xf32>) outs(%o : memref<3xf32>) {
      %r = uloop.range 3
      %i = uloop.range 3 reduce
      %j = uloop.range 4 reduce
      uloop.guard (9 - %i * 4 - %j)
      %v = uloop.load %x[%r, %i * 4 + %j] : memref<3x10xf32>
      %s = uloop.reduce mul %v over (%i, %j) : f32
      uloop.store %s, %o[%r] : memref<3xf32>
    }
    """
    x = numbers(3, 10)
    got = run(text, x, np.zeros(3, np.float32))
    expected = np.ones(3, np.float32)
    for column in x.T:
        expected *= column
    assert (got == expected).all()


def test_a_range_that_ends_where_another_says():
    text = """
    ukernel.kernel @k ins(%x : memref<7x7xf32>) outs(%o : memref<7xf32>) {
      %i = uloop.range 7
      %j = uloop.range %i + 1 max 7 reduce
      %v = uloop.load %x[%i, %j] : memref<7x7xf32>
      %s = uloop.reduce add %v over (%j) : f32
      uloop.store %s, %o[%i] : memref<7xf32>
    }
    """
    x = numbers(7, 7)
    x[np.triu_indices(7, 1)] = np.nan
    got = run(text, x, np.zeros(7, np.float32))
    assert got.tolist() == [in_order(x[i, : i + 1]) for i in range(7)]


def test_sizes_that_are_symbols():
    text = """
    ukernel.kernel @k sizes(%n = n = 0 to 64) ins(%x : memref<?x3xf32> of [n, 3])
        outs(%o : memref<3xf32>) {
      %i = uloop.range 3
      %j = uloop.range %n max 64 reduce
      %v = uloop.load %x[%j, %i] : memref<?x3xf32>
      %s = uloop.reduce add %v over (%j) : f32
      uloop.store %s, %o[%i] : memref<3xf32>
    }
    """
    for n in (0, 1, 17):
        x = numbers(n, 3)
        got = run(text, x, np.ones(3, np.float32), n=n)
        assert got.tolist() == [in_order(c) for c in x.T]


TILED = """
ukernel.kernel @k ins(%x : memref<6x8xf32>) outs(%o : memref<6x8xf32>) {
  %i = uloop.range 6
  %p = uloop.range 8
  %v = uloop.load %x[%i, %p] : memref<6x8xf32>
  %e = arith.mulf %v, %v : f32
  %t = uloop.tile %e over (%p) local : memref<8xf32>
  %j = uloop.range 8
  %r = uloop.read %t[7 - %j] : memref<8xf32>
  uloop.store %r, %o[%i, %j] : memref<6x8xf32>
}
"""


def test_a_tile_is_not_read_where_a_guard_says_so():
    text = """
    ukernel.kernel @k ins(%x : memref<10xf32>) outs(%o : memref<10xf32>) {
      %p = uloop.range 10
      %v = uloop.load %x[%p] : memref<10xf32>
      %t = uloop.tile %v over (%p) local : memref<10xf32>
      %i = uloop.range 3
      %j = uloop.range 4
      uloop.guard (9 - %i * 4 - %j)
      %r = uloop.read %t[%i * 4 + %j] : memref<10xf32>
      uloop.store %r, %o[%i * 4 + %j] : memref<10xf32>
    }
    """
    x, o = numbers(10), np.zeros(10, np.float32)
    run(text, x, o)
    assert (o == x).all()
    wrong = text.replace("uloop.read %t[%i * 4 + %j]", "uloop.read %t[%i * 4 + %j + 1]")
    with pytest.raises(UopcError, match=r"'uloop.read' touches \[10\]"):
        run(wrong, x, o)


def test_tiles_are_filled_where_their_other_ranges_are_known():
    x = numbers(6, 8)
    got = run(TILED, x, np.zeros((6, 8), np.float32))
    assert (got == (x * x)[:, ::-1]).all()


def test_numbers_become_indices_within_bounds():
    text = """
    ukernel.kernel @k ins(%x : memref<5xf32>, %n : memref<8xi8>) outs(%o : memref<8xf32>) {
      %i = uloop.range 8
      %a = uloop.load %n[%i] : memref<8xi8>
      %k = uloop.value %a : i8 in 0 to 4
      %v = uloop.load %x[%k] : memref<5xf32>
      uloop.store %v, %o[%i] : memref<8xf32>
    }
    """
    x, n = numbers(5), np.array([0, 4, 5, -1, 127, -128, 2, 3], np.int8)
    signed = run(text, x, n, np.zeros(8, np.float32))
    assert signed.tolist() == x[np.clip(n, 0, 4)].tolist()
    other = text.replace("%a : i8 in", "%a : i8 unsigned in")
    unsigned = run(other, x, n, np.zeros(8, np.float32))
    assert unsigned.tolist() == x[np.clip(n.view(np.uint8), 0, 4)].tolist()


@pytest.mark.parametrize("kind", ["set", "add", "max", "mul"])
def test_updates_come_in_order(kind):
    text = f"""
    ukernel.kernel @k ins(%x : memref<40xf32>, %n : memref<40xi32>) outs(%o : memref<5xf32>) {{
      %z = uloop.range 5
      %one = arith.constant 1.0 : f32
      uloop.store %one, %o[%z] : memref<5xf32>
      %i = uloop.range 40
      %a = uloop.load %n[%i] : memref<40xi32>
      %k = uloop.value %a : i32 in -1 to 5
      %v = uloop.load %x[%i] : memref<40xf32>
      uloop.update {kind} %v, %o[%k] where (%k, 4 - %k) : memref<5xf32>
    }}
    """
    x = numbers(40)
    n = np.random.default_rng(2).integers(-2, 8, 40).astype(np.int32)
    got = run(text, x, n, np.zeros(5, np.float32))
    expected = np.ones(5, np.float32)
    step = {"set": lambda a, b: b, "add": np.add, "max": np.maximum, "mul": np.multiply}[kind]
    for k, v in zip(n, x, strict=True):
        if 0 <= k < 5:
            expected[k] = step(expected[k], v)
    assert got.tolist() == expected.tolist()


def test_large_kernels_go_in_parts(monkeypatch):
    monkeypatch.setattr("uopc.interpreters.loop.ELEMENT_LIMIT", 100)
    x = numbers(6, 40)
    got = run(ROWS.format(kind="add"), x, np.zeros(6, np.float32))
    assert got.tolist() == [in_order(row) for row in x]
    got = run(TILED, numbers(6, 8), np.zeros((6, 8), np.float32))
    assert (got == (numbers(6, 8) ** 2)[:, ::-1]).all()


def test_no_ranges_and_no_dimensions():
    text = """
    ukernel.kernel @k ins(%x : memref<f32>) outs(%o : memref<f32>) {
      %v = uloop.load %x[] : memref<f32>
      %w = arith.negf %v : f32
      uloop.store %w, %o[] : memref<f32>
    }
    """
    got = run(text, np.array(3.5, np.float32), np.array(0, np.float32))
    assert got == -3.5


def fails(kind, words, text, *buffers):
    with pytest.raises(UopcError) as caught:
        run_kernel(kernel_of(parse(text)), {}, list(buffers))
    assert caught.value.kind == kind
    assert words in caught.value.message
    return caught.value


def test_accesses_outside_are_told_with_op_and_indices():
    text = PADDED.replace(" where (%i - 2, 6 - %i)", "")
    words = "'uloop.load' touches [-2] of a buffer of shape [5]: index 0 is not from 0 to 4"
    error = fails("out-of-bounds", words, text, numbers(5), numbers(9))
    assert error.location is not None and error.location.line == 4
    text = PADDED.replace("where (8 - %i)", "").replace("%o[8 - %i]", "%o[%i + 1]")
    fails("out-of-bounds", "'uloop.store' touches [9]", text, numbers(5), numbers(9))


def test_ops_without_a_meaning():
    text = PADDED.replace("%w = arith.constant 7.0 : f32", '%w = "test.op"() : () -> f32')
    words = "'test.op' has no meaning in a kernel over ranges"
    fails("not-interpreted", words, text, numbers(5), numbers(9))
