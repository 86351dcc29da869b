"""rangeify: a kernel's tensor body becomes a DAG over index ranges.

    ukernel.kernel @r_4 ins(%x : memref<4x8xf32>) outs(%o : memref<4xf32>) {
      %0 = ukernel.read %x : memref<4x8xf32> -> tensor<4x8xf32>
      %1 = utensor.reduce max %0 axes [1] : tensor<4x8xf32> -> tensor<4xf32>
      ukernel.write %1, %o : tensor<4xf32>, memref<4xf32>
    }

becomes

    ukernel.kernel @r_4 ins(%x : memref<4x8xf32>) outs(%o : memref<4xf32>) {
      %i = uloop.range 4
      %j = uloop.range 8 reduce
      %0 = uloop.load %x[%i, %j] : memref<4x8xf32>
      %1 = uloop.reduce max %0 over (%j) : f32
      uloop.store %1, %o[%i] : memref<4xf32>
    }

Each written element asks for the elements it is made of. Movement ops change the index asked for
and vanish; a value asked for twice at one index is one value. A pad's condition travels to the
loads below it, which must not touch memory outside their buffers.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects import kernel, loop, tensor
from uopc.dialects.element_types import ElementType, accumulator, element_type_named, signless
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, RangeVar, as_expr, at_least, value
from uopc.dialects.locations import location_of
from uopc.dialects.numbers import scalar_value
from uopc.dialects.sizes import Size, element_count, size, size_upper, sizes_of
from uopc.dialects.tensor_elementwise import (
    BitcastOp,
    CastOp,
    CmpleOp,
    CmpltOp,
    WhereOp,
    element_of,
    tensor_of,
)
from uopc.dialects.tensor_movement import MovementOp, PadOp, int_values
from uopc.passes.float_remainder import ensure_float_remainder
from uopc.passes.index_maps import Index, pad_conditions, source_index
from uopc.passes.loop_builder import LoopBuilder
from uopc.passes.range_input import check_no_tensor_function
from uopc.passes.range_names import RangeNames
from uopc.passes.reductions import argreduce, combine_kind, identity
from uopc.passes.row_tiles import Axes, row_tiles
from uopc.passes.scalar_ops import (
    BINARY,
    UNARY,
    bitcast_scalar,
    cast_scalar,
    known_constant,
)


class Demand(NamedTuple):
    """An element that is asked for: of which tensor, at which index, and when it matters.

    Outside of where all of `valid` are at least 0 any value will do, but memory outside of
    buffers must not be read.
    """

    tensor: SSAValue
    at: Index
    valid: tuple[Expr, ...]


Answer = Generator[Demand, SSAValue, SSAValue]


@dataclass(frozen=True)
class RangeifyPass(ModulePass):
    """Turn kernels of tensor ops into kernels over index ranges.

    Raises UopcError [not-over-ranges] for a function on tensors that kernelize has not cut.
    """

    name = "rangeify"

    tile_rows: bool = False
    """Whether dear values that a row's loops read several times are kept in tiles: row_tiles.py."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_no_tensor_function(op, "kernelize", self.name)
        needs_remainder = False
        for kernel_op in list(op.body.block.ops):
            if isinstance(kernel_op, kernel.KernelOp) and _is_on_tensors(kernel_op):
                lowering = _Rangeify(kernel_op)
                if self.tile_rows:
                    lowering.tiles = row_tiles(kernel_op.block)
                lowering.run()
                needs_remainder |= lowering.builder.calls_fmod
        if needs_remainder:
            ensure_float_remainder(op)


def _is_on_tensors(op: kernel.KernelOp) -> bool:
    return any(isinstance(o, kernel.WriteOp | kernel.ReadOp) for o in op.block.ops)


class _Rangeify:
    """Rebuilds the body of one kernel."""

    def __init__(self, op: kernel.KernelOp) -> None:
        self.kernel = op
        self.old = op.block
        self.new = Block(arg_types=[kernel.signless_type(a.type) for a in self.old.args])
        self.loops = LoopBuilder(self.new)
        self.builder = self.loops.scalars
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.answers: dict[Demand, SSAValue] = {}
        self.zero_when_invalid: dict[SSAValue, frozenset[Expr]] = {}
        self.names = RangeNames(s.name for s in op.symbol_vars)
        self.tiles: dict[SSAValue, Axes] = {}
        """The values that are kept a row at a time, and the axes of a row."""
        self.rows: dict[tuple[SSAValue, Index], SSAValue] = {}
        """The tiles that there are: of which value, and for which row."""
        self.at: dict[SSAValue, Expr] = {}
        """The integers that are positions, and which."""
        self.written: Index = ()
        """Where the kernel writes."""
        self.indices: dict[tuple[Size, ...], Index] = {}
        """The index of results of some sizes."""
        for old, new in zip(self.old.args, self.new.args, strict=True):
            new.name_hint = old.name_hint
            self.buffers[old] = new
        for symbol, argument in zip(op.symbol_vars, self.new.args, strict=False):
            self.loops.leaf_values[symbol] = argument

    def run(self) -> None:
        for op in self.old.ops:
            if isinstance(op, kernel.WriteOp):
                self.builder.location = op.location
                self.write(op)
                assert self.new.last_op is not None
                self.new.last_op.location = op.location
        region = self.kernel.body
        region.detach_block(self.old)
        region.add_block(self.new)
        self.old.erase(safe_erase=False)

    def range(self, end: Size, kind: str = "loop") -> Expr:
        """A new range, or 0 where its only index is 0."""
        return as_expr(0) if end == 1 else self.loops.range(self.names.next(), end, kind)

    # Writing.

    def write(self, op: kernel.WriteOp) -> None:
        owner = op.value.owner
        if isinstance(owner, tensor.ScatterOp):
            self.write_scatter(owner, op.buffer)
            return
        index = self.written_index(sizes_of(tensor_of(op.value)))
        self.written = index
        stored = self.answer(Demand(op.value, index, ()))
        self.store(stored, op.buffer, index)

    def written_index(self, sizes: Sequence[Size]) -> Index:
        """New ranges for a result; those of another result of the same sizes, if there is one, so
        that what both are made of is one value."""
        key = tuple(sizes)
        found = self.indices.get(key)
        if found is None:
            found = self.indices[key] = tuple(self.range(n) for n in sizes)
        return found

    def store(self, stored: SSAValue, buffer: SSAValue, index: Index) -> None:
        operands, map_ = self.loops.map_of(index)
        self.new.add_op(loop.StoreOp(stored, self.buffers[buffer], operands, map_))

    def write_scatter(self, op: tensor.ScatterOp, buffer: SSAValue) -> None:
        sizes, axis = sizes_of(tensor_of(op.operand)), op.axis.value.data
        source = op.operand.owner
        if not (isinstance(source, kernel.ReadOp) and source.buffer is buffer):  # not in place
            index = tuple(self.range(n) for n in sizes)
            self.store(self.answer(Demand(op.operand, index, ())), buffer, index)
        update = tuple(self.range(n) for n in sizes_of(tensor_of(op.updates)))
        rank = len(sizes_of(tensor_of(op.indices)))
        where = update[axis : axis + rank]
        # One below and one beyond the axis stand for all that is outside.
        position = self.number_as_index(op.indices, where, (), -1, sizes[axis])
        target = (*update[:axis], position, *update[axis + rank :])
        added = self.answer(Demand(op.updates, update, ()))
        conditions = [position, as_expr(sizes[axis]) - 1 - position]
        # One update an index, also along axes on which neither the number nor its place depends.
        conditions += self.unmentioned(update, added, target)
        operands, map_, valid = self.loops.access_maps(target, conditions)
        row = element_of(tensor_of(op.operand))
        kind = "set" if op.kind.data == "set" else combine_kind(op.kind.data, row)
        self.new.add_op(loop.UpdateOp(kind, added, self.buffers[buffer], operands, map_, valid))

    def unmentioned(self, ranges: Index, number: SSAValue, place: Index) -> list[Expr]:
        """Those of some ranges on which neither a number nor its place depends."""
        pending = [number]
        pending += [self.loops.leaf_values[leaf] for expr in place for leaf in expr.leaves]
        seen: set[SSAValue] = set()
        while pending:
            current = pending.pop()
            if current not in seen:
                seen.add(current)
                if isinstance(current.owner, Operation):
                    pending.extend(current.owner.operands)
        leaves = [(expr, expr.leaf) for expr in ranges]
        return [
            e for e, leaf in leaves if leaf is not None and self.loops.leaf_values[leaf] not in seen
        ]

    # Reading: a demand is answered by a generator that makes further demands.

    def answer(self, demand: Demand) -> SSAValue:
        """The scalar that a demand asks for. A stack of generators: depth costs no recursion."""
        stack: list[tuple[Demand, Answer]] = []
        current: Demand | None = demand
        result: SSAValue | None = None
        while True:
            if current is not None:
                result = self.answers.get(current)
                if result is None:
                    stack.append((current, self.compute(current)))
                current = None
            elif not stack:
                assert result is not None
                return result
            else:
                asked, generator = stack[-1]
                owner = asked.tensor.owner
                self.builder.location = owner.location if isinstance(owner, Operation) else None
                try:
                    current = generator.send(result)  # pyright: ignore[reportArgumentType]  # None starts a generator
                    result = None
                except StopIteration as stop:
                    stack.pop()
                    result = stop.value
                    assert result is not None
                    self.answers[asked] = result
                    if result.name_hint is None:
                        result.name_hint = asked.tensor.name_hint

    def compute(self, demand: Demand) -> Answer:
        op = demand.tensor.owner
        if not isinstance(op, Operation):
            raise AssertionError("a kernel's tensors are made by ops")
        row = element_of(tensor_of(demand.tensor))
        if element_count(sizes_of(tensor_of(demand.tensor))) == 0:
            return self.builder.constant(0, row)  # no element is ever asked for at run time
        axes = self.tiles.get(demand.tensor)
        if axes is not None and not demand.valid and self.is_row(demand.at, axes):
            return (yield from self.from_row(demand, axes))
        if type(op) in UNARY:
            return (yield from self.unary(op, demand))
        if type(op) in BINARY:
            return (yield from self.binary(op, demand))
        match op:
            case WhereOp():
                return (yield from self.where(op, demand))
            case CastOp() | BitcastOp():
                return (yield from self.convert(op, demand))
            case kernel.ReadOp():
                return self.read(op, demand)
            case tensor.ConstantOp():
                return self.constant(op)
            case tensor.IotaOp():
                return self.iota(op, demand)
            case tensor.ReduceOp():
                return (yield from self.reduce(op, demand))
            case tensor.ArgreduceOp():
                return (yield from self.argreduce(op, demand))
            case tensor.GatherOp():
                return (yield from self.gather(op, demand))
            case tensor.StageOp():
                return (yield demand._replace(tensor=op.operand))
            case PadOp():
                return (yield from self.pad(op, demand))
            case MovementOp():
                return (yield Demand(op.operand, source_index(op, demand.at), demand.valid))
            case _:
                raise UopcError(
                    "no-index-form",
                    f"{op.name} has no form over index ranges here",
                    hint="a scatter must be written to a buffer as it is: run kernelize",
                    location=location_of(op),
                )

    # Rows that are kept.

    def is_row(self, at: Index, axes: Axes) -> bool:
        """Whether an index without some axes is that of the kernel's outermost loops."""
        outer = [e for e in self.written if e.leaf is not None]
        mentioned = [e for k, e in enumerate(at) if k not in axes and e != as_expr(0)]
        return mentioned == outer[: len(mentioned)]

    def from_row(self, demand: Demand, axes: Axes) -> Answer:
        """An element of a row that is computed as a whole before."""
        row = tuple(e for k, e in enumerate(demand.at) if k not in axes)
        tile = self.rows.get((demand.tensor, row))
        if tile is None:
            sizes = sizes_of(tensor_of(demand.tensor))
            fresh = {k: self.range(sizes[k]) for k in axes}
            at = tuple(fresh.get(k, e) for k, e in enumerate(demand.at))
            tiled = self.tiles.pop(demand.tensor)
            value = yield demand._replace(at=at)
            self.tiles[demand.tensor] = tiled
            leaves = [e.leaf for e in fresh.values() if e.leaf is not None]
            shape = [size_upper(leaf.end) for leaf in leaves if isinstance(leaf, RangeVar)]
            over = [self.loops.leaf_values[leaf] for leaf in leaves]
            tile = self.builder.append(loop.TileOp(value, over, shape))
            tile.name_hint = demand.tensor.name_hint or "row"
            self.rows[demand.tensor, row] = tile
        sizes = sizes_of(tensor_of(demand.tensor))
        operands, map_ = self.loops.map_of([demand.at[k] for k in axes if sizes[k] != 1])
        return self.builder.append(loop.ReadOp(tile, operands, map_))

    def unary(self, op: Operation, demand: Demand) -> Answer:
        row = element_of(tensor_of(op.operands[0]))
        x = yield demand._replace(tensor=op.operands[0])
        return UNARY[type(op)](self.builder, row, x)

    def binary(self, op: Operation, demand: Demand) -> Answer:
        row = element_of(tensor_of(op.operands[0]))
        x = yield demand._replace(tensor=op.operands[0])
        y = yield demand._replace(tensor=op.operands[1])
        if (valid := self.comparison(op, row, x, y)) is not None:
            return valid
        return BINARY[type(op)](self.builder, row, x, y)

    def comparison(
        self, op: Operation, row: ElementType, x: SSAValue, y: SSAValue
    ) -> SSAValue | None:
        """`a < b` and `a <= b` of positions as a condition on indices, which linearize knows how to
        cut loops and lanes by: a causal mask. None for other ops and values."""
        if not isinstance(op, CmpltOp | CmpleOp) or (x not in self.at and y not in self.at):
            return None
        a, b = self.position(x, row), self.position(y, row)
        if a is None or b is None:
            return None
        operands, map_ = self.loops.map_of([b - a - (1 if isinstance(op, CmpltOp) else 0)])
        return self.builder.append(loop.ValidOp(operands, map_))

    def position(self, value: SSAValue, row: ElementType) -> Expr | None:
        """The index that an integer is, if it is one and does not wrap."""
        constant = known_constant(value)
        expr = self.at.get(value) if constant is None else as_expr(constant)
        if expr is None:
            return None
        lowest = 0 if row.kind == "unsigned" else -(1 << (row.bits - 1))
        highest = lowest + (1 << row.bits) - 1
        low, high = expr.bounds
        return expr if lowest <= low and high <= min(highest, (1 << 63) - 1) else None

    def where(self, op: WhereOp, demand: Demand) -> Answer:
        condition = yield demand._replace(tensor=op.condition)
        on_true = yield demand._replace(tensor=op.on_true)
        on_false = yield demand._replace(tensor=op.on_false)
        return self.builder.select(condition, on_true, on_false)

    def convert(self, op: CastOp | BitcastOp, demand: Demand) -> Answer:
        x = yield demand._replace(tensor=op.operand)
        source, target = (element_of(tensor_of(v)) for v in (op.operand, op.result))
        if x in self.at and isinstance(op, CastOp) and target.is_integer:
            position = self.position(x, target)
            if position is not None:  # the index itself, so that no lanes are of the wider type
                operands, map_ = self.loops.map_of([position])
                number = loop.IndexOp(operands, map_, signless(target).attribute)
                result = self.builder.append(number)
                self.at[result] = position
                return result
        build = cast_scalar if isinstance(op, CastOp) else bitcast_scalar
        return build(self.builder, source, target, x)

    def constant(self, op: tensor.ConstantOp) -> SSAValue:
        splat = op.splat
        if splat is None:
            raise UopcError(
                "constant-in-kernel",
                "a constant of several values stands in a kernel",
                hint="run kernelize, which makes it a buffer",
            )
        return self.builder.constant(scalar_value(splat), element_of(tensor_of(op.result)))

    def iota(self, op: tensor.IotaOp, demand: Demand) -> SSAValue:
        row = element_of(tensor_of(op.result))
        integer = element_type_named("i64") if row.is_float else signless(row)
        operands, map_ = self.loops.map_of([demand.at[op.axis.value.data]])
        number = self.builder.append(loop.IndexOp(operands, map_, integer.attribute))
        if row.is_float:
            return cast_scalar(self.builder, integer, row, number)
        self.at[number] = demand.at[op.axis.value.data]
        return number

    def read(self, op: kernel.ReadOp, demand: Demand) -> SSAValue:
        sizes = sizes_of(tensor_of(op.result))
        needed = [] if _inside(demand.at, sizes) else list(demand.valid)
        operands, map_, where = self.loops.access_maps(demand.at, needed)
        loaded = self.builder.append(loop.LoadOp(self.buffers[op.buffer], operands, map_, where))
        self.zero_when_invalid[loaded] = frozenset(needed)
        return loaded

    def pad(self, op: PadOp, demand: Demand) -> Answer:
        inner = source_index(op, demand.at)
        conditions = pad_conditions(op, inner)
        fresh = tuple(c for c in conditions if c not in demand.valid)
        x = yield Demand(op.operand, inner, (*demand.valid, *fresh))
        if not fresh:
            return x
        row = element_of(tensor_of(op.operand))
        value_ = scalar_value(op.value)
        positive_zero = str(value_) in ("0", "0.0")
        if positive_zero and self.zero_when_invalid.get(x, frozenset()) >= set(fresh):
            return x
        operands, map_ = self.loops.map_of(fresh)
        valid = self.builder.append(loop.ValidOp(operands, map_))
        return self.builder.select(valid, x, self.builder.constant(value_, row))

    def reduce(self, op: tensor.ReduceOp, demand: Demand) -> Answer:
        row = element_of(tensor_of(op.operand))
        index, ranges = self.reduced_index(op.operand, int_values(op.axes), demand.at)
        x = yield Demand(op.operand, index, demand.valid)
        if not ranges:
            return x
        wide = accumulator(row)
        x = cast_scalar(self.builder, row, wide, x)
        kind = combine_kind(op.kind.data, row)
        result = self.builder.append(loop.ReduceOp(kind, [x], ranges))
        return cast_scalar(self.builder, wide, row, result)

    def argreduce(self, op: tensor.ArgreduceOp, demand: Demand) -> Answer:
        row = element_of(tensor_of(op.operand))
        position = element_of(tensor_of(op.result))
        axis = op.axis.value.data
        index, ranges = self.reduced_index(op.operand, (axis,), demand.at)
        if not ranges:
            return self.builder.constant(0, position)
        x = yield Demand(op.operand, index, demand.valid)
        operands, map_ = self.loops.map_of([index[axis]])
        k = self.builder.append(loop.IndexOp(operands, map_, position.attribute))
        init = [
            self.builder.constant(identity(op.kind.data, row), row),
            self.builder.constant(0, position),
        ]
        combiner = argreduce(op.kind.data, row, position)
        reduce = loop.ReduceOp(None, [x, k], ranges, init, combiner)
        reduce.location = op.location
        self.new.add_op(reduce)
        return reduce.results[1]

    def reduced_index(
        self, operand: SSAValue, axes: Sequence[int], kept: Index
    ) -> tuple[Index, list[SSAValue]]:
        """The operand's index with new ranges along `axes`, and the values of those ranges."""
        remaining = iter(kept)
        index: list[Expr] = []
        ranges: list[SSAValue] = []
        for axis, n in enumerate(sizes_of(tensor_of(operand))):
            if axis not in axes:
                index.append(next(remaining))
                continue
            index.append(self.range(n, "reduce"))
            leaf = index[-1].leaf
            if leaf is not None:
                ranges.append(self.loops.leaf_values[leaf])
        return tuple(index), ranges

    def gather(self, op: tensor.GatherOp, demand: Demand) -> Answer:
        axis = op.axis.value.data
        rank = len(sizes_of(tensor_of(op.indices)))
        length = sizes_of(tensor_of(op.operand))[axis]
        where = demand.at[axis : axis + rank]
        number = yield Demand(op.indices, where, demand.valid)
        position = self.clamped(number, op.indices, 0, size(as_expr(length) - 1))
        index = (*demand.at[:axis], position, *demand.at[axis + rank :])
        return (yield Demand(op.operand, index, demand.valid))

    def number_as_index(
        self, numbers: SSAValue, index: Index, valid: tuple[Expr, ...], lower: int, upper: Size
    ) -> Expr:
        return self.clamped(self.answer(Demand(numbers, index, valid)), numbers, lower, upper)

    def clamped(self, number: SSAValue, numbers: SSAValue, lower: int, upper: Size) -> Expr:
        """A scalar as an index between bounds; `numbers` is the tensor that it comes from."""
        unsigned = element_of(tensor_of(numbers)).kind == "unsigned"
        operands, map_ = self.loops.map_of([as_expr(upper)])
        maximum = None if isinstance(upper, int) else size_upper(upper)
        op = loop.ValueOp(number, lower, map_, operands, maximum, unsigned=unsigned)
        result = self.builder.append(op)
        expr = value(result, lower, size_upper(upper))
        leaf = expr.leaf
        if leaf is None:  # the bounds leave one index only
            return expr
        self.loops.leaf_values[leaf] = result
        return expr


def _inside(index: Index, sizes: Sequence[Size]) -> bool:
    """Whether an index is within a buffer whatever its ranges' values."""
    return all(
        at_least(i, 0) is True and at_least(as_expr(n) - 1, i) is True
        for i, n in zip(index, sizes, strict=True)
    )
