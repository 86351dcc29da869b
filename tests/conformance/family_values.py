"""Cases of StableHLO's ops on elements, and of reductions and chlo."""
# ruff: noqa: E501 -- the text of an op stands on a line

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from family_cases import ELEMENTS, RNG, TOLERANCE, Array, Case, body_of, bound, draw, ints, op

UNARY: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "cbrt": np.cbrt, "ceil": np.ceil, "cosine": np.cos, "exponential": np.exp,
    "exponential_minus_one": np.expm1, "floor": np.floor, "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "negate": np.negative, "round_nearest_even": np.round, "sign": np.sign, "sine": np.sin,
    "tan": np.tan, "tanh": np.tanh,
    "log": np.log, "log_plus_one": np.log1p, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
}  # fmt: skip
POSITIVE = ("log", "log_plus_one", "rsqrt", "sqrt")
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum,
}  # fmt: skip
BITS: dict[str, Callable[..., Any]] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "divide": lambda x, y: np.trunc(x / y).astype(x.dtype), "remainder": np.fmod,
    "shift_left": np.left_shift,
}  # fmt: skip


def elementwise() -> list[Case]:
    cases: list[Case] = []
    for element in ("f64", "f32", "f16", "bf16"):
        for name, function in UNARY.items():
            x = draw(element, 3, 5)
            x = np.abs(x) + x.dtype.type(0.25) if name in POSITIVE else x
            wanted = function(x.astype(np.float64)).astype(x.dtype)
            cases.append(op(f"stablehlo.{name}", [x], [wanted], close=TOLERANCE[element] * 4))
        for name, function in (
            *BINARY.items(),
            ("divide", np.divide),
            ("atan2", np.arctan2),
            ("remainder", np.fmod),
        ):
            x, y = draw(element, 7), draw(element, 7)
            wanted = function(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
            cases.append(op(f"stablehlo.{name}", [x, y], [wanted], close=TOLERANCE[element] * 4))
    for element in ("i8", "i32", "i64", "ui8", "ui32"):
        x, y = draw(element, 9), np.abs(draw(element, 9)) % 7 + bound(element, 1)
        y = y.astype(x.dtype)
        for name, function in (BINARY | BITS).items():
            cases.append(op(f"stablehlo.{name}", [x, y], [function(x, y).astype(x.dtype)]))
        cases.append(op("stablehlo.not", [x], [~x]))
        bits = 8 * x.dtype.itemsize
        unsigned = [int(v) % 2**bits for v in x]
        cases.append(
            op("stablehlo.popcnt", [x], [np.asarray([v.bit_count() for v in unsigned], x.dtype)])
        )
        cases.append(
            op(
                "stablehlo.count_leading_zeros",
                [x],
                [np.asarray([bits - v.bit_length() for v in unsigned], x.dtype)],
            )
        )
        logical = np.asarray(
            [v >> int(k) for v, k in zip(unsigned, y, strict=True)], f"u{x.dtype.itemsize}"
        )
        cases.append(op("stablehlo.shift_right_logical", [x, y], [logical.view(x.dtype)]))
    low, x, high = draw("f32", 4) - 1, 3 * draw("f32", 4), draw("f32", 4) + 1
    cases.append(op("stablehlo.clamp", [low, x, high], [np.minimum(np.maximum(x, low), high)]))
    truth = draw("i1", 4)
    cases.append(op("stablehlo.select", [truth, low, high], [np.where(truth, low, high)]))
    return cases


DIRECTIONS: dict[str, Callable[..., Any]] = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
    "GE": np.greater_equal,
}  # fmt: skip


def ordered(x: Array) -> Array:
    """Integers in the total order of f32."""
    bits = x.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)


def comparisons() -> list[Case]:
    edges = np.asarray([np.nan, 1, -np.inf, 0.0, -0.0, np.inf, 2], np.float32)
    values = {
        "FLOAT": (edges, edges[::-1].copy()), "TOTALORDER": (edges, np.roll(edges, 1)),
        "SIGNED": (draw("i8", 6) % np.int8(3), draw("i8", 6) % np.int8(3)),
        "UNSIGNED": (draw("ui16", 6) + bound("ui16", 65400), draw("ui16", 6)),
    }  # fmt: skip
    cases: list[Case] = []
    for kind, (x, y) in values.items():
        for direction, function in DIRECTIONS.items():
            keys = (ordered(x), ordered(y)) if kind == "TOTALORDER" else (x, y)
            given = f"comparison_direction = #stablehlo<comparison_direction {direction}>, compare_type = #stablehlo<comparison_type {kind}>"
            cases.append(op("stablehlo.compare", [x, y], [np.asarray(function(*keys))], given))
    return cases


def conversions() -> list[Case]:
    cases: list[Case] = []
    for source in ELEMENTS:
        x = draw(source, 5)
        for to in ELEMENTS:
            if to != source and not ("f" in source and to.startswith("ui")):
                cases.append(op("stablehlo.convert", [x], [x.astype(ELEMENTS[to][1])]))
    words = draw("i32", 2, 3)
    cases.append(op("stablehlo.bitcast_convert", [words], [words.view(np.float32)]))
    cases.append(op("stablehlo.bitcast_convert", [words], [words.view(np.uint8).reshape(2, 3, 4)]))
    small = draw("ui8", 3, 8)
    cases.append(op("stablehlo.bitcast_convert", [small], [small.view(np.uint64).reshape(3)]))
    halves = draw("ui16", 3, 2)
    cases.append(op("stablehlo.bitcast_convert", [halves], [halves.view(np.float32).reshape(3)]))
    return cases


def two_at_once(element: str) -> str:
    """The sum of one operand and the larger of another."""
    s = f"tensor<{element}>"
    return f"{{\n^bb0(%x: {s}, %p: {s}, %y: {s}, %q: {s}):\n%u = stablehlo.add %x, %y : {s}\n%v = stablehlo.maximum %p, %q : {s}\nstablehlo.return %u, %v : {s}, {s}\n}}"


def reductions() -> list[Case]:
    kinds = (
        ("add", np.sum, 1),
        ("multiply", np.prod, 2),
        ("maximum", np.max, -3),
        ("minimum", np.min, 3),
    )
    combine: dict[str, Any] = {
        "add": np.add,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "minimum": np.minimum,
    }
    cases: list[Case] = []
    for element in ("f32", "i32", "ui8"):
        x = draw(element, 3, 4, 2)
        for kind, function, start in kinds:
            for axes in ((1,), (0, 2), (0, 1, 2)):
                first = bound(element, abs(start))
                with np.errstate(over="ignore"):
                    wanted = combine[kind](
                        first,
                        function(x, axis=axes, dtype=x.dtype)
                        if function in (np.sum, np.prod)
                        else function(x, axis=axes),
                    )
                cases.append(
                    op(
                        "stablehlo.reduce",
                        [x, first],
                        [np.asarray(wanted, x.dtype)],
                        f"dimensions = {ints(axes)}",
                        body_of(kind, element),
                        close=1e-4 if element == "f32" else 0,
                    )
                )
    x, y = draw("i32", 4, 5), draw("i32", 4, 5)
    zero = bound("i32")
    cases.append(
        op(
            "stablehlo.reduce",
            [x, y, zero, zero],
            [x.sum(0, dtype=np.int32), np.maximum(y.max(0), 0)],
            f"dimensions = {ints([0])}",
            two_at_once("i32"),
        )
    )
    truth = draw("i1", 4, 3)
    cases.append(
        op(
            "stablehlo.reduce",
            [truth, np.asarray(True)],
            [truth.all(0)],
            f"dimensions = {ints([0])}",
            body_of("and", "i1"),
        )
    )
    empty = draw("f32", 0, 3)
    cases.append(
        op(
            "stablehlo.reduce",
            [empty, bound("f32", 7)],
            [np.full(3, 7, np.float32)],
            f"dimensions = {ints([0])}",
            body_of("add", "f32"),
        )
    )
    return cases


def chlo() -> list[Case]:
    cases: list[Case] = []
    functions: dict[str, tuple[Callable[[float], float], float, float]] = {
        "acos": (math.acos, -0.9, 0.9), "acosh": (math.acosh, 1.1, 9), "asin": (math.asin, -0.9, 0.9),
        "asinh": (math.asinh, -4, 4), "atan": (math.atan, -4, 4), "atanh": (math.atanh, -0.9, 0.9),
        "cosh": (math.cosh, -3, 3), "sinh": (math.sinh, -3, 3), "tan": (math.tan, -1, 1),
        "erf": (math.erf, -2, 2), "erfc": (math.erfc, -2, 5), "lgamma": (math.lgamma, 0.2, 30),
        "bessel_i1e": (bessel_i1e, -8, 8), "square": (lambda x: x * x, -2, 2),
    }  # fmt: skip
    for name, (function, low, high) in functions.items():
        x = RNG.uniform(low, high, 9)
        cases.append(op(f"chlo.{name}", [x], [np.asarray([function(v) for v in x])], close=1e-12))
        single = x.astype(np.float32)
        wanted = np.asarray([function(float(v)) for v in single], np.float32)
        cases.append(op(f"chlo.{name}", [single], [wanted], close=4e-6))
    x, y = draw("i32", 2, 1, 3), draw("i32", 4, 1)
    for name, function in (("add", np.add), ("maximum", np.maximum), ("multiply", np.multiply)):
        cases.append(op(f"chlo.broadcast_{name}", [x, y], [function(x, y)]))
    return cases


def bessel_i1e(x: float) -> float:
    """exp(-|x|) I1(x), by its integral; the trapezoids converge faster than any power."""
    angles = (np.arange(200) + 0.5) * np.pi / 200
    return float(np.mean(np.exp(x * np.cos(angles) - abs(x)) * np.cos(angles)))
