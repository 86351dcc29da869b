"""Where a long graph is cut into several plans.

One kernel of many thousand ops takes the C compiler more than proportionally long. So a graph of
more than LONG nodes is computed in segments of about SEGMENT: each computes what later ones read,
and is cut where that is least. Segments that repeat are one plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from uopc.dialects.element_types import element_type_named
from uopc.dialects.sizes import size_upper
from uopc.frontend.graph import Node, resolved

LONG = 4096
"""Graphs of more nodes are cut."""
SEGMENT = 1024
"""Nodes of a segment, at most."""


@dataclass
class Segment:
    """A part of a graph."""

    wanted: list[Node]
    """What must be computed before the next segment."""
    done: list[Node]
    """What earlier segments computed and no later one reads."""


def segments(order: Sequence[Node], roots: Sequence[Node]) -> Iterator[Segment]:
    """All segments but the last, whose results are the roots. `order` is their evaluation order."""
    if len(order) <= LONG:
        return
    position = {node: at for at, node in enumerate(order)}
    last_read = list(range(len(order)))
    for at, node in enumerate(order):
        for source in node.sources:
            last_read[position[resolved(source)]] = at
    for root in roots:
        last_read[position[root]] = len(order)
    crossing = _bytes_across(order, last_read)
    held: list[int] = []
    start = 0
    while len(order) - start > SEGMENT:
        places = range(start + SEGMENT // 2, start + SEGMENT)
        cut = min(reversed(places), key=crossing.__getitem__)
        made = [at for at in range(start, cut + 1) if last_read[at] > cut and _is_kept(order[at])]
        done = [order[at] for at in held if last_read[at] <= cut]
        held = [at for at in held if last_read[at] > cut] + made
        if made or done:
            yield Segment([order[at] for at in made], done)
        start = cut + 1


def _is_kept(node: Node) -> bool:
    """Whether it is a value to be stored: constants and ranges cost nothing where they are read."""
    return bool(node.sources)


def _bytes_across(order: Sequence[Node], last_read: Sequence[int]) -> list[int]:
    """The bytes that a cut after each position would store."""
    change = [0] * (len(order) + 1)
    for at, node in enumerate(order):
        if _is_kept(node):
            size = element_type_named(node.type).bytes
            for length in node.shape:
                size *= size_upper(length)
            change[at] += size
            change[last_read[at]] -= size
    return list(accumulate(change))
