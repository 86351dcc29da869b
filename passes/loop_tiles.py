"""The storage of tiles, and of buffers: with their dimensions, or flat where that is simpler.

A tile in registers of two ranges, one of lanes and one of copies, is its rows as vectors. Read with
lanes and copies exchanged it is their transpose, which log2(n) steps of shuffles make of n rows:
the step of b exchanges, in each pair of rows that are b apart, the off-diagonal blocks of b lanes
(J. O. Eklundh, A Fast Computer Method for Matrix Transposing, 1972).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, i64
from xdsl.ir import Block, SSAValue

from uopc.dialects import loop
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, FloorDiv, Mod, as_expr
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.locations import location_of
from uopc.dialects.sizes import Size
from uopc.passes.loop_dag import LoopDag, length_of
from uopc.passes.loop_scopes import Lanes, Scopes
from uopc.passes.scalar_builder import ScalarBuilder
from uopc.passes.vector_types import positions


def flat_index(expressions: Sequence[Expr], sizes: Sequence[Size]) -> Expr:
    """The place in a flat buffer that some indices are."""
    flat: Expr = as_expr(0)
    for expr, size in zip(expressions, sizes, strict=True):
        flat = flat * size + expr
    return flat


def is_simpler_flat(dag: LoopDag, buffer: SSAValue) -> bool:
    """Whether quotients and remainders in the indices of some accesses vanish where a buffer of
    known sizes is flat.

    A tile of which a range was split is read at k floordiv 16, k mod 16, which is place k; rows
    that were merged are written so.
    """
    shape = buffer_of(buffer).get_shape()
    if len(shape) < 2 or min(shape) < 0:
        return False
    for use in buffer.uses:
        access = use.operation
        if isinstance(access, loop.AccessOp) and access.buffer is buffer:
            expressions = dag.expressions(access.map, access.indices)
            if any(map(_divides, expressions)) and not _divides(flat_index(expressions, shape)):
                return True
    return False


def places_read(dag: LoopDag, op: loop.TileOp) -> int:
    """How many places a flat tile has to have: its own, and those that lanes read behind its end,
    of which nothing is kept."""
    shape = buffer_of(op.result).get_shape()
    places = prod(shape)
    for use in op.result.uses:
        if isinstance(use.operation, loop.ReadOp):
            expressions = dag.expressions(use.operation.map, use.operation.indices)
            places = max(places, flat_index(expressions, shape).bounds[1] + 1)
    return places


def reads_past_rows(dag: LoopDag, op: loop.TileOp) -> bool:
    """Whether lanes read behind the end of a row, where the next one or spare places lie."""
    shape = buffer_of(op.result).get_shape()
    for use in op.result.uses:
        if isinstance(use.operation, loop.ReadOp):
            expressions = dag.expressions(use.operation.map, use.operation.indices)
            if any(e.bounds[1] >= n for e, n in zip(expressions, shape, strict=True)):
                return True
    return False


def flattened(block: Block, buffer: SSAValue) -> SSAValue:
    """A buffer as one of rank 1; the view is added to a block."""
    type_ = buffer_of(buffer)
    shape = type_.get_shape()
    if len(shape) < 2:
        return buffer
    count = DYNAMIC_INDEX if DYNAMIC_INDEX in shape else prod(shape)
    axes = ArrayAttr([ArrayAttr([IntegerAttr(k, i64) for k in range(len(shape))])])
    flat = memref.CollapseShapeOp.create(
        operands=[buffer],
        result_types=[MemRefType(type_.element_type, [count])],
        properties={"reassociation": axes},
    )
    block.add_op(flat)
    flat.result.name_hint = buffer.name_hint
    return flat.result


def in_registers(op: loop.TileOp) -> bool:
    """Whether a tile is kept as vectors: a square of copies and lanes in space `register`."""
    if op.space.data != "register" or len(op.over) != 2:
        return False
    ranges = [o.owner for o in op.over]
    kinds = sorted(r.kind.data for r in ranges if isinstance(r, loop.RangeOp))
    sizes = set(buffer_of(op.result).get_shape())
    (size,) = sizes if len(sizes) == 1 else (0,)
    return kinds == ["unroll", "vector"] and size > 0 and size & (size - 1) == 0


def _lanes_first(op: loop.TileOp) -> bool:
    """Whether the first of a register tile's two ranges is the one of lanes."""
    first = op.over[0].owner
    return isinstance(first, loop.RangeOp) and first.kind.data == "vector"


def keep_row(scopes: Scopes, op: loop.TileOp, value: SSAValue, lanes: Lanes) -> None:
    """Remember one row of a tile in registers, by its number."""
    at = 1 if _lanes_first(op) else 0
    number = scopes.resolved(scopes.dag.index[op.over[at]], lanes).as_int()
    scopes.top.values["row", op.result, number] = value


def read_row(scopes: Scopes, op: loop.ReadOp, tile: loop.TileOp, lanes: Lanes) -> SSAValue:
    """A row of a tile in registers; read with lanes along the copies, a column of it."""
    lane, copy = (0, 1) if _lanes_first(tile) else (1, 0)
    exprs = [scopes.resolved(e, lanes) for e in scopes.dag.expressions(op.map, op.indices)]
    number = exprs[copy].as_int()
    _check_lanes(scopes, op, exprs[lane if number is not None else copy])
    if number is not None:
        found = scopes.find(("row", tile.result, number))
        assert found is not None
        return found
    number = exprs[lane].as_int()
    if number is None:
        raise _no_row(op)
    found = scopes.find(("column", tile.result, number))
    if found is None:
        count = buffer_of(tile.result).get_shape()[0]
        rows = [scopes.find(("row", tile.result, k)) for k in range(count)]
        columns = _transposed(scopes.top.builder, [r for r in rows if r is not None])
        for k, column in enumerate(columns):
            scopes.top.values["column", tile.result, k] = column
        found = scopes.find(("column", tile.result, number))
    assert found is not None
    return found


def _check_lanes(scopes: Scopes, op: loop.ReadOp, expr: Expr) -> None:
    """Refuse to read anything but a whole row or column."""
    along = next((r for r in scopes.dag.free[op.result] if r.kind.data == "vector"), None)
    count = buffer_of(op.buffer).get_shape()[0]
    whole = along is not None and length_of(along) == count
    if not whole or scopes.along(expr, along) != (as_expr(0), 1):
        raise _no_row(op)


def _no_row(op: loop.ReadOp) -> UopcError:
    return UopcError(
        "no-linear-form",
        f"'{op.buffer.name_hint or 'a tile'}' is in registers and not read row by row",
        hint="expected one index to be a vector range, the other an unrolled one; or space local",
        location=location_of(op),
    )


def _transposed(builder: ScalarBuilder, rows: Sequence[SSAValue]) -> list[SSAValue]:
    """The columns of a square of n vectors of n lanes, n a power of two, as vectors."""
    count = len(rows)
    result = list(rows)
    block = count // 2
    while block:
        low = [k if k & block == 0 else k - block + count for k in range(count)]
        high = [k + block if k & block == 0 else k + count for k in range(count)]
        for first in range(count):
            if first & block == 0:
                pair = result[first], result[first + block]
                result[first], result[first + block] = (
                    builder.append(
                        vector.ShuffleOp.create(
                            operands=pair,
                            result_types=[pair[0].type],
                            properties={"mask": positions(order)},
                        )
                    )
                    for order in (low, high)
                )
        block //= 2
    return result


def _divides(expr: Expr) -> bool:
    return any(isinstance(atom, FloorDiv | Mod) for atom, _ in expr.terms)
