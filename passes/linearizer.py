"""Builds the function of one kernel over ranges: its loops, and the statements in them.

What runs in which loop is loop_placement.py's to say, and what a value is loop_values.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, as_expr, atom_expr
from uopc.dialects.locations import location_of
from uopc.passes.loop_dag import NO_RANGES, LoopDag, Ranges, is_loop, length_of, own_ranges
from uopc.passes.loop_masks import Mask, guards_of, lane_mask, mask_of
from uopc.passes.loop_placement import Placement, Statement
from uopc.passes.loop_scopes import Lanes, Scope, unproven
from uopc.passes.loop_stores import store_scalar, store_vector
from uopc.passes.loop_tiles import (
    flat_index,
    flattened,
    in_registers,
    is_simpler_flat,
    keep_row,
    places_read,
    reads_past_rows,
)
from uopc.passes.loop_values import Values
from uopc.passes.scalar_builder import INDEX
from uopc.passes.whole_steps import whole_steps


class Linearizer:
    """Builds the function of one kernel; linearize_gpu.py has another for GPUs."""

    def __init__(self, dag: LoopDag) -> None:
        op = dag.kernel
        self.kernel = op
        self.dag = dag
        types = [kernel.linear_type(a.type) for a in op.block.args]
        self.entry = Block(arg_types=types)
        self.scopes = self.new_scopes()
        self.done: set[Statement] = set()
        self.accumulators: dict[Statement, list[SSAValue]] = {}
        """Of each reduction that runs: its results, copy by copy."""
        for old, new in zip(op.block.args, self.entry.args, strict=True):
            new.name_hint = old.name_hint
        count = len(op.size_arguments)
        self.scopes.symbols.update(zip(op.symbol_vars, self.entry.args[:count], strict=True))
        for position, (old, new) in enumerate(
            zip(op.buffers, self.entry.args[count:], strict=True)
        ):
            self.scopes.buffers[old] = (new, op.sizes_of_buffer(position))
        self.flatten()

    def flatten(self) -> None:
        """Index buffers by one number where that is simpler."""
        for old in self.kernel.buffers:
            if is_simpler_flat(self.dag, old):
                self.flatten_buffer(old)

    def flatten_buffer(self, old: SSAValue) -> None:
        """Index a buffer by one number."""
        new, sizes = self.scopes.buffers[old]
        self.scopes.buffers[old] = (flattened(self.entry, new), sizes)

    def new_scopes(self) -> Values:
        """Where the kernel's values are made."""
        return Values(self.dag, self.entry)

    def function(self) -> func.FuncOp:
        self.check_reads()
        if not self.never_happens():
            self.emit(Placement(self.dag).statements, 0)
        self.entry.add_op(func.ReturnOp())
        types = [a.type for a in self.entry.args]
        function = func.FuncOp(
            self.kernel.sym_name.data,
            FunctionType.from_lists(types, []),
            Region(self.entry),
            visibility="private",
            arg_attrs=ArrayAttr(self.argument_attributes()),
        )
        function.location = self.kernel.location
        if self.kernel.doc is not None:
            function.attributes["uopc.doc"] = StringAttr(self.kernel.doc.data)
        return function

    def check_reads(self) -> None:
        """A kernel reads what it stores over at the very places where it does; anything else
        would see now the old, now the new."""
        for op in self.dag.statements:
            if not isinstance(op, loop.StoreOp) or not self.dag.loads_of(op.buffer):
                continue
            places = self.dag.expressions(op.map, op.indices)
            for load in self.dag.loads_of(op.buffer):
                if self.dag.expressions(load.map, load.indices) != places:
                    raise UopcError(
                        "no-linear-form",
                        f"kernel @{self.kernel.sym_name.data} reads '{op.buffer.name_hint}' at "
                        "another place than where it writes it",
                        hint="read it from an input, and write to another buffer",
                        location=location_of(load),
                    )

    def argument_attributes(self) -> list[DictionaryAttr]:
        """Sizes have none; buffers do not overlap, and inputs are only read."""
        attributes = [DictionaryAttr({})] * len(self.kernel.size_arguments)
        for position in range(len(self.kernel.buffers)):
            entry: dict[str, Attribute] = {"llvm.noalias": UnitAttr()}
            if position < self.kernel.inputs_count:
                entry["llvm.readonly"] = UnitAttr()
            attributes.append(DictionaryAttr(entry))
        return attributes

    def never_happens(self) -> bool:
        """Whether a guard without ranges rules everything out, as an empty part of a kernel."""
        bare = [c for c, ranges in self.dag.guard_ranges if not ranges]
        if any(c.bounds[1] < 0 for c in bare):
            return True
        open_ones = unproven(bare)
        if open_ones:
            raise UopcError(
                "no-linear-form",
                f"the guard {open_ones[0]} >= 0 depends on no range",
                hint="expected a guard over a range; a size is guarded by a range that ends at it",
                location=location_of(self.kernel),
            )
        return False

    # Loops.

    def emit(self, statements: Sequence[Statement], depth: int) -> None:
        """Emit statements whose first `depth` loops are open."""
        remaining = list(statements)
        while remaining:
            ready = [s for s in remaining if len(s.path) == depth and self.done.issuperset(s.needs)]
            if ready:
                for statement in ready:
                    self.begin(statement, depth)
                    self.execute(statement)
                    if len(statement.home) == depth:
                        self.finish(statement)
                    else:
                        self.done.add(statement)
                finished = set(ready)
            else:
                range_op, group = self.next_loop(remaining, depth)
                self.loop(range_op, group, depth)
                finished = set(group)
            remaining = [s for s in remaining if s not in finished]

    def next_loop(
        self, remaining: Sequence[Statement], depth: int
    ) -> tuple[loop.RangeOp, list[Statement]]:
        """The next range to open, and all statements that can run inside of its loop."""
        for first in remaining:
            if len(first.path) <= depth:
                continue
            range_op = first.path[depth]
            group = self.group(remaining, range_op, depth)
            if first in group:
                return range_op, [s for s in remaining if s in group]
        raise AssertionError("statements wait for each other")

    def group(
        self, remaining: Sequence[Statement], range_op: loop.RangeOp, depth: int
    ) -> set[Statement]:
        """The statements that one loop of a range can run, as many as possible.

        What a statement needs is done before, or inside in the same step; and what is computed
        inside is read inside, since it is gone with the step.
        """
        found = {s for s in remaining if len(s.path) > depth and s.path[depth] is range_op}

        def is_inside(s: Statement) -> bool:
            return len(s.home) > depth and s.home[depth] is range_op

        while True:
            wrong = {
                s
                for s in found
                if not all(n in self.done or (n in found and is_inside(n)) for n in s.needs)
                or (is_inside(s) and not all(u in found for u in s.users))
            }
            if not wrong:
                return found
            found -= wrong

    def loop(self, range_op: loop.RangeOp, group: Sequence[Statement], depth: int) -> None:
        """Run a group of statements over a range: a loop where no guard cuts in, then the rest."""
        for statement in group:
            if len(statement.home) == depth:
                self.begin(statement, depth)
        end = self.scopes.resolved(self.dag.end_of(range_op))
        whole = self.unguarded_steps(range_op, end)
        constant = end.as_int()
        if constant is None:
            self.symbolic_loop(range_op, end, group, depth)
        elif whole == constant:
            self.open_loop(range_op, as_expr(0), end, group, depth)
        else:
            if whole:
                self.scopes.shorten(range_op, as_expr(whole))
                self.open_loop(range_op, as_expr(0), as_expr(whole), group, depth)
                self.scopes.forget(range_op)
            if constant - whole > _PEELED_STEPS:
                self.open_loop(range_op, as_expr(whole), end, group, depth)
            else:
                for step in range(whole, constant):
                    self.peel(range_op, step, group, depth)
        for statement in group:
            if len(statement.home) == depth:
                self.finish(statement)

    def symbolic_loop(
        self, range_op: loop.RangeOp, end: Expr, group: Sequence[Statement], depth: int
    ) -> None:
        """A range whose end is known at the call: up to n // f without guards, then the rest."""
        whole = whole_steps(self.scopes, range_op, end)
        if whole is None or whole.as_int() == 0:
            self.open_loop(range_op, as_expr(0), end, group, depth)
            return
        self.scopes.shorten(range_op, whole)
        self.open_loop(range_op, as_expr(0), whole, group, depth)
        self.scopes.forget(range_op)
        self.open_loop(range_op, whole, end, group, depth)

    def unguarded_steps(self, range_op: loop.RangeOp, end: Expr) -> int:
        """How many first steps of a range need no guard, whatever the ranges inside of it do."""
        constant = end.as_int()
        if constant is None:
            return 0
        leaf = self.scopes.leaf_of(range_op)
        steps = constant
        for condition, ranges in self.dag.guard_ranges:
            if range_op not in ranges or all(map(self.is_serial, ranges)):
                continue
            expr = self.scopes.resolved(condition)
            slope = (expr - expr.substitute({leaf: 0})).substitute({leaf: 1}).as_int()
            if slope is None or slope >= 0:
                continue
            # rest + slope * r >= 0 for the least rest is r <= rest / -slope
            least = (expr - atom_expr(leaf) * slope).bounds[0]
            steps = min(steps, max(least // -slope + 1, 0))
        return steps

    def is_serial(self, range_op: loop.RangeOp) -> bool:
        """Whether a range is a loop whose steps a branch can tell apart."""
        return is_loop(range_op)

    def open_loop(
        self,
        range_op: loop.RangeOp,
        begin: Expr,
        end: Expr,
        group: Sequence[Statement],
        depth: int,
    ) -> None:
        """A loop of a range from `begin` to `end` with a group of statements in it."""
        outer = self.scopes.top
        carried = self.carried(group, depth)
        before = [v for s in carried for v in self.accumulators[s]]
        body = Block(arg_types=[INDEX, *(v.type for v in before)])
        induction, *arguments = body.args
        induction.name_hint = range_op.result.name_hint
        first, last, one = (self.scopes.index(e) for e in (begin, end, as_expr(1)))
        self.assign(carried, arguments)
        self.scopes.stack.append(Scope(range_op, induction, body))
        self.done.difference_update(group)
        self.guarded(group, carried, depth + 1)
        self.scopes.stack.pop()
        after = [v for s in carried for v in self.accumulators[s]]
        body.add_op(scf.YieldOp(*after))
        made = scf.ForOp(first, last, one, before, Region(body))
        outer.block.add_op(made)
        self.assign(carried, made.results)

    def peel(
        self, range_op: loop.RangeOp, step: int, group: Sequence[Statement], depth: int
    ) -> None:
        """One step of a range, with its number in place of the index."""
        self.scopes.fix(range_op, step)
        induction = self.scopes.index(as_expr(step))
        self.scopes.stack.append(Scope(range_op, induction, self.scopes.top.block))
        self.done.difference_update(group)
        self.guarded(group, self.carried(group, depth), depth + 1)
        self.scopes.stack.pop()
        self.scopes.forget(range_op)

    def carried(self, group: Sequence[Statement], depth: int) -> list[Statement]:
        """The reductions whose accumulators live outside of the loop about to be opened."""
        return [s for s in group if isinstance(s.op, loop.ReduceOp) and len(s.home) <= depth]

    def guarded(self, group: Sequence[Statement], carried: Sequence[Statement], depth: int) -> None:
        """Emit a group inside of the loop just opened, under the guards that it completes.

        Guards that depend on copies or lanes are left to the accesses.
        """
        conditions = self.guards_here(group, depth)
        if any(c.bounds[1] < 0 for c in conditions):
            self.done.update(group)
            return
        if not conditions:
            self.emit(group, depth)
            return
        condition = self.scopes.all_at_least_zero(conditions)
        known = self.scopes.assumed
        self.scopes.assumed = known.union(conditions)
        self.branch(condition, group, carried, depth)
        self.scopes.assumed = known

    def guards_here(self, group: Sequence[Statement], depth: int) -> list[Expr]:
        """The guards that the range just opened completes, as far as they may not hold."""
        scope = self.scopes.top
        open_ranges = self.scopes.open_ranges
        return [
            resolved
            for condition, ranges in self.dag.guard_ranges
            if scope.range in ranges and ranges <= open_ranges
            for resolved in unproven([self.scopes.resolved(condition)])
        ]

    def branch(
        self,
        condition: SSAValue,
        group: Sequence[Statement],
        carried: Sequence[Statement],
        depth: int,
    ) -> None:
        """Emit a group where a condition holds; elsewhere accumulators stay as they are."""
        scope = self.scopes.top
        before = [v for s in carried for v in self.accumulators[s]]
        inside = Block()
        self.scopes.stack.append(Scope(scope.range, scope.induction, inside))
        self.emit(group, depth)
        self.scopes.stack.pop()
        inside.add_op(scf.YieldOp(*(v for s in carried for v in self.accumulators[s])))
        outside = Region(Block([scf.YieldOp(*before)])) if before else Region()
        made = scf.IfOp(condition, [v.type for v in before], Region(inside), outside)
        scope.block.add_op(made)
        self.assign(carried, made.results)

    def assign(self, carried: Sequence[Statement], values: Sequence[SSAValue]) -> None:
        """Give reductions their accumulators, in order."""
        remaining = iter(values)
        for statement in carried:
            old = self.accumulators[statement]
            fresh = [next(remaining) for _ in old]
            results = statement.op.results
            for position, value in enumerate(fresh):
                if value.name_hint is None:
                    value.name_hint = results[position % len(results)].name_hint or "acc"
            self.accumulators[statement] = fresh

    # Statements.

    def copies(self, free: Ranges) -> list[Lanes]:
        """The copies of the code that unrolled ranges ask for, the longest range outermost."""
        unrolled = [r for r in free if r.kind.data == "unroll"]
        unrolled.sort(key=lambda r: (-length_of(r), self.dag.position[r]))
        return [
            dict(zip(unrolled, numbers, strict=True))
            for numbers in product(*(range(length_of(r)) for r in unrolled))
        ]

    def begin(self, statement: Statement, depth: int) -> None:
        """Before a statement's own loops: first accumulators, or a tile's storage."""
        if len(statement.home) != depth:
            return
        op = statement.op
        if isinstance(op, loop.ReduceOp):
            free = self.dag.free[op.results[0]]
            self.accumulators[statement] = [
                v for lanes in self.copies(free) for v in self.initial(op, free, lanes)
            ]
        elif isinstance(op, loop.TileOp) and not (
            in_registers(op) or op.result in self.allocated()
        ):
            self.allocate(op)

    def allocated(self) -> set[SSAValue]:
        """The tiles whose storage the open scopes have."""
        return {key for s in self.scopes.stack for key in s.values if isinstance(key, SSAValue)}

    def finish(self, statement: Statement) -> None:
        """A statement's loops are closed: what it computed can be read."""
        self.done.add(statement)
        op = statement.op
        if not isinstance(op, loop.ReduceOp):
            return
        values = iter(self.accumulators[statement])
        for lanes in self.copies(self.dag.free[op.results[0]]):
            for result in op.results:
                self.scopes.top.values[self.scopes.key(result, lanes)] = next(values)

    def initial(self, op: loop.ReduceOp, free: Ranges, lanes: Lanes) -> list[SSAValue]:
        values = self.scopes.identities(op, lanes)
        along = self.scopes.vector_of(free)
        if along is None:
            return values
        return [self.scopes.as_vector(v, length_of(along), NO_RANGES) for v in values]

    def allocate(self, op: loop.TileOp) -> None:
        """A tile's storage, in the scope where it is filled."""
        shape = list(kernel.buffer_of(op.result).get_shape())
        places = places_read(self.dag, op)
        flat = places > prod(shape) or is_simpler_flat(self.dag, op.result)
        flat = flat or reads_past_rows(self.dag, op)
        stored = [max(places, prod(shape))] if flat else shape
        made = memref.AllocaOp.get(op.value.type, shape=stored)
        self.scopes.top.block.add_op(made)
        made.memref.name_hint = op.result.name_hint or "tile"
        self.scopes.buffers[op.result] = (made.memref, shape)
        self.scopes.top.values[op.result] = made.memref

    def execute(self, statement: Statement) -> None:
        """Emit a statement whose loops are all open."""
        op = statement.op
        match op:
            case loop.StoreOp():
                for lanes in self.copies(self.dag.free_of_statement[op]):
                    self.write(op, None, lanes)
                    self.locate(op)
            case loop.UpdateOp():
                kind = None if op.kind.data == "set" else op.kind.data
                for lanes in self.copies(self.dag.free_of_statement[op]):
                    self.write(op, kind, lanes)
                    self.locate(op)
            case loop.TileOp():
                for lanes in self.copies(self.dag.free[op.value] | own_ranges(op)):
                    self.fill(op, lanes)
            case loop.ReduceOp():
                self.step(op, statement)
            case _:
                raise AssertionError(f"{op.name} is not a statement")

    def locate(self, op: Operation) -> None:
        """The op added last is where an op of the kernel is."""
        last = self.scopes.top.block.last_op
        if last is not None:
            last.location = op.location

    def write(self, op: loop.StoreOp | loop.UpdateOp, kind: str | None, lanes: Lanes) -> None:
        scopes = self.scopes
        free = self.dag.free_of_statement[op]
        along = scopes.vector_of(free)
        mask = scopes.access_mask(op, free, lanes, along)
        if mask.never:
            return
        value = scopes.value(op.value, lanes)
        target, expressions = scopes.expressions_of(op, lanes)
        block = Block() if mask.scalar else scopes.top.block
        if along is None:
            indices = [scopes.index(e) for e in expressions]
            store_scalar(block, kind, value, target, indices)
        else:
            value = scopes.as_vector(value, length_of(along), free)
            past_caches = isinstance(op, loop.StoreOp) and op.nontemporal is not None
            store_vector(
                scopes,
                block,
                kind,
                value,
                target,
                expressions,
                along,
                mask,
                past_caches=past_caches,
            )
        if mask.scalar:
            condition = scopes.all_at_least_zero(mask.scalar)
            block.add_op(scf.YieldOp())
            scopes.top.block.add_op(scf.IfOp(condition, [], Region(block), Region()))
        for load in self.dag.loads_of(op.buffer):
            scopes.top.written_over.add(scopes.key(load.result, lanes))

    def fill(self, op: loop.TileOp, lanes: Lanes) -> None:
        scopes = self.scopes
        free = self.dag.free[op.value] | own_ranges(op)
        along = scopes.vector_of(free)
        value = scopes.value(op.value, lanes)
        if in_registers(op):
            assert along is not None
            keep_row(scopes, op, scopes.as_vector(value, length_of(along), free), lanes)
            return
        target, sizes = scopes.buffers[op.result]
        expressions = [scopes.resolved(self.dag.index[o], lanes) for o in op.over]
        if kernel.buffer_of(target).get_num_dims() != len(sizes):
            expressions = [flat_index(expressions, sizes)]
        if along is None:
            indices = [scopes.index(e) for e in expressions]
            store_scalar(scopes.top.block, None, value, target, indices)
        else:
            value = scopes.as_vector(value, length_of(along), free)
            store_vector(scopes, scopes.top.block, None, value, target, expressions, along, Mask())

    def step(self, op: loop.ReduceOp, statement: Statement) -> None:
        """One step of a reduction, for each copy of it; unrolled steps follow one another."""
        own = own_ranges(op)
        free = self.dag.free[op.results[0]]
        count = len(op.results)
        old = self.accumulators[statement]
        new: list[SSAValue] = []
        for position, lanes in enumerate(self.copies(free)):
            current = old[position * count : (position + 1) * count]
            for inner in self.copies(own):
                current = self.one_step(op, current, free, {**lanes, **inner})
            new.extend(current)
        self.accumulators[statement] = new

    def one_step(
        self, op: loop.ReduceOp, current: list[SSAValue], free: Ranges, lanes: Lanes
    ) -> list[SSAValue]:
        scopes = self.scopes
        own = own_ranges(op)
        along = scopes.vector_of(free)
        visible = scopes.open_ranges | frozenset(lanes) | free
        guards = guards_of(scopes, own, visible)
        mask = mask_of(scopes, guards, lanes, along)
        if mask.never:
            return current
        values = [scopes.value(v, lanes) for v in op.values]
        combined = scopes.combined(op, current, values, scopes.top, lanes)
        if mask.always:
            return combined
        condition: SSAValue | None = None
        if mask.lanes:
            assert along is not None
            condition = lane_mask(scopes, mask, length_of(along))
        if mask.scalar:
            scalar = scopes.all_at_least_zero(mask.scalar)
            if condition is None:
                condition = scalar
            else:
                assert along is not None
                wide = scopes.as_vector(scalar, length_of(along), scopes.open_ranges)
                condition = scopes.top.builder.op(arith.AndIOp, condition, wide)
        assert condition is not None
        return [
            scopes.top.builder.select(condition, new, old)
            for new, old in zip(combined, current, strict=True)
        ]


_PEELED_STEPS = 2
"""As many steps behind a loop are written out; more become a second loop."""
