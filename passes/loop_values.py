"""Scalars and vectors of a kernel, made on demand where they belong.

A value that depends on a vector range is a vector of its lanes, one that depends on unrolled
ranges is made once for each copy. A value that is alike for all lanes stays a scalar and is
broadcast where a vector needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import (
    ArrayAttr,
    IntegerAttr,
    MemRefType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, ValueVar, as_expr
from uopc.dialects.kernel_signature import buffer_of
from uopc.dialects.locations import location_of
from uopc.dialects.sizes import Size
from uopc.passes.combine import combine, combined_identity
from uopc.passes.loop_dag import LoopDag, Ranges, is_inline, length_of, number_of, own_ranges
from uopc.passes.loop_masks import Mask, guards_of, lane_mask, mask_of
from uopc.passes.loop_pairs import make_pair
from uopc.passes.loop_prefetch import ask_ahead
from uopc.passes.loop_scopes import NO_LANES, Lanes, Scope, Scopes, unproven
from uopc.passes.loop_tiles import flat_index, in_registers, read_row
from uopc.passes.scalar_builder import INDEX, ScalarBuilder, scalar_load
from uopc.passes.vector_types import integers, lane_type, positions, vector_type, width_of


class Values(Scopes):
    """The scopes of a kernel with the values in them."""

    def __init__(self, dag: LoopDag, entry: Block) -> None:
        super().__init__(dag, entry)
        self.buffers: dict[SSAValue, tuple[SSAValue, Sequence[Size]]] = {}
        """For each buffer of the body the linear one and the sizes it is indexed by."""

    def key(self, wanted: SSAValue, lanes: Lanes) -> object:
        """What a value is remembered by: itself, and the copies that it depends on."""
        free = self.dag.free[wanted]
        here = frozenset((r, n) for r, n in lanes.items() if r in free)
        return (wanted, here) if here else wanted

    def value(self, wanted: SSAValue, lanes: Lanes = NO_LANES) -> SSAValue:
        """A value of the body for one copy of the code, made if it is not there yet."""
        if wanted in self.dag.index:
            return self.index(self.dag.index[wanted], lanes)
        found = self.find(self.key(wanted, lanes))
        if found is not None:
            return found
        missing: set[Operation] = set()
        stack = [wanted]
        while stack:
            current = stack.pop()
            owner = current.owner
            assert isinstance(owner, Operation)
            if owner not in missing and self.find(self.key(current, lanes)) is None:
                missing.add(owner)
                if not (isinstance(owner, loop.ReduceOp) and is_inline(owner)):
                    stack.extend(self._operands(owner))
        for op in sorted(missing, key=self.dag.position.__getitem__):
            if not isinstance(op, loop.ValueOp):
                self._make(op, lanes)
        found = self.find(self.key(wanted, lanes))
        assert found is not None
        return found

    def number(self, leaf: ValueVar) -> SSAValue:
        result = number_of(leaf)
        found = self.find(result)
        if found is None:
            op = result.owner
            assert isinstance(op, loop.ValueOp)
            scope = self.scope_of(self.dag.free[result])
            found = scope.values[result] = self._clamp(op, scope)
        return found

    def _operands(self, op: Operation) -> list[SSAValue]:
        if isinstance(op, loop.ReduceOp | loop.TileOp):
            raise AssertionError(f"{op.name} is read before it is computed")
        if isinstance(op, loop.ValueOp | loop.AccessOp | loop.IndexOp | loop.ValidOp | loop.PairOp):
            return []
        return [o for o in op.operands if o not in self.dag.index]

    def vector_of(self, free: Ranges) -> loop.RangeOp | None:
        """The vector range among some ranges."""
        return next((r for r in free if r.kind.data == "vector"), None)

    def as_vector(self, value: SSAValue, width: int, free: Ranges) -> SSAValue:
        """A value as a vector: itself, or a scalar broadcast where it was made."""
        if isinstance(value.type, VectorType):
            return value
        key = ("broadcast", value, width)
        found = self.find(key)
        if found is None:
            scope = self.root if isinstance(value.owner, arith.ConstantOp) else self.scope_of(free)
            type_ = vector_type(value.type, width)
            found = scope.builder.append(
                vector.BroadcastOp.create(operands=[value], result_types=[type_])
            )
            scope.values[key] = found
        return found

    # Making one value.

    def _make(self, op: Operation, lanes: Lanes) -> None:
        result = op.results[0]
        free = self.dag.free[result]
        scope = self.scope_of(free)
        scope.builder.location = op.location
        match op:
            case arith.ConstantOp():
                scope = self.root
                made = scope.builder.attribute_constant(op.value, result.type)
            case loop.LoadOp() | loop.ReadOp():
                made = self._load(op, scope, lanes)
            case loop.IndexOp():
                made = self._index_number(op, scope, lanes)
            case loop.ValidOp():
                made = self._valid(op, lanes)
            case loop.PairOp():
                made = make_pair(self, op, scope, lanes)
            case loop.ReduceOp():
                self._reduce_inline(op, scope, lanes)
                return
            case _:
                made = self._clone(op, scope, lanes)
        if made.name_hint is None:
            made.name_hint = result.name_hint
        scope.values[self.key(result, lanes)] = made

    def _clone(self, op: Operation, scope: Scope, lanes: Lanes) -> SSAValue:
        result = op.results[0]
        along = self.vector_of(self.dag.free[result])
        operands = [self.value(o, lanes) for o in op.operands]
        type_: Attribute = result.type
        if along is not None and isinstance(op, func.CallOp):
            return self._call_by_lane(op, operands, length_of(along), scope)
        if along is not None:
            width = length_of(along)
            type_ = vector_type(type_, width)
            operands = [
                self.as_vector(v, width, self.dag.free[o])
                for v, o in zip(operands, op.operands, strict=True)
            ]
        return scope.builder.append(
            type(op).create(
                operands=operands,
                result_types=[type_],
                properties=op.properties,
                attributes=op.attributes,
            )
        )

    def _call_by_lane(
        self, op: func.CallOp, operands: Sequence[SSAValue], width: int, scope: Scope
    ) -> SSAValue:
        """A function takes scalars: one call a lane."""
        calls: list[SSAValue] = []
        for lane in range(width):
            arguments = [self._extract(v, lane, scope) if width_of(v.type) else v for v in operands]
            calls.append(
                scope.builder.append(
                    func.CallOp.create(
                        operands=arguments,
                        result_types=[op.results[0].type],
                        properties=op.properties,
                        attributes=op.attributes,
                    )
                )
            )
        return self.from_lanes(calls, vector_type(op.results[0].type, width), scope)

    def _index_number(self, op: loop.IndexOp, scope: Scope, lanes: Lanes) -> SSAValue:
        along = self.vector_of(self.dag.free[op.result])
        (expr,) = self.dag.expressions(op.map, op.indices)
        base, step = self.along(self.resolved(expr, lanes), along)
        b = scope.builder
        number = b.op(arith.IndexCastOp, self.index(base), result=op.result.type, properties={})
        if along is None:
            return number
        width = length_of(along)
        type_ = vector_type(op.result.type, width)
        if step is None:
            parts = [
                b.op(
                    arith.IndexCastOp,
                    self.index(self.at_lane(expr, along, k, lanes)),
                    result=op.result.type,
                    properties={},
                )
                for k in range(width)
            ]
            return self.from_lanes(parts, type_, scope)
        start = b.append(vector.BroadcastOp.create(operands=[number], result_types=[type_]))
        steps = integers(type_, (step * k for k in range(width)))
        lane_numbers = self.root.builder.attribute_constant(steps, type_)
        return b.op(arith.AddiOp, start, lane_numbers, properties={"overflowFlags": _NO_OVERFLOW})

    def at_lane(self, expr: Expr, along: loop.RangeOp, lane: int, lanes: Lanes) -> Expr:
        return self.resolved(expr.substitute({self.leaf_of(along): lane}), lanes)

    def from_lanes(
        self, parts: Sequence[SSAValue], type_: VectorType[Attribute], scope: Scope
    ) -> SSAValue:
        """A vector of scalars."""
        result = scope.builder.append(
            vector.BroadcastOp.create(operands=[parts[0]], result_types=[type_])
        )
        for lane, part in enumerate(parts[1:], 1):
            result = scope.builder.append(
                vector.InsertOp.create(
                    operands=[part, result],
                    result_types=[type_],
                    properties={"static_position": positions([lane])},
                )
            )
        return result

    def _valid(self, op: loop.ValidOp, lanes: Lanes) -> SSAValue:
        along = self.vector_of(self.dag.free[op.result])
        mask = mask_of(self, self.dag.expressions(op.map, op.indices), lanes, along)
        if mask.never:
            mask = Mask(scalar=[as_expr(-1)])
        scalar = self.all_at_least_zero(mask.scalar)
        if along is None:
            return scalar
        width = length_of(along)
        lane = lane_mask(self, mask, width)
        if lane is not None and not mask.scalar:
            return lane
        # Each where it is known and no deeper: others may ask for it when this loop is closed.
        wide = self.as_vector(scalar, width, self.dag.free_in(mask.scalar))
        if lane is None:
            return wide
        scope = self.scope_of(self.dag.free[op.result])
        return scope.builder.op(arith.AndIOp, lane, wide, properties={})

    def _clamp(self, op: loop.ValueOp, scope: Scope) -> SSAValue:
        """A number as an index between bounds; clamped before it is narrowed."""
        b = scope.builder
        number = self.value(op.operand)
        unsigned = op.signedness.data == "unsigned"
        upper = self.index(self.dag.expressions(op.upper, op.indices)[0])
        row = element_type(number.type)
        assert row is not None
        if unsigned and row.bits == 64:  # as an index it would be negative from 2**63 on
            number = b.op(arith.MinUIOp, number, b.constant((1 << 63) - 1, row))
        elif unsigned:
            number = b.op(arith.ExtUIOp, number, result=i64, properties={})
        index = b.op(arith.IndexCastOp, number, result=INDEX, properties={})
        index = b.op(arith.MinSIOp, index, upper)
        return b.op(arith.MaxSIOp, index, self.index(as_expr(op.lower.value.data)))

    # Accesses.

    def expressions_of(self, op: loop.AccessOp, lanes: Lanes) -> tuple[SSAValue, list[Expr]]:
        """The buffer and the resolved indices of an access, flat where the buffer is."""
        target, sizes = self.buffers[op.buffer]
        expressions = self.dag.expressions(op.map, op.indices)
        type_ = target.type
        assert isinstance(type_, MemRefType)
        if type_.get_num_dims() != len(sizes):
            expressions = [flat_index(expressions, sizes)]
        return target, [self.resolved(e, lanes) for e in expressions]

    def access_mask(
        self, op: loop.AccessOp, free: Ranges, lanes: Lanes, along: loop.RangeOp | None
    ) -> Mask:
        """Where an access happens, by its own conditions and the kernel's guards."""
        visible = self.open_ranges | frozenset(lanes) | free
        conditions = self.dag.conditions(op)
        if not isinstance(op, loop.ReadOp):
            conditions = [*conditions, *guards_of(self, free, visible)]
        return mask_of(self, conditions, lanes, along)

    def _load(self, op: loop.LoadOp | loop.ReadOp, scope: Scope, lanes: Lanes) -> SSAValue:
        tile = op.buffer.owner
        if isinstance(tile, loop.TileOp) and in_registers(tile):
            assert isinstance(op, loop.ReadOp)
            return read_row(self, op, tile, lanes)
        if any(self.key(op.result, lanes) in each.written_over for each in self.stack):
            raise UopcError(
                "bad-schedule",
                f"'{op.result.name_hint or 'a value'}' would be read again after its place is "
                "written over",
                hint="expected statements that share a value to stand in the same loops",
                location=location_of(op),
            )
        free = self.dag.free[op.result]
        along = self.vector_of(free)
        mask = self.access_mask(op, free, lanes, along)
        row = element_type(op.result.type)
        assert row is not None
        zero = self.root.builder.constant(0, row)
        if mask.never:
            return zero if along is None else self.as_vector(zero, length_of(along), free)
        if not mask.scalar:
            return self._load_lanes(op, scope.block, along, mask, lanes)
        type_: Attribute = op.result.type
        if along is not None:
            zero = self.as_vector(zero, length_of(along), free)
            type_ = zero.type
        condition = self.all_at_least_zero(mask.scalar)
        valid = Block()
        loaded = self._load_lanes(op, valid, along, mask, lanes)
        valid.add_op(scf.YieldOp(loaded))
        invalid = Block([scf.YieldOp(zero)])
        return scope.builder.append(scf.IfOp(condition, [type_], Region(valid), Region(invalid)))

    def _load_lanes(
        self,
        op: loop.LoadOp | loop.ReadOp,
        block: Block,
        along: loop.RangeOp | None,
        mask: Mask,
        lanes: Lanes,
    ) -> SSAValue:
        target, expressions = self.expressions_of(op, lanes)
        if isinstance(op, loop.LoadOp):
            ask_ahead(self, self.buffers[op.buffer], op, block, along, lanes)
        element = op.result.type
        b = ScalarBuilder(block)
        if along is None:
            indices = [self.index(e) for e in expressions]
            return b.append(scalar_load(target, indices, element))
        width = length_of(along)
        type_ = vector_type(element, width)
        shapes = [self.along(e, along) for e in expressions]
        target, shapes = self.without_unit_dims(op.buffer, target, shapes)
        steps = [step for _, step in shapes]
        indices = [self.index(base) for base, _ in shapes]
        lane = lane_mask(self, mask, width)
        if steps[:-1] == [0] * (len(steps) - 1) and steps and steps[-1] == 1:
            if lane is None:
                return b.append(
                    vector.LoadOp.create(operands=[target, *indices], result_types=[type_])
                )
            row = element_type(element)
            assert row is not None
            zero = self.as_vector(self.root.builder.constant(0, row), width, frozenset())
            return b.append(
                vector.MaskedLoadOp.create(
                    operands=[target, *indices, lane, zero], result_types=[type_]
                )
            )
        if not any(steps) and None not in steps:  # all lanes alike, where there are any
            scalar = b.append(scalar_load(target, indices, element))
            wide = b.append(vector.BroadcastOp.create(operands=[scalar], result_types=[type_]))
            return wide if lane is None else self._where(b, lane, wide, width, element)
        return self._gather(op, block, along, mask, lanes)

    def without_unit_dims(
        self, buffer: SSAValue, target: SSAValue, shapes: list[tuple[Expr, int | None]]
    ) -> tuple[SSAValue, list[tuple[Expr, int | None]]]:
        """An argument without its last dimensions if they are of size 1, as far as lanes run
        before them: a column of one is a row."""
        kept = len(shapes)
        type_ = buffer_of(target)
        sizes = type_.get_shape()
        while kept > 1 and sizes[kept - 1] == 1 and shapes[kept - 1][1] == 0:
            kept -= 1
        if kept == len(shapes) or shapes[kept - 1][1] != 1 or isinstance(target.owner, Operation):
            return target, shapes
        key = ("without unit dims", buffer, kept)
        view = self.find(key)
        if view is None:
            groups = [[k] for k in range(kept - 1)] + [list(range(kept - 1, len(shapes)))]
            reassociation = ArrayAttr(
                [ArrayAttr([IntegerAttr(k, i64) for k in group]) for group in groups]
            )
            view = self.root.builder.append(
                memref.CollapseShapeOp.create(
                    operands=[target],
                    result_types=[MemRefType(type_.element_type, sizes[:kept])],
                    properties={"reassociation": reassociation},
                )
            )
            view.name_hint = target.name_hint
            self.root.values[key] = view
        return view, shapes[:kept]

    def _where(
        self, b: ScalarBuilder, lane: SSAValue, value: SSAValue, width: int, element: Attribute
    ) -> SSAValue:
        row = element_type(element)
        assert row is not None
        zero = self.as_vector(self.root.builder.constant(0, row), width, frozenset())
        return b.select(lane, value, zero)

    def _gather(
        self,
        op: loop.LoadOp | loop.ReadOp,
        block: Block,
        along: loop.RangeOp,
        mask: Mask,
        lanes: Lanes,
    ) -> SSAValue:
        """Lane by lane; a lane that is masked out is 0 and reads nothing."""
        target, sizes = self.expressions_of(op, lanes)
        b = ScalarBuilder(block)
        element = op.result.type
        row = element_type(element)
        assert row is not None
        zero = self.root.builder.constant(0, row)
        parts: list[SSAValue] = []
        for k in range(length_of(along)):
            at = [e.substitute({self.leaf_of(along): k}) for e in sizes]
            needed = unproven([base + step * k for base, step in mask.lanes])
            if any(c.bounds[1] < 0 for c in needed):
                parts.append(zero)
                continue
            indices = [self.index(e) for e in at]
            if not needed:
                parts.append(b.append(scalar_load(target, indices, element)))
                continue
            condition = self.all_at_least_zero(needed)
            valid = Block()
            loaded = ScalarBuilder(valid).append(scalar_load(target, indices, element))
            valid.add_op(scf.YieldOp(loaded))
            branch = scf.IfOp(
                condition, [element], Region(valid), Region(Block([scf.YieldOp(zero)]))
            )
            parts.append(b.append(branch))
        scope = Scope(None, None, block)
        return self.from_lanes(parts, vector_type(element, length_of(along)), scope)

    # Reductions over copies and lanes.

    def _reduce_inline(self, op: loop.ReduceOp, scope: Scope, lanes: Lanes) -> None:
        """A balanced tree over the copies, then over the halves of the vector."""
        own = own_ranges(op)
        unrolled = [r for r in own if r.kind.data == "unroll"]
        unrolled.sort(key=self.dag.position.__getitem__)
        along = next((r for r in own if r.kind.data == "vector"), None)
        guards = guards_of(self, own, self.open_ranges | self.dag.free[op.results[0]] | own)
        around = self.dag.free_in(guards) & self.open_ranges
        scope = self.scope_of(self.dag.free[op.results[0]] | around)
        level: list[list[SSAValue]] = []
        for numbers in product(*(range(length_of(r)) for r in unrolled)):
            copy = {**lanes, **dict(zip(unrolled, numbers, strict=True))}
            values = self._unmasked(op, own, along, copy, scope)
            if values is not None:
                level.append(values)
        if not level:  # nothing is combined, here or ever
            level.append(self.identities(op, lanes))
        while len(level) > 1:
            paired = [
                self.combined(op, level[k], level[k + 1], scope, lanes)
                for k in range(0, len(level) - 1, 2)
            ]
            level = paired + level[len(level) - len(level) % 2 :]
        values = level[0]
        if along is not None and width_of(values[0].type) is not None:
            values = self._reduce_lanes(op, values, scope, lanes)
        for result, value in zip(op.results, values, strict=True):
            if value.name_hint is None:
                value.name_hint = result.name_hint
            scope.values[self.key(result, lanes)] = value

    def identities(self, op: loop.ReduceOp, lanes: Lanes) -> list[SSAValue]:
        """What a reduction starts from: the kind's identity, or its init."""
        if op.kind is None:
            return [self.value(v, lanes) for v in op.init]
        type_ = op.results[0].type
        constant = combined_identity(op.kind.data, type_)
        return [self.root.builder.attribute_constant(constant, type_)]

    def _unmasked(
        self, op: loop.ReduceOp, own: Ranges, along: loop.RangeOp | None, copy: Lanes, scope: Scope
    ) -> list[SSAValue] | None:
        """The values of one copy, with the identity where a guard says that there is none."""
        visible = self.open_ranges | frozenset(copy) | own
        vector_range = along or self.vector_of(self.dag.free[op.results[0]])
        if vector_range is not None:
            visible |= {vector_range}
        mask = mask_of(self, guards_of(self, own, visible), copy, vector_range)
        if mask.never:
            return None
        values = [self.value(v, copy) for v in op.values]
        if vector_range is not None:
            width = length_of(vector_range)
            values = [
                self.as_vector(v, width, self.dag.free[o])
                for v, o in zip(values, op.values, strict=True)
            ]
        if mask.always:
            return values
        width = None if vector_range is None else length_of(vector_range)
        condition = None if width is None else lane_mask(self, mask, width)
        if mask.scalar:
            scalar = self.all_at_least_zero(mask.scalar)
            if width is not None:
                scalar = self.as_vector(scalar, width, self.dag.free_in(mask.scalar))
            if condition is None:
                condition = scalar
            else:
                condition = scope.builder.op(arith.AndIOp, condition, scalar)
        assert condition is not None
        neutral = self.identities(op, copy)
        if width is not None:
            neutral = [self.as_vector(v, width, self.open_ranges) for v in neutral]
        return [
            scope.builder.select(condition, value, other)
            for value, other in zip(values, neutral, strict=True)
        ]

    def _reduce_lanes(
        self, op: loop.ReduceOp, values: list[SSAValue], scope: Scope, lanes: Lanes
    ) -> list[SSAValue]:
        while True:
            width = width_of(values[0].type)
            assert width is not None
            if width == 1:
                return [self._extract(v, 0, scope) for v in values]
            half = width // 2
            low = [self._part(v, 0, half, scope) for v in values]
            high = [self._part(v, half, half, scope) for v in values]
            values = self.combined(op, low, high, scope, lanes)

    def _part(self, value: SSAValue, start: int, width: int, scope: Scope) -> SSAValue:
        return scope.builder.append(
            vector.ShuffleOp.create(
                operands=[value, value],
                result_types=[vector_type(lane_type(value.type), width)],
                properties={"mask": positions(range(start, start + width))},
            )
        )

    def _extract(self, value: SSAValue, lane: int, scope: Scope) -> SSAValue:
        return scope.builder.append(
            vector.ExtractOp.create(
                operands=[value],
                result_types=[lane_type(value.type)],
                properties={"static_position": positions([lane])},
            )
        )

    def combined(
        self,
        op: loop.ReduceOp,
        accumulators: Sequence[SSAValue],
        values: Sequence[SSAValue],
        scope: Scope,
        lanes: Lanes,
    ) -> list[SSAValue]:
        """Accumulators and values combined by the reduction's kind or region."""
        scope.builder.location = op.location
        width = width_of(accumulators[0].type)
        if width is not None:
            values = [self.as_vector(v, width, self.open_ranges) for v in values]
        if op.kind is not None:
            return [combine(scope.builder, op.kind.data, accumulators[0], values)]
        mapping: dict[SSAValue, SSAValue] = dict(
            zip(op.combiner.block.args, [*accumulators, *values], strict=True)
        )
        for inner in op.combiner.block.ops:
            if isinstance(inner, loop.YieldOp):
                return [self._inner(mapping, v, lanes, width) for v in inner.values]
            if isinstance(inner, arith.ConstantOp):
                constant = self.root.builder.attribute_constant(inner.value, inner.result.type)
                mapping[inner.result] = constant
                continue
            operands = [self._inner(mapping, o, lanes, width) for o in inner.operands]
            types: list[Attribute] = [r.type for r in inner.results]
            if width is not None:
                types = [vector_type(t, width) for t in types]
            made = type(inner).create(
                operands=operands,
                result_types=types,
                properties=inner.properties,
                attributes=inner.attributes,
            )
            scope.block.add_op(made)
            mapping.update(zip(inner.results, made.results, strict=True))
        raise AssertionError("a combiner ends in uloop.yield")

    def _inner(
        self, mapping: dict[SSAValue, SSAValue], value: SSAValue, lanes: Lanes, width: int | None
    ) -> SSAValue:
        """A value that a combiner uses: its own, or one from outside."""
        found = mapping.get(value)
        if found is None:
            found = self.value(value, lanes)
        return found if width is None else self.as_vector(found, width, self.open_ranges)


_NO_OVERFLOW = arith.IntegerOverflowAttr("none")
