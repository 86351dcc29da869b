"""Convolution layers, plain and transposed, over one to three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias, cast

from uopc.frontend.core import DTypeLike, Operand, bad, plain, tensor, whole
from uopc.frontend.nn.linear import uniform
from uopc.frontend.nn.module import Module
from uopc.frontend.tensor import Tensor

Sizes: TypeAlias = "int | Sequence[int]"


class _Convolution(Module):
    axes: ClassVar[int]

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: Sizes,
        stride: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> None:
        inputs, outputs = whole("inputs", inputs, 1), whole("outputs", outputs, 1)
        groups = whole("groups", groups, 1)
        if inputs % groups or outputs % groups:
            raise bad(
                "wrong-argument",
                f"{inputs} and {outputs} channels in {groups} groups",
                "both must be multiples of the groups",
            )
        self.inputs, self.outputs = inputs, outputs
        self.kernel_size = self._each(kernel_size, "kernel_size", 1)
        self.stride = self._each(stride, "stride", 1)
        self.dilation = self._each(dilation, "dilation", 1)
        self.groups = groups

    def _each(self, value: Sizes, what: str, least: int = 0) -> tuple[int, ...]:
        given: Any = plain(value)
        if not isinstance(given, tuple):
            given = (given,) * self.axes
        sizes = tuple(whole(what, n, least) for n in cast("Sequence[object]", given))
        if len(sizes) != self.axes:
            raise bad("wrong-argument", f"{what} {list(sizes)} for {self.axes} spatial axes")
        return sizes

    def _checked(self, value: Operand) -> Tensor:
        x = tensor(value)
        if x.ndim != self.axes + 2 or x.shape[1] != self.inputs:
            raise bad(
                "wrong-operands",
                f"{type(self).__name__} of {self.inputs} channels got shape {list(x.shape)}",
                f"expected a batch axis, the channels, and {self.axes} spatial axes",
            )
        return x


class Conv1d(_Convolution):
    """(batch, inputs, length) to (batch, outputs, places): a cross-correlation.

    `weight` is (outputs, inputs / groups, *kernel_size); it and `bias` start uniform within
    1 / sqrt(inputs / groups * kernel size). `padding` is a size for all axes or each, or "same"
    (strides 1 only), or "valid". Raises UopcError [wrong-argument], [wrong-operands].
    """

    axes = 1

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: DTypeLike = "f32",
    ) -> None:
        super().__init__(inputs, outputs, kernel_size, stride, dilation, groups)
        self.padding = self._pairs(padding)
        shape = (outputs, inputs // groups, *self.kernel_size)
        bound = 1 / math.sqrt(max(1, math.prod(shape[1:])))
        self.weight = uniform(shape, bound, dtype)
        self.bias = uniform((outputs,), bound, dtype) if bias else None

    def _pairs(self, padding: Sizes | str) -> tuple[tuple[int, int], ...]:
        if not isinstance(padding, str):
            return tuple((p, p) for p in self._each(padding, "padding"))
        if padding == "valid":
            return ((0, 0),) * self.axes
        if padding != "same" or any(s != 1 for s in self.stride):
            raise bad(
                "wrong-argument",
                f"padding {padding!r} with strides {list(self.stride)}",
                "expected sizes, valid, or, with strides 1, same",
            )
        totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        return tuple((n // 2, n - n // 2) for n in totals)

    def __call__(self, x: Operand) -> Tensor:
        padded = self._checked(x).pad(((0, 0), (0, 0), *self.padding))
        return padded.conv(self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


class Conv2d(Conv1d):
    """Conv1d over two spatial axes."""

    axes = 2


class Conv3d(Conv1d):
    """Conv1d over three spatial axes."""

    axes = 3


class ConvTranspose1d(_Convolution):
    """The transpose of Conv1d: (batch, inputs, places) to (batch, outputs, length).

    `weight` is (inputs, outputs / groups, *kernel_size); both start uniform within
    1 / sqrt(outputs / groups * kernel size). `output_padding` adds to the end of each axis.
    """

    axes = 1

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        dtype: DTypeLike = "f32",
    ) -> None:
        super().__init__(inputs, outputs, kernel_size, stride, dilation, groups)
        self.padding = self._each(padding, "padding")
        self.output_padding = self._each(output_padding, "output_padding")
        shape = (inputs, outputs // groups, *self.kernel_size)
        bound = 1 / math.sqrt(max(1, math.prod(shape[1:])))
        self.weight = uniform(shape, bound, dtype)
        self.bias = uniform((outputs,), bound, dtype) if bias else None

    def __call__(self, x: Operand) -> Tensor:
        return self._checked(x).conv_transpose(
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.dilation,
            self.groups,
        )


class ConvTranspose2d(ConvTranspose1d):
    """ConvTranspose1d over two spatial axes."""

    axes = 2


class ConvTranspose3d(ConvTranspose1d):
    """ConvTranspose1d over three spatial axes."""

    axes = 3
