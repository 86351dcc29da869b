"""Optimizers: SGD, Adam, AdamW; and what they share.

    opt = nn.AdamW(model.parameters(), lr=1e-3)
    for x, y in batches:
        opt.zero_grad()
        loss = model(x).cross_entropy(y)
        loss.backward()
        opt.step(loss)                    # computes the loss, parameters and state in one plan
        opt.lr = 0.999 * opt.lr

Every number that may change from step to step is data: learning rates and the other
hyperparameters are tensors of rank 0, and so are Adam's running products of the betas. So no step
after the second makes a new plan, whatever is set, and a jitted step reads them anew.

A parameter in f32 or a half type is updated in f32, one in f64 in f64; state is kept in that type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from uopc.frontend import autodiff, tracing
from uopc.frontend.core import bad, real, shown
from uopc.frontend.nn import state
from uopc.frontend.nn.module import Module
from uopc.frontend.tensor import Tensor

ParamsLike: TypeAlias = "Iterable[Tensor] | Iterable[Mapping[str, Any]]"
Numbers: TypeAlias = "dict[str, Tensor]"
Updates: TypeAlias = "Iterator[tuple[Tensor, Tensor]]"


class ParamGroup:
    """Parameters that share hyperparameters: `group["lr"]` reads one, `group["lr"] = x` sets it."""

    def __init__(self, params: Sequence[Tensor], values: Mapping[str, float]) -> None:
        self.params = list(params)
        self.values = {name: _number(real(name, value)) for name, value in values.items()}
        """Each hyperparameter as an f64 tensor of rank 0."""
        self.kept: dict[str, Tensor] = {}
        """What the optimizer keeps once for the group."""

    def __getitem__(self, name: str) -> float:
        return float(self.values[name].item())

    def __setitem__(self, name: str, value: float | Tensor) -> None:
        if name not in self.values:
            raise bad(
                "wrong-argument",
                f"there is no hyperparameter {name!r} to set",
                f"expected one of {', '.join(self.values)}",
            )
        new = value if isinstance(value, Tensor) else _number(real(name, value))
        self.values[name].assign(new.detach())

    def __contains__(self, name: str) -> bool:
        return name in self.values


def _number(value: float) -> Tensor:
    return Tensor(np.float64(value), dtype="f64")


def _hyperparameter(name: str) -> property:
    def read(self: Optimizer) -> float:
        return self.groups[0][name]

    def write(self: Optimizer, value: float | Tensor) -> None:
        for group in self.groups:
            group[name] = value

    return property(read, write, doc=f"{name} of the first group; setting it sets it in all.")


class Optimizer:
    """Parameters in groups, and state for each parameter.

    `params` are tensors, or dicts of `params` and the hyperparameters that differ for them.
    Raises UopcError [wrong-argument] for no parameters, one given twice, or one that needs no
    gradient, and for a hyperparameter that is no number of its range.
    """

    lr = _hyperparameter("lr")
    weight_decay = _hyperparameter("weight_decay")

    def __init__(self, params: ParamsLike, defaults: Mapping[str, float]) -> None:
        self.groups = _groups(_listed(params), defaults)
        self.params: list[Tensor] = [p for group in self.groups for p in group.params]
        _check_params(self.params)
        self.steps = Tensor(np.int64(0))
        """How many steps were taken, i64 of rank 0."""
        self.state: list[dict[str, Tensor]] = [
            {name: _zeros(p) for name in self.state_names()} for p in self.params
        ]

    @property
    def param_groups(self) -> list[ParamGroup]:
        """The groups, by torch's name."""
        return self.groups

    def state_names(self) -> Sequence[str]:
        """What is kept for each parameter, in its shape, from zeros on."""
        return ()

    def group_updates(self, group: ParamGroup) -> tuple[Numbers, list[tuple[Tensor, Tensor]]]:
        """The numbers of a step, in f64, and what those kept with the group become."""
        return group.values, []

    def updates(self, parameter: Tensor, grad: Tensor, own: Numbers, numbers: Numbers) -> Updates:
        """What one parameter and its state become; all in the type of the state."""
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.params:
            parameter.grad = None

    def step(self, *extra: Tensor) -> None:
        """Update the parameters that have gradients, and compute it, with `extra`, in one plan."""
        changed = self.schedule_step(None)
        waiting = [] if tracing.current() is not None else state.take_deferred()
        Tensor.realize_all(*changed, *waiting, *extra)

    def schedule_step(self, condition: Tensor | None) -> list[Tensor]:
        """Make the step's changes, not yet computed, and return what is changed.

        Where `condition` (i1, rank 0) is false everything keeps its value.
        """
        changed: list[Tensor] = []

        def become(target: Tensor, value: Tensor) -> None:
            value = value.cast(target.element)
            if condition is not None:
                value = condition.where(value, target)
            target.assign(value)
            changed.append(target)

        with autodiff.no_grad():
            become(self.steps, self.steps + 1)
            at = 0
            for group in self.groups:
                numbers, kept = self.group_updates(group)
                typed: dict[str, Numbers] = {}
                for target, value in kept:
                    become(target, value)
                for parameter in group.params:
                    own = self.state[at]
                    at += 1
                    if parameter.grad is None:
                        continue
                    type_ = _wide(parameter.element)
                    if type_ not in typed:
                        typed[type_] = {name: n.cast(type_) for name, n in numbers.items()}
                    wide = parameter.cast(type_)
                    found = self.updates(wide, parameter.grad.cast(type_), own, typed[type_])
                    for target, value in list(found):
                        become(parameter if target is wide else target, value)
        return changed

    def state_dict(self) -> dict[str, Tensor]:
        """State and hyperparameters by name: `0.exp_avg`, `groups.0.lr`."""
        named = {"steps": self.steps}
        for number, own in enumerate(self.state):
            named |= {f"{number}.{name}": value for name, value in own.items()}
        for number, group in enumerate(self.groups):
            held = group.values | group.kept
            named |= {f"groups.{number}.{name}": value for name, value in held.items()}
        return named

    def state_children(self) -> Iterator[tuple[str, Any]]:
        """What state.py finds here: no parameters, which belong to the model."""
        return iter(self.state_dict().items())

    def load_state_dict(self, tensors: Mapping[str, Any], strict: bool = True) -> None:
        """Take state and hyperparameters by name; see state.load_state_dict."""
        state.load_state_dict(self, tensors, strict)


def _listed(params: Any) -> list[Any]:
    """What an optimizer is given, as a list. A tensor by itself would be taken for its rows."""
    given: object = params
    if isinstance(given, Iterable) and not isinstance(given, Tensor | Mapping | Module):
        return list(cast("Iterable[Any]", given))
    hint = "expected a list of tensors, or of dicts with params"
    if isinstance(given, Module):
        hint = "give it model.parameters()"
    raise bad("wrong-argument", f"the parameters are no list: {type(params).__name__}", hint)


def _groups(given: list[Any], defaults: Mapping[str, float]) -> list[ParamGroup]:
    if not any(isinstance(each, Mapping) for each in given):
        return [ParamGroup(cast("list[Tensor]", given), defaults)]
    groups: list[ParamGroup] = []
    for each in cast("list[Mapping[str, Any]]", given):
        if not isinstance(each, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may not check)
            raise bad(
                "wrong-argument",
                f"a {type(each).__name__} stands among parameter groups",
                "expected tensors only, or dicts with params only",
            )
        options = {name: value for name, value in each.items() if name != "params"}
        unknown = [name for name in options if name not in defaults]
        if "params" not in each or unknown:
            raise bad(
                "wrong-argument",
                f"a parameter group has {', '.join(each)}",
                f"expected params, and any of {', '.join(defaults)}",
            )
        own = each["params"]
        own = [own] if isinstance(own, Tensor) else _listed(own)  # as torch takes it
        groups.append(ParamGroup(own, {**defaults, **options}))
    return groups


def _check_params(params: list[Tensor]) -> None:
    if not params:
        raise bad("wrong-argument", "an optimizer of no parameters")
    if len({id(p) for p in params}) != len(params):
        raise bad(
            "wrong-argument", "a parameter is given twice", "nn.get_parameters gives each once"
        )
    for number, parameter in enumerate(params):
        if not isinstance(parameter, Tensor) or not parameter.requires_grad:  # pyright: ignore[reportUnnecessaryIsInstance] (callers may not check)
            raise bad(
                "wrong-argument",
                f"parameter {number} needs no gradient",
                "expected tensors with requires_grad",
            )


def _wide(type_: str) -> str:
    return "f64" if type_ == "f64" else "f32"


def _zeros(parameter: Tensor) -> Tensor:
    # Data, not a constant: the first step has the structure of all others.
    return Tensor(np.zeros(parameter.shape), dtype=_wide(parameter.element))


def _check_range(name: str, value: object, below: float = np.inf) -> None:
    if not 0 <= real(name, value) < below:
        bound = f"and below {below:g}" if below < np.inf else "and finite"
        raise bad("wrong-argument", f"{name} is {shown(value)}", f"expected at least 0 {bound}")


def _pair(betas: Any) -> tuple[float, float]:
    try:
        first, second = betas
    except (TypeError, ValueError):
        message = f"betas is {shown(betas)}"
        raise bad("wrong-argument", message, "expected a pair of numbers") from None
    _check_range("beta1", first, 1.0)
    _check_range("beta2", second, 1.0)
    return first, second


class SGD(Optimizer):
    """Gradient descent, with momentum (Sutskever et al., 2013), as torch computes it.

        g = grad + weight_decay p
        m = momentum m + g
        p = p - lr m            with nesterov: p - lr (g + momentum m)

    Without momentum (0) there is no m, and none can be set later.
    """

    def __init__(
        self,
        params: ParamsLike,
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)):
            _check_range(name, value)
        if nesterov and not momentum:
            raise bad("wrong-argument", "nesterov without momentum", "give momentum=0.9, say")
        self.nesterov = nesterov
        self.has_momentum = momentum > 0
        numbers = {"lr": lr, "weight_decay": weight_decay}
        super().__init__(params, numbers | ({"momentum": momentum} if momentum else {}))

    def state_names(self) -> Sequence[str]:
        return ("momentum_buffer",) if self.has_momentum else ()

    def updates(self, parameter: Tensor, grad: Tensor, own: Numbers, numbers: Numbers) -> Updates:
        g = grad + numbers["weight_decay"] * parameter
        if self.has_momentum:
            m = numbers["momentum"] * own["momentum_buffer"] + g
            yield own["momentum_buffer"], m
            g = g + numbers["momentum"] * m if self.nesterov else m
        yield parameter, parameter - numbers["lr"] * g


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), as torch computes it; weight decay is added to the gradient.

        g = grad + weight_decay p
        m = beta1 m + (1 - beta1) g              v = beta2 v + (1 - beta2) g g
        p = p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)

    beta^t is kept as a running product in f64, so that betas may change on the way.
    """

    def __init__(
        self,
        params: ParamsLike,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            _check_range(name, value)
        first, second = _pair(betas)
        numbers = {"lr": lr, "beta1": first, "beta2": second, "eps": eps}
        super().__init__(params, numbers | {"weight_decay": weight_decay})
        for group in self.groups:
            group.kept = {"beta1_product": _number(1.0), "beta2_product": _number(1.0)}

    def state_names(self) -> Sequence[str]:
        return ("exp_avg", "exp_avg_sq")

    def group_updates(self, group: ParamGroup) -> tuple[Numbers, list[tuple[Tensor, Tensor]]]:
        values, kept = group.values, group.kept
        first = kept["beta1_product"] * values["beta1"]
        second = kept["beta2_product"] * values["beta2"]
        numbers = {
            "beta1": values["beta1"],
            "beta2": values["beta2"],
            "rest1": 1 - values["beta1"],
            "rest2": 1 - values["beta2"],
            "rate": values["lr"] / (1 - first),
            "scale": 1 / (1 - second),
            "eps": values["eps"],
            "weight_decay": values["weight_decay"],
            "shrink": 1 - values["lr"] * values["weight_decay"],
        }
        return numbers, [(kept["beta1_product"], first), (kept["beta2_product"], second)]

    def updates(self, parameter: Tensor, grad: Tensor, own: Numbers, numbers: Numbers) -> Updates:
        g = grad + numbers["weight_decay"] * parameter
        yield from self._moved(parameter, parameter, g, own, numbers)

    def _moved(
        self, parameter: Tensor, start: Tensor, g: Tensor, own: Numbers, numbers: Numbers
    ) -> Updates:
        m = numbers["beta1"] * own["exp_avg"] + numbers["rest1"] * g
        v = numbers["beta2"] * own["exp_avg_sq"] + numbers["rest2"] * g * g
        yield own["exp_avg"], m
        yield own["exp_avg_sq"], v
        change = m * numbers["rate"] / ((v * numbers["scale"]).sqrt() + numbers["eps"])
        yield parameter, start - change


class AdamW(Adam):
    """Adam with weight decay by itself (Loshchilov and Hutter, 2019), as torch computes it:
    p = (1 - lr weight_decay) p before Adam's step, whose gradient has no decay."""

    def __init__(
        self,
        params: ParamsLike,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)

    def updates(self, parameter: Tensor, grad: Tensor, own: Numbers, numbers: Numbers) -> Updates:
        yield from self._moved(parameter, parameter * numbers["shrink"], grad, own, numbers)
