"""Elementwise ops and activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from uopc.frontend.core import broadcast_shapes, elementwise, wrap
from uopc.frontend.elementwise import where
from uopc.frontend.graph import constant
from uopc.frontend.onnx_import.arrays import element_of_code
from uopc.frontend.onnx_import.call import Call, Result, Rule, Rules
from uopc.frontend.promotion import is_float

if TYPE_CHECKING:
    from uopc.frontend.tensor import Tensor


def same(op: str) -> Rule:
    """An op of utensor on all inputs, which are made to meet as numpy does."""
    return lambda c: elementwise(op, *c.all())


def swapped(op: str) -> Rule:
    """An op on two inputs, the second one first."""
    return lambda c: elementwise(op, c[1], c[0])


def of_tensor(function: Callable[[Tensor], Tensor]) -> Rule:
    """A function of the one input."""
    return lambda c: function(c[0])


def folded(op: str) -> Rule:
    """An op of any number of inputs, from left to right."""

    return lambda c: _folded(c, op)


def _folded(c: Call, op: str) -> Tensor:
    total, *rest = c.all()
    for each in rest:
        total = elementwise(op, total, each)
    return total


def number(value: float | int, like: Tensor) -> Tensor:
    """One number, rounded to the type of a tensor."""
    return wrap(constant(value, (), like.element))


def _mean(c: Call) -> Result:
    total = _folded(c, "add")
    return total / number(len(c.inputs), total)


def _div(c: Call) -> Result:
    op = "div" if is_float(c[0].element) else "truncdiv"
    return elementwise(op, c[0], c[1])


def _mod(c: Call) -> Result:
    return elementwise("rem" if c.flag("fmod") else "mod", c[0], c[1])


def _pow(c: Call) -> Result:
    """In the type of the base; of a whole number to a power that is none in f64."""
    base, power = c[0], c[1]
    if not is_float(base.element) and is_float(power.element):
        return elementwise("pow", base.cast("f64"), power.cast("f64")).cast(base.element)
    return elementwise("pow", base, power.cast(base.element))


def _bit_shift(c: Call) -> Result:
    direction = c.word("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise c.invalid(f"has direction '{direction}'")
    return elementwise("shl" if direction == "LEFT" else "shr", c[0], c[1])


def _cast(c: Call) -> Result:
    return c[0].cast(element_of_code(c.integer("to"), c.words))


def _bit_cast(c: Call) -> Result:
    element = element_of_code(c.integer("to"), c.words)
    if "i1" in (element, c[0].element):
        return (
            c[0].cast("ui8").bitcast("i8").cast(element) if element != "ui8" else c[0].cast("ui8")
        )
    return c[0].bitcast(element)


def _clip(c: Call) -> Result:
    x = c[0]
    if c.version < 11:
        low, high = c.real("min", -math.inf), c.real("max", math.inf)
        bounds = (number(low, x), number(high, x))
    else:
        bounds = (c.get(1), c.get(2))
    for op, bound in zip(("max", "min"), bounds, strict=True):
        if bound is not None:
            x = elementwise(op, x, bound.reshape(()))
    return x


def _is_inf(c: Call) -> Result:
    return c[0].isinf(c.flag("detect_positive", True), c.flag("detect_negative", True))


def _where(c: Call) -> Result:
    return where(c[0], c[1], c[2])


# Activations: those with numbers of their own. Others are functions of a tensor, or ONNX's own
# definition by other ops.


def _relu(c: Call) -> Result:
    return elementwise("max", c[0], number(0, c[0]))


def _leaky_relu(c: Call) -> Result:
    x = c[0]
    return where(x < number(0, x), x * number(c.real("alpha", 0.01), x), x)


def _prelu(c: Call) -> Result:
    x, slope = c[0], c[1]
    if broadcast_shapes(x.shape, slope.shape) != x.shape:
        raise c.invalid(f"has a slope of shape {list(slope.shape)} for {list(x.shape)}")
    return where(x < number(0, x), x * slope, x)


def _elu(c: Call) -> Result:
    x = c[0]
    return where(x < number(0, x), number(c.real("alpha", 1.0), x) * x.expm1(), x)


def _selu(c: Call) -> Result:
    x = c[0]
    alpha = c.real("alpha", 1.67326319217681884765625)
    gamma = c.real("gamma", 1.05070102214813232421875)
    y = where(x <= number(0, x), number(alpha, x) * x.expm1(), x)
    return number(gamma, x) * y


def _hard_sigmoid(c: Call) -> Result:
    x = c[0]
    y = number(c.real("alpha", 0.2), x) * x + number(c.real("beta", 0.5), x)
    return elementwise("max", number(0, x), elementwise("min", number(1, x), y))


def _thresholded_relu(c: Call) -> Result:
    x = c[0]
    return where(number(c.real("alpha", 1.0), x) < x, x, number(0, x))


def _shrink(c: Call) -> Result:
    x, bound, bias = c[0], c.real("lambd", 0.5), c.real("bias", 0.0)
    if is_float(x.element):
        lower, upper, shift = number(-bound, x), number(bound, x), number(bias, x)
        inside = where(upper < x, x - shift, number(0, x))
        return where(x < lower, x + shift, inside)
    wide = x.cast("f64")
    inside = where(wide > bound, wide - bias, number(0, wide))
    return where(wide < -bound, wide + bias, inside).cast(x.element)


def _gelu(c: Call) -> Result:
    return c[0].gelu(c.word("approximate", "none"))


def _dropout(c: Call) -> Result:
    """Nothing is dropped but in training, which is refused."""
    if c.get(2) is not None and c.known(2).any():
        raise c.unsupported("in training mode: its result is random")
    if c.version < 12 and not c.flag("is_test", True):
        raise c.unsupported("in training mode: its result is random")
    return [c[0], wrap(constant(True, c[0].shape, "i1"))]


UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh",
    "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf",
    "Exp": "exp", "Floor": "floor", "Log": "log", "Neg": "neg", "Reciprocal": "recip",
    "Round": "round", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan",
    "Tanh": "tanh", "Not": "not", "BitwiseNot": "not",
}  # fmt: skip

BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "And": "and", "Or": "or", "Xor": "xor",
    "Equal": "cmpeq", "Less": "cmplt",
}  # fmt: skip

LATER = {
    "BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor", "LessOrEqual": "cmple",
}  # fmt: skip

ELEMENTWISE_RULES: Rules = {
    **{name: {1: same(op)} for name, op in UNARY.items()},
    # Up to opset 6 they took an axis and broadcast on demand only.
    **{name: {7: same(op)} for name, op in BINARY.items()},
    **{name: {12: same(op)} for name, op in LATER.items()},
    "BitCast": {26: _bit_cast},
    "BitShift": {11: _bit_shift},
    "Cast": {6: _cast},
    "CastLike": {15: lambda c: c[0].cast(c[1].element)},
    "Clip": {6: _clip},
    "Div": {7: _div},
    "Dropout": {7: _dropout},
    "Elu": {6: _elu},
    "Gelu": {20: _gelu},
    "Greater": {7: swapped("cmplt")},
    "GreaterOrEqual": {12: swapped("cmple")},
    "HardSigmoid": {6: _hard_sigmoid},
    "Identity": {1: lambda c: c[0]},
    "IsInf": {10: _is_inf},
    "IsNaN": {9: lambda c: c[0].isnan()},
    "LeakyRelu": {6: _leaky_relu},
    "Max": {8: folded("max")},
    "Mean": {8: _mean},
    "Min": {8: folded("min")},
    "Mod": {10: _mod},
    "PRelu": {7: _prelu},
    "Pow": {7: _pow},
    "Relu": {6: _relu},
    "Selu": {6: _selu},
    "Shrink": {9: _shrink},
    "Sigmoid": {6: lambda c: c[0].sigmoid()},
    "Softplus": {1: lambda c: c[0].softplus()},
    "Softsign": {1: lambda c: c[0].softsign()},
    "Sum": {8: folded("add")},
    "ThresholdedRelu": {10: _thresholded_relu},
    "Where": {9: _where},
}
