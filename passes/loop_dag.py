"""What linearize knows of a kernel's uloop body: where each value varies, and its expressions.

The free ranges of a value are those whose index it depends on. A reduction and a tile bind their
own ranges; what they are made of may depend on them, they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Operation, SSAValue

from uopc.dialects import kernel, loop
from uopc.dialects.affine import from_affine_map
from uopc.dialects.errors import UopcError
from uopc.dialects.index_expr import (
    Expr,
    RangeVar,
    ValueVar,
    atom_expr,
    new_range,
    value,
)
from uopc.dialects.locations import location_of

Ranges = frozenset[loop.RangeOp]
NO_RANGES: Ranges = frozenset()

STATEMENTS = (loop.StoreOp, loop.UpdateOp, loop.ReduceOp, loop.TileOp)


class LoopDag:
    """The body of one kernel, analyzed in one walk."""

    def __init__(self, op: kernel.KernelOp) -> None:
        self.kernel = op
        self.position: dict[Operation, int] = {}
        """Where an op stands in the body."""
        self.index: dict[SSAValue, Expr] = {}
        """The expression of each value of index type."""
        self.free: dict[SSAValue, Ranges] = {}
        self.free_of_statement: dict[Operation, Ranges] = {}
        """The free ranges of stores and updates, which have no result to ask about."""
        self.statements: list[Operation] = []
        """Stores, updates, reductions and tiles, each after what it needs."""
        self.guards: list[tuple[Expr, ...]] = []
        self.written: set[SSAValue] = set()
        """Buffers that a store or an update changes."""
        for symbol, argument in zip(op.symbol_vars, op.block.args, strict=False):
            self.index[argument] = atom_expr(symbol)
        for argument in op.block.args:
            self.free[argument] = NO_RANGES
        for position, inner in enumerate(op.block.ops):
            self.position[inner] = position
            self._visit(inner)

    def expressions(self, map_: AffineMapAttr, operands: Sequence[SSAValue]) -> list[Expr]:
        """The results of a map over index values of the body."""
        return from_affine_map(map_.data, [self.index[o] for o in operands])

    def free_in(self, expressions: Iterable[Expr]) -> Ranges:
        """The ranges that some expressions depend on, ends of ranges included."""
        found: set[loop.RangeOp] = set()
        for expr in expressions:
            for leaf in expr.closure:
                if isinstance(leaf, RangeVar):
                    assert isinstance(leaf.key, loop.RangeOp)
                    found.add(leaf.key)
                elif isinstance(leaf, ValueVar):
                    found |= self.free[number_of(leaf)]
        return frozenset(found)

    def conditions(self, op: loop.AccessOp) -> list[Expr]:
        """What must be at least 0 for an access to happen."""
        return [] if op.where is None else self.expressions(op.where, op.indices)

    def _visit(self, op: Operation) -> None:
        free = self._free_operands(op)
        match op:
            case loop.RangeOp():
                (end,) = self.expressions(op.end, op.operands_)
                name = op.result.name_hint or "r"
                self.index[op.result] = new_range(name, end, op)
                free = self.free_in([self.index[op.result]])
            case loop.ValueOp():
                (upper,) = self.expressions(op.upper, op.indices)
                self.index[op.result] = value(op.result, op.lower.value.data, upper.bounds[1])
                free |= self.free_in([upper])
            case loop.LoadOp() | loop.ReadOp() | loop.StoreOp() | loop.UpdateOp():
                conditions = self.conditions(op)
                free |= self.free_in([*self.expressions(op.map, op.indices), *conditions])
                if isinstance(op, loop.StoreOp | loop.UpdateOp):
                    self.statements.append(op)
                    self.written.add(op.buffer)
                    self.free_of_statement[op] = free
            case loop.ReduceOp():
                self.statements.append(op)
                free -= self._own(op.over)
            case loop.TileOp():
                self.statements.append(op)
                free -= self._own(op.over)
            case loop.IndexOp() | loop.ValidOp():
                free |= self.free_in(self.expressions(op.map, op.indices))
            case loop.GuardOp():
                self.guards.append(tuple(self.expressions(op.map, op.indices)))
            case _:
                self._check_scalar(op)
        for result in op.results:
            self.free[result] = free

    def _own(self, over: Sequence[SSAValue]) -> Ranges:
        return frozenset(o.owner for o in over if isinstance(o.owner, loop.RangeOp))

    def _free_operands(self, op: Operation) -> Ranges:
        free = NO_RANGES
        for operand in op.operands:
            if operand not in self.index:  # an index counts where an expression uses it
                free |= self.free[operand]
        return free

    def _check_scalar(self, op: Operation) -> None:
        if op.regions or len(op.results) != 1:
            raise UopcError(
                "no-linear-form",
                f"{op.name} cannot stand in a kernel over ranges",
                hint="expected uloop ops and scalar ops of arith and math",
                location=location_of(op),
            )


def number_of(leaf: ValueVar) -> SSAValue:
    """The result of the uloop.value that an index expression's leaf stands for."""
    return cast(SSAValue, leaf.key)
