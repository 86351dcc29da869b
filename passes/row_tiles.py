"""Which values of a kernel's tensor body are kept for a whole row, rather than computed again.

A softmax reads exp(x - max) twice: at each element for the sum, and at each element for the
result. Both readers run in loops of their own inside of the row's loop, so the value would be
computed twice. Where that is dear (a function, or a sum of its own), rangeify fills a tile with
the row first:

    %t = uloop.tile %e over (%p) local : memref<512xf32>
    …  uloop.reduce add of uloop.read %t[%k] …  uloop.read %t[%j] / %sum …

Chosen is a value with several users of which one, through elementwise ops, is reduced over some
axes: those are the axes of the tile. A row of a size that is only known at the call, and one that
is larger than `MOST_BYTES`, is computed again.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from uopc.dialects import tensor
from uopc.dialects.sizes import sizes_of
from uopc.dialects.tensor_elementwise import ELEMENTWISE_OPS, element_of, tensor_of
from uopc.dialects.tensor_movement import ExpandOp, MovementOp, int_values

MOST_BYTES = 128 << 10
"""A tile lies on the stack."""

_ELEMENTWISE = frozenset(ELEMENTWISE_OPS)
_DEAR = frozenset(
    [
        "div",
        "floordiv",
        "truncdiv",
        "mod",
        "rem",
        "pow",
        "atan2",
        "sqrt",
        "rsqrt",
        "recip",
        "cbrt",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
    ]
)
"""Ops that take longer than reading a tile."""

Axes = tuple[int, ...]


def row_tiles(block: Block) -> dict[SSAValue, Axes]:
    """The values of a kernel's body to keep, with the axes that their tiles run over."""
    reduced: dict[SSAValue, Axes | None] = {}
    """Over which axes elementwise users reduce a value; None where they disagree."""
    found: dict[SSAValue, Axes] = {}
    for op in reversed(list(block.ops)):
        if isinstance(op, tensor.ReduceOp):
            _note(reduced, op.operand, tuple(sorted(int_values(op.axes))))
            continue
        if type(op) not in _ELEMENTWISE:
            continue
        value = op.results[0]
        if value not in reduced:
            continue
        axes = reduced[value]
        for operand in op.operands:
            _note(reduced, operand, axes)
        if axes and value.has_more_than_one_use() and _fits(value, axes) and _is_dear(value, axes):
            found[value] = axes
    # A sum that its users reduce, and read besides, is kept as well.
    for op in block.ops:
        if isinstance(op, tensor.ReduceOp) and op.result.has_more_than_one_use():
            axes = reduced.get(op.result)
            if axes and _fits(op.result, axes):
                found[op.result] = axes
    return found


def _note(reduced: dict[SSAValue, Axes | None], value: SSAValue, axes: Axes | None) -> None:
    known = reduced.get(value, axes)
    reduced[value] = axes if known == axes else None


def _fits(value: SSAValue, axes: Axes) -> bool:
    sizes = sizes_of(tensor_of(value))
    elements = 1
    for axis in axes:
        size = sizes[axis]
        if not isinstance(size, int):
            return False
        elements *= size
    return 1 < elements <= MOST_BYTES // element_of(tensor_of(value)).bytes


def _is_dear(value: SSAValue, axes: Axes) -> bool:
    """Whether what changes along the axes takes a function or a reduction to compute."""
    pending: list[tuple[SSAValue, Axes | None]] = [(value, axes)]
    seen: set[SSAValue] = set()
    while pending:
        current, along = pending.pop()
        owner = current.owner
        if not isinstance(owner, Operation) or current in seen:
            continue
        seen.add(current)
        if isinstance(owner, tensor.ReduceOp | tensor.ArgreduceOp):
            return True
        if type(owner) in _ELEMENTWISE:
            if owner.name.partition(".")[2] in _DEAR:
                return True
            pending.extend((operand, along) for operand in owner.operands)
        elif isinstance(owner, ExpandOp):
            if along is None or not _is_repeated(owner, along):
                pending.append((owner.operand, along))
        elif isinstance(owner, MovementOp):
            pending.append((owner.operand, None))  # the axes are others now
    return False


def _is_repeated(op: ExpandOp, axes: Axes) -> bool:
    """Whether an op repeats its operand along all of some axes: it is the same for a row."""
    sizes = sizes_of(tensor_of(op.operand))
    return all(sizes[axis] == 1 for axis in axes)
