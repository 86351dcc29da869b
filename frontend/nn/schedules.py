"""Learning rates over time. A schedule sets its optimizer's `lr`, which is data: no new plan.

    schedule = nn.CosineLR(opt, steps=1000, warmup=100)
    for x, y in batches:
        ...
        opt.step(loss)
        schedule.step()

Each is a formula of the number of steps taken, times the rate that each group started with; so
any step can be gone to directly, and a checkpoint needs the number alone.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from uopc.frontend.core import bad, real, shown, tensor, whole
from uopc.frontend.nn.optim import Optimizer
from uopc.frontend.tensor import Tensor


class LRSchedule:
    """The rate of each group is its first one times `factor(steps taken)`."""

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may not check)
            given = type(optimizer).__name__
            raise bad("wrong-argument", f"{given} is no optimizer", "give it nn.SGD(…), say")
        self.optimizer = optimizer
        self.first_rates = [group["lr"] for group in optimizer.groups]
        self.steps = 0
        self._told: dict[str, Tensor] = {}
        self.go_to(0)

    def factor(self, step: int) -> float:
        """What the first rates are multiplied by after so many steps."""
        raise NotImplementedError

    def go_to(self, step: int) -> None:
        """Set the rates as after `step` steps."""
        self.steps = step
        factor = self.factor(step)
        for group, first in zip(self.optimizer.groups, self.first_rates, strict=True):
            group["lr"] = first * factor

    def step(self) -> None:
        """One step further."""
        self.go_to(self.steps + 1)

    def get_last_lr(self) -> list[float]:
        """The rate of each group now."""
        return [group["lr"] for group in self.optimizer.groups]

    def state_dict(self) -> dict[str, Tensor]:
        """The number of steps and the first rates."""
        return {"steps": Tensor(np.int64(self.steps)), "first_rates": Tensor(
            np.array(self.first_rates, np.float64), dtype="f64")}  # fmt: skip

    def state_children(self) -> Iterator[tuple[str, Any]]:
        """What state.py finds here: the numbers as tensors, made anew each time."""
        self._told = self.state_dict()
        return iter(self._told.items())

    def state_loaded(self) -> None:
        """Called when the tensors told last have been given the values of a checkpoint."""
        self.load_state_dict(self._told)

    def load_state_dict(self, tensors: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken. Raises UopcError [wrong-state]."""
        if missing := [name for name in ("steps", "first_rates") if name not in tensors]:
            raise bad("wrong-state", f"the schedule's state lacks {', '.join(missing)}")
        rates = tensor(tensors["first_rates"]).tolist()
        if len(rates) != len(self.first_rates):
            raise bad("wrong-state", f"{len(rates)} first rates for {len(self.first_rates)} groups")
        self.first_rates = rates
        self.go_to(int(tensor(tensors["steps"]).item()))


class LambdaLR(LRSchedule):
    """Any function of the number of steps."""

    def __init__(self, optimizer: Optimizer, function: Callable[[int], float]) -> None:
        if not callable(cast("object", function)):
            raise bad("wrong-argument", f"the function of a schedule is {shown(function)}",
                      "expected one from the number of steps to a factor")  # fmt: skip
        self.function = function
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.function(step)


class StepLR(LRSchedule):
    """gamma times less every `every` steps."""

    def __init__(self, optimizer: Optimizer, every: int, gamma: float = 0.1) -> None:
        self.every, self.gamma = whole("every", every, 1), real("gamma", gamma)
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.gamma ** (step // self.every)


class MultiStepLR(LRSchedule):
    """gamma times less at each of some steps."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1) -> None:
        if not isinstance(cast("object", milestones), Iterable):
            raise bad("wrong-argument", f"milestones are {shown(milestones)}", "expected several")
        self.milestones = sorted(whole("a milestone", n) for n in milestones)
        self.gamma = real("gamma", gamma)
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.gamma ** bisect.bisect_right(self.milestones, step)


class ExponentialLR(LRSchedule):
    """gamma times less at each step."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        self.gamma = real("gamma", gamma)
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        return self.gamma**step


class _Within(LRSchedule):
    """Something over `steps` steps, after a linear rise over `warmup` of them."""

    def __init__(self, optimizer: Optimizer, steps: int, warmup: int, least: float) -> None:
        steps, warmup = whole("steps", steps), whole("warmup", warmup)
        if not 0 <= warmup <= steps or steps < 1 or real("least", least) < 0:
            raise bad(
                "wrong-argument",
                f"{warmup} steps of warm-up of {steps}, down to {least}",
                "expected 0 <= warmup <= steps, steps of at least 1, and least of at least 0",
            )
        self.total, self.warmup, self.least = steps, warmup, least
        super().__init__(optimizer)

    def factor(self, step: int) -> float:
        if step < self.warmup:
            return (step + 1) / self.warmup
        rest = self.total - self.warmup
        return self.falling(min(1.0, (step - self.warmup) / rest) if rest else 1.0)

    def falling(self, part: float) -> float:
        """The factor after a part, 0 to 1, of the steps behind the warm-up."""
        raise NotImplementedError


class CosineLR(_Within):
    """Half a cosine from 1 down to `least` over `steps` (Loshchilov and Hutter, 2017), where the
    first `warmup` steps rise linearly: 1/warmup, 2/warmup, …, 1. It stays at `least` after."""

    def __init__(
        self, optimizer: Optimizer, steps: int, warmup: int = 0, least: float = 0.0
    ) -> None:
        super().__init__(optimizer, steps, warmup, least)

    def falling(self, part: float) -> float:
        return self.least + (1 - self.least) * 0.5 * (1 + math.cos(math.pi * part))


class LinearLR(_Within):
    """A straight line from 1 down to `least` over `steps`, with a warm-up as CosineLR has."""

    def __init__(
        self, optimizer: Optimizer, steps: int, warmup: int = 0, least: float = 0.0
    ) -> None:
        super().__init__(optimizer, steps, warmup, least)

    def falling(self, part: float) -> float:
        return 1 + (self.least - 1) * part
