"""Gradients held within bounds, before an optimizer's step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

from uopc.frontend import autodiff
from uopc.frontend.core import bad, real, shown
from uopc.frontend.tensor import Tensor


def clip_grad_norm_(
    params: Iterable[Tensor], max_norm: float | Tensor, norm_type: float = 2.0
) -> Tensor:
    """Scale all gradients so that their norm, as one vector, is at most `max_norm`.

    They are multiplied by min(1, max_norm / (norm + 1e-6)), as in torch. Returns the norm before,
    f32 (or f64) of rank 0. `max_norm` is part of the program's structure if it is a number, data
    if it is a tensor; `norm_type` may be infinity. Raises UopcError [wrong-argument].
    """
    real("norm_type", norm_type)
    if not isinstance(max_norm, Tensor):
        real("max_norm", max_norm)
    owners = [p for p in _parameters(params) if p.grad is not None]
    if not norm_type > 0 or (not isinstance(max_norm, Tensor) and not max_norm >= 0):
        raise bad("wrong-argument", f"norm {norm_type} up to {max_norm}", "both must be positive")
    with autodiff.no_grad():
        total = _norm([p.grad for p in owners if p.grad is not None], norm_type)
        factor = (max_norm / (total + 1e-6)).minimum(1.0)
        for owner in owners:
            assert owner.grad is not None
            owner.grad = owner.grad * factor.cast(owner.grad.element)
    return total


def _parameters(params: Iterable[Tensor]) -> list[Tensor]:
    """A tensor by itself as well, as torch takes it: walked through it would be its rows.

    Raises UopcError [wrong-argument] for what are no tensors.
    """
    if isinstance(params, Tensor):
        return [params]
    found: list[object] = list(params) if isinstance(cast("object", params), Iterable) else [params]
    for each in found:
        if not isinstance(each, Tensor):
            raise bad("wrong-argument", f"parameters are {shown(each)}", "pass model.parameters()")
    return cast("list[Tensor]", found)


def _norm(grads: list[Tensor], norm_type: float) -> Tensor:
    """The norm of all elements; of each tensor first, so that no sum is long and narrow."""
    wide = [g if g.element == "f64" else g.cast("f32") for g in grads]
    if not wide:
        return Tensor(0.0)
    if math.isinf(norm_type):
        parts = [g.abs().max() if g.size else Tensor(0.0) for g in wide]
        total = parts[0]
        for part in parts[1:]:
            total = total.maximum(part)
        return total
    if norm_type == 2.0:
        parts = [g.square().sum() for g in wide]
    else:
        parts = [g.abs().pow(norm_type).sum() for g in wide]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total.sqrt() if norm_type == 2.0 else total.pow(1 / norm_type)


def clip_grad_value_(params: Iterable[Tensor], bound: float | Tensor) -> None:
    """Hold each element of each gradient between -bound and bound; NaN stays NaN."""
    if not isinstance(bound, Tensor) and not real("bound", bound) >= 0:
        raise bad("wrong-argument", f"a bound of {bound}", "expected a positive number")
    with autodiff.no_grad():
        for owner in _parameters(params):
            if owner.grad is not None:
                owner.grad = owner.grad.minimum(bound).maximum(-bound)
