"""linearize: a kernel over index ranges becomes a function of nested loops.

    ukernel.kernel @r_4 ins(%x : memref<4x8xf32>) outs(%o : memref<4xf32>) {
      %i = uloop.range 4
      %j = uloop.range 8 reduce
      %0 = uloop.load %x[%i, %j] : memref<4x8xf32>
      %1 = uloop.reduce max %0 over (%j) : f32
      uloop.store %1, %o[%i] : memref<4xf32>
    }

becomes

    func.func private @r_4(%x : memref<4x8xf32> {…}, %o : memref<4xf32> {…}) {
      %zero = arith.constant 0 : index
      …
      scf.for %i = %zero to %four step %one {
        %max = scf.for %j = %zero to %eight step %one iter_args(%acc = %minus_infinity) -> (f32) {
          %0 = memref.load %x[%i, %j] : memref<4x8xf32>
          %1 = arith.maximumf %acc, %0 : f32
          scf.yield %1 : f32
        }
        memref.store %max, %o[%i] : memref<4xf32>
      }
      func.return
    }

loop_placement.py says which loops a statement runs in; here statements that share their next
range share its loop, as far as they do not wait for what that loop computes as a whole. From here
on the order of every floating operation is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects import kernel, loop
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import Expr, as_expr
from uopc.dialects.locations import location_of
from uopc.passes.combine import combine, combined_identity
from uopc.passes.loop_dag import LoopDag
from uopc.passes.loop_placement import Placement, Statement
from uopc.passes.loop_scopes import Scope, Scopes, unproven
from uopc.passes.scalar_builder import INDEX, ScalarBuilder


@dataclass(frozen=True)
class LinearizePass(ModulePass):
    """Turn kernels over index ranges into functions of loops."""

    name = "linearize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel_op in list(op.body.block.ops):
            if isinstance(kernel_op, kernel.KernelOp):
                function = linearize_kernel(kernel_op)
                op.body.block.insert_op_before(function, kernel_op)
                kernel_op.detach()
                kernel_op.erase(safe_erase=False)


def linearize_kernel(op: kernel.KernelOp) -> func.FuncOp:
    """The function that does what a kernel over index ranges does."""
    for inner in op.block.ops:
        if isinstance(inner, kernel.ReadOp | kernel.WriteOp):
            raise UopcError(
                "not-over-ranges",
                f"kernel @{op.sym_name.data} is still on tensors",
                hint="run rangeify before linearize",
                location=location_of(op),
            )
    return _Linearize(op).function()


class _Linearize:
    def __init__(self, op: kernel.KernelOp) -> None:
        self.kernel = op
        self.dag = LoopDag(op)
        types = [kernel.linear_type(a.type) for a in op.block.args]
        self.entry = Block(arg_types=types)
        self.scopes = Scopes(self.dag, self.entry)
        self.done: set[Statement] = set()
        self.accumulators: dict[Statement, list[SSAValue]] = {}
        for old, new in zip(op.block.args, self.entry.args, strict=True):
            new.name_hint = old.name_hint
        count = len(op.size_arguments)
        self.scopes.symbols.update(zip(op.symbol_vars, self.entry.args[:count], strict=True))
        for position, (old, new) in enumerate(
            zip(op.buffers, self.entry.args[count:], strict=True)
        ):
            self.scopes.buffers[old] = (new, op.sizes_of_buffer(position))
        self.guards = self.dag.guards

    def function(self) -> func.FuncOp:
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
        if self.kernel.doc is not None:
            function.attributes["uopc.doc"] = StringAttr(self.kernel.doc.data)
        return function

    def argument_attributes(self) -> list[DictionaryAttr]:
        """Sizes have none; buffers do not overlap, and inputs are only read."""
        attributes = [DictionaryAttr({})] * len(self.kernel.size_arguments)
        for position in range(len(self.kernel.buffers)):
            entry: dict[str, Attribute] = {"llvm.noalias": UnitAttr()}
            if position < self.kernel.inputs_count:
                entry["llvm.readonly"] = UnitAttr()
            attributes.append(DictionaryAttr(entry))
        return attributes

    # Loops.

    def emit(self, statements: Sequence[Statement], depth: int) -> None:
        """Emit statements whose first `depth` loops are open."""
        remaining = list(statements)
        while remaining:
            ready = [s for s in remaining if len(s.path) == depth and self.done.issuperset(s.needs)]
            if ready:
                for statement in ready:
                    self.execute(statement)
                    if len(statement.home) == depth:
                        self.finish(statement)
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
            group: list[Statement] = []
            inside: set[Statement] = set()
            for statement in remaining:
                path = statement.path
                if len(path) <= depth or path[depth] is not range_op:
                    continue
                if all(
                    n in self.done
                    or (n in inside and len(n.home) > depth and n.home[depth] is range_op)
                    for n in statement.needs
                ):
                    group.append(statement)
                    inside.add(statement)
            if first in inside:
                return range_op, group
        raise AssertionError("statements wait for each other")

    def loop(self, range_op: loop.RangeOp, group: Sequence[Statement], depth: int) -> None:
        """Open the loop of a range, emit a group of statements in it, and close it."""
        outer = self.scopes.top
        carried = [s for s in group if isinstance(s.op, loop.ReduceOp) and len(s.home) <= depth]
        for statement in carried:
            if len(statement.home) == depth:
                self.accumulators[statement] = self.initial(statement)
        for statement in group:
            if isinstance(statement.op, loop.TileOp) and len(statement.home) == depth:
                self.allocate(statement.op)
        before = [v for s in carried for v in self.accumulators[s]]
        body = Block(arg_types=[INDEX, *(v.type for v in before)])
        induction, *arguments = body.args
        induction.name_hint = range_op.result.name_hint
        (end,) = self.dag.expressions(range_op.end, range_op.operands_)
        zero, last, one = (self.scopes.index(e) for e in (as_expr(0), end, as_expr(1)))
        self.assign(carried, arguments)
        self.scopes.stack.append(Scope(range_op, induction, body))
        self.guarded(group, carried, depth + 1)
        self.scopes.stack.pop()
        after = [v for s in carried for v in self.accumulators[s]]
        body.add_op(scf.YieldOp(*after))
        made = scf.ForOp(zero, last, one, before, Region(body))
        outer.block.add_op(made)
        self.assign(carried, made.results)
        for statement in group:
            if len(statement.home) == depth:
                self.finish(statement)

    def guarded(self, group: Sequence[Statement], carried: Sequence[Statement], depth: int) -> None:
        """Emit a group inside of the loop just opened, under the guards that it completes."""
        scope = self.scopes.top
        open_ranges = {s.range for s in self.scopes.stack if s.range is not None}
        conditions: list[Expr] = []
        for guard in self.guards:
            free = self.dag.free_in(guard)
            if scope.range in free and free <= open_ranges:
                conditions.extend(unproven(guard))
        if not conditions:
            self.emit(group, depth)
            return
        condition = self.scopes.all_at_least_zero(conditions, scope)
        before = [v for s in carried for v in self.accumulators[s]]
        inside = Block()
        self.scopes.stack.append(Scope(scope.range, scope.induction, inside))
        self.emit(group, depth)
        self.scopes.stack.pop()
        inside.add_op(scf.YieldOp(*(v for s in carried for v in self.accumulators[s])))
        outside = Region(Block([scf.YieldOp(*before)])) if before else Region()
        branch = scf.IfOp(condition, [v.type for v in before], Region(inside), outside)
        scope.block.add_op(branch)
        self.assign(carried, branch.results)

    def assign(self, carried: Sequence[Statement], values: Sequence[SSAValue]) -> None:
        """Give reductions their accumulators, in order."""
        remaining = iter(values)
        for statement in carried:
            fresh = [next(remaining) for _ in statement.op.results]
            for value, result in zip(fresh, statement.op.results, strict=True):
                if value.name_hint is None:
                    value.name_hint = result.name_hint or "acc"
            self.accumulators[statement] = fresh

    def finish(self, statement: Statement) -> None:
        """A statement's loops are closed: what it computed can be read."""
        self.done.add(statement)
        if isinstance(statement.op, loop.ReduceOp):
            for result, value in zip(
                statement.op.results, self.accumulators[statement], strict=True
            ):
                self.scopes.top.values[result] = value

    # Statements.

    def initial(self, statement: Statement) -> list[SSAValue]:
        op = statement.op
        assert isinstance(op, loop.ReduceOp)
        if op.kind is None:
            return [self.scopes.value(v) for v in op.init]
        type_ = op.results[0].type
        return [
            self.scopes.root.builder.attribute_constant(
                combined_identity(op.kind.data, type_), type_
            )
        ]

    def allocate(self, op: loop.TileOp) -> None:
        """A tile's storage, in the scope where it is filled."""
        type_ = op.result.type
        made = memref.AllocaOp.get(
            op.value.type, shape=list(kernel.buffer_of(op.result).get_shape())
        )
        self.scopes.top.block.add_op(made)
        made.memref.name_hint = op.result.name_hint or "tile"
        assert made.memref.type == type_
        self.scopes.buffers[op.result] = (
            made.memref,
            kernel.buffer_of(op.result).get_shape(),
        )

    def execute(self, statement: Statement) -> None:
        """Emit a statement whose loops are all open."""
        match statement.op:
            case loop.StoreOp() as op:
                self.write(op, None)
            case loop.UpdateOp() as op:
                self.write(op, None if op.kind.data == "set" else op.kind.data)
            case loop.TileOp() as op:
                self.fill(op, statement)
            case loop.ReduceOp() as op:
                if not statement.own:
                    self.accumulators[statement] = self.initial(statement)
                self.accumulators[statement] = self.combined(op, statement)
            case op:
                raise AssertionError(f"{op.name} is not a statement")

    def write(self, op: loop.StoreOp | loop.UpdateOp, kind: str | None) -> None:
        scope = self.scopes.top
        value = self.scopes.value(op.value)
        target, indices = self.scopes.access(op)
        conditions = unproven(self.dag.conditions(op))
        block = Block() if conditions else scope.block
        if kind is not None:
            builder = ScalarBuilder(block)
            old = builder.append(
                memref.LoadOp.create(operands=[target, *indices], result_types=[value.type])
            )
            value = combine(builder, kind, old, [value])
        block.add_op(memref.StoreOp.create(operands=[value, target, *indices]))
        if conditions:
            condition = self.scopes.all_at_least_zero(conditions, scope)
            block.add_op(scf.YieldOp())
            scope.block.add_op(scf.IfOp(condition, [], Region(block), Region()))

    def fill(self, op: loop.TileOp, statement: Statement) -> None:
        if not statement.own:
            self.allocate(op)
        value = self.scopes.value(op.value)
        target, _ = self.scopes.buffers[op.result]
        indices = [self.scopes.index(self.dag.index[o]) for o in op.over]
        self.scopes.top.block.add_op(memref.StoreOp.create(operands=[value, target, *indices]))

    def combined(self, op: loop.ReduceOp, statement: Statement) -> list[SSAValue]:
        """The accumulators after one more step."""
        values = [self.scopes.value(v) for v in op.values]
        accumulators = self.accumulators[statement]
        builder = self.scopes.top.builder
        if op.kind is not None:
            return [combine(builder, op.kind.data, accumulators[0], values)]
        mapping: dict[SSAValue, SSAValue] = dict(
            zip(op.combiner.block.args, [*accumulators, *values], strict=True)
        )
        for inner in op.combiner.block.ops:
            if isinstance(inner, loop.YieldOp):
                return [self.inner_value(mapping, v) for v in inner.values]
            self.clone(inner, mapping, builder)
        raise AssertionError("a combiner ends in uloop.yield")

    def inner_value(self, mapping: dict[SSAValue, SSAValue], value: SSAValue) -> SSAValue:
        """A value that a combiner uses: its own, or one from outside."""
        found = mapping.get(value)
        return self.scopes.value(value) if found is None else found

    def clone(
        self, op: Operation, mapping: dict[SSAValue, SSAValue], builder: ScalarBuilder
    ) -> None:
        if isinstance(op, arith.ConstantOp):
            mapping[op.result] = self.scopes.root.builder.attribute_constant(
                op.value, op.result.type
            )
            return
        made = type(op).create(
            operands=[self.inner_value(mapping, o) for o in op.operands],
            result_types=[r.type for r in op.results],
            properties=op.properties,
            attributes=op.attributes,
        )
        builder.block.add_op(made)
        mapping.update(zip(op.results, made.results, strict=True))
