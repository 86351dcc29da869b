"""The textbook's programs by value and in the C they become; test_facts_plans.py has the plans."""

from __future__ import annotations

import re

import numpy as np
import pytest
from all_paths import everywhere

import uopc
from uopc.dialects import tensor as ut
from uopc.dialects import tensor_elementwise as ew
from uopc.dialects.element_types import element_type_named
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import at_least, new_range, symbol
from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.lowering.c import emit_c

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def functions(module, **options) -> dict[str, str]:
    """The C functions that a program becomes, with plain loops, by name."""
    request = CompileRequest(pipeline="uopc-cpu", **options)
    text = emit_c(lower(read_program(module), request).module).text
    found = re.findall(r"^(?:static )?void (\w+)\(([^;{]*?)\)\n\{\n(.*?)^\}", text, re.M | re.S)
    return {name: f"{parameters}\n{body}" for name, parameters, body in found}


def kernels(module, **options) -> list[str]:
    """The C of the kernels, without the program's own function."""
    return [body for name, body in functions(module, **options).items() if name != "main_"]


def loop_depths(body: str) -> list[int]:
    """How deep each `for` of a function stands among others, in the order of the text."""
    depths: list[int] = []
    stack: list[int] = []
    for line in body.splitlines():
        indent = len(line) - len(line.lstrip())
        while stack and indent <= stack[-1] and line.strip():
            stack.pop()
        if line.lstrip().startswith("for ("):
            stack.append(indent)
            depths.append(len(stack))
    return depths


def test_p1_a_chain_of_elementwise_ops_loads_and_stores_once(graph):
    a = graph.input("a", (2, 4))
    y = graph.op("add", graph.scaled(a, 2.0), graph.full(1.0, a))
    module = graph.module(graph.scaled(graph.relu(y), 3.0))
    (body,) = kernels(module)
    assert body.count("a[") == 1
    assert body.count("out0[") == 1
    x = normal(2, 4)
    np.testing.assert_array_equal(everywhere(module, x), np.maximum(x * 2 + 1, 0) * 3)


@pytest.mark.parametrize("fuse_reduce", ["none", "all", "auto"])
def test_p2_p3_p7_softmax(graph, fuse_reduce):
    x = normal(4, 8) * 10
    module = graph.module(graph.softmax(graph.input("x", (4, 8))))
    result = everywhere(module, x, ulps=64, fuse_reduce=fuse_reduce)
    np.testing.assert_allclose(result, softmax(x), rtol=3e-6)


def test_p3_sibling_reductions_are_sibling_loops_in_the_row_loop(graph):
    module = graph.module(graph.softmax(graph.input("x", (4, 8))))
    (body,) = kernels(module, fuse_reduce="all")
    assert loop_depths(body) == [1, 2, 2, 2]  # rows; max, sum and the quotients
    assert "tmp" not in body
    assert body.index("i < 4") < body.index("j < 8")


def chain_of_products(graph, n):
    a, b, c = (graph.input(name, (n, n)) for name in "abc")
    return graph.module(graph.matmul(graph.matmul(a, b), c))


@pytest.mark.parametrize(("fuse_reduce", "depth"), [("none", 3), ("all", 4)])
def test_p4_fused_products_are_a_deeper_nest(graph, fuse_reduce, depth):
    module = chain_of_products(graph, 24)
    (body,) = kernels(module, fuse_reduce=fuse_reduce)  # the two of `none` are one function
    assert max(loop_depths(body)) == depth
    a, b, c = (normal(24, 24) for _ in range(3))
    result = everywhere(module, a, b, c, ulps=1 << 20, fuse_reduce=fuse_reduce)
    exact = a.astype(np.float64) @ b @ c
    bound = 48 * 2.0**-23 * (np.abs(a).astype(np.float64) @ np.abs(b) @ np.abs(c))
    assert np.all(np.abs(result - exact) <= bound)


def layer_norm(x):
    x = x.astype(np.float64)
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("fuse_reduce", ["none", "auto"])
def test_p5_layer_norm_into_linear(graph, fuse_reduce):
    x, w = graph.input("x", (32, 64)), graph.input("w", (64, 64))
    module = graph.module(graph.matmul(graph.layer_norm(x), w))
    a, b = normal(32, 64), normal(64, 64)
    result = uopc.compile(module, fuse_reduce=fuse_reduce)(a, b)
    np.testing.assert_allclose(result, layer_norm(a) @ b, rtol=1e-4, atol=1e-4)


def test_p6_variance_and_relu_between_products(graph):
    x = graph.input("x", (64, 64))
    w, v = graph.input("w", (64, 64)), graph.input("v", (64, 64))
    minus = graph.expand(graph.scaled(graph.mean(x, 1), -1.0), 64, 64)
    centred = graph.op("add", x, minus)
    square = graph.reduce("add", graph.op("mul", centred, centred), 1)
    module = graph.module(
        graph.scaled(square, 1 / 63), graph.matmul(graph.relu(graph.matmul(x, w)), v)
    )
    a, b, c = (normal(64, 64) for _ in range(3))
    variance, product = everywhere(module, a, b, c, ulps=1 << 22)
    np.testing.assert_allclose(variance, a.astype(np.float64).var(-1, ddof=1), rtol=1e-5)
    exact = np.maximum(a.astype(np.float64) @ b, 0) @ c
    np.testing.assert_allclose(product, exact, rtol=1e-4, atol=1e-2)


def test_p9_a_loss_and_its_gradient(graph):
    x, w = graph.input("x", (32, 64)), graph.input("w", (64, 10))
    h = graph.matmul(x, w)
    r = graph.relu(h)
    loss = graph.scaled(graph.reduce("add", graph.op("mul", r, r), 0, 1), 1 / 320)
    zero = graph.full(0.0, h)
    slope = graph.op("where", graph.op("cmplt", zero, h), graph.scaled(r, 2 / 320), zero)
    gradient = graph.matmul(graph.permute(x, 1, 0), slope)
    a, b = normal(32, 64), normal(64, 10)
    value, slopes = everywhere(graph.module(loss, gradient), a, b, ulps=1 << 22)
    rows = np.maximum(a.astype(np.float64) @ b, 0)
    np.testing.assert_allclose(value, np.mean(rows**2), rtol=1e-5)
    np.testing.assert_allclose(
        slopes, a.T.astype(np.float64) @ rows * 2 / 320, rtol=1e-3, atol=1e-5
    )


def test_p10_equal_kernels_are_one_function_of_c(graph):
    a, b = graph.input("a", (16, 16)), graph.input("b", (16, 16))
    module = graph.module(graph.reduce("add", a, 1), graph.reduce("add", b, 1))
    found = functions(module)
    assert len(found) == 2
    (kernel,) = (name for name in found if name != "main_")
    assert found["main_"].count(f"{kernel}(") == 2
    x, y = normal(16, 16), normal(16, 16)
    first, second = everywhere(module, x, y, ulps=64)
    np.testing.assert_allclose(first, x.sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(second, y.sum(1), rtol=1e-4, atol=1e-5)


def test_p11_an_input_times_zero_is_not_read_and_not_written(graph):
    t = graph.input("t", (3,), "i32")
    module = graph.module(graph.op("mul", t, graph.full(0, t)))
    (body,) = kernels(module)
    assert not re.search(r"\bt\b", body)
    assert body.count("const int32_t *") == 0
    values = np.array([5, -7, 2**31 - 1], np.int32)
    before = values.copy()
    assert everywhere(module, values).tolist() == [0, 0, 0]
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("explicit", [True, False])
def test_p12_an_explicit_stage_changes_no_value(graph, explicit):
    a = graph.input("a", (8, 8))
    y = graph.scaled(graph.exp(a), 2.0)
    module = graph.module(graph.reduce("add", graph.stage(y) if explicit else y, 1))
    x = normal(8, 8)
    result = everywhere(module, x, ulps=64)
    np.testing.assert_allclose(result, (np.exp(x.astype(np.float64)) * 2).sum(1), rtol=1e-5)


def test_p13_movement_as_a_result_copies_and_aliases_are_fresh(graph):
    x = graph.input("x", (3, 4))
    module = graph.module(graph.permute(x, 1, 0), x, graph.reshape(x, 2, 6))
    values = normal(3, 4)
    turned, same, flat = everywhere(module, values)
    np.testing.assert_array_equal(turned, values.T)
    np.testing.assert_array_equal(same, values)
    np.testing.assert_array_equal(flat, values.reshape(2, 6))
    same[0, 0] = flat[0, 1] = 99
    assert values[0, 0] != 99
    assert values[0, 1] != 99
    assert len(kernels(module)) == 1


def test_p14_detach_is_the_identity(graph):
    x = graph.input("x", (4,))
    values = np.array([1, np.nan, -0.0, np.inf], np.float32)
    result = everywhere(graph.module(graph.stage(graph.stage(x, "detach"), "detach")), values)
    assert result.tobytes() == values.tobytes()


@pytest.mark.parametrize("program", ["cast", "scalar", "wide"])
def test_p15_what_is_staged_or_not_has_the_same_values(graph, program):

    x = graph.input("x", (64, 64))
    if program == "cast":
        y = graph.add_op(ew.CastOp(x, element_type_named("f16").attribute))
        y = graph.add_op(ew.CastOp(y, element_type_named("f32").attribute))
    elif program == "scalar":
        y = graph.expand(graph.reshape(graph.reduce("max", x, 0, 1), 1, 1), 64, 64)
    else:
        y = graph.scaled(graph.op("mul", x, x), 0.5)
    wide = graph.expand(graph.reshape(y, 64, 64, 1), 64, 64, 8)
    values = normal(64, 64)
    result = everywhere(graph.module(graph.reduce("max", wide, 1)), values)
    truth = {
        "cast": lambda v: v.astype(np.float16).astype(np.float32),
        "scalar": lambda v: np.broadcast_to(v.max(), v.shape),
        "wide": lambda v: v * v * np.float32(0.5),
    }[program](values)
    np.testing.assert_array_equal(result, np.repeat(truth.max(1)[:, None], 8, 1))


# Beyond the reference


def test_b1_temporaries_share_storage(graph):
    x = graph.input("x", (64, 64))
    y = x
    for _ in range(6):
        y = graph.stage(graph.op("add", graph.permute(y, 1, 0), x))
    module = graph.module(graph.reduce("add", y, 0))
    exe = uopc.compile(module)
    separate = sum(int(np.prod(t.shape)) * 4 for t in exe.plan.temps)
    assert len(exe.plan.temps) == 6
    assert exe.plan.workspace_bytes <= separate // 3
    values = np.round(normal(64, 64) * 4)
    expected = values
    for _ in range(6):
        expected = expected.T + values
    np.testing.assert_array_equal(everywhere(module, values), expected.sum(0))


def test_b5_the_three_facts():
    n = symbol("n", 1, 8)
    i, j = new_range("i", 100), new_range("j", 8)
    assert (i * 8 + j) // 8 is i
    assert (i * 8 + j) % 8 is j
    assert at_least(n - 1 - new_range("k", n), 0) is True


def test_b5_one_plan_for_every_length(graph):
    n = symbol("n", 1, 64)
    x = graph.input("x", (n, 8))
    column = graph.reshape(graph.reduce("max", x, 1), n, 1)
    y = graph.op("sub", x, graph.expand(column, n, 8))
    exe = uopc.compile(graph.module(y, graph.reduce("add", y, 0)))
    for length in (1, 2, 7, 8, 33, 64):
        values = np.round(normal(length, 8) * 4)
        rows, sums = exe(values)
        expected = values - values.max(1, keepdims=True)
        np.testing.assert_array_equal(rows, expected)
        np.testing.assert_array_equal(sums, expected.sum(0))
    for length in (0, 65):
        with pytest.raises(UopcError) as caught:
            exe(np.zeros((length, 8), np.float32))
        assert caught.value.kind == "size-out-of-bounds"
        assert caught.value.message == (
            f"size `n` is {length} along axis 0 of `x`; it may be 1 to 64"
        )


def test_b7_halves_accumulate_in_f32(graph):

    a, b = graph.input("a", (64, 64), "f16"), graph.input("b", (64, 64), "f16")
    f32 = element_type_named("f32").attribute
    wide = [graph.add_op(ew.CastOp(v, f32)) for v in (a, b)]
    exe = uopc.compile(graph.module(graph.matmul(*wide), graph.matmul(a, b)))
    x, y = normal(64, 64).astype(np.float16), normal(64, 64).astype(np.float16)
    mixed, half = exe(x, y)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    assert np.abs(mixed - exact).max() < 3e-5
    assert half.dtype == np.float16
    assert np.abs(half - exact).max() < 0.1


def test_b13_block_tables(graph):
    """A paged cache: rows at addresses that the data tell."""

    cache = graph.input("cache", (6, 4, 8))
    table = graph.input("table", (3,), "i32")
    pages = graph.add_op(ut.GatherOp(cache, table, 0))
    module = graph.module(graph.reduce("add", graph.reshape(pages, 12, 8), 0))
    values = np.round(normal(6, 4, 8) * 4)
    where = np.array([5, 0, 5], np.int32)
    result = everywhere(module, values, where)
    np.testing.assert_array_equal(result, values[where].reshape(12, 8).sum(0))
