"""Shapes and element types of lazy nodes, by the dialect's rules, and the nodes as ops.

dialects/tensor_build.py says what a node's attributes hold, and makes its op; the op's type is the
node's, so there is one set of rules for both.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.test import TestOp

from uopc.dialects.sizes import sizes_of
from uopc.dialects.tensor_build import build_op, type_attribute
from uopc.dialects.tensor_elementwise import element_of, tensor_of


class ValueType:
    """A shape and an element type. Equal ones that are alive are one object, compared as such."""

    __slots__ = ("__weakref__", "shape", "type")

    def __init__(self, shape: tuple[int, ...], type_: str) -> None:
        self.shape = shape
        self.type = type_


class NodeKind:
    """All of a node but its sources. Equal ones that are alive are one object, compared as such:
    what is looked up for every node of every step must hash fast."""

    __slots__ = ("__weakref__", "attributes", "op", "value")

    def __init__(self, op: str, attributes: tuple[Any, ...], value: ValueType) -> None:
        self.op = op
        self.attributes = attributes
        self.value = value

    def __repr__(self) -> str:
        shown = self.attributes[:1] if self.op in ("constant", "iota") else self.attributes
        options = "".join(f" {a}" for a in shown)
        size = "x".join(map(str, self.value.shape))
        return f"{self.op}{options} : {size}{'x' if size else ''}{self.value.type}"


_interning = threading.RLock()
_value_types: weakref.WeakValueDictionary[Any, ValueType] = weakref.WeakValueDictionary()
_kinds: weakref.WeakValueDictionary[Any, NodeKind] = weakref.WeakValueDictionary()


def value_type(shape: tuple[int, ...], type_: str) -> ValueType:
    """The one ValueType of a shape and an element type."""
    known = _value_types.get((shape, type_))
    if known is not None:
        return known
    with _interning:
        return _value_types.setdefault((shape, type_), ValueType(shape, type_))


def node_kind(op: str, attributes: tuple[Any, ...], value: ValueType) -> NodeKind:
    """The one NodeKind of these. Attributes hold no floats: see tensor_build.number_text."""
    known = _kinds.get((op, attributes, value))
    if known is not None:
        return known
    with _interning:
        return _kinds.setdefault((op, attributes, value), NodeKind(op, attributes, value))


def infer_kind(op: str, attributes: tuple[Any, ...], types: Sequence[ValueType]) -> NodeKind:
    """The kind of a node with sources of these types.

    The op itself is built on stand-ins and verified: what it takes and gives is what the dialect
    says. Raises VerifyException.
    """
    stand_ins = [TestOp(result_types=[type_attribute(t.shape, t.type)]).results[0] for t in types]
    built = build_op(op, stand_ins, attributes)
    built.verify_()
    result = tensor_of(built.results[0])
    value = value_type(cast(Any, sizes_of(result)), element_of(result).name)
    return node_kind(op, attributes, value)
