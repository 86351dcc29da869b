"""utensor's ops by name and plain attributes, and back: what lazy nodes and rules are written in.

    build_op("reduce", [x], ("add", (1,)))      the op utensor.reduce add %x axes [1]
    plain_op(op)                                ("reduce", ("add", (1,)))

What the attributes hold:

    constant  (number, shape, type)      cast, bitcast  (type,)      reduce     (kind, axes)
    iota      (axis, shape, type)        argreduce      (kind, axis, type)
    reshape, expand  (shape,)            permute        (order,)     flip       (axes,)
    shrink    (begins, ends, steps)      pad            (low, high, number)
    gather    (axis,)                    scatter        (kind, axis) stage      (kind,)

Shapes hold numbers and size expressions. Numbers are text, since 0.0 and -0.0 are equal, True
and 1 too, and NaN not to itself; element types are names: `f32`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects import tensor as ut
from uopc.dialects import tensor_elementwise as ew
from uopc.dialects import tensor_movement as mv
from uopc.dialects.element_types import element_type_named
from uopc.dialects.numbers import scalar_value
from uopc.dialects.sizes import Size, sizes_of, tensor_type
from uopc.dialects.tensor_elementwise import element_of, tensor_of
from uopc.dialects.tensor_movement import int_values

Attributes: TypeAlias = tuple[Any, ...]
Builder: TypeAlias = Callable[[Sequence[SSAValue], Attributes], Operation]

ELEMENTWISE = {
    op.name.removeprefix("utensor."): op for op in (*ew.UNARY_OPS, *ew.BINARY_OPS, ew.WhereOp)
}
_NAME_OF: dict[type[Operation], str] = {op: name for name, op in ELEMENTWISE.items()}


def number_text(value: float | int | bool) -> str:
    """A number as an attribute."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(float(value))
    return str(int(value))


def text_number(text: str) -> float | int:
    """The number that `number_text` wrote."""
    return int(text) if text.lstrip("-").isdigit() else float(text)


def type_attribute(shape: Sequence[Size], type_: str) -> TensorType[Attribute]:
    """The tensor type of a shape and an element type's name."""
    return tensor_type(element_type_named(type_).attribute, tuple(shape))


def _element(type_: str) -> Attribute:
    return element_type_named(type_).attribute


def _constant(sources: Sequence[SSAValue], a: Attributes) -> Operation:
    return ut.ConstantOp(text_number(a[0]), type_attribute(a[1], a[2]))


def _iota(sources: Sequence[SSAValue], a: Attributes) -> Operation:
    return ut.IotaOp(a[0], type_attribute(a[1], a[2]))


def _pad(sources: Sequence[SSAValue], a: Attributes) -> Operation:
    return mv.PadOp(sources[0], a[0], a[1], text_number(a[2]))


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
}
"""How each op is made, given its operands and its attributes."""


def build_op(op: str, sources: Sequence[SSAValue], attributes: Attributes) -> Operation:
    """An op by its name. Raises VerifyException for operands that do not fit."""
    return BUILDERS[op](sources, attributes)


def plain_op(op: Operation) -> tuple[str, Attributes] | None:
    """The name and attributes from which `build_op` makes an op like this one.

    None for an op of another dialect, and for a constant of many numbers.
    """
    name = _NAME_OF.get(type(op))
    if name is not None:
        return name, ()
    attributes = _plain_attributes(op)
    return None if attributes is None else (op.name.removeprefix("utensor."), attributes)


def _plain_attributes(op: Operation) -> Attributes | None:
    match op:
        case ut.ConstantOp():
            return None if op.splat is None else _constant_attributes(op)
        case ut.IotaOp():
            return (op.axis.value.data, *_shape_and_type(op.result))
        case ew.CastOp() | ew.BitcastOp():
            return (_shape_and_type(op.result)[1],)
        case ut.ReduceOp():
            return op.kind.data, int_values(op.axes)
        case ut.ArgreduceOp():
            return op.kind.data, op.axis.value.data, _shape_and_type(op.result)[1]
        case mv.ReshapeOp() | mv.ExpandOp():
            return (_shape_and_type(op.result)[0],)
        case mv.PermuteOp():
            return (int_values(op.order),)
        case mv.FlipOp():
            return (int_values(op.axes),)
        case mv.ShrinkOp():
            return op.begins.data, op.ends.data, int_values(op.steps)
        case mv.PadOp():
            return op.low.data, op.high.data, number_text(scalar_value(op.value))
        case ut.GatherOp():
            return (op.axis.value.data,)
        case ut.ScatterOp():
            return op.kind.data, op.axis.value.data
        case ut.StageOp():
            return (op.kind.data,)
        case _:
            return None


def _constant_attributes(op: ut.ConstantOp) -> Attributes:
    assert op.splat is not None
    return (number_text(scalar_value(op.splat)), *_shape_and_type(op.result))


def _shape_and_type(value: SSAValue) -> tuple[tuple[Size, ...], str]:
    tensor = tensor_of(value)
    return sizes_of(tensor), element_of(tensor).name
