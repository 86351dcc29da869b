"""Mistakes that other tensor libraries made, as inputs to get right, by the names of the cases.

Others stand beside what they are about: C30, C40, C45 and C49 in test_jit.py and test_captured.py,
C39, C44 in test_tensor.py, C56 in test_gradients.py, C54, C58 in test_cases_compiler.py.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

import uopc
from uopc import Tensor, UopcError

pytestmark = pytest.mark.usefixtures("cache_folder")

INF, NAN = math.inf, math.nan
MANY = 70_000
"""More than the largest f16, 65,504."""


def halves(*shape: int, value: float = 1.0) -> np.ndarray:
    return np.full(shape, value, np.float16)


def floats(t: Tensor) -> np.ndarray:
    return t.numpy().astype(np.float64)


def test_c01_a_nan_wins_in_every_extreme():
    x = Tensor([[1.0, NAN, 3.0], [2.0, 5.0, 4.0]])
    for t in (x, x.cast("f16"), x.cast("bf16"), x.cast("f64")):
        np.testing.assert_array_equal(floats(t.max(1)), [NAN, 5])
        np.testing.assert_array_equal(floats(t.min(1)), [NAN, 2])
        np.testing.assert_array_equal(floats(t.cummax(1))[0], [1, NAN, NAN])
        np.testing.assert_array_equal(floats(t[0].maximum(2)), [2, NAN, 3])
        np.testing.assert_array_equal(floats(t[0].clip(0, 2)), [1, NAN, 2])
        np.testing.assert_array_equal(floats(t[0].relu()), [1, NAN, 3])
        assert t.argmax(1).tolist() == [1, 1] and t.argmin(1).tolist() == [1, 0]
    assert math.isnan(x.max().item())


MASKS = {
    "truth values": [[False, False], [True, True]],
    "numbers": [[-INF, -INF], [0.0, 0.0]],
}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("jitted", [False, True])
def test_c07_a_row_that_sees_nothing_harms_no_other(kind: str, element: str, jitted: bool):
    rng = np.random.default_rng(0)
    q, k, v = (
        Tensor(rng.standard_normal((2, 3)).astype(np.float32), dtype=element, requires_grad=True)
        for _ in range(3)
    )
    mask = Tensor(MASKS[kind], dtype=None if kind == "truth values" else element)

    def attend() -> Tensor:
        out = q.scaled_dot_product_attention(k, v, mask)
        out.sum().backward()
        return out

    out = (uopc.jit(attend) if jitted else attend)()
    assert out.numpy()[0].tolist() == [0, 0, 0]
    qs, ks, vs = (floats(t.detach()) for t in (q, k, v))
    scores = qs[1] @ ks.T / math.sqrt(3)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    tolerance = 1e-6 if element == "f32" else 0.02
    np.testing.assert_allclose(floats(out)[1], weights @ vs, atol=tolerance)
    for t in (q, k, v):
        assert t.grad is not None and np.isfinite(floats(t.grad)).all()
    assert q.grad is not None and q.grad.numpy()[0].tolist() == [0, 0, 0]
    assert v.grad is not None
    np.testing.assert_allclose(floats(v.grad), np.outer(weights, np.ones(3)), atol=tolerance)


def test_c07_softmax_says_nan_of_an_empty_row_and_only_there():
    x = Tensor([[-INF, -INF], [0.0, 0.0]], requires_grad=True)
    for y, row in ((x.softmax(-1), [0.5, 0.5]), (x.log_softmax(-1), [math.log(0.5)] * 2)):
        assert np.isnan(y.numpy()[0]).all()
        np.testing.assert_allclose(y.numpy()[1], row, rtol=1e-6)
        x.grad = None
        (y * Tensor([1.0, 2.0])).sum().backward()
        assert x.grad is not None and np.isfinite(x.grad.numpy()[1]).all()
    assert x.logsumexp(1).tolist() == [-INF, pytest.approx(math.log(2))]
    masked = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    rows = masked.masked_fill(Tensor([[True, True], [False, False]]), -INF).softmax(-1)
    rows[1, 0].backward()
    assert masked.grad is not None
    assert masked.grad.numpy()[0].tolist() == [0, 0] and np.isfinite(masked.grad.numpy()).all()


EVEN = {
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(1),
    "mean": lambda x: x.mean(1),
    "logsumexp": lambda x: x.logsumexp(1),
}


@pytest.mark.parametrize("name", EVEN)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_c09_many_halves_share_a_gradient(name: str, element: str):
    x = Tensor(halves(2, MANY), dtype=element, requires_grad=True)
    EVEN[name](x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(floats(x.grad), 1 / MANY, rtol=0.01)


WIDE: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "softmax": (lambda x: x.softmax(0).max(), 1 / MANY),
    "log_softmax": (lambda x: x.log_softmax(0).min(), -math.log(MANY)),
    "logsumexp": (lambda x: x.logsumexp(0), 1 + math.log(MANY)),
    "mean": (lambda x: x.mean(), 1.0),
    "nanmean": (lambda x: x.nanmean(), 1.0),
    "average": (lambda x: x.average(weights=x), 1.0),
    "var": (lambda x: (x * 300 * Tensor([1.0, -1.0], "f16").repeat(MANY // 2)).var(), math.inf),
    "std": (lambda x: (x * 300 * Tensor([1.0, -1.0], "f16").repeat(MANY // 2)).std(), 300.0),
    "norm": (lambda x: (x * 2).norm(), 2 * math.sqrt(MANY)),
    "norm of large ones": (lambda x: (x[:2] * 300).norm(), 300 * math.sqrt(2)),
    "layernorm": (lambda x: (x * 300 * Tensor([1.0, -1.0], "f16").repeat(35000)).layernorm()[0], 1),
    "rms_norm": (lambda x: (x * 300).rms_norm()[5], 1.0),
    "normalize": (lambda x: (x[None] * 300).normalize(axis=1).max(), 1 / math.sqrt(MANY)),
    "cross_entropy": (
        lambda x: x.reshape(MANY // 2, 2).cross_entropy(np.zeros(MANY // 2, np.int32)),
        math.log(2),
    ),
    "cross_entropy of many": (
        lambda x: x.reshape(MANY, 1).expand(MANY, 2).cross_entropy(np.zeros(MANY, np.int32)),
        math.log(2),
    ),
    "avg_pool2d": (lambda x: (x[:4] * 60000).reshape(1, 1, 2, 2).avg_pool2d(2).max(), 60000.0),
    "avg_pool2d, padded": (
        lambda x: (x[:4] * 60000).reshape(1, 1, 2, 2).avg_pool2d(2, 1, 1, False).max(),
        60000.0,
    ),
    "cosine_similarity": (
        lambda x: (x[None, :64] * 300).cosine_similarity(x[None, :64] * 300).max(),
        1.0,
    ),
    "attention": (
        lambda x: (
            (x[:64].reshape(1, 64) * 40)
            .scaled_dot_product_attention(x[:128].reshape(2, 64) * 40, x[:2].reshape(2, 1))
            .max()
        ),
        1.0,
    ),
}


@pytest.mark.parametrize("name", WIDE)
def test_c09_what_halves_add_up_to_on_the_way_may_be_larger(name: str):
    function, expected = WIDE[name]
    result = function(Tensor(halves(MANY)))
    assert result.element == "f16"
    assert result.item() == pytest.approx(expected, rel=2e-3)


def test_c09_halves_that_meet_wider_types_become_wider():
    x = Tensor(halves(2, 3))
    assert x.rms_norm(Tensor(np.ones(3, np.float32))).element == "f32"
    assert x.scaled_dot_product_attention(Tensor([[1.0, 1.0, 1.0]]), x[:1]).element == "f32"
    assert x.softmax().element == x.norm().element == "f16"


@pytest.mark.parametrize("threads", ["1", "8"])
def test_c22_a_mean_of_many_does_not_drift(threads: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UOPC_THREADS", threads)
    assert Tensor(0.5).expand(1 << 27).mean().item() == 0.5
    for length in (1 << 20, 1 << 25):
        data = np.full(length, 0.1, np.float32)
        assert Tensor(data).mean().item() == pytest.approx(0.1, rel=4e-6)


def test_c23_sums_of_bf16_do_not_saturate():
    ones = Tensor(np.ones(4096, np.float32), dtype="bf16")
    image = ones.reshape(1, 1, 64, 64)
    sums = [
        ones.sum(), ones.dot(ones), Tensor.einsum("i,i->", ones, ones),
        (ones.reshape(1, -1) @ ones.reshape(-1, 1)).sum(), image.conv2d(image).sum(),
        ones.cumsum(0)[-1], image.avg_pool2d(64).sum() * 4096, ones.mean() * 4096,
    ]  # fmt: skip
    Tensor.realize_all(*sums)
    assert [s.item() for s in sums] == [4096.0] * 8
    assert set(floats(Tensor(np.full(512, 3.0, np.float32), dtype="bf16").softmax())) == {1 / 512}


def test_c31_nothing_is_a_number_of_elements():
    def empty(*shape: int) -> Tensor:
        return Tensor(np.zeros(shape, np.float32))

    assert (empty(0, 4) @ empty(4, 3)).tolist() == []
    assert (empty(3, 0) @ empty(0, 2)).tolist() == [[0, 0]] * 3
    assert empty(3, 0).linear(empty(2, 0)).tolist() == [[0, 0]] * 3
    assert (empty(0).sum().item(), empty(0).prod().item(), empty(0).norm().item()) == (0, 1, 0)
    assert math.isnan(empty(0).mean().item()) and np.isnan(empty(0, 2).std(0).numpy()).all()
    assert (empty(0).any().item(), empty(0).all().item()) == (False, True)
    assert empty(2, 0).logsumexp(1).tolist() == [-INF, -INF]
    assert Tensor.cat([empty(0, 2), Tensor([[1.0, 2.0]])]).tolist() == [[1, 2]]
    for t, shape in (
        (empty(0, 3).softmax(), (0, 3)), (empty(0)[Tensor([], "i32")], (0,)),
        (empty(4, 3)[Tensor([], "i32")], (0, 3)), (empty(0).sort()[0], (0,)),
        (empty(0).cumsum(), (0,)), (empty(0, 2).layernorm(), (0, 2)),
        (empty(0, 1, 4, 4).conv2d(empty(2, 1, 3, 3)), (0, 2, 2, 2)), (empty(0).topk(0)[1], (0,)),
    ):  # fmt: skip
        assert t.numpy().shape == shape
    x = Tensor(np.zeros((0, 3), np.float32), requires_grad=True)
    x.sum().backward()
    assert x.grad is not None and x.grad.numpy().shape == (0, 3)
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(UopcError, match=rf"{name} over axis 1, which has no elements"):
            getattr(empty(2, 0), name)(1)
    with pytest.raises(UopcError, match="axis 0 has no elements to take any from"):
        empty(0, 3)[Tensor([0])]


def test_c32_a_scalar_has_no_axes_and_all_functions():
    x = Tensor(2.5)
    same = [
        x.flip(), x.sum(), x.T, x.max(), x.mean(), x.squeeze(), x[...], x.prod(), x.logsumexp(),
        x.cumsum(), x.cumprod(), x.sort()[0], x.norm(), x.reshape(()), x.contiguous(), x.roll(1),
    ]  # fmt: skip
    Tensor.realize_all(*same)
    for t in same:
        assert (t.shape, t.item()) == ((), 2.5)
    assert (x.softmax(-1).item(), x.log_softmax(-1).item(), x.var().item()) == (1, 0, 0)
    assert x.reshape(1, 1).tolist() == x[None].unsqueeze(0).tolist() == [[2.5]]
    assert x.flatten().tolist() == x.unsqueeze(0).tolist() == [2.5]
    assert x.repeat(2).tolist() == Tensor.stack([x, x]).tolist() == [2.5, 2.5]
    assert (x.argmax().item(), x.any().item()) == (0, True)
    for action in (
        lambda: x.transpose(0, 1), lambda: x.chunk(2), lambda: x.split(1), lambda: x.topk(1),
        lambda: x.gather(0, Tensor([0])),
    ):  # fmt: skip
        with pytest.raises(UopcError, match="a scalar has no axes"):
            action()
    with pytest.raises(UopcError):
        x[0]


ALIASES: dict[str, Callable[..., None]] = {
    "x[:] = flip": lambda x, flip: x.__setitem__(slice(None), flip(x)),
    "x[1:] = x[:-1]": lambda x, _: x.__setitem__(slice(1, None), x[:-1]),
    "x[:-1] = x[1:]": lambda x, _: x.__setitem__(slice(None, -1), x[1:]),
    "x[::-1] = x": lambda x, _: x.__setitem__(slice(None, None, -1), x),
    "x[:] = x.T": lambda x, _: x.__setitem__(slice(None), x.T),
    "x[:, 1:] += x[:, :-1]": lambda x, _: x.__setitem__(
        (slice(None), slice(1, None)), x[:, 1:] + x[:, :-1]
    ),
    "x[:, ::3] *= 2": lambda x, _: x.__setitem__(
        (slice(None), slice(None, None, 3)), x[:, ::3] * 2
    ),
    "x[[0, 2]] = x[[2, 0]]": lambda x, _: x.__setitem__([0, 2], x[[2, 0]]),
}


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("how", ["realized", "lazy", "jitted"])
def test_c38_c43_what_is_read_is_what_was_there(name: str, how: str):
    """As numpy with a copy of the right side first, and twice, so that the second builds on the
    first; what is used afterwards is the new value."""
    change = ALIASES[name]
    array = np.arange(16, dtype=np.float32).reshape(4, 4)
    expected = array.copy()
    for _ in range(2):
        before = expected.copy()
        if name == "x[:] = flip":
            expected[:] = before[::-1].copy()
        elif name == "x[:] = x.T":
            expected[:] = before.T.copy()
        else:
            read = Copied(before)
            change(read, None)
            expected = read.array
    x = Tensor(array) if how == "realized" else Tensor(array) + 0

    def work() -> Tensor:
        old = x * 1
        change(x, lambda t: t.flip(0))
        change(x, lambda t: t.flip(0))
        return old + x * 10

    if how == "jitted":
        x = Tensor(array)
        for k in range(3):
            x.assign(array)
            result = uopc.jit(work)() if k == 0 else work()
            np.testing.assert_array_equal(result.numpy(), array + expected * 10)
    else:
        np.testing.assert_array_equal(work().numpy(), array + expected * 10)
    np.testing.assert_array_equal(x.numpy(), expected)
    np.testing.assert_array_equal(array, np.arange(16, dtype=np.float32).reshape(4, 4))


class Copied:
    """An array of which what is read is a copy."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __getitem__(self, index):
        return self.array[index].copy()

    def __setitem__(self, index, value) -> None:
        self.array[index] = value.array.copy() if isinstance(value, Copied) else value


def test_c40_a_step_changes_its_parameter_in_every_call():
    w, g = Tensor([1.0, 2.0]), Tensor([1.0, 1.0])

    @uopc.jit
    def step(w: Tensor) -> Tensor:
        loss = (w * w).sum()
        w -= 0.5 * g
        return loss

    losses = [step(w).item() for _ in range(5)]
    np.testing.assert_allclose(
        losses, [(1 - k / 2) ** 2 + (2 - k / 2) ** 2 for k in range(5)], rtol=1e-6
    )
    assert w.tolist() == [-1.5, -0.5]


def test_c57_thousands_of_ops_at_pythons_own_limit():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = x
    for k in range(5000):
        y = y + 1.0 if k % 2 else y * 1.0001
    before = sys.getrecursionlimit()
    y.sum().backward()
    assert x.grad is not None
    Tensor.realize_all(y, x.grad)
    np.testing.assert_allclose(x.grad.numpy(), 1.0001**2500, rtol=1e-4)
    assert np.isfinite(y.numpy()).all()
    assert sys.getrecursionlimit() == before


FRESH = """
import time
start = time.perf_counter()
import numpy as np
before = time.perf_counter()
from uopc import Tensor
value = (Tensor([1.0, 2.0]).exp() + 1).sum().item()
print(time.perf_counter() - before)
assert abs(value - 12.1073) < 1e-3
"""


def test_c58_a_fresh_process_has_its_first_result_soon():
    """The target is half a second where the program is kept; the bound here has slack."""
    seconds = [float(subprocess.check_output([sys.executable, "-c", FRESH])) for _ in range(3)]
    assert min(seconds[1:]) < 1.5


def test_c59_small_calls_are_quick():
    """The target is 5 us; the bound here has slack for a busy machine."""
    f = uopc.jit(lambda x: x + 1)
    x = Tensor(np.ones((8, 8), np.float32))
    times = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(500):
            f(x)
        times.append((time.perf_counter() - start) / 500)
    assert f.traces == 2
    assert min(times) < 25e-6
