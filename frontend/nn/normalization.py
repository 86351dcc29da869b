"""LayerNorm, RMSNorm, GroupNorm, InstanceNorm and BatchNorm; formulas with each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from uopc.frontend import autodiff
from uopc.frontend.core import DTypeLike, Operand, bad, real, tensor, whole
from uopc.frontend.nn.linear import constant, filled
from uopc.frontend.nn.module import Module
from uopc.frontend.nn.state import defer
from uopc.frontend.tensor import Tensor


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, over the last axes, which have `shape`
    (Ba et al., 2016). The variance is the one of all, without correction."""

    def __init__(
        self,
        shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DTypeLike = "f32",
    ) -> None:
        sizes = cast("Sequence[object]", shape if isinstance(shape, Sequence) else (shape,))
        self.shape = tuple(whole("a size of shape", n) for n in sizes)
        if not self.shape:
            raise bad("wrong-argument", "LayerNorm over no axes", "give the last axes' sizes")
        self.eps = real("eps", eps)
        self.weight = constant(self.shape, 1.0, dtype) if elementwise_affine else None
        self.bias = constant(self.shape, 0.0, dtype) if elementwise_affine and bias else None

    def __call__(self, x: Operand) -> Tensor:
        x = tensor(x)
        _check_last(x, self.shape, "LayerNorm")
        axes = tuple(range(-len(self.shape), 0))
        return x.layer_norm(self.weight, self.bias, self.eps, axes)


class RMSNorm(Module):
    """x / sqrt(mean of squares + eps) * weight over the last axis (Zhang and Sennrich, 2019)."""

    def __init__(
        self,
        size: int,
        eps: float = 1e-6,
        elementwise_affine: bool = True,
        dtype: DTypeLike = "f32",
    ) -> None:
        self.size = whole("size", size)
        self.eps = real("eps", eps)
        self.weight = constant((self.size,), 1.0, dtype) if elementwise_affine else None

    def __call__(self, x: Operand) -> Tensor:
        x = tensor(x)
        _check_last(x, (self.size,), "RMSNorm")
        return x.rms_norm(self.weight, self.eps)


class GroupNorm(Module):
    """LayerNorm over groups of channels (axis 1) and all axes after, then a weight and a bias for
    each channel (Wu and He, 2018)."""

    def __init__(
        self,
        groups: int,
        channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DTypeLike = "f32",
    ) -> None:
        groups, channels = whole("groups", groups, 1), whole("channels", channels, 1)
        if channels % groups:
            raise bad("wrong-argument", f"{channels} channels in {groups} groups")
        self.groups = groups
        self.channels = channels
        self.eps = real("eps", eps)
        self.weight = constant((channels,), 1.0, dtype) if affine else None
        self.bias = constant((channels,), 0.0, dtype) if affine else None

    def __call__(self, x: Operand) -> Tensor:
        x = tensor(x)
        _check_channels(x, self.channels, type(self).__name__)
        return x.group_norm(self.groups, self.weight, self.bias, self.eps)


class InstanceNorm(GroupNorm):
    """GroupNorm with a group for each channel; without weights unless asked for."""

    def __init__(
        self, channels: int, eps: float = 1e-5, affine: bool = False, dtype: DTypeLike = "f32"
    ) -> None:
        channels = whole("channels", channels, 1)
        super().__init__(channels, channels, eps, affine, dtype)


class BatchNorm(Module):
    """Each channel (axis 1) by its mean and variance over all other axes (Ioffe and Szegedy, 2015);
    any rank from 2 on.

    While training these are the batch's, and `running_mean` and `running_var` follow them:
    r = (1 - momentum) r + momentum * new, the variance with its n / (n - 1). `momentum=None` makes
    them the plain average over all batches. In evaluation the running ones are used.
    """

    def __init__(
        self,
        channels: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DTypeLike = "f32",
    ) -> None:
        channels = whole("channels", channels)
        self.channels = channels
        self.eps = real("eps", eps)
        self.momentum = None if momentum is None else real("momentum", momentum)
        self.weight = constant((channels,), 1.0, dtype) if affine else None
        self.bias = constant((channels,), 0.0, dtype) if affine else None
        self.running_mean = filled((channels,), 0.0, dtype) if track_running_stats else None
        self.running_var = filled((channels,), 1.0, dtype) if track_running_stats else None
        self.num_batches_tracked = filled((), 0, "i64") if track_running_stats else None

    def __call__(self, x: Operand) -> Tensor:
        x = tensor(x)
        _check_channels(x, self.channels, "BatchNorm")
        if not self.training and self.running_mean is not None and self.running_var is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            mean, variance = self._of_batch(x)
        return x.batch_norm(mean, variance, self.weight, self.bias, self.eps)

    def _of_batch(self, x: Tensor) -> tuple[Tensor, Tensor]:
        axes = (0, *range(2, x.ndim))
        count = math.prod(x.shape[a] for a in axes)
        mean, variance = x.mean(axes), x.var(axes)
        if self.training and self.running_mean is not None and self.running_var is not None:
            if count < 2:
                raise bad(
                    "wrong-operands",
                    f"BatchNorm trains on one value for each channel: {list(x.shape)}",
                    "give it a batch, or call eval()",
                )
            assert self.num_batches_tracked is not None
            with autodiff.no_grad():
                self.num_batches_tracked.assign(self.num_batches_tracked + 1)
                share = (
                    1 / self.num_batches_tracked.cast("f64")
                    if self.momentum is None
                    else self.momentum
                )
                for kept, new in (
                    (self.running_mean, mean.detach()),
                    (self.running_var, variance.detach() * (count / (count - 1))),
                ):
                    kept.assign(kept + (new - kept) * share)
                for kept in (self.running_mean, self.running_var, self.num_batches_tracked):
                    defer(kept)
        return mean, variance


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


def _check_last(x: Tensor, shape: tuple[int, ...], what: str) -> None:
    if x.shape[-len(shape) :] != shape or x.ndim < len(shape):
        raise bad(
            "wrong-operands",
            f"{what} over {list(shape)} got shape {list(x.shape)}",
            "the last axes must have these sizes",
        )


def _check_channels(x: Tensor, channels: int, what: str) -> None:
    if x.ndim < 2 or x.shape[1] != channels:
        raise bad(
            "wrong-operands",
            f"{what} of {channels} channels got shape {list(x.shape)}",
            "channels are axis 1",
        )
