"""Every row of the tables of scalar ops, on every element type, at all pairs of its edges.

The reference semantics against C, compiled in every way there is. The transcendental functions are
tested in math_expansions/.
"""

from __future__ import annotations

import numpy as np
import pytest
from compiled_programs import compare, ways
from error_bounds import TRANSCENDENTAL
from random_programs import RandomProgram, float_edges
from xdsl.dialects.func import FuncOp

from uopc.dialects import tensor_elementwise as ew
from uopc.dialects.element_types import ELEMENT_TYPES, ElementType, element_type_named
from uopc.frontend.compile import CompileRequest
from uopc.passes.scalar_ops import BINARY, UNARY

NAMES = [row.name for row in ELEMENT_TYPES]


def edges(row: ElementType) -> np.ndarray:
    if row.is_float:
        return np.array(float_edges(row)).astype(row.numpy)
    low, high = row.limits
    near = {low, low + 1, low // 2, -row.bits, -3, -2, -1, 0, 1, 2, 3, 7, row.bits - 1, row.bits}
    near |= {row.bits + 1, high // 2, high - 1, high}
    return np.array(sorted(n for n in near if low <= n <= high), row.numpy)


def whole(values: np.ndarray, step: int = 32) -> np.ndarray:
    """The values, and some again, so that vectors divide them."""
    return np.resize(values, -(-len(values) // step) * step)


def with_ops(graph, inputs, results) -> RandomProgram:
    module = graph.module(*results)
    (function,) = module.body.block.ops
    assert isinstance(function, FuncOp)
    function.detach()
    return RandomProgram(function, inputs, {})


def test_the_tables_have_all_ops():
    assert set(UNARY) == set(ew.UNARY_OPS)
    assert set(BINARY) == set(ew.BINARY_OPS)


@pytest.mark.parametrize("name", NAMES)
def test_ops_at_all_pairs_of_edges(graph, cache_folder, name):
    row = element_type_named(name)
    values = edges(row)
    a, b = whole(np.repeat(values, len(values))), whole(np.tile(values, len(values)))
    values = whole(values)
    x, y, one = (graph.input(n, s.shape, name) for n, s in zip("xyu", (a, b, values), strict=True))
    unary = [op for op in UNARY if row.kind in op.KINDS and op not in TRANSCENDENTAL]
    # Integer powers are repeated products, of which only the float ones are transcendental.
    binary = [
        op
        for op in BINARY
        if row.kind in op.KINDS and (op not in TRANSCENDENTAL or not row.is_float)
    ]
    results = [graph.add_op(op(one)) for op in unary]
    results += [graph.add_op(op(x, y)) for op in binary]
    program = with_ops(graph, [a, b, values], results)
    assert compare([program], CompileRequest(), ways()) == []


@pytest.mark.parametrize("name", NAMES)
def test_ops_with_a_known_operand(graph, cache_folder, name):
    """Divisors, shifts and powers that are known when it is compiled take another way."""
    row = element_type_named(name)
    if not row.is_integer:
        pytest.skip("floats and truth values have one way")
    values = whole(edges(row))
    x = graph.input("x", values.shape, name)
    ops = (
        ew.FloordivOp, ew.TruncdivOp, ew.ModOp, ew.RemOp, ew.ShlOp, ew.ShrOp, ew.PowOp,
    )  # fmt: skip
    results = [
        graph.add_op(op(x, graph.full(number, x)))
        for op in ops
        for number in edges(row).tolist()
        if op is not ew.PowOp or abs(number) < 9
    ]
    program = with_ops(graph, [values], results)
    assert compare([program], CompileRequest(), ways()[1:2]) == []


def test_casts_between_all_types(graph, cache_folder):
    inputs, results = [], []
    for source in ELEMENT_TYPES:
        values = edges(source)
        if source.is_float:
            near = [127.5, 128.0, 255.5, -128.5, 32767.5, 2.0**31, 2.0**31 - 1, -(2.0**31), 2.0**63]
            more = np.array([*near, -(2.0**63), 2.0**64, 1 + 2.0**-9, 1 + 3 * 2.0**-9, 65520.0])
            with np.errstate(all="ignore"):
                values = np.concatenate([values, more.astype(source.numpy)])
        values = whole(values)
        inputs.append(values)
        x = graph.input(f"x_{source.name}", values.shape, source.name)
        results += [graph.add_op(ew.CastOp(x, target.attribute)) for target in ELEMENT_TYPES]
    program = with_ops(graph, inputs, results)
    assert compare([program], CompileRequest(), ways()[:2]) == []
