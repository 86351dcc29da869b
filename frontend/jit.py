"""uopc.jit: a function of tensors, traced once for each structure, then one call into C.

    @uopc.jit
    def step(x, y):
        loss = model(x).cross_entropy(y)
        ...
        return loss

The function runs in Python twice for each structure of its arguments (nesting, shapes, types): the
second time to see that nothing it computes with has changed that is no argument. From then on a
call loads arrays, calls the plan and stores arrays.

* Tensors from outside are inputs, read anew at each call; what is assigned to them, and to their
  `grad`, is stored at each call.
* Python floats and ints are inputs as well, tensors of rank 0 inside. Where the function needs a
  plain number (a size, an if, math.sin), it is traced again for each value, and a UopcWarning says
  so. True, False, None and text are always part of the structure.
* What is no argument (globals, closures, attributes, numpy arrays; numbers by value, tensors and
  other objects by identity) is watched: when something has changed the function is traced again,
  and a UopcWarning names it if the trace is another. If it is the same and no code that ran reads
  a value of that name, it is not watched any more.
* Random numbers are drawn anew at each call.
* Where the second run differs from the first (a counter became a constant, say), the function is
  traced at every call from then on, and a UopcWarning says so: slower, never wrong.
* What it takes and returns is tensors, in tuples, lists, dicts and dataclasses, and None. Those
  that it gets are copies: one that is changed inside is an error, and to be returned.
* Arguments in `donate_argnums` are used up, and tensors from outside that get another value lose
  the old one: where nothing else holds it, results are written over it. So a state that goes in and
  comes out again, or a model's parameters in a training step, stay where they are.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Generic, ParamSpec, TypeVar, overload

from uopc.dialects.errors import UopcError
from uopc.frontend import tracing
from uopc.frontend.captured import Check, Watch, captured
from uopc.frontend.debugging import chosen_level, debug_level
from uopc.frontend.extents import any_symbolic
from uopc.frontend.graph import Array, Node, evaluation_order, resolved
from uopc.frontend.jit_arguments import (
    NO_SHAPES,
    Shapes,
    TreeSpec,
    fast_key,
    flatten,
    key_of,
    objects_in,
)
from uopc.frontend.jit_trace import NeedsNumber, Source, Tracer
from uopc.frontend.names_read import names_read
from uopc.frontend.node_types import NodeKind, node_kind, value_type
from uopc.frontend.ownership import own_data
from uopc.frontend.plan_cache import CachedPlan, Key, explain
from uopc.frontend.realize import find_plan, run_plan, run_sized_plan, structure_key
from uopc.frontend.tensor import Tensor
from uopc.lowering.plan import alias_sources
from uopc.runtime.buffers import address, numpy_dtype
from uopc.runtime.environment import compile_settings
from uopc.runtime.signals import hold_signals, release_signals

P = ParamSpec("P")
R = TypeVar("R")

IN_PLACE_FROM = 1 << 14
"""Bytes."""
KEPT_STRUCTURES = 256
"""Traces kept of one function; the one used longest ago goes first."""


class UopcWarning(UserWarning):
    """Something that works, but not as well as it could."""


class Replay:
    """A traced function for one structure: what to load, which plan to call, what to store."""

    def __init__(
        self, tracer: Tracer, result: Any, name: str, donated: Collection[int] = ()
    ) -> None:
        """`donated` are the places of leaves that the caller gives away."""
        self.spec, leaves = _result_leaves(result, name)
        self.stores = tracer.stores()
        roots = [leaf.node for leaf in leaves] + [s.node for s in self.stores if s.node is not None]
        self.result_count = len(leaves)
        order = evaluation_order(roots)
        self.key: Key = structure_key(order, roots)
        inputs = [node for node in order if node.op == "buffer"]
        self.sources: list[Source] = [tracer.source_of(node) for node in inputs]
        self.kinds: list[NodeKind] = [
            node_kind("buffer", (), value_type(r.shape, r.type)) for r in roots
        ]
        self.plan: CachedPlan | None = None
        if roots:
            given = {("argument", place) for place in donated}
            # Of a gradient the tensor itself is replaced, which its reader may have kept.
            given |= {s.place for s in self.stores if s.place[0] in ("argument", "a tensor")}
            over = [
                k
                for k, (source, node) in enumerate(zip(self.sources, inputs, strict=True))
                if source.place in given and _pays_in_place(node)
            ]
            if any(any_symbolic(node.shape) for node in inputs):
                over = []
            self.plan = find_plan(order, [resolved(r) for r in roots], name, over)
        self.written_over = [] if self.plan is None else self.plan.changed
        """The inputs that the plan writes over: what they were is replaced, or given away."""
        stored = {store.place for store in self.stores}
        self.given_away = [k for k in self.written_over if self.sources[k].place not in stored]
        self.lent = [] if self.plan is None else self._lent(self.plan)
        """The results that are arrays of the caller's."""
        self.has_plan = self.plan is not None
        self.call = None if self.plan is None else self.plan.call
        self.loads = [source.load for source in self.sources]
        self.debug = debug_level()
        self.simple = self.spec.shape == "*" and not self.stores
        self.guards = tracer.guards()
        self.watches: list[Watch] = []
        self.checks: list[Check] = []
        self.unread: set[str] = set()
        """Where values are that have changed to no effect, and that no code reads."""
        self.verified = False
        self.settings = compile_settings()
        for store in self.stores:
            store.node = None

    def _lent(self, plan: CachedPlan) -> list[int]:
        return [
            position
            for position, kind, at in alias_sources(plan.executable.plan)
            if kind == "in"
            and self.sources[at].place[0] == "argument"
            and self.sources[at].tensor is None
        ]

    def difference(self, other: Replay) -> str:
        """How another trace of the same structure computes something else; empty if it does not."""
        if self.key != other.key:
            return explain(other.key, [self.key])
        for mine, theirs in zip(self.sources, other.sources, strict=True):
            if text := mine.difference(theirs):
                return text
        same = [s.place for s in self.stores] == [s.place for s in other.stores]
        return "" if same and self.spec == other.spec else "it changes or returns other tensors"

    def holds(self) -> bool:
        """Whether all that the function sees is as it was when it was traced."""
        for check in self.checks:
            if check():
                return False
        return self.tensors_hold()

    def watch(self, watches: list[Watch], unread: set[str]) -> None:
        """Hold only as long as these values are what they are now, but for those not read."""
        self.unread = unread
        self.watches = [w for w in watches if w.path not in unread] if unread else watches
        self.checks = [w.check for w in self.watches]

    def changed(self) -> dict[str, Watch]:
        """What has changed of the plain values that the function sees, with a text of each."""
        return {text: watch for watch in self.watches if (text := watch.check())}

    def tensors_hold(self) -> bool:
        """`holds`, of tensors and of what plans are compiled for."""
        if self.settings != compile_settings():
            return False
        for guard in self.guards:  # noqa: SIM110 (all() with a generator costs a microsecond)
            if not guard():
                return False
        return True

    def run(self, leaves: Sequence[Any], sizes: Mapping[str, int] | None = None) -> Any:
        """One call; `sizes` are the values of its symbols, if it has any."""
        arrays: list[Array] = [load(leaves) for load in self.loads]
        over = False
        for at in self.written_over:
            tensor = self.sources[at].tensor
            assert tensor is not None
            over |= own_data(tensor(leaves), arrays, at)
        if not over:
            return self._called(leaves, arrays, sizes)
        # An interrupt waits until each tensor has the value that its memory has.
        before = hold_signals()
        try:
            return self._called(leaves, arrays, sizes)
        finally:
            release_signals(before)

    def _called(
        self, leaves: Sequence[Any], arrays: list[Array], sizes: Mapping[str, int] | None
    ) -> Any:
        """The plan called, and what it gives stored."""
        outputs: Any = ()
        call = self.call
        if self.has_plan:
            if sizes is not None:
                assert self.plan is not None
                outputs = run_sized_plan(self.plan, arrays, sizes, time.perf_counter())
            elif chosen_level() or self.debug:
                assert self.plan is not None
                outputs = run_plan(self.plan, arrays, time.perf_counter())
            else:
                assert call is not None
                outputs = call(arrays, [address(array) for array in arrays])
            for at in self.lent:  # a caller's array that comes back is not the caller's any more
                outputs[at] = outputs[at].copy()
            for at in self.given_away:
                self.sources[at].tensor(leaves).donate()  # pyright: ignore[reportOptionalCall] (a tensor's)
        if sizes is not None:
            kinds = [
                node_kind("buffer", (), value_type(array.shape, kind.value.type))
                for array, kind in zip(outputs, self.kinds, strict=True)
            ]
        else:
            kinds = self.kinds
        if self.simple:
            node = Node(kinds[0], (), False)
            node.array = outputs[0]
            return Tensor.of_node(node)
        values: list[Tensor] = []
        for array, kind in zip(outputs, kinds, strict=True):
            node = Node(kind, (), False)
            node.array = array
            values.append(Tensor.of_node(node))
        at = self.result_count
        for store in self.stores:
            if not store.has_value:
                store.put(leaves, None)
            else:
                store.put(leaves, values[at])
                at += 1
        return self.spec.build(values)


def _pays_in_place(node: Node) -> bool:
    """Whether a value is large enough to be written over: to see that nobody else holds it takes
    longer than a small array does."""
    if any_symbolic(node.shape):
        return False
    return math.prod(node.shape) * numpy_dtype(node.type).itemsize >= IN_PLACE_FROM


def _result_leaves(result: Any, name: str) -> tuple[TreeSpec, list[Tensor]]:
    spec, leaves = flatten(result)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise UopcError(
                "wrong-type",
                f"{name} returns a {type(leaf).__name__}, which would be the same at every call",
                hint="return tensors, in tuples, lists and dicts, or None",
            )
    return spec, leaves


def _check_unchanged(
    before: tuple[TreeSpec, list[Any]], after: tuple[TreeSpec, list[Any]], name: str
) -> None:
    if before[0] == after[0] and all(map(operator.is_, before[1], after[1])):
        return
    raise UopcError(
        "wrong-argument",
        f"{name} puts something else into a list, dict or dataclass among its arguments, which is "
        "a copy inside of a jitted function",
        hint="return what is new, or assign() to the tensors in it",
    )


class JitFunction(Generic[P, R]):
    """A function under uopc.jit. `traces` counts how often it ran in Python."""

    def __init__(self, function: Callable[P, R]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._name = (
            "".join(
                c if c.isascii() and c.isalnum() else "_"
                for c in getattr(function, "__name__", "jit")
            )
            or "jit"
        )
        self._replays: OrderedDict[Any, Replay] = OrderedDict()
        self._fast: dict[Any, Replay] = {}
        """Verified traces once more, for calls on tensors only, which are looked up quickly."""
        self._plain: set[Any] = set()
        """Arguments (by place) of which the function needs the number itself."""
        self._always = False
        self._lock = threading.RLock()
        self.traces = 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<uopc.jit of {self._name}, {self.traces} traces, {len(self._replays)} structures>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if tracing.current() is not None:
            return self._function(*args, **kwargs)  # a part of the function being traced
        fast = None if kwargs else fast_key(args, self._plain)
        if fast is not None:
            replay = self._fast.get(fast)
            if replay is not None and replay.holds():
                return replay.run(args)
        if kwargs:
            spec, leaves = flatten((args, kwargs))
        else:
            spec, leaves = flatten(args)
        key = key_of(spec, leaves, self._plain)
        replay = self._replays.get(key)
        if replay is None or not replay.verified or not replay.holds():
            replay = self._traced(key, leaves, args, kwargs)
        elif fast is not None:
            if len(self._fast) >= KEPT_STRUCTURES:
                self._fast.clear()
            self._fast[fast] = replay
        return replay.run(leaves)

    def _traced(
        self, key: Any, leaves: list[Any], args: Any, kwargs: Any, shapes: Shapes = NO_SHAPES
    ) -> Replay:
        """The trace of a key, made now unless another thread has made it."""
        with self._lock:
            while True:
                known = self._replays.get(key)
                if known is not None and known.verified and known.holds():
                    return known
                # Before the function runs: what it changes itself is no reason to run it again.
                changed = {} if known is None else known.changed()
                tracer = Tracer(leaves, self._plain, shapes)
                self.traces += 1
                try:
                    with names_read() if changed else nullcontext(set[str]()) as read:
                        new = self._trace(tracer, args, kwargs)
                    break
                except NeedsNumber as needed:
                    self._plain |= needed.places
                    self._announce_numbers(needed.places)
                    spec, _ = flatten((args, kwargs) if kwargs else args)
                    key = key_of(spec, leaves, self._plain, shapes)
            if changed and known is not None:
                if known.difference(new):
                    text = next(iter(changed))
                    self._warn(f"is traced again, for a value that is no argument: {text}")
                else:
                    unread = {w.path for w in changed.values() if not w.is_read(read)}
                    new.watch(new.watches, known.unread | unread)
                    new.verified = not self._always
            elif known is not None and known.tensors_hold() and not self._always:
                difference = known.difference(new)
                if difference:
                    self._always = True
                    self._warn(
                        f"computes with something that changes from call to call and is no "
                        f"argument, so it is traced at every call: {difference}"
                    )
                else:
                    new.watch(new.watches, known.unread)
                    new.verified = True
            if key not in self._replays:
                self._forget_with_objects(key)
            self._replays[key] = new
            self._replays.move_to_end(key)
            while len(self._replays) > KEPT_STRUCTURES:
                self._replays.popitem(last=False)
            return new

    def _forget_with_objects(self, key: Any) -> None:
        """Drop the trace of a key when an object among its arguments goes: it is of no use then,
        and watches what the object holds."""
        weak = weakref.ref(self)

        def forget() -> None:
            function = weak()
            if function is not None:
                function._replays.pop(key, None)

        for value in objects_in(key[0]):
            weakref.finalize(value, forget).atexit = False

    def _donated(self, args: Any) -> Collection[int]:
        """The places among the leaves of those that are used up."""
        return ()

    def _trace(self, tracer: Tracer, args: Any, kwargs: Any) -> Replay:
        try:
            with tracing.traced_by(tracer):
                stand_ins = tracer.arguments(args, kwargs)
                function: Any = self._function
                before = flatten(stand_ins)
                result = function(*stand_ins[0], **stand_ins[1])
                _check_unchanged(before, flatten(stand_ins), self._name)
                replay = Replay(tracer, result, self._name, self._donated(args))
            replay.watch(captured(function, (*args, *kwargs.values())), set())
            return replay
        finally:
            tracer.close()

    def _announce_numbers(self, places: set[Any]) -> None:
        names = ", ".join(f"number {place + 1}" for place in sorted(places))
        self._warn(
            f"needs the plain value of its Python numbers ({names}, counted over all arguments' "
            "leaves), so it is traced and compiled for each value; tensor ops take it as data"
        )

    def _warn(self, text: str) -> None:
        warnings.warn(f"uopc.jit: {self._name} {text}", UopcWarning, stacklevel=4)


class _DonatingFunction(JitFunction[P, R]):
    """A jitted function that uses up the tensors in some of its arguments."""

    def __init__(self, function: Callable[P, R], places: tuple[int, ...]) -> None:
        super().__init__(function)
        self._places = places
        self._last_place = max(places)

    def _donated(self, args: Any) -> Collection[int]:
        found: list[int] = []
        place = 0
        for position, value in enumerate(args):
            for leaf in flatten(value)[1]:
                if position in self._places and isinstance(leaf, Tensor):
                    found.append(place)
                place += 1
        return found

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        given: tuple[Any, ...] = args
        if self._last_place >= len(given):
            raise UopcError(
                "wrong-argument",
                f"{self._name} is called with {len(given)} positional arguments and donates "
                f"number {self._last_place}, counted from 0",
                hint="donated arguments are given by position",
            )
        result = super().__call__(*args, **kwargs)
        if tracing.current() is None:
            for place in self._places:
                value = given[place]
                for leaf in (value,) if type(value) is Tensor else flatten(value)[1]:
                    if isinstance(leaf, Tensor):
                        leaf.donate()
        return result


@overload
def jit(
    function: Callable[P, R],
    *,
    donate_argnums: int | Sequence[int] = (),
    sizes: Sequence[Any] = (),
) -> JitFunction[P, R]: ...


@overload
def jit(
    *,
    donate_argnums: int | Sequence[int] = (),
    sizes: Sequence[Any] = (),
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(
    function: Callable[P, R] | None = None,
    *,
    donate_argnums: int | Sequence[int] = (),
    sizes: Sequence[Any] = (),
) -> Any:
    """A function of tensors that runs as one plan: see this module.

    The tensors in positional arguments `donate_argnums` cannot be used after the call: reading one
    raises UopcError [donated-tensor]. Where nothing else holds them (a clone, a view in numpy),
    results are written over them.

    `sizes` has for each positional argument None, or a size for each of its axes: uopc.size(…), an
    expression of such, a number, or None for whatever it is; or uopc.size(…) for an int, which is
    a size inside. The function is traced and compiled
    once for all values of symbolic sizes: see jit_sizes.py.

    Raises UopcError [value-while-tracing] where the function reads a value that it does not have
    yet, and [wrong-type] where it returns something other than tensors.
    """
    places = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    if any(type(place) is not int or place < 0 for place in places):
        raise UopcError(
            "bad-option",
            f"donate_argnums is {donate_argnums!r}",
            hint="expected positions of arguments, counted from 0",
        )

    if places and any(each is not None for each in sizes):
        raise UopcError("bad-option", "arguments are donated where sizes are symbolic")

    def made(inner: Callable[P, R]) -> Any:
        if any(each is not None for each in sizes):
            from uopc.frontend.jit_sizes import SizedFunction

            return SizedFunction(inner, sizes)
        return _DonatingFunction(inner, places) if places else JitFunction(inner)

    return made if function is None else made(function)
