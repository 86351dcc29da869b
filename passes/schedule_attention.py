"""Schedules of attention: rows of weights that are computed, kept, and multiplied by a matrix.

    s[i, n] = sum over p of q[i, p] * k[n, p]        scores, perhaps scaled and masked
    w[i, n] = exp(s[i, n] - max) / sum               from tiles that keep the row s and the row exp
    o[i, c] = sum over n of w[i, n] * v[n, c]

Lanes lie across i, so that a maximum or a sum over a row is one of vectors, and nothing but q,
which is small, has to be packed. A block of rows keeps its scores and weights in the cache:

    split i = i0 i1:32                        a block of 32 rows
    tile q over p i1 as pp pi                 its queries, packed across
    tile w over n as wn                       the weights, read once for each column
    capture … i1 as …                         every tile holds the rows of the block, as lanes
    split n = n0 n1:8:unroll                  eight scores by two vectors
    split c = c0 c1:8:unroll                  eight columns by two vectors
    bound n0 = i0*4 + 4                       a causal mask: keys up to the block's last query
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects.element_types import element_type
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import RangeVar, atom_expr
from uopc.dialects.schedule_text import (
    Bound,
    Capture,
    Command,
    Contract,
    Layout,
    Order,
    Part,
    Split,
    Tile,
    schedule_text,
)
from uopc.passes.apply_schedule import apply_schedule
from uopc.passes.cpu_targets import CpuTarget
from uopc.passes.loop_dag import LoopDag, Ranges, own_ranges
from uopc.passes.schedule_facts import (
    accesses_of,
    in_order,
    is_evenly_guarded,
    is_gathered,
    length,
    name_of,
    product_of,
    stores,
)
from uopc.passes.schedule_names import FreshNames

MOST_BLOCK_BYTES = 1 << 20
"""What the tiles of a block of rows may take: they lie on the stack, and in the level 2 cache."""
_COPIES_OF_SUM = 4


@dataclass
class Attention:
    """The parts of a kernel that is attention."""

    down: loop.RangeOp
    """The queries."""
    across: loop.RangeOp
    """The columns of the result."""
    keys: loop.RangeOp
    """What the last product sums over."""
    weights: SSAValue
    """The factor of the last product that is computed from tiles."""
    bits: int
    scores: loop.ReduceOp | None = None
    """The product inside."""
    query: SSAValue | None = None
    """Its factor that depends on the query."""
    tiles: list[loop.TileOp] = field(default_factory=list[loop.TileOp])
    sums: list[loop.ReduceOp] = field(default_factory=list[loop.ReduceOp])
    """The reductions of rows."""


def find_attention(dag: LoopDag) -> Attention | None:
    """The parts of a kernel that is attention; None for others."""
    written = stores(dag)
    reductions = [o for o in dag.statements if isinstance(o, loop.ReduceOp)]
    if len(written) != 1 or len(reductions) < 2:
        return None
    last = reductions[-1]
    free = dag.free_of_statement[written[0]]
    product, row = product_of(last), element_type(last.values[0].type)
    own = own_ranges(last)
    if product is None or row is None or row.bits not in (32, 64) or len(own) != 1:
        return None
    if free != dag.free[last.results[0]] or product.result is not last.values[0]:
        return None
    left, right = product.operands
    if _reads_tiles(dag, right):
        left, right = right, left
    if not _reads_tiles(dag, left) or _reads_tiles(dag, right):
        return None
    (keys,) = own
    rows = dag.free[left] - own - dag.free[right]
    columns = dag.free[right] - own - dag.free[left]
    if not rows or len(columns) != 1 or keys not in dag.free[left] & dag.free[right]:
        return None
    down = max(rows, key=lambda r: (length(dag, r), dag.position[r]))
    (across,) = columns
    found = Attention(down, across, keys, left, row.bits)
    inner = [s for s in dag.statements if s is not last and s is not written[0]]
    if not all(_takes(dag, found, statement) for statement in inner):
        return None
    uneven = any(is_gathered(dag, r) for r in (down, across, keys))
    if uneven or not is_evenly_guarded(dag, down) or found.scores is None:
        return None
    if found.query is None or dag.free[found.query] & _inner(found):
        return None  # a query that differs from key to key is no row to pack
    return found


def _takes(dag: LoopDag, found: Attention, statement: Operation) -> bool:
    """Whether a statement is a part of attention, which it is added to."""
    if not isinstance(statement, loop.TileOp | loop.ReduceOp):
        return False
    own = own_ranges(statement)
    if found.down not in dag.free[statement.results[0]] or found.down in own:
        return False
    if isinstance(statement, loop.TileOp):
        found.tiles.append(statement)
        return len(own) == 1 and statement.space.data == "local"
    if statement.kind is None or len(statement.results) != 1:
        return False
    product = product_of(statement)
    if product is not None and product.result is statement.values[0]:
        queries = [o for o in product.operands if found.down in dag.free[o]]
        if len(queries) == 1 and not any(_reads_tiles(dag, o) for o in product.operands):
            if found.scores is not None:
                return False
            found.scores, found.query = statement, queries[0]
            return True
    found.sums.append(statement)
    return len(own) == 1 and all(
        isinstance(access, loop.ReadOp) or not own & dag.free[access.results[0]]
        for access in accesses_of(dag, statement.values)
    )


def _inner(found: Attention) -> Ranges:
    """The ranges of the tiles."""
    return frozenset(r for tile in found.tiles for r in own_ranges(tile))


def _reads_tiles(dag: LoopDag, value: SSAValue) -> bool:
    return any(isinstance(access, loop.ReadOp) for access in accesses_of(dag, [value]))


def attention_schedule(dag: LoopDag, target: CpuTarget) -> list[Command]:
    """The commands for a kernel that is attention; none for others, and where its rows are too
    few for lanes or too long for the cache."""
    found = find_attention(dag)
    if found is None or not target.fused_multiply_add:
        return []
    lanes = target.vector_bytes * 8 // found.bits
    vectors = 2 if length(dag, found.down) > lanes else 1
    kept = sum(length(dag, r) for tile in found.tiles for r in own_ranges(tile))
    kept += length(dag, found.keys)
    while vectors and kept * vectors * lanes * found.bits // 8 > MOST_BLOCK_BYTES:
        vectors -= 1
    if length(dag, found.down) < lanes // 2 or not vectors:
        return []
    commands = _Commands(dag, found, lanes, vectors, target).commands()
    ends = _bounds(dag, found, commands, lanes * vectors)
    if ends and _applies(dag.kernel, [*commands, *ends]):
        commands += ends
    return commands


def _applies(op: kernel.KernelOp, commands: list[Command]) -> bool:
    """Whether a schedule is allowed; what a mask leaves nothing of is for `bound` to prove."""
    trial = op.clone()
    try:
        apply_schedule(trial, schedule_text(commands))
    except UopcError:
        return False
    finally:
        trial.erase(safe_erase=False)
    return True


class _Commands:
    """Writes the commands, in order."""

    def __init__(
        self, dag: LoopDag, found: Attention, lanes: int, vectors: int, target: CpuTarget
    ) -> None:
        self.dag = dag
        self.found = found
        self.lanes = lanes
        self.vectors = vectors
        self.copies = target.product_rows * 2 // vectors
        """Rows of a register tile, beside `vectors` vectors."""
        values = (*dag.kernel.block.args, *(r for o in dag.position for r in o.results))
        self.names = FreshNames(value.name_hint for value in values)

    def commands(self) -> list[Command]:
        found, i = self.found, name_of(self.found.down)
        width = self.lanes * self.vectors
        block = self.names.fresh(f"{i}i")
        result: list[Command] = [
            Contract(),
            Split(i, (Part(self.names.fresh(f"{i}0"), None, None), Part(block, width, None))),
        ]
        packing = self._pack(result, block)
        names = [
            (self._label(tile.result, "row"), [name_of(r) for r in own_ranges(tile)])
            for tile in found.tiles
        ]
        filled = self._keep_weights(result)
        if filled:
            names.append(filled)
        held = [self.names.fresh(f"{label}_{block}") for label, _ in names]
        for (label, _), name in zip(names, held, strict=True):
            result.append(Capture(label, block, name))
        result.append(self._lanes(block))
        cuts = [self._lanes(name) for name in held]
        result += cuts
        for (label, own), cut in zip(names, cuts, strict=True):
            result.append(Layout(label, (*own, *(part.name for part in cut.parts))))
        loops = self._loops(result, packing)
        if filled:
            loops += filled[1]
        columns = self._cut(result, name_of(found.across), self.copies)
        outer = [name_of(r) for r in self._outer()]
        result.append(Order((*outer, f"{i}0", *loops, columns, name_of(found.keys))))
        return result

    def _outer(self) -> list[loop.RangeOp]:
        """The ranges of the result that are neither rows nor columns."""
        written = stores(self.dag)[0]
        inner = {self.found.down, self.found.across}
        return in_order(self.dag, self.dag.free_of_statement[written] - inner)

    def _pack(self, result: list[Command], block: str) -> list[str]:
        """The loops that pack the queries of a block across."""
        scores, query = self.found.scores, self.found.query
        assert scores is not None
        assert query is not None
        over = [name_of(r) for r in in_order(self.dag, own_ranges(scores))]
        packed = [self.names.fresh(f"p{name}") for name in (*over, block)]
        result.append(Tile(self._label(query, "query"), (*over, block), tuple(packed)))
        return packed

    def _keep_weights(self, result: list[Command]) -> tuple[str, list[str]] | None:
        """A tile for the weights, unless they are read from one as they are."""
        weights = self.found.weights
        if isinstance(weights.owner, loop.ReadOp):
            return None
        label = self._label(weights, "weights")
        name = self.names.fresh(f"p{name_of(self.found.keys)}")
        result.append(Tile(label, (name_of(self.found.keys),), (name,)))
        return label, [name]

    def _lanes(self, name: str) -> Split:
        """A range of a block's rows as vectors."""
        copies = Part(self.names.fresh(f"{name}u"), None, "unroll")
        return Split(name, (copies, Part(self.names.fresh(f"{name}v"), self.lanes, "vector")))

    def _loops(self, result: list[Command], packing: list[str]) -> list[str]:
        """The loops of everything before the last product, in the order of the kernel."""
        loops: list[str] = []
        found = self.found
        assert found.scores is not None
        # The tile of the scores is filled by loops of theirs.
        keys = in_order(self.dag, self.dag.free[found.scores.results[0]] & _inner(found))
        for statement in self.dag.statements:
            if not isinstance(statement, loop.ReduceOp | loop.TileOp):
                continue
            own = in_order(self.dag, own_ranges(statement))
            if statement is found.scores:
                loops += packing
                loops += [self._cut(result, name_of(r), self.copies) for r in keys]
                loops += [name_of(r) for r in own]
            elif isinstance(statement, loop.TileOp):
                loops += [name_of(r) for r in own if r not in keys]
            elif statement in found.sums:
                loops += [self._cut(result, name_of(r), _COPIES_OF_SUM) for r in own]
        return loops

    def _cut(self, result: list[Command], name: str, copies: int) -> str:
        """Split a range into steps of some copies; the name of its loop."""
        count = next(length(self.dag, o) for o in self.dag.position
                     if isinstance(o, loop.RangeOp) and name_of(o) == name)  # fmt: skip
        copies = min(copies, count)
        if copies < 2:
            return name
        outer, inner = self.names.fresh(f"{name}0"), self.names.fresh(f"{name}1")
        result.append(Split(name, (Part(outer, None, None), Part(inner, copies, "unroll"))))
        return outer

    def _label(self, value: SSAValue, otherwise: str) -> str:
        if value.name_hint is None:
            value.name_hint = self.names.fresh(otherwise)
        return value.name_hint


def _bounds(dag: LoopDag, found: Attention, commands: list[Command], width: int) -> list[Command]:
    """Where loops over keys may end if a mask lets each query see the keys up to its own."""
    reach = _reach(dag, found)
    if reach is None:
        return []
    order = next(c for c in commands if isinstance(c, Order))
    split = {c.parts[0].name: c for c in commands if isinstance(c, Split)}
    row = next(c.parts[0].name for c in commands
               if isinstance(c, Split) and c.range == name_of(found.down))  # fmt: skip
    along: dict[str, int] = {name_of(r): length(dag, r) for r in _key_ranges(dag, found)}
    along |= {c.names[0]: along[c.over[0]] for c in commands
              if isinstance(c, Tile) and len(c.over) == 1 and c.over[0] in along}  # fmt: skip
    blocks = -(-length(dag, found.down) // width)
    ends: list[Command] = []
    for name in reversed(order.names):
        cut = split.get(name)
        base, factor = (cut.range, cut.parts[1].size) if cut is not None else (name, 1)
        if base not in along or factor is None:
            continue
        last = width + reach
        end = f"{row}*{width} + {last + factor - 1}"
        if factor > 1:
            end = f"({end}) floordiv {factor}"
        steps = -(-along[base] // factor)
        if ((blocks - 1) * width + last + factor - 1) // factor > steps:
            end = f"min({end}, {steps})"
        ends.append(Bound(name, end, finite=base == name_of(found.keys)))
    return ends


def _key_ranges(dag: LoopDag, found: Attention) -> set[loop.RangeOp]:
    """The ranges that count the keys: of tiles, of sums over them, and of the last product."""
    counted = {found.keys, *_inner(found)}
    return counted.union(*(own_ranges(each) for each in found.sums))


def _reach(dag: LoopDag, found: Attention) -> int | None:
    """How many keys beyond its own number a query sees by a mask; None without such a mask."""
    down = dag.index[found.down.result].leaf
    assert isinstance(down, RangeVar)
    for op in dag.position:
        if not isinstance(op, loop.ValidOp):
            continue
        for condition in dag.expressions(op.map, op.indices):
            for key in _inner(found):
                leaf = dag.index[key.result].leaf
                assert isinstance(leaf, RangeVar)
                rest = condition - atom_expr(down) + atom_expr(leaf)
                reach = rest.as_int()
                if reach is not None and reach >= 0:
                    return reach
    return None
