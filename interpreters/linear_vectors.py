"""The ops of the vector dialect. A vector is an array of its shape, one a lane before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import vector
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects.rounding import Array
from uopc.interpreters.lanes import Context, Frame, spread
from uopc.interpreters.linear_core import Compiler, Handler, Step, rank_of
from uopc.interpreters.linear_memory import note_read, note_write
from uopc.interpreters.memory import MemRef, check_writable, element_places
from uopc.interpreters.scalar_types import row_of, vector_shape
from uopc.interpreters.scalars import combine_function


class _Access:
    """Where the elements of a vector lie: along the last axes of a memref."""

    def __init__(self, c: Compiler, op: Any, type_: Attribute, mask: SSAValue | None) -> None:
        self.op = op
        self.machine = c.machine
        self.base = c.slot(op.base)
        self.indices = c.all(op.indices)
        self.shape = vector_shape(type_)
        self.mask = None if mask is None else c.slot(mask)

    def places(self, frame: Frame, context: Context) -> tuple[MemRef, Array, Array | None]:
        """The memref, the position of each element, and which ones the mask lets through.

        A position that is masked off is 0. With lanes, positions have one row a lane where
        anything about them differs between lanes.
        """
        buffer: MemRef = frame.get(self.base, context)
        rank, indices = len(self.shape), [frame.get(s, context) for s in self.indices]
        first = len(indices) - rank
        spots: list[Any] = []
        for axis, index in enumerate(indices):
            spot = np.asarray(index)
            spot = spot.reshape(*spot.shape, *[1] * rank)
            if axis >= first:
                own = [1] * rank
                own[axis - first] = self.shape[axis - first]
                spot = spot + np.arange(self.shape[axis - first]).reshape(own)
            spots.append(spot)
        offset = np.asarray(buffer.offset)
        offset = offset.reshape(*offset.shape, *[1] * rank)
        together = [np.zeros(self.shape, np.int64), offset, *spots]
        active = None
        if self.mask is not None:
            active = np.asarray(frame.get(self.mask, context))
            together.append(active)
        shape = np.broadcast_shapes(*(t.shape for t in together))
        spots = [np.broadcast_to(s, shape) for s in spots]
        flat = MemRef(
            buffer.buffer, buffer.data, buffer.shift, np.broadcast_to(offset, shape),
            buffer.shape, buffer.strides,
        )  # fmt: skip
        if active is None:
            return buffer, np.asarray(element_places(flat, spots, self.op)), None
        active = np.broadcast_to(active, shape)
        chosen = MemRef(
            buffer.buffer, buffer.data, buffer.shift, flat.offset[active],
            buffer.shape, buffer.strides,
        )  # fmt: skip
        result = np.zeros(shape, np.int64)
        result[active] = element_places(chosen, [s[active] for s in spots], self.op)
        return buffer, result, active

    def noted(self, note: Any, buffer: MemRef, places: Array, active: Any, context: Context):
        if self.machine.speculations and context is not None:
            every = spread(places, context.count, len(self.shape))
            note(self.machine, buffer, every, context, self.op, active)


def load(c: Compiler, op: vector.LoadOp | vector.MaskedLoadOp) -> Step:
    masked = isinstance(op, vector.MaskedLoadOp)
    access = _Access(c, op, op.result.type, op.mask if masked else None)
    instead = c.slot(op.pass_thru) if masked else -1
    out, rank = c.slot(op.result), len(access.shape)

    def step(frame: Frame, context: Context) -> None:
        buffer, places, active = access.places(frame, context)
        access.noted(note_read, buffer, places, active, context)
        own = places.ndim > rank
        if active is None:
            value: Any = buffer.data[places]
        else:
            other = frame.get(instead, context)
            own = own or not frame.is_uniform(instead)
            shape = np.broadcast_shapes(places.shape, np.shape(other))
            value = np.array(np.broadcast_to(other, shape))
            chosen = np.broadcast_to(active, shape)
            value[chosen] = buffer.data[np.broadcast_to(places, shape)[chosen]]
        frame.set(out, value, context if own else None)

    return step


def store(c: Compiler, op: vector.StoreOp | vector.MaskedStoreOp) -> Step:
    masked = isinstance(op, vector.MaskedStoreOp)
    stored = op.value_to_store if masked else op.vector
    access = _Access(c, op, stored.type, op.mask if masked else None)
    value, rank = c.slot(stored), len(access.shape)

    def step(frame: Frame, context: Context) -> None:
        buffer, places, active = access.places(frame, context)
        check_writable(buffer, op)
        access.noted(note_write, buffer, places, active, context)
        new = frame.get(value, context)
        if places.ndim == rank and not frame.is_uniform(value):
            new = new[-1]  # all lanes write the same elements, and the last comes last
        if active is None:
            buffer.data[places] = new
        else:
            buffer.data[places[active]] = np.broadcast_to(new, places.shape)[active]

    return step


def _uniform_context(frame: Frame, slots: Sequence[int], context: Context) -> Context:
    return None if all(frame.is_uniform(s) for s in slots) else context


def broadcast(c: Compiler, op: vector.BroadcastOp) -> Step:
    source, out = c.slot(op.source), c.slot(op.vector)
    rank, shape = rank_of(op.source), vector_shape(op.vector.type)

    def step(frame: Frame, context: Context) -> None:
        value = np.asarray(frame.get(source, context))
        lead = value.shape[: value.ndim - rank]
        value = value.reshape(*lead, *[1] * (len(shape) - rank), *value.shape[len(lead) :])
        own = _uniform_context(frame, [source], context)
        frame.set(out, np.broadcast_to(value, (*lead, *shape)), own)

    return step


def shuffle(c: Compiler, op: vector.ShuffleOp) -> Step:
    """Rows of two vectors by number; a row of -1 may be any, and is row 0."""
    a, b, out = c.slot(op.v1), c.slot(op.v2), c.slot(op.result)
    rank = rank_of(op.v1)
    rows = np.maximum(np.array(op.mask.get_values(), np.int64), 0)

    def step(frame: Frame, context: Context) -> None:
        own = _uniform_context(frame, [a, b], context)
        values = [np.asarray(frame.get(s, context)) for s in (a, b)]
        if own is not None:
            values = [spread(v, own.count, rank) for v in values]
        lead = 0 if own is None else 1
        if rank == 0:
            values = [v[..., np.newaxis] for v in values]
        frame.set(out, np.take(np.concatenate(values, axis=lead), rows, axis=lead), own)

    return step


class _Position:
    """Which part of a vector extract and insert mean."""

    def __init__(self, c: Compiler, op: vector.ExtractOp | vector.InsertOp) -> None:
        self.op = op
        self.parts = [
            (p, False) if isinstance(p, int) else (c.slot(p), True) for p in op.get_mixed_position()
        ]
        self.dynamic = [slot for slot, dynamic in self.parts if dynamic]

    def index(
        self, frame: Frame, context: Context, shape: Sequence[int], lanes: int | None
    ) -> tuple[Any, ...]:
        """The numpy index; with lanes, the first axis goes over them."""
        found: list[Any] = [] if lanes is None else [np.arange(lanes)]
        for (part, dynamic), size in zip(self.parts, shape, strict=False):
            at = frame.get(part, context) if dynamic else part
            if np.size(at) and (np.min(at) < 0 or np.max(at) >= size):
                from uopc.interpreters.linear_core import bad_program

                raise bad_program(
                    "out-of-bounds",
                    f"'{self.op.name}' takes place {int(np.max(at))} of {size}",
                    self.op,
                )
            found.append(at)
        return tuple(found)


def extract(c: Compiler, op: vector.ExtractOp) -> Step:
    source, out = c.slot(op.vector), c.slot(op.result)
    position, shape = _Position(c, op), vector_shape(op.vector.type)

    def step(frame: Frame, context: Context) -> None:
        own = _uniform_context(frame, [source, *position.dynamic], context)
        value, lanes = np.asarray(frame.get(source, context)), None
        if own is not None:
            value, lanes = spread(value, own.count, len(shape)), own.count
        frame.set(out, value[position.index(frame, context, shape, lanes)], own)

    return step


def insert(c: Compiler, op: vector.InsertOp) -> Step:
    source, target, out = c.slot(op.source), c.slot(op.dest), c.slot(op.result)
    position, shape = _Position(c, op), vector_shape(op.dest.type)

    def step(frame: Frame, context: Context) -> None:
        own = _uniform_context(frame, [source, target, *position.dynamic], context)
        value, lanes = np.asarray(frame.get(target, context)), None
        if own is not None:
            value, lanes = spread(value, own.count, len(shape)), own.count
        changed = np.array(value)
        changed[position.index(frame, context, shape, lanes)] = frame.get(source, context)
        frame.set(out, changed, own)

    return step


def create_mask(c: Compiler, op: vector.CreateMaskOp) -> Step:
    """Set where the position is below the size, along every axis."""
    sizes, out = c.all(op.mask_dim_sizes), c.slot(op.mask_vector)
    shape = vector_shape(op.mask_vector.type)

    def step(frame: Frame, context: Context) -> None:
        mask: Any = np.ones(shape, np.bool_)
        for axis, slot in enumerate(sizes):
            size = np.asarray(frame.get(slot, context))
            size = size.reshape(*size.shape, *[1] * len(shape))
            along = np.arange(shape[axis]).reshape(
                [-1 if k == axis else 1 for k in range(len(shape))]
            )
            mask = mask & (along < size)
        frame.set(out, mask, _uniform_context(frame, sizes, context))

    return step


def bitcast(c: Compiler, op: vector.BitcastOp) -> Step:
    source, out = c.slot(op.source), c.slot(op.result)
    rank, row = rank_of(op.source), row_of(op.result.type)
    shape = vector_shape(op.result.type)

    def step(frame: Frame, context: Context) -> None:
        value = np.ascontiguousarray(frame.get(source, context))
        lead = value.shape[: value.ndim - rank]
        made = value.reshape(-1).view(row.numpy).reshape(*lead, *shape)
        frame.set(out, made, _uniform_context(frame, [source], context))

    return step


_KINDS = {
    "add": "add", "mul": "mul", "minsi": "min", "minui": "umin", "maxsi": "max", "maxui": "umax",
    "minimumf": "min", "maximumf": "max", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip


def reduction(c: Compiler, op: vector.ReductionOp) -> Step:
    """In the order of the elements: (((acc + v0) + v1) + …)."""
    source, out = c.slot(op.vector), c.slot(op.dest)
    start = None if op.acc is None else c.slot(op.acc)
    kind = str(op.kind.data.value)
    if kind in _KINDS:
        combine = combine_function(_KINDS[kind], op.dest.type)
    else:
        combine = _number_combine(kind, op.dest.type)
    slots = [source] if start is None else [source, start]

    def step(frame: Frame, context: Context) -> None:
        value = np.asarray(frame.get(source, context))
        parts = [value[..., k] for k in range(value.shape[-1])]
        if start is not None:
            parts.insert(0, frame.get(start, context))
        result = parts[0]
        for part in parts[1:]:
            result = combine(result, part)
        frame.set(out, result, _uniform_context(frame, slots, context))

    return step


def _number_combine(kind: str, type_: Attribute) -> Any:
    """minnumf, maxnumf."""
    from xdsl.dialects import arith
    from xdsl.ir import Block

    from uopc.interpreters.scalars import scalar_function

    block = Block(arg_types=[type_, type_])
    step = arith.MaxnumfOp if kind == "maxnumf" else arith.MinnumfOp
    op = step.create(operands=block.args, result_types=[type_])
    function = scalar_function(op)
    assert function is not None
    return function


VECTOR_HANDLERS: Mapping[type[Operation], Handler] = {
    vector.LoadOp: load,
    vector.StoreOp: store,
    vector.MaskedLoadOp: load,
    vector.MaskedStoreOp: store,
    vector.BroadcastOp: broadcast,
    vector.ShuffleOp: shuffle,
    vector.ExtractOp: extract,
    vector.InsertOp: insert,
    vector.CreateMaskOp: create_mask,
    vector.BitcastOp: bitcast,
    vector.ReductionOp: reduction,
}
