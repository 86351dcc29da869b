"""Builds uloop ops from index expressions: leaves become operands, expressions affine maps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap

from uopc.dialects import loop
from uopc.dialects.affine import to_affine_map
from uopc.dialects.index_expr import Expr, Leaf, Min, as_expr, atom_expr, new_range
from uopc.dialects.sizes import Size, size_upper
from uopc.passes.scalar_builder import ScalarBuilder


def least_of(end: Expr) -> list[Expr]:
    """Expressions whose least is an end: c + min(a, b) is min(a + c, b + c)."""
    for atom, coefficient in end.terms:
        if isinstance(atom, Min) and coefficient == 1:
            rest = end - atom_expr(atom)
            return [rest + operand for operand in atom.operands]
    return [end]


class LoopBuilder:
    """Appends to `block`; knows the value of each leaf of an index expression."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.scalars = ScalarBuilder(block)
        self.leaf_values: dict[Leaf, SSAValue] = {}

    def map_of(self, exprs: Sequence[Expr]) -> tuple[list[SSAValue], AffineMap]:
        """The affine map of some expressions and the values of its dimensions."""
        leaves: dict[Leaf, None] = {}
        for expr in exprs:
            leaves.update(dict.fromkeys(sorted(expr.leaves, key=lambda leaf: leaf.order)))
        dims = list(leaves)
        return [self.leaf_values[leaf] for leaf in dims], to_affine_map(exprs, dims)

    def range(self, name: str, end: Size, kind: str = "loop", maximum: int | None = None) -> Expr:
        """A new range op, as an expression; `maximum` is the largest end if that is no number."""
        operands, map_ = self.map_of(least_of(as_expr(end)))
        if maximum is None and not isinstance(end, int):
            maximum = size_upper(end)
        result = self.scalars.append(
            loop.RangeOp(map_, operands, kind, None if isinstance(end, int) else maximum)
        )
        result.name_hint = name
        expr = new_range(name, as_expr(end))
        leaf = expr.leaf
        assert leaf is not None
        self.leaf_values[leaf] = result
        return expr

    def access_maps(
        self, at: Sequence[Expr], where: Sequence[Expr]
    ) -> tuple[list[SSAValue], AffineMap, AffineMap | None]:
        """Operands, map and condition map of an access."""
        operands, map_, valid, _ = self.load_maps(at, where, [])
        return operands, map_, valid

    def load_maps(
        self, at: Sequence[Expr], where: Sequence[Expr], ahead: Sequence[Expr]
    ) -> tuple[list[SSAValue], AffineMap, AffineMap | None, AffineMap | None]:
        """Operands and map of a load, the map of its conditions and that of what it asks for."""
        operands, joint = self.map_of([*at, *where, *ahead])
        results, conditions = joint.results, len(at) + len(where)
        map_ = AffineMap(joint.num_dims, 0, results[: len(at)])
        valid = AffineMap(joint.num_dims, 0, results[len(at) : conditions]) if where else None
        asked = AffineMap(joint.num_dims, 0, results[conditions:]) if ahead else None
        return operands, map_, valid, asked
