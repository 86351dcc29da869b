"""The table of element types."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, f80, i1

from uopc.dialects.element_types import (
    ELEMENT_TYPES,
    accumulator,
    element_type,
    element_type_named,
    element_type_of_numpy,
    signless,
)


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_a_row_is_found_by_everything_that_names_it(row):
    assert str(row.attribute) == row.name
    assert element_type(row.attribute) is row
    assert element_type_named(row.name) is row
    assert element_type_of_numpy(row.numpy) is row
    assert row.bytes == row.numpy.itemsize
    assert (row.is_float, row.is_integer, row.is_bool).count(True) == 1


def test_limits_are_numpys():
    for row in ELEMENT_TYPES:
        if row.is_integer:
            info = np.iinfo(row.numpy)
            assert row.limits == (info.min, info.max)
    assert element_type(i1).limits == (0, 1)


def test_what_there_is_not():
    assert element_type(f80) is None
    assert element_type(IntegerType(7)) is None
    assert element_type(IntegerType(32, Signedness.SIGNED)) is None
    assert element_type(IntegerType(1, Signedness.UNSIGNED)) is None
    assert element_type_of_numpy(np.dtype(np.complex64)) is None
    assert element_type_of_numpy(np.dtype(np.longdouble)) is None
    with pytest.raises(KeyError):
        element_type_named("f8")


def test_signless_and_accumulators():
    names = {row.name: (signless(row).name, accumulator(row).name) for row in ELEMENT_TYPES}
    assert names["ui16"] == ("i16", "ui16")
    assert names["i16"] == ("i16", "i16")
    assert names["f16"] == ("f16", "f32")
    assert names["bf16"] == ("bf16", "f32")
    assert names["f64"] == ("f64", "f64")
    assert names["i1"] == ("i1", "i1")
