"""Schedules of sums of products: c[…i…j…] = sum over k of a[…i…k…] * b[…k…j…].

j is the range along which neighbours of the result lie, and `b` the factor that depends on it; i
is the longest range of the other factor. The register tile is `product_rows` of i by
`product_vectors` vectors of j. Where enough rows read it, the panel of b under a tile's columns
is packed first, at the full depth of k.

    contract; split j = j0 jj:16; tile b over k jj as pk pj; split jj = j1:2:unroll j2:8:vector;
    split pj = p1:2:unroll p2:8:vector; split i = i0 i1:6:unroll; order j0 pk i0 k

Factors of bf16 go in pairs along k (`pair k as k` for `contract`) where the target has the dot
product of pairs; other halves are widened where they are packed.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import bf16
from xdsl.ir import SSAValue

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.schedule_text import (
    Command,
    Contract,
    Layout,
    Mark,
    Merge,
    Order,
    Pair,
    Part,
    Split,
    Tile,
)
from uopc.passes.cpu_targets import CpuTarget
from uopc.passes.loop_dag import LoopDag, Ranges, own_ranges
from uopc.passes.schedule_facts import (
    in_order,
    is_fixed,
    is_gathered,
    is_neighbours,
    length,
    loads_of,
    name_of,
    paired_name,
    product_of,
    stores,
    widened_name,
)
from uopc.passes.schedule_merged import merged_chain, rows_to_merge
from uopc.passes.schedule_windows import Window, window_of, window_schedule

_MOST_PANEL_BYTES = 1 << 21
_STRIP_TILES = 8
"""A strip of rows that is packed has this many register tiles."""
_LINE_BYTES = 64

_SHORT = 8
_MANY_REGISTERS = 32
_NARROW_COSTS = 1.04
"""Twelve rows by two vectors against six by four, of which one loads 14 and one 10 in 24 steps."""
_THREADED_PRODUCTS = 1 << 19
"""About from where threads pay: see schedule_threads.py."""

_MOST_PADDED = 1.125
"""Pairs are not worth it where more of their products than this are with nothing."""

_PACKING_PAYS = 4
"""A panel is packed where it is read by at least this many tiles of rows."""


def product_schedule(dag: LoopDag, reduction: loop.ReduceOp, target: CpuTarget) -> list[Command]:
    """The schedule of a kernel whose one reduction is a sum of products; none for others."""
    product = product_of(reduction)
    row = element_type(reduction.values[0].type)
    if product is None or row is None or row.bits not in (32, 64):
        return []
    written = stores(dag)
    if len(written) != 1 or not target.fused_multiply_add:
        return []
    own = own_ranges(reduction)
    across = _column(dag, written[0], reduction, own)
    if across is None:
        return []
    left, right = product.operands
    if across not in dag.free[right]:
        left, right = right, left
    free_left = dag.free[left] - own
    free_right = dag.free[right] - own
    if across not in free_right or across in free_left or is_gathered(dag, across):
        return []
    rows = free_left - free_right
    if not rows or not own:
        return []
    if not own <= dag.free[left] & dag.free[right]:
        return []  # a sum of one factor only, times the other
    lanes = target.vector_bytes * 8 // row.bits
    return _Product(dag, reduction, left, right, across, rows, own, lanes, target).commands()


def _column(
    dag: LoopDag, store: loop.StoreOp, reduction: loop.ReduceOp, own: Ranges
) -> loop.RangeOp | None:
    """The range along which neighbours of the result lie."""
    for range_op in dag.free[reduction.results[0]] - own:
        if is_neighbours(dag, store, range_op):
            return range_op
    return None


class _Product:
    def __init__(
        self,
        dag: LoopDag,
        reduction: loop.ReduceOp,
        left: SSAValue,
        right: SSAValue,
        across: loop.RangeOp,
        rows: Ranges,
        own: Ranges,
        lanes: int,
        target: CpuTarget,
    ) -> None:
        self.dag = dag
        self.reduction = reduction
        self.left = left
        self.right = right
        self.across = across
        self.down = max(rows, key=lambda r: (length(dag, r), dag.position[r]))
        self.rows = rows
        self.own = in_order(dag, own)
        self.lanes = lanes
        self.target = target
        self.direct = left.type == reduction.values[0].type
        """Whether the sum takes the factors as they are: not widened, nor in pairs."""
        self.paired = self._paired_range()
        self.depth = prod(map(self._steps, self.own))

    def commands(self) -> list[Command]:
        dag, down, across = self.dag, self.down, self.across
        count = length(dag, down)
        columns = length(dag, across)
        if columns < 2 or prod(length(dag, r) for r in self.own) < 2:
            return []
        tile_rows, vectors = self._register_tile(count, columns)
        width = vectors * self.lanes
        i, j = name_of(down), name_of(across)
        packed = self._packs(count, tile_rows, width)
        if not packed:
            self.paired = None  # few rows would make pairs of each row of b for themselves
        if packed and (window := self._window()) is not None:
            rows = min(count, self.target.product_rows)
            return self._windowed(window, (rows, self.target.product_vectors))
        if packed and (merged := self._merged_rows()) is not None:
            return self._merged(*merged)
        found: list[Command] = [Contract()]
        if self.paired is not None:
            found = [Pair(name_of(self.paired), name_of(self.paired))]
        found.append(Split(j, (Part(f"{j}0", None, None), Part(f"{j}j", width, None))))
        panel: list[str] = []
        if packed:
            label = self._label(self.right, "factor")
            own = tuple(name_of(r) for r in self.own)
            panel = [f"p{n}" for n in own]
            found.append(Tile(label, (*own, f"{j}j"), (*panel, f"p{j}")))
        found.append(self._columns(f"{j}j", j, vectors, vector=True))
        if packed:
            by_vectors = self._packs_by_vectors()
            found.append(self._columns(f"p{j}", f"p{j}", vectors, vector=by_vectors))
        merges, depth = self._merged_depth() if packed else ([], [name_of(r) for r in self.own])
        found += merges
        if short := self._short_range():
            if packed:
                found.append(Mark(panel.pop(), "unroll"))
            if short in depth:
                found.append(Mark(short, "unroll"))
                depth.remove(short)
        if packed and self._packs_rows(count, tile_rows):
            return [*found, *self._strip(i, f"{j}0", tile_rows, panel)]
        if tile_rows > 1:
            found.append(Split(i, (Part(f"{i}0", None, None), Part(f"{i}1", tile_rows, "unroll"))))
        strip: list[str] = []
        if not self.direct and not self._reads_pairs():
            strip = self._widen_rows(found, f"{i}1" if tile_rows > 1 else None, tile_rows)
        rows = [i if tile_rows == 1 else f"{i}0", *strip]
        found.append(Order(tuple(self._order(rows, f"{j}0", panel, depth))))
        return found

    def _paired_range(self) -> loop.RangeOp | None:
        """The range of the sum along which factors of bf16 go in pairs, where the target has that:
        the one of which the fewest pairs lack their second, and that rows count neighbours by."""
        if self.left.type != bf16 or not self.target.bf16_dot:
            return None
        loads = loads_of(self.dag, [self.left])

        def costs(range_op: loop.RangeOp) -> tuple[float, bool, int]:
            steps = length(self.dag, range_op)
            apart = not all(is_neighbours(self.dag, o, range_op) for o in loads)
            return (steps + steps % 2) / max(steps, 1), apart, -self.dag.position[range_op]

        found = min(self.own, key=costs)
        return None if is_gathered(self.dag, found) or costs(found)[0] > _MOST_PADDED else found

    def _steps(self, range_op: loop.RangeOp) -> int:
        """The steps of a range of the sum, pairs where it has them."""
        steps = length(self.dag, range_op)
        return -(-steps // 2) if range_op is self.paired else steps

    def _reads_pairs(self) -> bool:
        """Whether rows have their pairs ready in memory, as whole numbers of 32 bits."""
        if self.paired is None or not isinstance(self.left.owner, loop.LoadOp):
            return False
        even = self.paired.constant_end is not None and self.paired.constant_end % 2 == 0
        return even and is_neighbours(self.dag, self.left.owner, self.paired)

    def _merged_rows(self) -> tuple[loop.RangeOp, int] | None:
        """Rows of an image whose columns are better one range; see schedule_merged.py."""
        if not self.direct:
            return None
        row = element_type(self.reduction.results[0].type)
        assert row is not None
        most = self.target.level2_bytes * 3 // 4 // (self.depth * row.bytes)
        fixed, wide = self.dag.free[self.left], self.target.product_vectors
        return rows_to_merge(self.dag, self.across, fixed, self.lanes, wide, most)

    def _window(self) -> Window | None:
        """What of an image a halo keeps; see schedule_windows.py."""
        if not self.direct:
            return None
        row = element_type(self.reduction.results[0].type)
        assert row is not None
        most = self.target.level2_bytes // 2 // row.bytes
        fixed = self.dag.free[self.left]
        return window_of(self.dag, self.right, self.across, fixed, self.own, self.lanes, most)

    def _windowed(self, window: Window, tile: tuple[int, int]) -> list[Command]:
        """Of the ranges of the result that are neither the window's nor the tile's, those of the
        image stand around the halo, the others in it."""
        outer, inner = self._around({self.down, self.across, window.down})
        label = self._label(self.right, "image")
        return window_schedule(
            self.dag, window, label, self.down, tile, self.lanes, self.own, outer, inner
        )

    def _merged(self, rows: loop.RangeOp, count: int) -> list[Command]:
        """The panel of several rows of an image, whose columns are one range afterwards."""
        i, y, x = name_of(self.down), name_of(rows), name_of(self.across)
        own = tuple(name_of(r) for r in self.own)
        panel = [f"p{n}" for n in (*own, y, x)]
        vectors, columns = self.target.product_vectors, length(self.dag, self.across)
        tile_rows = min(length(self.dag, self.down), self.target.product_rows)
        found: list[Command] = [
            Contract(),
            Split(y, (Part(f"{y}0", None, None), Part(f"{y}1", count, None))),
            Tile(self._label(self.right, "factor"), (*own, f"{y}1", x), tuple(panel)),
            Merge(f"{y}1", x, f"{y}{x}"),
            Split(
                f"{y}{x}",
                (Part(f"{x}0", None, None), Part(f"{x}1", vectors, "unroll"),
                 Part(f"{x}2", self.lanes, "vector")),
            ),
        ]  # fmt: skip
        lanes = min(self.lanes, columns & -columns)  # whole vectors, so that rows stay neighbours
        loads = loads_of(self.dag, [self.right])
        if lanes > 2 and all(is_neighbours(self.dag, load, self.across) for load in loads):
            parts = (Part(f"p{x}1", None, "unroll"), Part(f"p{x}2", lanes, "vector"))
            found.append(Split(panel.pop(), parts))
        merges, depth = self._merged_depth()
        found += merges
        if short := self._short_range():
            found.append(Mark(f"p{short}", "unroll"))
            panel.remove(f"p{short}")
            if short in depth:
                found.append(Mark(short, "unroll"))
                depth.remove(short)
        if tile_rows > 1:
            found.append(Split(i, (Part(f"{i}0", None, None), Part(f"{i}1", tile_rows, "unroll"))))
        down = i if tile_rows == 1 else f"{i}0"
        order = self._order([f"{x}0", down], f"{y}0", panel, depth)
        found.append(Order(tuple(n for n in order if n != y)))
        return found

    def _merged_depth(self) -> tuple[list[Command], list[str]]:
        """What makes the sum's ranges one where rows count neighbours by them, as the panel does:
        one long loop; and the ranges that there are then."""
        if not self.direct:
            return [], [name_of(r) for r in self.own]  # halves are widened range by range
        return merged_chain(self.dag, loads_of(self.dag, [self.left]), self.own)

    def _short_range(self) -> str | None:
        """The innermost range of the sum where it is a short one behind others, as a window's
        row: a loop of three steps costs more than its steps."""
        last = self.own[-1]
        short = len(self.own) > 1 and self._steps(last) <= _SHORT
        short = short and last.constant_end is not None and not is_gathered(self.dag, last)
        return name_of(last) if short else None

    def _widen_rows(self, found: list[Command], copies: str | None, rows: int) -> list[str]:
        """Rows of halves are widened, or paired, once for each panel, not once for each column; the
        loops."""
        label = self._label(self.left, "row")
        own = [name_of(r) for r in self.own]
        fresh = [f"q{n}" for n in own]
        over, names = (own, fresh) if copies is None else ([copies, *own], [f"q{copies}", *fresh])
        found.append(Tile(label, tuple(over), tuple(names)))
        if self._turns_rows() and rows > 1 and rows & (rows - 1) == 0:
            found += [Layout(label, (*fresh, names[0])), Mark(names[0], "vector")]
            return fresh
        last = self.own[-1]
        neighbours = all(is_neighbours(self.dag, o, last) for o in loads_of(self.dag, [self.left]))
        if neighbours and self._steps(last) >= self.lanes:
            lanes = Part(f"{fresh[-1]}1", self.lanes, "vector")
            found.append(Split(fresh[-1], (Part(f"{fresh[-1]}0", None, None), lanes)))
            fresh[-1] += "0"
        return fresh

    def _turns_rows(self) -> bool:
        """Whether rows that are widened or paired are those of a transposed factor."""
        loads = loads_of(self.dag, [self.left])
        if self.direct or not self._rows_by_vectors():
            return False
        return all(is_neighbours(self.dag, o, self.down) for o in loads)

    def _rows_by_vectors(self) -> bool:
        """Whether transposed rows that are widened or paired go by vectors. Where panels are
        outermost, rows are taken anew for each of them, which costs more than pairs save."""
        return self.paired is None or self._packs_by_vectors()

    def _register_tile(self, count: int, columns: int) -> tuple[int, int]:
        """Rows and vectors of the register tile: the target's, or as many products in another form;
        columns instead of rows where these are few.

        More vectors load less for as many products. Where registers are many, the form is that
        which computes least beyond the edge, and leaves threads equal shares; where they are few,
        a vector more has to save a tenth.
        """
        rows, vectors = self.target.product_rows, self.target.product_vectors
        across = -(-columns // self.lanes)
        if is_gathered(self.dag, self.down):
            count = 1
        if count < rows:
            free = self.target.registers - 2
            return count, max(1, min(free // (count + 1), across, 6))
        if across < vectors:
            return rows, across
        if self._turns_rows() or self._packs_rows(count, rows):
            return rows, vectors  # a power of two of rows is packed by vectors
        wide = vectors + 1
        if self.target.registers < _MANY_REGISTERS:
            gain = self._computed(across, wide, count) * 1.1 < self._computed(
                across, vectors, count
            )
            chosen = wide if gain else vectors
        else:
            forms = [(form, 1.0) for form in (wide, vectors)]
            forms += [(form, _NARROW_COSTS) for form in range(vectors - 1, 1, -1)]
            chosen, _ = min(forms, key=lambda f: self._computed(across, f[0], count) * f[1])
        return rows * vectors // chosen, chosen

    def _computed(self, across: int, vectors: int, count: int) -> int:
        """How many vectors of a row are computed in panels of some; where threads share them each
        takes as long as the one with the most panels."""
        panels = -(-across // vectors)
        free = self.dag.free[self.reduction.results[0]] - {self.down, self.across}
        shared = free & self.dag.free[self.right]  # the loops outside of the panels', if any
        if not shared and count * across * self.lanes * self.depth >= _THREADED_PRODUCTS:
            panels += panels % 2
        return panels * vectors

    def _packs_rows(self, count: int, tile_rows: int) -> bool:
        """Whether to pack rows as well: those of a transposed factor, whose elements for one tile
        lie in a line of memory each, where these lines are more than the level 1 cache holds."""
        loads = loads_of(self.dag, [self.left])
        if len(loads) != 1 or len(self.own) != 1 or count < 2 * _STRIP_TILES * tile_rows:
            return False
        if not is_neighbours(self.dag, loads[0], self.down):
            return False
        if not self.direct:
            return self._rows_by_vectors()
        return self.depth * _LINE_BYTES > self.target.level1_bytes

    def _packs_by_vectors(self) -> bool:
        """Whether the columns of a panel are neighbours in memory."""
        return all(
            is_neighbours(self.dag, load, self.across) or is_fixed(self.dag, load, self.across)
            for load in loads_of(self.dag, [self.right])
        )

    def _strip(self, i: str, j: str, tile_rows: int, panel: list[str]) -> list[Command]:
        """Strips of rows outermost; each is packed once, tile by tile, for all panels. Panels
        outermost where these are packed number by number, which takes longer."""
        label = self._label(self.left, "rows")
        (k,) = (name_of(r) for r in self.own)
        free = self.dag.free[self.reduction.results[0]]
        others = in_order(self.dag, free - {self.down, self.across})
        split = (Part(f"{i}s", None, None), Part(f"{i}0", _STRIP_TILES, None),
                 Part(f"{i}1", tile_rows, "unroll"))  # fmt: skip
        over, packed = (k, f"{i}0", f"{i}1"), (f"q{k}", f"q{i}0", f"q{i}1")
        kind = "vector" if tile_rows & (tile_rows - 1) == 0 else "unroll"
        outer = [name_of(r) for r in others]
        strip = [f"{i}s", packed[0], packed[1]]
        both = [*strip, j, *panel] if self._packs_by_vectors() else [j, *panel, *strip]
        return [
            Split(i, split),
            Tile(label, over, packed),
            Layout(label, (packed[1], packed[0], packed[2])),
            Mark(packed[2], kind),
            Order((*outer, *both, f"{i}0", k)),
        ]

    def _columns(self, name: str, base: str, vectors: int, *, vector: bool) -> Split:
        kind = "vector" if vector else "loop"
        first = Part(f"{base}1", None, "unroll" if vector else "loop")
        return Split(name, (first, Part(f"{base}2", self.lanes, kind)))

    def _packs(self, count: int, tile_rows: int, width: int) -> bool:
        """Whether to pack: enough rows read the panel, and it fits half of the level 2 cache.

        A panel whose columns are not neighbours in memory is packed in any case: a vector of
        them would be gathered in the innermost loop.
        """
        row = element_type(self.reduction.results[0].type)
        assert row is not None
        if not self._packs_by_vectors():
            # A depth known at the call only is given room for the most that it may be.
            known = all(r.constant_end is not None for r in self.own)
            return known or self.depth * width * row.bytes <= _MOST_PANEL_BYTES
        fits = self.depth * width * row.bytes <= self.target.level2_bytes * 3 // 4
        return fits and count >= _PACKING_PAYS * tile_rows

    def _label(self, value: SSAValue, otherwise: str) -> str:
        if value.name_hint is None:
            value.name_hint = otherwise
        if self.direct:
            return value.name_hint
        name = widened_name if self.paired is None else paired_name
        return name(value) or ""  # the panel holds halves widened, or pairs of them

    def _order(self, rows: list[str], j: str, panel: list[str], depth: list[str]) -> list[str]:
        """Ranges that both factors share, then those of the panel, then rows, then the depth."""
        outer, inner = self._around({self.down, self.across})
        return [*outer, j, *panel, *inner, *rows, *depth]

    def _around(self, taken: set[loop.RangeOp | None]) -> tuple[list[str], list[str]]:
        """The other ranges of the result: the right factor's, and those of the left alone."""
        right = self.dag.free[self.right]
        free = [r for r in self.dag.free[self.reduction.results[0]] if r not in taken]
        others = in_order(self.dag, free)
        outer = [name_of(r) for r in others if r in right]
        return outer, [name_of(r) for r in others if r not in right]
