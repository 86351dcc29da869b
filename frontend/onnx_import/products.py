"""Products of matrices, and normalizations. Halves are multiplied and summed in f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from uopc.frontend.elementwise import where
from uopc.frontend.onnx_import.arrays import element_of_code
from uopc.frontend.onnx_import.call import Call, Result, Rules
from uopc.frontend.onnx_import.elementwise import number
from uopc.frontend.onnx_import.reductions import mean, reduced
from uopc.frontend.onnx_import.windows import windows_of
from uopc.frontend.products import einsum

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def in_wide(function: Callable[..., Tensor], *values: Tensor | None) -> Tensor:
    """A function of tensors in their type, of halves in f32 and rounded once."""
    first = values[0]
    assert first is not None
    if first.element not in ("f16", "bf16"):
        return function(*values)
    wide = [v.cast("f32") if v is not None and v.element == first.element else v for v in values]
    return function(*wide).cast(first.element)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """numpy's matmul."""
    return in_wide(_product, a, b)


def _product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def _matmul(c: Call) -> Result:
    return matmul(c[0], c[1])


def _gemm(c: Call) -> Result:
    a, b = c[0], c[1]
    a = a.mT if c.flag("transA") else a
    b = b.mT if c.flag("transB") else b
    alpha, beta = c.real("alpha", 1.0), c.real("beta", 1.0)

    def product(x: Tensor, y: Tensor, bias: Tensor | None) -> Tensor:
        result = x @ y
        result = result if alpha == 1 else result * number(alpha, result)
        if bias is None:
            return result
        return result + (bias if beta == 1 else bias * number(beta, bias))

    return in_wide(product, a, b, c.get(2))


def _einsum(c: Call) -> Result:
    formula = c.word("equation")
    return in_wide(lambda *x: einsum(formula, *x), *c.all())


# Normalizations.


def _per_channel(value: Tensor, x: Tensor) -> Tensor:
    return value.reshape((1, -1, *[1] * (x.ndim - 2)))


def _batch_normalization(c: Call) -> Result:
    x, scale, bias, given_mean, given_variance = (c[k] for k in range(5))
    epsilon, momentum = c.real("epsilon", 1e-5), c.real("momentum", 0.9)
    if c.version < 14 and sum(c.outputs) > 1:
        raise c.unsupported("in training mode before opset 14")
    used_mean, used_variance = given_mean, given_variance
    more: list[Tensor] = []
    if c.flag("training_mode"):
        axes = tuple(k for k in range(x.ndim) if k != 1)
        centre = mean(x, axes)
        spread = mean((x - centre) * (x - centre), axes)
        used_mean, used_variance = centre.reshape((-1,)), spread.reshape((-1,))
        for old, new in ((given_mean, used_mean), (given_variance, used_variance)):
            more.append(old * number(momentum, old) + new * number(1 - momentum, old))

    def normal(x: Tensor, scale: Tensor, bias: Tensor, m: Tensor, v: Tensor) -> Tensor:
        m, v, scale, bias = (_per_channel(each, x).cast(x.element) for each in (m, v, scale, bias))
        return scale * (x - m) / (v + number(epsilon, v)).sqrt() + bias

    return [in_wide(normal, x, scale, bias, used_mean, used_variance), *more]


def normalized(x: Tensor, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(variance + epsilon), the mean, and 1 / the root."""
    centre = mean(x, axes)
    apart = x - centre
    variance = mean(apart * apart, axes)
    inverse = (variance + number(epsilon, x)).sqrt().reciprocal()
    return apart * inverse, centre, inverse


def _layer_normalization(c: Call) -> Result:
    """Computed in the type of stash_type, f32, as are the mean and the inverse deviation."""
    x, scale, bias = c[0], c[1], c.get(2)
    axes = tuple(range(c.axis(-1, x.ndim), x.ndim))
    wide = x.cast("f32") if c.integer("stash_type", 1) == 1 and x.element != "f64" else x
    y, centre, inverse = normalized(wide, axes, c.real("epsilon", 1e-5))
    y = y.cast(x.element) * scale
    return [y if bias is None else y + bias, centre, inverse]


def _rms_normalization(c: Call) -> Result:
    x, scale = c[0], c[1]
    axes = tuple(range(c.axis(-1, x.ndim), x.ndim))
    wide = x.cast("f32") if c.integer("stash_type", 1) == 1 and x.element != "f64" else x
    root = (mean(wide * wide, axes) + number(c.real("epsilon", 1e-5), wide)).sqrt()
    return (wide / root).cast(x.element) * scale


def _instance_normalization(c: Call) -> Result:
    x = c[0]
    y, _, _ = normalized(x, tuple(range(2, x.ndim)), c.real("epsilon", 1e-5))
    return y * _per_channel(c[1], x) + _per_channel(c[2], x)


def _lrn(c: Call) -> Result:
    """x / (bias + alpha / size * the sum of squares over `size` channels around)^beta."""
    x, size = c[0], c.integer("size")
    low = (size - 1) // 2
    pairs = [(low, size - 1 - low) if k == 1 else (0, 0) for k in range(x.ndim)]
    squares = (x * x).pad(pairs).moveaxis(1, -1)
    total = windows_of(squares, (size,)).sum(-1, dtype=x.dtype).moveaxis(-1, 1)
    base = total * number(c.real("alpha", 1e-4) / size, x) + number(c.real("bias", 1.0), x)
    return x / base ** number(c.real("beta", 0.75), x)


# Whole numbers with a scale and a zero point.


def _axis_shaped(c: Call, value: Tensor, x: Tensor, axis: int) -> Tensor:
    """A scale or zero point of the whole tensor, of an axis, or of blocks along it."""
    if value.size == 1 and value.ndim <= 1:
        return value.reshape(())
    if value.ndim == 1:
        return value.reshape(tuple(-1 if k == axis else 1 for k in range(x.ndim)))
    block = c.integer("block_size", 0)
    if not block or value.ndim != x.ndim:
        raise c.invalid(f"has a scale of shape {list(value.shape)} for {list(x.shape)}")
    repeated = value.repeat_interleave(block, axis)
    return repeated.shrink([(0, n) for n in x.shape])


def _quantize(c: Call) -> Result:
    x, scale, zero = c[0], c[1], c.get(2)
    axis = c.axis(1, x.ndim) if x.ndim > 1 else 0
    code = c.integer("output_dtype", 0)
    element = element_of_code(code, c.words) if code else "ui8"
    element = zero.element if zero is not None else element
    if element not in ("i8", "ui8", "i16", "ui16"):
        raise c.unsupported(f"to elements of type {element}")
    wide = (x / _axis_shaped(c, scale, x, axis)).cast("f32").round()
    if zero is not None:
        wide = wide + _axis_shaped(c, zero, x, axis).cast("f32")
    return wide.cast(element)


def _dequantize(c: Call) -> Result:
    x, scale, zero = c[0], c[1], c.get(2)
    axis = c.axis(1, x.ndim) if x.ndim > 1 else 0
    wide = x.cast("i32")
    if zero is not None:
        wide = wide - _axis_shaped(c, zero, x, axis).cast("i32")
    wide = wide.cast("f32") * _axis_shaped(c, scale, x, axis).cast("f32")
    return wide.cast(scale.element)


def _without_zero(x: Tensor, zero: Tensor | None, rows: bool = False) -> Tensor:
    wide = x.cast("i32")
    if zero is None:
        return wide
    z = zero.cast("i32")
    return wide - (z.unsqueeze(-1) if rows and z.ndim == 1 and z.size > 1 else z)


def _matmul_integer(c: Call) -> Result:
    return _without_zero(c[0], c.get(2), rows=True) @ _without_zero(c[1], c.get(3))


def _qlinear_matmul(c: Call) -> Result:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (c[k] for k in range(8))
    product = _without_zero(a, a_zero, rows=True) @ _without_zero(b, b_zero)
    scale = a_scale.cast("f32") * b_scale.cast("f32") / y_scale.cast("f32")
    wide = (product.cast("f32") * scale).round() + y_zero.cast("f32")
    return wide.cast(y_zero.element)


def _mean_variance(c: Call) -> Result:
    x = c[0]
    axes = tuple(c.integers("axes") or (0, 2, 3))
    y = x - mean(x, axes)
    root = mean(x * x, axes) - mean(x, axes) * mean(x, axes)
    return y / (root.sqrt() + number(1e-9, x))


def _det(c: Call) -> Result:
    """By elimination with the largest of each column as pivot, step by step."""
    x = c[0]
    n = x.shape[-1] if x.ndim > 1 else 0
    if x.ndim < 2 or x.shape[-2] != n:
        raise c.invalid(f"has shape {list(x.shape)}, expected square matrices")
    if n > 16:
        raise c.unsupported(f"of {n} x {n}: elimination is written out, up to 16")
    result = number(1, x).expand(x.shape[:-2])
    for _ in range(n):
        size = x.shape[-1]
        column = x.shrink([*[None] * (x.ndim - 1), (0, 1)]).squeeze(-1)
        place = column.abs().argmax(-1, keepdim=True)
        pivot = column.gather(-1, place)
        row = x.gather(-2, place.unsqueeze(-1).expand((*x.shape[:-2], 1, size)))
        first = x.shrink([*[None] * (x.ndim - 2), (0, 1), None])
        # The pivot's row goes first; its sign turns unless it was there.
        moved = where(place == 0, pivot, -pivot).squeeze(-1)
        result = result * moved
        if size == 1:
            break
        rest = x.shrink([*[None] * (x.ndim - 2), (1, size), None])
        index = _row_index(size, x.ndim)
        rest = where(index == place.unsqueeze(-1), first, rest)
        safe = where(pivot == 0.0, number(1, x), pivot).unsqueeze(-1)
        factors = rest.shrink([*[None] * (x.ndim - 1), (0, 1)]) / safe
        x = (rest - factors * row).shrink([*[None] * (x.ndim - 1), (1, size)]).contiguous()
    return result


def _row_index(size: int, rank: int) -> Tensor:
    from uopc.frontend.creation import index_along

    return index_along(size - 1, rank - 2, rank) + 1


def _global(kind: str) -> Callable[[Call], Result]:
    def rule(c: Call) -> Result:
        x = c[0]
        axes = tuple(range(2, x.ndim))
        return mean(x, axes) if kind == "mean" else reduced(kind, x, axes, True)

    return rule


def _global_lp(c: Call) -> Result:
    x, p = c[0], c.integer("p", 2)
    axes = tuple(range(2, x.ndim))
    return x.norm(float(p), axes, keepdim=True)


PRODUCT_RULES: Rules = {
    "BatchNormalization": {7: _batch_normalization},
    "DequantizeLinear": {10: _dequantize},
    "Det": {11: _det},
    "Einsum": {12: _einsum},
    "Gemm": {7: _gemm},
    "GlobalAveragePool": {1: _global("mean")},
    "GlobalLpPool": {2: _global_lp},
    "GlobalMaxPool": {1: _global("max")},
    "InstanceNormalization": {6: _instance_normalization},
    "LRN": {1: _lrn},
    "LayerNormalization": {17: _layer_normalization},
    "MatMul": {1: _matmul},
    "MatMulInteger": {10: _matmul_integer},
    "MeanVarianceNormalization": {9: _mean_variance},
    "QLinearMatMul": {10: _qlinear_matmul},
    "QuantizeLinear": {10: _quantize},
    "RMSNormalization": {23: _rms_normalization},
}
