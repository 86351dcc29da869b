"""The open loops while linearize builds them, and values placed as far out as they can be.

A value is made on demand in the deepest open loop that it depends on and remembered there, so
that a load which does not depend on an inner loop stands outside of it, and nothing is made
twice. Sums of index expressions are split the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from uopc.dialects import loop
from uopc.dialects.element_types import element_type, element_type_named
from uopc.dialects.index_expr import (
    Atom,
    Expr,
    FloorDiv,
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
    total,
)
from uopc.dialects.sizes import Size
from uopc.passes.loop_dag import LoopDag, Ranges, number_of
from uopc.passes.scalar_builder import CMPI, INDEX, ScalarBuilder


class Scope:
    """A block under construction: a loop's body, a guarded part of one, or the function's."""

    def __init__(self, range_op: loop.RangeOp | None, induction: SSAValue | None, block: Block):
        self.range = range_op
        self.induction = induction
        self.block = block
        self.builder = ScalarBuilder(block)
        self.values: dict[Any, SSAValue] = {}
        """What was made here: SSA values of the body, and expressions."""


class Scopes:
    """The stack of open scopes of one kernel."""

    def __init__(self, dag: LoopDag, entry: Block) -> None:
        self.dag = dag
        self.stack = [Scope(None, None, entry)]
        self.symbols: dict[Atom, SSAValue] = {}
        self.buffers: dict[SSAValue, tuple[SSAValue, Sequence[Size]]] = {}
        """For each buffer of the body the linear one and the sizes it is indexed by."""

    @property
    def top(self) -> Scope:
        return self.stack[-1]

    @property
    def root(self) -> Scope:
        return self.stack[0]

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

    # Scalars.

    def value(self, wanted: SSAValue) -> SSAValue:
        """A scalar of the body, made where it belongs if it is not there yet."""
        found = self.find(wanted)
        if found is not None:
            return found
        missing: set[Operation] = set()
        stack = [wanted]
        while stack:
            current = stack.pop()
            owner = current.owner
            assert isinstance(owner, Operation)
            if owner not in missing and self.find(current) is None:
                missing.add(owner)
                stack.extend(self._scalar_operands(owner))
        for op in sorted(missing, key=self.dag.position.__getitem__):
            self._make(op)
        found = self.find(wanted)
        assert found is not None
        return found

    def _scalar_operands(self, op: Operation) -> list[SSAValue]:
        if isinstance(op, loop.ReduceOp | loop.TileOp):
            raise AssertionError(f"{op.name} is read before it is computed")
        found: list[SSAValue] = []
        for operand in op.operands:
            if operand in self.dag.index:
                found.extend(
                    number_of(leaf)
                    for leaf in self.dag.index[operand].leaves
                    if isinstance(leaf, ValueVar)
                )
            elif isinstance(operand.owner, Operation) and not isinstance(
                operand.owner, loop.TileOp
            ):
                found.append(operand)
        return found

    def _make(self, op: Operation) -> None:
        result = op.results[0]
        scope = self.scope_of(self.dag.free[result])
        match op:
            case arith.ConstantOp():
                scope = self.root
                made = scope.builder.attribute_constant(op.value, result.type)
            case loop.LoadOp() | loop.ReadOp():
                made = self._load(op, scope)
            case loop.IndexOp():
                (expr,) = self.dag.expressions(op.map, op.indices)
                made = scope.builder.op(
                    arith.IndexCastOp, self.index(expr), result=result.type, properties={}
                )
            case loop.ValueOp():
                made = self._clamp(op, scope)
            case loop.ValidOp():
                made = self.all_at_least_zero(self.dag.expressions(op.map, op.indices), scope)
            case _:
                operands = [self.value(o) for o in op.operands]
                clone = type(op).create(
                    operands=operands,
                    result_types=[r.type for r in op.results],
                    properties=op.properties,
                    attributes=op.attributes,
                )
                made = scope.builder.append(clone)
        if made.name_hint is None:
            made.name_hint = result.name_hint
        scope.values[result] = made

    def _load(self, op: loop.LoadOp | loop.ReadOp, scope: Scope) -> SSAValue:
        conditions = unproven(self.dag.conditions(op))
        target, indices = self.access(op)
        type_ = op.result.type
        if not conditions:
            return scope.builder.append(_load_op(target, indices, type_))
        row = element_type(type_)
        assert row is not None
        condition = self.all_at_least_zero(conditions, scope)
        valid = Block()
        loaded = ScalarBuilder(valid).append(_load_op(target, indices, type_))
        valid.add_op(scf.YieldOp(loaded))
        invalid = Block([scf.YieldOp(self.root.builder.constant(0, row))])
        branch = scf.IfOp(condition, [type_], Region(valid), Region(invalid))
        return scope.builder.append(branch)

    def access(self, op: loop.AccessOp) -> tuple[SSAValue, list[SSAValue]]:
        """The buffer and the indices of an access, flat where the buffer is."""
        target, sizes = self.buffers[op.buffer]
        expressions = self.dag.expressions(op.map, op.indices)
        type_ = target.type
        assert isinstance(type_, MemRefType)
        if type_.get_num_dims() != len(sizes):
            flat: Expr = as_expr(0)
            for expr, size in zip(expressions, sizes, strict=True):
                flat = flat * size + expr
            expressions = [flat]
        return target, [self.index(expr) for expr in expressions]

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

    # Index expressions.

    def index(self, expr: Expr) -> SSAValue:
        """An index expression as a value."""
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
            result = self.index(total([const, *(atom_expr(a) * c for a, c in outer)]))
            const = 0
        for atom, coefficient in inner:
            value = self._atom(atom, scope)
            negative = coefficient < 0 and result is not None
            factor = -coefficient if negative else coefficient
            if factor != 1:
                value = b.op(arith.MuliOp, value, self.index(as_expr(factor)))
            if result is None:
                result = value
            else:
                result = b.op(arith.SubiOp if negative else arith.AddiOp, result, value)
        assert result is not None
        if const:
            op = arith.AddiOp if const > 0 else arith.SubiOp
            result = b.op(op, result, self.index(as_expr(abs(const))))
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
                return self.value(number_of(atom))
            case Product():
                factors = [self.index(atom_expr(f)) for f in atom.factors]
                product = factors[0]
                for factor in factors[1:]:
                    product = b.op(arith.MuliOp, product, factor)
                return product
            case FloorDiv() | Mod():
                return self._divide(atom, scope)
            case Min() | Max():
                op = arith.MinSIOp if isinstance(atom, Min) else arith.MaxSIOp
                operands = [self.index(e) for e in atom.operands]
                result = operands[0]
                for operand in operands[1:]:
                    result = b.op(op, result, operand)
                return result
            case _:
                raise AssertionError(f"no such atom: {atom}")

    def _divide(self, atom: FloorDiv | Mod, scope: Scope) -> SSAValue:
        b = scope.builder
        numerator, divisor = self.index(atom.numerator), self.index(atom.divisor)
        plain = atom.numerator.bounds[0] >= 0 and atom.divisor.bounds[0] >= 1
        if plain:
            op = arith.DivUIOp if isinstance(atom, FloorDiv) else arith.RemUIOp
            return b.op(op, numerator, divisor)
        quotient = b.op(arith.FloorDivSIOp, numerator, divisor)
        if isinstance(atom, FloorDiv):
            return quotient
        return b.op(arith.SubiOp, numerator, b.op(arith.MuliOp, quotient, divisor))

    # Conditions.

    def all_at_least_zero(self, expressions: Sequence[Expr], scope: Scope) -> SSAValue:
        """Whether all of some expressions are at least 0; true for none."""
        result: SSAValue | None = None
        for expr in expressions:
            holds = self._at_least_zero(expr)
            result = holds if result is None else scope.builder.op(arith.AndIOp, result, holds)
        return scope.builder.constant(1, element_type_named("i1")) if result is None else result

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
            arith.CmpiOp, self.index(left), self.index(right), result=i1, properties=properties
        )
        scope.values[key] = holds
        return holds


def unproven(conditions: Sequence[Expr]) -> list[Expr]:
    """The conditions that do not hold for all indices."""
    return [c for c in conditions if at_least(c, 0) is not True]


def _load_op(buffer: SSAValue, indices: Sequence[SSAValue], type_: Attribute) -> memref.LoadOp:
    return memref.LoadOp.create(operands=[buffer, *indices], result_types=[type_])
