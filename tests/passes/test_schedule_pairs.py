"""`pair`: sums of products of bf16 two at a time, at every length, and what it is refused for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from scheduled_kernels import Scheduled, run_scheduled

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.passes.apply_schedule import apply_schedule

BF16 = ml_dtypes.bfloat16


def product(
    depth: int, *, rows: int = 5, columns: int = 19, a: str = "%i, %k", b: str = "%k, %j",
    factor: str = "%a",
) -> str:  # fmt: skip
    """o[i, j] = the sum over k of a * b, both of bf16."""
    shape_a = f"{rows}x{depth}" if a == "%i, %k" else f"{depth}x{rows}"
    shape_b = f"{depth}x{columns}" if b == "%k, %j" else f"{columns}x{depth}"
    inputs = f"%x : memref<{shape_a}xbf16>, %y : memref<{shape_b}xbf16>"
    return f"""
    ukernel.kernel @k ins({inputs}) outs(%o : memref<{rows}x{columns}xf32>) {{
      %i = uloop.range {rows}
      %j = uloop.range {columns}
      %k = uloop.range {depth} reduce
      %a = uloop.load %x[{a}] : memref<{shape_a}xbf16>
      %one = arith.constant 1.0 : bf16
      %c = arith.addf %a, %one : bf16
      %b = uloop.load %y[{b}] : memref<{shape_b}xbf16>
      %p = arith.mulf {factor}, %b : bf16
      %w = arith.extf %p : bf16 to f32
      %s = uloop.reduce add %w over (%k) : f32
      uloop.store %s, %o[%i, %j] : memref<{rows}x{columns}xf32>
    }}"""


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal(shape).astype(BF16) for shape in shapes]


def check(kernel: str, schedule: str, x: np.ndarray, y: np.ndarray, want: np.ndarray) -> None:
    got = run_scheduled(kernel, schedule, x, y)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * max(1, x.shape[-1]))


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


SCHEDULES = {
    "plain": "pair k as kk",
    "under its own name": "pair k as k",
    "lanes": "pair k as kk; split j = j0 j1:16:vector",
    "few lanes": "pair k as kk; split j = j0 j1:4:vector",
    "copies of pairs": "pair k as kk; split kk = k0 k1:4:unroll; split j = j0 j1:8:vector",
    "a panel": "pair k as kk; split j = j0 jj:16; tile b_pair over kk jj as pk pj; "
    "mark jj vector; mark pj vector; order j0 pk i kk",
    "rows by lanes": "pair k as kk; split j = j0 j1:8:vector; tile a_pair over kk as q; "
    "split q = q0 q1:8:vector; order i q0 j0 kk",
    "rows and panel": "pair k as kk; split j = j0 jj:8; tile b_pair over kk jj as pk pj; "
    "mark jj vector; split i = i0 i1:2:unroll; tile a_pair over i1 kk as qi q; "
    "split q = q0 q1:4:vector; order j0 pk pj i0 q0 kk",
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize("depth", [1, 2, 3, 16, 31, 33])
def test_values_and_bits(schedule: str, depth: int) -> None:
    x, y = arrays((5, depth), (depth, 19))
    check(product(depth), schedule, x, y, wide(x) @ wide(y))


@pytest.mark.parametrize("depth", [1, 8, 17])
def test_transposed_factors(depth: int) -> None:
    x, y = arrays((depth, 5), (19, depth))
    kernel = product(depth, a="%k, %i", b="%j, %k")
    schedule = ("pair k as kk; tile a_pair over kk i as q qi; split qi = qa qb:8:vector; "
                "split j = j0 j1:4:unroll; order q qa j0 i kk")  # fmt: skip
    check(kernel, schedule, x, y, wide(x).T @ wide(y).T)


@pytest.mark.parametrize("depth", [1, 4, 7])
def test_a_factor_that_is_computed(depth: int) -> None:
    """What is computed of nothing is not 0 by itself: 0 + 1 would count where nothing is."""
    x, y = arrays((5, depth), (depth, 19))
    one = (wide(x).astype(np.float32) + 1).astype(BF16)
    kernel = product(depth, factor="%c")
    check(kernel, "pair k as kk; split j = j0 j1:8:vector", x, y, wide(one) @ wide(y))


@pytest.mark.parametrize("depth", [3, 4])
def test_a_factor_that_is_the_same_at_each_step(depth: int) -> None:
    """At an odd end its second number is 0 as well, whatever it is: infinity times 0 is none."""
    x, y = arrays((5, depth), (depth, 19))
    x[:] = np.inf
    y = np.abs(y)
    kernel = product(depth).replace("%x[%i, %k]", "%x[%i, 0]")
    assert (run_scheduled(kernel, "pair k as kk", x, y) == np.inf).all()


@pytest.mark.parametrize("depth", [8, 12])
def test_parts_of_a_whole_number_of_steps(depth: int) -> None:
    x, y = arrays((5, depth), (depth, 19))
    check(
        product(depth), "split k = k0 k1:4; pair k1 as kk; order i j k0 kk", x, y, wide(x) @ wide(y)
    )


def test_not_a_number_behind_an_odd_end() -> None:
    """Only what is there is read: a place behind it may hold anything."""
    x, y = arrays((4, 8), (8, 16))
    x[:, 7], y[7] = np.nan, np.inf
    kernel = product(8, rows=4, columns=16).replace("%k = uloop.range 8", "%k = uloop.range 7")
    check(kernel, "pair k as kk; split j = j0 j1:16:vector", x, y, wide(x[:, :7]) @ wide(y[:7]))


def test_what_is_denormal_counts_as_zero() -> None:
    x, y = np.full((4, 8), 2.0**-70, BF16), np.full((8, 16), 2.0**-70, BF16)
    kernel = product(8, rows=4, columns=16)
    assert (run_scheduled(kernel, "contract", x, y) == 8 * 2.0**-140).all()
    assert (run_scheduled(kernel, "pair k as kk", x, y) == 0).all()


def test_a_depth_known_at_the_call() -> None:
    inputs = "%x : memref<?xbf16> of [n], %y : memref<?xbf16> of [n]"
    kernel = (
        "ukernel.kernel @k sizes(%n = n = 1 to 40) ins("
        + inputs
        + """) outs(%o : memref<1xf32>) {
      %z = uloop.range 1
      %k = uloop.range %n max 40 reduce
      %a = uloop.load %x[%k] : memref<?xbf16>
      %b = uloop.load %y[%k] : memref<?xbf16>
      %p = arith.mulf %a, %b : bf16
      %w = arith.extf %p : bf16 to f32
      %s = uloop.reduce add %w over (%k) : f32
      uloop.store %s, %o[%z] : memref<1xf32>
    }"""
    )
    scheduled = Scheduled(kernel, "pair k as kk")
    for n in (1, 2, 39, 40):
        x, y = arrays((n,), (n,))
        np.testing.assert_allclose(scheduled(x, y, n=n), [wide(x) @ wide(y)], atol=1e-4)


F32_PRODUCT = product(8).replace("bf16", "f32").replace("extf %p : f32 to f32", "negf %p : f32")


@pytest.mark.parametrize(
    ("kernel", "schedule", "message"),
    [
        (product(8), "pair i as ii", "no sum runs over 'i'"),
        (product(8), "pair k as j", "the name 'j' is taken"),
        (product(8), "contract; pair k as kk", "what runs over 'k' is no sum of products of bf16"),
        (product(8), "tile b over k as p; pair p as pp",
         "what runs over 'p' is no sum of products of bf16"),
        (product(8), "pair k as kk; pair kk as k", "what runs over 'kk' is no sum of products"),
        (product(8).replace("bf16", "f16"), "pair k as kk",
         "what runs over 'k' is no sum of products of bf16"),
        (F32_PRODUCT, "pair k as kk", "what runs over 'k' is no sum of products of bf16"),
        (product(8).replace("bf16 to f32", "bf16 to f64").replace("xf32>", "xf64>").replace(
            "(%k) : f32", "(%k) : f64"), "pair k as kk",
         "what runs over 'k' is no sum of products of bf16"),
        (product(6), "split k = k0 k1:4; pair k0 as kk", "a guard says where 'k0' has steps"),
        (product(9), "split k = k0 k1:4; pair k1 as kk", "a guard says where 'k1' has steps"),
        (product(8), "pair q as kk", "there is no range 'q'"),
        (product(8), "pair k as kk; split kk = k0:unroll k1:4:unroll",
         "a contracted sum would have no loop"),
        (product(8), "pair k as kk; split j = j0 j1:2:vector",
         "'s' adds pairs of bf16 in 2 lanes"),
        (product(8, columns=64), "pair k as kk; split j = j0 j1:32:vector",
         "'s' adds pairs of bf16 in 32 lanes"),
        (product(8), "pair k", "it is not well formed"),
    ],
)  # fmt: skip
def test_it_is_refused_in_words(kernel: str, schedule: str, message: str) -> None:
    (op,) = parse_text(kernel).body.block.ops
    assert isinstance(op, KernelOp)
    with pytest.raises(UopcError) as caught:
        apply_schedule(op, schedule)
    assert caught.value.kind == "bad-schedule"
    assert message in caught.value.message
