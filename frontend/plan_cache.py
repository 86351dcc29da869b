"""The cache of compiled plans, by the structure of graphs.

A key is a tuple: each node's kind and the positions of its sources, sources first, and the roots'
positions. What the kinds hold (ops, shapes, the values of constants) is structure; what buffers
hold is data, and graphs that differ in nothing else have equal keys and share a plan. Last in the
key stand the inputs that the plan may write over, and what the environment says of compiling,
UOPC_TARGET_CPU and UOPC_BEAM.

    uopc.cache_info()      # CacheInfo(compiles=3, hits=41, plans=3, limit=1024, last_miss='…')

Neither keys nor plans hold a node or an array. The plans used longest ago are dropped beyond the
limit. Of threads that need one plan at the same time, one compiles it and the others wait.
"""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from uopc.dialects.errors import UopcError
from uopc.frontend.node_types import NodeKind

if TYPE_CHECKING:
    from uopc.runtime.executable import Executable
    from uopc.runtime.prepared import PreparedCall

Key: TypeAlias = tuple[Any, ...]

DEFAULT_LIMIT = 1024
COMPARED = 64
"""A miss is held against so many of the plans used last."""


@dataclass(frozen=True)
class CacheInfo:
    """What the plan cache has done in this process."""

    compiles: int
    """How many plans were compiled; what failed to compile is not counted."""
    hits: int
    """How often a plan was found."""
    plans: int
    """How many plans are kept."""
    limit: int
    last_miss: str
    """Why the last compile was needed: the first difference to the most similar plan."""


@dataclass
class CachedPlan:
    """A plan, compiled, in two forms: one that is called on arrays, one on addresses."""

    executable: Executable
    call: PreparedCall | None
    """None where sizes are symbolic."""

    @property
    def changed(self) -> list[int]:
        """The positions of the inputs that a call on addresses writes over."""
        inputs = self.executable.plan.inputs
        return [k for k, buffer in enumerate(inputs) if buffer.changed]


@dataclass
class _Entry:
    done: threading.Event = field(default_factory=threading.Event)
    plan: CachedPlan | None = None
    error: UopcError | None = None


class PlanCache:
    """Plans by key, bounded, safe from any thread."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._guard = threading.Lock()
        self._compiles = 0
        self._hits = 0
        self._last_miss = ""

    def info(self) -> CacheInfo:
        """The counters as they are now."""
        with self._guard:
            return CacheInfo(
                self._compiles, self._hits, len(self._entries), self.limit, self._last_miss
            )

    def clear(self) -> None:
        """Forget all plans; the counters stay."""
        with self._guard:
            self._entries.clear()

    def get(self, key: Key, make: Callable[[str], CachedPlan]) -> CachedPlan:
        """The plan of this key; `make` compiles it, told how the key is new, if there is none.

        Raises what `make` raises, in every thread that waited for it.
        """
        while True:
            with self._guard:
                entry = self._entries.get(key)
                mine = entry is None
                if entry is None:
                    miss = self._last_miss = explain(
                        key, list(islice(reversed(self._entries), COMPARED))
                    )
                    entry = self._entries[key] = _Entry()
                else:
                    miss = ""
                    self._entries.move_to_end(key)
                    if entry.plan is not None:
                        self._hits += 1
                        return entry.plan
            if mine:
                return self._make(key, entry, make, miss)
            entry.done.wait()
            if entry.error is not None:
                raise entry.error
            # Made, or given up by an interrupt: then this thread takes its turn.

    def _make(
        self, key: Key, entry: _Entry, make: Callable[[str], CachedPlan], miss: str
    ) -> CachedPlan:
        try:
            entry.plan = make(miss)
            return entry.plan
        except UopcError as error:
            entry.error = error
            raise
        finally:
            with self._guard:
                if entry.plan is None:
                    self._entries.pop(key, None)
                else:
                    self._compiles += 1
                    while len(self._entries) > self.limit:
                        self._entries.popitem(last=False)
            entry.done.set()


def explain(key: Key, others: list[Key]) -> str:
    """How a key differs from the most similar of `others`, in words."""
    if not others:
        return "the first plan"
    nearest = max(others, key=lambda other: _similarity(key, other))
    if _similarity(key, nearest) * 2 < len(key):
        return "no plan is similar"
    pairs = zip(key, nearest, strict=False)
    at = next((i for i, (a, b) in enumerate(pairs) if a is not b and a != b), None)
    if at is None:
        return f"the most similar plan ends where this one goes on: {_item(key, len(nearest))}"
    new, old = key[at], nearest[at]
    where = f"step {sum(isinstance(item, NodeKind) for item in key[: at + 1])}"
    if isinstance(new, NodeKind) and isinstance(old, NodeKind):
        return f"{where}: {new}; the most similar plan has {old}{_advice(new, old)}"
    if isinstance(new, tuple) and new != old:
        return (
            "UOPC_TARGET_CPU or UOPC_BEAM is another than for the most similar plan, or other "
            "inputs may be written over"
        )
    return f"{where}: other operands than in the most similar plan"


def _item(key: Key, at: int) -> str:
    return str(next((item for item in key[at:] if isinstance(item, NodeKind)), "other results"))


def _similarity(a: Key, b: Key) -> int:
    same = sum(map(operator.is_, a, b)) if len(a) == len(b) else 0
    if same:
        return same
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x is not y), 0)


def _advice(new: NodeKind, old: NodeKind) -> str:
    if new.op == old.op == "constant" and new.value is old.value:
        return " (a number that changes is data if it is a tensor: Tensor(number))"
    if new.op == old.op and new.value.shape != old.value.shape:
        return " (shapes are structure: pad to one shape, or give uopc.jit sizes)"
    return ""


plans = PlanCache()
"""The cache of this process."""


def cache_info() -> CacheInfo:
    """The plan cache's counters: plans compiled, found and kept, and the last miss."""
    return plans.info()


def clear_cache() -> None:
    """Forget all compiled plans; the counters go on."""
    plans.clear()
