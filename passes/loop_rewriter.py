"""Rebuilds a kernel's uloop body with ranges replaced: the base of every schedule command.

The body is copied op by op. A subclass says what becomes of a range, a reduction, a tile or a
read; all else follows: expressions are rebuilt over the new ranges, and operands are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects.index_expr import Expr, Leaf, RangeVar, ValueVar, value
from uopc.passes.dce import erase_dead_ops
from uopc.passes.loop_builder import LoopBuilder
from uopc.passes.loop_dag import LoopDag, number_of


class LoopRewriter:
    """Copies the body of one kernel; `run` puts the copy in its place."""

    def __init__(self, dag: LoopDag) -> None:
        op = dag.kernel
        self.kernel = op
        self.dag = dag
        self.old = op.block
        self.new = Block(arg_types=[a.type for a in self.old.args])
        self.loops = LoopBuilder(self.new)
        self.values: dict[SSAValue, SSAValue] = {}
        self.exprs: dict[Leaf, Expr] = {}
        """What each leaf of the old body is in the new one."""
        for old, new in zip(self.old.args, self.new.args, strict=True):
            new.name_hint = old.name_hint
            self.values[old] = new
        for symbol, argument in zip(op.symbol_vars, self.new.args, strict=False):
            self.loops.leaf_values[symbol] = argument

    def run(self) -> None:
        for op in self.old.ops:
            self.rewrite(op)
        self.at_end()
        region = self.kernel.body
        region.detach_block(self.old)
        region.add_block(self.new)
        self.old.erase(safe_erase=False)
        erase_dead_ops(self.kernel)

    def at_end(self) -> None:
        """Called when all ops are copied."""

    def repeat_guards(self, replaced: Mapping[Leaf, Expr]) -> None:
        """Add the guards that concern some old ranges once more, for what replaces these."""
        leaves = frozenset(replaced)
        for condition, _ in self.dag.guard_ranges:
            if condition.leaves & leaves:
                other = self.expr(condition.substitute(dict(replaced)))
                self.new.add_op(loop.GuardOp(*self.loops.map_of([other])))

    # Looking up.

    def expr(self, expr: Expr) -> Expr:
        """An old expression over the new leaves."""
        return expr.substitute({leaf: self.exprs[leaf] for leaf in expr.leaves & self.exprs.keys()})

    def index(self, op_value: SSAValue) -> Expr:
        """What an old value of index type is now."""
        return self.expr(self.dag.index[op_value])

    def leaf(self, op: loop.RangeOp) -> RangeVar:
        leaf = self.dag.index[op.result].leaf
        assert isinstance(leaf, RangeVar)
        return leaf

    def range_value(self, op_value: SSAValue) -> SSAValue:
        """The new range that an old one has become."""
        leaf = self.index(op_value).leaf
        assert leaf is not None, "the range has become an expression"
        return self.loops.leaf_values[leaf]

    def operand(self, old: SSAValue) -> SSAValue:
        if old in self.dag.index:
            return self.range_value(old)
        return self.values[old]

    # Copying.

    def rewrite(self, op: Operation) -> None:
        """Copy one op, as the hooks say."""
        match op:
            case loop.RangeOp():
                self.exprs[self.leaf(op)] = self.on_range(op)
                return
            case loop.ReduceOp():
                results = self.on_reduce(op)
            case loop.TileOp():
                results = [self.on_tile(op)]
            case _:
                results = self.copy(op)
        for old, new in zip(op.results, results, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            self.values[old] = new

    def on_range(self, op: loop.RangeOp) -> Expr:
        """What a range becomes; by default one like it."""
        return self.copy_range(op, op.result.name_hint or "r", op.kind.data)

    def copy_range(self, op: loop.RangeOp, name: str, kind: str) -> Expr:
        end = self.expr(self.leaf(op).end)
        maximum = None if op.maximum is None else op.maximum.value.data
        constant = end.as_int()
        return self.loops.range(name, end if constant is None else constant, kind, maximum)

    def on_reduce(self, op: loop.ReduceOp) -> list[SSAValue]:
        """What a reduction becomes; by default one over the new ranges."""
        return self.reduce(op, [self.range_value(o) for o in op.over])

    def reduce(
        self,
        op: loop.ReduceOp,
        over: Sequence[SSAValue],
        kind: str | None = None,
        values: Sequence[SSAValue] | None = None,
        combiner: Region | None = None,
    ) -> list[SSAValue]:
        """A reduction like an old one, over other ranges, of other values or combined otherwise."""
        if kind is None and op.kind is not None:
            kind = op.kind.data
        operands = [self.values[v] for v in op.values] if values is None else values
        init = [self.values[v] for v in op.init]
        made = loop.ReduceOp(kind, operands, over, init, combiner or self.copy_region(op.combiner))
        made.location = op.location
        self.new.add_op(made)
        return list(made.results)

    def copy_region(self, region: Region) -> Region:
        copied = Region()
        mapper = dict(self.values)
        region.clone_into(copied, value_mapper=mapper)
        return copied

    def on_tile(self, op: loop.TileOp) -> SSAValue:
        """What a tile becomes; by default one over the new ranges."""
        shape = kernel.buffer_of(op.result).get_shape()
        over = [self.range_value(o) for o in op.over]
        return self.loops.scalars.append(
            loop.TileOp(self.values[op.value], over, shape, op.space.data)
        )

    def read_at(self, op: loop.ReadOp, at: list[Expr]) -> list[Expr]:
        """The indices of a read; a hook for tiles whose dimensions change."""
        return at

    def copy(self, op: Operation) -> list[SSAValue]:
        """Copy an op that binds no ranges."""
        match op:
            case loop.LoadOp():
                at, where = self.access(op)
                maps = self.loops.load_maps(at, where, _moving(self.ahead(op), at, where))
                made: Operation = loop.LoadOp(self.values[op.buffer], *maps)
            case loop.ReadOp():
                at, where = self.access(op)
                operands, map_, valid = self.loops.access_maps(self.read_at(op, at), where)
                made = loop.ReadOp(self.values[op.buffer], operands, map_, valid)
            case loop.StoreOp() | loop.UpdateOp():
                operands, map_, valid = self.loops.access_maps(*self.access(op))
                stored, buffer = self.values[op.value], self.values[op.buffer]
                if isinstance(op, loop.UpdateOp):
                    made = loop.UpdateOp(op.kind.data, stored, buffer, operands, map_, valid)
                else:
                    nontemporal = op.nontemporal is not None
                    made = loop.StoreOp(
                        stored, buffer, operands, map_, valid, nontemporal=nontemporal
                    )
            case loop.IndexOp():
                exprs = [self.expr(e) for e in self.dag.expressions(op.map, op.indices)]
                operands, map_ = self.loops.map_of(exprs)
                made = loop.IndexOp(operands, map_, op.result.type)
            case loop.ValidOp() | loop.GuardOp():
                exprs = [self.expr(e) for e in self.dag.expressions(op.map, op.indices)]
                operands, map_ = self.loops.map_of(exprs)
                made = type(op)(operands, map_)
            case loop.ValueOp():
                made = self.copy_value(op)
            case _:
                made = type(op).create(
                    operands=[self.operand(o) for o in op.operands],
                    result_types=[r.type for r in op.results],
                    properties=op.properties,
                    attributes=op.attributes,
                )
        made.location = op.location
        self.new.add_op(made)
        if isinstance(op, loop.ValueOp):
            self.bind_value(op, made.results[0])
        return list(made.results)

    def copy_value(self, op: loop.ValueOp) -> loop.ValueOp:
        operands, map_ = self.loops.map_of(
            [self.expr(e) for e in self.dag.expressions(op.upper, op.indices)]
        )
        return loop.ValueOp(
            self.values[op.operand],
            op.lower.value.data,
            map_,
            operands,
            None if op.maximum is None else op.maximum.value.data,
            unsigned=op.signedness.data == "unsigned",
        )

    def bind_value(self, op: loop.ValueOp, made: SSAValue) -> None:
        leaf = self.dag.index[op.result].leaf
        if not isinstance(leaf, ValueVar):
            return
        expr = value(made, leaf.lower, leaf.upper)
        self.exprs[leaf] = expr
        assert expr.leaf is not None
        self.loops.leaf_values[expr.leaf] = made

    def access(self, op: loop.AccessOp) -> tuple[list[Expr], list[Expr]]:
        """The new indices and conditions of an access."""
        at = [self.expr(e) for e in self.dag.expressions(op.map, op.indices)]
        return at, [self.expr(e) for e in self.dag.conditions(op)]

    def ahead(self, op: loop.LoadOp) -> list[Expr]:
        """The new place that a load asks for, if it does; a hook for the command that says so."""
        if op.prefetch is None:
            return []
        return [self.expr(e) for e in self.dag.expressions(op.prefetch, op.indices)]

    # Copies of a value with other ranges.

    def clone_value(self, wanted: SSAValue, replaced: Mapping[Leaf, Expr]) -> SSAValue:
        """An old value once more, with some ranges of the old body replaced by new expressions."""
        ranges = frozenset(
            leaf.key
            for leaf in replaced
            if isinstance(leaf, RangeVar) and isinstance(leaf.key, loop.RangeOp)
        )
        needed: set[Operation] = set()
        stack = [wanted]
        while stack:
            current = stack.pop()
            owner = current.owner
            if not isinstance(owner, Operation) or owner in needed:
                continue
            if self.dag.free[current] & ranges and not isinstance(owner, loop.RangeOp):
                needed.add(owner)
                stack.extend(owner.operands)
                for operand in owner.operands:
                    if operand in self.dag.index:
                        stack.extend(
                            number_of(leaf)
                            for leaf in self.dag.index[operand].leaves
                            if isinstance(leaf, ValueVar)
                        )
        kept_values, kept_exprs = dict(self.values), dict(self.exprs)
        self.exprs.update(replaced)
        for op in sorted(needed, key=self.dag.position.__getitem__):
            self.rewrite(op)
        result = self.values[wanted]
        self.values, self.exprs = kept_values, kept_exprs
        return result


def _moving(ahead: list[Expr], at: list[Expr], where: list[Expr]) -> list[Expr]:
    """A place to ask for, unless the load no longer runs in the loop that it moves with: it has
    one place in all of its steps, and no next one."""
    around = frozenset(leaf for expr in (*at, *where) for leaf in expr.leaves)
    return ahead if ahead != at and all(e.leaves <= around for e in ahead) else []
