"""Many iterations of a loop at once: lanes, and the values of a running function.

A value is uniform (one for all) or has one entry a lane along its first axis. `Lanes` are the
iterations that run together; where they part (a branch, a loop inside) new lanes stand for a part
of them, or for several iterations of each, and know which lane they come from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from uopc.dialects.rounding import Array

LANE_LIMIT = 1 << 16
"""How many lanes run together at most: longer loops go in parts."""


class Lanes:
    """Iterations that run together. `origin[k]` is the lane of `parent` that lane k stands in."""

    __slots__ = ("_maps", "count", "origin", "parent")

    def __init__(self, parent: Lanes | None, origin: Array) -> None:
        self.parent = parent
        self.origin = origin
        self.count = len(origin)
        self._maps: dict[Lanes, Array] = {}

    def map_to(self, ancestor: Lanes) -> Array:
        """For each lane, the lane of an ancestor that it stands in."""
        if self.parent is ancestor:
            return self.origin
        found = self._maps.get(ancestor)
        if found is None:
            assert self.parent is not None, "values flow inward only"
            found = self._maps[ancestor] = self.parent.map_to(ancestor)[self.origin]
        return found


Context = Lanes | None
"""Where something runs; None where there are no lanes."""


class Frame:
    """The values of a running function, by slot, and the lanes of each; None for a uniform one."""

    __slots__ = ("contexts", "lifted", "values")

    def __init__(self, count: int) -> None:
        self.values: list[Any] = [None] * count
        self.contexts: list[Context] = [None] * count
        self.lifted: dict[Lanes, dict[int, Any]] = {}

    def get(self, slot: int, context: Context) -> Any:
        """A value for the lanes of `context`; a uniform one as it is."""
        own = self.contexts[slot]
        if own is None or own is context:
            return self.values[slot]
        assert context is not None, "values flow inward only"
        kept = self.lifted.setdefault(context, {})
        value = kept.get(slot)
        if value is None:
            value = kept[slot] = take(self.values[slot], context.map_to(own))
        return value

    def is_uniform(self, slot: int) -> bool:
        return self.contexts[slot] is None

    def set(self, slot: int, value: Any, context: Context) -> None:
        """Set a value; `context` is None for a uniform one."""
        self.values[slot] = value
        self.contexts[slot] = context

    def leave(self, context: Lanes) -> None:
        """Forget what was kept for lanes that are done."""
        self.lifted.pop(context, None)


def take(value: Any, origin: Array) -> Any:
    """The value of each origin's lane."""
    taken = getattr(value, "of_lanes", None)
    return value[origin] if taken is None else taken(origin)


def spread(value: Any, count: int, rank: int) -> Array:
    """A value with one entry a lane, made of a uniform one if need be."""
    array = np.asarray(value)
    if array.ndim > rank:
        return array
    return np.broadcast_to(array, (count, *array.shape))
