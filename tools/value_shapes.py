"""Shorter axes: a function on tensors with one size replaced by a smaller one everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue

from uopc.dialects.sizes import SizesAttr
from uopc.interpreters.programs import programs
from uopc.tools.value_cuts import Inputs

_SMALL = (1, 2, 3, 4, 5, 8, 16)


def shorter(module: ModuleOp, inputs: Inputs) -> Iterator[tuple[ModuleOp, Inputs]]:
    """Modules in which all axes of one size have a smaller one; inputs are cut to fit.

    Sizes that are symbols stay. What does not fit together any more is left to the verifier.
    """
    for program in programs(module):
        if not isinstance(program.op, func.FuncOp) or program.level != "utensor":
            return
        sizes = {n for op in program.op.walk() for v in op.results for n in _shape(v)}
        sizes |= {n for v in program.op.body.block.args for n in _shape(v)}
        for old in sorted((n for n in sizes if n > 1), reverse=True):
            for new in [n for n in _SMALL if n < old]:
                made = module.clone()
                _replace(made, old, new)
                yield made, _cut(made, inputs)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(value.type.get_shape()) if isinstance(value.type, TensorType) else ()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # xDSL's generic


def _cut(module: ModuleOp, inputs: Inputs) -> Inputs:
    if inputs is None:
        return None
    (program,) = programs(module)
    arguments = program.op.regions[0].block.args
    return tuple(
        a[tuple(slice(0, n) if n > 0 else slice(None) for n in _shape(v))]
        for a, v in zip(inputs, arguments, strict=True)
    )


def _replace(module: ModuleOp, old: int, new: int) -> None:
    def changed(type_: Attribute) -> Attribute:
        if not isinstance(type_, TensorType):
            return type_
        tensor = cast("TensorType[Attribute]", type_)
        shape = [new if n == old else n for n in tensor.get_shape()]
        return TensorType(tensor.element_type, shape, tensor.encoding)

    for op in module.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value._type = changed(value.type)  # pyright: ignore[reportPrivateUsage]  # xDSL has no other way in place
        for name, attribute in op.properties.items():
            if isinstance(attribute, SizesAttr):
                op.properties[name] = SizesAttr(
                    tuple(new if n == old else n for n in attribute.data)
                )
        if isinstance(op, func.FuncOp):
            kinds = op.function_type
            op.function_type = FunctionType.from_lists(
                [changed(x) for x in kinds.inputs], [changed(x) for x in kinds.outputs]
            )
