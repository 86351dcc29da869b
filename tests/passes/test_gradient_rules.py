"""The table of gradients is complete, and each rule is the slope: by steps in f64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from uopc.dialects.locations import parse_text
from uopc.dialects.tensor_build import BUILDERS
from uopc.interpreters.tensor import run_function
from uopc.passes.differentiate import DifferentiatePass
from uopc.passes.gradient_rules import NO_GRADIENT, RULES

RNG = np.random.default_rng(6)
STEP = 1e-6

V, M = "tensor<4xf64>", "tensor<2x3xf64>"
I = "%i = utensor.constant dense<[2, 0, 2]> : tensor<3xi64>\n"  # noqa: E741 (positions)

ONE = [
    "abs", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "neg", "recip", "rsqrt",
    "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh",
    "erf", "sign", "floor", "ceil", "trunc", "round",
]  # fmt: skip
TWO = ["add", "sub", "mul", "div", "pow", "atan2", "max", "min", "mod", "rem", "floordiv"]
PROGRAMS: dict[str, str] = {
    **{name: f"%r = utensor.{name} %x : {V}" for name in ONE},
    **{name: f"%r = utensor.{name} %x, %y : {V}" for name in TWO},
    "acosh": f"%c = utensor.constant 1.0 : {V}\n%p = utensor.add %x, %c : {V}\n"
    f"%r = utensor.acosh %p : {V}",
    "where": f"%c = utensor.cmplt %x, %y : {V}\n%r = utensor.where %c, %x, %y : {V}",
    "cast": f"%s = utensor.cast %x : {V} -> tensor<4xf64>\n%r = utensor.mul %s, %y : {V}",
    "stage": f"%s = utensor.stage contiguous %x : {V}\n%r = utensor.mul %s, %y : {V}",
    "reshape": f"%r = utensor.reshape %m : {M} -> tensor<3x2xf64>",
    "expand": "%s = utensor.reshape %x : tensor<4xf64> -> tensor<4x1xf64>\n"
    "%r = utensor.expand %s : tensor<4x1xf64> -> tensor<4x3xf64>",
    "permute": f"%r = utensor.permute %m [1, 0] : {M} -> tensor<3x2xf64>",
    "flip": f"%r = utensor.flip %m [1] : {M}",
    "shrink": f"%r = utensor.shrink %m [1, 0] to [2, 3] step [1, 2] : {M} -> tensor<1x2xf64>",
    "pad": f"%r = utensor.pad %m low [1, 0] high [0, 2] value 3.0 : {M} -> tensor<3x5xf64>",
    **{
        f"reduce {kind}": f"%r = utensor.reduce {kind} %m axes [1] : {M} -> tensor<2xf64>"
        for kind in ("add", "mul", "max", "min")
    },
    "gather": I + "%r = utensor.gather %x, %i axis 0 : tensor<4xf64>, tensor<3xi64>"
    " -> tensor<3xf64>",
    **{
        f"scatter {kind}": I + "%u = utensor.shrink %y [0] to [3] : tensor<4xf64> -> tensor<3xf64>"
        f"\n%r = utensor.scatter {kind} %x, %i, %u axis 0 : tensor<4xf64>, tensor<3xi64>, "
        "tensor<3xf64> -> tensor<4xf64>"
        for kind in ("set", "add", "mul", "max", "min")
    },
}


def test_every_op_has_a_rule_or_is_said_to_have_none():
    assert set(RULES) | set(NO_GRADIENT) == set(BUILDERS)
    assert not set(RULES) & set(NO_GRADIENT)
    assert {name.partition(" ")[0] for name in PROGRAMS} == set(RULES)


def program(body: str) -> str:
    """The sum of the results, weighed, so that no two gradients are alike."""
    shape = body.rpartition("tensor<")[2].rpartition("xf64>")[0]
    type_, axes = f"tensor<{shape}xf64>", ", ".join(map(str, range(shape.count("x") + 1)))
    numbers = (
        f"%n = utensor.iota axis {shape.count('x')} : {type_}\n%half = utensor.constant 0.7 : "
        f"{type_}\n%n1 = utensor.add %n, %half : {type_}\n%n2 = utensor.mul %r, %n1 : {type_}"
    )
    return (
        f"func.func @f(%x: {V}, %y: {V}, %m: {M}) -> tensor<f64> {{\n{body}\n{numbers}\n"
        f"%sum = utensor.reduce add %n2 axes [{axes}] : {type_} -> tensor<f64>\n"
        "func.return %sum : tensor<f64>\n}"
    )


def check_slope(text: str, values: Sequence[np.ndarray]) -> None:
    """The gradients along random directions are what a small step gives."""
    used = [k for k, name in enumerate(("%x", "%y", "%m")) if text.count(name) > 1]
    module = parse_text(text)
    wrt = tuple(map(str, used))
    DifferentiatePass(wrt=wrt).apply(None, module)  # type: ignore[arg-type] (it needs no context)
    module.verify()
    value, *gradients = run_function(module, "f_gradient", list(values))
    (same,) = run_function(module, "f", list(values))
    assert value == same
    for _ in range(2):
        directions = [RNG.standard_normal(v.shape) for v in values]
        ends = [
            run_function(module, "f", [v + s * d for v, d in zip(values, directions, strict=True)])[
                0
            ]
            for s in (STEP, -STEP)
        ]
        by_steps = float(ends[0] - ends[1]) / (2 * STEP)
        by_rule = sum(
            float((g * directions[k]).sum()) for k, g in zip(used, gradients, strict=True)
        )
        assert math.isclose(by_steps, by_rule, rel_tol=1e-6, abs_tol=1e-7), (by_steps, by_rule)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rule_is_the_slope(name: str):
    values = [RNG.uniform(0.2, 0.9, shape) for shape in ((4,), (4,), (2, 3))]
    check_slope(program(PROGRAMS[name]), values)
    if name in ("reduce mul", "scatter mul"):
        for zeros in (1, 2):
            some = [v.copy() for v in values]
            some[1][:zeros] = some[2][0, :zeros] = 0.0
            check_slope(program(PROGRAMS[name]), some)


def test_ties_share_and_positions_outside_do_nothing():
    text = program("%r = utensor.reduce max %m axes [1] : tensor<2x3xf64> -> tensor<2xf64>")
    module = parse_text(text)
    DifferentiatePass(values=False, wrt=("m",)).apply(None, module)  # type: ignore[arg-type] (as above)
    m = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]])
    (gradient,) = run_function(module, "f_gradient", [np.zeros(4), np.zeros(4), m])
    np.testing.assert_allclose(gradient, [[0.35, 0.35, 0], [1.7 / 3] * 3])
    outside = I.replace("2, 0, 2", "7, -1, 2")
    for kind in ("set", "add", "mul", "max"):
        body = PROGRAMS[f"scatter {kind}"].replace(I, outside)
        check_slope(program(body), [RNG.uniform(0.2, 0.9, s) for s in ((4,), (4,), (2, 3))])
    body = PROGRAMS["gather"].replace(I, outside)
    check_slope(program(body), [RNG.uniform(0.2, 0.9, s) for s in ((4,), (4,), (2, 3))])
