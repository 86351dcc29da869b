"""Gradients of lazy nodes, by the rules of passes/gradient_rules.py.

Gradients are nodes as any others: they can be differentiated again, and share with the forward
graph whatever is equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from uopc.frontend.graph import Node, tracked_order
from uopc.frontend.nodes import BUILDER
from uopc.passes.gradient_rules import backpropagate


def gradients(root: Node, seed: Node, wanted: Sequence[Node] = ()) -> dict[Node, Node]:
    """The gradients of `root`, weighted by `seed`, with respect to its leaves and to `wanted`.

    Nodes that root does not depend on are not in the result. Raises UopcError [no-gradient].
    """
    return backpropagate(BUILDER, tracked_order(root), root, seed, frozenset(wanted))
