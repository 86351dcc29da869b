"""Nodes from nodes: passes/op_builder.py for the lazy graph, its methods as functions."""

from __future__ import annotations

from typing import Any

from uopc.dialects.index_expr import Expr
from uopc.frontend.graph import Node
from uopc.frontend.graph import apply as apply_node
from uopc.passes.op_builder import OpBuilder
from uopc.passes.op_builder import kept as kept


class NodeBuilder(OpBuilder[Node]):
    """Makes lazy nodes."""

    def apply(self, op: str, sources: tuple[Node, ...], attributes: tuple[Any, ...] = ()) -> Node:
        return apply_node(op, sources, attributes)

    def constant(self, value: Any, shape: Any, type_: str) -> Node:
        if not isinstance(value, Expr):
            return super().constant(value, shape, type_)
        # The value of a size that is known at the call: ones, added up.
        ones = super().constant(1, (value,), "i64")
        return self.broadcast(self.cast(self.reduce("add", ones, (0,)), type_), shape)


BUILDER = NodeBuilder()

constant = BUILDER.constant
full_like = BUILDER.full_like
unary = BUILDER.unary
binary = BUILDER.binary
add = BUILDER.add
sub = BUILDER.sub
mul = BUILDER.mul
div = BUILDER.div
neg = BUILDER.neg
scaled = BUILDER.scaled
where = BUILDER.where
cast = BUILDER.cast
reshape = BUILDER.reshape
expand = BUILDER.expand
broadcast = BUILDER.broadcast
permute = BUILDER.permute
flip = BUILDER.flip
shrink = BUILDER.shrink
pad = BUILDER.pad
dilated = BUILDER.dilated
reduce = BUILDER.reduce
spread = BUILDER.spread
gather = BUILDER.gather
scatter = BUILDER.scatter
detach = BUILDER.detach
