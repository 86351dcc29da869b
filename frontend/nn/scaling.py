"""Loss scaling, for gradients in half types (Micikevicius et al., 2018)."""

from __future__ import annotations

import numpy as np

from uopc.frontend import autodiff, tracing
from uopc.frontend.core import bad, real
from uopc.frontend.nn import state
from uopc.frontend.nn.optim import Optimizer
from uopc.frontend.tensor import Tensor


class LossScaler:
    """Scales the loss up before `backward` and the gradients down after it.

        scaler.scale(loss).backward()
        scaler.unscale(opt)                  # only if gradients are clipped in between
        scaler.step(opt, loss)

    A step with a gradient that is not finite is skipped: nothing changes but the scale, which is
    halved. After `growth_interval` steps without one the scale is doubled. No value is read to
    decide this, so it works in a jitted step as well.
    """

    def __init__(
        self,
        scale: float = 65536.0,
        growth_interval: int = 1000,
        growth: float = 2.0,
        backoff: float = 0.5,
    ) -> None:
        names = ("scale", "growth_interval", "growth", "backoff")
        for name, value in zip(names, (scale, growth_interval, growth, backoff), strict=True):
            real(name, value)
        if not (scale > 0 and growth > 1 > backoff > 0 and growth_interval >= 1):
            raise bad(
                "wrong-argument",
                f"loss scale {scale}, growth {growth} after {growth_interval}, backoff {backoff}",
                "expected scale > 0, growth > 1, 0 < backoff < 1, an interval of at least 1",
            )
        self.factor = Tensor(np.float32(scale))
        """The scale, f32 of rank 0."""
        self.clean_steps = Tensor(np.int32(0))
        """Steps since the scale changed."""
        self.growth_interval = growth_interval
        self.growth, self.backoff = growth, backoff
        self._unscaled: set[int] = set()

    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the scale, in f32 at least."""
        return loss.cast("f64" if loss.element == "f64" else "f32") * self.factor

    def unscale(self, optimizer: Optimizer) -> None:
        """Divide the optimizer's gradients by the scale, in f32 at least, once a step."""
        if id(optimizer) in self._unscaled:
            raise bad("wrong-argument", "these gradients were unscaled before", "once a step")
        self._unscaled.add(id(optimizer))
        with autodiff.no_grad():
            for owner in optimizer.params:
                if owner.grad is not None:
                    wide = "f64" if owner.grad.element == "f64" else "f32"
                    owner.grad = owner.grad.cast(wide) / self.factor

    def step(self, optimizer: Optimizer, *extra: Tensor) -> Tensor:
        """The optimizer's step if all gradients are finite, and the next scale, in one plan.

        Returns whether the step was taken: i1 of rank 0.
        """
        if id(optimizer) not in self._unscaled:
            self.unscale(optimizer)
        self._unscaled.discard(id(optimizer))
        with autodiff.no_grad():
            finite = Tensor(True)
            for owner in optimizer.params:
                if owner.grad is not None:
                    finite = finite.logical_and(owner.grad.isfinite().all())
        changed = optimizer.schedule_step(finite)
        with autodiff.no_grad():
            clean = self.clean_steps + 1
            grows = clean >= self.growth_interval
            larger = grows.where(self.factor * self.growth, self.factor)
            self.factor.assign(finite.where(larger, self.factor * self.backoff))
            self.clean_steps.assign(finite.where(grows.where(0, clean), 0))
        waiting = [] if tracing.current() is not None else state.take_deferred()
        Tensor.realize_all(finite, self.factor, self.clean_steps, *changed, *waiting, *extra)
        return finite
