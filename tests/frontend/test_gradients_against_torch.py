"""The whole table of gradient rules against torch, where it is installed: first and second
derivatives, on ordinary numbers and at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tensor_checks import Checks

from uopc import Tensor
from uopc.frontend.graph import tracked_order
from uopc.passes.gradient_rules import RULES

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(11)
INF = math.inf
PLACES = np.array([2, 0, 3, 0])


def inner(count: int = 12) -> np.ndarray:
    """Between 0 and 1: every function is smooth there."""
    return RNG.uniform(0.1, 0.9, count)


def wide(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape or (12,)) * 2


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, 1e-30, 1e30, INF, -INF, -2.5])
POSITIVE = np.array([0.0, 1.0, 2.0, 1e-30, 1e30, INF, 0.25, 4.0])
PAIRS = (
    np.array([1.0, -1.0, 2.0, 0.0, 3.0, -2.5, 7.0, -7.0, 5.5, 1.0, 0.0, -0.0]),
    np.array([1.0, 2.0, -1.0, 0.5, 3.0, 2.0, 2.0, 2.0, -2.0, -1.0, 1.0, 0.0]),
)


@dataclass
class Case:
    """One op in both libraries, and the numbers it is compared on."""

    ours: Callable[..., Tensor]
    theirs: Callable[..., Any]
    values: list[tuple[np.ndarray, ...]]
    twice: bool = True
    """Whether second derivatives are compared as well."""


def one(name: str, *more: np.ndarray, theirs: str = "", twice: bool = True) -> Case:
    return Case(
        lambda x: getattr(x, name)(),
        getattr(torch, theirs or name),
        [(inner(),), *((m,) for m in more)],
        twice,
    )


def two(ours: Any, theirs: Any, *pairs: tuple[np.ndarray, ...]) -> Case:
    return Case(ours, theirs, [(wide(), wide()), *pairs])


LARGE = wide(3, 4)
TIED = np.array([[1.0, 1.0, 0.0, -1.0], [2.0, 2.0, 2.0, 2.0], [0.0, -0.0, -1.0, 0.0]])
ZEROS = np.array([[1.0, 2.0, 0.0, 3.0], [0.0, 2.0, 0.0, 1.0], [-1.0, 2.0, 0.5, 4.0]])


def index_of(shape: tuple[int, ...], axis: int) -> Any:
    at = torch.from_numpy(PLACES).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return at.expand([len(PLACES) if k == axis else n for k, n in enumerate(shape)])


def scattered(theirs: str) -> Callable[..., Any]:
    return lambda x, u: x.scatter_reduce(0, index_of(x.shape, 0), u, theirs)


CASES: dict[str, list[Case]] = {
    "add": [two(lambda x, y: x + y, torch.add, PAIRS)],
    "sub": [two(lambda x, y: x - y, torch.sub, PAIRS)],
    "mul": [two(lambda x, y: x * y, torch.mul, PAIRS)],
    "div": [two(lambda x, y: x / y, torch.div, (PAIRS[0], PAIRS[1][::-1] + 0.25))],
    "pow": [
        Case(lambda x, y: x**y, torch.pow, [(inner(), wide()), (POSITIVE[:5], POSITIVE[2:7] + 1)]),
        Case(lambda x: x**3, lambda x: x**3, [(wide(),), (EDGES[:8],)]),
        Case(lambda x: x**2.5, lambda x: x**2.5, [(inner(),), (POSITIVE[:4],)]),
        Case(lambda x: 2**x, lambda x: 2**x, [(wide(),), (EDGES[:8],)]),
        Case(lambda x: x**0, lambda x: x**0, [(EDGES[:8],)]),
    ],
    "atan2": [two(lambda x, y: x.atan2(y), torch.atan2, (PAIRS[0][:9], PAIRS[1][:9]))],
    "max": [two(lambda x, y: x.maximum(y), torch.maximum, PAIRS)],
    "min": [two(lambda x, y: x.minimum(y), torch.minimum, PAIRS)],
    "mod": [two(lambda x, y: x % y, torch.remainder, (PAIRS[0][:11], PAIRS[1][:11]))],
    "rem": [two(lambda x, y: x.fmod(y), torch.fmod, (PAIRS[0][:11], PAIRS[1][:11]))],
    "neg": [one("neg", EDGES)],
    "abs": [one("abs", EDGES)],
    "sqrt": [one("sqrt", POSITIVE[1:])],
    "rsqrt": [one("rsqrt", POSITIVE[1:3])],
    "recip": [one("reciprocal", EDGES[2:8])],
    "cbrt": [Case(lambda x: x.cbrt(), lambda x: x.sign() * x.abs() ** (1 / 3), [(wide(),)])],
    "exp": [one("exp", EDGES[:8])],
    "exp2": [one("exp2", EDGES[:8])],
    "expm1": [one("expm1", EDGES[:8])],
    "log": [one("log", POSITIVE[1:])],
    "log2": [one("log2", POSITIVE[1:])],
    "log10": [one("log10", POSITIVE[1:])],
    "log1p": [one("log1p", POSITIVE)],
    "sin": [one("sin", EDGES[:8])],
    "cos": [one("cos", EDGES[:8])],
    "tan": [one("tan", EDGES[:8])],
    "asin": [one("asin", np.array([0.0, -0.0, 1e-30, -0.5]))],
    "acos": [one("acos", np.array([0.0, -0.0, 1e-30, -0.5]))],
    "atan": [one("atan", EDGES[:8])],
    "sinh": [one("sinh", EDGES[:8])],
    "cosh": [one("cosh", EDGES[:8])],
    "tanh": [one("tanh", np.append(EDGES[:8], [30.0, -800.0]))],
    "asinh": [one("asinh", EDGES[:8])],
    "acosh": [
        Case(lambda x: x.acosh(), torch.acosh, [(inner() + 1,), (np.array([1.5, 9.0, 1e6]),)])
    ],
    "atanh": [one("atanh", np.array([0.0, -0.0, 1e-30, -0.5]))],
    "erf": [one("erf", np.append(EDGES[:8], [7.0]))],
    "where": [
        two(lambda x, y: (x > y).where(x * x, y), lambda x, y: torch.where(x > y, x * x, y), PAIRS)
    ],
    "cast": [
        Case(lambda x: x.float().double() * x, lambda x: x.float().double() * x, [(wide(),)]),
        Case(lambda x: x.int().double() * x, lambda x: x.int().double() * x, [(wide(),)]),
    ],
    "stage": [
        Case(lambda x: x.detach() * x, lambda x: x.detach() * x, [(wide(),)], twice=False),
        Case(lambda x: x.contiguous() ** 2, lambda x: x.contiguous() ** 2, [(wide(),)]),
    ],
    "reshape": [
        Case(lambda x: x.reshape(4, 3)[1] ** 2, lambda x: x.reshape(4, 3)[1] ** 2, [(LARGE,)])
    ],
    "expand": [
        Case(
            lambda x: x[:, None].expand(3, 5, 4) ** 2, lambda x: x[:, None].expand(3, 5, 4) ** 2,
            [(LARGE,)],
        )
    ],
    "permute": [
        Case(lambda x: x.permute(1, 0) ** 2, lambda x: x.permute(1, 0) ** 2, [(LARGE,)])
    ],
    "flip": [Case(lambda x: x.flip((0, 1)) ** 3, lambda x: x.flip(0, 1) ** 3, [(LARGE,)])],
    "shrink": [
        Case(lambda x: x[1:, ::2] ** 2, lambda x: x[1:, ::2] ** 2, [(LARGE,)]),
        Case(lambda x: x[:, 3:3].sum() + x, lambda x: x[:, 3:3].sum() + x, [(LARGE,)], twice=False),
    ],
    "pad": [
        Case(
            lambda x: x.pad(((1, 0), (0, 2)), value=3.0) ** 2,
            lambda x: torch.nn.functional.pad(x, (0, 2, 1, 0), value=3.0) ** 2,
            [(LARGE,)],
        )
    ],
    "reduce": [
        Case(lambda x: x.sum(1) ** 2, lambda x: x.sum(1) ** 2, [(LARGE,)]),
        Case(lambda x: x.prod(1), lambda x: x.prod(1), [(LARGE,), (ZEROS,)]),
        Case(lambda x: x.max(1) ** 2, lambda x: x.amax(1) ** 2, [(LARGE,), (TIED,)]),
        Case(lambda x: x.min(0) ** 2, lambda x: x.amin(0) ** 2, [(LARGE,), (TIED,)]),
        Case(lambda x: x.max() ** 2, lambda x: x.amax() ** 2, [(LARGE,), (TIED,)]),
        Case(lambda x: x.cumprod(1), lambda x: x.cumprod(1), [(LARGE,), (ZEROS,)], twice=False),
        Case(
            lambda x: x.logsumexp(1) + x.var(1), lambda x: x.logsumexp(1) + x.var(1, correction=0),
            [(LARGE,), (TIED,)],
        ),
    ],
    "gather": [
        Case(
            lambda x: x[Tensor(PLACES)] ** 2, lambda x: x[torch.from_numpy(PLACES)] ** 2,
            [(wide(4, 3),)],
        )
    ],
    "scatter": [
        Case(
            lambda x, u, kind=kind: x.scatter(0, PLACES, u, kind) ** 2,
            lambda x, u, f=f: f(x, u) ** 2,
            [(wide(5), wide(4)), (np.ones(5), np.ones(4)), (np.arange(5) % 3.0, EDGES[:4])],
            twice=False,
        )
        for kind, f in (
            ("add", scattered("sum")), ("multiply", scattered("prod")),
            ("amax", scattered("amax")), ("amin", scattered("amin")),
        )
    ],
    "floordiv": [two(lambda x, y: (x // y) * x, lambda x, y: torch.floor(x / y) * x)],
    **{
        name: [Case(lambda x, name=name: getattr(x, name)() * x,
                    lambda x, name=name: getattr(torch, name)(x) * x, [(wide(),), (EDGES[:8],)])]
        for name in ("sign", "floor", "ceil", "trunc", "round")
    },
}  # fmt: skip


def test_every_rule_is_compared():
    assert set(CASES) == set(RULES)


def weights(*shape: int) -> np.ndarray:
    return np.sin(np.arange(1, math.prod(shape) + 1) * 0.7).reshape(shape)


@pytest.mark.parametrize("op", CASES)
def test_gradients(op: str):
    checks = Checks(rtol=1e-9, atol=1e-12)
    ops: set[str] = set()
    for number, case in enumerate(CASES[op]):
        for at, values in enumerate(case.values):
            name = f"{op} {number} {at}"
            ours = [Tensor(v, requires_grad=True) for v in values]
            theirs = [torch.tensor(v, requires_grad=True) for v in values]
            got, expected = case.ours(*ours), case.theirs(*theirs)
            ops |= {node.op for node in tracked_order(got.node)}
            scale = weights(*got.shape)
            first = (got * Tensor(scale)).sum().gradient(*ours)
            first_expected = torch.autograd.grad(
                (expected * torch.from_numpy(scale)).sum(), theirs, create_graph=True,
                allow_unused=True,
            )  # fmt: skip
            for k, (g, e) in enumerate(zip(first, first_expected, strict=True)):
                checks.add(
                    f"{name} d{k}", g, np.zeros(g.shape) if e is None else e.numpy(force=True)
                )
            smooth = at == 0 and case.twice
            parts = [e for e in first_expected if e is not None and e.requires_grad]
            if not smooth or not parts:
                continue
            second = sum(((g * g).sum() for g in first), Tensor(0.0, "f64")).gradient(*ours)
            second_expected = torch.autograd.grad(
                sum((e * e).sum() for e in parts), theirs, allow_unused=True
            )
            for k, (g, e) in enumerate(zip(second, second_expected, strict=True)):
                checks.add(
                    f"{name} dd{k}", g, np.zeros(g.shape) if e is None else e.numpy(force=True)
                )
    assert op in ops
    checks.run()


@pytest.mark.parametrize("op", ["exp", "tanh", "div", "max", "reduce", "gather", "scatter", "erf"])
def test_gradients_of_single_precision(op: str):
    checks = Checks(rtol=2e-5, atol=2e-5)
    for number, case in enumerate(CASES[op]):
        values = [v.astype(np.float32) for v in case.values[0]]
        ours = [Tensor(v, requires_grad=True) for v in values]
        theirs = [torch.tensor(v, requires_grad=True) for v in values]
        case.ours(*ours).sum().backward()
        case.theirs(*theirs).sum().backward()
        for k, (t, e) in enumerate(zip(ours, theirs, strict=True)):
            assert t.grad is not None and t.grad.element == "f32"
            checks.add(f"{op} {number} d{k}", t.grad, e.grad.numpy())
    checks.run()
