"""Shapes and element types of lazy nodes, by the dialect's rules, and the nodes as ops.

What a node's attributes hold:

    constant  (number, shape, type)      cast, bitcast  (type,)      reduce     (kind, axes)
    iota      (axis, shape, type)        argreduce      (kind, axis, type)
    reshape, expand  (shape,)            permute        (order,)     flip       (axes,)
    shrink    (begins, ends, steps)      pad            (low, high, number)
    gather    (axis,)                    scatter        (kind, axis) stage      (kind,)

Numbers are text (see graph.number_text). Each row of `BUILDERS` makes the utensor op; its type is
the node's, so there is one set of rules for both.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects import tensor as ut
from uopc.dialects import tensor_elementwise as ew
from uopc.dialects import tensor_movement as mv
from uopc.dialects.element_types import element_type_named
from uopc.dialects.sizes import tensor_type
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
    with _interning:
        return _value_types.setdefault((shape, type_), ValueType(shape, type_))


def node_kind(op: str, attributes: tuple[Any, ...], value: ValueType) -> NodeKind:
    """The one NodeKind of these. Attributes hold no floats: see graph.number_text."""
    with _interning:
        return _kinds.setdefault((op, attributes, value), NodeKind(op, attributes, value))


Builder: TypeAlias = Callable[[Sequence[SSAValue], tuple[Any, ...]], Operation]

ELEMENTWISE = {
    op.name.removeprefix("utensor."): op for op in (*ew.UNARY_OPS, *ew.BINARY_OPS, ew.WhereOp)
}
COMPARISONS = frozenset(op.name.removeprefix("utensor.") for op in ew.COMPARE_OPS)


def type_attribute(shape: Sequence[int], type_: str) -> TensorType[Attribute]:
    """The tensor type of a shape and an element type's name."""
    return tensor_type(element_type_named(type_).attribute, tuple(shape))


def _number(text: str) -> float | int:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _element(type_: str) -> Attribute:
    return element_type_named(type_).attribute


def _constant(sources: Sequence[SSAValue], a: tuple[Any, ...]) -> Operation:
    return ut.ConstantOp(_number(a[0]), type_attribute(a[1], a[2]))


def _iota(sources: Sequence[SSAValue], a: tuple[Any, ...]) -> Operation:
    return ut.IotaOp(a[0], type_attribute(a[1], a[2]))


def _pad(sources: Sequence[SSAValue], a: tuple[Any, ...]) -> Operation:
    return mv.PadOp(sources[0], a[0], a[1], _number(a[2]))


def _elementwise(name: str) -> Builder:
    kind: Any = ELEMENTWISE[name]
    return lambda sources, _: kind(*sources)


BUILDERS: dict[str, Builder] = {
    **{name: _elementwise(name) for name in ELEMENTWISE},
    "constant": _constant,
    "iota": _iota,
    "cast": lambda s, a: ew.CastOp(s[0], _element(a[0])),
    "bitcast": lambda s, a: ew.BitcastOp(s[0], _element(a[0])),
    "reduce": lambda s, a: ut.ReduceOp(a[0], s[0], a[1]),
    "argreduce": lambda s, a: ut.ArgreduceOp(a[0], s[0], a[1], _element(a[2])),
    "reshape": lambda s, a: mv.ReshapeOp(s[0], a[0]),
    "expand": lambda s, a: mv.ExpandOp(s[0], a[0]),
    "permute": lambda s, a: mv.PermuteOp(s[0], a[0]),
    "flip": lambda s, a: mv.FlipOp(s[0], a[0]),
    "shrink": lambda s, a: mv.ShrinkOp(s[0], *a),
    "pad": _pad,
    "gather": lambda s, a: ut.GatherOp(s[0], s[1], a[0]),
    "scatter": lambda s, a: ut.ScatterOp(a[0], s[0], s[1], s[2], a[1]),
    "stage": lambda s, a: ut.StageOp(s[0], a[0]),
}  # fmt: skip
"""How each node becomes an op, given its sources as values and its attributes."""


def build_op(op: str, sources: Sequence[SSAValue], attributes: tuple[Any, ...]) -> Operation:
    """The utensor op of a node. Raises VerifyException for operands that do not fit."""
    return BUILDERS[op](sources, attributes)


def infer_kind(op: str, attributes: tuple[Any, ...], types: Sequence[ValueType]) -> NodeKind:
    """The kind of a node with sources of these types.

    The op itself is built on stand-ins and verified: what it takes and gives is what the dialect
    says. Raises VerifyException.
    """
    stand_ins = [TestOp(result_types=[type_attribute(t.shape, t.type)]).results[0] for t in types]
    built = build_op(op, stand_ins, attributes)
    built.verify_()
    result = tensor_of(built.results[0])
    value = value_type(tuple(result.get_shape()), element_of(result).name)
    return node_kind(op, attributes, value)
