"""StableHLO programs against numpy: every theme of the conversion, in the interpreter and in C."""
# ruff: noqa: E501 -- the text of a program stands on a line

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import uopc
from uopc.dialects.errors import UnsupportedError, UopcError

Array = np.ndarray[Any, np.dtype[Any]]
RNG = np.random.default_rng(7)

ELEMENTS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "bool": "i1",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
}  # fmt: skip


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.uniform(-2, 2, shape).astype(dtype)


def integers(*shape: int, low: int = -50, high: int = 50, dtype: Any = np.int32) -> Array:
    return RNG.integers(low, high, shape).astype(dtype)


def type_text(array: Array) -> str:
    sizes = "".join(f"{n}x" for n in array.shape)
    return f"tensor<{sizes}{ELEMENTS[array.dtype.name]}>"


@dataclass(frozen=True)
class Case:
    """A body that computes %r from %a, %b, …, and what numpy says it is."""

    name: str
    body: str
    inputs: tuple[Array, ...]
    expected: Array | Sequence[Array]
    close: float = 1e-5
    in_c: bool = False

    @property
    def results(self) -> list[Array]:
        return [self.expected] if isinstance(self.expected, np.ndarray) else [*self.expected]

    def text(self) -> str:
        names = "abcdefgh"[: len(self.inputs)]
        arguments = ", ".join(
            f"%{n}: {type_text(v)}" for n, v in zip(names, self.inputs, strict=True)
        )
        types = ", ".join(map(type_text, self.results))
        count = len(self.results)
        returned = "%r" if count == 1 else ", ".join(f"%r#{k}" for k in range(count))
        body, _, functions = self.body.partition("---")
        return (
            f"func.func public @main({arguments}) -> ({types}) {{\n{body}\n"
            f"return {returned} : {types}\n}}\n{functions}"
        )


def t(array: Array) -> str:
    return type_text(array)


def unary(op: str, function: Callable[[Array], Any], x: Array, **options: Any) -> Case:
    dialect = "" if "." in op else "stablehlo."
    return Case(op, f"%r = {dialect}{op} %a : {t(x)}", (x,), np.asarray(function(x)), **options)


def binary(
    op: str, function: Callable[[Array, Array], Any], x: Array, y: Array, name: str = ""
) -> Case:
    expected = np.asarray(function(x, y)).astype(x.dtype)
    return Case(name or op, f"%r = stablehlo.{op} %a, %b : {t(x)}", (x, y), expected)


def compare(direction: str, function: Callable[..., Any], x: Array, y: Array, kind: str) -> Case:
    body = f"%r = stablehlo.compare {direction}, %a, %b, {kind} : ({t(x)}, {t(y)}) -> {{}}"
    expected = np.asarray(function(x, y))
    return Case(f"{direction} {kind}", body.format(t(expected)), (x, y), expected)


X, Y = floats(3, 5), floats(3, 5)
M, N = integers(3, 5), integers(3, 5)
U = integers(4, low=0, high=255, dtype=np.uint8)
P = np.asarray([True, False, True])
Q = np.asarray([True, True, False])
HALVES = np.asarray([-2.5, -1.5, -0.5, 0.49999997, 0.5, 1.5, 2.5], np.float32)
SCALAR = np.asarray(3.0, np.float32)
TOTAL = np.asarray([np.nan, np.inf, 1.0, 0.0, -0.0, -np.inf], np.float32)


def away(x: Array) -> Array:
    return np.trunc(x) + np.where(np.abs(x - np.trunc(x)) >= 0.5, np.sign(x), 0).astype(x.dtype)


def bits_of(x: float) -> Array:
    word = int(np.float64(x).view(np.uint64))
    return np.asarray([word >> k & 1 for k in range(64)], np.bool_)


ELEMENTWISE = [
    binary("add", np.add, X, Y),
    binary("add", np.logical_or, P, Q, "add of truth values is or"),
    binary("multiply", np.logical_and, P, Q, "multiply of truth values is and"),
    binary("divide", lambda x, y: np.trunc(x / y), M, np.where(N == 0, 7, N).astype(np.int32)),
    binary("remainder", np.fmod, M, np.where(N == 0, 7, N).astype(np.int32)),
    binary("maximum", np.maximum, X, Y),
    binary("power", np.power, np.abs(X), Y),
    binary("atan2", np.arctan2, X, Y),
    binary("xor", np.bitwise_xor, M, N),
    binary("shift_left", np.left_shift, U, U % np.uint8(8)),
    binary("shift_right_logical", lambda x, y: (x.view(np.uint32) >> y.view(np.uint32)).view(np.int32), M, np.abs(N) % 32),
    binary("shift_right_arithmetic", np.right_shift, M, np.abs(N) % 32),
    unary("abs", np.abs, M),
    unary("negate", np.negative, X),
    unary("not", np.logical_not, P),
    unary("sign", np.sign, X),
    unary("floor", np.floor, X),
    unary("exponential", np.exp, X, in_c=True),
    unary("log_plus_one", np.log1p, np.abs(X)),
    unary("logistic", lambda x: 1 / (1 + np.exp(-x)), X),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), np.abs(X) + 1),
    unary("popcnt", lambda x: np.asarray([bin(v).count("1") for v in x], np.uint8), U),
    unary("round_nearest_even", np.round, HALVES),
    unary("round_nearest_afz", away, HALVES, close=0),
    Case("is_finite", f"%r = stablehlo.is_finite %a : ({t(TOTAL)}) -> tensor<6xi1>", (TOTAL,), np.isfinite(TOTAL)),
    compare("LT", np.less, X, Y, "FLOAT"),
    compare("GE", np.greater_equal, M, N, "SIGNED"),
    compare("NE", np.not_equal, U, U[::-1].copy(), "UNSIGNED"),
    Case("TOTALORDER", f"%r = stablehlo.compare GT, %a, %b, TOTALORDER : ({t(TOTAL)}, {t(TOTAL)}) -> tensor<6xi1>", (TOTAL, np.roll(TOTAL, -1)), np.asarray([True, True, True, True, True, False])),
    Case("select by a scalar", f"%r = stablehlo.select %a, %b, %c : tensor<i1>, {t(X)}", (np.asarray(False), X, Y), Y),
    Case("clamp by scalars", f"%r = stablehlo.clamp %a, %b, %c : (tensor<f32>, {t(X)}, tensor<f32>) -> {t(X)}", (np.asarray(-1, np.float32), X, np.asarray(1, np.float32)), X.clip(-1, 1)),
    Case("convert", f"%r = stablehlo.convert %a : ({t(X)}) -> tensor<3x5xi32>", (X,), X.astype(np.int32)),
    Case("bitcast_convert to less", f"%r = stablehlo.bitcast_convert %a : ({t(M)}) -> tensor<3x5x2xui16>", (M,), M.view(np.uint16).reshape(3, 5, 2)),
    Case("bitcast_convert to more", "%r = stablehlo.bitcast_convert %a : (tensor<4xui8>) -> tensor<i32>", (U,), U.view(np.int32).reshape(())),
    Case("bitcast_convert to truth", "%r = stablehlo.bitcast_convert %a : (tensor<f64>) -> tensor<64xi1>", (np.asarray(-1.25e-7),), bits_of(-1.25e-7)),
    Case("reduce_precision", "%r = stablehlo.reduce_precision %a, format = e8m7 : tensor<7xf32>", (HALVES * np.float32(1.001),), (HALVES * np.float32(1.001)).astype(ml_dtypes.bfloat16).astype(np.float32), close=0),
    Case("constants as bits", "%x = stablehlo.constant dense<0xFF800000> : tensor<f32>\n%y = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<2xf32>\n%r = stablehlo.maximum %a, %y : tensor<2xf32>", (X[0, :2],), X[0, :2]),
]  # fmt: skip

SHAPES = [
    Case("broadcast_in_dim", f"%r = stablehlo.broadcast_in_dim %a, dims = [2, 0] : ({t(X)}) -> tensor<5x2x3xf32>", (X,), np.broadcast_to(X.T[:, None], (5, 2, 3)).copy()),
    Case("transpose", f"%r = stablehlo.transpose %a, dims = [1, 0] : ({t(X)}) -> tensor<5x3xf32>", (X,), X.T.copy()),
    Case("reshape", f"%r = stablehlo.reshape %a : ({t(X)}) -> tensor<15xf32>", (X,), X.reshape(15)),
    Case("slice", f"%r = stablehlo.slice %a [1:3, 0:5:2] : ({t(X)}) -> tensor<2x3xf32>", (X,), X[1:3, ::2].copy()),
    Case("reverse", f"%r = stablehlo.reverse %a, dims = [1] : {t(X)}", (X,), X[:, ::-1].copy()),
    Case("concatenate", "%r = stablehlo.concatenate %a, %b, %a, dim = 0 : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<9x5xf32>", (X, Y), np.concatenate([X, Y, X]), in_c=True),
    Case("pad", f"%r = stablehlo.pad %a, %b, low = [1, -1], high = [0, 2], interior = [1, 0] : ({t(X)}, tensor<f32>) -> tensor<6x6xf32>", (X, SCALAR), np.pad(np.insert(X, [1, 2], 3, axis=0)[:, 1:], ((1, 0), (0, 2)), constant_values=3), in_c=True),
    Case("iota", "%r = stablehlo.iota dim = 1 : tensor<2x3xui8>", (), np.broadcast_to(np.arange(3, dtype=np.uint8), (2, 3)).copy()),
]  # fmt: skip


def nan_argmax(x: Array) -> list[Array]:
    return [x.max(1), x.argmax(1).astype(np.int32)]


ARGMAX = """
%i = stablehlo.iota dim = 1 : tensor<3x5xi32>
%v = stablehlo.constant dense<0xFF800000> : tensor<f32>
%z = stablehlo.constant dense<0> : tensor<i32>
%r:2 = stablehlo.reduce(%a init: %v), (%i init: %z) across dimensions = [1] : (tensor<3x5xf32>, tensor<3x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
 reducer(%x: tensor<f32>, %y: tensor<f32>) (%p: tensor<i32>, %q: tensor<i32>) {
  %0 = stablehlo.compare GT, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %1 = stablehlo.select %0, %x, %y : tensor<i1>, tensor<f32>
  %2 = stablehlo.select %0, %p, %q : tensor<i1>, tensor<i32>
  stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
 }"""

WINDOWS = """
%v = stablehlo.constant dense<0.0> : tensor<f32>
%r = "stablehlo.reduce_window"(%a, %v) <{window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 2>, padding = dense<[[1, 0], [0, 2]]> : tensor<2x2xi64>, window_dilations = array<i64: 2, 1>}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %0 = stablehlo.OP %x, %y : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<3x5xf32>, tensor<f32>) -> tensor<2x3xf32>"""


def windowed(x: Array, combine: Callable[..., Any]) -> Array:
    padded = np.pad(x, ((1, 0), (0, 2)))
    return np.asarray(
        [
            [combine(padded[i : i + 3 : 2, j : j + 3], initial=0) for j in (0, 2, 4)]
            for i in range(2)
        ],
        np.float32,
    )


SELECT_AND_SCATTER = """
%v = stablehlo.constant dense<0.0> : tensor<f32>
%r = "stablehlo.select_and_scatter"(%a, %b, %v) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>, padding = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %0 = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
}, {
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %0 = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %0 : tensor<f32>
}) : (tensor<5xf32>, tensor<3xf32>, tensor<f32>) -> tensor<5xf32>"""


def scattered(x: Array, source: Array) -> Array:
    result = np.zeros_like(x)
    for window, begin in enumerate((-1, 1, 3)):
        places = [k for k in range(begin, begin + 3) if 0 <= k < len(x)]
        result[max(places, key=lambda k: x[k])] += source[window]
    return result


NEGATIVE = -np.abs(floats(5)) - np.float32(1)

REDUCTIONS = [
    Case("sum from 3", f"%r = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [0] : ({t(X)}, tensor<f32>) -> tensor<5xf32>", (X, SCALAR), X.sum(0) + 3, in_c=True),
    Case("any", "%f = stablehlo.constant dense<false> : tensor<i1>\n%r = stablehlo.reduce(%a init: %f) applies stablehlo.or across dimensions = [0] : (tensor<3xi1>, tensor<i1>) -> tensor<i1>", (P,), np.asarray(True)),
    Case("maximum and where, by a body of its own", ARGMAX, (X,), nan_argmax(X), in_c=True),
    Case("windows of sums", WINDOWS.replace("OP", "add"), (X,), windowed(X, np.sum), in_c=True),
    Case("windows of maxima", WINDOWS.replace("OP", "maximum"), (np.abs(X),), windowed(np.abs(X), np.max)),
    Case("select_and_scatter, not in the padding", SELECT_AND_SCATTER, (NEGATIVE, floats(3)), np.zeros(5, np.float32)),
    Case("map", f'%r = "stablehlo.map"(%a, %b) <{{dimensions = array<i64: 0, 1>}}> ({{\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n%0 = stablehlo.subtract %x, %y : tensor<f32>\nstablehlo.return %0 : tensor<f32>\n}}) : ({t(X)}, {t(X)}) -> {t(X)}', (X, Y), X - Y),
]  # fmt: skip
_scatter = REDUCTIONS[5]
REDUCTIONS[5] = Case(_scatter.name, _scatter.body, _scatter.inputs, scattered(*_scatter.inputs))

A, B = floats(2, 3, 4), floats(2, 4, 5)
IMAGE, KERNEL = floats(2, 6, 4), floats(3, 2, 6)


def convolved(image: Array, kernel: Array) -> Array:
    """Two groups of features, stride 2, padding 1 and 2, dilation 2 of the kernel."""
    padded = np.pad(image, ((0, 0), (1, 2), (0, 0)))
    groups: list[Array] = []
    for g in range(2):
        own, weights = padded[:, :, 2 * g : 2 * g + 2], kernel[:, :, 3 * g : 3 * g + 3]
        rows = [np.einsum("nki,kio->no", own[:, i : i + 5 : 2], weights) for i in (0, 2, 4)]
        groups.append(np.stack(rows, 1))
    return np.concatenate(groups, 2).astype(np.float32)


PRODUCTS = [
    Case("dot_general", "%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>", (A, B), A @ B, in_c=True),
    Case("dot_general of bytes", "%r = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<4xui8>, tensor<4xui8>) -> tensor<i32>", (U, U), np.asarray((U.astype(np.int32) ** 2).sum(), np.int32)),
    Case("convolution", "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 2]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x4xf32>, tensor<3x2x6xf32>) -> tensor<2x3x6xf32>", (IMAGE, KERNEL), convolved(IMAGE, KERNEL), in_c=True),
]  # fmt: skip

ROWS = np.asarray([[4], [-1], [9], [0]], np.int32)
PAIRS = np.asarray([[0, 4], [2, -3], [1, 1]], np.int64)


def region(*ops: str, element: str = "f32") -> str:
    body = "\n".join(ops)
    return f"({{\n^bb0(%x: tensor<{element}>, %y: tensor<{element}>):\n{body}\n}})"


ADD = region("%0 = stablehlo.add %x, %y : tensor<f32>", "stablehlo.return %0 : tensor<f32>")
SET = region("stablehlo.return %y : tensor<f32>")
BLEND = region(
    "%0 = stablehlo.add %x, %x : tensor<f32>",
    "%1 = stablehlo.subtract %0, %y : tensor<f32>",
    "stablehlo.return %1 : tensor<f32>",
)


def blended(x: Array, places: Array, updates: Array) -> Array:
    result = x.copy()
    for place, update in zip(places, updates, strict=True):
        if 0 <= place < len(x):
            result[place] = 2 * result[place] - update
    return result


def added_rows(x: Array, places: Array, updates: Array) -> Array:
    result = x.copy()
    for place, update in zip(places.reshape(-1), updates, strict=True):
        if 0 <= place < len(x):
            result[place] += update
    return result


def set_windows(x: Array, updates: Array) -> Array:
    result = x.copy()
    for (i, j), update in zip(PAIRS, updates, strict=True):
        for k in range(2):
            if 0 <= i < 3 and 0 <= j + k < 5:
                result[i, j + k] = update[k]
    return result


TAKEN = np.stack([X[i, max(0, min(j, 3)) :][:2] for i, j in PAIRS])
UPDATES = floats(4, 5)
WINDOW_UPDATES = floats(3, 2)
LINE = floats(5)
ORDER = np.asarray([[1], [1], [7], [4]], np.int64)

INDICES = [
    Case("dynamic_slice", f"%r = stablehlo.dynamic_slice %a, %b, %c, sizes = [2, 3] : ({t(X)}, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>", (X, np.asarray(9, np.int32), np.asarray(-4, np.int32)), X[1:3, :3].copy(), in_c=True),
    Case("dynamic_slice far outside", "%r = stablehlo.dynamic_slice %a, %b, sizes = [2] : (tensor<5xf32>, tensor<ui64>) -> tensor<2xf32>", (LINE, np.asarray(2**64 - 1, np.uint64)), LINE[3:]),
    Case("dynamic_update_slice", f"%r = stablehlo.dynamic_update_slice %a, %b, %c, %d : ({t(X)}, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> {t(X)}", (X, np.ones((2, 2), np.float32), np.asarray(7, np.int32), np.asarray(1, np.int32)), np.concatenate([X[:1], np.concatenate([X[1:, :1], np.ones((2, 2), np.float32), X[1:, 3:]], 1)]), in_c=True),
    Case("gather of rows", f'%r = "stablehlo.gather"(%a, %b) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}}> : ({t(X)}, tensor<4x1xi32>) -> tensor<4x5xf32>', (X, ROWS), X[ROWS[:, 0].clip(0, 2)], in_c=True),
    Case("gather of windows", f'%r = "stablehlo.gather"(%a, %b) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}}> : ({t(X)}, tensor<3x2xi64>) -> tensor<3x2xf32>', (X, PAIRS), TAKEN, in_c=True),
    Case("scatter of rows", f'%r = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {ADD} : ({t(X)}, tensor<4x1xi32>, tensor<4x5xf32>) -> {t(X)}', (X, ROWS, UPDATES), added_rows(X, ROWS, UPDATES), in_c=True),
    Case("scatter of windows, what is outside dropped", f'%r = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}}> {SET} : ({t(X)}, tensor<3x2xi64>, tensor<3x2xf32>) -> {t(X)}', (X, PAIRS, WINDOW_UPDATES), set_windows(X, WINDOW_UPDATES), in_c=True),
    Case("scatter by a body of its own", f'%r = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {BLEND} : (tensor<5xf32>, tensor<4x1xi64>, tensor<4xf32>) -> tensor<5xf32>', (LINE, ORDER, LINE[:4]), blended(LINE, ORDER[:, 0], LINE[:4])),
]  # fmt: skip

LESS = region(
    "%0 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>",
    "stablehlo.return %0 : tensor<i1>",
)
BY_KEY = """%i = stablehlo.iota dim = 0 : tensor<6xi32>
%s:2 = "stablehlo.sort"(%a, %i) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%x: tensor<i8>, %y: tensor<i8>, %p: tensor<i32>, %q: tensor<i32>):
%0 = stablehlo.compare GT, %x, %y, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
stablehlo.return %0 : tensor<i1>
}) : (tensor<6xi8>, tensor<6xi32>) -> (tensor<6xi8>, tensor<6xi32>)
%r = stablehlo.optimization_barrier %s#1 : tensor<6xi32>"""
KEYS = np.asarray([3, 1, 3, -2, 1, 3], np.int8)
MATRIX = np.tril(floats(4, 4, dtype=np.float64)) + 4 * np.eye(4)
RIGHT = floats(3, 4, dtype=np.float64)
POSITIVE = MATRIX @ MATRIX.T

ORDERING = [
    Case("sort", f'%r = "stablehlo.sort"(%a) <{{dimension = 0 : i64}}> {LESS} : ({t(X)}) -> {t(X)}', (X,), np.sort(X, 0), in_c=True),
    Case("a stable sort by a key", BY_KEY, (KEYS,), np.argsort(-KEYS, kind="stable").astype(np.int32)),
    Case("top_k", "%r:2 = chlo.top_k(%a, k = 2) : tensor<3x5xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)", (X,), [np.sort(X, 1)[:, :-3:-1].copy(), np.argsort(-X, 1)[:, :2].astype(np.int32)], in_c=True),
    Case("triangular_solve from the right", '%r = "stablehlo.triangular_solve"(%a, %b) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>', (MATRIX, RIGHT), np.linalg.solve(MATRIX, RIGHT.T).T.copy(), close=1e-12),
    Case("cholesky", "%r = stablehlo.cholesky %a, lower = true : tensor<4x4xf64>", (POSITIVE,), MATRIX, close=1e-12, in_c=True),
]  # fmt: skip


def special(op: str, function: Callable[[float], float], *points: float) -> Case:
    x = np.asarray(points, np.float64)
    return unary(op, lambda v: np.asarray([function(p) for p in v]), x, close=1e-13)


def harmonic(n: float) -> float:
    """digamma of an integer: the sum of 1 / k below it, less Euler's constant."""
    return sum(1 / k for k in range(1, int(n))) - 0.57721566490153286


STATE = np.asarray([3, 3], np.uint64)
WIDE = np.asarray([2**63 + 5, 2**33 + 1, 7], np.uint64)

SPECIAL = [
    special("chlo.lgamma", math.lgamma, 0.1, 0.5, 3.7, 20.5, 171.2, -0.4, -3.3),
    special("chlo.erfc", math.erfc, -3.0, -0.2, 0.0, 0.4, 0.6, 1.7, 5.0, 26.0),
    special("chlo.digamma", harmonic, 1.0, 2.0, 5.0, 17.0),
    special("chlo.asinh", math.asinh, -3.0, 0.2, 4.0),
    Case("chlo.erf_inv", "%0 = chlo.erf %a : tensor<5xf64> -> tensor<5xf64>\n%r = chlo.erf_inv %0 : tensor<5xf64> -> tensor<5xf64>", (np.asarray([-2.0, -0.3, 0.0, 1e-9, 1.1]),), np.asarray([-2.0, -0.3, 0.0, 1e-9, 1.1]), close=1e-13),
    Case("chlo.zeta", "%r = chlo.zeta %a, %b : tensor<2xf64>, tensor<2xf64> -> tensor<2xf64>", (np.asarray([2.0, 4.0]), np.asarray([1.0, 1.0])), np.asarray([math.pi**2 / 6, math.pi**4 / 90]), close=1e-13),
    Case("chlo.next_after", "%r = chlo.next_after %a, %b : tensor<6xf32>, tensor<6xf32> -> tensor<6xf32>", (TOTAL, TOTAL[::-1].copy()), np.nextafter(TOTAL, TOTAL[::-1]), close=0),
    Case("chlo.mulhi", "%r = chlo.mulhi %a, %a : tensor<3xui64>, tensor<3xui64> -> tensor<3xui64>", (WIDE,), np.asarray([int(v) ** 2 >> 64 for v in WIDE], np.uint64)),
    Case("rng_bit_generator", "%r:2 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<1xui64>)", (STATE,), [np.asarray([3, 4], np.uint64), np.asarray([3349939604322698703], np.uint64)], in_c=True),
]  # fmt: skip

COUNTED = """
%n = stablehlo.constant dense<0> : tensor<i32>
%w:2 = stablehlo.while(%i = %n, %s = %a) : tensor<i32>, tensor<3x5xf32>
cond {
  %end = stablehlo.constant dense<5> : tensor<i32>
  %0 = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
} do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.add %i, %one : tensor<i32>
  %1 = func.call @step(%s, %b) : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
  stablehlo.return %0, %1 : tensor<i32>, tensor<3x5xf32>
}
%r = stablehlo.optimization_barrier %w#1 : tensor<3x5xf32>
---
func.func private @step(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}"""

COLLATZ = """
%n = stablehlo.constant dense<0> : tensor<i32>
%two = stablehlo.constant dense<2> : tensor<i32>
%w:2 = stablehlo.while(%x = %a, %s = %n) : tensor<i32>, tensor<i32>
cond {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.compare NE, %x, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %0 : tensor<i1>
} do {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.remainder %x, %two : tensor<i32>
  %1 = "stablehlo.case"(%0) ({
    %2 = stablehlo.divide %x, %two : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }, {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.multiply %x, %three : tensor<i32>
    %3 = stablehlo.add %2, %one : tensor<i32>
    stablehlo.return %3 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  %4 = stablehlo.add %s, %one : tensor<i32>
  stablehlo.return %1, %4 : tensor<i32>, tensor<i32>
}
%r = stablehlo.optimization_barrier %w#1 : tensor<i32>"""

SCAN = """
%z = stablehlo.constant dense<0.0> : tensor<3xf32>
%r:2 = chlo.scan(%a) inits (%z) dimension=1 attributes {is_reverse = true} {
^bb0(%x: tensor<3xf32>, %s: tensor<3xf32>):
  %0 = stablehlo.add %x, %s : tensor<3xf32>
  stablehlo.return %0, %0 : tensor<3xf32>, tensor<3xf32>
} : (tensor<3x5xf32>, tensor<3xf32>) -> (tensor<3x5xf32>, tensor<3xf32>)"""

BRANCHES = """%r = "stablehlo.if"(%a) ({
  stablehlo.return %b : tensor<3x5xf32>
}, {
  %0 = stablehlo.negate %b : tensor<3x5xf32>
  stablehlo.return %0 : tensor<3x5xf32>
}) : (tensor<i1>) -> tensor<3x5xf32>"""

CONTROL = [
    Case("a loop that is counted", COUNTED, (X, Y), X * Y**5, in_c=True),
    Case("a loop that depends on data", COLLATZ, (np.asarray(27, np.int32),), np.asarray(111, np.int32), in_c=True),
    Case("if", BRANCHES, (np.asarray(False), X), -X, in_c=True),
    Case("chlo.scan", SCAN, (X,), [X[:, ::-1].cumsum(1)[:, ::-1].copy(), X.sum(1)], in_c=True),
    Case("composite", "%r = stablehlo.composite \"own.twice\" %a {decomposition = @twice} : (tensor<3x5xf32>) -> tensor<3x5xf32>\n---\nfunc.func private @twice(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {\n%0 = stablehlo.add %x, %x : tensor<3x5xf32>\nreturn %0 : tensor<3x5xf32>\n}", (X,), X + X),
    Case("an annotation", f"%r = stablehlo.custom_call @Sharding(%a) {{mhlo.sharding = \"{{replicated}}\"}} : ({t(X)}) -> {t(X)}", (X,), X),
]  # fmt: skip


def standardized(x: Array) -> list[Array]:
    """Features on axis 1, scale 2, offset 1, epsilon 1/8."""
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    root = np.sqrt(variance + np.float32(0.125))
    return [(x - mean[:, None]) / root[:, None] * 2 + 1, mean, variance]


TWO, ONE = np.full(3, 2, np.float32), np.ones(3, np.float32)

WRAPPED = [
    Case("chlo.broadcast_subtract", "%r = chlo.broadcast_subtract %a, %b : (tensor<3x5xf32>, tensor<5xf32>) -> tensor<3x5xf32>", (X, LINE), X - LINE),
    Case("chlo.broadcast_compare", '%r = "chlo.broadcast_compare"(%a, %b) <{comparison_direction = #chlo<comparison_direction GT>, broadcast_dimensions = array<i64: 0>}> : (tensor<3x5xf32>, tensor<3xf32>) -> tensor<3x5xi1>', (X, Y[:, 0].copy()), Y[:, :1] < X),
    Case("batch_norm_training", '%r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) <{epsilon = 0.125 : f32, feature_index = 1 : i64}> : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)', (A, TWO, ONE), standardized(A)),
    Case("real_dynamic_slice", f"%s = stablehlo.constant dense<1> : tensor<2xi64>\n%l = stablehlo.constant dense<[3, 4]> : tensor<2xi64>\n%t = stablehlo.constant dense<[1, 2]> : tensor<2xi64>\n%r = stablehlo.real_dynamic_slice %a, %s, %l, %t : ({t(X)}, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x2xf32>", (X,), X[1:3, 1:4:2].copy()),
]  # fmt: skip

CASES = [
    *ELEMENTWISE, *SHAPES, *REDUCTIONS, *PRODUCTS, *INDICES, *ORDERING, *SPECIAL, *CONTROL, *WRAPPED
]  # fmt: skip


def check(case: Case, target: str) -> None:
    results: Any = uopc.from_stablehlo(case.text(), target)(*case.inputs)
    results = [*results] if isinstance(results, tuple) else [results]  # pyright: ignore[reportUnknownVariableType] -- arrays, as the executable gives them
    assert len(results) == len(case.results)
    for got, expected in zip(results, case.results, strict=True):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        exact = case.close == 0 or expected.dtype.kind not in "fV"
        if exact:
            np.testing.assert_array_equal(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=case.close, atol=case.close / 10)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_interpreter(case: Case):
    check(case, "interpreter")


@pytest.mark.parametrize("case", [c for c in CASES if c.in_c], ids=lambda c: c.name)
def test_c(case: Case):
    check(case, "c")


@pytest.mark.parametrize("target", ["interpreter", "c"])
def test_a_long_loop_stays_a_loop(target: str):
    text = next(c for c in CONTROL if c.name == "a loop that is counted").text()
    text = text.replace("dense<5>", "dense<4000>")
    x = np.full((3, 5), 2, np.float32)
    run = uopc.from_stablehlo(text, target)
    np.testing.assert_array_equal(run(x, np.ones_like(x)), x)
    if target == "c":
        assert run.source.count("for (;;)") == 1


def refused(text: str, target: str = "interpreter") -> UopcError:
    with pytest.raises(UopcError) as caught:
        uopc.from_stablehlo(text, target)
    return caught.value


def test_what_is_not_there_is_named_with_its_reason():
    error = refused(
        "func.func @main(%a: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {\n"
        "%0 = stablehlo.negate %a : tensor<4xcomplex<f32>>\n"
        "return %0 : tensor<4xcomplex<f32>>\n}"
    )
    assert isinstance(error, UnsupportedError) and isinstance(error, NotImplementedError)
    assert error.kind == "unsupported-op" and "complex<f32>" in error.message
    assert error.location is not None and error.location.line == 1

    error = refused(
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "%0 = stablehlo.custom_call @theirs(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "return %0 : tensor<4xf32>\n}"
    )
    assert isinstance(error, UnsupportedError) and "@theirs" in error.message
    assert error.location is not None and error.location.line == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("%0 = stablehlo.slice %a [0:9] : (tensor<4xf32>) -> tensor<4xf32>", "0 to 9"),
        ("%0 = stablehlo.transpose %a, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>", "axes [1]"),
        ("%0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>", "stablehlo.reshape"),
        ("%0 = stablehlo.exponential %a : (tensor<4xf32>) -> tensor<4xf64>", "tensor<4xf64>"),
        ("%0 = stablehlo.add %a, %a, %a : tensor<4xf32>", "expected 2 operands"),
        (
            "%0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>",
            "[4], []",
        ),
        (
            '%0 = "stablehlo.map"(%a) <{dimensions = array<i64: 0>}> ({\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\nstablehlo.return %x : tensor<f32>\n}) : (tensor<4xf32>) -> tensor<4xf32>',
            "2 arguments",
        ),
        (
            "%0 = func.call @main(%a, %b) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>",
            "calls itself",
        ),
    ],
)
def test_wrong_programs_are_refused_in_words(body: str, words: str):
    result = body.rsplit("-> ", 1)[-1] if "->" in body else "tensor<4xf32>"
    text = f"func.func @main(%a: tensor<4xf32>, %b: tensor<f32>) -> {result} {{\n{body}\nreturn %0 : {result}\n}}"
    error = refused(text)
    assert words in str(error)
    assert error.location is not None and error.location.line == 2


def test_the_function_is_main_or_the_only_one_or_named():
    one = "func.func @f(%a: tensor<f32>) -> tensor<f32> {\n%0 = stablehlo.abs %a : tensor<f32>\nreturn %0 : tensor<f32>\n}\n"
    two = one.replace("@f", "@g")
    x = np.asarray(-2, np.float32)
    assert uopc.from_stablehlo(one, "interpreter")(x) == 2
    assert uopc.from_stablehlo(one + two, "interpreter", function="g")(x) == 2
    assert refused(one + two).kind == "no-such-function"
