"""Small StableHLO programs of every family against numpy, in the interpreter and in C.

In C the cases of a family are one program, so that they cost one compilation.
"""
# ruff: noqa: E501 -- the text of an op stands on a line

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import uopc

sys.path.insert(0, str(Path(__file__).parent))
import semantics

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(11)
ELEMENTS: dict[str, tuple[str, Any]] = {
    "f64": ("float64", np.float64), "f32": ("float32", np.float32), "f16": ("float16", np.float16),
    "bf16": ("bfloat16", ml_dtypes.bfloat16), "i1": ("bool", np.bool_), "i8": ("int8", np.int8),
    "i16": ("int16", np.int16), "i32": ("int32", np.int32), "i64": ("int64", np.int64),
    "ui8": ("uint8", np.uint8), "ui16": ("uint16", np.uint16), "ui32": ("uint32", np.uint32),
    "ui64": ("uint64", np.uint64),
}  # fmt: skip
NAMES = {numpy: element for element, (numpy, _) in ELEMENTS.items()}


def t(x: Array) -> str:
    return f"tensor<{''.join(f'{n}x' for n in x.shape)}{NAMES[x.dtype.name]}>"


def draw(element: str, *shape: int) -> Array:
    dtype = ELEMENTS[element][1]
    if "f" in element:
        return np.asarray(RNG.uniform(-2, 2, shape), dtype)
    if element == "i1":
        return np.asarray(RNG.integers(0, 2, shape), dtype)
    low, high = (0, 100) if element.startswith("ui") else (-50, 50)
    return np.asarray(RNG.integers(low, high, shape), dtype)


def bound(element: str, value: float = 0) -> Array:
    return np.asarray(value, ELEMENTS[element][1])


@dataclass(frozen=True)
class Case:
    """Ops that compute %r from %a, %b, …; what numpy says; what may differ, relative to 1 or |x|."""

    name: str
    body: str
    inputs: tuple[Array, ...]
    results: tuple[Array, ...]
    close: float = 0

    def function(self, name: str) -> str:
        names = "abcdefgh"
        arguments = ", ".join(f"%{n}: {t(v)}" for n, v in zip(names, self.inputs, strict=False))
        types = ", ".join(map(t, self.results))
        count = len(self.results)
        returned = "%r" if count == 1 else ", ".join(f"%r#{k}" for k in range(count))
        return f"func.func {name}({arguments}) -> ({types}) {{\n{self.body}\nreturn {returned} : {types}\n}}\n"

    def check(self, got: Sequence[Any]) -> None:
        for mine, wanted in zip(got, self.results, strict=True):
            assert mine.dtype == wanted.dtype and mine.shape == wanted.shape, self.name
            if self.close and wanted.size:
                mine, wanted = mine.astype(np.float64), wanted.astype(np.float64)
                np.testing.assert_allclose(mine, wanted, self.close, self.close, err_msg=self.name)
            else:
                np.testing.assert_array_equal(mine, wanted, err_msg=self.name)


def together(cases: Sequence[Case]) -> str:
    """All cases as one program."""
    arguments: list[str] = []
    lines: list[str] = []
    returned: list[str] = []
    types: list[str] = []
    for k, case in enumerate(cases):
        names = [f"%a{k}_{i}" for i in range(len(case.inputs))]
        arguments += [f"{n}: {t(v)}" for n, v in zip(names, case.inputs, strict=True)]
        results, count = [t(v) for v in case.results], len(case.results)
        lines.append(
            f"%r{k}:{count} = func.call @case{k}({', '.join(names)}) : ({', '.join(map(t, case.inputs))}) -> ({', '.join(results)})"
        )
        returned += [f"%r{k}#{i}" for i in range(count)]
        types += results
    functions = "".join(case.function(f"private @case{k}") for k, case in enumerate(cases))
    body = "\n".join(lines)
    return f"func.func public @main({', '.join(arguments)}) -> ({', '.join(types)}) {{\n{body}\nreturn {', '.join(returned)} : {', '.join(types)}\n}}\n{functions}"


def run(text: str, target: str, inputs: Sequence[Array]) -> list[Any]:
    results: Any = uopc.from_stablehlo(text, target)(*inputs)
    return list(results) if isinstance(results, tuple) else [results]


def op(
    name: str,
    inputs: Sequence[Array],
    results: Sequence[Array],
    properties: str = "",
    regions: str = "",
    **more: Any,
) -> Case:
    """A case of one op, in generic form."""
    used = ", ".join(f"%{n}" for n, _ in zip("abcdefgh", inputs, strict=False))
    given = f" <{{{properties}}}>" if properties else ""
    inside = f" ({regions})" if regions else ""
    count = "" if len(results) == 1 else f":{len(results)}"
    text = f'%r{count} = "{name}"({used}){given}{inside} : ({", ".join(map(t, inputs))}) -> ({", ".join(map(t, results))})'
    return Case(
        f"{name} {properties[:60]} {' '.join(map(t, inputs))}",
        text,
        tuple(inputs),
        tuple(results),
        **more,
    )


def ints(values: Sequence[int]) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def pairs(values: Sequence[tuple[int, int]]) -> str:
    return f"dense<{[list(v) for v in values]}> : tensor<{len(values)}x2xi64>"


def body_of(kind: str, element: str) -> str:
    """{ kind(x, y) }; `set` gives y."""
    line = (
        f"%z = stablehlo.{kind} %x, %y : tensor<{element}>\nstablehlo.return %z : tensor<{element}>"
    )
    if kind == "set":
        line = f"stablehlo.return %y : tensor<{element}>"
    return f"{{\n^bb0(%x: tensor<{element}>, %y: tensor<{element}>):\n{line}\n}}"


# Families.

TOLERANCE = {"f64": 1e-12, "f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}
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


def windows() -> list[Case]:
    combine: dict[str, Any] = {
        "add": np.add,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "multiply": np.multiply,
    }
    settings = [
        ((5, 6), (2, 3), (1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))),
        ((5, 6), (2, 3), (2, 1), (1, 2), (2, 1), ((1, 0), (0, 2))),
        ((4, 5), (3, 1), (1, 3), (2, 1), (1, 1), ((2, 1), (-1, 0))),
        ((7,), (3,), (2,), (3,), (4,), ((2, -1),)),
        ((3, 4, 3), (2, 2, 2), (1, 2, 1), (1, 1, 2), (1, 1, 1), ((0, 1), (1, 0), (0, 0))),
    ]  # fmt: skip
    cases: list[Case] = []
    for shape, window, strides, base, dilations, padding in settings:
        for (kind, function), element in zip(
            combine.items(), ("i32", "f32", "i8", "ui16"), strict=True
        ):
            x, start = draw(element, *shape), bound(element, 1 if kind == "multiply" else 0)
            with np.errstate(over="ignore"):
                wanted = semantics.reduce_window(
                    x, start, function, window, strides, base, dilations, padding
                )
            given = f"window_dimensions = {ints(window)}, window_strides = {ints(strides)}, base_dilations = {ints(base)}, window_dilations = {ints(dilations)}, padding = {pairs(padding)}"
            cases.append(
                op("stablehlo.reduce_window", [x, start], [wanted], given, body_of(kind, element))
            )
    ge = "{\n^bb0(%x: tensor<i32>, %y: tensor<i32>):\n%z = stablehlo.compare GE, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %z : tensor<i1>\n}"
    for shape, window, strides, padding in (
        ((6, 4), (2, 2), (2, 2), ((0, 0), (0, 0))), ((5, 5), (3, 2), (1, 2), ((1, 1), (0, 1))),
        ((7,), (3,), (2,), ((1, 1),)),
    ):  # fmt: skip
        x = draw("i32", *shape) // 10
        sizes = [
            semantics.window_count(n + a + b, w, s, 1)
            for n, (a, b), w, s in zip(shape, padding, window, strides, strict=True)
        ]
        source, start = draw("i32", *sizes), bound("i32", 3)
        given = f"window_dimensions = {ints(window)}, window_strides = {ints(strides)}, padding = {pairs(padding)}"
        for kind in ("add", "maximum"):
            wanted = semantics.select_and_scatter(
                x, source, start, np.greater_equal, combine[kind], window, strides, padding
            )
            cases.append(
                op(
                    "stablehlo.select_and_scatter",
                    [x, source, start],
                    [wanted],
                    given,
                    f"{ge}, {body_of(kind, 'i32')}",
                )
            )
    return cases


def indexing() -> list[Case]:
    """Settings: operand, indices, offset and collapsed axes, batching axes of both, map, vector axis, sizes."""
    settings = [
        ((5, 4), (3, 1), (1,), (0,), (), (), (0,), 1, (1, 4)),
        ((5, 4), (2, 6), (0,), (1,), (), (), (1, 0), 0, (2, 1)),
        ((5, 4), (7,), (0,), (1,), (), (), (1,), 1, (3, 1)),
        ((3, 5, 4), (2, 2, 3), (1, 3), (2,), (), (), (0, 2), 1, (2, 4, 1)),
        ((3, 5, 4), (3, 2, 2), (2,), (1,), (0,), (0,), (1, 2), 2, (1, 1, 3)),
        ((4, 3, 2), (2, 4, 1), (2,), (), (2, 0), (0, 1), (1,), 2, (1, 2, 1)),
        ((3, 3), (0, 2), (1,), (0,), (), (), (0, 1), 1, (1, 2)),
    ]  # fmt: skip
    cases: list[Case] = []
    combine: dict[str, Any] = {
        "add": np.add,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "set": lambda _, y: y,
    }
    for position, setting in enumerate(settings):
        shape, where, offsets, collapsed, batching, index_batching, index_map, vector, sizes = (
            setting
        )
        element, index = ("f32", "i32", "i64", "i8")[position % 4], ("i32", "i64")[position % 2]
        x = draw(element, *shape)
        indices = RNG.integers(-2, 7, where).astype(ELEMENTS[index][1])
        wanted = semantics.gather(
            x, indices, offsets, collapsed, batching, index_batching, index_map, vector, sizes
        )
        numbers = f"offset_dims = {list(offsets)}, collapsed_slice_dims = {list(collapsed)}, operand_batching_dims = {list(batching)}, start_indices_batching_dims = {list(index_batching)}, start_index_map = {list(index_map)}, index_vector_dim = {vector}"
        cases.append(
            op(
                "stablehlo.gather",
                [x, indices],
                [wanted],
                f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {ints(sizes)}",
            )
        )
        numbers = f"update_window_dims = {list(offsets)}, inserted_window_dims = {list(collapsed)}, input_batching_dims = {list(batching)}, scatter_indices_batching_dims = {list(index_batching)}, scatter_dims_to_operand_dims = {list(index_map)}, index_vector_dim = {vector}"
        for kind, function in combine.items():
            updates = draw(element, *wanted.shape)
            with np.errstate(over="ignore"):
                result = semantics.scatter(
                    x,
                    indices,
                    updates,
                    function,
                    offsets,
                    collapsed,
                    batching,
                    index_batching,
                    index_map,
                    vector,
                )
            cases.append(
                op(
                    "stablehlo.scatter",
                    [x, indices, updates],
                    [result],
                    f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>",
                    body_of(kind, element),
                )
            )
    x, update = draw("f32", 4, 5, 3), draw("f32", 2, 5, 1)
    for starts in ((1, 0, 2), (-7, 3, 9), (2**31 - 1, -(2**31), 0)):
        at = [bound("i32", n) for n in starts]
        places = tuple(
            slice(min(max(s, 0), n - m), min(max(s, 0), n - m) + m)
            for s, n, m in zip(starts, x.shape, update.shape, strict=True)
        )
        cases.append(
            op(
                "stablehlo.dynamic_slice",
                [x, *at],
                [x[places].copy()],
                f"slice_sizes = {ints(update.shape)}",
            )
        )
        changed = x.copy()
        changed[places] = update
        cases.append(op("stablehlo.dynamic_update_slice", [x, update, *at], [changed]))
    return cases


def products() -> list[Case]:
    cases: list[Case] = []
    for element in ("f32", "f64", "i32", "bf16"):
        for left, right, batch, contract, rule in (
            ((3, 4), (4, 5), ((), ()), ((1,), (0,)), "mk,kn->mn"),
            ((2, 3, 4), (5, 2, 4), ((0,), (1,)), ((2,), (2,)), "bmk,nbk->bmn"),
            ((2, 3, 4, 2), (4, 2, 3, 2), ((0, 3), (1, 3)), ((1, 2), (2, 0)), "bijc,jbic->bc"),
            ((3,), (4,), ((), ()), ((), ()), "i,j->ij"),
        ):
            x, y = draw(element, *left), draw(element, *right)
            wide = np.int64 if element == "i32" else np.float64
            wanted = np.einsum(rule, x.astype(wide), y.astype(wide)).astype(x.dtype)
            numbers = f"lhs_batching_dimensions = {list(batch[0])}, rhs_batching_dimensions = {list(batch[1])}, lhs_contracting_dimensions = {list(contract[0])}, rhs_contracting_dimensions = {list(contract[1])}"
            cases.append(
                op(
                    "stablehlo.dot_general",
                    [x, y],
                    [wanted],
                    f"dot_dimension_numbers = #stablehlo.dot<{numbers}>",
                    close=10 * TOLERANCE.get(element, 0),
                )
            )
    return cases


def convolutions() -> list[Case]:
    """Settings: image, kernel, strides, padding, dilations of both, reversal, groups of features and batch."""
    settings = [
        ((2, 3, 6), (4, 3, 3), (1,), ((0, 0),), (1,), (1,), (False,), 1, 1),
        ((2, 4, 6), (6, 2, 3), (2,), ((1, 2),), (2,), (2,), (True,), 2, 1),
        ((4, 2, 5), (6, 2, 2), (1,), ((1, -1),), (1,), (1,), (False,), 1, 2),
        ((1, 2, 5, 6), (3, 2, 2, 3), (2, 1), ((1, 0), (-1, 3)), (1, 2), (2, 1), (False, True), 1, 1),
        ((2, 3, 4, 4), (3, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), (True, True), 3, 1),
        ((1, 1, 3, 4, 3), (2, 1, 2, 2, 2), (1, 2, 1), ((0, 1), (1, 0), (0, 0)), (1, 1, 2), (1, 1, 1), (False, False, True), 1, 1),
    ]  # fmt: skip
    cases: list[Case] = []
    for position, (
        shape,
        weights,
        strides,
        padding,
        lhs,
        rhs,
        reversal,
        features,
        batches,
    ) in enumerate(settings):
        x, kernel = draw("i32", *shape), draw("i32", *weights)
        wanted = semantics.convolution(
            x, kernel, strides, padding, lhs, rhs, reversal, features, batches
        )
        spatial = list(range(2, x.ndim))
        names = [str(k) for k in range(x.ndim - 2)]
        layout, order = (["b", "f", *names], [0, 1, *spatial])
        kernels, korder = (["o", "i", *names], [0, 1, *spatial])
        if position % 2:  # channels last
            layout, order = ["b", *names, "f"], [0, *spatial, 1]
            kernels, korder = [*names, "i", "o"], [*spatial, 1, 0]
        x, wanted = (np.ascontiguousarray(v.transpose(order)) for v in (x, wanted))
        kernel = np.ascontiguousarray(kernel.transpose(korder))
        numbers = f"[{', '.join(layout)}]x[{', '.join(kernels)}]->[{', '.join(layout)}]"
        turned = ", ".join(str(v).lower() for v in reversal)
        given = f"window_strides = {ints(strides)}, padding = {pairs(padding)}, lhs_dilation = {ints(lhs)}, rhs_dilation = {ints(rhs)}, window_reversal = array<i1: {turned}>, dimension_numbers = #stablehlo.conv<{numbers}>, feature_group_count = {features} : i64, batch_group_count = {batches} : i64"
        cases.append(op("stablehlo.convolution", [x, kernel], [wanted], given))
    return cases


def movement() -> list[Case]:
    cases: list[Case] = []
    for element, shape, low, high, interior in (
        ("f32", (3, 4), (1, 0), (0, 2), (0, 0)), ("i8", (3, 4), (-1, 2), (1, -2), (2, 1)),
        ("ui32", (5,), (-2,), (-1,), (1,)), ("f64", (2, 1, 3), (0, 3, -1), (1, -1, 0), (1, 4, 2)),
        ("i64", (0, 2), (2, 0), (1, 0), (3, 0)), ("i1", (2, 2), (0, -1), (0, 0), (1, 1)),
    ):  # fmt: skip
        x, value = draw(element, *shape), bound(element, 1)
        wanted = semantics.padded(x, value, low, high, interior)
        given = f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(interior)}"
        cases.append(op("stablehlo.pad", [x, value], [wanted], given))
    for element in ("f32", "bf16", "i16", "i1"):
        x, y, none = draw(element, 2, 3, 4), draw(element, 2, 1, 4), draw(element, 2, 0, 4)
        cases += [
            op("stablehlo.concatenate", [x, none, y, x], [np.concatenate([x, none, y, x], 1)], "dimension = 1 : i64"),
            op("stablehlo.reshape", [x], [x.reshape(4, 1, 6)]),
            op("stablehlo.reshape", [none], [none.reshape(0, 3)]),
            op("stablehlo.transpose", [x], [x.transpose(2, 0, 1).copy()], f"permutation = {ints([2, 0, 1])}"),
            op("stablehlo.reverse", [x], [x[::-1, :, ::-1].copy()], f"dimensions = {ints([0, 2])}"),
            op("stablehlo.slice", [x], [x[:, 1:3:2, 1:4].copy()], f"start_indices = {ints([0, 1, 1])}, limit_indices = {ints([2, 3, 4])}, strides = {ints([1, 2, 1])}"),
            op("stablehlo.broadcast_in_dim", [y], [np.broadcast_to(y.transpose(2, 0, 1)[:, :, None], (4, 2, 3, 1)).copy()], f"broadcast_dimensions = {ints([1, 3, 0])}"),
        ]  # fmt: skip
    for element in ("f32", "f16", "i8", "ui64", "i32"):
        for axis in (0, 1):
            wanted = np.arange((3, 5)[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
            wanted = np.broadcast_to(wanted, (3, 5)).astype(ELEMENTS[element][1])
            cases.append(op("stablehlo.iota", [], [wanted], f"iota_dimension = {axis} : i64"))
    return cases


def sorts() -> list[Case]:
    cases: list[Case] = []
    for element, shape, axis in (
        ("f32", (4, 5), 0),
        ("i32", (4, 5), 1),
        ("ui8", (3, 2, 6), 2),
        ("f64", (1,), 0),
        ("i64", (2, 0), 1),
    ):
        x = draw(element, *shape)
        x = x // x.dtype.type(10) if "i" in element else x
        row = np.arange(x.size, dtype=np.int32).reshape(shape)
        kind = "FLOAT" if "f" in element else "UNSIGNED" if element.startswith("u") else "SIGNED"
        for direction in ("LT", "GT"):
            keys = x.astype(np.float64) * (1 if direction == "LT" else -1)
            order = np.argsort(keys, axis, kind="stable")
            wanted = [np.take_along_axis(v, order, axis) for v in (x, row)]
            s = f"tensor<{element}>"
            compare = f"{{\n^bb0(%x: {s}, %y: {s}, %p: tensor<i32>, %q: tensor<i32>):\n%z = stablehlo.compare {direction}, %x, %y, {kind} : ({s}, {s}) -> tensor<i1>\nstablehlo.return %z : tensor<i1>\n}}"
            cases.append(
                op(
                    "stablehlo.sort",
                    [x, row],
                    wanted,
                    f"dimension = {axis} : i64, is_stable = true",
                    compare,
                )
            )
    for element in ("f32", "i16"):
        x = draw(element, 2, 3, 7)
        order = np.argsort(-x.astype(np.float64), 2, kind="stable")[..., :3]
        wanted = [np.take_along_axis(x, order, 2), order.astype(np.int32)]
        cases.append(op("chlo.top_k", [x], wanted, "k = 3 : i64"))
    return cases


def solvers() -> list[Case]:
    cases: list[Case] = []
    base = draw("f64", 2, 4, 4)
    spread = base / 4 + 2 * np.eye(4)
    for left in (True, False):
        right = draw("f64", 2, 4, 3) if left else draw("f64", 2, 3, 4)
        for lower in (True, False):
            for unit in (True, False):
                triangle = np.tril(spread) if lower else np.triu(spread)
                if unit:
                    triangle = triangle * (1 - np.eye(4)) + np.eye(4)
                for transpose in ("NO_TRANSPOSE", "TRANSPOSE"):
                    used = triangle.swapaxes(1, 2) if transpose == "TRANSPOSE" else triangle
                    inverse = np.linalg.inv(used)
                    wanted = inverse @ right if left else right @ inverse
                    given = f"left_side = {str(left).lower()}, lower = {str(lower).lower()}, unit_diagonal = {str(unit).lower()}, transpose_a = #stablehlo<transpose {transpose}>"
                    cases.append(
                        op(
                            "stablehlo.triangular_solve",
                            [spread, right],
                            [wanted],
                            given,
                            close=1e-11,
                        )
                    )
    positive = spread @ spread.swapaxes(1, 2)
    root = np.linalg.cholesky(positive)
    for lower in (True, False):
        body = f'%c = "stablehlo.cholesky"(%a) <{{lower = {str(lower).lower()}}}> : ({t(positive)}) -> {t(positive)}\n'
        # The other triangle is the implementation's: it is masked.
        body += "%r = stablehlo.multiply %c, %b : " + t(positive)
        mask = np.broadcast_to(
            np.tril(np.ones((4, 4))) if lower else np.triu(np.ones((4, 4))), (2, 4, 4)
        ).copy()
        cases.append(
            Case(
                f"cholesky {lower}",
                body,
                (positive, mask),
                (root if lower else root.swapaxes(1, 2).copy(),),
                1e-11,
            )
        )
    return cases


def random_bits() -> list[Case]:
    cases: list[Case] = []
    for key, counter, shape in (
        (0, 0, (3,)),
        (2**63 + 12345, 2**32 - 1, (2, 3)),
        (7, 2**64 - 2, (4,)),
    ):
        count = math.prod(shape)
        bits = semantics.threefry(key, [(counter + k) % 2**64 for k in range(count)])
        state = np.asarray([key, counter], np.uint64)
        after = np.asarray([key, (counter + count) % 2**64], np.uint64)
        results = [after, np.asarray(bits, np.uint64).reshape(shape)]
        cases.append(
            op(
                "stablehlo.rng_bit_generator",
                [state],
                results,
                "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>",
            )
        )
    return cases


BRANCHES = """%r = "stablehlo.case"(%a) ({
  %0 = stablehlo.add %b, %b : tensor<3xi32>
  stablehlo.return %0 : tensor<3xi32>
}, {
  %0 = stablehlo.negate %b : tensor<3xi32>
  stablehlo.return %0 : tensor<3xi32>
}, {
  %0 = stablehlo.multiply %b, %b : tensor<3xi32>
  stablehlo.return %0 : tensor<3xi32>
}) : (tensor<i32>) -> tensor<3xi32>"""
NESTED = """
%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%w:2 = stablehlo.while(%i = %zero, %s = %b) : tensor<i32>, tensor<3xi32>
cond {
  %0 = stablehlo.compare LT, %i, %a, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
} do {
  %v:2 = stablehlo.while(%j = %zero, %p = %s) : tensor<i32>, tensor<3xi32>
  cond {
    %0 = stablehlo.compare LE, %j, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  } do {
    %0 = stablehlo.add %j, %one : tensor<i32>
    %1 = stablehlo.add %p, %p : tensor<3xi32>
    stablehlo.return %0, %1 : tensor<i32>, tensor<3xi32>
  }
  %c = stablehlo.compare EQ, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %2 = "stablehlo.if"(%c) ({
    %3 = stablehlo.negate %v#1 : tensor<3xi32>
    stablehlo.return %3 : tensor<3xi32>
  }, {
    stablehlo.return %v#1 : tensor<3xi32>
  }) : (tensor<i1>) -> tensor<3xi32>
  %4 = stablehlo.add %i, %one : tensor<i32>
  stablehlo.return %4, %2 : tensor<i32>, tensor<3xi32>
}
%r = stablehlo.optimization_barrier %w#1 : tensor<3xi32>"""


def control() -> list[Case]:
    x = draw("i32", 3)
    cases = [
        Case(f"case {k}", BRANCHES, (bound("i32", k), x), (wanted,))
        for k, wanted in ((0, x + x), (1, -x), (2, x * x), (3, x * x), (-1, x * x))
    ]
    for count in (0, 1, 4):
        wanted = x.copy()
        for i in range(count):
            wanted = wanted * np.int32(2 ** (i + 1) * (-1 if i == 1 else 1))
        cases.append(Case(f"loops of {count}", NESTED, (bound("i32", count), x), (wanted,)))
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


FAMILIES: dict[str, list[Case]] = {
    "elementwise": elementwise(), "comparisons": comparisons(), "conversions": conversions(),
    "reductions": reductions(), "windows": windows(), "indexing": indexing(),
    "products": products(), "convolutions": convolutions(), "movement": movement(),
    "sorts": sorts(), "solvers": solvers(), "random bits": random_bits(), "control": control(),
    "chlo": chlo(),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", ["interpreter", "c"])
def test_family(family: str, target: str):
    cases = FAMILIES[family]
    inputs = [v for case in cases for v in case.inputs]
    results = run(together(cases), target, inputs)
    for case in cases:
        count = len(case.results)
        case.check(results[:count])
        results = results[count:]
    assert not results
