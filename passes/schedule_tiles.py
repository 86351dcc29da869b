"""tile, capture and layout: a value kept in a buffer of the kernel, and what dimensions that has.

    tile b over k jj as pk pj                one place for each k and jj
    tile x over c y+ky x+kx as pc py px      a halo: one for each sum, which several y, ky share

A sum in place of a range says that the value depends on the ranges in it by that sum only, as an
image under a window does. It is filled for all sums that there are; where one lies outside of the
image, which only steps ask for that a guard rules out, it is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Operation, SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects import schedule_text as text
from uopc.dialects.index_expr import Expr, Leaf, RangeVar, as_expr, at_least, atom_expr, new_range
from uopc.dialects.schedule_expression import evaluate, names_in, parse_expression
from uopc.dialects.schedule_text import bad_schedule
from uopc.passes.loop_dag import LoopDag
from uopc.passes.loop_rewriter import LoopRewriter
from uopc.passes.schedule_names import check_fresh, find_range, find_value


class ApplyTile(LoopRewriter):
    """v -> read of a tile of v over new ranges, at the old ones, or at sums of them."""

    def __init__(self, dag: LoopDag, command: text.Tile) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.command = command
        self.value = find_value(op, command.value, command)
        self.over = [self._index(word) for word in command.over]
        """What the tile's dimensions count, over the leaves of the old body."""
        check_fresh(op, command.names, command)
        if isinstance(self.value.owner, loop.TileOp):
            raise bad_schedule(command, f"'{command.value}' is a tile already")
        leaves = [leaf for expr in self.over for leaf in expr.leaves]
        free = [self.leaf(range_op) for range_op in self.dag.free[self.value]]
        for leaf in leaves:
            if leaf not in free:
                raise bad_schedule(command, f"'{command.value}' does not depend on '{leaf.name}'")
            if leaves.count(leaf) > 1:
                raise bad_schedule(command, f"'{leaf.name}' stands in it twice")
        self.sums = any(expr.leaf is None for expr in self.over)
        if self.sums:
            self._check_sums()
        self.replaced: dict[Leaf, Expr] = {}
        self.filling = False

    def _index(self, word: str) -> Expr:
        """A range, or a sum of ranges of which one counts singly."""
        tree = parse_expression(word)
        named = {n: find_range(self.kernel, n, self.command) for n in names_in(tree)}
        expr = evaluate(tree, {n: atom_expr(self.leaf(r)) for n, r in named.items()})
        factors = [factor for atom, factor in expr.terms if isinstance(atom, RangeVar)]
        if expr.const or len(factors) != len(expr.terms) or 1 not in factors or min(factors) < 0:
            raise bad_schedule(
                self.command,
                f"a tile is not over '{word}'",
                "expected a range, or a sum as y+ky or y*2+ky, in which one counts singly",
            )
        return expr

    def _check_sums(self) -> None:
        """Refuse sums beside which the value depends on one of their ranges."""
        sums = [expr for expr in self.over if expr.leaf is None]
        if left := beside_sums(self.dag, self.value, sums):
            names = ", ".join(sorted(f"'{leaf.name}'" for leaf in left))
            raise bad_schedule(
                self.command,
                f"'{self.command.value}' depends on {names} not by the sum alone",
                "write the ranges one by one",
            )

    def rewrite(self, op: object) -> None:
        super().rewrite(op)  # pyright: ignore[reportArgumentType]  # the base takes any op
        if op is self.value.owner and not self.replaced:
            self._make_tile()

    def _make_tile(self) -> None:
        shape: list[int] = []
        fresh: list[SSAValue] = []
        replaced: dict[Leaf, Expr] = {}
        for index, name in zip(self.over, self.command.names, strict=True):
            if isinstance(index.leaf, RangeVar):
                expr = self._like(index.leaf, name)
                replaced[index.leaf] = expr
            else:
                expr = self.loops.range(name, index.bounds[1] + 1)
                at = {leaf: self.exprs[leaf] for leaf in index.leaves}
                replaced |= {k: e.substitute(at) for k, e in _solved(index, expr).items()}
            assert expr.leaf is not None
            fresh.append(self.loops.leaf_values[expr.leaf])
            shape.append(expr.bounds[1] + 1)
        self.replaced, self.filling = replaced, True
        inner = self.clone_value(self.value, replaced)
        self.filling = False
        tile = self.loops.scalars.append(loop.TileOp(inner, fresh, shape, self.command.space))
        tile.name_hint = self.command.value
        operands, map_ = self.loops.map_of([self.expr(index) for index in self.over])
        read = self.loops.scalars.append(loop.ReadOp(tile, operands, map_))
        inner.name_hint = None
        self.values[self.value] = read

    def _like(self, leaf: RangeVar, name: str) -> Expr:
        """A new range like an old one, of a kind that fills a tile."""
        assert isinstance(leaf.key, loop.RangeOp)
        kind = leaf.key.kind.data
        return self.copy_range(leaf.key, name, "loop" if kind == "reduce" else kind)

    def access(self, op: loop.AccessOp) -> tuple[list[Expr], list[Expr]]:
        """Of a sum's places some may lie outside of a buffer: no step reads what is there."""
        at, where = super().access(op)
        if not (self.filling and self.sums):
            return at, where
        if op.buffer in self.kernel.buffers:
            sizes = self.kernel.sizes_of_buffer(list(self.kernel.buffers).index(op.buffer))
        else:
            sizes = list(kernel.buffer_of(op.buffer).get_shape())
        for index, size in zip(at, sizes, strict=True):
            ends = (index, self.expr(as_expr(size)) - 1 - index)
            where += [e for e in ends if at_least(e, 0) is not True and e not in where]
        return at, where

    def at_end(self) -> None:
        self.repeat_guards(self.replaced)


def beside_sums(dag: LoopDag, value: SSAValue, sums: Iterable[Expr]) -> frozenset[Leaf]:
    """The ranges in some sums that a value depends on in another way than by these sums."""
    at: dict[Leaf, Expr] = {}
    for expr in sums:
        at |= _solved(expr, new_range("at", expr.bounds[1] + 1))
    summed = frozenset(leaf for expr in sums for leaf in expr.leaves)
    found: frozenset[Leaf] = frozenset()
    for op in _sources(value):
        for expr in _expressions(dag, op):
            found |= expr.substitute(at).leaves & summed
    return found


def _sources(value: SSAValue) -> list[Operation]:
    """The ops that a value is computed by."""
    found: dict[Operation, None] = {}
    stack = [value]
    while stack:
        owner = stack.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found[owner] = None
            stack.extend(owner.operands)
    return list(found)


def _expressions(dag: LoopDag, op: Operation) -> list[Expr]:
    match op:
        case loop.AccessOp():
            return [*dag.expressions(op.map, op.indices), *dag.conditions(op)]
        case loop.IndexOp() | loop.ValidOp():
            return dag.expressions(op.map, op.indices)
        case _:
            return []


def _solved(total: Expr, value: Expr) -> dict[Leaf, Expr]:
    """A sum's range that counts singly, as the sum's value less the others."""
    leaf = next(atom for atom, factor in total.terms if factor == 1)
    assert isinstance(leaf, RangeVar)
    return {leaf: value - (total - atom_expr(leaf))}


class ApplyCapture(LoopRewriter):
    """A tile that was filled anew for each r holds the values of all r."""

    def __init__(self, dag: LoopDag, command: text.Capture) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.command = command
        self.tile = find_value(op, command.value, command).owner
        if not isinstance(self.tile, loop.TileOp):
            raise bad_schedule(command, f"'{command.value}' is not a tile")
        self.range = find_range(op, command.range, command)
        if self.range not in self.dag.free[self.tile.result]:
            raise bad_schedule(command, f"'{command.value}' does not depend on '{command.range}'")
        check_fresh(op, (command.name,), command)
        self.replaced: Mapping[Leaf, Expr] = {}

    def on_tile(self, op: loop.TileOp) -> SSAValue:
        if op is not self.tile:
            return super().on_tile(op)
        expr = self.copy_range(self.range, self.command.name, self.range.kind.data)
        assert expr.leaf is not None
        self.replaced = {self.leaf(self.range): expr}
        inner = self.clone_value(op.value, self.replaced)
        over = [self.loops.leaf_values[expr.leaf], *(self.range_value(o) for o in op.over)]
        shape = [expr.bounds[1] + 1, *kernel.buffer_of(op.result).get_shape()]
        return self.loops.scalars.append(loop.TileOp(inner, over, shape, op.space.data))

    def read_at(self, op: loop.ReadOp, at: list[Expr]) -> list[Expr]:
        if op.buffer.owner is not self.tile:
            return at
        return [self.exprs[self.leaf(self.range)], *at]

    def at_end(self) -> None:
        self.repeat_guards(self.replaced)


class ApplyLayout(LoopRewriter):
    """The dimensions of a tile in another order."""

    def __init__(self, dag: LoopDag, command: text.Layout) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.tile = find_value(op, command.value, command).owner
        if not isinstance(self.tile, loop.TileOp):
            raise bad_schedule(command, f"'{command.value}' is not a tile")
        wanted = [find_range(op, n, command).result for n in command.names]
        have = list(self.tile.over)
        if sorted(map(id, wanted)) != sorted(map(id, have)):
            names = " ".join(str(o.name_hint) for o in have)
            raise bad_schedule(command, "a layout has each range of the tile once", names)
        self.order = [have.index(w) for w in wanted]

    def on_tile(self, op: loop.TileOp) -> SSAValue:
        if op is not self.tile:
            return super().on_tile(op)
        shape = kernel.buffer_of(op.result).get_shape()
        over = [self.range_value(op.over[k]) for k in self.order]
        return self.loops.scalars.append(
            loop.TileOp(self.values[op.value], over, [shape[k] for k in self.order], op.space.data)
        )

    def read_at(self, op: loop.ReadOp, at: list[Expr]) -> list[Expr]:
        return [at[k] for k in self.order] if op.buffer.owner is self.tile else at
