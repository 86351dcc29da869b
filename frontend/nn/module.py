"""Module: what layers have in common. A layer is a class with `__call__`; no more is needed.

    class MLP(nn.Module):
        def __init__(self):
            self.first = nn.Linear(784, 128)
            self.second = nn.Linear(128, 10)

        def __call__(self, x):
            return self.second(self.first(x).relu())

Parameters are found by walking attributes, lists, tuples and dicts (state.py), so a class that is
no Module can hold layers as well: `nn.get_parameters(anything)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from uopc.frontend.core import Operand, bad, real, tensor
from uopc.frontend.nn import state

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


_LINE = 88
"""Characters of a layer's description that stand on one line."""


class Module:
    """Parameters, state and mode of whatever is built of layers. No `super().__init__()` needed."""

    training: bool = True
    """Whether dropout drops and batch norm takes the batch's own statistics."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The layer applied; `forward` is called if the class has one."""
        forward = getattr(self, "forward", None)
        if forward is None:
            raise NotImplementedError(f"{type(self).__name__} has neither __call__ nor forward")
        return forward(*args, **kwargs)

    def __repr__(self) -> str:
        """The class with its parts: `Linear(weight: f32[8, 2], bias: f32[8])`."""
        parts = [f"{name}: {_described(value)}" for name, value in vars(self).items()]
        short = f"{type(self).__name__}({', '.join(parts)})"
        if len(short) <= _LINE and "\n" not in short:
            return short
        lines = "".join(f"\n{part}," for part in parts).replace("\n", "\n    ")
        return f"{type(self).__name__}({lines}\n)"

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (value for value in state.walk(self) if isinstance(value, Module))

    def parameters(self) -> list[Tensor]:
        """The tensors below it that require gradients, each once."""
        return state.get_parameters(self)

    def named_parameters(self) -> dict[str, Tensor]:
        """Those by the names that `state_dict` gives them."""
        return {n: t for n, t in state.get_state_dict(self).items() if t.requires_grad}

    def state_dict(self) -> dict[str, Tensor]:
        """All tensors below it, by the attributes that lead there: `layers.0.weight`."""
        return state.get_state_dict(self)

    def load_state_dict(self, tensors: Mapping[str, Any], strict: bool = True) -> None:
        """Take values by name; see state.load_state_dict."""
        state.load_state_dict(self, tensors, strict)

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in every module below."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """`train(False)`."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters():
            parameter.grad = None


class Sequential(Module):
    """Layers and functions one after the other: `Sequential(Linear(2, 8), Tensor.relu)`.

    Parameters are called `0.weight` and so on, as torch calls them.
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        for number, layer in enumerate(layers):
            if not callable(layer):
                given = type(layer).__name__
                raise bad("wrong-argument", f"layer {number} is no function: {given}")
        self.layers = list(layers)

    def __call__(self, x: Any) -> Any:
        # Functions such as Tensor.tanh take tensors only.
        value: Any = tensor(cast("Operand", x)) if isinstance(x, np.ndarray) else x
        for layer in self.layers:
            value = layer(value)
        return value

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Callable[..., Any]:
        return self.layers[index]

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter(self.layers)

    def state_children(self) -> Iterator[tuple[str, Any]]:
        """What state.py walks: the layers under their numbers."""
        return ((str(number), layer) for number, layer in enumerate(self.layers))


class Dropout(Module):
    """Each element 0 with probability p while training, the others over 1 - p.

    Raises UopcError [wrong-argument] for a p that is no number from 0 to 1.
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p = real("p", p, 0, 1)

    def __call__(self, x: Operand) -> Tensor:
        return tensor(x).dropout(self.p, self.training)


def _described(value: Any) -> str:
    """A part of a module in few words: of a tensor type and shape, of others what repr says."""
    if hasattr(value, "element") and hasattr(value, "shape"):
        return f"{value.element}{list(value.shape)}"
    if isinstance(value, list | tuple):
        items = cast(Sequence[Any], value)
        if any(isinstance(item, Module) for item in items):
            inside = "".join(f"\n{_described(item)}," for item in items)
            return "[" + inside.replace("\n", "\n    ") + "\n]"
        return repr(items)
    if callable(value) and not isinstance(value, Module):
        return getattr(value, "__qualname__", type(value).__name__)
    return repr(value)
