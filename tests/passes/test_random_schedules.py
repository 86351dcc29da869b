"""Random schedules of small kernels: refused in words, or right to the interpreter's bits."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduled_kernels import LONG, Array, run_scheduled

from uopc.dialects import loop
from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.passes.apply_schedule import apply_schedule
from uopc.passes.linearize import linearize_kernel

DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}


class Kernel(NamedTuple):
    text: str
    shapes: list[tuple[int, ...]]
    dtype: str
    expected: Callable[..., Array]


def body(inputs: dict[str, tuple[int, ...]], out: tuple[int, ...], dtype: str, lines: str) -> str:
    """A kernel of inputs of one type, whose result is f32."""

    def memref(shape: tuple[int, ...], element: str) -> str:
        return f"memref<{'x'.join(map(str, shape))}x{element}>"

    given = ", ".join(f"%{name} : {memref(shape, dtype)}" for name, shape in inputs.items())
    for name, shape in inputs.items():
        lines = lines.replace(f"{{{name}}}", memref(shape, dtype))
    lines = lines.replace("{o}", memref(out, "f32")).replace("{t}", dtype)
    return f"ukernel.kernel @k ins({given}) outs(%o : {memref(out, 'f32')}) {{\n{lines}\n}}"


def product(random: Random, dtype: str) -> Kernel:
    m, n, k = (random.choice((1, 2, 5, 8, 13, 17)) for _ in range(3))
    turned = random.random() < 0.5
    a, at = ((k, m), "%k, %i") if turned else ((m, k), "%i, %k")
    wide = (
        "%w = arith.extf %p : bf16 to f32" if dtype == "bf16" else "%w = arith.addf %p, %zero : f32"
    )
    text = body({"x": a, "y": (k, n)}, (m, n), dtype, f"""
  %i = uloop.range {m}
  %j = uloop.range {n}
  %k = uloop.range {k} reduce
  %a = uloop.load %x[{at}] : {{x}}
  %b = uloop.load %y[%k, %j] : {{y}}
  %p = arith.mulf %a, %b : {{t}}
  %zero = arith.constant 0.0 : f32
  {wide}
  %s = uloop.reduce add {"%w" if dtype == "bf16" else "%p"} over (%k) : f32
  uloop.store %s, %o[%i, %j] : {{o}}""")  # fmt: skip
    return Kernel(text, [a, (k, n)], dtype, lambda x, y: (x.T if turned else x) @ y)


def windows(random: Random, dtype: str) -> Kernel:
    f, c, k = random.randint(1, 5), random.randint(1, 3), random.randint(1, 3)
    step, columns = random.randint(1, 2), random.choice((1, 4, 9, 17))
    width = (columns - 1) * step + k
    text = body({"x": (c, width), "y": (f, c, k)}, (f, columns), dtype, f"""
  %f = uloop.range {f}
  %i = uloop.range {columns}
  %c = uloop.range {c} reduce
  %k = uloop.range {k} reduce
  %a = uloop.load %x[%c, %i * {step} + %k] : {{x}}
  %b = uloop.load %y[%f, %c, %k] : {{y}}
  %p = arith.mulf %a, %b : {{t}}
  {"%w = arith.extf %p : bf16 to f32" if dtype == "bf16" else ""}
  %s = uloop.reduce add {"%w" if dtype == "bf16" else "%p"} over (%c, %k) : f32
  uloop.store %s, %o[%f, %i] : {{o}}""")  # fmt: skip

    def expected(x: Array, y: Array) -> Array:
        views = np.lib.stride_tricks.sliding_window_view(x, k, 1)[:, ::step]
        return np.einsum("cik,fck->fi", views, y)

    return Kernel(text, [(c, width), (f, c, k)], dtype, expected)


def columns(random: Random, dtype: str) -> Kernel:
    k, j = (random.choice((1, 3, 8, 11, 16)) for _ in range(2))
    wide = "%w = arith.extf %e : bf16 to f32" if dtype == "bf16" else ""
    kind = random.choice(("add", "max"))
    text = body({"x": (k, j)}, (j,), dtype, f"""
  %j = uloop.range {j}
  %k = uloop.range {k} reduce
  %a = uloop.load %x[%k, %j] : {{x}}
  %e = arith.negf %a : {{t}}
  {wide}
  %s = uloop.reduce {kind} {"%w" if dtype == "bf16" else "%e"} over (%k) : f32
  uloop.store %s, %o[%j] : {{o}}""")  # fmt: skip
    return Kernel(text, [(k, j)], dtype, lambda x: (-x).sum(0) if kind == "add" else (-x).max(0))


def command(random: Random, op: KernelOp, fresh: str) -> str:
    """One command on what a kernel has; often one that does not fit."""
    ranges = [o.result.name_hint or "" for o in op.block.ops if isinstance(o, loop.RangeOp)]
    values = [r.name_hint for o in op.block.ops if not isinstance(o, loop.RangeOp)
              for r in o.results if r.name_hint]  # fmt: skip
    one, two = random.choice(ranges), random.choice(ranges)
    over = random.sample(ranges, min(len(ranges), random.randint(1, 3)))
    kind = random.choice(("loop", "unroll", "vector"))
    size = random.choice((2, 4, 8)) if kind == "vector" else random.randint(1, 5)
    names = " ".join(f"{fresh}{k}" for k in range(len(over)))
    total = random.choice((f"{one}+{two}", f"{one}*2+{two}"))
    value = random.choice(values)
    return random.choice((
        f"split {one} = {fresh}a {fresh}b:{size}:{kind}",
        f"split {one} = {fresh}a:{kind} {fresh}b:{size}",
        f"split {one} = {fresh}a {fresh}b:2:unroll {fresh}c:4:vector",
        f"split {one} = {fresh}a {fresh}b:{size}:unroll chain",
        f"tile {value} over {' '.join(over)} as {names}",
        f"tile {value} over {total} as {fresh}",
        f"capture {value} {one} as {fresh}",
        f"pad {value} {one} to {random.randint(1, 24)}",
        f"merge {one} {two} as {fresh}",
        f"fuse {one} into {two}",
        f"order {' '.join(over)}",
        f"mark {one} {kind}",
        f"pair {one} as {fresh}",
        "contract",
    ))  # fmt: skip


def accepted(random: Random, text: str) -> list[str]:
    """Commands that a kernel takes one after another, and that linearize takes as well."""
    found: list[str] = []
    (op,) = parse_text(text).body.block.ops
    assert isinstance(op, KernelOp)
    for number in range(random.randint(3, 30)):
        if len(found) == 6:
            break
        trial = op.clone()
        try:
            made = command(random, trial, f"z{number}")
            apply_schedule(trial, made)
            linearize_kernel(trial.clone())
        except UopcError as error:
            assert error.kind in ("bad-schedule", "no-linear-form"), error
            continue
        op = trial
        found.append(made)
    return found


@pytest.mark.parametrize("make", [product, windows, columns])
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=60 if LONG else 6, deadline=None)
@given(st.integers(0, 1 << 32))
def test_random_schedules(make: Callable[[Random, str], Kernel], dtype: str, seed: int) -> None:
    random, rng = Random(seed), np.random.default_rng(seed)
    kernel = make(random, dtype)
    schedule = "; ".join(accepted(random, kernel.text)) or "contract"
    arrays = [rng.standard_normal(s).astype(DTYPES[dtype]) for s in kernel.shapes]
    wide = [a.astype(np.float64) for a in arrays]
    try:
        got = run_scheduled(kernel.text, schedule, *arrays)
    except UopcError as error:
        assert error.kind in ("bad-schedule", "no-linear-form"), error
        return
    # Products of bf16 are rounded to it, unless they are contracted.
    near = 2e-2 * (1 + max(a.size for a in wide) ** 0.5) if dtype == "bf16" else 1e-4
    np.testing.assert_allclose(got, kernel.expected(*wide), rtol=near, atol=near, err_msg=schedule)
