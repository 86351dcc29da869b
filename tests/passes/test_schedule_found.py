"""Schedules that a search of random ones found to go wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scheduled_kernels import run_scheduled

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.passes.apply_schedule import apply_schedule

COLUMNS = """
ukernel.kernel @k ins(%x : memref<{k}x{j}xf32>) outs(%o : memref<{j}xf32>) {{
  %j = uloop.range {j}
  %k = uloop.range {k} reduce
  %a = uloop.load %x[%k, %j] : memref<{k}x{j}xf32>
  %s = uloop.reduce add %a over (%k) : f32
  uloop.store %s, %o[%j] : memref<{j}xf32>
}}
"""
COPY = """
ukernel.kernel @k ins(%x : memref<{i}x{j}xf32>) outs(%o : memref<{i}x{j}xf32>) {{
  %i = uloop.range {i}
  %j = uloop.range {j}
  %a = uloop.load %x[%i, %j] : memref<{i}x{j}xf32>
  uloop.store %a, %o[%i, %j] : memref<{i}x{j}xf32>
}}
"""
OVER_ALL = """
ukernel.kernel @k ins(%x : memref<{n}xf32>) outs(%o : memref<4xf32>) {{
  %j = uloop.range 4
  %l = uloop.range {n} reduce
  %a = uloop.load %x[%l] : memref<{n}xf32>
  %s = uloop.reduce {kind} %a over (%l) : f32
  uloop.store %s, %o[%j] : memref<4xf32>
}}
"""
ROWS = """
ukernel.kernel @k ins(%x : memref<4xf32>) outs(%o : memref<4x4xf32>) {
  %i = uloop.range 4
  %j = uloop.range 4
  %a = uloop.load %x[%i] : memref<4xf32>
  uloop.store %a, %o[%i, %j] : memref<4x4xf32>
}
"""


def refusal(kernel: str, schedule: str) -> str:
    (op,) = parse_text(kernel).body.block.ops
    assert isinstance(op, KernelOp)
    with pytest.raises(UopcError) as caught:
        apply_schedule(op, schedule)
    assert caught.value.kind == "bad-schedule"
    return caught.value.message


@pytest.mark.parametrize(
    ("kernel", "schedule", "words"),
    [
        (COLUMNS.format(k=3, j=4), "split k = k0 k1:4; tile a over k1 j as p q; fuse j into p",
         "a guard says where one of the ranges has steps"),
        (COLUMNS.format(k=4, j=4), "tile a over k j as p q; fuse j into q",
         "what runs over 'q' is read inside of the other range"),
        (COPY.format(i=8, j=1), "tile a over i as p; fuse i into p",
         "what runs over 'p' is read inside of the other range"),
    ],
)  # fmt: skip
def test_no_range_runs_inside_of_itself(kernel: str, schedule: str, words: str) -> None:
    assert words in refusal(kernel, schedule)


@pytest.mark.parametrize(
    ("kernel", "schedule"),
    [
        (COPY.format(i=1, j=9), "tile a over i j as p q; pad a p to 4; split j = j0 j1:16:vector"),
        (COPY.format(i=3, j=9), "tile a over i j as p q; pad a p to 8; split j = j0 j1:16:vector"),
        (COLUMNS.format(k=4, j=3),
         "tile a over k j as p q; split j = j0 j1:2:vector; split p = p0 p1:8"),
    ],
)  # fmt: skip
def test_lanes_behind_the_end_of_a_row(kernel: str, schedule: str) -> None:
    shape = tuple(map(int, kernel.split("%x : memref<")[1].split("xf32")[0].split("x")))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got = run_scheduled(kernel, schedule, x)
    np.testing.assert_array_equal(got, x if got.shape == shape else x.sum(0))


@pytest.mark.parametrize(
    ("count", "schedule"),
    [
        (5, "split l = q5:unroll q6:4:vector"),
        (7, "split l = q5:unroll q6:8:vector"),
        (15, "split l = q1 q2:2:unroll; split q2 = a b:4:vector"),
        (6, "split l = q5:unroll q6:4:vector; split j = j0 j1:3"),
        (6, "split l = q5:unroll q6:4:vector; split j = j0 j1:4:unroll"),
    ],
)
@pytest.mark.parametrize("kind", ["max", "add"])
def test_copies_and_lanes_alone_with_some_masked(kind: str, count: int, schedule: str) -> None:
    x = np.arange(1, count + 1, dtype=np.float32)
    got = run_scheduled(OVER_ALL.format(n=count, kind=kind), schedule, x)
    assert (got == (x.max() if kind == "max" else x.sum())).all()


@pytest.mark.parametrize(
    "schedule", ["mark i vector; mark j vector", "mark j vector; split i = a b:2:vector"]
)
def test_a_store_along_two_vectors(schedule: str) -> None:
    assert "what is stored varies along the vectors" in refusal(ROWS, schedule)
