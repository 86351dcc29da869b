"""From lazy nodes to a utensor function: for a miss of the plan cache."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FileLineColLoc,
    FunctionType,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from uopc.dialects.element_types import element_type_of_numpy
from uopc.dialects.numbers import dense_of_array
from uopc.dialects.sizes import tensor_type
from uopc.dialects.tensor import ConstantOp
from uopc.dialects.tensor_build import build_op, type_attribute
from uopc.frontend.graph import Node, resolved


def build_module(
    order: Sequence[Node],
    roots: Sequence[Node],
    name: str = "realize",
    names: Mapping[Node, str] | None = None,
    constants: Collection[Node] = (),
    donated: Collection[int] = (),
) -> ModuleOp:
    """The module of a function from the buffers in `order` to the values of `roots`.

    `order` is what graph.evaluation_order gives for the roots; each buffer in it is an argument,
    in that order, called as `names` says, but for those in `constants`. Arguments at positions in
    `donated` may be written over.
    """
    block = Block()
    values: dict[Node, SSAValue] = {}
    for node in order:
        if node in constants:
            assert node.array is not None
            op = _constant(node.array)
            block.add_op(op)
            values[node] = op.result
        elif node.op == "buffer":
            argument = block.insert_arg(type_attribute(node.shape, node.type), len(block.args))
            if names and node in names:
                argument.name_hint = names[node]
            values[node] = argument
        else:
            op = build_op(node.op, [values[resolved(s)] for s in node.sources], node.attributes)
            if node.place is not None:
                file, line = node.place
                op.location = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(1))
            block.add_op(op)
            values[node] = op.results[0]
    results = [values[resolved(root)] for root in roots]
    block.add_op(ReturnOp(*results))
    types = FunctionType.from_lists([a.type for a in block.args], [r.type for r in results])
    function = FuncOp(name, types, Region(block))
    if donated:
        marks = [
            {"uopc.donated": UnitAttr()} if k in donated else {} for k in range(len(block.args))
        ]
        function.properties["arg_attrs"] = ArrayAttr([DictionaryAttr(mark) for mark in marks])
    return ModuleOp([function])


def _constant(array: np.ndarray[Any, np.dtype[Any]]) -> ConstantOp:
    """The elements of an array in the program; one number where there is one only."""
    row = element_type_of_numpy(array.dtype)
    assert row is not None
    type_ = tensor_type(row.attribute, array.shape)
    if array.size <= 1:
        return ConstantOp(array.reshape(-1)[0].item() if array.size else 0, type_)
    return ConstantOp(dense_of_array(array), type_)
