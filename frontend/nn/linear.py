"""Linear and Embedding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from uopc.frontend.core import DTypeLike, Operand, bad, shown, tensor, whole
from uopc.frontend.nn.module import Module
from uopc.frontend.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


def parameter(value: Tensor) -> Tensor:
    """A tensor that optimizers train."""
    value.requires_grad = True
    return value


def uniform(shape: Sequence[int], bound: float, dtype: DTypeLike) -> Tensor:
    """A parameter, uniform within a bound."""
    return parameter(Tensor.uniform(tuple(shape), low=-bound, high=bound, dtype=dtype))


def constant(shape: Sequence[int], value: float, dtype: DTypeLike) -> Tensor:
    """A parameter, one number everywhere, with data of its own."""
    return parameter(filled(shape, value, dtype))


def filled(shape: Sequence[int], value: float, dtype: DTypeLike) -> Tensor:
    """One number everywhere, as data: training code reads it like any later value."""
    return Tensor(np.full(tuple(shape), value, np.float64), dtype=dtype)


class Linear(Module):
    """x weight^T + bias over the last axis: (…, inputs) to (…, outputs).

    `weight` is (outputs, inputs) and starts uniform within 1 / sqrt(inputs), as does `bias`
    (torch's start; He et al., 2015, with a = sqrt 5). Raises UopcError [wrong-argument],
    [wrong-operands].
    """

    def __init__(
        self, inputs: int, outputs: int, bias: bool = True, dtype: DTypeLike = "f32"
    ) -> None:
        inputs, outputs = whole("inputs", inputs), whole("outputs", outputs)
        bound = 1 / math.sqrt(max(1, inputs))
        self.weight = uniform((outputs, inputs), bound, dtype)
        self.bias = uniform((outputs,), bound, dtype) if bias else None

    def __call__(self, x: Operand) -> Tensor:
        x = tensor(x)
        if x.ndim == 0 or x.shape[-1] != self.weight.shape[1]:
            raise bad(
                "wrong-operands",
                f"Linear of {self.weight.shape[1]} inputs got shape {list(x.shape)}",
                "the last axis must have the size of the inputs",
            )
        return x.linear(self.weight, self.bias)


class Embedding(Module):
    """Rows of a table by number: indices (…) to (…, size).

    `weight` is (count, size) and starts normal. The row of `padding_idx` starts as zeros and gets
    no gradient. Indices are as those of Tensor.embedding. Raises UopcError [wrong-argument],
    [bad-index].
    """

    def __init__(
        self,
        count: int,
        size: int,
        padding_idx: int | None = None,
        dtype: DTypeLike = "f32",
    ) -> None:
        count, size = whole("count", count), whole("size", size)
        table = Tensor.randn(count, size, dtype=dtype)
        if padding_idx is not None:
            if not hasattr(padding_idx, "__index__") or not -count <= padding_idx < count:
                raise bad("wrong-argument", f"padding_idx {shown(padding_idx)} of {count} rows")
            padding_idx = int(padding_idx) % count
            table[padding_idx] = 0.0
            table.realize()
        self.padding_idx = padding_idx
        self.weight = parameter(table)

    def __call__(self, indices: Operand) -> Tensor:
        weight = self.weight
        if self.padding_idx is not None:
            rows = Tensor.arange(weight.shape[0]).unsqueeze(1)
            weight = (rows == self.padding_idx).where(weight.detach(), weight)
        return tensor(indices).embedding(weight)
