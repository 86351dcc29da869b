"""Runs kernels over index ranges (uloop) on numpy arrays.

A value is computed at all indices of the ranges that it varies over at once; sums of floats go
from step to step in the order that linearize writes down, so the results are the linear form's to
the bit. A load, read or store outside of its buffer is an error that names the op and the indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from uopc.dialects import kernel as k
from uopc.dialects import loop
from uopc.dialects.rounding import Array
from uopc.interpreters import loop_reduce as reduce
from uopc.interpreters.linear import LinearProgram
from uopc.interpreters.loop_access import checked, update
from uopc.interpreters.memory import unwritten_memory
from uopc.interpreters.scalar_types import row_of, where
from uopc.interpreters.scalars import (
    combine_function,
    constant_value,
    not_interpreted,
    scalar_function,
)
from uopc.interpreters.spread import (
    Spread,
    affine_value,
    all_of,
    full,
    together,
    uniform,
    union,
)

ELEMENT_LIMIT = 1 << 22
"""How many elements a value may have at once; where there are more, the stores go in parts."""

WHERE = "in a kernel over ranges"


def run_loop_kernel(kernel: k.KernelOp, sizes: Mapping[str, int], buffers: Sequence[Array]) -> None:
    """Run a kernel on its buffers, signless and in order, and write the outputs in place.

    Raises UopcError [out-of-bounds] and [not-interpreted].
    """
    with np.errstate(all="ignore"):
        _Kernel(kernel, sizes, buffers).run()


def is_over_ranges(kernel: k.KernelOp) -> bool:
    """Whether a kernel's body is at the level of uloop."""
    return not any(isinstance(op, k.ReadOp | k.WriteOp) for op in kernel.block.ops)


class _Kernel:
    """One run of a kernel."""

    def __init__(
        self, kernel: k.KernelOp, sizes: Mapping[str, int], buffers: Sequence[Array]
    ) -> None:
        self.kernel = kernel
        self.buffers: dict[SSAValue, Array] = dict(zip(kernel.buffers, buffers, strict=True))
        self.symbols: dict[SSAValue, Spread] = {
            argument: uniform(np.int64(sizes[s.name]))
            for s, argument in zip(kernel.symbol_vars, kernel.block.args, strict=False)
        }
        self.ops = list(kernel.block.ops)
        self.before = self._before()
        """What loads read: a buffer that is stored to as well as it was before the kernel."""
        ranges = [op for op in self.ops if isinstance(op, loop.RangeOp)]
        self.number = {op: position for position, op in enumerate(ranges)}
        self.position = {op: position for position, op in enumerate(self.ops)}
        self.free: dict[SSAValue, frozenset[int]] = {}
        for op in self.ops:
            self._find_free(op)
        self.guards = [op for op in self.ops if isinstance(op, loop.GuardOp)]
        self.extents: list[int] = []
        self.limits: list[loop.RangeOp] = []
        """Ranges that end where other ranges say."""
        for op in ranges:
            self._find_extent(op)

    # What is known before anything runs.

    def _before(self) -> dict[SSAValue, Array]:
        loaded = {op.buffer for op in self.ops if isinstance(op, loop.LoadOp)}
        stored = {op.buffer for op in self.ops if isinstance(op, loop.StoreOp)}
        return {
            buffer: array.copy() if buffer in loaded & stored else array
            for buffer, array in self.buffers.items()
        }

    def own(self, op: Operation) -> frozenset[int]:
        """The numbers of the ranges that a reduction or a tile binds."""
        over = op.over if isinstance(op, loop.ReduceOp | loop.TileOp) else ()
        return frozenset(self.number[cast(loop.RangeOp, o.owner)] for o in over)

    def free_operands(self, op: Operation) -> frozenset[int]:
        """The ranges that an op's operands vary over, those of its region included."""
        operands = [o for inner in op.walk() for o in inner.operands]
        return frozenset[int]().union(*(self.free.get(o, frozenset()) for o in operands))

    def _find_free(self, op: Operation) -> None:
        free = self.free_operands(op)
        if isinstance(op, loop.RangeOp):
            free |= {self.number[op]}
        free -= self.own(op)
        for result in op.results:
            self.free[result] = free

    def _find_extent(self, op: loop.RangeOp) -> None:
        self.extents.append(0)
        if op.constant_end is not None:
            self.extents[-1] = op.constant_end
            return
        part = _Part(self, {})
        end = part.end_of(op)
        self.extents[-1] = max(0, int(end.data.max(initial=0)))
        if end.axes:
            self.limits.append(op)

    def cone(self, values: Sequence[SSAValue]) -> list[Operation]:
        """The ops that some values are made of, in order."""
        found: set[Operation] = set()
        stack = list(values)
        while stack:
            owner = stack.pop().owner
            if isinstance(owner, Operation) and owner in self.position and owner not in found:
                found.add(owner)
                stack.extend(o for inner in owner.walk() for o in inner.operands)
        return sorted(found, key=self.position.__getitem__)

    @cached_property
    def program(self) -> LinearProgram:
        """The functions that scalars are computed by, as fmod."""
        module = self.kernel.parent_op()
        assert isinstance(module, ModuleOp)
        return LinearProgram(module)

    # Running.

    def run(self) -> None:
        for op in self.ops:
            if isinstance(op, loop.StoreOp | loop.UpdateOp):
                for part in self.parts(op):
                    part.write(op)

    def parts(self, op: loop.StoreOp | loop.UpdateOp) -> Sequence[_Part]:
        """A store as a whole, or in parts along one of its ranges where it is large."""
        cone = self.cone(op.operands)
        free = self.free_operands(op)
        wide = [self.free_operands(o) | self.own(o) for o in cone] + [free]
        total = max(self._count(w) for w in wide)
        bound = frozenset[int]().union(*(self.own(o) for o in cone))
        along = sorted(free - bound)
        if total <= ELEMENT_LIMIT or not along:
            return [_Part(self, {})]
        if isinstance(op, loop.StoreOp):  # the order of an update's elements counts
            along.sort(key=lambda axis: -self.extents[axis])
        axis = along[0]
        length = max(1, self.extents[axis] * ELEMENT_LIMIT // total)
        return [
            _Part(self, {axis: (start, min(start + length, self.extents[axis]))})
            for start in range(0, self.extents[axis], length)
        ]

    def _count(self, axes: frozenset[int]) -> int:
        return int(np.prod([self.extents[a] for a in axes], dtype=np.float64))


class _Part:
    """The values of a kernel at all indices, or at a slice of some ranges."""

    def __init__(self, kernel: _Kernel, slices: Mapping[int, tuple[int, int]]) -> None:
        self.kernel = kernel
        self.slices = slices
        self.values: dict[SSAValue, Spread] = {**kernel.symbols}
        self.tiles: dict[SSAValue, tuple[Array, tuple[int, ...]]] = {}
        self._conditions: list[tuple[Spread, frozenset[int]]] | None = None
        self.extents = list(kernel.extents)
        for axis, (start, stop) in slices.items():
            self.extents[axis] = stop - start

    def value(self, wanted: SSAValue) -> Spread:
        """A value; what it is made of is computed first, in the order of the body."""
        found = self.values.get(wanted)
        if found is not None:
            return found
        for op in self.kernel.cone([wanted]):
            if any(r not in self.values and r not in self.tiles for r in op.results):
                self.compute(op)
        return self.values[wanted]

    def compute(self, op: Operation) -> None:
        match op:
            case loop.RangeOp():
                axis = self.kernel.number[op]
                start, stop = self.slices.get(axis, (0, self.kernel.extents[axis]))
                result = Spread(np.arange(start, stop, dtype=np.int64), (axis,))
            case arith.ConstantOp():
                result = uniform(constant_value(op.value, op.result.type))
            case loop.LoadOp() | loop.ReadOp():
                result = self.load(op)
            case loop.IndexOp():
                result = self.as_number(op)
            case loop.ValueOp():
                result = self.as_index(op)
            case loop.ValidOp():
                result = self.all_hold(op.map, op.indices)
            case loop.ReduceOp():
                for value, total in zip(op.results, self.reduce(op), strict=True):
                    self.values[value] = total
                return
            case loop.TileOp():
                self.tiles[op.result] = self.tile(op)
                return
            case _:
                self.scalar(op)
                return
        self.values[op.results[0]] = result

    def scalar(self, op: Operation) -> None:
        operands = [self.value(o) for o in op.operands]
        axes = union(operands)
        function = scalar_function(op)
        if isinstance(op, func.CallOp):
            name, program = op.callee.string_value(), self.kernel.program
            results = program.elementwise(name, [o.at(axes) for o in operands])
        elif function is None:
            raise not_interpreted(op, WHERE)
        else:
            made = function(*(o.at(axes) for o in operands))
            results = made if len(op.results) > 1 else (made,)
        for value, result in zip(op.results, results, strict=True):
            self.values[value] = Spread(np.asarray(result), axes)

    # Indices and conditions.

    def expressions(self, map_: AffineMapAttr, operands: Sequence[SSAValue]) -> list[Spread]:
        dims = [self.value(o) for o in operands]
        return [affine_value(e, dims) for e in map_.data.results]

    def end_of(self, op: loop.RangeOp) -> Spread:
        """Where a range ends."""
        first, *others = self.expressions(op.end, op.operands_)
        for other in others:
            first = together(np.minimum, first, other)
        return first

    def all_hold(self, map_: AffineMapAttr, operands: Sequence[SSAValue]) -> Spread:
        """Where all expressions of a map are at least 0."""
        result = uniform(np.True_)
        for expression in self.expressions(map_, operands):
            result = together(np.logical_and, result, Spread(expression.data >= 0, expression.axes))
        return result

    def as_number(self, op: loop.IndexOp) -> Spread:
        (index,) = self.expressions(op.map, op.indices)
        row = row_of(op.result.type)
        data: Any = (index.data & 1) != 0 if row.is_bool else index.data.astype(row.numpy)
        return Spread(np.asarray(data), index.axes)

    def as_index(self, op: loop.ValueOp) -> Spread:
        (upper,) = self.expressions(op.upper, op.indices)
        number = self.value(op.operand)
        data = number.data
        if data.dtype == np.bool_:
            data = data.astype(np.int64) * (1 if op.signedness.data == "unsigned" else -1)
        elif op.signedness.data == "unsigned":
            data = data.view(f"u{data.dtype.itemsize}")
            data = np.minimum(data, data.dtype.type(min(np.iinfo(data.dtype).max, 2**63 - 1)))
        index = Spread(data.astype(np.int64), number.axes)
        lower = uniform(np.int64(op.lower.value.data))
        return together(np.maximum, together(np.minimum, index, upper), lower)

    def guards(self, visible: frozenset[int], touching: frozenset[int] | None) -> list[Spread]:
        """The guards over visible ranges; of those that touch some ranges only, if given."""
        return [
            condition
            for condition, ranges in self.conditions
            if ranges <= visible and (touching is None or ranges & touching)
        ]

    @property
    def conditions(self) -> list[tuple[Spread, frozenset[int]]]:
        """What must hold for anything to happen, each with the ranges that it is about."""
        if self._conditions is None:
            self._conditions = []
            for guard in self.kernel.guards:
                for value in self.expressions(guard.map, guard.indices):
                    holds = Spread(value.data >= 0, value.axes)
                    self._conditions.append((holds, frozenset(value.axes)))
            for op in self.kernel.limits:
                inside = together(np.less, self.value(op.result), self.end_of(op))
                self._conditions.append((inside, frozenset(inside.axes)))
        return self._conditions

    # Memory.

    def needed(self, op: loop.AccessOp, free: frozenset[int]) -> Spread | None:
        """Where an element is asked for; None for everywhere."""
        conditions = [] if op.where is None else [self.all_hold(op.where, op.indices)]
        for condition, _ in self.conditions:
            # A guard over other ranges too asks for the element if it does at any of their indices.
            others = tuple(n for n, axis in enumerate(condition.axes) if axis not in free)
            kept = tuple(axis for axis in condition.axes if axis in free)
            if kept:
                conditions.append(Spread(np.asarray(condition.data.any(axis=others)), kept))
        return together(all_of, *conditions) if conditions else None

    def load(self, op: loop.LoadOp | loop.ReadOp) -> Spread:
        free = self.kernel.free_operands(op)
        indices = self.expressions(op.map, op.indices)
        mask = self.needed(op, free)
        data: Array
        outer: tuple[int, ...] = ()
        if op.buffer in self.kernel.before:
            data = self.kernel.before[op.buffer]
        else:
            if op.buffer not in self.tiles:
                for each in self.kernel.cone([op.buffer]):
                    self.compute(each)
            data, outer = self.tiles[op.buffer]
        spreads = [*indices, *([] if mask is None else [mask])]
        axes = tuple(sorted({*union(spreads), *outer}))
        places: list[Any] = [
            Spread(np.arange(self.extents[axis]), (axis,)).at(axes) for axis in outer
        ]
        own = [index.at(axes) for index in indices]
        allowed = None if mask is None else mask.at(axes)
        shape = data.shape[len(outer) :]
        own = checked(op, own, shape, allowed)
        result: Any
        if 0 in data.shape:
            result = np.zeros(np.broadcast_shapes(*(o.shape for o in own)), data.dtype)
        else:
            result = np.asarray(data[(*places, *own)])
            result = result.reshape(result.shape or [1] * len(axes))
        if allowed is not None and (isinstance(op, loop.LoadOp) or op.where):
            result = where(allowed, result, data.dtype.type(0))
        return Spread(np.asarray(result), axes)

    def tile(self, op: loop.TileOp) -> tuple[Array, tuple[int, ...]]:
        """A tile's elements, and the ranges that it is filled for; those axes come first."""
        value = self.value(op.value)
        over = [self.kernel.number[cast(loop.RangeOp, o.owner)] for o in op.over]
        outer = tuple(axis for axis in value.axes if axis not in over)
        axes = tuple(sorted({*outer, *over}))
        data = full(value, axes, self.extents)
        data = np.transpose(data, [axes.index(axis) for axis in (*outer, *over)])
        shape = [self.extents[axis] for axis in outer]
        places = k.buffer_of(op.result).get_shape()
        row = row_of(op.value.type)
        whole = unwritten_memory(int(np.prod([*shape, *places], dtype=np.int64)), row)
        whole = whole.reshape(*shape, *places)
        whole[(..., *(slice(0, self.extents[axis]) for axis in over))] = data
        return whole, outer

    def write(self, op: loop.StoreOp | loop.UpdateOp) -> None:
        free = self.kernel.free_operands(op)
        axes = tuple(sorted(free))
        indices = self.expressions(op.map, op.indices)
        masks = [] if op.where is None else [self.all_hold(op.where, op.indices)]
        masks += self.guards(free, None)
        shape = [self.extents[axis] for axis in axes]
        values = np.broadcast_to(self.value(op.value).at(axes), shape).reshape(-1)
        own = [np.broadcast_to(i.at(axes), shape).reshape(-1) for i in indices]
        if masks:
            mask = np.broadcast_to(together(all_of, *masks).at(axes), shape).reshape(-1)
            values, own = values[mask], [o[mask] for o in own]
        target = self.kernel.buffers[op.buffer]
        if not values.size:
            return
        own = checked(op, own, target.shape, None)
        if isinstance(op, loop.StoreOp) or op.kind.data == "set":
            target[tuple(own)] = values if own else values[-1]
        else:
            combine = combine_function(op.kind.data, op.value.type)
            update(target, own, values, combine)

    # Reductions.

    def reduce(self, op: loop.ReduceOp) -> list[Spread]:
        kernel = self.kernel
        ranges = [cast(loop.RangeOp, o.owner) for o in op.over]
        own = kernel.own(op)
        free = kernel.free_operands(op) | own
        masks = self.guards(free, own)
        inputs = [self.value(v) for v in op.values]
        captured = reduce.captured(op)
        outer = {v: self.value(v) for v in captured}
        initial = [self.value(v) for v in op.init]
        everything = [*inputs, *outer.values(), *initial, *masks]
        rest = tuple(axis for axis in union(everything) if axis not in own)
        order = reduce.step_order(ranges, kernel.number)
        values = [self._steps(v, order, rest) for v in (*inputs, *outer.values())]
        mask = self._steps(together(all_of, *masks), order, rest) if masks else None
        if op.kind is not None:
            kind, type_ = op.kind.data, op.results[0].type
            result = reduce.by_kind(kind, type_, ranges, values, mask)
        else:
            start = [i.at(rest) for i in initial]
            combine = reduce.region(op.combiner.block, captured)
            result = reduce.by_region(combine, ranges, start, values, mask)
        shape = [self.extents[axis] for axis in rest]
        return [Spread(np.array(np.broadcast_to(r, shape)), rest) for r in result]

    def _steps(self, value: Spread, order: Sequence[int], rest: tuple[int, ...]) -> Array:
        """The values step by step along the first axis, then the axes that stay."""
        axes = tuple(sorted((*order, *rest)))
        data = full(value, axes, self.extents)
        data = np.transpose(data, [axes.index(axis) for axis in (*order, *rest)])
        steps = int(np.prod([self.extents[axis] for axis in order], dtype=np.int64))
        return data.reshape(steps, *(self.extents[axis] for axis in rest))
