"""Tiles over sums of ranges: the part of an image that windows share, kept once."""

from __future__ import annotations

import numpy as np
import pytest
from scheduled_kernels import run_scheduled

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.passes.apply_schedule import apply_schedule


def convolution(c: int, h: int, w: int, k: int, f: int, stride: int, pad: int) -> str:
    """o[f, y, x] = the sum over c, ky, kx of w * image, zero beyond the image."""
    rows, columns = ((n + 2 * pad - k) // stride + 1 for n in (h, w))
    y, x = (f"%{n} * {stride} + %k{n} - {pad}" for n in "yx")
    where = f" where ({y}, {h - 1} - ({y}), {x}, {w - 1} - ({x}))" if pad else ""
    shapes = f"{c}x{h}x{w}", f"{f}x{c}x{k}x{k}", f"{f}x{rows}x{columns}"
    image, weights, out = (f"memref<{shape}xf32>" for shape in shapes)
    return f"""
    ukernel.kernel @k ins(%image : {image}, %w : {weights}) outs(%o : {out}) {{
      %f = uloop.range {f}
      %y = uloop.range {rows}
      %x = uloop.range {columns}
      %c = uloop.range {c} reduce
      %ky = uloop.range {k} reduce
      %kx = uloop.range {k} reduce
      %a = uloop.load %w[%f, %c, %ky, %kx] : {weights}
      %b = uloop.load %image[%c, {y}, {x}]{where} : {image}
      %p = arith.mulf %a, %b : f32
      %s = uloop.reduce add %p over (%c, %ky, %kx) : f32
      uloop.store %s, %o[%f, %y, %x] : {out}
    }}"""


def check(schedule: str, c: int, h: int, w: int, k: int, f: int, stride: int, pad: int) -> None:
    rng = np.random.default_rng(2)
    image = rng.standard_normal((c, h, w)).astype(np.float32)
    weights = rng.standard_normal((f, c, k, k)).astype(np.float32)
    got = run_scheduled(convolution(c, h, w, k, f, stride, pad), schedule, image, weights)
    wide = np.pad(image, ((0, 0), (pad, pad), (pad, pad))).astype(np.float64)
    for y, x in np.ndindex(*got.shape[1:]):
        at = wide[:, y * stride : y * stride + k, x * stride : x * stride + k]
        np.testing.assert_allclose(got[:, y, x], np.tensordot(weights, at, 3), atol=1e-4)


WHOLE = "tile b over c y+ky x+kx as pc py px; order pc py px f"
PARTS = ("split y = y0 y1:4; split x = x0 x1:8; tile b over c y1+ky x1+kx as pc py px; "
         "order y0 x0 pc py px f")  # fmt: skip
LANES = ("contract; split y = y0 y1:4; tile b over c y1+ky x+kx as pc py px; "
         "split px = px0 px1:8:vector; split x = x0 x1:2:unroll x2:8:vector; "
         "split f = f0 f1:3:unroll; mark kx unroll; order y0 pc py px0 f0 y1 x0 c ky")  # fmt: skip
STRIDED = ("contract; split y = y0 y1:2; split x = x0 x1:4; "
           "tile b over c y1*2+ky x1*2+kx as pc py px; order y0 x0 pc py px f")  # fmt: skip


@pytest.mark.parametrize("width", [3, 5, 8, 17, 18, 33])
@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("schedule", [WHOLE, PARTS, LANES], ids=["whole", "parts", "lanes"])
def test_halos(schedule: str, pad: int, width: int) -> None:
    check(schedule, 2, 7, width, 3, 4, 1, pad)


@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_halos_of_steps_and_windows(window: int) -> None:
    check(STRIDED, 3, 9, 12, window, 2, 2, 1)
    check("split y = y0 y1:3; tile b over c y1*2+ky as pc py; order y0 pc py f",
          3, 9, 12, window, 2, 2, 0)  # fmt: skip


def test_the_places_of_a_halo() -> None:
    (op,) = parse_text(convolution(2, 7, 10, 3, 4, 1, 0)).body.block.ops
    assert isinstance(op, KernelOp)
    apply_schedule(op, "split y = y0 y1:2; tile b over c y1+ky x+kx as pc py px")
    text = str(op)
    assert "local : memref<2x4x10xf32>" in text
    assert "uloop.read %b[%c, %y1 + %ky, %x + %kx]" in text
    # The last part has one row of two: what its second row would read lies below the image.
    assert "uloop.load %image[%pc, %y0 * 2 + %py, %px] where (%y0 * -2 - %py + 6)" in text


@pytest.mark.parametrize(
    ("schedule", "message", "hint"),
    [
        ("tile a over ky+kx as p", "'a' depends on 'kx' not by the sum alone",
         "write the ranges one by one"),
        ("tile b over y+kx as p", "'b' depends on 'kx' not by the sum alone",
         "write the ranges one by one"),
        ("tile b over y+ky ky as p q", "'ky' stands in it twice", ""),
        ("tile b over f+ky as p", "'b' does not depend on 'f'", ""),
        ("tile b over y*2+ky as p", "'b' depends on 'y' not by the sum alone",
         "write the ranges one by one"),
        ("tile b over y*2+ky*3 as p", "a tile is not over 'y*2+ky*3'",
         "expected a range, or a sum as y+ky or y*2+ky, in which one counts singly"),
        ("tile b over y-ky as p", "a tile is not over 'y-ky'",
         "expected a range, or a sum as y+ky or y*2+ky, in which one counts singly"),
        ("tile b over y+ky+1 as p", "a tile is not over 'y+ky+1'",
         "expected a range, or a sum as y+ky or y*2+ky, in which one counts singly"),
        ("tile b over 3 as p", "a tile is not over '3'",
         "expected a range, or a sum as y+ky or y*2+ky, in which one counts singly"),
        ("tile b over y+z as p", "there is no range 'z'", "the ranges are: f, y, x, c, ky, kx"),
        ("tile b over y+ as p", "it is not well formed",
         "expected tile V over R … as R' … in SPACE; for R also a sum like y+ky, without spaces"),
        ("tile b over y + ky as p",
            "a tile has a new range for each that it is over",
            "write sums without spaces: y+ky",
        ),
    ],
)  # fmt: skip
def test_what_is_no_halo(schedule: str, message: str, hint: str) -> None:
    (op,) = parse_text(convolution(2, 7, 10, 3, 4, 1, 0)).body.block.ops
    assert isinstance(op, KernelOp)
    with pytest.raises(UopcError) as caught:
        apply_schedule(op, schedule)
    assert caught.value.message == f"kernel @k: in '{schedule}': {message}"
    assert caught.value.hint == hint
