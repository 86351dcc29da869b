"""bound and pad: what may be left out is, with the same bits; what may not is refused in words."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_programs import bits
from scheduled_kernels import Scheduled, run_scheduled

from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.passes.apply_schedule import apply_schedule

RNG = np.random.default_rng(3)


def attention(t: int, d: int = 8) -> str:
    """Causal attention from its plain form, the scores written out at each reader."""
    matrix = f"memref<{t}x{d}xf32>"
    inputs = ", ".join(f"%{n} : {matrix}" for n in "qkv")
    scores = "".join(
        f"""
      %k{n} = uloop.range {t} reduce
      %e{n} = uloop.range {d} reduce
      %key{n} = uloop.index %k{n} : i32
      %query{n} = uloop.index %i : i32
      %c{n} = arith.cmpi sle, %key{n}, %query{n} : i32
      %qq{n} = uloop.load %q[%i, %e{n}] : {matrix}
      %kk{n} = uloop.load %k[%k{n}, %e{n}] : {matrix}
      %pp{n} = arith.mulf %qq{n}, %kk{n} : f32
      %ss{n} = uloop.reduce add %pp{n} over (%e{n}) : f32
      %s{n} = arith.select %c{n}, %ss{n}, %inf : f32"""
        for n in (1, 2, 3)
    )
    return f"""
    ukernel.kernel @attention ins({inputs}) outs(%o : {matrix}) {{
      %inf = arith.constant 0xff800000 : f32
      %i = uloop.range {t}
      %d = uloop.range {d}{scores}
      %m = uloop.reduce max %s1 over (%k1) : f32
      %x2 = arith.subf %s2, %m : f32
      %y2 = math.exp %x2 : f32
      %sum = uloop.reduce add %y2 over (%k2) : f32
      %x3 = arith.subf %s3, %m : f32
      %y3 = math.exp %x3 : f32
      %w = arith.divf %y3, %sum : f32
      %vv = uloop.load %v[%k3, %d] : {matrix}
      %pv = arith.mulf %w, %vv : f32
      %r = uloop.reduce add %pv over (%k3) : f32
      uloop.store %r, %o[%i, %d] : {matrix}
    }}"""


SCHEDULES = {
    # A schedule without bounds, and what the bounds are.
    "order i": "bound k1 = i + 1; bound k2 = i + 1; bound k3 = i + 1 finite",
    "split i = i0 i1:16; split k1 = k10 k11:8; split k2 = k20 k21:2:unroll k22:4:vector; "
    "split k3 = k30 k31:8; order i0 i1": "bound k10 = min(i0 * 2 + 2, {blocks}); "
    "bound k20 = min(i0 * 2 + 2, {blocks}); bound k30 = min(i0 * 2 + 2, {blocks}) finite",
    "tile s1 over k1 as t1; fuse k2 into k1; split k1 = k10 k11:8; order i d t1 k10 k11": (
        "bound k10 = i floordiv 8 + 1; bound t1 = i + 1"
    ),
    "tile s1 over k1 as t1; tile y2 over k2 as t2; split d = d0 d1:8:vector; order i d0 t1 t2": (
        "bound k1 = i + 1; bound k2 = i + 1; bound k3 = i + 1 finite; bound t1 = i + 1; "
        "bound t2 = i + 1"
    ),
}


@pytest.mark.parametrize("schedule", [s for s in SCHEDULES if "fuse" not in s])
def test_skipped_steps_change_no_bit(schedule: str) -> None:
    for t in (1, 16, 37):
        bounds = SCHEDULES[schedule].format(blocks=-(-t // 8))
        plain = Scheduled(attention(t), schedule)
        bounded = Scheduled(attention(t), f"{schedule}; {bounds}")
        q, k, v = RNG.standard_normal((3, t, 8)).astype(np.float32)
        for place, value in [((0, 0), 0), ((t // 2, 3), np.nan), ((t // 3, 1), -np.inf),
                             ((t - 1, 0), np.inf)]:  # fmt: skip
            for special in (q, k):
                special[place] = value
            np.testing.assert_array_equal(bits(plain(q, k, v)), bits(bounded(q, k, v)))


ROWS = """
ukernel.kernel @rows ins(%x : memref<20x20xf32>) outs(%o : memref<20xf32>) {
  %i = uloop.range 20
  %k = uloop.range 20 reduce
  %v = uloop.load %x[%i, %k] where (%i - %k) : memref<20x20xf32>
  %s = uloop.reduce add %v over (%k) : f32
  uloop.store %s, %o[%i] : memref<20xf32>
}
"""


def test_a_load_that_is_not_valid_is_zero() -> None:
    x = RNG.standard_normal((20, 20)).astype(np.float32)
    expected = run_scheduled(ROWS, "order i", x)
    np.testing.assert_array_equal(run_scheduled(ROWS, "bound k = i + 1", x), expected)
    # A step more than needed is right too, one less is not.
    run_scheduled(ROWS, "bound k = min(i + 2, 20)", x)
    assert message(ROWS, "bound k = i") == (
        "in 'bound k = i': what 's' takes from step i on is not known",
        "expected 0, what 'add' starts from",
    )


@pytest.mark.parametrize(
    ("schedule", "expected", "hint"),
    [
        ("bound k = j + 1", "there is no range or size 'j'", "the ranges and sizes are: i, k"),
        ("bound k = k", "'k' stands behind 'k'",
         "expected ranges that stand before it: order them first"),
        ("bound i = 20 - k", "'k' stands behind 'i'",
         "expected ranges that stand before it: order them first"),
        ("bound k = i + 2", "the new end may lie behind the old one, 20",
         "write min(i + 2, 20) if both are meant"),
        ("bound k = i - 1", "the new end may be -1", "expected an end that is nowhere below 0"),
        ("bound k = i floordiv 0", None, None),
        ("bound k = min(i, 3) * 2", "a minimum stands inside of other operators, or a maximum",
         "expected no min but around the whole, and no max"),
        ("bound k = i // 2", "it is not well formed",
         "expected bound R = E, an expression over ranges and sizes; finite at its end"),
        ("bound k = i ** 2", "it is not well formed", None),
        ("bound k = f(i, 2)", "it is not well formed", None),
        ("bound k = finite", "there is no range or size 'finite'", None),
        ("bound i = 19", "the steps from 19 on store what they compute",
         "expected a guard that rules them out: a store cannot be left out"),
        ("mark k unroll; bound k = 19", "'k' is a range of kind unroll",
         "expected a range that is a loop: each of its steps can be left out"),
        ("tile v over k as p; bound p = i + 1", "the tile 'v' is read at k, which may be i + 1 "
         "or more", "bound the ranges that read it first, by the same expression"),
    ],
)  # fmt: skip
def test_refused(schedule: str, expected: str | None, hint: str | None) -> None:
    found = message(ROWS, schedule)
    if expected is not None:
        assert found[0] == f"in '{schedule.rpartition('; ')[2]}': {expected}"
    if hint is not None:
        assert found[1] == hint


def test_zero_times_what_may_be_nan_needs_a_word() -> None:
    kernel = attention(12)
    bounds = "bound k1 = i + 1; bound k2 = i + 1; bound k3 = i + 1"
    text, hint = message(kernel, bounds)
    assert text == "in 'bound k3 = i + 1': what 'r' takes from step i + 1 on is not known"
    assert hint == (
        "expected 0, what 'add' starts from; it is that if all factors and summands are finite: "
        "write finite to say so"
    )
    # A maximum of other values than those that it is subtracted from may be -inf: no bound.
    other = kernel.replace("%x2 = arith.subf %s2, %m", "%x2 = arith.subf %s2, %first")
    other = other.replace("%inf =", "%first = uloop.load %v[0, 0] : memref<12x8xf32>\n%inf =")
    assert "'sum' takes from step" in message(other, "bound k2 = i + 1")[0]
    wrong = kernel.replace("%kk2 = uloop.load %k[", "%kk2 = uloop.load %v[")
    assert "'sum' takes" in message(wrong, "bound k2 = i + 1")[0]


def test_the_mask_decides_not_its_likeness() -> None:
    """`k <= q + 1` keeps a step more than `k <= q`, and an i8 may wrap."""
    kernel = attention(12).replace("cmpi sle", "cmpi sgt")
    assert "takes from step" in message(kernel, "bound k1 = i + 1")[0]
    narrow = attention(200).replace(": i32", ": i8")
    assert "takes from step" in message(narrow, "bound k1 = i + 1")[0]
    unsigned = attention(12).replace("cmpi sle", "cmpi ule")
    apply(unsigned, "bound k1 = i + 1")


def test_a_reduction_by_a_region_has_no_identity() -> None:
    kernel = """
    ukernel.kernel @last ins(%x : memref<8xf32>) outs(%o : memref<f32>) {
      %zero = arith.constant 0.0 : f32
      %k = uloop.range 8 reduce
      %v = uloop.load %x[%k] : memref<8xf32>
      %s = uloop.reduce %v init %zero over (%k) {
      ^bb0(%a: f32, %b: f32):
        uloop.yield %b : f32
      } : f32 -> f32
      uloop.store %s, %o[] : memref<f32>
    }"""
    assert message(kernel, "bound k = 7") == (
        "in 'bound k = 7': 's' combines by a region, whose identity is unknown",
        "expected a reduction of a kind: add, max, …",
    )


def test_a_guard_rules_steps_out() -> None:
    """The steps of a split that lie behind the end are nothing for a store too."""
    kernel = """
    ukernel.kernel @copy ins(%x : memref<20xf32>) outs(%o : memref<20xf32>) {
      %i = uloop.range 24
      %v = uloop.load %x[%i] : memref<20xf32>
      uloop.store %v, %o[%i] : memref<20xf32>
      uloop.guard (19 - %i)
    }"""
    x = RNG.standard_normal(20).astype(np.float32)
    np.testing.assert_array_equal(run_scheduled(kernel, "bound i = 20", x), x)
    assert "store what they compute" in message(kernel, "bound i = 19")[0]


def test_padded_tiles() -> None:
    x = RNG.standard_normal((20, 20)).astype(np.float32)
    expected = run_scheduled(ROWS, "order i", x)
    padded = run_scheduled(ROWS, "tile v over i k as p q; order p q i; pad v q to 24", x)
    np.testing.assert_array_equal(padded, expected)
    op = apply(ROWS, "tile v over i k as p q; order p q i; pad v q to 24")
    assert "local : memref<20x24xf32>" in str(op)
    assert message(ROWS, "pad v k to 32") == ("in 'pad v k to 32': 'v' is not a tile", "")
    assert message(ROWS, "tile v over k as p; pad v i to 32") == (
        "in 'pad v i to 32': the tile is not over 'i'", "its ranges are: p"
    )  # fmt: skip
    assert message(ROWS, "tile v over k as p; pad v p to 19") == (
        "in 'pad v p to 19': the tile has 20 places along 'p' already", "expected no fewer"
    )  # fmt: skip
    assert "places" in message(ROWS, "tile v over k as p; pad v p to 999999999999")[0]


def apply(kernel: str, schedule: str) -> KernelOp:
    (op,) = parse_text(kernel).body.block.ops
    assert isinstance(op, KernelOp)
    apply_schedule(op, schedule)
    op.verify()
    return op


def message(kernel: str, schedule: str) -> tuple[str, str]:
    with pytest.raises(UopcError) as caught:
        apply(kernel, schedule)
    assert caught.value.kind == "bad-schedule"
    return caught.value.message.partition(": ")[2], caught.value.hint
