"""The command `pair`: a sum of products of bf16 takes two steps of a range at once.

    %p = mulf %a, %b : bf16                      %c = pair %a[2 kk], %a[2 kk + 1]
    %w = extf %p : bf16 to f32           ->      %d = pair %b[2 kk], %b[2 kk + 1]
    %s = reduce add %w over (%k)                 %s = reduce dot %c, %d over (%kk)

The factors' pairs are called NAME_pair. Where the range has an odd end, the last pair's second
number is 0 in both factors, and nothing is read for it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import bf16
from xdsl.ir import SSAValue

from uopc.dialects import loop
from uopc.dialects import schedule_text as text
from uopc.dialects.element_types import element_type
from uopc.dialects.index_expr import Expr, as_expr
from uopc.dialects.schedule_text import bad_schedule
from uopc.passes.loop_dag import LoopDag, own_ranges
from uopc.passes.loop_rewriter import LoopRewriter
from uopc.passes.schedule_facts import is_gathered, paired_name, product_of
from uopc.passes.schedule_names import check_fresh, find_range


class ApplyPair(LoopRewriter):
    """Carries out one `pair`."""

    def __init__(self, dag: LoopDag, command: text.Pair) -> None:
        super().__init__(dag)
        op = dag.kernel
        self.command = command
        self.target = find_range(op, command.range, command)
        check_fresh(op, (command.name,) if command.name != command.range else (), command)
        self.reduction = self._reduction()
        self.half: Expr = as_expr(0)
        self.odd: Expr | None = None
        """Where this is at least 0 the second number of a pair is there; None for always."""
        self.condition: list[Expr] = []
        """What the loads of a second number wait for, while they are copied."""

    def _reduction(self) -> loop.ReduceOp:
        """The one sum of products of bf16 that binds the range."""
        name = self.command.range
        binders = [
            op
            for op in self.dag.position
            if isinstance(op, loop.ReduceOp | loop.TileOp) and self.target in own_ranges(op)
        ]
        for op in binders:
            product = product_of(op) if isinstance(op, loop.ReduceOp) else None
            if product is None or product.result.type != bf16:
                raise bad_schedule(
                    self.command,
                    f"what runs over '{name}' is no sum of products of bf16",
                    "expected it before contract and tile, factors of bf16 and a sum of f32",
                )
        if len(binders) != 1 or is_gathered(self.dag, self.target):
            what = "several sums run" if binders else "no sum runs"
            if len(binders) == 1:
                what = "an index that is loaded depends on it: nothing pairs"
            raise bad_schedule(
                self.command, f"{what} over '{name}'", "expected one sum's own range"
            )
        leaf = self.leaf(self.target)
        if any(leaf in condition.leaves for condition, _ in self.dag.guard_ranges):
            raise bad_schedule(
                self.command,
                f"a guard says where '{name}' has steps",
                "expected the range before it is split",
            )
        (reduction,) = binders
        assert isinstance(reduction, loop.ReduceOp)
        return reduction

    def on_range(self, op: loop.RangeOp) -> Expr:
        if op is not self.target:
            return super().on_range(op)
        end = self.expr(self.leaf(op).end)
        pairs = (end + 1) // 2
        constant = pairs.as_int()
        self.half = self.loops.range(
            self.command.name, pairs if constant is None else constant, op.kind.data
        )
        if (pairs * 2 - end) != as_expr(0):
            self.odd = end - 2 - self.half * 2
        return self.half * 2

    def on_reduce(self, op: loop.ReduceOp) -> list[SSAValue]:
        if op is not self.reduction:
            return super().on_reduce(op)
        product = product_of(op)
        assert product is not None and self.half.leaf is not None
        over = [
            self.loops.leaf_values[self.half.leaf]
            if o is self.target.result
            else self.range_value(o)
            for o in op.over
        ]
        return self.reduce(op, over, "dot", [self._paired(f) for f in product.operands])

    def _paired(self, factor: SSAValue) -> SSAValue:
        low = self.values[factor]
        self.condition = [] if self.odd is None else [self.odd]
        high = self.clone_value(factor, {self.leaf(self.target): self.half * 2 + 1})
        self.condition = []
        if high is not low:
            high.name_hint = None
        masked = isinstance(factor.owner, loop.AccessOp) and self.target in self.dag.free[factor]
        if self.odd is not None and not masked:
            high = self._or_zero(high)
        pair = self.loops.scalars.append(loop.PairOp(low, high))
        pair.name_hint = paired_name(factor)
        return pair

    def _or_zero(self, value: SSAValue) -> SSAValue:
        """A second number that is no load of its own, 0 where there is none."""
        assert self.odd is not None
        row = element_type(value.type)
        assert row is not None
        valid = self.loops.scalars.append(loop.ValidOp(*self.loops.map_of([self.odd])))
        scalars = self.loops.scalars
        return scalars.select(valid, value, scalars.constant(0, row))

    def access(self, op: loop.AccessOp) -> tuple[list[Expr], list[Expr]]:
        at, where = super().access(op)
        return at, [*where, *self.condition]
