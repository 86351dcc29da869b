"""Index expressions over sizes as arith ops on `index` values.

n * 8 + 1                  arith.muli %n, %c8; arith.addi …, %c1
(n + 7) floordiv 8         arith.divui where nothing is negative, else arith.floordivsi
n mod 8                    arith.remui, else a - (a floordivsi b) * b
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from uopc.dialects.index_expr import (
    Atom,
    Composite,
    Expr,
    FloorDiv,
    Leaf,
    Max,
    Min,
    Mod,
    Product,
    SymbolVar,
)
from uopc.dialects.index_walk import children
from uopc.passes.scalar_builder import INDEX, ScalarBuilder


class IndexArith:
    """Appends the ops for expressions to a builder's block; what was computed once is kept."""

    def __init__(self, builder: ScalarBuilder, symbols: Mapping[SymbolVar, SSAValue]) -> None:
        self.builder = builder
        self.values: dict[Atom, SSAValue] = {**symbols}

    def constant(self, number: int) -> SSAValue:
        return self.builder.attribute_constant(IntegerAttr(number, INDEX), INDEX)

    def index(self, size: Expr | int) -> SSAValue:
        """The value of a size. Raises KeyError for a leaf that is no known symbol."""
        if isinstance(size, int):
            return self.constant(size)
        pending: list[Atom] = [atom for atom, _ in size.terms]
        while pending:
            atom = pending[-1]
            if atom in self.values:
                pending.pop()
                continue
            if isinstance(atom, Leaf):
                raise KeyError(atom.name)
            assert isinstance(atom, Composite)
            wanted = [child for child in children(atom) if child not in self.values]
            pending.extend(wanted)
            if not wanted:
                self.values[atom] = self._composite(atom)
        return self._linear(size)

    def _linear(self, e: Expr) -> SSAValue:
        b = self.builder
        result: SSAValue | None = self.constant(e.const) if e.const or not e.terms else None
        for atom, coefficient in e.terms:
            value = self.values[atom]
            if coefficient != 1:
                value = b.op(arith.MuliOp, value, self.constant(coefficient))
            result = value if result is None else b.op(arith.AddiOp, result, value)
        assert result is not None
        return result

    def _composite(self, atom: Composite) -> SSAValue:
        match atom:
            case Product():
                return self._fold(arith.MuliOp, [self.values[f] for f in atom.factors])
            case FloorDiv() | Mod():
                return self._divide(atom)
            case Min() | Max():
                kind = arith.MinSIOp if isinstance(atom, Min) else arith.MaxSIOp
                return self._fold(kind, [self._linear(e) for e in atom.operands])
            case _:
                raise AssertionError(f"no such atom: {atom}")

    def _fold(self, kind: type[arith.SignlessIntegerBinaryOperation], values: list[SSAValue]):
        result = values[0]
        for value in values[1:]:
            result = self.builder.op(kind, result, value)
        return result

    def _divide(self, atom: FloorDiv | Mod) -> SSAValue:
        b = self.builder
        numerator, divisor = self._linear(atom.numerator), self._linear(atom.divisor)
        if atom.numerator.lower >= 0:
            kind = arith.DivUIOp if isinstance(atom, FloorDiv) else arith.RemUIOp
            return b.op(kind, numerator, divisor)
        quotient = b.op(arith.FloorDivSIOp, numerator, divisor)
        if isinstance(atom, FloorDiv):
            return quotient
        return b.op(arith.SubiOp, numerator, b.op(arith.MuliOp, quotient, divisor))
