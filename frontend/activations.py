"""What networks are made of: activations, normalizations, dropout, losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uopc.frontend.core import Axes, Operand, bad, in_single, known_elements, real, tensor
from uopc.frontend.elementwise import where
from uopc.frontend.extents import is_symbolic
from uopc.frontend.promotion import float_type

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def _real(x: Tensor) -> Tensor:
    return x.cast(float_type(x.element))


def relu(x: Tensor) -> Tensor:
    """x where it is above 0, else 0; the gradient at 0 is 0; NaN stays."""
    return where(x <= 0, 0, x)


def relu6(x: Tensor) -> Tensor:
    """x held between 0 and 6."""
    return x.clamp(0, 6)


def leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    """x above 0, slope * x below."""
    return where(x < 0, x * slope, x)


def prelu(x: Tensor, weight: Operand) -> Tensor:
    """leaky_relu with a tensor of slopes."""
    return where(x < 0, x * weight, x)


def threshold(x: Tensor, bound: float, value: float) -> Tensor:
    """x above the bound, a value elsewhere."""
    return where(x > bound, x, value)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), right at both ends."""
    x = _real(x)
    # exp of -|x| never overflows.
    e = (-x.abs()).exp()
    return where(x < 0, e, 1.0) / (e + 1)


def hardsigmoid(x: Tensor) -> Tensor:
    """x / 6 + 1/2, held between 0 and 1."""
    return (x / 6 + 0.5).clamp(0, 1)


def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), without loss of digits."""
    x = _real(x)
    return x.minimum(0.0) - (-x.abs()).exp().log1p()


def softplus(x: Tensor, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta x)) / beta."""
    y = _real(x) * beta
    return (y.maximum(0.0) + (-y.abs()).exp().log1p()) / beta


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x), called swish too."""
    return x * sigmoid(x)


def quick_gelu(x: Tensor) -> Tensor:
    """x * sigmoid(1.702 x)."""
    return x * sigmoid(x * 1.702)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution's cdf: exact, or by tanh."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (inner.tanh() + 1)
    if approximate != "none":
        raise bad("wrong-argument", f"gelu by {approximate!r}", "expected none or tanh")
    return 0.5 * x * ((x * math.sqrt(0.5)).erf() + 1)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x above 0, alpha (exp(x) - 1) below."""
    return where(x > 0, x, alpha * _real(x).minimum(0.0).expm1())


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x above 0, alpha (exp(x / alpha) - 1) below."""
    return where(x > 0, x, alpha * (_real(x).minimum(0.0) / alpha).expm1())


def selu(x: Tensor) -> Tensor:
    """elu scaled so that deep networks keep mean 0 and variance 1."""
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def mish(x: Tensor) -> Tensor:
    """x * tanh(softplus(x))."""
    return x * softplus(x).tanh()


def hardswish(x: Tensor) -> Tensor:
    """x * relu6(x + 3) / 6."""
    return x * relu6(x + 3) / 6


def hardtanh(x: Tensor, low: float = -1.0, high: float = 1.0) -> Tensor:
    """x held between two bounds."""
    return x.clamp(low, high)


def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return x / (x.abs() + 1)


def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x)."""
    return x - x.tanh()


def softshrink(x: Tensor, bound: float = 0.5) -> Tensor:
    """x moved toward 0 by a bound, 0 within it."""
    return where(x > bound, x - bound, where(x < -bound, x + bound, 0.0))


def hardshrink(x: Tensor, bound: float = 0.5) -> Tensor:
    """0 within a bound."""
    return where(x.abs() > bound, x, 0)


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second."""
    a, b = x.chunk(2, axis)
    return a * sigmoid(b)


# -- normalizations --------------------------------------------------------------------------------


@in_single
def normalize(x: Tensor, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor:
    """x over its p-norm along an axis."""
    return x / x.norm(p, axis, keepdim=True).maximum(eps)


@in_single
def layernorm(x: Tensor, axis: Axes = -1, eps: float = 1e-5) -> Tensor:
    """Mean 0 and variance 1 along axes."""
    centred = x - x.mean(axis, keepdim=True)
    return centred * (((centred * centred).mean(axis, keepdim=True) + eps).rsqrt())


def layer_norm(
    x: Tensor, weight: Operand | None = None, bias: Operand | None = None, eps: float = 1e-5,
    axis: Axes = -1,
) -> Tensor:  # fmt: skip
    """layernorm, then scaled and shifted."""
    return _affine(layernorm(x, axis, eps), weight, bias)


@in_single
def rms_norm(x: Tensor, weight: Operand | None = None, eps: float = 1e-6) -> Tensor:
    """x over the root of its mean square along the last axis."""
    return _affine(x * ((x * x).mean(-1, keepdim=True) + eps).rsqrt(), weight, None)


def group_norm(
    x: Tensor, groups: int, weight: Operand | None = None, bias: Operand | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """layernorm over groups of channels (axis 1) and all axes after."""
    if groups < 1 or x.shape[1] % groups:
        raise bad("wrong-argument", f"{x.shape[1]} channels in {groups} groups")
    y = layernorm(x.reshape((x.shape[0], groups, -1)), -1, eps).reshape(x.shape)
    return _affine(y, _channels(weight, x), _channels(bias, x))


def instance_norm(
    x: Tensor, weight: Operand | None = None, bias: Operand | None = None, eps: float = 1e-5
) -> Tensor:
    """group_norm with a group a channel."""
    return group_norm(x, x.shape[1], weight, bias, eps)


def batch_norm(
    x: Tensor, mean: Operand, variance: Operand, weight: Operand | None = None,
    bias: Operand | None = None, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Channels (axis 1) by a mean and variance that are given."""
    m, v = _channels(mean, x), _channels(variance, x)
    assert m is not None and v is not None
    y = (x - m) * (v + eps).rsqrt()
    return _affine(y, _channels(weight, x), _channels(bias, x))


def _channels(value: Operand | None, x: Tensor) -> Tensor | None:
    return None if value is None else tensor(value).reshape((1, -1, *[1] * (x.ndim - 2)))


def _affine(x: Tensor, weight: Operand | None, bias: Operand | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element 0 with probability p, the others over 1 - p; x itself if not training."""
    real("the probability of dropout", p, 0, 1)
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0
    from uopc.frontend.creation import rand

    return where(rand(x.shape) >= p, x * (1 / (1 - p)), 0)


# -- losses ----------------------------------------------------------------------------------------


def _collected(x: Tensor, reduction: str) -> Tensor:
    if reduction not in ("mean", "sum", "none"):
        raise bad("wrong-argument", f"reduction {reduction!r}", "expected mean, sum or none")
    return x.mean() if reduction == "mean" else x.sum() if reduction == "sum" else x


def cross_entropy(
    x: Tensor, target: Operand, reduction: str = "mean", label_smoothing: float = 0.0,
    ignore_index: int = -100, weight: Operand | None = None,
) -> Tensor:  # fmt: skip
    """-log softmax(x) at the target: class numbers, or probabilities in x's shape. Classes are
    axis 1, or the one axis of a vector; elements of `ignore_index` do not count. With `weight`
    each class counts so much, and the mean is over the weights of the targets. Raises UopcError
    [wrong-operands], [wrong-argument], and [bad-index] for a class that is not there, if the target
    is data: one that is computed, or in a function under uopc.jit, has a loss of 0 and counts."""
    real("label_smoothing", label_smoothing, 0, 1)
    axis, classes = _classes(x)
    scores = x.log_softmax(axis)
    goal = tensor(target)
    if goal.element[0] in "fb":
        if goal.shape != x.shape:
            raise bad(
                "wrong-operands",
                f"targets of {goal.element}{list(goal.shape)} for scores of shape {list(x.shape)}",
                "floats are probabilities, in the shape of the scores; class numbers are whole "
                'numbers: cast("i32")',
            )
        p = goal * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else goal
        if weight is not None:
            scores = scores * _along(weight, axis, x)
        loss = -(p * scores).sum(axis)
        return _collected(loss, reduction)
    return _nll(scores, goal, axis, reduction, ignore_index, label_smoothing, weight)


def nll_loss(
    x: Tensor, target: Operand, reduction: str = "mean", ignore_index: int = -100,
    weight: Operand | None = None,
) -> Tensor:  # fmt: skip
    """The negative of x at the target's class numbers: x holds logarithms of probabilities. See
    cross_entropy for `ignore_index`, `weight` and errors."""
    axis, _ = _classes(x)
    goal = tensor(target)
    if goal.element[0] in "fb":
        raise bad(
            "wrong-operands",
            f"targets of {goal.element}{list(goal.shape)}",
            'nll_loss takes class numbers, which are whole: cast("i32")',
        )
    return _nll(x, goal, axis, reduction, ignore_index, 0.0, weight)


def _classes(x: Tensor) -> tuple[int, int]:
    """The axis of the classes, and how many there are."""
    if x.ndim == 0:
        raise bad("wrong-operands", "scores of shape []", "expected an axis of classes")
    axis = 1 if x.ndim > 1 else 0
    return axis, x.shape[axis]


def _along(weight: Operand, axis: int, x: Tensor) -> Tensor:
    """The weights of the classes, along the axis of x where those are."""
    each = tensor(weight)
    if each.shape != (x.shape[axis],):
        raise bad(
            "wrong-operands",
            f"weights of shape {list(each.shape)} for {x.shape[axis]} classes",
            "expected one for each class",
        )
    return each.reshape(tuple(-1 if k == axis else 1 for k in range(x.ndim)))


def _nll(
    scores: Tensor, goal: Tensor, axis: int, reduction: str, ignored: int, smoothing: float,
    weight: Operand | None,
) -> Tensor:  # fmt: skip
    from uopc.frontend.creation import index_along

    expected = tuple(n for k, n in enumerate(scores.shape) if k != axis)
    if goal.shape != expected:
        raise bad(
            "wrong-operands",
            f"targets of shape {list(goal.shape)} for scores of shape {list(scores.shape)}",
            f"expected {list(expected)}",
        )
    _check_classes(goal, scores.shape[axis], ignored)
    wide = goal.unsqueeze(axis)
    chosen = wide == index_along(scores.shape[axis], axis, scores.ndim)
    # Chosen, not multiplied: a score of -inf elsewhere must not make NaN.
    weights = None if weight is None else _along(weight, axis, scores)
    weighted = scores if weights is None else scores * weights
    loss = -where(chosen, weighted, 0.0).sum(axis)
    if smoothing:
        loss = loss * (1 - smoothing) - weighted.mean(axis) * smoothing
    counted = goal != ignored
    loss = where(counted, loss, 0.0)
    if reduction == "mean":
        if weights is None:
            return _ratio_of_sums(loss, counted)
        return _ratio_of_sums(loss, where(counted, where(chosen, weights, 0.0).sum(axis), 0.0))
    return _collected(loss, reduction)


def _check_classes(goal: Tensor, classes: int, ignored: int) -> None:
    numbers = known_elements(goal)
    if numbers is None or not numbers.size or is_symbolic(classes):
        return
    if int(numbers.min()) >= 0 and int(numbers.max()) < classes:
        return
    wrong = numbers[((numbers < 0) | (numbers >= classes)) & (numbers != ignored)]
    if wrong.size:
        raise bad(
            "bad-index",
            f"the target is class {wrong.flat[0]}, of {classes} classes",
            f"expected 0 to {classes - 1}, or ignore_index, which is {ignored}",
        )


@in_single
def _ratio_of_sums(x: Tensor, weights: Tensor) -> Tensor:
    return x.sum() / weights.sum(dtype="i32" if weights.element == "i1" else x.element)


def sparse_categorical_crossentropy(x: Tensor, target: Operand) -> Tensor:
    """cross_entropy with classes in the last axis."""
    return cross_entropy(x.moveaxis(-1, 1) if x.ndim > 2 else x, target)


def binary_cross_entropy(x: Tensor, target: Operand, reduction: str = "mean") -> Tensor:
    """-(t log x + (1 - t) log(1 - x)); logarithms are held at -100, as in torch."""
    t = tensor(target)
    loss = -(t * x.log().maximum(-100.0) + (1 - t) * (1 - x).log().maximum(-100.0))
    return _collected(loss, reduction)


def binary_cross_entropy_with_logits(x: Tensor, target: Operand, reduction: str = "mean") -> Tensor:
    """binary_cross_entropy of sigmoid(x), without loss of digits."""
    return _collected(x.maximum(0.0) - x * target + (-x.abs()).exp().log1p(), reduction)


def mse_loss(x: Tensor, target: Operand, reduction: str = "mean") -> Tensor:
    """The squared difference."""
    return _collected((x - target).square(), reduction)


def l1_loss(x: Tensor, target: Operand, reduction: str = "mean") -> Tensor:
    """The magnitude of the difference."""
    return _collected((x - target).abs(), reduction)


def huber_loss(x: Tensor, target: Operand, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Half the square up to delta, straight from there."""
    gap = (x - target).abs()
    return _collected(where(gap < delta, 0.5 * gap * gap, delta * (gap - 0.5 * delta)), reduction)


def kl_div(x: Tensor, target: Operand, reduction: str = "mean") -> Tensor:
    """t (log t - x), x in logarithms; 0 where t is 0."""
    t = tensor(target)
    safe = where(t > 0, t, 1.0)
    return _collected(where(t > 0, t * (safe.log() - x), 0.0), reduction)


def sequential(x: Tensor, layers: Sequence[Any]) -> Tensor:
    """Functions applied one after the other."""
    for layer in layers:
        x = layer(x)
    return x
