"""Index maps of the movement ops: which element of the operand an element of the result is.

permute [o…]     in[o[k]] = out[k]
expand           in[k]    = 0 where axis k was repeated, else out[k]
flip             in[k]    = n[k] - 1 - out[k]
shrink b, s      in[k]    = b[k] + s[k] * out[k]
pad low          in[k]    = out[k] - low[k], valid where 0 <= in[k] < n[k]
reshape          in       = unravel(ravel(out)), axis group by axis group
"""

from __future__ import annotations

from collections.abc import Sequence

from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, as_expr, at_least
from uopc.dialects.locations import location_of
from uopc.dialects.sizes import Size, element_count, shape_text, size, sizes_of
from uopc.dialects.tensor import (
    MovementOp,
)
from uopc.dialects.tensor_elementwise import tensor_of
from uopc.dialects.tensor_movement import (
    ExpandOp,
    FlipOp,
    PadOp,
    PermuteOp,
    ReshapeOp,
    ShrinkOp,
    int_values,
)

Index = tuple[Expr, ...]


def source_index(op: MovementOp, index: Index) -> Index:
    """The operand's element that the result's element `index` is."""
    before, after = sizes_of(tensor_of(op.operand)), sizes_of(tensor_of(op.result))
    match op:
        case ReshapeOp():
            try:
                return reshape_index(index, after, before)
            except UopcError as error:
                error.location = error.location or location_of(op)
                raise
        case PermuteOp():
            by_axis = dict(zip(int_values(op.order), index, strict=True))
            return tuple(by_axis[axis] for axis in range(len(before)))
        case ExpandOp():
            return tuple(
                i if a == b else as_expr(0) for i, a, b in zip(index, before, after, strict=True)
            )
        case FlipOp():
            axes = int_values(op.axes)
            return tuple(
                as_expr(n) - 1 - i if k in axes else i
                for k, (i, n) in enumerate(zip(index, before, strict=True))
            )
        case ShrinkOp():
            steps = int_values(op.steps)
            return tuple(
                as_expr(b) + i * s for i, b, s in zip(index, op.begins.data, steps, strict=True)
            )
        case PadOp():
            return tuple(i - low for i, low in zip(index, op.low.data, strict=True))
        case _:
            raise AssertionError(f"{op.name} is not a movement op")


def pad_conditions(op: PadOp, inner: Index) -> tuple[Expr, ...]:
    """What is at least 0 where an element of the result is one of the operand."""
    conditions: list[Expr] = []
    for i, n in zip(inner, sizes_of(tensor_of(op.operand)), strict=True):
        for condition in (i, as_expr(n) - 1 - i):
            if at_least(condition, 0) is not True:
                conditions.append(condition)
    return tuple(conditions)


def reshape_index(index: Index, after: Sequence[Size], before: Sequence[Size]) -> Index:
    """The element of a tensor of sizes `before` at the row-major position of `index` in `after`.

    The shapes are cut into the smallest groups of axes with equal products, so that an axis that
    the reshape does not touch keeps its index. Axes of size 1 are in no group: their index is 0.
    """
    result = [as_expr(0)] * len(before)
    if element_count(before) == 0:
        return tuple(result)
    axes_after = [axis for axis, n in enumerate(after) if n != 1]
    axes_before = [axis for axis, n in enumerate(before) if n != 1]
    groups = _groups([after[k] for k in axes_after], [before[k] for k in axes_before])
    for group_after, group_before in groups:
        flat: Expr = as_expr(0)
        for axis in (axes_after[k] for k in group_after):
            flat = flat * after[axis] + index[axis]
        axes = [axes_before[k] for k in group_before]
        for axis, part in zip(axes, _unravel(flat, [before[k] for k in axes]), strict=True):
            result[axis] = part
    return tuple(result)


def _groups(after: Sequence[Size], before: Sequence[Size]) -> list[tuple[list[int], list[int]]]:
    groups: list[tuple[list[int], list[int]]] = []
    a = b = 0
    while a < len(after) or b < len(before):
        group: tuple[list[int], list[int]] = ([], [])
        product_after: Size = 1
        product_before: Size = 1
        while True:
            if product_after == product_before and (group[0] or group[1]):
                break
            take_after = a < len(after) and (
                b >= len(before) or _not_greater(product_after, product_before)
            )
            if take_after:
                product_after = size(as_expr(product_after) * after[a])
                group[0].append(a)
                a += 1
            else:
                product_before = size(as_expr(product_before) * before[b])
                group[1].append(b)
                b += 1
            if a >= len(after) and b >= len(before):
                break
        groups.append(group)
    return groups


def _not_greater(a: Size, b: Size) -> bool:
    return at_least(as_expr(b), as_expr(a)) is True


def _unravel(flat: Expr, sizes: Sequence[Size]) -> list[Expr]:
    parts: list[Expr] = []
    for position in range(len(sizes) - 1, 0, -1):
        n = sizes[position]
        if not isinstance(n, int) and n.bounds[0] < 1:
            raise UopcError(
                "symbolic-reshape",
                f"a reshape to {shape_text(sizes)} divides by {n}, which may be 0",
                hint=f"give the symbol a lower bound of at least 1: it is {n.bounds[0]}",
            )
        parts.append(flat % n)
        flat = flat // n
    if sizes:
        parts.append(flat)
    return parts[::-1]
