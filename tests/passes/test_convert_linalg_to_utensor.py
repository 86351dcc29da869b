"""linalg on tensors against numpy, in the interpreter and in C."""
# ruff: noqa: E501 -- the text of a program stands on a line

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import uopc
from uopc.dialects.errors import UnsupportedError, UopcError

RNG = np.random.default_rng(5)
NAMES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "int32": "i32", "bool": "i1", "int8": "i8",
}  # fmt: skip


def floats(*shape: int) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def t(array: np.ndarray) -> str:
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{NAMES[array.dtype.name]}>"


def run(body: str, inputs: Sequence[np.ndarray], result: np.ndarray) -> list[np.ndarray]:
    arguments = ", ".join(f"%{n} : {t(v)}" for n, v in zip("abcdef", inputs, strict=False))
    text = (
        f"func.func @main({arguments}) -> {t(result)} {{\n{body}\nfunc.return %r : {t(result)}\n}}"
    )
    return [uopc.compile(text, target)(*inputs) for target in ("interpreter", "c")]


def check(body: str, inputs: Sequence[np.ndarray], expected: Any) -> None:
    expected = np.asarray(expected)
    for got in run(body, inputs, expected):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def slid(x: np.ndarray, k: tuple[int, int], stride: int, dilation: int) -> np.ndarray:
    """NHWC windows: n, h, w, c, kh, kw."""
    reach = [(n - 1) * dilation + 1 for n in k]
    seen = np.lib.stride_tricks.sliding_window_view(x, reach, (1, 2))
    return seen[:, ::stride, ::stride, :, ::dilation, ::dilation]


A, B, V, W = floats(4, 8), floats(8, 3), floats(8), floats(4)
BATCH, BATCH2 = floats(2, 4, 8), floats(2, 8, 3)
X, K, DEPTH = floats(1, 9, 8, 3), floats(3, 2, 3, 4), floats(3, 2, 3)


@pytest.mark.parametrize(
    ("name", "inputs", "start", "function"),
    [
        ("matmul", (A, B), floats(4, 3), lambda a, b: a @ b),
        ("batch_matmul", (BATCH, BATCH2), floats(2, 4, 3), lambda a, b: a @ b),
        ("matvec", (A, V), floats(4), lambda a, b: a @ b),
        ("vecmat", (V, B), floats(3), lambda a, b: a @ b),
        ("dot", (V, V), floats(), lambda a, b: a @ b),
        (
            "batch_matvec",
            (BATCH, floats(2, 8)),
            floats(2, 4),
            lambda a, b: np.einsum("bmk,bk->bm", a, b),
        ),
    ],
)
def test_contractions(name: str, inputs: Any, start: np.ndarray, function: Callable[..., Any]):
    types = ", ".join(map(t, inputs))
    body = f"%r = linalg.{name} ins(%a, %b : {types}) outs(%c : {t(start)}) -> {t(start)}"
    check(body, [*inputs, start], start + function(*inputs))


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_convolutions_and_pools(stride: int, dilation: int):
    given = f"{{dilations = dense<{dilation}> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}"
    seen = slid(X, (3, 2), stride, dilation)
    expected = np.einsum("nhwcxy,xycf->nhwf", seen, K)
    zero = np.zeros_like(expected)
    body = f"%r = linalg.conv_2d_nhwc_hwcf {given} ins(%a, %b : {t(X)}, {t(K)}) outs(%c : {t(zero)}) -> {t(zero)}"
    check(body, [X, K, zero], expected)
    expected = np.einsum("nhwcxy,xyc->nhwc", seen, DEPTH)
    zero = np.zeros_like(expected)
    body = f"%r = linalg.depthwise_conv_2d_nhwc_hwc {given} ins(%a, %b : {t(X)}, {t(DEPTH)}) outs(%c : {t(zero)}) -> {t(zero)}"
    check(body, [X, DEPTH, zero], expected)
    window = np.zeros((3, 2), np.float32)
    for kind, function in (("max", np.max), ("min", np.min), ("sum", np.sum)):
        expected = np.asarray(function(seen, axis=(4, 5)))
        start = {"max": -100, "min": 100, "sum": 1}[kind] * np.ones_like(expected)
        body = f"%r = linalg.pooling_nhwc_{kind} {given} ins(%a, %b : {t(X)}, {t(window)}) outs(%c : {t(start)}) -> {t(start)}"
        check(body, [X, window, start], expected + (kind == "sum"))


IMAGES = {1: floats(2, 7, 3), 2: floats(2, 5, 6, 3), 3: floats(1, 4, 5, 3, 2)}
KERNELS = {1: floats(3, 3, 4), 2: floats(2, 3, 3, 4), 3: floats(2, 3, 2, 2, 3)}


def convolution(rank: int, stride: int) -> np.ndarray:
    """Channels last; the kernel's letters are its places, then channels and filters."""
    axes = range(1, rank + 1)
    kernel = KERNELS[rank]
    seen = np.lib.stride_tricks.sliding_window_view(IMAGES[rank], kernel.shape[:rank], tuple(axes))
    seen = seen[(slice(None), *(slice(None, None, stride) for _ in axes))]
    places = "xyz"[:rank]
    return np.einsum(f"n{'opq'[:rank]}c{places},{places}cf->n{'opq'[:rank]}f", seen, kernel)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("name", "rank", "first"),
    [
        ("conv_1d_nwc_wcf", 1, False),
        ("conv_1d_ncw_fcw", 1, True),
        ("conv_2d_nchw_fchw", 2, True),
        ("conv_3d_ndhwc_dhwcf", 3, False),
        ("conv_3d_ncdhw_fcdhw", 3, True),
    ],
)
def test_convolutions_of_any_rank(name: str, rank: int, first: bool, stride: int):
    x, kernel, expected = IMAGES[rank], KERNELS[rank], convolution(rank, stride)
    if first:
        x, expected = np.moveaxis(x, -1, 1), np.moveaxis(expected, -1, 1)
        kernel = np.moveaxis(kernel, (-1, -2), (0, 1))
    start = floats(*expected.shape)
    given = f"{{dilations = dense<1> : tensor<{rank}xi64>, strides = dense<{stride}> : tensor<{rank}xi64>}}"
    body = f"%r = linalg.{name} {given} ins(%a, %b : {t(x)}, {t(kernel)}) outs(%c : {t(start)}) -> {t(start)}"
    check(body, [np.ascontiguousarray(v) for v in (x, kernel, start)], start + expected)


@pytest.mark.parametrize(("name", "rank"), [("conv_1d", 1), ("conv_2d", 2), ("conv_3d", 3)])
def test_convolutions_without_channels(name: str, rank: int):
    x, kernel = floats(*(7, 5, 4)[:rank]), floats(*(3, 2, 2)[:rank])
    seen = np.lib.stride_tricks.sliding_window_view(x, kernel.shape)
    expected = (seen * kernel).sum(tuple(range(rank, 2 * rank)))
    zero = np.zeros_like(expected)
    body = f"%r = linalg.{name} ins(%a, %b : {t(x)}, {t(kernel)}) outs(%c : {t(zero)}) -> {t(zero)}"
    check(body, [x, kernel, zero], expected)


@pytest.mark.parametrize(("kind", "function"), [("max", np.max), ("sum", np.sum)])
def test_pools_with_channels_first(kind: str, function: Callable[..., Any]):
    x = np.ascontiguousarray(np.moveaxis(X, -1, 1))
    window = np.zeros((3, 2), np.float32)
    seen = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (2, 3))[:, :, ::2, ::2]
    expected = np.asarray(function(seen, axis=(4, 5)))
    start = np.full_like(expected, -100 if kind == "max" else 0)
    given = "{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}"
    body = f"%r = linalg.pooling_nchw_{kind} {given} ins(%a, %b : {t(x)}, {t(window)}) outs(%c : {t(start)}) -> {t(start)}"
    check(body, [x, window, start], expected)


@pytest.mark.parametrize(
    ("axes", "op", "function"),
    [
        ((1,), "arith.addf", lambda x, s: s + x.sum(1)),
        ((0,), "arith.maximumf", lambda x, s: np.maximum(s, x.max(0))),
        ((0, 1), "arith.mulf", lambda x, s: s * x.prod()),
    ],
)
def test_reduce(axes: tuple[int, ...], op: str, function: Callable[..., Any]):
    start = floats(*(n for k, n in enumerate(A.shape) if k not in axes))
    body = (
        f"%r = linalg.reduce ins(%a : {t(A)}) outs(%b : {t(start)}) dimensions = {list(axes)}\n"
        f"(%p : f32, %q : f32) {{\n%y = {op} %p, %q : f32\nlinalg.yield %y : f32\n}}"
    )
    check(body, [A, start], function(A, start))


HALVES = np.asarray([-2.5, -1.5, -0.5, 0.49999997, 0.5, 1.5, 2.5, 8388609.0], np.float32)
AWAY = np.asarray([-3, -2, -1, 0, 1, 2, 3, 8388609.0], np.float32)
BYTES, DIVISORS = np.asarray([-1, 100, -128], np.int8), np.asarray([2, -3, 7], np.int8)


def elementwise(name: str, *inputs: np.ndarray) -> str:
    names = ", ".join(f"%{n}" for n in "abc"[: len(inputs)])
    types = ", ".join(map(t, inputs))
    return f"%r = {name} ins({names} : {types}) outs(%a : {t(inputs[0])}) -> {t(inputs[0])}"


@pytest.mark.parametrize(
    ("body", "inputs", "expected"),
    [
        (elementwise("linalg.round", HALVES), [HALVES], AWAY),
        (f"%r = math.round %a : {t(HALVES)}", [HALVES], AWAY),
        (
            elementwise("linalg.div_unsigned", BYTES, DIVISORS),
            [BYTES, DIVISORS],
            (BYTES.view(np.uint8) // DIVISORS.view(np.uint8)).view(np.int8),
        ),
    ],
)
def test_exact_ops(body: str, inputs: list[np.ndarray], expected: np.ndarray):
    for got in run(body, inputs, expected):
        np.testing.assert_array_equal(got, expected)


def test_softmax():
    for axis in range(3):
        powers = np.exp(BATCH - BATCH.max(axis, keepdims=True))
        body = elementwise(f"linalg.softmax dimension({axis})", BATCH)
        check(body, [BATCH], powers / powers.sum(axis, keepdims=True))
    with pytest.raises(UopcError, match="has dimension 3 of tensor<2x4x8xf32>"):
        run(elementwise("linalg.softmax dimension(3)", BATCH), [BATCH], BATCH)


MAP = "%r = linalg.map ins(%a, %a : tensor<4x8xf32>, tensor<4x8xf32>) outs(%a : tensor<4x8xf32>)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (MAP.replace("map", "map { arith.addf }"), A + A),
        (f"{MAP} (%p : f32, %q : f32) {{\n%y = arith.mulf %p, %q : f32\nlinalg.yield %y : f32\n}}", A * A),
        (f"{MAP} (%p : f32, %q : f32, %o : f32) {{\n%c = arith.constant 2.0 : f32\nlinalg.yield %c : f32\n}}", np.full_like(A, 2)),
    ],
)  # fmt: skip
def test_map(body: str, expected: np.ndarray):
    check(body, [A], expected)


def test_a_map_whose_body_does_not_fit_is_refused():
    body = f"{MAP} (%p : f32) {{\nlinalg.yield %p : f32\n}}"
    with pytest.raises(UopcError, match="has a body of 1 arguments for 3 operands"):
        run(body, [A], A)


FUSED = "%r = math.fma %a, %b, %c : {}"


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_fused_multiply_add_rounds_once(dtype: Any):
    """Against exact fractions, at sums that two roundings get wrong, and at the edges."""
    bits = {np.float32: 23, np.float16: 10}[dtype]
    one = 1 + 2.0**-bits
    edges = [
        (one, one, -1 - 2.0 ** (1 - bits)), (one, 1 - 2.0**-bits, -1), (np.inf, 1, -np.inf),
        (np.inf, 2, 1), (2.0**-12, 2.0**-12, -(2.0**-24)), (0, 5, -0.0), (np.nan, 1, 1),
        (one, 2.0 ** -(bits + 1), 1),
    ]  # fmt: skip
    rows = np.asarray(edges, dtype).T
    noise = RNG.uniform(-2, 2, (3, 200)).astype(dtype)
    noise[2, ::2] = -(noise[0, ::2] * noise[1, ::2])
    inputs = [np.concatenate(pair) for pair in zip(rows, noise, strict=True)]
    expected: list[Any] = []
    for a, b, c in zip(*(v.astype(np.float64) for v in inputs), strict=True):
        if np.isfinite([a, b, c]).all() and (exact := Fraction(a) * Fraction(b) + Fraction(c)):
            expected.append(rounded_once(exact))
        else:
            expected.append(np.nan if b == 1 else a * b + c)
    wanted = np.asarray(expected, np.float32).astype(dtype)
    with np.errstate(invalid="ignore"):
        assert (inputs[0] * inputs[1] + inputs[2] != wanted)[len(edges) :].any()
    for got in run(FUSED.format(t(inputs[0])), inputs, wanted):
        np.testing.assert_array_equal(got, wanted)


def rounded_once(exact: Fraction) -> np.float32:
    """The f32 that is nearest to a fraction, the even one of two."""
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(s * np.inf)) for s in (-1, 1)]
    key = [(abs(Fraction(float(v)) - exact), int(v.view(np.int32)) & 1) for v in (near, *around)]
    return (near, *around)[key.index(min(key))]


def test_fused_multiply_add_of_f64_is_refused():
    x = np.ones(2)
    with pytest.raises(UnsupportedError, match="no multiply-add of f64 that rounds once"):
        run(FUSED.format(t(x)), [x, x, x], x)


GENERIC = """%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}} ins({ins}) outs({outs}) {{
^bb0(%p : f32, %q : f32):
{body}
linalg.yield %y : f32
}} -> {result}"""


def generic(maps: str, loops: str, x: np.ndarray, start: np.ndarray, body: str) -> str:
    return GENERIC.format(
        maps=", ".join(f"affine_map<{m}>" for m in maps.split("; ")),
        loops=", ".join(f'"{w}"' for w in loops.split()),
        ins=f"%a : {t(x)}", outs=f"%b : {t(start)}", body=body, result=t(start),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("maps", "loops", "body", "function"),
    [
        (
            "(d0, d1) -> (d0, d1); (d0, d1) -> (d1, d0)",
            "parallel parallel",
            "%y = math.exp %p : f32",
            lambda x, s: np.exp(x).T,
        ),
        (
            "(d0, d1) -> (d0, d1); (d0, d1) -> (d0)",
            "parallel reduction",
            "%y = arith.addf %p, %q : f32",
            lambda x, s: s + x.sum(1),
        ),
        (
            "(d0, d1) -> (d0, d1); (d0, d1) -> (d1)",
            "reduction parallel",
            "%y = arith.maximumf %q, %p : f32",
            lambda x, s: np.maximum(s, x.max(0)),
        ),
        (
            "(d0, d1) -> (d0, d1); (d0, d1) -> ()",
            "reduction reduction",
            "%m = arith.mulf %p, %p : f32\n%y = arith.addf %m, %q : f32",
            lambda x, s: s + (x * x).sum(),
        ),
        (
            "(d0, d1) -> (d0, d1); (d0, d1) -> (d0, d1)",
            "parallel parallel",
            "%g = arith.cmpf ogt, %p, %q : f32\n%y = arith.select %g, %p, %q : f32",
            lambda x, s: np.maximum(x, s),
        ),
        (
            "(d0, d1) -> (d0, d1); (d0, d1) -> (d0, d1)",
            "parallel parallel",
            "%c = arith.constant 2.0 : f32\n%i = linalg.index 0 : index\n%j = arith.index_cast %i : index to i32\n%k = arith.sitofp %j : i32 to f32\n%m = arith.mulf %k, %c : f32\n%y = arith.addf %m, %p : f32",
            lambda x, s: x + 2 * np.arange(4, dtype=np.float32)[:, None],
        ),
    ],
)
def test_generic(maps: str, loops: str, body: str, function: Callable[..., Any]):
    start = floats(*np.asarray(function(A, np.float32(0))).shape)
    if start.shape == A.shape or function(A, np.float32(0)).shape == A.shape:
        start = floats(*A.shape)
    check(generic(maps, loops, A, start, body), [A, start], function(A, start))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%r = tensor.extract_slice %a[1, 2] [2, 3] [1, 2] : tensor<4x8xf32> to tensor<2x3xf32>", A[1:3, 2:7:2]),
        ("%r = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 2, 8] : tensor<4x8xf32> into tensor<2x2x8xf32>", A.reshape(2, 2, 8)),
        ("%r = tensor.collapse_shape %a [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>", A.reshape(32)),
        ("%c = arith.constant 1.5 : f32\n%r = tensor.splat %c : tensor<2x3xf32>", np.full((2, 3), 1.5, np.float32)),
        ("%c = arith.constant 7.0 : f32\n%r = tensor.pad %a low[1, 0] high[0, 2] {\n^bb0(%i : index, %j : index):\ntensor.yield %c : f32\n} : tensor<4x8xf32> to tensor<5x10xf32>", np.pad(A, ((1, 0), (0, 2)), constant_values=7)),
        ("%s = tensor.extract_slice %a[0, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>\n%r = tensor.insert_slice %s into %a[2, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<4x8xf32>", np.concatenate([A[:2], A[:2]])),
        ("%r = tensor.concat dim(0) %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>", np.concatenate([A, A])),
        ("%i = arith.constant 2 : index\n%v = tensor.extract %a[%i, %i] : tensor<4x8xf32>\n%r = tensor.splat %v : tensor<2xf32>", np.full(2, A[2, 2])),
        ("%e = tensor.empty() : tensor<8x4xf32>\n%r = linalg.transpose ins(%a : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]", A.T),
        ("%e = tensor.empty() : tensor<4x3x8xf32>\n%r = linalg.broadcast ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x3x8xf32>) dimensions = [1]", np.broadcast_to(A[:, None], (4, 3, 8))),
        ("%e = tensor.empty() : tensor<4x8xf32>\n%r = linalg.tanh ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>", np.tanh(A)),
        ("%e = tensor.empty() : tensor<4x8xf32>\n%r = linalg.sub ins(%a, %a : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>", A - A),
        ("%b = arith.addf %a, %a : tensor<4x8xf32>\n%c = tensor.cast %b : tensor<4x8xf32> to tensor<4x8xf32>\n%r = math.absf %c : tensor<4x8xf32>", np.abs(A + A)),
    ],
)  # fmt: skip
def test_other_ops(body: str, expected: np.ndarray):
    check(body, [A], np.ascontiguousarray(expected))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            generic(
                "(d0, d1) -> (d0, d1); (d0, d1) -> (d0)",
                "parallel reduction",
                A,
                W,
                "%y = arith.subf %q, %p : f32",
            ),
            "does not reduce by one of",
        ),
        (
            generic(
                "(d0, d1) -> (d0, d1); (d0, d1) -> (d0)",
                "parallel parallel",
                A,
                W,
                "%y = arith.addf %q, %p : f32",
            ),
            "a parallel loop that its result does not have",
        ),
    ],
)
def test_refused_in_words(body: str, words: str):
    with pytest.raises(UnsupportedError, match=words):
        run(body, [A, W], W)


def test_sizes_that_are_not_known_are_refused():
    text = "func.func @main(%a : tensor<?xf32>) -> tensor<?xf32> {\n%r = linalg.exp ins(%a : tensor<?xf32>) outs(%a : tensor<?xf32>) -> tensor<?xf32>\nfunc.return %r : tensor<?xf32>\n}"
    with pytest.raises(UnsupportedError, match="has a size that is not known"):
        uopc.compile(text, "c")
