"""Appends StableHLO ops to a block: those that the rules of the export are written with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from uopc.dialects import stablehlo_attributes as a
from uopc.dialects.element_types import ElementType, element_type_named
from uopc.dialects.numbers import dense_of_array, known_element
from uopc.dialects.sizes import sizes_of, tensor_type
from uopc.dialects.stablehlo import CHLO, StableHLO
from uopc.dialects.tensor_elementwise import tensor_of

_CLASSES = {op.name: op for dialect in (StableHLO, CHLO) for op in dialect.operations}


def row_of(value: SSAValue) -> ElementType:
    """The row of a value's element type."""
    return known_element(tensor_of(value).element_type)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """A value's sizes, which are numbers."""
    return tuple(tensor_of(value).get_shape())


def axes_attr(values: Sequence[int]) -> Attribute:
    """`array<i64: …>`."""
    return DenseArrayBase.from_list(i64, list(values))


class HloBuilder:
    """Appends ops to `block`."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.location: Any = None

    def many(
        self,
        name: str,
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        properties: dict[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Append an op of any results."""
        op = _CLASSES[name].create(
            operands=list(operands),
            result_types=list(results),
            properties=properties or {},
            regions=list(regions),
        )
        op.location = self.location
        self.block.add_op(op)
        return op

    def op(
        self,
        name: str,
        operands: Sequence[SSAValue],
        result: Attribute | None = None,
        properties: dict[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
    ) -> SSAValue:
        """Append an op of one result, of the first operand's type where none is given."""
        type_ = operands[0].type if result is None else result
        name = name if "." in name else f"stablehlo.{name}"
        return self.many(name, operands, [type_], properties, regions).results[0]

    # Constants.

    def array(self, array: np.ndarray[Any, Any]) -> SSAValue:
        """A constant of these elements."""
        dense = dense_of_array(array)
        type_ = tensor_type(dense.type.element_type, array.shape)
        return self.op("constant", [], type_, {"value": dense})

    def number(self, value: float, row: ElementType, shape: Sequence[int] = ()) -> SSAValue:
        """A constant of one number; rounded or wrapped to the type."""
        with np.errstate(all="ignore"):
            if row.is_float or row.is_bool:
                scalar = np.asarray(value).astype(row.numpy)
            else:
                scalar = np.asarray(int(value) & ((1 << row.bits) - 1), np.uint64)
                scalar = scalar.astype(f"u{row.bytes}").view(row.numpy)
        return self.spread(self.array(scalar), shape)

    def like(self, x: SSAValue, value: float) -> SSAValue:
        """A constant of the type of a value."""
        return self.number(value, row_of(x), shape_of(x))

    def spread(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A scalar repeated in a shape."""
        if not shape:
            return x
        return self.broadcast(x, shape, ())

    def broadcast(self, x: SSAValue, shape: Sequence[int], axes: Sequence[int]) -> SSAValue:
        """Axis k of `x` is axis axes[k] of the result."""
        type_ = tensor_type(tensor_of(x).element_type, tuple(shape))
        properties = {"broadcast_dimensions": axes_attr(axes)}
        return self.op("broadcast_in_dim", [x], type_, properties)

    # Elementwise.

    def compare(self, direction: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x direction y`."""
        row = row_of(x)
        kind = "FLOAT" if row.is_float else "SIGNED" if row.kind == "signed" else "UNSIGNED"
        properties: dict[str, Attribute] = {
            "comparison_direction": word(a.ComparisonDirectionAttr, direction),
            "compare_type": word(a.ComparisonTypeAttr, kind),
        }
        return self.op("compare", [x, y], tensor_type(i1, sizes_of(tensor_of(x))), properties)

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        """`yes` where the condition holds."""
        return self.op("select", [condition, yes, no], yes.type)

    def convert(self, x: SSAValue, element: Attribute) -> SSAValue:
        """The numbers in another type. From a float to i1: whether it is not 0."""
        if tensor_of(x).element_type == element:
            return x
        return self.op("convert", [x], tensor_type(element, shape_of(x)))

    def is_nan(self, x: SSAValue) -> SSAValue:
        """Whether elements are NaN."""
        return self.compare("NE", x, x)

    # Movement.

    def reshape(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements in another shape."""
        return self.op("reshape", [x], tensor_type(tensor_of(x).element_type, tuple(shape)))

    def iota(self, axis: int, shape: Sequence[int], row: ElementType) -> SSAValue:
        """Each element is its position along an axis."""
        type_ = tensor_type(row.attribute, tuple(shape))
        return self.op("iota", [], type_, {"iota_dimension": IntegerAttr(axis, i64)})

    # Regions.

    def combiner(self, name: str, row: ElementType) -> Region:
        """A region that combines two scalars by an op; `second` takes the second."""
        scalar = tensor_type(row.attribute, ())
        block = Block(arg_types=[scalar, scalar])
        inner = HloBuilder(block)
        x, y = block.args
        result = y if name == "second" else inner.op(name, [x, y])
        inner.many("stablehlo.return", [result], [])
        return Region(block)

    def reduce(self, name: str, x: SSAValue, start: float, axes: Sequence[int]) -> SSAValue:
        """Combine along axes, from a start."""
        row = row_of(x)
        kept = [n for k, n in enumerate(shape_of(x)) if k not in axes]
        return self.op(
            "reduce",
            [x, self.number(start, row)],
            tensor_type(row.attribute, tuple(kept)),
            {"dimensions": axes_attr(axes)},
            [self.combiner(name, row)],
        )


def word(cls: type[Any], text: str) -> Attribute:
    """A word of an enumeration."""
    from xdsl.dialects.builtin import StringAttr

    return cls(StringAttr(text))


def struct(cls: type[Any], **fields: Sequence[int] | int) -> Attribute:
    """A struct of lists of axes and numbers."""
    from xdsl.dialects.builtin import DictionaryAttr

    return cls(
        DictionaryAttr(
            {
                name: IntegerAttr(v, i64) if isinstance(v, int) else axes_attr(v)
                for name, v in fields.items()
                if isinstance(v, int) or len(v)
            }
        )
    )


def flag(value: bool) -> Attribute:
    """A truth value as a property."""
    return BoolAttr.from_bool(value)


I64 = element_type_named("i64")
INF = math.inf
