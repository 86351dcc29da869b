"""How scalars and vectors of arith and math are held while interpreting.

| type | value |
|---|---|
| i8 … i64, index | a signed numpy integer: bits are what counts, ops say how they are read |
| i1 | a numpy bool |
| f64 f32 f16 bf16 | a float of the dtype |
| a vector | an array of the vector's shape |

Each may have leading axes, one value a lane: what one op of a loop computes in many iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import Attribute

from uopc.dialects.element_types import ElementType, element_type, element_type_named
from uopc.dialects.errors import UopcError

_INDEX = element_type_named("i64")

where: Callable[..., Any] = np.where
"""np.where of values whose types only the op knows."""


def element_attribute(type_: Attribute) -> Attribute:
    """The element type of a vector; of any other type the type itself."""
    return type_.element_type if isinstance(type_, VectorType) else type_  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # xDSL's generic


def find_row(type_: Attribute) -> ElementType | None:
    """The element type of a number or a vector of numbers; an index is an i64. None for others."""
    element = element_attribute(type_)
    return _INDEX if isinstance(element, IndexType) else element_type(element)


def row_of(type_: Attribute) -> ElementType:
    """As `find_row`. Raises UopcError [not-interpreted] for a type that is no number."""
    row = find_row(type_)
    if row is None or row.kind == "unsigned":
        raise UopcError(
            "not-interpreted",
            f"{type_} is no number that can be computed with",
            hint="floats, index and signless integers of 1, 8, 16, 32 and 64 bits are",
        )
    return row


def vector_shape(type_: Attribute) -> tuple[int, ...]:
    """The shape of a vector, () of a number."""
    return tuple(type_.get_shape()) if isinstance(type_, VectorType) else ()  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # xDSL's generic


def unsigned(values: Any) -> Any:
    """The same bits as unsigned integers."""
    return values.view(f"u{values.dtype.itemsize}") if values.dtype != np.bool_ else values


def signed(values: Any) -> Any:
    """The same bits as signed integers."""
    return values.view(f"i{values.dtype.itemsize}") if values.dtype != np.bool_ else values
