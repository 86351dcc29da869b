"""triangular_solve and cholesky, a step a row, written out: each step is one kernel.

Halves are solved in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from uopc.dialects import tensor_elementwise as e
from uopc.passes.stablehlo_conversion.builder import Builder, element_of, row_of, shape_of
from uopc.passes.stablehlo_conversion.conversion import (
    Conversion,
    Rule,
    invalid,
    number,
    unsupported,
    word,
)

Values = Sequence[SSAValue]

MAX_ROWS = 256
"""Rows of a system that is written out."""


def _transposed(b: Builder, x: SSAValue) -> SSAValue:
    rank = len(shape_of(x))
    return b.permute(x, [*range(rank - 2), rank - 1, rank - 2])


def _work(b: Builder, op: Operation, x: SSAValue) -> SSAValue:
    row = row_of(x)
    if not row.is_float:
        raise unsupported(op, f"on elements of type {row.name}")
    return b.cast(x, f32) if row.name in ("f16", "bf16") else x


def _line(b: Builder, x: SSAValue, axis: int, at: int, shape: Sequence[int]) -> SSAValue:
    """One row or column, repeated."""
    return b.expand(b.slice_axis(x, axis, at, at + 1), shape)


def _check_square(op: Operation, x: SSAValue) -> int:
    shape = shape_of(x)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise invalid(op, f"needs square matrices, got {list(shape)}")
    if shape[-1] > MAX_ROWS:
        raise unsupported(op, f"of {shape[-1]} rows, expected at most {MAX_ROWS}")
    return shape[-1]


def _triangular_solve(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """x of a x = b by substitution: x_i = b_i / a_ii, then b_r loses a_ri x_i for later rows r.

    x a = b is the transposed system. Elements of the other triangle are not read.
    """
    b = c.build
    if len(x) != 2:
        raise invalid(op, "needs two operands")
    n = _check_square(op, x[0])
    matrix, values = _work(b, op, x[0]), _work(b, op, x[1])
    lower, unit = bool(number(op, "lower")), bool(number(op, "unit_diagonal"))
    left = bool(number(op, "left_side"))
    if not left:
        values = _transposed(b, values)
    if (word(op, "transpose_a") in ("TRANSPOSE", "ADJOINT")) == left:
        matrix, lower = _transposed(b, matrix), not lower
    shape = shape_of(values)
    rank = len(shape)
    if shape[:-1] != shape_of(matrix)[:-1]:
        raise invalid(op, "has a right side that does not fit its matrix")
    row = b.iota(rank - 2, shape)
    for i in range(n) if lower else reversed(range(n)):
        at = b.like(row, i)
        solved = _line(b, values, rank - 2, i, shape)
        if not unit:
            pivot = b.slice_axis(b.slice_axis(matrix, rank - 2, i, i + 1), rank - 1, i, i + 1)
            solved = b.op(e.DivOp, solved, b.expand(pivot, shape))
        column = _line(b, matrix, rank - 1, i, shape)
        rest = b.op(e.SubOp, values, b.op(e.MulOp, column, solved))
        later = b.op(e.CmpltOp, at, row) if lower else b.op(e.CmpltOp, row, at)
        here = b.op(e.CmpeqOp, row, at)
        values = b.stage(b.where(here, solved, b.where(later, rest, values)))
    if not left:
        values = _transposed(b, values)
    return [b.cast(values, element_of(x[1]))]


def _cholesky(c: Conversion, op: Operation, x: list[SSAValue]) -> Values:
    """l with l l^T = a: column i is divided by the root of its pivot, and what is to its right
    loses the product of the column with itself."""
    b = c.build
    n = _check_square(op, x[0])
    lower = bool(number(op, "lower", 0))
    matrix = _work(b, op, x[0])
    if not lower:
        matrix = _transposed(b, matrix)
    shape = shape_of(matrix)
    rank = len(shape)
    row, column = b.iota(rank - 2, shape), b.iota(rank - 1, shape)
    for i in range(n):
        at = b.like(row, i)
        pivot = b.slice_axis(b.slice_axis(matrix, rank - 2, i, i + 1), rank - 1, i, i + 1)
        root = b.op(e.SqrtOp, pivot)
        scaled = b.op(
            e.DivOp, b.slice_axis(matrix, rank - 1, i, i + 1), b.expand(root, (*shape[:-1], 1))
        )
        down = b.expand(scaled, shape)
        across = b.expand(_transposed(b, scaled), shape)
        rest = b.op(e.SubOp, matrix, b.op(e.MulOp, down, across))
        inside = b.op(e.AndOp, b.op(e.CmpltOp, at, row), b.op(e.CmpltOp, at, column))
        own = b.op(e.AndOp, b.op(e.CmpeqOp, column, at), b.op(e.CmpleOp, at, row))
        matrix = b.stage(b.where(own, down, b.where(inside, rest, matrix)))
    matrix = b.where(b.op(e.CmpleOp, column, row), matrix, b.like(matrix, 0))
    if not lower:
        matrix = _transposed(b, matrix)
    return [b.cast(matrix, element_of(x[0]))]


LINEAR_RULES: dict[str, Rule] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.triangular_solve": _triangular_solve,
}
