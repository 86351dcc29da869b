"""The lazy graph: light nodes that mirror utensor's ops one to one.

    node = constant(2.0, (4, 8), "f32")
    node = apply("mul", (node, buffer(array, "f32")))

A node has an op's name, its attributes in plain Python, its sources, a shape and an element type.
Shapes and types come from the dialect's own rules, asked once for each combination. Equal nodes
are one object for as long as anybody holds it (`buffer` and `leaf` excepted, which have an
identity), so that sharing costs nothing and a graph that nobody holds is freed at once.

Nodes that have no op in utensor:

    buffer   owns an array, which is never written once the node exists
    leaf     the identity; a value that gradients are taken with respect to
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.errors import UopcError
from uopc.dialects.tensor_build import number_text
from uopc.frontend.node_types import NodeKind, ValueType, infer_kind, node_kind, value_type
from uopc.frontend.places import Place, caller_place

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Shape: TypeAlias = tuple[int, ...]

SEES_NO_GRADIENT = frozenset({"detach"})


class Node:
    """One op of the lazy graph; made by `apply`, `constant`, `iota`, `buffer` and `leaf`."""

    __slots__ = (
        "__weakref__",
        "array",
        "attributes",
        "kind",
        "op",
        "owner",
        "place",
        "realized",
        "shape",
        "sources",
        "tracked",
        "type",
        "value",
    )

    kind: NodeKind
    value: ValueType
    op: str
    attributes: tuple[Any, ...]
    sources: tuple[Node, ...]
    shape: Shape
    type: str
    """The element type as the IR spells it: `f32`."""
    tracked: bool
    """Whether gradients flow through: some leaf is below."""
    realized: Node | None
    """The buffer with this node's value, once it was computed."""
    array: Array | None
    """A buffer's data; None for the input of a function that is being traced."""
    owner: Callable[[], Any] | None
    """Of a leaf: a weak reference to the tensor that the gradient goes to."""
    place: Place | None
    """The Python line that made it first, where lines are kept: see places.py."""

    def __init__(self, kind: NodeKind, sources: tuple[Node, ...], tracked: bool) -> None:
        self.kind = kind
        self.op = kind.op
        self.attributes = kind.attributes
        self.value = value = kind.value
        self.shape = value.shape
        self.type = value.type
        self.sources = sources
        self.tracked = tracked
        self.realized = None
        self.array = None
        self.owner = None
        self.place = None

    def __repr__(self) -> str:
        return f"<{self.kind}>"


class _Reference(weakref.ref[Node]):
    """A weak reference that knows under which key its node is kept."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


_known: dict[tuple[Any, ...], _Reference] = {}
_lock = threading.RLock()  # the garbage collector may run `_forget` inside the locked region


def _forget(reference: _Reference) -> None:
    with _lock:
        if _known.get(reference.key) is reference:
            del _known[reference.key]


def node_count() -> int:
    """How many hash-consed nodes are alive, in all threads."""
    return len(_known)


# -- making nodes ----------------------------------------------------------------------------------


def apply(op: str, sources: tuple[Node, ...], attributes: tuple[Any, ...] = ()) -> Node:
    """The node of a utensor op.

    `attributes` are as in dialects/tensor_build.py. Raises UopcError [wrong-operands] where the
    dialect's rules do not admit the operands.
    """
    kind = _kind(op, attributes, tuple([source.value for source in sources]))
    if isinstance(kind, str):
        raise UopcError("wrong-operands", kind, hint=_operands_hint(sources))
    key = (kind, *sources)
    reference = _known.get(key)
    if reference is not None and (node := reference()) is not None:
        return node
    tracked = False
    if op != "stage" or attributes != ("detach",):
        for source in sources:
            if source.tracked:
                tracked = True
                break
    node = Node(kind, sources, tracked)
    node.place = caller_place()
    mine = _Reference(node, _forget)  # pyright: ignore[reportArgumentType] (it gets itself)
    mine.key = key
    with _lock:
        reference = _known.get(key)
        if reference is not None and (other := reference()) is not None:
            return other
        _known[key] = mine
    return node


@lru_cache(maxsize=1 << 16)
def _kind(op: str, attributes: tuple[Any, ...], types: tuple[ValueType, ...]) -> NodeKind | str:
    """The kind of a node, or what is wrong with it (kept as well: exceptions hold frames)."""
    try:
        return infer_kind(op, attributes, types)
    except VerifyException as error:
        return str(error)


def _operands_hint(sources: Sequence[Node]) -> str:
    return "the operands are " + ", ".join(
        f"{s.type}[{', '.join(map(str, s.shape))}]" for s in sources
    )


def constant(value: float | int | bool, shape: Shape, type_: str) -> Node:
    """All elements one number, rounded or wrapped to the type when it becomes IR."""
    return apply("constant", (), (number_text(value), shape, type_))


def iota(axis: int, shape: Shape, type_: str) -> Node:
    """Each element its own position along an axis."""
    return apply("iota", (), (axis, shape, type_))


@lru_cache(maxsize=1 << 14)
def _leaf_kind(op: str, shape: Shape, type_: str) -> NodeKind:
    return node_kind(op, (), value_type(shape, type_))


def buffer(array: Array, type_: str) -> Node:
    """A node that owns a row-major, aligned array of the type, which nobody writes from now on."""
    node = Node(_leaf_kind("buffer", array.shape, type_), (), False)
    node.array = array
    return node


def placeholder(shape: Shape, type_: str) -> Node:
    """A buffer without data: an input of a function that is being traced."""
    return Node(_leaf_kind("buffer", shape, type_), (), False)


@lru_cache(maxsize=256)
def _donated(value: ValueType) -> Node:
    return Node(node_kind("buffer", ("donated",), value), (), False)


def donated(node: Node) -> Node:
    """What stands for a value that its tensor has given away: one for all of a type, as there is
    nothing to tell them apart."""
    return _donated(node.value)


def leaf(source: Node) -> Node:
    """The same value with an identity of its own, for gradients to stop at."""
    node = Node(_leaf_kind("leaf", source.shape, source.type), (source,), True)
    if source.op == "buffer":
        node.realized = source
    return node


# -- walking ---------------------------------------------------------------------------------------


def resolved(node: Node) -> Node:
    """The node that stands for this one's value: its buffer, or what it is the identity of."""
    while True:
        if node.realized is not None:
            return node.realized
        if node.op == "leaf" or (node.op == "stage" and node.attributes == ("detach",)):
            node = node.sources[0]
        else:
            return node


def evaluation_order(roots: Iterable[Node]) -> list[Node]:
    """What must be computed for `roots`, sources first; computed nodes count as buffers."""
    order: list[Node] = []
    done: set[Node] = set()
    for root in roots:
        stack = [resolved(root)]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            waiting = [s for source in node.sources if (s := resolved(source)) not in done]
            if waiting:
                waiting.reverse()
                stack += waiting
            else:
                done.add(node)
                order.append(node)
                stack.pop()
    return order


def tracked_order(root: Node) -> list[Node]:
    """The nodes that gradients flow through on their way to leaves, sources first."""
    order: list[Node] = []
    done: set[Node] = set()
    stack = [root] if root.tracked else []
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        waiting = (
            [] if node.op == "leaf" else [s for s in node.sources if s.tracked and s not in done]
        )
        if waiting:
            waiting.reverse()
            stack += waiting
        else:
            done.add(node)
            order.append(node)
            stack.pop()
    return order
