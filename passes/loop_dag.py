"""What linearize knows of a kernel's uloop body: where each value varies, and its expressions.

The free ranges of a value are those whose index it depends on. A reduction and a tile bind their
own ranges; what they are made of may depend on them, they do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, cast

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
    minimum,
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
        self.guard_ranges: list[tuple[Expr, Ranges]] = []
        """What must be at least 0 for anything to happen, with the ranges it depends on."""
        self.written: set[SSAValue] = set()
        """Buffers that a store or an update changes."""
        self._loads: dict[SSAValue, list[loop.LoadOp]] = {}
        for symbol, argument in zip(op.symbol_vars, op.block.args, strict=False):
            self.index[argument] = atom_expr(symbol)
        for argument in op.block.args:
            self.free[argument] = NO_RANGES
        for position, inner in enumerate(op.block.ops):
            self.position[inner] = position
            self._visit(inner)

    def loads_of(self, buffer: SSAValue) -> Sequence[loop.LoadOp]:
        """The loads from a buffer."""
        return self._loads.get(buffer, ())

    def expressions(self, map_: AffineMapAttr, operands: Sequence[SSAValue]) -> list[Expr]:
        """The results of a map over index values of the body."""
        return from_affine_map(map_.data, [self.index[o] for o in operands])

    def end_of(self, op: loop.RangeOp) -> Expr:
        """Where a range ends."""
        ends = self.expressions(op.end, op.operands_)
        return ends[0] if len(ends) == 1 else minimum(*ends)

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
        visit = self._VISITS.get(type(op))
        if visit is not None:
            free = visit(self, op, free)
        else:
            self._check_scalar(op)
            free |= self.free_in(self.index[o] for o in op.operands if o in self.index)
        for result in op.results:
            self.free[result] = free

    def _visit_range(self, op: loop.RangeOp, free: Ranges) -> Ranges:
        end = self.end_of(op)
        name = op.result.name_hint or "r"
        self.index[op.result] = new_range(name, end, op)
        return self.free_in([self.index[op.result]])

    def _visit_value(self, op: loop.ValueOp, free: Ranges) -> Ranges:
        (upper,) = self.expressions(op.upper, op.indices)
        self.index[op.result] = value(op.result, op.lower.value.data, upper.bounds[1])
        return free | self.free_in([upper])

    def _visit_access(self, op: loop.AccessOp, free: Ranges) -> Ranges:
        conditions = self.conditions(op)
        if isinstance(op, loop.LoadOp):
            self._loads.setdefault(op.buffer, []).append(op)
        return free | self.free_in([*self.expressions(op.map, op.indices), *conditions])

    def _visit_write(self, op: loop.StoreOp | loop.UpdateOp, free: Ranges) -> Ranges:
        free = self._visit_access(op, free)
        self.statements.append(op)
        self.written.add(op.buffer)
        self.free_of_statement[op] = free
        return free

    def _visit_reduce(self, op: loop.ReduceOp, free: Ranges) -> Ranges:
        if not is_inline(op):
            self.statements.append(op)
        return free - own_ranges(op)

    def _visit_tile(self, op: loop.TileOp, free: Ranges) -> Ranges:
        self.statements.append(op)
        return free - own_ranges(op)

    def _visit_index(self, op: loop.IndexOp | loop.ValidOp, free: Ranges) -> Ranges:
        return free | self.free_in(self.expressions(op.map, op.indices))

    def _visit_guard(self, op: loop.GuardOp, free: Ranges) -> Ranges:
        for condition in self.expressions(op.map, op.indices):
            self.guard_ranges.append((condition, self.free_in([condition])))
        return free

    # By exact type: a body has many ops, and asking each for its class one by one is slow.
    _VISITS: ClassVar[dict[type[Operation], Callable[[LoopDag, Any, Ranges], Ranges]]] = {
        loop.RangeOp: _visit_range,
        loop.ValueOp: _visit_value,
        loop.LoadOp: _visit_access,
        loop.ReadOp: _visit_access,
        loop.StoreOp: _visit_write,
        loop.UpdateOp: _visit_write,
        loop.ReduceOp: _visit_reduce,
        loop.TileOp: _visit_tile,
        loop.IndexOp: _visit_index,
        loop.ValidOp: _visit_index,
        loop.GuardOp: _visit_guard,
    }

    def _free_operands(self, op: Operation) -> Ranges:
        free = NO_RANGES
        for operand in op.operands:
            if operand not in self.index:  # an index counts where an expression uses it
                free |= self.free[operand]
        for region in op.regions:
            for inner in region.walk():
                for operand in inner.operands:
                    free |= self.free.get(operand, NO_RANGES)
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


def own_ranges(op: loop.ReduceOp | loop.TileOp) -> Ranges:
    """The ranges that a reduction or a tile binds."""
    return frozenset(o.owner for o in op.over if isinstance(o.owner, loop.RangeOp))


def is_loop(op: loop.RangeOp) -> bool:
    """Whether a range becomes a loop; the others are copies of the code, or lanes."""
    return op.kind.data not in ("unroll", "vector")


def is_inline(op: loop.ReduceOp) -> bool:
    """Whether a reduction runs over copies and lanes only: a tree of scalar or vector ops."""
    own = own_ranges(op)
    return bool(own) and not any(is_loop(r) for r in own)


def length_of(op: loop.RangeOp) -> int:
    """The number of copies or lanes of an unrolled or vector range."""
    length = op.constant_end
    assert length is not None
    return length
