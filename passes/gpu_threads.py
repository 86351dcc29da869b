"""How the ranges of kind block and lane lie over a GPU's blocks and threads.

Block ranges of a statement, innermost first, are the grid's x, y and z. Lane ranges share the
threads of a block as the digits of the thread's number do, the innermost running fastest:

    lanes (r of 4, c of 32)     thread = r * 32 + c      r = thread / 32, c = thread mod 32

Statements that share an outer lane may have different inner ones; a digit is as wide as the widest
of them, and what does not fill it leaves threads idle. A tile in shared memory is filled by all
threads of the block: its own lanes number them anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from uopc.dialects import kernel, loop
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, RangeVar
from uopc.dialects.locations import location_of
from uopc.passes.loop_dag import LoopDag, own_ranges
from uopc.passes.loop_placement import Statement
from uopc.passes.reductions import is_argreduce

MOST_THREADS = 1024
WARP = 32
DIMENSIONS = ("x", "y", "z")


@dataclass
class ThreadLayout:
    """Where each block and lane range of a kernel finds its index."""

    threads: int
    """Threads of a block."""
    strides: dict[loop.RangeOp, int]
    """How many threads lie between two steps of a lane range."""
    extents: dict[loop.RangeOp, int]
    """How many threads lie between two steps of the lane range around it, or the block has."""
    dimensions: dict[loop.RangeOp, int]
    """The grid's dimension of a block range."""
    grids: list[tuple[Expr | int, Expr | int, Expr | int]]
    """What statements ask of the grid: it is as large as the largest in each dimension."""
    ends: list[list[Expr | int]] = field(default_factory=list[list[Expr | int]])
    """The different extents asked for in each dimension of the grid."""

    def width(self, statement: Statement) -> int:
        """How many threads combine their values of a reduction."""
        outer = lanes_of(statement)[: -len(reduced_lanes(statement))]
        return self.strides[outer[-1]] if outer else self.threads


def is_block(op: loop.RangeOp) -> bool:
    return op.kind.data == "block"


def is_lane(op: loop.RangeOp) -> bool:
    return op.kind.data == "lane"


def is_shared(op: object) -> bool:
    """Whether an op is a tile that the threads of a block share."""
    return isinstance(op, loop.TileOp) and op.space.data == "shared"


def lanes_of(statement: Statement) -> list[loop.RangeOp]:
    """The lane ranges that number the threads for a statement, outermost first."""
    path = statement.own if is_shared(statement.op) else statement.path
    return [r for r in path if is_lane(r)]


def reduced_lanes(statement: Statement) -> list[loop.RangeOp]:
    """The lane ranges that a reduction is over."""
    if not isinstance(statement.op, loop.ReduceOp):
        return []
    own = own_ranges(statement.op)
    return [r for r in statement.path if is_lane(r) and r in own]


def is_collective(statement: Statement) -> bool:
    """Whether all threads have to come to where a statement begins or ends."""
    return is_shared(statement.op) or bool(reduced_lanes(statement))


def bad_lanes(op: kernel.KernelOp, message: str, hint: str) -> UopcError:
    """A kernel whose blocks and lanes cannot run as they are."""
    return UopcError(
        "bad-lanes", f"kernel @{op.sym_name.data}: {message}", hint=hint, location=location_of(op)
    )


def thread_layout(dag: LoopDag, statements: Sequence[Statement]) -> ThreadLayout:
    """The layout of a kernel. Raises UopcError [bad-lanes] where its ranges do not fit."""
    layout = _Layout(dag, statements).layout()
    for statement in statements:
        _check_update(dag.kernel, layout, statement)
        _check_reduction(dag.kernel, layout, statement)
    return layout


class _Layout:
    def __init__(self, dag: LoopDag, statements: Sequence[Statement]) -> None:
        self.kernel = dag.kernel
        self.dag = dag
        self.statements = statements

    def fail(self, message: str, hint: str) -> UopcError:
        return bad_lanes(self.kernel, message, hint)

    def layout(self) -> ThreadLayout:
        threads, strides, parents = 1, dict[loop.RangeOp, int](), dict[loop.RangeOp, object]()
        for statement in self.statements:
            inner = 1
            lanes = lanes_of(statement)
            for position in reversed(range(len(lanes))):
                lane = lanes[position]
                parent = lanes[position - 1] if position else None
                if parents.setdefault(lane, parent) is not parent:
                    raise self.fail(
                        f"the lane '{lane.result.name_hint}' lies inside of different lanes",
                        "order the lanes alike for all that they are around",
                    )
                strides[lane] = max(strides.get(lane, 1), inner)
                inner = strides[lane] * self.length(lane)
            threads = max(threads, inner)
        threads = self.rounded(threads)
        extents = {
            lane: strides[parent] if isinstance(parent, loop.RangeOp) else threads
            for lane, parent in parents.items()
        }
        dimensions = self.dimensions()
        grids = self.grids(dimensions)
        ends: list[list[Expr | int]] = [list(dict.fromkeys(g[d] for g in grids)) for d in range(3)]
        return ThreadLayout(threads, strides, extents, dimensions, grids, ends)

    def rounded(self, threads: int) -> int:
        """Whole warps, and a power of two where all threads of the block combine values."""
        if threads > MOST_THREADS:
            raise self.fail(
                f"its lanes ask for {threads} threads a block",
                f"a block has at most {MOST_THREADS}: split the lanes, with a loop outside",
            )
        if threads > 1:
            threads = -(-threads // WARP) * WARP
        if any(reduced_lanes(s) == lanes_of(s) != [] for s in self.statements):
            threads = 1 << (threads - 1).bit_length()
        return threads

    def length(self, lane: loop.RangeOp) -> int:
        length = lane.constant_end
        if length is None:
            raise self.fail(
                f"the lane '{lane.result.name_hint}' has no fixed number of steps",
                "split the range: r = r0 r1:32:lane",
            )
        return max(length, 1)

    def dimensions(self) -> dict[loop.RangeOp, int]:
        found: dict[loop.RangeOp, int] = {}
        for statement in self.statements:
            blocks = [r for r in statement.path if is_block(r)]
            if len(blocks) > len(DIMENSIONS):
                raise self.fail(
                    f"{len(blocks)} block ranges around one statement",
                    "a grid has three dimensions: merge ranges",
                )
            if isinstance(statement.op, loop.ReduceOp | loop.TileOp) and any(
                is_block(r) for r in own_ranges(statement.op)
            ):
                raise self.fail(
                    "a reduction or a tile is over blocks", "blocks share nothing: mark it loop"
                )
            if isinstance(statement.op, loop.StoreOp | loop.UpdateOp):
                for position, block in enumerate(reversed(blocks)):
                    if found.setdefault(block, position) != position:
                        raise self.fail(
                            f"the block range '{block.result.name_hint}' is two dimensions",
                            "order the block ranges alike for all stores",
                        )
        return found

    def grids(
        self, dimensions: dict[loop.RangeOp, int]
    ) -> list[tuple[Expr | int, Expr | int, Expr | int]]:
        found: dict[tuple[Expr | int, Expr | int, Expr | int], None] = {}
        for statement in self.statements:
            if isinstance(statement.op, loop.StoreOp | loop.UpdateOp):
                extents: list[Expr | int] = [1, 1, 1]
                for block in statement.path:
                    if is_block(block):
                        extents[dimensions[block]] = self.end(block)
                found[(extents[0], extents[1], extents[2])] = None
        return list(found) or [(1, 1, 1)]

    def end(self, op: loop.RangeOp) -> Expr | int:
        leaf = self.dag.index[op.result].leaf
        assert isinstance(leaf, RangeVar)
        if not leaf.end.leaves <= set(self.kernel.symbol_vars):
            raise self.fail(
                f"the number of blocks of '{op.result.name_hint}' depends on another range",
                "expected a number or an expression of sizes",
            )
        constant = leaf.end.as_int()
        return leaf.end if constant is None else constant


def _check_update(op: kernel.KernelOp, layout: ThreadLayout, statement: Statement) -> None:
    if not isinstance(statement.op, loop.UpdateOp):
        return
    if any(is_lane(r) or is_block(r) for r in statement.own):
        raise bad_lanes(
            op,
            "an update runs in the order of its ranges",
            "leave its ranges loops: one thread runs them",
        )
    if layout.grids != [(1, 1, 1)]:
        raise bad_lanes(
            op,
            "an update follows what other blocks store",
            "leave out the block ranges: blocks do not wait for one another",
        )


def _check_reduction(op: kernel.KernelOp, layout: ThreadLayout, statement: Statement) -> None:
    lanes, reduced = lanes_of(statement), reduced_lanes(statement)
    if not reduced:
        return
    assert isinstance(statement.op, loop.ReduceOp)
    if statement.op.kind is None and not is_argreduce(statement.op):
        raise bad_lanes(
            op,
            "a reduction with a region is over lanes, and its steps have one order",
            "leave its ranges loops: only argreduce's region may be grouped in any way",
        )
    if lanes[-len(reduced) :] != reduced:
        raise bad_lanes(
            op, "a reduction is over lanes that lie around others", "order those lanes innermost"
        )
    width = layout.width(statement)
    if len(lanes) > len(reduced) and (width > WARP or width & (width - 1)):
        raise bad_lanes(
            op,
            f"a reduction is over {width} lanes inside of other lanes",
            f"expected a power of two up to {WARP}, or no lanes around it",
        )
