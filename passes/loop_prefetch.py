"""The hint that a load carries: where a later step will read, asked for beside the load.

%0 = uloop.load %x[%i, %k] prefetch [%i + 1, %k]        %0 = memref.load %x[%i, %k]
                                                   →    memref.prefetch %x[%next, %k], read, …
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue

from uopc.dialects import loop
from uopc.dialects.index_expr import Expr, as_expr, at_least, maximum, minimum
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.memref_extensions import PrefetchOp
from uopc.dialects.sizes import Size
from uopc.passes.loop_scopes import Lanes, Scopes
from uopc.passes.loop_tiles import flat_index


def ask_ahead(
    scopes: Scopes,
    buffer: tuple[SSAValue, Sequence[Size]],
    op: loop.LoadOp,
    block: Block,
    along: loop.RangeOp | None,
    lanes: Lanes,
) -> None:
    """Add the hint of a load, if it has one, for one copy of the code: at lane 0 of a vector.

    `buffer` is the linear one, with the sizes that its expressions are over."""
    if op.prefetch is None:
        return
    target, sizes = buffer
    places = scopes.dag.expressions(op.prefetch, op.indices)
    if buffer_of(target).get_num_dims() != len(sizes):
        count: Size = 1
        for size in sizes:
            count = as_expr(count) * size
        places, sizes = [flat_index(places, sizes)], [count]
    first = [scopes.along(scopes.resolved(e, lanes), along)[0] for e in places]
    indices = [scopes.index(_inside(e, n)) for e, n in zip(first, sizes, strict=True)]
    block.add_op(PrefetchOp(target, indices))


def _inside(place: Expr, size: Size) -> Expr:
    """The place, or the nearest one that a dimension has: C knows no address outside of it."""
    last = as_expr(size) - 1
    if at_least(last, place) is not True:
        place = minimum(place, last)
    return place if at_least(place, 0) is True else maximum(place, 0)
