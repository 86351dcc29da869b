"""Methods of Tensor against numpy, over types, ranks 0 to 4 and sizes 0 and 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tensor_checks import Checks

from uopc import Tensor, UopcError

pytestmark = pytest.mark.usefixtures("cache_folder")

RNG = np.random.default_rng(3)
SHAPES = [(), (5,), (1,), (0,), (3, 4), (2, 0), (2, 3, 4), (2, 1, 3, 2)]


def reals(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape) * 2).astype(dtype)


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def log1pexp(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x.astype(np.float64), 0)


UNARY: dict[str, Any] = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.round, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "cbrt": np.cbrt, "square": np.square,
    "erf": erf, "isnan": np.isnan, "isfinite": np.isfinite, "logical_not": np.logical_not,
    "frac": lambda x: x - np.trunc(x), "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6), "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "sigmoid": sigmoid, "silu": lambda x: x * sigmoid(x), "softplus": log1pexp,
    "logsigmoid": lambda x: -log1pexp(-x), "mish": lambda x: x * np.tanh(log1pexp(x)),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "celu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: 1.0507009873554805
    * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardtanh": lambda x: np.clip(x, -1, 1), "softsign": lambda x: x / (1 + np.abs(x)),
    "tanhshrink": lambda x: x - np.tanh(x), "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "softshrink": lambda x: np.where(x > 0.5, x - 0.5, np.where(x < -0.5, x + 0.5, 0)),
    "hardshrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
}  # fmt: skip
POSITIVE: dict[str, Any] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
}  # fmt: skip
INSIDE: dict[str, Any] = {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh}


def test_functions_of_one_element():
    checks = Checks()
    for name, reference in UNARY.items():
        for shape in ((), (3, 4), (0,)):
            x = reals(shape)
            checks.add(name, getattr(Tensor(x), name)(), reference(x))
    for name, reference in POSITIVE.items():
        x = np.abs(reals((2, 5))) + np.float32(0.1)
        checks.add(name, getattr(Tensor(x), name)(), reference(x))
    for name, reference in INSIDE.items():
        x = RNG.uniform(-0.9, 0.9, (7,)).astype(np.float32)
        checks.add(name, getattr(Tensor(x), name)(), reference(x))
    checks.run()


BINARY: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "floordiv": np.floor_divide, "mod": np.mod, "fmod": np.fmod, "maximum": np.maximum,
    "minimum": np.minimum, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "atan2": np.arctan2,
    "copysign": np.copysign, "logaddexp": np.logaddexp, "hypot": np.hypot,
}  # fmt: skip
BROADCASTS = [
    ((), ()), ((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((0, 4), (4,)), ((5,), ()),
]  # fmt: skip


def test_functions_of_two():
    checks = Checks()
    for name, reference in BINARY.items():
        for first, second in BROADCASTS:
            x, y = reals(first), reals(second)
            checks.add(name, getattr(Tensor(x), name)(Tensor(y)), reference(x, y))
    checks.run()


def test_whole_numbers():
    checks = Checks()
    with np.errstate(all="ignore"):
        for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32):
            x = RNG.integers(-100, 100, (3, 4)).astype(dtype)
            y = RNG.integers(1, 9, (4,)).astype(dtype)
            a, b = Tensor(x), Tensor(y)
            for got, expected in (
                (a + b, x + y), (a - b, x - y), (a * b, x * y), (a // b, x // y), (a % b, x % y),
                (a & b, x & y), (a | b, x | y), (a ^ b, x ^ y), (~a, ~x), (a << 1, x << 1),
                (a >> 1, x >> 1), (-b, -y), (a < b, x < y), (a.maximum(b), np.maximum(x, y)),
                (a == b, x == y), (a.abs(), np.abs(x)), (a + 1, x + 1), (1 - b, 1 - y),
                (a.max(0), x.max(0)), (a.min(), x.min()),
                (a.cummax(1), np.maximum.accumulate(x, 1)),
            ):  # fmt: skip
                checks.add("integers", got, expected, same_type=True)
            checks.add("sum", a.sum(1), x.sum(1, dtype=x.dtype if x.itemsize > 2 else None))
            checks.add("mean", a.mean(0), x.mean(0))
            checks.add("div", a / b, x / y)
            checks.add("argsort", a.argsort(1), np.argsort(x, 1, kind="stable"))
    checks.run()


REDUCTIONS: dict[str, Any] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean, "var": np.var,
    "std": np.std, "any": np.any, "all": np.all,
}  # fmt: skip


def test_reductions():
    checks = Checks(rtol=1e-4)
    for name, reference in REDUCTIONS.items():
        for shape in SHAPES:
            x = reals(shape)
            for axis in (None, *range(len(shape)), *([(0, -1)] if len(shape) > 1 else [])):
                over = [shape[a] for a in ([axis] if isinstance(axis, int) else axis or [])]
                if axis is None:
                    over = list(shape)
                if 0 in over and name not in ("sum", "prod", "any", "all"):
                    continue
                for keep in (False, True):
                    checks.add(
                        f"{name} axis={axis} keepdim={keep}",
                        getattr(Tensor(x), name)(axis, keepdim=keep),
                        reference(x, axis=axis, keepdims=keep),
                    )
    checks.run()


def test_positions_and_running_totals():
    checks = Checks(rtol=1e-4)
    for shape in [(1,), (7,), (3, 4), (2, 3, 4)]:
        x = reals(shape)
        t = Tensor(x)
        checks.add("argmax", t.argmax(), np.argmax(x))
        checks.add("argmin keep", t.argmin(keepdim=True), np.argmin(x, keepdims=True))
        for axis in range(len(shape)):
            checks.add("argmax", t.argmax(axis), np.argmax(x, axis))
            checks.add("argmin", t.argmin(axis, keepdim=True), np.argmin(x, axis, keepdims=True))
            checks.add("cumsum", t.cumsum(axis), np.cumsum(x, axis))
            checks.add("cumprod", t.cumprod(axis), np.cumprod(x, axis))
            checks.add("cummax", t.cummax(axis), np.maximum.accumulate(x, axis))
            checks.add("cummin", t.cummin(axis), np.minimum.accumulate(x, axis))
            wide = x.astype(np.float64)
            total = np.log(np.sum(np.exp(wide), axis, keepdims=True))
            checks.add("logsumexp", t.logsumexp(axis, keepdim=True), total)
            checks.add("softmax", t.softmax(axis), np.exp(wide - total))
            checks.add("log_softmax", t.log_softmax(axis), wide - total)
            checks.add("logcumsumexp", t.logcumsumexp(axis), np.log(np.cumsum(np.exp(wide), axis)))
            checks.add("sort", t.sort(axis)[0], np.sort(x, axis))
            down = -np.sort(-x, axis)
            checks.add("sort down", t.sort(axis, descending=True)[0], down)
            checks.add("topk", t.topk(1, axis)[0], np.take(down, [0], axis))
    odd = np.array([3, np.nan, -np.inf, np.inf, -0.0, 0.0, np.nan, 1], np.float32)
    checks.add("argsort NaN", Tensor(odd).argsort(), np.argsort(odd, kind="stable"))
    for x in (np.float32(2.5),):
        t = Tensor(x)
        checks.add("scalar", t.softmax(), 1.0)
        checks.add("scalar", t.log_softmax(), 0.0)
        checks.add("scalar", t.cumsum(), x)
    checks.run()


INDEXES: list[Any] = [
    0, -1, slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2),
    slice(2, 2), slice(10, None), None, ..., (slice(None), 1), (..., 0), (None, slice(1), None),
    (1, ..., slice(None, None, -2)), [0, 2, -1], ([0, 1], [1, -2]), (slice(None), [0, 0, 2]),
    (0, slice(None), [1, 0]), ([[0, 1], [2, 3]],), ([1, 0], slice(None), [0, 1]), (), (..., [1, 0]),
    (slice(1, 1), [0]), ([], slice(None)), range(1, 3), ((0, 1), (2, 2)), ((0, 2),),
    [True, False, True, True], ([1, 0], [True, False, True]), (..., [False] * 4 + [True]),
    np.arange(12).reshape(4, 3) % 5 == 0, [False] * 4, (slice(None, None, -1), [-1, 0], None),
    np.uint8(2), np.array(-1), (None, [1, -2], ...),
]  # fmt: skip


def test_indexing_reads_as_numpy():
    x = reals((4, 3, 5))
    t = Tensor(x)
    checks = Checks()
    for index in INDEXES:
        checks.add(f"x[{index}]", t[index], x[index])
    i = np.array([[2, 0], [1, 1]], np.int32)
    checks.add("x[tensor]", t[Tensor(i)], x[i])
    checks.add("x[:, tensor]", t[:, Tensor(i)], x[:, i])
    checks.add("x[tensor, :, tensor]", t[Tensor(i), :, Tensor(i)], x[i, :, i])
    checks.add("negative", t[Tensor(np.array([-1, -4]))], x[[-1, -4]])
    checks.run()


def test_indexing_writes_as_numpy():
    checks = Checks()
    for index in INDEXES:
        x = reals((4, 3, 5))
        t = Tensor(x)
        value = reals(x[index].shape)
        t[index] = Tensor(value)
        x[index] = value
        checks.add(f"x[{index}] = tensor", t, x)
        if value.size:
            t2 = Tensor(x)
            t2[index] = 7
            x = x.copy()
            x[index] = 7
            checks.add(f"x[{index}] = 7", t2, x)
    checks.run()


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (4, "outside"), (-5, "outside"), ((0, 0, 0, 0), "rank"), ([4], "inside"), (1.5, "float"),
        ((..., ...), "more than one"), (True, "truth"), ([True, False], "size 2 along axis 0"),
        (np.array(True), "truth"), ((0, [True] * 4), "size 4 along axis 1"),
    ],
)  # fmt: skip
def test_wrong_indexes_are_told(index: Any, words: str):
    with pytest.raises(UopcError, match=words) as caught:
        Tensor(reals((4, 3, 5)))[index]
    assert caught.value.kind == "bad-index"


def test_shapes():
    x = reals((2, 3, 4))
    t = Tensor(x)
    checks = Checks()
    for name, got, expected in (
        ("reshape", t.reshape(4, -1), x.reshape(4, -1)),
        ("reshape tuple", t.reshape((24,)), x.reshape(24)),
        ("permute", t.permute(2, 0, 1), x.transpose(2, 0, 1)),
        ("transpose", t.transpose(), x.swapaxes(1, 2)),
        ("transpose", t.transpose(0, 2), x.swapaxes(0, 2)),
        ("T", t.T, x.T),
        ("mT", t.mT, x.swapaxes(1, 2)),
        ("moveaxis", t.moveaxis(0, -1), np.moveaxis(x, 0, -1)),
        (
            "expand",
            t.reshape(2, 1, 3, 4).expand(-1, 5, -1, -1),
            np.broadcast_to(x[:, None], (2, 5, 3, 4)),
        ),
        ("squeeze", t[:, :1].squeeze(), x[:, 0]),
        ("unsqueeze", t.unsqueeze(-1), x[..., None]),
        ("flatten", t.flatten(1), x.reshape(2, 12)),
        ("unflatten", t.unflatten(2, (2, -1)), x.reshape(2, 3, 2, 2)),
        ("flip", t.flip((0, 2)), x[::-1, :, ::-1]),
        (
            "pad",
            t.pad(((0, 1), (2, 0), (0, 0)), value=3),
            np.pad(x, ((0, 1), (2, 0), (0, 0)), constant_values=3),
        ),
        ("pad torch", t.pad((1, 2)), np.pad(x, ((0, 0), (0, 0), (1, 2)))),
        ("pad negative", t.pad((-1, 1)), np.pad(x[..., 1:], ((0, 0), (0, 0), (0, 1)))),
        (
            "reflect",
            t.pad(((1, 1), (2, 0), (0, 3)), "reflect"),
            np.pad(x, ((1, 1), (2, 0), (0, 3)), "reflect"),
        ),
        (
            "replicate",
            t.pad(((1, 1), (2, 0), (0, 3)), "replicate"),
            np.pad(x, ((1, 1), (2, 0), (0, 3)), "edge"),
        ),
        (
            "circular",
            t.pad(((1, 1), (2, 0), (0, 3)), "circular"),
            np.pad(x, ((1, 1), (2, 0), (0, 3)), "wrap"),
        ),
        ("cat", Tensor.cat([t, t[:, :1]], 1), np.concatenate([x, x[:, :1]], 1)),
        ("cat empty", Tensor.cat([t[:0], t, t[:0]], 0), x),
        ("cat as method", t.cat(t[:, :1], axis=1), np.concatenate([x, x[:, :1]], 1)),
        ("cat of tensors", Tensor.cat(t, t[:, :1], t, 1), np.concatenate([x, x[:, :1], x], 1)),
        ("stack as method", t.stack(t * 2, axis=1), np.stack([x, x * 2], 1)),
        ("stack", Tensor.stack([t, t * 2], -1), np.stack([x, x * 2], -1)),
        ("tile", t.tile(2, 1, 1, 3), np.tile(x, (2, 1, 1, 3))),
        ("repeat_interleave", t.repeat_interleave(2, 1), np.repeat(x, 2, 1)),
        ("roll", t.roll((1, -2), (0, 2)), np.roll(x, (1, -2), (0, 2))),
        ("roll flat", t.roll(5), np.roll(x, 5)),
        ("tril", t.tril(1), np.tril(x, 1)),
        ("triu", t.triu(-1), np.triu(x, -1)),
        ("diag", t[0, 0].diag(), np.diag(x[0, 0])),
        ("diagonal", t.diagonal(), np.diagonal(x, axis1=-2, axis2=-1)),
        ("take", t.take([[1, -1]], 2), np.take(x, [[1, -1]], 2)),
        ("one_hot", Tensor([0, 2]).one_hot(3), np.eye(3)[[0, 2]]),
        (
            "meshgrid",
            Tensor.meshgrid(Tensor([1, 2]), Tensor([3, 4, 5]))[1],
            np.meshgrid([1, 2], [3, 4, 5], indexing="ij")[1],
        ),
        ("where", (t > 0).where(t, -1), np.where(x > 0, x, -1)),
        ("clamp", t.clamp(-1, 0.5), np.clip(x, -1, 0.5)),
        ("masked_fill", t.masked_fill(t > 0, 9), np.where(x > 0, 9, x)),
        (
            "searchsorted",
            Tensor([1, 3, 5]).searchsorted(Tensor([0, 3, 9])),
            np.searchsorted([1, 3, 5], [0, 3, 9]),
        ),
        ("bincount", Tensor([0, 2, 2]).bincount(4), [1, 0, 2, 0]),
    ):
        checks.add(name, got, expected)
    for got, expected in zip(
        t.split(2, 2) + t.chunk(3, 1) + t.split([1, 3], 2),
        [*np.split(x, 2, 2), *np.split(x, 3, 1), x[..., :1], x[..., 1:]],
        strict=True,
    ):
        checks.add("split", got, expected)
    index = RNG.integers(0, 4, (2, 3, 2))
    checks.add("gather", t.gather(2, index), np.take_along_axis(x, index, 2))
    put = x.copy()
    np.put_along_axis(put, index[..., :1], 5.0, 2)
    checks.add("scatter", t.scatter(2, index[..., :1], 5.0), put)
    added = np.zeros((2, 3, 4))
    for place in np.ndindex(index.shape):
        added[place[0], place[1], index[place]] += x[place]
    checks.add("scatter_add", (t * 0).scatter_add(2, index, t), added)
    checks.run()


def test_products():
    checks = Checks(rtol=1e-4)
    for first, second in [
        ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)), ((0, 4), (4, 3)), ((3, 0), (0, 4)), ((1, 1), (1, 1)),
    ]:  # fmt: skip
        x, y = reals(first), reals(second)
        checks.add("@", Tensor(x) @ Tensor(y), x @ y)
    a, b, c = reals((2, 3, 4)), reals((2, 4, 5)), reals((5,))
    for formula, values in [
        ("bij,bjk->bik", (a, b)), ("bij,bjk,k->i", (a, b, c)), ("bij->jib", (a,)),
        ("...ij->...", (a,)), ("bij,bjk", (a, b)), ("...ij,...jk->...ik", (a, b)), ("k,k", (c, c)),
        ("ii->i", (reals((3, 3)),)), ("ii", (reals((3, 3)),)), ("k,l->kl", (c, c)),
    ]:  # fmt: skip
        checks.add(
            formula, Tensor.einsum(formula, *map(Tensor, values)), np.einsum(formula, *values)
        )
    w, bias = reals((6, 4)), reals((6,))
    checks.add("linear", Tensor(a).linear(Tensor(w), Tensor(bias)), a @ w.T + bias)
    checks.add("outer", Tensor(c).outer(c), np.outer(c, c))
    checks.run()


def test_results_have_the_types_of_the_table():
    from uopc.frontend.promotion import promote

    def element(t: Tensor) -> str:
        return t.element

    u8, truth, i32 = Tensor(np.array([1, 2], np.uint8)), Tensor([True, True]), Tensor([1, 2])
    half = Tensor([1.0, 2.0], dtype="f16")
    assert element(u8.any() * 200 + 100) == "i32"
    assert (u8.any() * 200 + 100).item() == 300
    assert (element(truth.sum()), truth.sum().item()) == ("i32", 2)
    assert element(u8.sum()) == "ui32"
    assert (element(truth + truth), (truth + truth).tolist()) == ("i1", [True, True])
    assert (element(i32.mean()), i32.mean().item()) == ("f32", 1.5)
    assert element(i32 * 0.5) == "f32"
    assert element(half * 2.5) == "f16"
    assert element(half + i32) == "f16"
    assert element(i32 / i32) == "f32"
    assert element(i32 < 2) == "i1"
    assert promote("ui8", "i8") == "i16"
    assert promote("f16", "bf16") == "f32"
    assert promote("ui64", "i8") == "f64"
    with pytest.raises(UopcError, match="300"):
        u8 + 300


def test_empty_and_rank_0_behave_as_numpy():
    assert (Tensor.zeros(0, 4) @ Tensor.zeros(4, 3)).shape == (0, 3)
    assert np.isnan(Tensor.zeros(0).mean().item())
    assert Tensor.zeros(3, 0).sum(1).tolist() == [0.0, 0.0, 0.0]
    for method in ("max", "min", "argmax"):
        with pytest.raises(UopcError, match="axis 1") as caught:
            getattr(Tensor.zeros(3, 0), method)(1)
        assert caught.value.kind == "empty-reduction"
    scalar = Tensor(4.0)
    assert scalar.reshape(1, 1).shape == (1, 1)
    assert scalar[None].shape == (1,)
    assert scalar.transpose().item() == scalar.flip().item() == scalar.sum().item() == 4.0
    assert scalar.softmax(-1).item() == 1.0
    assert Tensor.zeros(0)[np.zeros(0, np.int64)].shape == (0,)


def test_mistakes_are_told():
    x = Tensor.ones(2, 3)
    for kind, words, action in [
        ("wrong-operands", "do not broadcast", lambda: x + Tensor.ones(4)),
        ("wrong-operands", "3 columns meet 2 rows", lambda: x @ x),
        ("bad-axis", "axis 2", lambda: x.sum(2)),
        ("bad-shape", "6 elements", lambda: x.reshape(4, 2)),
        ("wrong-operands", "truth", lambda: (x > 0) - (x > 1)),
        ("ragged-list", "lengths", lambda: Tensor([[1, 2], [3]])),
        ("wrong-type", "no number", lambda: Tensor("text")),
        ("unknown-dtype", "complex", lambda: Tensor(np.zeros(2, np.complex64))),
        ("wrong-argument", "mode", lambda: x.pad((1, 1), "mirror")),
        ("wrong-operands", "item of 6", lambda: x.item()),
    ]:
        with pytest.raises(UopcError, match=words) as caught:
            action()
        assert caught.value.kind == kind


def test_axes_may_have_the_names_of_torch_and_numpy():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    x: Any = Tensor(a)
    checks = Checks()
    checks.add("dim", x.sum(dim=1), a.sum(1))
    checks.add("keepdims", x.max(axis=1, keepdims=True), a.max(1, keepdims=True))
    checks.add("both", x.mean(dim=(0, 1), keepdim=True), a.mean(keepdims=True))
    checks.add("argmax", x.argmax(dim=-1), a.argmax(-1))
    checks.add("cat", x.cat(x, dim=1), np.concatenate([a, a], 1))
    checks.add("stack", Tensor.stack([x, x], dim=1), np.stack([a, a], 1))  # pyright: ignore[reportCallIssue]
    checks.add("flip", x.flip(dims=(0,)), a[::-1])
    checks.add("softmax", x.softmax(dim=0).sum(dim=0), np.ones(3))
    checks.run()
    with pytest.raises(UopcError) as caught:
        x.sum(axis=0, dim=1)
    assert str(caught.value) == (
        "error: sum is given axis and dim [wrong-argument]\n  hint: give one of them"
    )
    with pytest.raises(TypeError, match="dim"):  # as Python says it: relu has no axis
        x.relu(dim=0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.sum(0, dim=1), "sum is given axis and dim"),
        (lambda x: x.sum(axis=0, dim=1), "sum is given axis and dim"),
        (lambda x: x.sum(dim=0, dims=1), "sum is given dim and dims"),
        (lambda x: x.sum(0, True, keepdims=True), "sum is given keepdim and keepdims"),
    ],
)
def test_both_spellings_at_once_are_refused(call: Any, words: str) -> None:
    with pytest.raises(UopcError, match=words):
        call(Tensor([[1.0, 2.0]]))
