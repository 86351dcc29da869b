"""Mistakes that other compilers made with numbers and shapes, as inputs to get right.

The names are those of the cases; each runs on the reference semantics and as C at -O0 and -O3. Of
the others:

* C07, C09, C22, C38 to C43, C57 to C59, and more of these on tensors: tests/frontend/test_cases.py.
* C28, C30: tests/frontend/test_jit_sizes.py; C45: test_captured.py there; C48, C49:
  test_plan_cache.py there; C27: tests/runtime/test_threads.py.
* C44, C46, C51: tests/runtime/test_executable.py, test_cache.py, test_compiler.py.
* C54 to C69: test_cases_compiler.py. C71: tests/dialects/test_index_expr.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from all_paths import everywhere
from xdsl.utils.exceptions import VerifyException

from uopc.dialects import tensor as ut
from uopc.dialects import tensor_elementwise as ew
from uopc.dialects import tensor_movement as mv
from uopc.dialects.element_types import element_type_named
from uopc.dialects.numbers import dense_of_array
from uopc.frontend.compile import CompileRequest, lower, read_program
from uopc.runtime.compiler import CompileOptions
from uopc.runtime.executable import load_program

NAN, INF = math.nan, math.inf

pytestmark = pytest.mark.usefixtures("cache_folder")


def cast(graph, x, name):
    return graph.add_op(ew.CastOp(x, element_type_named(name).attribute))


def constant(graph, array):
    dense = dense_of_array(array)
    return graph.add_op(ut.ConstantOp(dense, dense.type))


def row(name):
    return element_type_named(name).numpy


# NaN and infinities


@pytest.mark.parametrize("element", ["f64", "f32", "f16", "bf16"])
def test_c01_a_nan_wins_in_max_and_min(graph, element):
    x = graph.input("x", (3, 3), element)
    module = graph.module(graph.reduce("max", x, 1), graph.reduce("min", x, 1))
    rows = np.array([[1, NAN, 3], [NAN, NAN, NAN], [2, 5, 4]]).astype(row(element))
    largest, smallest = everywhere(module, rows)
    np.testing.assert_array_equal(largest.astype(float), [NAN, NAN, 5])
    np.testing.assert_array_equal(smallest.astype(float), [NAN, NAN, 2])


@pytest.mark.parametrize(
    ("values", "largest", "smallest"),
    [
        ([NAN, 2, 5], 0, 0),
        ([2, NAN, 5], 1, 1),
        ([NAN, NAN], 0, 0),
        ([3, 3], 0, 0),
        ([INF, -INF, INF], 0, 1),
        ([-INF, -INF], 0, 0),
        ([0.0, -0.0], 0, 0),
        ([-INF, NAN], 1, 1),
    ],
)
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_c03_argmax_takes_the_first_nan(graph, element, values, largest, smallest):
    x = graph.input("x", (len(values),), element)
    module = graph.module(
        graph.add_op(ut.ArgreduceOp("max", x, 0)), graph.add_op(ut.ArgreduceOp("min", x, 0))
    )
    assert everywhere(module, np.array(values).astype(row(element))) == (largest, smallest)


def test_c05_a_float_times_zero_is_computed(graph):
    x, n = graph.input("x", (4,)), graph.input("n", (2,), "i32")
    module = graph.module(graph.scaled(x, 0.0), graph.op("mul", n, graph.full(0, n)))
    floats, integers = everywhere(
        module, np.array([INF, NAN, 1, -1], np.float32), np.array([7, -3], np.int32)
    )
    np.testing.assert_array_equal(floats, [NAN, NAN, 0, 0])
    assert np.signbit(floats[2:]).tolist() == [False, True]
    assert integers.tolist() == [0, 0]


# Casts

BEYOND = [-1.5, 300.0, NAN, INF, -INF, 1e10, -0.5, 127.9, -128.9, 255.9]
CAST_TO = {
    "ui8": [0, 255, 0, 255, 0, 255, 0, 127, 0, 255],
    "i8": [-1, 127, 0, 127, -128, 127, 0, 127, -128, 127],
    "i32": [-1, 300, 0, 2**31 - 1, -(2**31), 2**31 - 1, 0, 127, -128, 255],
    "ui32": [0, 300, 0, 2**32 - 1, 0, 2**32 - 1, 0, 127, 0, 255],
    "i64": [-1, 300, 0, 2**63 - 1, -(2**63), 10**10, 0, 127, -128, 255],
    "ui64": [0, 300, 0, 2**64 - 1, 0, 10**10, 0, 127, 0, 255],
}


@pytest.mark.parametrize("source", ["f64", "f32"])
def test_c11_floats_saturate_in_integers_folded_or_not(graph, source):
    values = np.array(BEYOND).astype(row(source))
    x = graph.input("x", (len(BEYOND),), source)
    known = constant(graph, values)
    run = [cast(graph, x, name) for name in CAST_TO]
    folded = [cast(graph, known, name) for name in CAST_TO]
    results = everywhere(graph.module(*run, *folded), values)
    for k, (name, expected) in enumerate(CAST_TO.items()):
        assert results[k].dtype == row(name)
        assert results[k].tolist() == expected
        assert results[len(CAST_TO) + k].tolist() == expected


def test_c12_rounding_is_exact_at_any_size(graph):
    x = graph.input("x", (8,), "f64")
    names = ("floor", "ceil", "trunc", "round")
    values = [1e12, 1e12 + 0.5, -3e9 - 0.25, 2.0**31 + 0.5, 0.5, 1.5, 2.5, -0.5]
    floor, ceil, trunc, nearest = everywhere(
        graph.module(*(graph.op(name, x) for name in names)), np.array(values)
    )
    assert floor.tolist() == [1e12, 1e12, -3e9 - 1, 2.0**31, 0, 1, 2, -1]
    assert ceil.tolist() == [1e12, 1e12 + 1, -3e9, 2.0**31 + 1, 1, 2, 3, 0]
    assert trunc.tolist() == [1e12, 1e12, -3e9, 2.0**31, 0, 1, 2, 0]
    assert nearest.tolist() == [1e12, 1e12, -3e9, 2.0**31, 0, 2, 2, 0]
    assert np.signbit([ceil[7], trunc[7], nearest[7]]).all()


# Integers

DIVISORS = [1, -1, 2, -2, 3, -3, 4, -4]


@pytest.mark.parametrize("element", ["i8", "i32", "i64"])
def test_c13_division_floors(graph, element):
    numbers = np.arange(-7, 8).astype(row(element))
    a, b = np.repeat(numbers, len(DIVISORS)), np.tile(DIVISORS, len(numbers)).astype(row(element))
    x, y = (graph.input(n, a.shape, element) for n in "xy")
    short = graph.input("short", numbers.shape, element)
    results = [graph.op("floordiv", x, y), graph.op("mod", x, y)]
    for divisor in DIVISORS:  # known when it is compiled: shifts and masks
        known = graph.full(divisor, short)
        results += [graph.op("floordiv", short, known), graph.op("mod", short, known)]
    quotients, remainders, *known = everywhere(graph.module(*results), a, b, numbers)
    assert quotients.tolist() == [int(p) // int(q) for p, q in zip(a, b, strict=True)]
    assert remainders.tolist() == [int(p) % int(q) for p, q in zip(a, b, strict=True)]
    for k, divisor in enumerate(DIVISORS):
        assert known[2 * k].tolist() == [int(n) // divisor for n in numbers]
        assert known[2 * k + 1].tolist() == [int(n) % divisor for n in numbers]


def test_c15_wrapping_happens_before_anything_else(graph):
    x, y = graph.input("x", (3,), "i32"), graph.input("y", (3,), "i32")
    total = cast(graph, graph.op("add", x, y), "i64")
    three = graph.full(3, x)
    thirds = graph.op("floordiv", graph.op("mul", x, three), three)
    module = graph.module(
        total, thirds, graph.op("neg", y), graph.op("cmplt", x, graph.op("add", x, y))
    )
    big, low = 2**31 - 1, -(2**31)
    wide, third, negated, less = everywhere(
        module, np.array([big, 2**30, low], np.int32), np.array([big, 1, low], np.int32)
    )
    assert wide.tolist() == [-2, 2**30 + 1, 0]
    assert third.tolist() == [((3 * n + 2**31) % 2**32 - 2**31) // 3 for n in (big, 2**30, low)]
    assert negated.tolist() == [-big, -1, low]
    assert less.tolist() == [False, True, True]


def test_c16_narrow_integers_wrap_at_every_step(graph):
    x = graph.input("x", (3,), "ui8")
    doubled = cast(graph, graph.op("add", x, x), "i16")
    below = graph.op("cmplt", graph.op("neg", x), graph.full(4, x))
    chain = graph.reduce("add", graph.op("neg", graph.op("abs", x)), 0)
    wide = cast(graph, graph.op("mul", x, x), "i32")
    module = graph.module(doubled, below, chain, wide)
    doubled, below, chain, wide = everywhere(module, np.array([128, 6, 200], np.uint8))
    assert doubled.tolist() == [0, 12, 144]
    assert below.tolist() == [False, False, False]
    assert chain == (128 + 250 + 56) % 256
    assert wide.tolist() == [0, 36, 40000 % 256]


@pytest.mark.parametrize(
    ("element", "kind", "values", "expected"),
    [
        ("ui8", "min", [3, 0, 0, 255], 1),
        ("ui8", "max", [3, 255, 0, 255], 1),
        ("i8", "min", [5, -128], 1),
        ("i8", "max", [-128, -128], 0),
        ("i64", "min", [0, -(2**63), -(2**63)], 1),
        ("ui64", "max", [2**63, 2**64 - 1, 5], 1),
        ("i1", "max", [False, True, True], 1),
        ("i1", "min", [True, True], 0),
    ],
)
def test_c19_positions_at_the_limits_of_a_type(graph, element, kind, values, expected):
    x = graph.input("x", (len(values),), element)
    position = graph.add_op(ut.ArgreduceOp(kind, x, 0))
    assert everywhere(graph.module(position), np.array(values, row(element))) == expected


def test_c19_argmax_of_a_complement(graph):
    x = graph.input("x", (2,), "i32")
    module = graph.module(graph.add_op(ut.ArgreduceOp("max", graph.op("not", x), 0)))
    assert everywhere(module, np.array([2, 2], np.int32)) == 0


def test_c20_types_of_results(graph):
    u, b, n = (
        graph.input("u", (3,), "ui8"),
        graph.input("b", (3,), "i1"),
        graph.input("n", (2,), "i32"),
    )
    any_u = graph.reduce("max", cast(graph, u, "i1"), 0)
    scaled = cast(graph, any_u, "ui8")
    scaled = graph.op("mul", scaled, graph.full(200, scaled))
    scaled = graph.op("add", scaled, graph.full(100, scaled))
    halves = graph.reduce("add", cast(graph, n, "f32"), 0)
    results = everywhere(
        graph.module(
            scaled,
            graph.reduce("add", b, 0),
            graph.reduce("add", u, 0),
            graph.op("add", b, b),
            graph.scaled(halves, 0.5),
            graph.op("cmplt", u, u),
        ),
        np.array([200, 100, 7], np.uint8),
        np.array([True, True, True]),
        np.array([1, 2], np.int32),
    )
    types = [r.dtype.name for r in results]
    assert types == ["uint8", "bool", "uint8", "bool", "float32", "bool"]
    assert results[0] == (200 + 100) % 256
    assert results[1] == True  # noqa: E712
    assert results[2] == (200 + 100 + 7) % 256
    assert results[3].tolist() == [False] * 3
    assert results[4] == 1.5


@pytest.mark.parametrize("name", ["i8", "ui8", "i16", "i1", "i64"])
def test_c21_folded_is_executed(graph, name):
    ops = ["add", "mul", "cmplt", "cmpeq", "max", "xor"]
    if name != "i1":
        ops += ["sub", "shl", "shr", "floordiv", "truncdiv", "mod", "rem", "pow"]
    low, high = element_type_named(name).limits
    edges = sorted({low, low + 1, high - 1, high, 0, 1})
    a = np.repeat(np.array(edges, row(name)), len(edges))
    b = np.tile(np.array(edges, row(name)), len(edges))
    x, y = graph.input("x", a.shape, name), graph.input("y", a.shape, name)
    known_x, known_y = constant(graph, a), constant(graph, b)
    executed = [graph.op(op, x, y) for op in ops]
    folded = [graph.op(op, known_x, known_y) for op in ops]
    results = everywhere(graph.module(*executed, *folded), a, b)
    for k, op in enumerate(ops):
        np.testing.assert_array_equal(results[k], results[len(ops) + k], err_msg=op)


# Precision


def test_c23_half_sums_accumulate_in_f32(graph):
    import ml_dtypes

    x, s = graph.input("x", (4096,), "bf16"), graph.input("s", (1, 512), "bf16")
    total = graph.reduce("add", x, 0)
    shifted = graph.op(
        "sub", s, graph.expand(graph.keep(graph.reduce("max", s, 1), (1, 512), 1), 1, 512)
    )
    e = graph.op("exp", shifted)
    weights = graph.op(
        "div", e, graph.expand(graph.keep(graph.reduce("add", e, 1), (1, 512), 1), 1, 512)
    )
    ones = np.ones(4096, ml_dtypes.bfloat16)
    total, weights = everywhere(
        graph.module(total, weights), ones, np.full((1, 512), 3, ml_dtypes.bfloat16)
    )
    assert float(total) == 4096
    assert np.all(weights.astype(np.float32) == 1 / 512)


# Shapes


@pytest.mark.parametrize("m,k,n", [(0, 4, 3), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
@pytest.mark.parametrize("fuse_reduce", ["none", "all"])
def test_c31_products_without_elements(graph, m, k, n, fuse_reduce):
    a, b = graph.input("a", (m, k)), graph.input("b", (k, n))
    product = everywhere(
        graph.module(graph.matmul(a, b)),
        np.ones((m, k), np.float32),
        np.ones((k, n), np.float32),
        fuse_reduce=fuse_reduce,
    )
    assert product.shape == (m, n)
    assert not product.any()


def test_c31_reductions_and_gathers_without_elements(graph):
    x, i = graph.input("x", (0, 3)), graph.input("i", (0,), "i32")
    table = graph.input("table", (4, 2))
    total = graph.reduce("add", x, 0)
    mean = graph.op("div", total, graph.full(0.0, total))
    wide = graph.add_op(mv.PadOp(x, [0, 0], [2, 0], 1.0))
    rows = graph.add_op(ut.GatherOp(table, i, 0))
    scattered = graph.add_op(ut.ScatterOp("add", table, i, rows, 0))
    results = everywhere(
        graph.module(
            total, mean, graph.reduce("max", x, 0), graph.reduce("mul", x, 0, 1), wide, rows,
            scattered, graph.reduce("add", x, 1),
        ),
        np.ones((0, 3), np.float32), np.zeros(0, np.int32), np.ones((4, 2), np.float32),
    )  # fmt: skip
    assert results[0].tolist() == [0, 0, 0]
    assert np.isnan(results[1]).all()
    assert results[2].tolist() == [-INF] * 3
    assert results[3] == 1
    assert results[4].tolist() == [[1] * 3] * 2
    assert results[5].shape == (0, 2)
    assert results[6].tolist() == [[1, 1]] * 4
    assert results[7].shape == (0,)


@pytest.mark.parametrize("op", ["argreduce", "gather"])
def test_c31_no_element_where_one_is_needed(graph, op):
    x, i = graph.input("x", (2, 0)), graph.input("i", (3,), "i32")
    with pytest.raises(VerifyException, match=r"axis 1, got size 0"):
        made = ut.ArgreduceOp("max", x, 1) if op == "argreduce" else ut.GatherOp(x, i, 1)
        made.verify()


def test_c32_rank_0(graph):
    x, table = graph.input("x", ()), graph.input("table", (3,), "i32")
    i = graph.input("i", (), "i64")
    one = graph.reshape(x, 1, 1)
    results = everywhere(
        graph.module(
            graph.add_op(mv.FlipOp(x, [])), graph.softmax(one), graph.reduce("add", x),
            graph.permute(x), one, graph.expand(one, 2, 3), graph.add_op(ut.GatherOp(table, i, 0)),
            graph.add_op(mv.PadOp(x, [], [], 0.0)), graph.add_op(mv.ShrinkOp(x, [], [])),
            graph.op("mul", x, x), cast(graph, x, "i32"),
        ),
        np.array(2.5, np.float32), np.array([4, 5, 6], np.int32), np.array(1),
        ulps=4,
    )  # fmt: skip
    assert [r.tolist() for r in results] == [
        2.5, [[1]], 2.5, 2.5, [[2.5]], [[2.5] * 3] * 2, 5, 2.5, 2.5, 6.25, 2,
    ]  # fmt: skip


def test_c35_no_store_beyond_a_row():
    """All sizes from 1 to 67 in an axis that is kept, beside a reduction, between canaries."""
    text = "".join(
        f"""func.func @f{n}(%x: tensor<3x{n}xf32>) -> (tensor<{n}xf32>, tensor<3x{n}xf32>) {{
  %s = utensor.reduce add %x axes [0] : tensor<3x{n}xf32>
  %r = utensor.reshape %s : tensor<{n}xf32> -> tensor<1x{n}xf32>
  %e = utensor.expand %r : tensor<1x{n}xf32> -> tensor<3x{n}xf32>
  %y = utensor.sub %x, %e : tensor<3x{n}xf32>
  func.return %s, %y : tensor<{n}xf32>, tensor<3x{n}xf32>
}}
"""
        for n in range(1, 68)
    )
    program = lower(read_program(text), CompileRequest()).program()
    for level in (0, 3):
        for n in range(1, 68):
            exe = load_program(program, f"f{n}", options=CompileOptions(opt_level=level), debug=0)
            x = np.arange(3 * n, dtype=np.float32).reshape(3, n)
            held = [np.full(16 + size + 16, 7.5, np.float32) for size in (n, 3 * n)]
            outs = [held[0][16:-16], held[1][16:-16].reshape(3, n)]
            exe.run_into(outs, [x])
            np.testing.assert_array_equal(outs[0], x.sum(0))
            np.testing.assert_array_equal(outs[1], x - x.sum(0))
            for canary in held:
                assert (canary[:16] == 7.5).all()
                assert (canary[-16:] == 7.5).all()


FORMS = {
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every_other_column": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "read_only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "column_major": np.asfortranarray,
}


@pytest.mark.parametrize("form", FORMS)
def test_c44_inputs_of_any_stride(graph, form):
    a, b = graph.input("a", (5, 7)), graph.input("b", (1, 7))
    module = graph.module(graph.op("add", a, graph.expand(b, 5, 7)))
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    y = np.broadcast_to(np.float32(2), (1, 7))
    given = FORMS[form](x)
    before = given.copy()
    np.testing.assert_array_equal(everywhere(module, given, y), x + 2)
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize(
    ("element", "positions"),
    [
        ("i8", [-128, -1, 0, 5, 127]),
        ("ui8", [0, 5, 127, 200, 255]),
        ("i64", [-(2**63), 2**63 - 1, 0, 299, 300]),
        ("ui64", [0, 299, 300, 2**63, 2**64 - 1]),
    ],
)
def test_positions_of_every_type(graph, element, positions):
    """Types too small for the axis, and numbers too large for any index."""
    x, u = graph.input("x", (300,), "i32"), graph.input("u", (5,), "i32")
    i = graph.input("i", (5,), element)
    module = graph.module(
        graph.add_op(ut.GatherOp(x, i, 0)), graph.add_op(ut.ScatterOp("set", x, i, u, 0))
    )
    table, updates = np.arange(300, dtype=np.int32), np.arange(1000, 1005, dtype=np.int32)
    taken, changed = everywhere(module, table, updates, np.array(positions, row(element)))
    assert taken.tolist() == [min(299, max(0, p)) for p in positions]
    expected = table.tolist()
    for position, update in zip(positions, updates.tolist(), strict=True):
        if 0 <= position < 300:
            expected[position] = update
    assert changed.tolist() == expected
