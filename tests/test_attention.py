"""Attention as one kernel: its values, and when it is one. Its bits: margins/test_attention.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import uopc
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.frontend.compile import CompileRequest, lower
from uopc.runtime.executable import load_program

Case = tuple[int, int, int, int, int, str, str]
"""Heads, queries, keys, depth, columns, mask, element type."""

SIZES = [(1, 8, 1, 3, 2), (2, 17, 31, 8, 9), (1, 31, 8, 4, 33), (2, 67, 67, 12, 7),
         (1, 100, 130, 16, 24)]  # fmt: skip


def attention(name: str, case: Case) -> str:
    """softmax(q k^T * scale, masked) v, as a user writes it."""
    h, i, n, d, c, mask, t = case
    scores, row, cube = (
        f"tensor<{h}x{i}x{n}x{t}>",
        f"tensor<{h}x{i}x{t}>",
        f"tensor<{h}x{i}x{n}x{d}x{t}>",
    )
    column = f"tensor<{h}x{i}x1x{t}>"
    out, last = f"tensor<{h}x{i}x{c}x{t}>", f"tensor<{h}x{i}x{c}x{n}x{t}>"
    masks = {
        "none": f"%y = utensor.mul %s, %f : {scores}",
        "causal": f"""%key = utensor.iota axis 2 : tensor<{h}x{i}x{n}xi32>
  %query = utensor.iota axis 1 : tensor<{h}x{i}x{n}xi32>
  %seen = utensor.cmple %key, %query : tensor<{h}x{i}x{n}xi32>
  %z = utensor.mul %s, %f : {scores}
  %low = utensor.constant -inf : {scores}
  %y = utensor.where %seen, %z, %low : {scores}""",
        "added": f"""%b3 = utensor.reshape %b : tensor<{i}x{n}x{t}> -> tensor<1x{i}x{n}x{t}>
  %be = utensor.expand %b3 : tensor<1x{i}x{n}x{t}> -> {scores}
  %z = utensor.mul %s, %f : {scores}
  %y = utensor.add %z, %be : {scores}""",
    }
    return f"""
func.func @{name}(%q: tensor<{h}x{i}x{d}x{t}>, %k: tensor<{h}x{n}x{d}x{t}>,
                  %v: tensor<{h}x{n}x{c}x{t}>, %b: tensor<{i}x{n}x{t}>) -> {out} {{
  %q4 = utensor.reshape %q : tensor<{h}x{i}x{d}x{t}> -> tensor<{h}x{i}x1x{d}x{t}>
  %qe = utensor.expand %q4 : tensor<{h}x{i}x1x{d}x{t}> -> {cube}
  %k4 = utensor.reshape %k : tensor<{h}x{n}x{d}x{t}> -> tensor<{h}x1x{n}x{d}x{t}>
  %ke = utensor.expand %k4 : tensor<{h}x1x{n}x{d}x{t}> -> {cube}
  %qk = utensor.mul %qe, %ke : {cube}
  %s = utensor.reduce add %qk axes [3] : {cube}
  %f = utensor.constant 0.25 : {scores}
  {masks[mask]}
  %m = utensor.reduce max %y axes [2] : {scores}
  %m1 = utensor.reshape %m : {row} -> {column}
  %me = utensor.expand %m1 : {column} -> {scores}
  %yd = utensor.sub %y, %me : {scores}
  %e = utensor.exp %yd : {scores}
  %l = utensor.reduce add %e axes [2] : {scores}
  %l1 = utensor.reshape %l : {row} -> {column}
  %le = utensor.expand %l1 : {column} -> {scores}
  %w = utensor.div %e, %le : {scores}
  %w4 = utensor.reshape %w : {scores} -> tensor<{h}x{i}x1x{n}x{t}>
  %we = utensor.expand %w4 : tensor<{h}x{i}x1x{n}x{t}> -> {last}
  %vt = utensor.permute %v [0, 2, 1] : tensor<{h}x{n}x{c}x{t}>
  %v4 = utensor.reshape %vt : tensor<{h}x{c}x{n}x{t}> -> tensor<{h}x1x{c}x{n}x{t}>
  %ve = utensor.expand %v4 : tensor<{h}x1x{c}x{n}x{t}> -> {last}
  %wv = utensor.mul %we, %ve : {last}
  %o = utensor.reduce add %wv axes [3] : {last}
  func.return %o : {out}
}}"""


def arrays(case: Case, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    h, i, n, d, c, _, t = case
    shapes = [(h, i, d), (h, n, d), (h, n, c), (i, n)]
    return [rng.standard_normal(s).astype(np.dtype(f"f{int(t[1:]) // 8}")) for s in shapes]


def expected(case: Case, inputs: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    q, k, v, b = (x.astype(np.float64) for x in inputs)
    s = 0.25 * (q @ k.transpose(0, 2, 1))
    if case[5] == "causal":
        s = np.where(np.tril(np.ones(s.shape[1:], bool)), s, -np.inf)
    elif case[5] == "added":
        s = s + b
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def cases(mask: str, element: str) -> dict[str, Case]:
    return {f"attention_{k}": (*size, mask, element) for k, size in enumerate(SIZES)}


@pytest.mark.parametrize("mask", ["none", "causal", "added"])
def test_numpy_has_the_same_values(mask: str):
    wanted = cases(mask, "f32")
    text = "\n".join(attention(name, case) for name, case in wanted.items())
    program = lower(parse_text(text), CompileRequest()).program()
    assert all(len(plan.kernels) == 1 for plan in program.plans)
    rng = np.random.default_rng(11)
    for name, case in wanted.items():
        inputs = arrays(case, rng)
        result = load_program(program, name)(*inputs)
        np.testing.assert_allclose(result, expected(case, inputs), 2e-5, 2e-5, err_msg=name)


@pytest.mark.parametrize("threads", ["1", "2", "3", "8"])
def test_bits_do_not_depend_on_threads(threads: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UOPC_THREADS", threads)
    case: Case = (3, 100, 100, 33, 40, "causal", "f32")
    inputs = arrays(case, np.random.default_rng(5))
    text = attention("f", case)
    found = uopc.compile(text, pipeline="uopc-cpu-native")(*inputs)
    monkeypatch.setenv("UOPC_THREADS", "1")
    assert uopc.compile(text, pipeline="uopc-cpu-native")(*inputs).tobytes() == found.tobytes()


def test_a_nan_reaches_its_row_only():
    case: Case = (1, 40, 40, 8, 8, "causal", "f32")
    q, k, v, b = arrays(case, np.random.default_rng(6))
    q[0, 7] = np.nan
    found = uopc.compile(attention("f", case), pipeline="uopc-cpu-native")(q, k, v, b)
    assert np.isnan(found[0, 7]).all()
    assert not np.isnan(np.delete(found[0], 7, axis=0)).any()


def kernels(text: str) -> int:
    """How many kernels a function becomes."""
    program = lower(parse_text(text), CompileRequest(pipeline="uopc-cpu-native")).program()
    return len(program.plans[0].kernels)


def test_what_others_read_is_kept():
    text = attention("f", (1, 16, 16, 8, 8, "none", "f32"))
    also = text.replace("-> tensor<1x16x8xf32> {", "-> (tensor<1x16x8xf32>, tensor<1x16x16xf32>) {")
    for value in ("%s", "%w"):
        both = also.replace(
            "func.return %o : tensor<1x16x8xf32>",
            f"func.return %o, {value} : tensor<1x16x8xf32>, tensor<1x16x16xf32>",
        )
        assert kernels(both) > 1
    assert kernels(text) == 1


def test_few_queries_and_many_keys_are_cut():
    assert kernels(attention("f", (1, 4, 64, 8, 8, "none", "f32"))) > 1
    assert kernels(attention("f", (1, 16, 6000, 4, 4, "none", "f32"))) > 1


@pytest.mark.parametrize("size", [64, 67])
def test_the_mask_ends_the_loops(size: int):
    """Keys behind a block's last query are not visited, where blocks are not whole as well."""
    module = parse_text(attention("f", (1, size, size, 8, 8, "causal", "f32")))
    lower(module, CompileRequest(pipeline="uopc-canonicalize,stage-broadcast-compute{rows=false},"
          "kernelize{fuse-reduce=auto},rangeify{tile-rows=true},schedule{target=avx2},linearize,lower-plan"),
          level="uloop")  # fmt: skip
    (kernel,) = (op for op in module.body.block.ops if isinstance(op, KernelOp))
    assert kernel.schedule is not None
    assert kernel.schedule.data.count("bound ") == 6


def test_two_products_of_scores_are_cut():
    """As the gradient of the queries has them, and scores that are sums of two."""
    r = np.random.default_rng(0).standard_normal
    q, k, v, w = (uopc.Tensor(r((16, 4)).astype(np.float32), requires_grad=True) for _ in range(4))
    (q.scaled_dot_product_attention(k, v) * w.detach()).sum().backward()
    assert np.isfinite(q.grad.numpy()).all()
    a, b, c, d = (x.detach() for x in (q, k, v, w))
    found = (((a @ b.mT) + (c @ d.mT)).softmax(-1) @ b).numpy()
    a, b, c, d = (x.numpy().astype(np.float64) for x in (a, b, c, d))
    e = np.exp(a @ b.T + c @ d.T)
    np.testing.assert_allclose(found, e / e.sum(-1, keepdims=True) @ b, 1e-5, 1e-5)
