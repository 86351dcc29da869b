"""Idioms in C: what several ops mean as one call, bit for bit, also on the widest vectors."""

from __future__ import annotations

import itertools
import shutil
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context

from uopc.dialects.locations import parse_text
from uopc.lowering.c import emit_c
from uopc.passes.expand_math import ExpandMathPass
from uopc.runtime.library import load_library

Array = np.ndarray[Any, Any]

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, 1.5e-38, 3e38, -3e38,
           88.72, 88.73, 127.9, 128.0, -87.3, -103.9, -104.0, -149.5, 0.5, -1.5)  # fmt: skip
MAXIMUM = "%r = arith.maximumf %a, %b : VECTOR"
MINIMUM = "%r = arith.minimumf %a, %b : VECTOR"
GREATER = """%m = arith.cmpf ogt, %a, %b : VECTOR
        %r = arith.select %m, %a, %b : MASK, VECTOR"""
LESSER = """%m = arith.cmpf ogt, %b, %a : VECTOR
        %r = arith.select %m, %a, %b : MASK, VECTOR"""
EXP = "%r = math.exp %a : VECTOR"
EXP2 = "%r = math.exp2 %a : VECTOR"


def values(element: str) -> tuple[Array, Array]:
    """All pairs of special numbers, and random ones."""
    dtype = np.float32 if element == "f32" else np.float64
    rng = np.random.default_rng(1)
    pairs = np.array([*itertools.product(SPECIAL, SPECIAL)], dtype)
    random = rng.uniform(-160, 140, (1024 - len(pairs), 2)).astype(dtype)
    both = np.concatenate([pairs, random])
    return both[:, 0].copy(), both[:, 1].copy()


def run(body: str, lanes: int, element: str) -> tuple[Array, str]:
    """What a function makes of `values`, so many lanes at a time; and its C."""
    v, x_type = f"vector<{lanes}x{element}>", f"memref<1024x{element}>"
    text = f"""
    func.func @f(%x : {x_type}, %y : {x_type}, %o : {x_type}) {{
      %0 = arith.constant 0 : index
      %n = arith.constant 1024 : index
      %step = arith.constant {lanes} : index
      scf.for %i = %0 to %n step %step {{
        %a = vector.load %x[%i] : {x_type}, {v}
        %b = vector.load %y[%i] : {x_type}, {v}
        {body.replace("VECTOR", v).replace("MASK", f"vector<{lanes}xi1>")}
        vector.store %r, %o[%i] : {x_type}, {v}
      }}
      func.return
    }}"""
    module = parse_text(text)
    ExpandMathPass().apply(Context(), module)
    source = emit_c(module).text
    function = load_library(source).function("f", 0, 3)
    x, y = values(element)
    out = np.empty_like(x)
    function(x.ctypes.data, y.ctypes.data, out.ctypes.data)
    return out, source


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(("element", "widest"), [("f32", 16), ("f64", 8)])
@pytest.mark.parametrize(
    ("body", "helper"),
    [
        (MAXIMUM, "max"),
        (MINIMUM, "min"),
        (GREATER, "greater"),
        (LESSER, "lesser"),
        (EXP, "scale"),
        (EXP2, "scale"),
    ],
)
def test_all_widths_have_the_same_bits(
    body: str,
    helper: str,
    element: str,
    widest: int,
    compiler: str,
    monkeypatch: pytest.MonkeyPatch,
):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    monkeypatch.setenv("UOPC_CC", compiler)
    few, _ = run(body, 2, element)
    for lanes in (widest // 2, widest):
        many, source = run(body, lanes, element)
        assert (
            f" = {helper}_{element}x{lanes}(" in source or f"{helper}_{element}x{lanes}(" in source
        )
        numbers = ~(np.isnan(few) & np.isnan(many))
        assert few[numbers].tobytes() == many[numbers].tobytes()
    x, y = values(element)
    expected = {
        "max": lambda: np.maximum(x, y),
        "min": lambda: np.minimum(x, y),
        "greater": lambda: np.where(x > y, x, y),
        "lesser": lambda: np.where(x < y, x, y),
    }.get(helper)
    if expected is not None:
        np.testing.assert_array_equal(few, expected())
    if helper in ("max", "min"):  # -0 < +0, which numpy does not say
        zeros = (x == 0) & (y == 0)
        both = np.signbit(x[zeros]), np.signbit(y[zeros])
        wanted = both[0] & both[1] if helper == "max" else both[0] | both[1]
        assert (np.signbit(few[zeros]) == wanted).all()


def test_what_lies_between_is_printed_where_it_is_needed():
    """The comparison is stored too: it stays, and the pick is one call all the same."""
    body = """%m = arith.cmpf olt, %a, %b : VECTOR
        %p = arith.select %m, %a, %b : MASK, VECTOR
        %r = arith.select %m, %p, %b : MASK, VECTOR"""
    out, source = run(body, 4, "f32")
    assert "lesser_f32x4(" in source
    assert "select_f32x4((i32x4)(" in source
    x, y = values("f32")
    np.testing.assert_array_equal(out, np.where(x < y, x, y))
