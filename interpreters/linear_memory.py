"""The ops of memref: loads, stores, and everything that makes a memref of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType
from xdsl.dialects.utils import get_dynamic_index_list
from xdsl.ir import Attribute, Operation, SSAValue

from uopc.dialects.gpu_extensions import is_workgroup
from uopc.dialects.memref_extensions import PrefetchOp
from uopc.dialects.rounding import Array
from uopc.interpreters.lanes import Context, Frame
from uopc.interpreters.linear_core import (
    Compiler,
    Handler,
    Machine,
    NotTogetherError,
    Step,
    bad_program,
    uniform_int,
)
from uopc.interpreters.memory import (
    MemRef,
    allocate,
    check_writable,
    element_places,
    row_of_memref,
    turns,
    view,
)
from uopc.interpreters.scalars import combine_function
from uopc.interpreters.speculation import Conflict

Buffer = MemRefType[Attribute]


def note_read(
    machine: Machine, m: MemRef, place: Any, context: Context, op: Operation, active: Any = None
) -> None:
    """Tell whoever watches this memory of a load. Raises Conflict."""
    for watch in machine.speculations:
        if m.buffer in watch.tracked:
            try:
                watch.read(m, place, context, active)
            except Conflict as conflict:
                conflict.op = op
                raise


def note_write(
    machine: Machine, m: MemRef, place: Any, context: Context, op: Operation, active: Any = None
) -> None:
    """Tell whoever watches this memory of a store. Raises Conflict."""
    for watch in machine.speculations:
        if m.buffer in watch.tracked:
            try:
                watch.write(m, place, context, active)
            except Conflict as conflict:
                conflict.op = op
                raise


def is_array(place: Any) -> bool:
    return isinstance(place, np.ndarray) and place.ndim > 0


def load(c: Compiler, op: memref.LoadOp) -> Step:
    source, indices, out = c.slot(op.memref), c.all(op.indices), c.slot(op.res)
    machine = c.machine

    def step(frame: Frame, context: Context) -> None:
        buffer: MemRef = frame.get(source, context)
        place = element_places(buffer, [frame.get(s, context) for s in indices], op)
        if machine.speculations:
            note_read(machine, buffer, place, context, op)
        frame.values[out] = buffer.data[place]
        frame.contexts[out] = context if is_array(place) else None

    return step


def store(c: Compiler, op: memref.StoreOp) -> Step:
    target, indices, value = c.slot(op.memref), c.all(op.indices), c.slot(op.value)
    machine = c.machine

    def step(frame: Frame, context: Context) -> None:
        buffer: MemRef = frame.get(target, context)
        check_writable(buffer, op)
        place = element_places(buffer, [frame.get(s, context) for s in indices], op)
        if machine.speculations:
            note_write(machine, buffer, place, context, op)
        stored = frame.get(value, context)
        if not is_array(place) and not frame.is_uniform(value):
            stored = stored[-1]  # all lanes write one element, and the last comes last
        buffer.data[place] = stored

    return step


_ATOMIC_KINDS = {0: "add", 1: "add", 3: "max", 4: "max", 5: "umax", 6: "min", 7: "min", 8: "umin",
                 9: "mul", 10: "mul", 11: "or", 12: "and"}  # fmt: skip
_ATOMIC_ASSIGN = 2


def atomic_rmw(c: Compiler, op: memref.AtomicRMWOp) -> Step:
    """The element combined with a value; the old element is the result."""
    target, indices = c.slot(op.memref), c.all(op.indices)
    value, out = c.slot(op.value), c.slot(op.result)
    number = int(cast("IntegerAttr[Any]", op.kind).value.data)
    kind = _ATOMIC_KINDS.get(number)
    if kind is None and number != _ATOMIC_ASSIGN:
        raise bad_program("not-interpreted", f"an atomic update of kind {number}", op)
    combine = None if kind is None else combine_function(kind, op.value.type)
    machine = c.machine

    def step(frame: Frame, context: Context) -> None:
        buffer: MemRef = frame.get(target, context)
        check_writable(buffer, op)
        place = element_places(buffer, [frame.get(s, context) for s in indices], op)
        if machine.blocks is not None and context is not None:
            new, place = (
                np.broadcast_to(x, context.count) for x in (frame.get(value, context), place)
            )
            frame.set(out, _in_turn(buffer.data, place, new, combine), context)
            return
        if context is not None and not is_array(place):
            raise NotTogetherError(op)
        if machine.speculations:
            note_read(machine, buffer, place, context, op)
            note_write(machine, buffer, place, context, op)
        old, new = buffer.data[place], frame.get(value, context)
        buffer.data[place] = new if combine is None else combine(old, new)
        frame.set(out, old, context if is_array(place) else None)

    return step


def _in_turn(data: Array, places: Array, values: Array, combine: Any) -> Array:
    """Threads update elements one after the other, in their order; what each of them found."""
    found = np.empty(len(places), data.dtype)
    for chosen in turns(places):
        at = places[chosen]
        found[chosen] = data[at]
        data[at] = values[chosen] if combine is None else combine(found[chosen], values[chosen])
    return found


def alloc(c: Compiler, op: memref.AllocOp | memref.AllocaOp) -> Step:
    return allocation(c, op, op.memref, op.dynamic_sizes)


def allocation(c: Compiler, op: Operation, made: SSAValue, given: Sequence[SSAValue]) -> Step:
    """Memory of one's own for each lane; on a GPU, of a block's own where the type says so."""
    out, sizes = c.slot(made), c.all(given)
    type_, machine = cast(Buffer, made.type), c.machine
    in_workgroup = is_workgroup(type_)

    def step(frame: Frame, context: Context) -> None:
        lanes = None if context is None else context.count
        given = [uniform_int(frame, s, op) for s in sizes]
        if in_workgroup and machine.blocks is not None:
            frame.set(out, *machine.blocks.shared(type_, given, context))
            return
        frame.set(out, allocate(type_, given, lanes), context)

    return step


def get_global(c: Compiler, op: memref.GetGlobalOp) -> None:
    """A global's memory, which is there before the function starts."""
    name = op.name_.string_value()
    found = c.machine.globals.get(name)
    if found is None:
        raise bad_program("not-interpreted", f"there is no memref.global @{name}", op)
    c.constants.append((c.slot(op.memref), found))


def _changed(c: Compiler, source: SSAValue, result: SSAValue, change: Any) -> Step:
    """A step that makes a memref of another, `change(memref, frame, context)`."""
    a, out = c.slot(source), c.slot(result)

    def step(frame: Frame, context: Context) -> None:
        made = change(frame.get(a, context), frame, context)
        frame.set(out, made, context if is_array(made.offset) else None)

    return step


def view_of_bytes(c: Compiler, op: memref.ViewOp) -> Step:
    shift, sizes = c.slot(op.byte_shift), c.all(op.sizes)
    type_ = op.result.type
    row = row_of_memref(type_)

    def change(source: MemRef, frame: Frame, context: Context) -> MemRef:
        if is_array(source.offset):
            raise NotTogetherError(op)
        given = iter([uniform_int(frame, s, op) for s in sizes])
        shape = [next(given) if n == DYNAMIC_INDEX else n for n in type_.get_shape()]
        return view(source, uniform_int(frame, shift, op), shape, row, op)

    return _changed(c, op.source, op.result, change)


Mixed = Sequence[tuple[int, bool]]
"""Numbers, and slots of values (true)."""


def _mixed(c: Compiler, static: Any, dynamic: Sequence[SSAValue]) -> Mixed:
    values = get_dynamic_index_list(static.get_values(), dynamic, DYNAMIC_INDEX)
    return [(v, False) if isinstance(v, int) else (c.slot(v), True) for v in values]


def _ints(mixed: Mixed, frame: Frame, op: Operation) -> list[int]:
    return [uniform_int(frame, v, op) if dynamic else v for v, dynamic in mixed]


def _any(mixed: Mixed, frame: Frame, context: Context) -> list[Any]:
    return [frame.get(v, context) if dynamic else v for v, dynamic in mixed]


def subview(c: Compiler, op: memref.SubviewOp) -> Step:
    offsets = _mixed(c, op.static_offsets, op.offsets)
    sizes = _mixed(c, op.static_sizes, op.sizes)
    strides = _mixed(c, op.static_strides, op.strides)
    kept = _kept_axes(op)

    def change(source: MemRef, frame: Frame, context: Context) -> MemRef:
        starts, shape = _any(offsets, frame, context), _ints(sizes, frame, op)
        steps = _ints(strides, frame, op)
        offset = source.offset
        for start, stride in zip(starts, source.strides, strict=True):
            offset = offset + start * stride
        _check_part(source, starts, shape, steps, op)
        own = [a * b for a, b in zip(steps, source.strides, strict=True)]
        return replace(
            source,
            offset=offset,
            shape=tuple(shape[k] for k in kept),
            strides=tuple(own[k] for k in kept),
        )

    return _changed(c, op.source, op.result, change)


def _kept_axes(op: memref.SubviewOp) -> list[int]:
    """The axes of the source that a rank-reduced result has: axes of size 1 may be dropped."""
    wanted = list(op.result.type.get_shape())
    static = list(op.static_sizes.get_values())
    kept: list[int] = []
    for axis, size in enumerate(static):
        left = len(static) - axis - 1
        missing = len(wanted) - len(kept)
        if missing > 0 and (
            size != 1 or (wanted[len(kept)] == 1 and (missing > left or static != wanted))
        ):
            kept.append(axis)
    if len(kept) != len(wanted):
        kept = list(range(len(static)))[: len(wanted)]
    return kept


def _check_part(
    source: MemRef, starts: Sequence[Any], shape: Sequence[int], steps: Sequence[int], op: Operation
) -> None:
    if not all(shape):
        return
    for axis, (start, size, step) in enumerate(zip(starts, shape, steps, strict=True)):
        first, last = np.min(start), np.max(start) + (size - 1) * step
        if min(first, last) < 0 or max(first, last) >= source.shape[axis]:
            raise bad_program(
                "out-of-bounds",
                f"'{op.name}' takes {int(first)} to {int(last)} of axis {axis}, which has "
                f"{source.shape[axis]} places",
                op,
            )


def reinterpret_cast(c: Compiler, op: memref.ReinterpretCastOp) -> Step:
    offsets = _mixed(c, op.static_offsets, op.offsets)
    sizes = _mixed(c, op.static_sizes, op.sizes)
    strides = _mixed(c, op.static_strides, op.strides)

    def change(source: MemRef, frame: Frame, context: Context) -> MemRef:
        (offset,) = _any(offsets, frame, context)
        shape, steps = _ints(sizes, frame, op), _ints(strides, frame, op)
        if all(shape):
            # Counted from element 0 of the memory, whatever part of it the source is.
            ends = [(n - 1) * s for n, s in zip(shape, steps, strict=True)]
            low = np.min(offset) + sum(e for e in ends if e < 0)
            high = np.max(offset) + sum(e for e in ends if e > 0)
            if low < 0 or high >= source.data.size:
                raise bad_program(
                    "out-of-bounds",
                    f"'{op.name}' reaches from element {int(low)} to {int(high)} of "
                    f"{source.data.size}",
                    op,
                )
        return replace(source, offset=offset, shape=tuple(shape), strides=tuple(steps))

    return _changed(c, op.source, op.result, change)


def cast_type(c: Compiler, op: memref.CastOp | memref.MemorySpaceCastOp) -> Step:
    """The same memory under another type; sizes that the type states must be those there are."""
    type_ = op.dest.type
    stated = type_.get_shape() if isinstance(type_, MemRefType) else None

    def change(source: MemRef, frame: Frame, context: Context) -> MemRef:
        if stated is not None and any(
            n not in (DYNAMIC_INDEX, have) for n, have in zip(stated, source.shape, strict=True)
        ):
            raise bad_program("bad-cast", f"a buffer of shape {source.shape} is no {type_}", op)
        return source

    return _changed(c, op.source, op.dest, change)


def same(c: Compiler, op: Operation) -> Step:
    def change(source: MemRef, frame: Frame, context: Context) -> MemRef:
        return source

    return _changed(c, op.operands[0], op.results[0], change)


def _groups(op: memref.AlterShapeOperation) -> list[list[int]]:
    groups = cast("ArrayAttr[ArrayAttr[IntegerAttr[Any]]]", op.reassociation)
    return [[int(n.value.data) for n in group.data] for group in groups.data]


def collapse(c: Compiler, op: memref.CollapseShapeOp) -> Step:
    groups = _groups(op)

    def change(source: MemRef, frame: Frame, context: Context) -> MemRef:
        shape: list[int] = []
        strides: list[int] = []
        for group in groups:
            parts = [(source.shape[k], source.strides[k]) for k in group]
            shape.append(int(np.prod([n for n, _ in parts], dtype=np.int64)))
            real = [p for p in parts if p[0] != 1] or parts[-1:]
            strides.append(real[-1][1])
            for (_, outer), (size, inner) in pairwise(real):
                if outer != size * inner:
                    raise bad_program("bad-cast", "axes that are apart cannot be one", op)
        return replace(source, shape=tuple(shape), strides=tuple(strides))

    return _changed(c, op.src, op.result, change)


def expand(c: Compiler, op: memref.ExpandShapeOp) -> Step:
    groups = _groups(op)
    sizes = _mixed(c, op.static_output_shape, op.output_shape)

    def change(source: MemRef, frame: Frame, context: Context) -> MemRef:
        shape = _ints(sizes, frame, op)
        strides = [0] * len(shape)
        for axis, group in enumerate(groups):
            step = source.strides[axis]
            for k in reversed(group):
                strides[k], step = step, step * shape[k]
            if np.prod([shape[k] for k in group], dtype=np.int64) != source.shape[axis]:
                raise bad_program("bad-cast", f"axis {axis} of {source.shape} is no {shape}", op)
        return replace(source, shape=tuple(shape), strides=tuple(strides))

    return _changed(c, op.src, op.result, change)


def dim(c: Compiler, op: memref.DimOp) -> Step:
    source, index, out = c.slot(op.source), c.slot(op.index), c.slot(op.result)

    def step(frame: Frame, context: Context) -> None:
        buffer: MemRef = frame.get(source, context)
        axis = uniform_int(frame, index, op)
        if not 0 <= axis < len(buffer.shape):
            raise bad_program("out-of-bounds", f"axis {axis} of shape {buffer.shape}", op)
        frame.set(out, np.int64(buffer.shape[axis]), None)

    return step


def rank(c: Compiler, op: memref.RankOp) -> None:
    count = cast(Buffer, op.source.type).get_num_dims()
    c.constants.append((c.slot(op.rank), np.int64(count)))


def copy(c: Compiler, op: memref.CopyOp) -> Step:
    return copied(c, op, op.source, op.destination)


def copied(c: Compiler, op: Operation, a: SSAValue, b: SSAValue) -> Step:
    """All elements of one memref into another."""
    source, target = c.slot(a), c.slot(b)

    def step(frame: Frame, context: Context) -> None:
        a: MemRef = frame.get(source, context)
        b: MemRef = frame.get(target, context)
        if is_array(a.offset) or is_array(b.offset):
            raise NotTogetherError(op)
        check_writable(b, op)
        if a.shape != b.shape:
            raise bad_program("bad-cast", f"shape {a.shape} copied to shape {b.shape}", op)
        b.array[...] = a.array.copy()

    return step


def metadata(c: Compiler, op: memref.ExtractStridedMetaDataOp) -> Step:
    source = c.slot(op.source)
    base, offset = c.slot(op.base_buffer), c.slot(op.offset)
    sizes, strides = c.all(op.sizes), c.all(op.strides)

    def step(frame: Frame, context: Context) -> None:
        m: MemRef = frame.get(source, context)
        own = context if is_array(m.offset) else None
        frame.set(base, replace(m, offset=0, shape=(), strides=()), None)
        frame.set(offset, m.offset if is_array(m.offset) else np.int64(m.offset), own)
        for slots, numbers in ((sizes, m.shape), (strides, m.strides)):
            for slot, number in zip(slots, numbers, strict=True):
                frame.set(slot, np.int64(number), None)

    return step


def nothing(c: Compiler, op: Operation) -> None:
    """Memory is freed when nobody refers to it, and has no caches to ask for."""


MEMORY_HANDLERS: Mapping[type[Operation], Handler] = {
    memref.LoadOp: load,
    memref.StoreOp: store,
    memref.AtomicRMWOp: atomic_rmw,
    memref.AllocOp: alloc,
    memref.AllocaOp: alloc,
    memref.DeallocOp: nothing,
    PrefetchOp: nothing,
    memref.GetGlobalOp: get_global,
    memref.ViewOp: view_of_bytes,
    memref.SubviewOp: subview,
    memref.ReinterpretCastOp: reinterpret_cast,
    memref.CastOp: cast_type,
    memref.MemorySpaceCastOp: cast_type,
    memref.AssumeAlignmentOp: same,
    memref.CollapseShapeOp: collapse,
    memref.ExpandShapeOp: expand,
    memref.DimOp: dim,
    memref.RankOp: rank,
    memref.CopyOp: copy,
    memref.ExtractStridedMetaDataOp: metadata,
}

VIEWS: frozenset[type[Operation]] = frozenset(
    (memref.ViewOp, memref.SubviewOp, memref.ReinterpretCastOp, memref.CastOp,
     memref.MemorySpaceCastOp, memref.AssumeAlignmentOp, memref.CollapseShapeOp,
     memref.ExpandShapeOp)
)  # fmt: skip
"""Ops whose result is the memory of their first operand."""
