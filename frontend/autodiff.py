"""Gradients of tensors: `backward`, `gradient`, `no_grad`. The rules are in gradients.py."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from uopc.frontend import nodes, tracing
from uopc.frontend.core import bad, wrap
from uopc.frontend.gradients import gradients
from uopc.frontend.graph import Node
from uopc.frontend.promotion import is_float

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def _seed(x: Tensor, gradient: Tensor | None) -> Node:
    node = x.node
    if not is_float(node.type):
        raise bad("no-gradient", f"{node.type} has no gradients", "cast to a float type first")
    if gradient is None:
        if x.size != 1:
            raise bad(
                "no-gradient",
                f"a tensor of {x.size} elements needs weights for its gradient",
                "reduce it with sum() or mean(), or pass gradient=",
            )
        return nodes.full_like(1.0, node)
    return nodes.broadcast(nodes.cast(gradient.node, node.type), node.shape)


def backward(
    x: Tensor, targets: Sequence[Tensor] | None = None, gradient: Tensor | None = None
) -> None:
    """Add the gradients of x to `grad` of the tensors with requires_grad that it depends on, or
    of the `targets` among them only. `gradient` weighs the elements of an x that is no scalar.

    The graph stays: backward may be called again. Gradients are tensors of the same kind and can
    be differentiated themselves. Raises UopcError [no-gradient].
    """
    seed = _seed(x, gradient)
    if not x.node.tracked:
        raise bad(
            "no-gradient",
            "this tensor depends on no tensor with requires_grad",
            "set requires_grad before computing with it; detach() and no_grad stop gradients",
        )
    found = gradients(x.node, seed)
    chosen = None if targets is None else {id(t) for t in targets}
    for node, grad in found.items():
        owner = node.owner() if node.op == "leaf" and node.owner is not None else None
        if owner is not None and (chosen is None or id(owner) in chosen):
            added = wrap(grad)
            owner.grad = added if owner.grad is None else owner.grad + added
    for target in targets or ():
        if target.grad is None:
            target.grad = wrap(nodes.full_like(0, target.node))


def gradient(x: Tensor, *targets: Tensor, weights: Tensor | None = None) -> list[Tensor]:
    """The gradients of x with respect to tensors, as tensors: zeros where it does not depend.

    A target is a tensor with requires_grad or one computed from such. Nothing is stored.
    """
    seed = _seed(x, weights)
    wanted = [t.node for t in targets]
    found = gradients(x.node, seed, wanted)
    return [wrap(found.get(node) or nodes.full_like(0, node)) for node in wanted]


@contextmanager
def no_grad() -> Generator[None]:
    """Inside of the block, of this thread, what is computed tracks no gradients."""
    before = tracing.state.gradients
    tracing.state.gradients = False
    try:
        yield
    finally:
        tracing.state.gradients = before
