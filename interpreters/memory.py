"""Memory while interpreting: buffers of bytes, and memrefs as views of them.

An element's address is checked against the memref's shape on every access. A memref made in many
lanes at once has one offset a lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr
from xdsl.ir import Attribute, Operation

from uopc.dialects.element_types import ElementType, signless
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_text
from uopc.dialects.rounding import Array
from uopc.interpreters.kernel import UNWRITTEN
from uopc.interpreters.scalar_types import find_row


class Buffer:
    """What memrefs that may overlap have in common: one piece of memory of `size` bytes."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


@dataclass(frozen=True)
class MemRef:
    """A view of a buffer as elements: `data` from byte `shift` on, then offset and strides in
    elements. The offset is a number, or an array of one a lane."""

    buffer: Buffer
    data: Array
    shift: int
    offset: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def of_lanes(self, origin: Array) -> MemRef:
        """The memref of each origin's lane."""
        return replace(self, offset=self.offset[origin])

    @property
    def array(self) -> Array:
        """The elements as an array that shares the memory; only for one with one offset."""
        item = self.data.itemsize
        return np.lib.stride_tricks.as_strided(
            self.data[int(self.offset) :] if self.data.size else self.data,
            self.shape,
            [s * item for s in self.strides],
            writeable=bool(self.data.flags.writeable),
        )


def row_of_memref(type_: Attribute) -> ElementType:
    """The element type of a memref, signless. Raises UopcError [not-interpreted]."""
    row = find_row(type_.element_type) if isinstance(type_, MemRefType) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # xDSL's generic
    if row is None:
        raise UopcError("not-interpreted", f"{type_} is no memory that can be interpreted")
    return signless(row)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a row-major array, in elements."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


class Arrays:
    """Memrefs of arrays' own memory; arrays that share memory share a buffer."""

    def __init__(self) -> None:
        self._buffers: dict[int, Buffer] = {}

    def memref(self, array: Array, shape: Sequence[int]) -> MemRef:
        """A memref of a contiguous array, under a shape of as many elements; unsigned bits are
        read as signed."""
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        low, high = np.lib.array_utils.byte_bounds(root)
        buffer = self._buffers.setdefault(low, Buffer(high - low))
        data = array.reshape(-1)
        if data.dtype.kind == "u":
            data = data.view(f"i{data.dtype.itemsize}")
        shift = np.lib.array_utils.byte_bounds(array)[0] - low
        return MemRef(buffer, data, shift, 0, tuple(shape), contiguous_strides(shape))


def unwritten_memory(elements: int, row: ElementType) -> Array:
    """Elements that nobody has written yet: no likely numbers."""
    raw = np.full(elements * row.bytes, UNWRITTEN, np.uint8)
    return (raw & np.uint8(1) if row.is_bool else raw).view(row.numpy)


def allocate(type_: MemRefType[Attribute], sizes: Sequence[int], lanes: int | None) -> MemRef:
    """Memory for a memref type, `sizes` for its dynamic dimensions; one a lane if there are any."""
    remaining = iter(sizes)
    shape = tuple(next(remaining) if n == DYNAMIC_INDEX else n for n in type_.get_shape())
    if any(n < 0 for n in shape):
        raise UopcError("out-of-bounds", f"memory of shape {shape} cannot be allocated")
    strides = layout_strides(type_, shape)
    need = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    need = max(0, need) if all(shape) else 0
    data = unwritten_memory(need * (lanes or 1), row_of_memref(type_))
    offset: Any = 0 if lanes is None else np.arange(lanes, dtype=np.int64) * need
    return MemRef(Buffer(data.nbytes), data, 0, offset, shape, strides)


def layout_strides(type_: MemRefType[Attribute], shape: Sequence[int]) -> tuple[int, ...]:
    """The strides that a type states, row-major ones where it does not."""
    layout = type_.layout
    if isinstance(layout, NoneAttr):
        return contiguous_strides(shape)
    stated = type_.get_strides()
    if stated is None or any(s is None for s in stated):
        raise UopcError(
            "not-interpreted",
            f"the layout of {type_} does not say where its elements lie",
            hint="expected strides that are numbers",
        )
    return tuple(int(s) for s in stated if s is not None)


def view(
    source: MemRef, shift: int, shape: Sequence[int], row: ElementType, op: Operation
) -> MemRef:
    """memref.view: bytes from `shift` on as elements of another type."""
    size = int(np.prod(shape, dtype=np.int64)) * row.bytes
    start = int(source.offset) + shift
    if shift < 0 or shift + size > source.shape[0]:
        raise UopcError(
            "out-of-bounds",
            f"a view of {size} bytes from byte {shift} on does not fit {source.shape[0]} bytes",
            op_text=op_text(op),
            location=nearest_location(op),
        )
    data = source.data[start : start + size].view(row.numpy)
    return MemRef(
        source.buffer, data, source.shift + start, 0, tuple(shape), contiguous_strides(shape)
    )


def element_places(memref: MemRef, indices: Sequence[Any], op: Operation) -> Any:
    """The position in `data` of an element, or of one a lane; checked against the shape.

    Raises UopcError [out-of-bounds] naming the op and the first indices that are wrong.
    """
    place: Any = memref.offset
    for axis, (index, size, stride) in enumerate(
        zip(indices, memref.shape, memref.strides, strict=True)
    ):
        if isinstance(index, np.ndarray) and index.ndim:
            wrong = index.size > 0 and (index.min() < 0 or index.max() >= size)
        else:
            wrong = not 0 <= index < size
        if wrong:
            raise _outside(memref, indices, axis, op)
        place = place + index * stride
    return place


def _outside(memref: MemRef, indices: Sequence[Any], axis: int, op: Operation) -> UopcError:
    arrays = np.broadcast_arrays(*(np.asarray(i) for i in indices))
    bad = (arrays[axis] < 0) | (arrays[axis] >= memref.shape[axis])
    first = int(np.flatnonzero(bad.reshape(-1))[0])
    at = ", ".join(str(int(a.reshape(-1)[first])) for a in arrays)
    shape = ", ".join(map(str, memref.shape))
    return UopcError(
        "out-of-bounds",
        f"'{op.name}' touches [{at}] of a buffer of shape [{shape}]: index {axis} is not from 0 "
        f"to {memref.shape[axis] - 1}",
        op_text=op_text(op),
        location=nearest_location(op),
        hint="a tail or a mask is missing, or an index map is wrong",
    )


def turns(places: Array) -> Iterator[Array]:
    """Numbers of accesses in rounds: each round has at most one of each place, in order."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    for number in range(int(turn.max(initial=-1)) + 1):
        yield order[turn == number]


def check_writable(memref: MemRef, op: Operation) -> None:
    """Raises UopcError [read-only] where an op would change an input."""
    if not memref.data.flags.writeable:
        raise UopcError(
            "read-only",
            f"'{op.name}' writes to a buffer that may only be read",
            op_text=op_text(op),
            location=nearest_location(op),
            hint="inputs carry llvm.readonly, constants never change",
        )
