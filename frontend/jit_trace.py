"""What uopc.jit sees of a function that runs once in Python: its inputs, its changes.

Arguments are stand-ins inside; tensors from outside keep their state and get another value for the
time of the trace, which this module holds.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.frontend import tracing
from uopc.frontend.core import bad, shared_or_copied, type_name
from uopc.frontend.graph import (
    Array,
    Node,
    Shape,
    evaluation_order,
    leaf,
    placeholder,
)
from uopc.frontend.jit_arguments import NO_SHAPES, Shapes, fits, flatten
from uopc.frontend.realize import no_value_yet
from uopc.frontend.tensor import Tensor
from uopc.runtime.buffers import numpy_dtype

Put: TypeAlias = Callable[[Sequence[Any], Any], None]
"""Stores a tensor, given the call's leaves."""


class NeedsNumber(BaseException):
    """The function needs the plain value of Python numbers among its arguments.

    No Exception, so that no `except Exception` of the function's own keeps it.
    """

    def __init__(self, places: set[int]) -> None:
        super().__init__(places)
        self.places = places


# -- where values come from and go to --------------------------------------------------------------


@dataclass
class Source:
    """Where an input of the plan comes from: `load` gets it, given the call's leaves."""

    place: Any
    load: Callable[[Sequence[Any]], Array]
    tensor: Callable[[Sequence[Any]], Any] | None = None
    """The tensor that has it, if one does."""

    def difference(self, other: Source) -> str:
        """How another trace's source at the same input differs; empty if it does not."""
        if self.place[0] != other.place[0]:
            return f"an input is {self.place[0]}, then {other.place[0]}"
        if self.place[0] == "data made inside":
            a, b = self.load([]), other.load([])
            same = a.shape == b.shape and a.tobytes() == b.tobytes()
            return "" if same else f"data made inside is {_short(a)}, then {_short(b)}"
        if self.place[0] == "random":
            return ""
        return "" if self.place == other.place else "another tensor is read"


def _short(array: Array) -> str:
    return str(array.tolist())[:60]


@dataclass
class Store:
    """Where an output of the plan goes; the node is None for a gradient that becomes None."""

    place: Any
    node: Node | None
    """While tracing; afterwards only `has_value` is left, so that no graph stays alive."""
    has_value: bool
    put: Put


def array_of(tensor: Tensor) -> Array:
    """The data of a tensor, computed if it is not yet."""
    node = tensor._node  # pyright: ignore[reportPrivateUsage] (the jit is the tensor's friend)
    array = node.array
    if array is None:
        target = node.realized
        if target is None or target.array is None:
            Tensor.realize_all(tensor)
            node = tensor._node  # pyright: ignore[reportPrivateUsage] (as above)
            target = node.realized or node
        array = target.array
        assert array is not None
    return array


class _Outside:
    """A tensor from outside as the traced function sees it."""

    __slots__ = ("grad", "grad_before", "grad_seen", "node", "node_before", "tensor")

    def __init__(self, tensor: Tensor, node: Node) -> None:
        self.tensor = tensor
        self.node = self.node_before = node
        self.grad: Tensor | None = None
        self.grad_before: Tensor | None = None
        self.grad_seen = False


class Tracer:
    """The trace of one run of a function; see tracing.Trace."""

    def __init__(self, leaves: list[Any], plain: set[int], shapes: Shapes = NO_SHAPES) -> None:
        self._leaves = leaves
        self._shapes = shapes
        self._plain = plain
        self._sources: dict[Node, Source] = {}
        self._numbers: dict[Node, int] = {}
        self._outside: dict[int, _Outside] = {}
        self._stand_ins: list[tuple[int, Tensor, Node, Tensor | None]] = []
        self._argument_ids = {id(v) for v in leaves if isinstance(v, Tensor)}

    # -- arguments ---------------------------------------------------------------------------------

    def arguments(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments with stand-ins for tensors, arrays and numbers."""
        spec, leaves = flatten((args, kwargs))
        made: dict[int, Tensor] = {}
        values: list[Any] = []
        for place, value in enumerate(leaves):
            if isinstance(value, Tensor):
                if id(value) not in made:
                    made[id(value)] = self._tensor_argument(place, value)
                values.append(made[id(value)])
            elif isinstance(value, np.ndarray | np.generic):
                if isinstance(value, np.ma.MaskedArray):
                    raise bad(
                        "wrong-type", "a masked array's mask would be lost", "array.filled(value)"
                    )
                values.append(self._array_argument(place, np.asarray(cast(Any, value))))
            elif place in self._shapes:
                values.append(self._shapes[place])
            elif place in self._plain or not fits(value):
                values.append(value)
            else:
                values.append(self._number_argument(place, value))
        return spec.build(values)

    def _input(self, shape: Shape, type_: str, source: Source) -> Node:
        node = placeholder(shape, type_)
        self._sources[node] = source
        return node

    def _tensor_argument(self, place: int, value: Tensor) -> Tensor:
        _no_open_graph(value)
        shape = self._shapes.get(place, value.shape)
        source = Source(("argument", place), lambda at: array_of(at[place]), lambda at: at[place])
        node = self._input(shape, value.element, source)
        stand_in = Tensor.of_node(node)
        stand_in.weak = value.weak
        before = value._grad  # pyright: ignore[reportPrivateUsage] (the jit is the tensor's friend)
        if value.requires_grad:
            stand_in.requires_grad = True
            if before is not None:
                grad = self._input(
                    shape,
                    before.element,
                    Source(
                        ("gradient", place),
                        lambda at: array_of(at[place].grad),
                        lambda at: at[place].grad,
                    ),
                )
                stand_in.grad = Tensor.of_node(grad)
        self._stand_ins.append((place, stand_in, stand_in.node, stand_in.grad))
        return stand_in

    def _array_argument(self, place: int, value: Array) -> Tensor:
        type_ = type_name(value.dtype)
        source = Source(
            ("argument", place), lambda at: shared_or_copied(np.asarray(at[place]), type_)
        )
        shape = self._shapes.get(place, value.shape)
        return Tensor.of_node(self._input(shape, type_, source))

    def _number_argument(self, place: int, value: int | float) -> Tensor:
        type_ = "f64" if isinstance(value, float) else "i64"
        dtype = numpy_dtype(type_)
        source = Source(("argument", place), lambda at: np.array(at[place], dtype))
        node = self._input((), type_, source)
        self._numbers[node] = place
        stand_in = Tensor.of_node(node)
        stand_in.weak = True
        return stand_in

    # -- what tensors ask --------------------------------------------------------------------------

    def _seen(self, tensor: Tensor) -> _Outside:
        known = self._outside.get(id(tensor))
        if known is None:
            _no_open_graph(tensor)
            with tracing.untraced():
                array_of(tensor)
            weak = weakref.ref(tensor)
            node = self._input(
                tensor.shape,
                tensor.element,
                Source(
                    ("a tensor", id(tensor)),
                    lambda _: array_of(_alive(weak)),
                    lambda _: _alive(weak),
                ),
            )
            if tensor.requires_grad:
                node = leaf(node)
                node.owner = weak
            known = self._outside[id(tensor)] = _Outside(tensor, node)
        return known

    def node_of(self, tensor: Any) -> Node:
        return self._seen(tensor).node

    def set_node(self, tensor: Any, node: Node) -> None:
        known = self._seen(tensor)
        if id(tensor) in self._argument_ids:
            raise UopcError(
                "wrong-argument",
                "a tensor is changed that is both an argument of the jitted function and read "
                "from outside of it",
                hint="use the argument inside",
            )
        if tensor.requires_grad:
            node = leaf(node)
            node.owner = weakref.ref(tensor)
        known.node = node

    def gradient_of(self, tensor: Any) -> Any:
        known = self._seen(tensor)
        if not known.grad_seen:
            known.grad_seen = True
            before = tensor._grad
            if before is not None:
                weak = weakref.ref(tensor)
                node = self._input(
                    before.shape,
                    before.element,
                    Source(
                        ("a gradient", id(tensor)),
                        lambda _: array_of(_alive(weak).grad),
                        lambda _: _alive(weak).grad,
                    ),
                )
                known.grad = known.grad_before = Tensor.of_node(node)
        return known.grad

    def set_gradient(self, tensor: Any, value: Any) -> None:
        self.gradient_of(tensor)
        self._outside[id(tensor)].grad = value

    def drawn(self, make: Callable[[], Array], shape: Shape, type_: str) -> Node:
        return self._input(shape, type_, Source(("random", len(self._sources)), lambda _: make()))

    def read(self, node: Node) -> None:
        places: set[int] = set()
        for each in evaluation_order([node]):
            if each.op == "buffer" and each.array is None:
                if each not in self._numbers:
                    raise no_value_yet(each)
                places.add(self._numbers[each])
        if places:
            raise NeedsNumber(places)

    # -- what came of it ---------------------------------------------------------------------------

    def source_of(self, node: Node) -> Source:
        """Where the plan's input that is this buffer comes from."""
        known = self._sources.get(node)
        if known is not None:
            return known
        array = node.array
        assert array is not None
        return Source(("data made inside", 0), lambda _: array)

    def stores(self) -> list[Store]:
        """What the function changed that is seen from outside."""
        found: list[Store] = []

        def changed(place: Any, value: Tensor | Node | None, put: Put) -> None:
            node = value.node if isinstance(value, Tensor) else value
            found.append(Store(place, node, node is not None, put))

        for place, stand_in, node, grad in self._stand_ins:
            if stand_in.node is not node:
                changed(("argument", place), stand_in, _put_argument(place))
            if stand_in.grad is not grad:
                changed(("gradient", place), stand_in.grad, _put_argument_gradient(place))
        for known in self._outside.values():
            weak = weakref.ref(known.tensor)
            if known.node is not known.node_before:
                changed(("a tensor", id(known.tensor)), known.node, _put_tensor(weak))
            if known.grad is not known.grad_before:
                changed(("a gradient", id(known.tensor)), known.grad, _put_gradient(weak))
        return found

    def close(self) -> None:
        """Let go of all tensors: those made inside know their trace, which would be a cycle."""
        self._outside.clear()
        self._stand_ins.clear()
        self._sources.clear()
        self._numbers.clear()
        self._leaves = []

    def guards(self) -> list[Callable[[], bool]]:
        """What must still hold of tensors from outside at a later call."""
        return [
            _guard(weakref.ref(k.tensor), k.grad_seen, k.grad_before is None)
            for k in self._outside.values()
        ]


def _no_open_graph(tensor: Tensor) -> None:
    node = tensor._node  # pyright: ignore[reportPrivateUsage] (the jit is the tensor's friend)
    if node.tracked and node.op != "leaf":
        raise UopcError(
            "no-gradient",
            "a tensor that gradients flow through comes into a jitted function from outside: "
            "they would stop there",
            hint="compute it inside, or detach() it",
        )


def _alive(reference: weakref.ref[Tensor]) -> Any:
    tensor = reference()
    if tensor is None:
        raise UopcError(
            "captured-tensor",
            "a jitted function gave a name outside of it another tensor, and the one it had before "
            "is gone",
            hint="change it in place: c += 1, c.assign(c + 1), or return the new one",
        )
    return tensor


def _guard(reference: weakref.ref[Tensor], grad_seen: bool, was_none: bool) -> Callable[[], bool]:
    def holds() -> bool:
        tensor = reference()
        if tensor is None:
            return False
        return not grad_seen or (tensor._grad is None) == was_none  # pyright: ignore[reportPrivateUsage] (the jit is the tensor's friend)

    return holds


def _put_argument(place: int) -> Put:
    return lambda at, value: at[place].become(value.node)


def _put_argument_gradient(place: int) -> Put:
    def put(at: Sequence[Any], value: Any) -> None:
        at[place].grad = value

    return put


def _put_tensor(reference: weakref.ref[Tensor]) -> Put:
    return lambda _, value: _alive(reference).become(value.node)


def _put_gradient(reference: weakref.ref[Tensor]) -> Put:
    def put(_: Sequence[Any], value: Any) -> None:
        _alive(reference).grad = value

    return put
