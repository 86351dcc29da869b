"""Schedules of windows over images: a convolution whose rows are whole vectors.

A panel that has each place of an image once for each step of the window that meets it (im2col) is
filled with the image nine times for a window of three by three. A halo has it once: the rows of a
few results and what the window reaches beside them, from which vectors are read at any place.

    contract; split y = y0 y1:8
    tile b over c y1+ky x+kx as pc py px     # the halo of eight rows
    split px = px0 px1:16:vector             # … filled by vectors
    split x = x0 x1:3:unroll x2:16:vector; split f = f0 f1:8:unroll; mark kx unroll
    order y0 pc py px0 f0 y1 x0 c ky

Where rows are no whole vectors, several of them are one range instead: see schedule_merged.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from uopc.dialects import loop
from uopc.dialects.index_expr import Expr, RangeVar
from uopc.dialects.schedule_text import Command, Contract, Mark, Order, Part, Split, Tile
from uopc.passes.loop_dag import LoopDag, Ranges
from uopc.passes.schedule_facts import in_order, is_neighbours, length, loads_of, name_of
from uopc.passes.schedule_tiles import beside_sums

_LEAST_VECTORS = 2
"""Of a row: with fewer a step has more to load than to compute."""
_MOST_WASTED = 0.05
"""Of the lanes of a row."""
_MOST_ROWS = 8
_SHORT = 8
"""A window's row of so many steps is written out."""


@dataclass(frozen=True)
class Window:
    """An image under a window: which range of the result moves with which of the sum."""

    across: loop.RangeOp
    along: loop.RangeOp
    """The window's range beside `across`, by which the lanes lie."""
    down: loop.RangeOp | None
    behind: loop.RangeOp | None
    """The image's rows and the window's, if there are several."""
    step: int
    """How many rows of the image a row of the result is from the next."""
    rows: int
    """How many rows of results share a halo."""


def window_of(
    dag: LoopDag,
    image: SSAValue,
    across: loop.RangeOp,
    fixed: Ranges,
    own: list[loop.RangeOp],
    lanes: int,
    most: int,
) -> Window | None:
    """The window that an image is under, if a halo pays for it.

    `across` are the columns, `fixed` the ranges that the window's numbers have, `own` those of the
    sum and `most` how many numbers a halo has room for.
    """
    columns = length(dag, across)
    waste = -columns % lanes / (columns + -columns % lanes)
    loads = loads_of(dag, [image])
    if columns < _LEAST_VECTORS * lanes or waste > _MOST_WASTED or len(loads) != 1:
        return None
    if across.constant_end is None or not is_neighbours(dag, loads[0], across):
        return None
    pairs: dict[loop.RangeOp, tuple[loop.RangeOp, int]] = {}
    for index in dag.expressions(loads[0].map, loads[0].indices):
        found = _moving_together(index, own)
        if found is not None:
            pairs[found[0]] = found[1:]
    if across not in pairs or pairs[across][1] != 1:
        return None
    along, _ = pairs.pop(across)
    rows = [r for r in pairs if r not in fixed and r.constant_end is not None]
    down = max(rows, key=lambda r: length(dag, pairs[r][0]), default=None)
    behind, step = (None, 1) if down is None else pairs[down]
    sums = [dag.index[across.result] + dag.index[along.result]]
    if down is not None and behind is not None:
        sums.append(dag.index[down.result] * step + dag.index[behind.result])
    if beside_sums(dag, image, sums):
        return None
    # A row of the halo: all columns, and what the window reaches beside them, in whole vectors.
    width = -(-(columns + length(dag, along) - 1) // lanes) * lanes
    width *= prod(length(dag, r) for r in own if r not in (along, behind))
    reach = 1 if behind is None else length(dag, behind)
    count = 1 if down is None else min(length(dag, down), _MOST_ROWS)
    while count > 1 and ((count - 1) * step + reach) * width > most:
        count //= 2
    if reach * width > most:
        return None
    return Window(across, along, down, behind, step, count)


def _moving_together(
    index: Expr, own: list[loop.RangeOp]
) -> tuple[loop.RangeOp, loop.RangeOp, int] | None:
    """The range of the result, that of the sum and the step of an index that is
    step * result + sum + a number."""
    if len(index.terms) != 2:
        return None
    ranges: list[tuple[loop.RangeOp, int]] = []
    for atom, factor in index.terms:
        if not isinstance(atom, RangeVar) or not isinstance(atom.key, loop.RangeOp):
            return None
        ranges.append((atom.key, factor))
    for (window, single), (result, step) in (ranges, ranges[::-1]):
        if window in own and result not in own and single == 1 and step > 0:
            return result, window, step
    return None


def window_schedule(
    dag: LoopDag,
    window: Window,
    label: str,
    row: loop.RangeOp,
    tile: tuple[int, int],
    lanes: int,
    own: list[loop.RangeOp],
    outer: list[str],
    inner: list[str],
) -> list[Command]:
    """The commands for a window: `label` is the image's name, `row` the range of the numbers that
    share it, `tile` the rows and vectors of the register tile, `outer` and `inner` the loops around
    the halo and within that are of neither."""
    x, f = name_of(window.across), name_of(row)
    rows, vectors = tile
    found: list[Command] = [Contract()]
    over: list[str] = []
    names: list[str] = []
    loops: list[str] = []
    for range_op in own:
        name = name_of(range_op)
        if range_op is window.along:
            over.append(f"{x}+{name}")
        elif range_op is window.behind:
            assert window.down is not None
            y = name_of(window.down)
            found.append(Split(y, (Part(f"{y}0", None, None), Part(f"{y}1", window.rows, None))))
            over.append(f"{y}1+{name}" if window.step == 1 else f"{y}1*{window.step}+{name}")
            outer, loops = [*outer, f"{y}0"], [f"{y}1"]
        else:
            over.append(name)
        names.append(f"p{name}")
    found.append(Tile(label, tuple(over), tuple(names)))
    last = names.index(f"p{name_of(window.along)}")
    filled = (Part(f"{names[last]}0", None, None), Part(f"{names[last]}1", lanes, "vector"))
    found.append(Split(names[last], filled))
    names[last] += "0"
    columns = (Part(f"{x}0", None, None), Part(f"{x}1", vectors, "unroll"),
               Part(f"{x}2", lanes, "vector"))  # fmt: skip
    found.append(Split(x, columns))
    if rows > 1:
        found.append(Split(f, (Part(f"{f}0", None, None), Part(f"{f}1", rows, "unroll"))))
        f += "0"
    depth = [name_of(r) for r in in_order(dag, own)]
    if length(dag, window.along) <= _SHORT and len(depth) > 1:
        found.append(Mark(name_of(window.along), "unroll"))
        depth.remove(name_of(window.along))
    found.append(Order((*outer, *names, *inner, f, *loops, f"{x}0", *depth)))
    return found
