"""Accesses of kernels over ranges: indices checked, and updates in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from uopc.dialects import loop
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_text
from uopc.dialects.rounding import Array
from uopc.interpreters.memory import turns
from uopc.interpreters.scalar_types import where


def checked(
    op: loop.AccessOp, indices: list[Array], shape: Sequence[int], mask: Array | None
) -> list[Array]:
    """Indices that are all inside: 0 where nothing is asked for.

    Raises UopcError [out-of-bounds].
    """
    result: list[Array] = []
    for axis, (index, size) in enumerate(zip(indices, shape, strict=True)):
        wrong = (index < 0) | (index >= size)
        if wrong.any():
            outside = wrong if mask is None else wrong & mask
            if outside.any():
                raise _outside(op, indices, outside, axis, shape)
            index = where(wrong, np.int64(0), index)
        result.append(index)
    return result


def _outside(
    op: loop.AccessOp, indices: list[Array], wrong: Array, axis: int, shape: Sequence[int]
) -> UopcError:
    arrays = np.broadcast_arrays(wrong, *indices)
    first = int(np.flatnonzero(arrays[0].reshape(-1))[0])
    at = ", ".join(str(int(a.reshape(-1)[first])) for a in arrays[1:])
    return UopcError(
        "out-of-bounds",
        f"'{op.name}' touches [{at}] of a buffer of shape [{', '.join(map(str, shape))}]: index "
        f"{axis} is not from 0 to {shape[axis] - 1}",
        op_text=op_text(op),
        location=nearest_location(op),
        hint="a condition is missing, or an index map is wrong",
    )


def update(target: Array, indices: list[Array], values: Array, combine: Any) -> None:
    """Combine values into elements one after the other: each round takes one for each element."""
    if not indices:
        for value in values:
            target[()] = combine(target[()], value)
        return
    for chosen in turns(np.ravel_multi_index(indices, target.shape)):
        at = tuple(i[chosen] for i in indices)
        target[at] = combine(target[at], values[chosen])
