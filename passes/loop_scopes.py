"""The open loops while linearize builds them, and index arithmetic placed as far out as it can be.

A scope is a block under construction. What is made in it is remembered there and seen from the
scopes inside of it: a value is made once, in the deepest loop that it depends on. A range of kind
unroll or vector is no loop: an unrolled one has a number (see `Lanes`), and an index along a
vector is that of lane 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Attribute, Block, SSAValue

from uopc.dialects import loop
from uopc.dialects.element_types import element_type_named
from uopc.dialects.index_expr import (
    Atom,
    Expr,
    FloorDiv,
    Leaf,
    Max,
    Min,
    Mod,
    Product,
    RangeVar,
    SymbolVar,
    ValueVar,
    as_expr,
    at_least,
    atom_expr,
    new_range,
    total,
)
from uopc.passes.loop_dag import LoopDag, Ranges
from uopc.passes.scalar_builder import CMPI, INDEX, ScalarBuilder

Lanes = Mapping[loop.RangeOp, int]
"""The numbers of unrolled ranges: which copy of the code is being made."""

NO_LANES: Lanes = {}


class Scope:
    """A block under construction: a loop's body, a part of one, or the function's."""

    def __init__(self, range_op: loop.RangeOp | None, induction: SSAValue | None, block: Block):
        self.range = range_op
        self.induction = induction
        self.block = block
        self.builder = ScalarBuilder(block)
        self.values: dict[Any, SSAValue] = {}
        """What was made here, by what it is."""
        self.written_over: set[Any] = set()
        """The loads whose places have other contents since: none may be made any more."""


class Scopes:
    """The stack of open scopes of one kernel."""

    def __init__(self, dag: LoopDag, entry: Block) -> None:
        self.dag = dag
        self.stack = [Scope(None, None, entry)]
        self.symbols: dict[Atom, SSAValue] = {}
        self.known: dict[Leaf, Expr] = {}
        """What a range is while its loop is open: a number where the loop was peeled, or a range
        of fewer steps."""
        self.assumed: frozenset[Expr] = frozenset()
        """What is at least 0 where ops are now added: an `if` around it says so."""

    @property
    def top(self) -> Scope:
        return self.stack[-1]

    @property
    def root(self) -> Scope:
        return self.stack[0]

    @property
    def open_ranges(self) -> Ranges:
        return frozenset(s.range for s in self.stack if s.range is not None)

    def scope_of(self, free: Ranges) -> Scope:
        """The deepest open scope among some ranges."""
        for scope in reversed(self.stack):
            if scope.range is not None and scope.range in free:
                return scope
        return self.stack[0]

    def find(self, key: Any) -> SSAValue | None:
        for scope in reversed(self.stack):
            found = scope.values.get(key)
            if found is not None:
                return found
        return None

    # Ranges.

    def leaf_of(self, range_op: loop.RangeOp) -> RangeVar:
        leaf = self.dag.index[range_op.result].leaf
        assert isinstance(leaf, RangeVar)
        return leaf

    def shorten(self, range_op: loop.RangeOp, end: Expr) -> None:
        """While it is open, a range is known to run to `end` only."""
        leaf = self.leaf_of(range_op)
        self.known[leaf] = new_range(leaf.name, end, range_op)

    def fix(self, range_op: loop.RangeOp, value: int) -> None:
        """While it is open, a range has one value."""
        self.known[self.leaf_of(range_op)] = as_expr(value)

    def forget(self, range_op: loop.RangeOp) -> None:
        self.known.pop(self.leaf_of(range_op), None)

    # Index expressions.

    def resolved(self, expr: Expr, lanes: Lanes = NO_LANES) -> Expr:
        """An expression with all that is known filled in; vector ranges stay."""
        replaced: dict[Any, Expr | int] = {
            leaf: known for leaf in expr.leaves if (known := self.known.get(leaf)) is not None
        }
        if lanes:
            for leaf in expr.leaves:
                if isinstance(leaf, RangeVar) and isinstance(leaf.key, loop.RangeOp):
                    number = lanes.get(leaf.key)
                    if number is not None:
                        replaced[leaf] = number
        return expr.substitute(replaced) if replaced else expr

    def along(self, expr: Expr, vector: loop.RangeOp | None) -> tuple[Expr, int | None]:
        """A resolved expression at lane 0, and by how much it grows a lane (None: unevenly)."""
        if vector is None:
            return expr, 0
        leaf = self.leaf_of(vector)
        if leaf not in expr.leaves:
            return expr, 0
        base = expr.substitute({leaf: 0})
        step = (expr - base).substitute({leaf: 1}).as_int()
        even = step is not None and expr - base - atom_expr(leaf) * step == as_expr(0)
        return base, step if even else None

    def index(self, expr: Expr, lanes: Lanes = NO_LANES) -> SSAValue:
        """An index expression as a value."""
        return self._index(self.resolved(expr, lanes))

    def _index(self, expr: Expr) -> SSAValue:
        found = self.find(expr)
        if found is None:
            scope = self.scope_of(self.dag.free_in([expr]))
            found = scope.values[expr] = self._sum(expr, scope)
        return found

    def _sum(self, expr: Expr, scope: Scope) -> SSAValue:
        if not expr.terms:
            return self.root.builder.attribute_constant(IntegerAttr(expr.const, INDEX), INDEX)
        inner: list[tuple[Atom, int]] = []
        outer: list[tuple[Atom, int]] = []
        for atom, coefficient in expr.terms:
            home = self.scope_of(self.dag.free_in([atom_expr(atom)]))
            (inner if home is scope else outer).append((atom, coefficient))
        inner.sort(key=lambda term: term[1] < 0)  # what is subtracted comes last
        b = scope.builder
        result: SSAValue | None = None
        const = expr.const
        if outer or (const > 0 and inner[0][1] < 0):
            result = self._index(total([const, *(atom_expr(a) * c for a, c in outer)]))
            const = 0
        for atom, coefficient in inner:
            value = self._atom(atom, scope)
            negative = coefficient < 0 and result is not None
            factor = -coefficient if negative else coefficient
            if factor != 1:
                value = b.op(arith.MuliOp, value, self._index(as_expr(factor)))
            if result is None:
                result = value
            else:
                result = b.op(arith.SubiOp if negative else arith.AddiOp, result, value)
        assert result is not None
        if const:
            op = arith.AddiOp if const > 0 else arith.SubiOp
            result = b.op(op, result, self._index(as_expr(abs(const))))
        return result

    def _atom(self, atom: Atom, scope: Scope) -> SSAValue:
        b = scope.builder
        match atom:
            case RangeVar():
                for open_ in reversed(self.stack):
                    if open_.range is atom.key and open_.induction is not None:
                        return open_.induction
                raise AssertionError(f"the range {atom.name} is not open")
            case SymbolVar():
                return self.symbols[atom]
            case ValueVar():
                return self.number(atom)
            case Product():
                factors = [self._index(atom_expr(f)) for f in atom.factors]
                product = factors[0]
                for factor in factors[1:]:
                    product = b.op(arith.MuliOp, product, factor)
                return product
            case FloorDiv() | Mod():
                return self._divide(atom, scope)
            case Min() | Max():
                op = arith.MinSIOp if isinstance(atom, Min) else arith.MaxSIOp
                operands = [self._index(e) for e in atom.operands]
                result = operands[0]
                for operand in operands[1:]:
                    result = b.op(op, result, operand)
                return result
            case _:
                raise AssertionError(f"no such atom: {atom}")

    def number(self, leaf: ValueVar) -> SSAValue:
        """The index that a computed number is; see Values."""
        raise NotImplementedError

    def _divide(self, atom: FloorDiv | Mod, scope: Scope) -> SSAValue:
        b = scope.builder
        numerator, divisor = self._index(atom.numerator), self._index(atom.divisor)
        plain = atom.numerator.bounds[0] >= 0 and atom.divisor.bounds[0] >= 1
        if plain:
            op = arith.DivUIOp if isinstance(atom, FloorDiv) else arith.RemUIOp
            return b.op(op, numerator, divisor)
        quotient = b.op(arith.FloorDivSIOp, numerator, divisor)
        if isinstance(atom, FloorDiv):
            return quotient
        return b.op(arith.SubiOp, numerator, b.op(arith.MuliOp, quotient, divisor))

    # Conditions.

    def all_at_least_zero(self, expressions: Sequence[Expr]) -> SSAValue:
        """Whether all of some resolved expressions are at least 0; true for none."""
        result: SSAValue | None = None
        for position, expr in enumerate(expressions):
            holds = self._at_least_zero(expr)
            if result is None:
                result = holds
            else:
                key = ("and", result, holds)
                both = self.find(key)
                if both is None:
                    # Where its parts are known, as what they are asked for may be kept there.
                    scope = self.scope_of(self.dag.free_in(expressions[: position + 1]))
                    both = scope.builder.op(arith.AndIOp, result, holds)
                    scope.values[key] = both
                result = both
        if result is None:
            return self.root.builder.constant(1, element_type_named("i1"))
        return result

    def _at_least_zero(self, expr: Expr) -> SSAValue:
        # 4 - i >= 0 is i <= 4, and i - j + 2 >= 0 is i >= j - 2
        key = ("at least 0", expr)
        found = self.find(key)
        if found is not None:
            return found
        scope = self.scope_of(self.dag.free_in([expr]))
        plus = total(atom_expr(a) * c for a, c in expr.terms if c > 0)
        minus = total(atom_expr(a) * -c for a, c in expr.terms if c < 0)
        if plus.terms:
            predicate, left, right = "sge", plus, minus - expr.const
        else:
            predicate, left, right = "sle", minus, plus + expr.const
        properties: dict[str, Attribute] = {"predicate": CMPI[predicate]}
        holds = scope.builder.op(
            arith.CmpiOp, self._index(left), self._index(right), result=i1, properties=properties
        )
        scope.values[key] = holds
        return holds


def unproven(conditions: Sequence[Expr]) -> list[Expr]:
    """The conditions that do not hold for all indices."""
    return [c for c in conditions if at_least(c, 0) is not True]
