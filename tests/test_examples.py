"""Every program of examples/ against numpy written by hand, in every form it is compiled to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from all_paths import everywhere
from sanitized import Call, run_sanitized
from xdsl.dialects.builtin import ModuleOp

from uopc.dialects.locations import parse_file
from uopc.frontend.compile import CompileRequest, lower

EXAMPLES = Path(__file__).parents[1] / "examples"
RNG = np.random.default_rng(3)
Array = np.ndarray[Any, np.dtype[Any]]
F64 = np.float64


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(np.float32).astype(dtype)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: Array, k: Array, v: Array) -> list[Array]:
    scores = q @ k.T / np.sqrt(32)
    scores[~np.tri(48, dtype=bool)] = -np.inf
    return [softmax(scores) @ v]


def half(a: Array, b: Array) -> list[Array]:
    e = np.exp(a).astype(np.float16).astype(F64)
    square = (b * b).astype(ml_dtypes.bfloat16).astype(F64)
    norm = square.sum(1).astype(ml_dtypes.bfloat16).astype(np.float32)
    return [e.sum(1), np.sqrt(norm), a.astype(np.float32).astype(ml_dtypes.bfloat16)]


def integers(a: Array, b: Array, u: Array, f: Array) -> list[Array]:
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
    scaled = [float(np.float32(x) * np.float32(100)) for x in f]
    saturated = [int(max(-128, min(127, np.trunc(x)))) for x in scaled]
    total = (sum(x * y for x, y in pairs) + 2**31) % 2**32 - 2**31
    return [
        np.array([x // y for x, y in pairs]), np.array([x % y for x, y in pairs]),
        np.array(quotients), np.array([(int(x) * 2) % 256 for x in u]), np.array(saturated),
        np.array(total),
    ]  # fmt: skip


def layernorm_linear(x: Array, w: Array) -> list[Array]:
    centred = x - x.mean(-1, keepdims=True)
    return [centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) @ w]


def lookup(table: Array, ids: Array) -> list[Array]:
    inside = [int(i) for i in ids if 0 <= i < 10]
    counts = np.array([inside.count(k) for k in range(10)])
    return [np.stack([table[min(9, max(0, int(i)))] for i in ids]), counts]


def mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> list[Array]:
    logits = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    return [logits, logits.argmax(1)]


def movement(x: Array) -> list[Array]:
    padded = np.pad(x, ((1, 2), (0, 1)), constant_values=-1)
    strided = padded[::-1, ::-1][::2]
    cube = x[:4, 1:7].reshape(4, 2, 3)
    return [strided + strided, cube.transpose(0, 2, 1), x.reshape(-1)]


# The arrays of each example, and what comes of them; integers stay what they are, floats are f64.
PROGRAMS: dict[str, tuple[Callable[[], Sequence[Array]], Callable[..., list[Array]]]] = {
    "attention": (lambda: [normal(48, 32) for _ in range(3)], attention),
    "half": (
        lambda: [normal(32, 64, dtype=np.float16), normal(32, 64, dtype=ml_dtypes.bfloat16)], half,
    ),
    "integers": (
        lambda: [
            np.array(
                [7, -7, 7, -7, 0, 1, -1, 100, -100, 2**31 - 1, -(2**31), 5, 6, -6, 9, -9], np.int32
            ),
            np.array([2, 2, -2, -2, 3, 5, 5, -7, 7, 2, 3, -5, 6, 6, -1, -1], np.int32),
            np.arange(0, 256, 16, np.uint8),
            normal(16) * 2,
        ],
        integers,
    ),
    "layernorm_linear": (lambda: [normal(128, 256), normal(256, 256)], layernorm_linear),
    "lookup": (lambda: [normal(10, 4), np.array([3, 0, 9, 3, -5, 12], np.int32)], lookup),
    "matmul_chain": (lambda: [normal(128, 128) for _ in range(3)], lambda a, b, c: [a @ b @ c]),
    "mlp": (
        lambda: [normal(32, 64), normal(64, 128), normal(128), normal(128, 10), normal(10)], mlp,
    ),
    "movement": (lambda: [normal(6, 8)], movement),
    "softmax": (lambda: [normal(64, 128) * 5], lambda x: [softmax(x)]),
    "symbolic": (lambda: [normal(37, 8)], lambda x: [x + 1, (x + 1).sum(0)]),
}  # fmt: skip
LOOSE = {"matmul_chain": 1e-4, "layernorm_linear": 1e-4, "mlp": 1e-4}


def expected(name: str, arrays: Sequence[Array]) -> list[Array]:
    wide = [a if a.dtype.kind in "iub" else a.astype(F64) for a in arrays]
    return PROGRAMS[name][1](*wide)


def check(name: str, results: Sequence[Array | None], truth: Sequence[Array]) -> None:
    for got, want in zip(results, truth, strict=True):
        if got is None:  # an output that is an input
            continue
        if got.dtype.kind in "iub":
            np.testing.assert_array_equal(got, want)
            continue
        step = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(got.dtype.name, 3e-6)
        tolerance = LOOSE.get(name, step)
        scale = np.abs(want.astype(F64)).max()
        np.testing.assert_allclose(
            got.astype(F64), want.astype(F64), rtol=tolerance, atol=tolerance * scale
        )


def test_every_example_is_here():
    assert sorted(PROGRAMS) == sorted(path.stem for path in EXAMPLES.glob("*.mlir"))


@pytest.mark.parametrize("fuse_reduce", ["none", "all", "auto"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_example(cache_folder, name, fuse_reduce):
    if name == "matmul_chain" and fuse_reduce == "all":
        pytest.skip("n**4 steps at -O0 take minutes; test_facts_values.py has it at n = 24")
    arrays = PROGRAMS[name][0]()
    results = everywhere(EXAMPLES / f"{name}.mlir", *arrays, ulps=1 << 23, fuse_reduce=fuse_reduce)
    check(name, results if isinstance(results, tuple) else [results], expected(name, arrays))


@pytest.mark.parametrize(
    ("pipeline", "fuse_reduce", "compiler"),
    [
        ("uopc-cpu", "none", "gcc"),
        ("uopc-cpu-native", "auto", "gcc"),
        ("uopc-cpu-native", "none", "clang"),
    ],
)
def test_examples_under_sanitizers(tmp_path, pipeline, fuse_reduce, compiler):
    """All examples in one C file: no access outside of a buffer, no undefined behaviour."""
    functions = []
    names: dict[str, str] = {}
    for name in PROGRAMS:
        (function,) = parse_file(str(EXAMPLES / f"{name}.mlir")).body.block.ops
        function.detach()
        functions.append(function)
        names[name] = function.properties["sym_name"].data
    request = CompileRequest(pipeline=pipeline, fuse_reduce=fuse_reduce)
    program = lower(ModuleOp(functions), request).program()
    arrays = {name: make() for name, (make, _) in PROGRAMS.items()}
    calls = [
        Call(names[name], arrays[name], {"n": 37} if name == "symbolic" else {})
        for name in PROGRAMS
    ]
    for name, results in zip(
        PROGRAMS, run_sanitized(program, calls, tmp_path, compiler=compiler), strict=True
    ):
        check(name, results, expected(name, arrays[name]))
