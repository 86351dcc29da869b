"""Constants of one value for all elements, which kernels hold themselves."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute

from uopc.dialects.numbers import dense_array, scalar
from uopc.dialects.tensor import ConstantOp


def splat_form(op: ConstantOp) -> ConstantOp | None:
    """A new constant of one value for all elements; None where the elements differ."""
    if op.splat is not None:
        value: Attribute = op.splat
    else:
        dense = cast("DenseIntOrFPElementsAttr[Any]", op.value)
        width = dense.type.element_type.compile_time_size
        data = dense.data.data
        if data != data[:width] * (len(data) // width):
            return None
        first = dense_array(dense).reshape(-1)[:1].tolist()
        value = scalar(first[0] if first else 0, dense.type.element_type)
    return ConstantOp.create(
        result_types=op.result_types, properties={"value": value}, location=op.location
    )
