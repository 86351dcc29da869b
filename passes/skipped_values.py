"""What a value is at the steps of a range that a schedule wants to leave out.

    causal attention, k > q:   select(k <= q, s, -inf) is -inf     max over k of it: the identity
                               exp(-inf - m)           is 0        sum over k of it: the identity
                               0 * v                   is 0        if v is finite

m is a number of any kind. Where m is the maximum over the very values that it is subtracted from,
exp(-inf - m) is 0 unless m is NaN or -inf: and then a step that is kept is NaN too, and so is the
sum, with the skipped steps or without. The same holds for e / sum(e) with e at least 0. Such a
value is marked `or_nan`: it is what it is, or else the reduction is NaN in any case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import math as math_ops
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, SSAValue

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.index_expr import Expr, RangeVar, as_expr, at_least, atom_expr, same
from uopc.passes.known_numbers import Known, difference, product_of, quotient, sum_of
from uopc.passes.loop_builder import least_of
from uopc.passes.loop_dag import LoopDag
from uopc.passes.reductions import identity
from uopc.passes.same_values import Where, leaf_of, same_value, through_tile


@dataclass(frozen=True, eq=False)
class Place:
    """Where a value is asked for: what the leaves of its indices are."""

    skipped: Where
    """At any step that is left out."""
    kept: Where | None
    """At one step that is kept, where NaN would stay; None if there may be none."""


class SkippedSteps:
    """The steps of one range that a new end leaves out, `at` standing for any of them."""

    def __init__(self, dag: LoopDag, leaf: RangeVar, end: Expr, at: Expr, *, finite: bool):
        self.dag = dag
        self.leaf = leaf
        self.end = end
        self.finite = finite
        self.at: Where = {leaf: at}
        self._held: list[Expr] = []
        """Guards of the reduction that is looked at: nobody reads what it is where one fails."""
        self._known: dict[tuple[SSAValue, Place], Known | None] = {}
        self._places: dict[tuple[Operation, Place], Place] = {}

    def ruled_out(self) -> bool:
        """Whether a guard of the kernel rules out the skipped steps, or there are none."""
        if (self.leaf.end - self.end).bounds[1] <= 0:
            return True
        return any(
            self.leaf in condition.leaves and condition.substitute(self.at).bounds[1] < 0
            for condition, _ in self.dag.guard_ranges
        )

    # Statements.

    def problem_of_tile(self, op: loop.TileOp) -> tuple[str, str] | None:
        """Why a tile has to be filled at the skipped steps: who may read there."""
        name = op.result.name_hint or "tile"
        axis = next(k for k, o in enumerate(op.over) if leaf_of(self.dag, o) is self.leaf)
        for use in op.result.uses:
            reader = use.operation
            if isinstance(reader, loop.ReadOp):
                at = self.dag.expressions(reader.map, reader.indices)[axis]
                guards = self._guards_of(reader.result)
                if not all(_never_below(end - 1 - at, guards) for end in least_of(self.end)):
                    return (
                        f"the tile '{name}' is read at {at}, which may be {self.end} or more",
                        "bound the ranges that read it first, by the same expression",
                    )
        return None

    def problem_of_reduction(self, op: loop.ReduceOp) -> tuple[str, str] | None:
        """Why a reduction needs the skipped steps; None if each of them adds nothing."""
        name = (op.results[0].name_hint if op.results else None) or "a reduction"
        if op.kind is None:
            return (
                f"'{name}' combines by a region, whose identity is unknown",
                "expected a reduction of a kind: add, max, …",
            )
        self._held = self._guards_of(op.results[0])
        found = self._taken(op, Place(self.at, self._kept_step(op)))
        row = element_type(op.results[0].type)
        assert row is not None
        neutral = identity(op.kind.data, row)
        if found is not None and found.number == neutral:
            return None
        what = "not known" if found is None else str(found.number)
        hint = f"expected {neutral}, what '{op.kind.data}' starts from"
        if found is None and row.is_float and not self.finite and self._is_if_finite(op):
            hint += "; it is that if all factors and summands are finite: write finite to say so"
        return (f"what '{name}' takes from step {self.end} on is {what}", hint)

    def _is_if_finite(self, op: loop.ReduceOp) -> bool:
        other = SkippedSteps(self.dag, self.leaf, self.end, self.at[self.leaf], finite=True)
        return other.problem_of_reduction(op) is None

    def _kept_step(self, op: loop.ReduceOp) -> Where | None:
        """The first step of a reduction, and of those that only go on with its result.

        NaN there makes all of them NaN. None where the first step may be none.
        """
        ranges: list[SSAValue] = []
        current: object = op
        while isinstance(current, loop.ReduceOp) and current.kind is not None:
            ranges.extend(current.over)
            users = [u.operation for u in current.results[0].uses]
            current = users[0] if len(users) == 1 else None
        return self._first_step({}, ranges)

    def _first_step(self, where: Where, ranges: list[SSAValue]) -> Where | None:
        """A place with some ranges at 0; None where they may have no steps."""
        found = dict(where)
        for range_value in ranges:
            leaf = leaf_of(self.dag, range_value)
            end = self.end if leaf is self.leaf else leaf.end
            if at_least(end.substitute(where), 1) is not True:
                return None
            found[leaf] = as_expr(0)
        for condition, _ in self.dag.guard_ranges:
            here = condition.leaves & found.keys()
            if here and not _never_below(condition.substitute(found), self._held):
                return None
        return found

    def _guards_of(self, value: SSAValue) -> list[Expr]:
        """The guards that hold wherever a value is computed and matters."""
        around = {leaf_of(self.dag, r.result) for r in self.dag.free[value]}
        return [c for c, _ in self.dag.guard_ranges if c.leaves <= around]

    # Values.

    def known(self, wanted: SSAValue, place: Place) -> Known | None:
        """The number that a value is at a place, if it is one for all that the place covers."""
        for value in self._unknown_below(wanted, place):
            self._known[value, place] = self._compute(value, place)
        return self._known[wanted, place]

    def _unknown_below(self, wanted: SSAValue, place: Place) -> list[SSAValue]:
        """What a value is computed from and has not been asked for, each after its operands."""
        found: dict[SSAValue, None] = {}
        stack = [wanted]
        while stack:
            value = stack.pop()
            if value in found or (value, place) in self._known:
                continue
            found[value] = None
            if isinstance(value.owner, Operation) and not _is_looked_up(value.owner):
                stack.extend(value.owner.operands)
        return sorted(
            found,
            key=lambda v: self.dag.position[v.owner] if isinstance(v.owner, Operation) else -1,
        )

    def _compute(self, value: SSAValue, place: Place) -> Known | None:
        op = value.owner
        match op:
            case arith.ConstantOp(value=FloatAttr() | IntegerAttr() as attribute):
                return Known(attribute.value.data)
            case loop.LoadOp():
                conditions = [e.substitute(place.skipped) for e in self.dag.conditions(op)]
                return Known(0) if any(c.bounds[1] < 0 for c in conditions) else None
            case loop.ReadOp():
                tile = op.buffer.owner
                assert isinstance(tile, loop.TileOp)
                return self.known(tile.value, self._through(op, place))
            case loop.ReduceOp():
                return self._reduced(op, place)
            case arith.SelectOp():
                return self._selected(op, place)
            case Operation():
                return self._scalar(op, place)
            case _:
                return None

    def _through(self, op: loop.ReadOp, place: Place) -> Place:
        """Where the value of a tile is asked for by a read of it."""
        found = self._places.get((op, place))
        if found is None:
            kept = None if place.kept is None else through_tile(self.dag, op, place.kept)
            found = Place(through_tile(self.dag, op, place.skipped), kept)
            self._places[op, place] = found
        return found

    def _reduced(self, op: loop.ReduceOp, place: Place) -> Known | None:
        """A reduction of nothing but identities is the identity."""
        row = element_type(op.results[0].type) if op.results else None
        if op.kind is None or row is None:
            return None
        own = {leaf_of(self.dag, o) for o in op.over}
        skipped = {k: v for k, v in place.skipped.items() if k not in own}
        kept = None if place.kept is None else self._first_step(place.kept, list(op.over))
        found = self._taken(op, Place(skipped, kept))
        neutral = identity(op.kind.data, row)
        return found if found is not None and found.number == neutral else None

    def _taken(self, op: loop.ReduceOp, place: Place) -> Known | None:
        """What a reduction of a kind takes at a step: its value, or the product of two."""
        values = [self.known(v, place) for v in op.values]
        return values[0] if len(values) == 1 else product_of(*values[:2], finite=self.finite)

    def _selected(self, op: arith.SelectOp, place: Place) -> Known | None:
        chosen = self.holds(op.cond, place.skipped)
        if chosen is not None:
            found = self.known(op.lhs if chosen else op.rhs, place)
            # At the kept step the other side may be chosen, and the NaN of this one lost.
            return None if found is None or found.or_nan else found
        left, right = (self.known(o, place) for o in (op.lhs, op.rhs))
        return left if left is not None and left == right and not left.or_nan else None

    def _scalar(self, op: Operation, place: Place) -> Known | None:
        operands = [self._known.get((o, place)) for o in op.operands]
        a = operands[0] if operands else None
        b = operands[1] if len(operands) > 1 else None
        match op:
            case arith.MulfOp():
                return product_of(a, b, finite=self.finite)
            case arith.MuliOp() | arith.AndIOp():
                return Known(0) if any(k is not None and k.number == 0 for k in (a, b)) else None
            case arith.AddfOp():
                return sum_of(a, b, finite=self.finite)
            case arith.SubfOp():
                if a is not None and a.number == -math.inf and self._is_of(op, "max", place):
                    return Known(-math.inf, or_nan=True)
                return difference(a, b, finite=self.finite)
            case arith.DivfOp():
                if a is not None and a.number == 0 and b is None and self._is_share(op, place):
                    return Known(0.0, or_nan=True)
                return quotient(a, b)
            case math_ops.ExpOp() | math_ops.Exp2Op():
                return Known(0.0, a.or_nan) if a is not None and a.number == -math.inf else None
            case arith.NegfOp():
                return None if a is None else Known(-a.number, a.or_nan)
            case arith.ExtFOp() | arith.TruncFOp():
                return a if a is not None and a.number in (0, math.inf, -math.inf) else None
            case _:
                return None

    # A maximum over what it is subtracted from, a sum of what it divides.

    def _is_share(self, op: arith.DivfOp, place: Place) -> bool:
        """Whether l of e / l is a sum of numbers not below 0, e at the kept step among them."""
        value = op.lhs
        while isinstance(value.owner, loop.ReadOp):
            tile = value.owner.buffer.owner
            assert isinstance(tile, loop.TileOp)
            value = tile.value
        return isinstance(value.owner, math_ops.ExpOp | math_ops.Exp2Op) and self._is_of(
            op, "add", place
        )

    def _is_of(self, op: arith.SubfOp | arith.DivfOp, kind: str, place: Place) -> bool:
        """Whether the second operand is one number at all steps, and reduces by a kind what the
        first operand is at the kept step, among others.

        Or it is some constant instead, as 1 for a sum that is 0: a finite one that is not 0 makes
        neither -inf - c nor 0 / c NaN, and 0 is taken for a maximum only.
        """
        if place.kept is None:
            return False
        for range_op in self.dag.free[op.rhs]:
            leaf = leaf_of(self.dag, range_op.result)
            here, there = (w.get(leaf, atom_expr(leaf)) for w in (place.skipped, place.kept))
            if same(here, there) is not True:
                return False
        result, where, reduced = op.rhs, place.kept, False
        while True:
            owner = result.owner
            if isinstance(owner, loop.ReadOp):
                where = through_tile(self.dag, owner, where)
                tile = owner.buffer.owner
                assert isinstance(tile, loop.TileOp)
                result = tile.value
            elif (
                isinstance(owner, loop.ReduceOp) and owner.kind is not None
            ) and owner.kind.data == kind:
                first = self._first_step(where, list(owner.over))
                if first is None:
                    return False
                result, where, reduced = owner.values[0], first, True
            elif isinstance(owner, arith.SelectOp) and not reduced:
                sides = [v for v in (owner.lhs, owner.rhs) if not _is_harmless(v, kind)]
                if len(sides) != 1:
                    return False
                (result,) = sides
            else:
                return reduced and same_value(self.dag, result, where, op.lhs, place.kept)

    # Conditions.

    def holds(self, condition: SSAValue, where: Where) -> bool | None:
        """Whether a condition holds: for all that a place covers, for none, or unknown."""
        op = condition.owner
        match op:
            case arith.ConstantOp(value=IntegerAttr() as attribute):
                return attribute.value.data != 0
            case loop.ValidOp():
                found = [
                    at_least(e.substitute(where), 0)
                    for e in self.dag.expressions(op.map, op.indices)
                ]
                return False if False in found else None if None in found else True
            case arith.CmpiOp():
                sides = [self._number(o, where) for o in op.operands]
                if sides[0] is None or sides[1] is None:
                    return None
                return _compared(op.predicate.value.data, sides[0], sides[1])
            case arith.AndIOp():
                found = list(self._all_hold(op, where))
                return False if False in found else None if None in found else True
            case loop.ReadOp():
                tile = op.buffer.owner
                assert isinstance(tile, loop.TileOp)
                return self.holds(tile.value, through_tile(self.dag, op, where))
            case _:
                return None

    def _all_hold(self, op: arith.AndIOp, where: Where) -> Iterator[bool | None]:
        """The parts of a conjunction, however deep."""
        stack: list[SSAValue] = list(op.operands)
        while stack:
            part = stack.pop()
            if isinstance(part.owner, arith.AndIOp):
                stack.extend(part.owner.operands)
            else:
                yield self.holds(part, where)

    def _number(self, value: SSAValue, where: Where) -> Expr | None:
        """An integer as an index expression, where it is one that its type can hold."""
        row = element_type(value.type)
        if row is None or row.is_float or row.is_bool:
            return None
        op = value.owner
        match op:
            case arith.ConstantOp(value=IntegerAttr() as attribute):
                found = as_expr(attribute.value.data)
            case loop.IndexOp():
                found = self.dag.expressions(op.map, op.indices)[0].substitute(where)
            case arith.AddiOp() | arith.SubiOp():
                left, right = (self._index(o, where) for o in op.operands)
                if left is None or right is None:
                    return None
                found = left + right if isinstance(op, arith.AddiOp) else left - right
            case _:
                return None
        low, high = found.bounds
        half = 1 << (row.bits - 1)
        return found if -half <= low and high < half else None

    def _index(self, value: SSAValue, where: Where) -> Expr | None:
        """A summand: no sum itself, so that chains of sums cost no recursion."""
        if isinstance(value.owner, arith.AddiOp | arith.SubiOp):
            return None
        return self._number(value, where)


def _is_harmless(value: SSAValue, kind: str) -> bool:
    """Whether -inf - value is -inf, for a maximum, or 0 / value is 0, for a sum."""
    op = value.owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, FloatAttr):
        return False
    number = op.value.value.data
    return math.isfinite(number) and (kind == "max" or number != 0)


def _never_below(number: Expr, guards: list[Expr]) -> bool:
    """Whether a number is at least 0 wherever some guards are."""
    return at_least(number, 0) is True or any(at_least(number, g) is True for g in guards)


def _is_looked_up(op: Operation) -> bool:
    """Whether a value is known from elsewhere than its operands."""
    return isinstance(op, loop.ReadOp | loop.ReduceOp | loop.AccessOp | loop.ExpressionOp)


def _compared(predicate: int, a: Expr, b: Expr) -> bool | None:
    """cmpi by the number of its predicate: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge."""
    if predicate >= 6:
        if min(a.bounds[0], b.bounds[0]) < 0:
            return None
        predicate -= 4
    match predicate:
        case 0:
            return same(a, b)
        case 1:
            return _not(same(a, b))
        case 2:
            return _not(at_least(a, b))
        case 3:
            return at_least(b, a)
        case 4:
            return _not(at_least(b, a))
        case _:
            return at_least(a, b)


def _not(holds: bool | None) -> bool | None:
    return None if holds is None else not holds
