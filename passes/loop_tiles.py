"""The storage of tiles: with the dimensions of their ranges, or flat where that is simpler."""

from __future__ import annotations

from collections.abc import Sequence

from uopc.dialects import loop
from uopc.dialects.index_expr import Expr, FloorDiv, Mod, as_expr
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.sizes import Size
from uopc.passes.loop_dag import LoopDag


def flat_index(expressions: Sequence[Expr], sizes: Sequence[Size]) -> Expr:
    """The place in a flat buffer that some indices are."""
    flat: Expr = as_expr(0)
    for expr, size in zip(expressions, sizes, strict=True):
        flat = flat * size + expr
    return flat


def is_simpler_flat(dag: LoopDag, op: loop.TileOp) -> bool:
    """Whether quotients and remainders in the indices of a tile's reads vanish where it is flat.

    A tile of which a range was split is read at k floordiv 16, k mod 16, which is place k.
    """
    shape = buffer_of(op.result).get_shape()
    for use in op.result.uses:
        if isinstance(use.operation, loop.ReadOp):
            expressions = dag.expressions(use.operation.map, use.operation.indices)
            flat = flat_index(expressions, shape)
            if any(map(_divides, expressions)) and not _divides(flat):
                return True
    return False


def _divides(expr: Expr) -> bool:
    return any(isinstance(atom, FloorDiv | Mod) for atom, _ in expr.terms)
