"""Vector types and the attributes of vector ops, typed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, VectorType, i64
from xdsl.ir import Attribute

from uopc.dialects.element_types import element_type
from uopc.dialects.numbers import wrap


@cache
def vector_type(element: Attribute, width: int) -> VectorType[Attribute]:
    """A vector of `width` lanes."""
    return VectorType(element, [width])


def width_of(type_: Attribute) -> int | None:
    """The lanes of a vector type; None for a scalar."""
    return type_.get_shape()[0] if isinstance(type_, VectorType) else None


def lane_type(type_: Attribute) -> Attribute:
    """The type of a vector's lanes; a scalar's own type."""
    if isinstance(type_, VectorType):
        return cast("VectorType[Attribute]", type_).element_type
    return type_


def integers(type_: Attribute, values: Iterable[int]) -> Attribute:
    """A constant vector of integers, wrapped to its lanes; one value is for all of them."""
    row = element_type(lane_type(type_))
    assert row is not None
    wrapped = [wrap(value, row) for value in values]
    return DenseIntOrFPElementsAttr.from_list(cast(Any, type_), wrapped)


def positions(values: Iterable[int]) -> DenseArrayBase:
    """The positions that a shuffle, an extract or an insert takes."""
    return DenseArrayBase.from_list(i64, list(values))
