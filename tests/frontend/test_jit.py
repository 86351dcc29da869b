"""uopc.jit: one trace a structure, nothing frozen, changes from outside replayed."""

from __future__ import annotations

import math
import threading
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

import uopc
from uopc import Tensor, UopcError, UopcWarning, cache_info

pytestmark = pytest.mark.usefixtures("cache_folder")


def test_a_call_follows_its_arguments():
    @uopc.jit
    def f(a: Tensor, b: Tensor) -> Tensor:
        return a * b + 1

    for k in range(5):
        assert f(Tensor([1.0, 2.0]), Tensor([float(k), 3.0])).tolist() == [k + 1.0, 7.0]
    assert f.traces == 2
    same = Tensor([3.0, 4.0])
    for _ in range(3):
        assert f(same, same).tolist() == [10.0, 17.0]
    assert f(same, Tensor([1.0, 1.0])).tolist() == [4.0, 5.0]


def test_shapes_follow_every_call():
    f = uopc.jit(lambda t: (t + 1).T.flatten())
    for n in (1, 2, 3, 4, 2, 4, 1):
        x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
        assert f(Tensor(x)).tolist() == (x + 1).T.ravel().tolist()


def test_numbers_are_data_where_they_can_be():
    f = uopc.jit(lambda a, b: a * b)
    a = Tensor([1.0, 2.0])
    before = None
    for b in (4, 5, 6):
        assert f(a, b).tolist() == [b, 2 * b]
        before = before or cache_info().compiles
    assert cache_info().compiles == before
    assert f(a, 2.5).tolist() == [2.5, 5.0]
    assert f(a, True).tolist() == [1.0, 2.0]
    assert f(Tensor([1, 2]), 1.5).tolist() == [1.5, 3.0]
    assert f(Tensor([1, 2]), 3).element == "i32"
    assert f(a, 1 << 70).tolist() == pytest.approx([2.0**70, 2.0**71])


def test_numbers_that_must_be_known_are_announced():
    f = uopc.jit(lambda a, n: a * math.sin(n))
    a = Tensor([1.0])
    with pytest.warns(UopcWarning, match="plain value"):
        f(a, 1.0)
    for n in (2.0, 1.0, 3.0):
        assert f(a, n).item() == pytest.approx(math.sin(n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g = uopc.jit(lambda a, n: a[:n].sum() if n > 1 else a)
        for n in (3, 1, 2, 3):
            x = np.arange(4, dtype=np.float32)
            assert g(Tensor(x), n).tolist() == (x[:n].sum() if n > 1 else x).tolist()


def test_constants_that_change_are_not_frozen():
    count = 0

    @uopc.jit
    def f(a: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return a * count

    with pytest.warns(UopcWarning, match="changes from call to call"):
        assert [f(Tensor([1.0])).item() for _ in range(5)] == [1, 2, 3, 4, 5]

    @uopc.jit
    def g(a: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return a + Tensor([float(count)])

    start = count
    with pytest.warns(UopcWarning, match="data made inside"):
        got = [g(Tensor([0.0])).item() for _ in range(4)]
    assert got == [start + k for k in (1, 2, 3, 4)]


def test_changes_of_parameters_are_replayed():
    w = Tensor(np.array([1.0, 2.0], np.float32), requires_grad=True)

    @uopc.jit
    def step(x: Tensor, rate: float) -> Tensor:
        w.grad = None
        loss = (w * x).square().sum()
        loss.backward()
        assert w.grad is not None
        w.assign(w.detach() - w.grad * rate)
        Tensor.realize_all(w, loss)
        return loss

    expected = np.array([1.0, 2.0])
    for k in range(6):
        rate = 0.1 / (k + 1)
        loss = step(Tensor([1.0, 0.5]), rate)
        assert loss.item() == pytest.approx(((expected * [1.0, 0.5]) ** 2).sum(), rel=1e-5)
        grad = 2 * expected * [1.0, 0.25]
        expected = expected - rate * grad
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5)
        np.testing.assert_allclose(w.grad.numpy(), grad, rtol=1e-5)
        assert w.requires_grad
    w.assign([5.0, 5.0])
    assert step(Tensor([1.0, 1.0]), 0.0).item() == pytest.approx(50.0)


def test_changes_of_arguments_are_replayed():
    @uopc.jit
    def update(w: Tensor, g: Tensor) -> Tensor:
        w -= g * 0.5
        return w.sum()

    w = Tensor([4.0, 8.0])
    for k in range(1, 5):
        total = update(w, Tensor([1.0, 2.0]))
        assert w.tolist() == [4 - 0.5 * k, 8 - k]
        assert total.item() == sum(w.tolist())


def test_gradients_add_up_across_calls():
    w = Tensor([1.0], requires_grad=True)

    @uopc.jit
    def accumulate(x: Tensor) -> None:
        (w * x).sum().backward()

    for k in range(1, 6):
        accumulate(Tensor([2.0]))
        assert w.grad is not None
        assert w.grad.item() == 2.0 * k
    w.grad = None
    accumulate(Tensor([3.0]))
    assert w.grad.item() == 3.0


def test_tensors_from_outside_are_read_anew():
    scale = Tensor([2.0])
    f = uopc.jit(lambda x: x * scale)
    assert [f(Tensor([3.0])).item() for _ in range(3)] == [6.0] * 3
    scale.assign([5.0])
    assert f(Tensor([3.0])).item() == 15.0
    scale = Tensor([7.0])  # another tensor: the old one is gone
    with pytest.warns(UopcWarning, match="scale is another Tensor, or gone"):
        assert f(Tensor([3.0])).item() == 21.0


def test_random_numbers_are_drawn_anew():
    f = uopc.jit(lambda x: x.dropout(0.5) + Tensor.rand(64))
    x = Tensor.ones(64)
    seen = {tuple(f(x).tolist()) for _ in range(5)}
    assert len(seen) == 5
    Tensor.manual_seed(3)
    first = [f(x).tolist() for _ in range(2)]
    Tensor.manual_seed(3)
    assert [f(x).tolist() for _ in range(2)] == first


def test_nested_arguments_and_results():
    @uopc.jit
    def f(parts: dict[str, list[Tensor]], *, twice: bool) -> tuple[Tensor, dict[str, Tensor], None]:
        a, b = parts["ab"]
        return a + b, {"product": a * b * (2 if twice else 1)}, None

    for twice in (False, True, False, True, False):
        total, others, nothing = f({"ab": [Tensor([1.0]), Tensor([4.0])]}, twice=twice)
        assert (total.item(), others["product"].item(), nothing) == (5.0, 4.0 * (1 + twice), None)
    assert f.traces == 4


def test_values_that_are_not_there_are_told():
    w = Tensor([1.0])
    for words, function in [
        ("is not known yet", lambda x: x * x.item()),
        ("is not known yet", lambda x: x if x.sum() > 0 else -x),
        ("is not known yet", lambda x: x * w.item()),
        ("the same at every call", lambda x: 3.0),
    ]:
        with pytest.raises(UopcError, match=words):
            uopc.jit(function)(Tensor([1.0]))
    open_graph = Tensor([1.0], requires_grad=True) * 2
    with pytest.raises(UopcError, match="from outside"):
        uopc.jit(lambda x: x * open_graph)(Tensor([1.0]))


def test_large_weights_are_arguments_of_the_plan():
    big = Tensor(np.arange(1 << 22, dtype=np.float32))  # 16 MB
    f = uopc.jit(lambda x: (big * x).max())
    for k in (1.0, 2.0, 3.0):
        assert f(Tensor([k])).item() == k * ((1 << 22) - 1)


def test_many_threads_trace_once_a_shape():
    w = Tensor([2.0])
    f = uopc.jit(lambda x: (x * w - 1).sum())
    before = cache_info().compiles
    barrier = threading.Barrier(32)
    wrong: list[object] = []

    def work(k: int) -> None:
        barrier.wait()
        n = 21 + k % 4
        for _ in range(5):
            got = f(Tensor(np.full(n, k, np.float32))).item()
            if got != (2 * k - 1) * n:
                wrong.append((k, got))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert cache_info().compiles - before == 4
    assert f.traces == 8


class Scaled:
    """Something with plain values and a method under jit."""

    offset = 0.0

    def __init__(self, scale: float):
        self.scale = scale

    @uopc.jit
    def apply(self, x: Tensor) -> Tensor:
        return x * self.scale + self.offset


def test_plain_values_from_outside_are_watched():
    x = Tensor([1.0])
    factor, weights, counts = 2.0, np.array([1.0], np.float32), {"calls": 0}

    def function(t: Tensor) -> Tensor:
        counts["calls"] += 1
        return t * factor + weights

    f = uopc.jit(function)
    assert [f(x).item() for _ in range(4)] == [3.0] * 4
    assert f.traces == counts["calls"] == 2
    factor = 5.0
    with pytest.warns(UopcWarning, match="factor was 2.0, is 5.0"):
        assert f(x).item() == 6.0
    weights[0] = 10.0
    with pytest.warns(UopcWarning, match="the array weights has changed"):
        assert f(x).item() == 15.0
    assert [f(x).item() for _ in range(3)] == [15.0] * 3
    a, b = Scaled(2.0), Scaled(3.0)
    assert [m.apply(x).item() for m in (a, b) * 3] == [2.0, 3.0] * 3
    a.scale = 7.0
    with pytest.warns(UopcWarning, match="scale was 2.0, is 7.0"):
        assert (a.apply(x).item(), b.apply(x).item()) == (7.0, 3.0)


class Trainer:
    """Counts its steps, under the name of a method that the traced function calls, too."""

    def __init__(self) -> None:
        self.done = self.square = 0
        self.history: list[float] = [0.0]
        self.settings = {"late": False}
        self.step = uopc.jit(self._step)

    def _step(self, x: Tensor) -> Tensor:
        return x.square() * (10.0 if self.settings["late"] else 1.0)


class Unfreezing(Trainer):
    """Something that changes to no effect, until it has one."""

    def _step(self, x: Tensor) -> Tensor:
        return x * 2.0 if self.done > 4 else x


def test_a_change_of_what_is_never_read_is_let_be():
    trainer = Trainer()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(10):
            assert trainer.step(Tensor([3.0])).item() == 9.0
            trainer.done += 1
            trainer.square += 3
            trainer.history[0] = float(k)
    assert trainer.step.traces <= 3
    trainer.settings["late"] = True
    with pytest.warns(UopcWarning, match=r"\['late'\] was False, is True"):
        assert trainer.step(Tensor([3.0])).item() == 90.0


def test_a_change_that_may_be_seen_later_stays_watched():
    trainer = Unfreezing()
    with pytest.warns(UopcWarning, match=r"\.done was 4, is 5"):
        for k in range(8):
            assert trainer.step(Tensor([3.0])).item() == (6.0 if k > 4 else 3.0)
            trainer.done += 1


@dataclass
class State:
    """Weights and a count, changed from step to step."""

    weights: dict[str, Tensor]
    count: Tensor
    rate: float = 0.5
    name: str = "sgd"


@dataclass(frozen=True)
class Pair:
    """A frozen one with tensors is a tree as well."""

    left: Tensor
    right: Tensor


@dataclass(frozen=True)
class Sizes:
    """Settings are part of the structure."""

    repeats: int


def test_dataclasses_nest_in_arguments_and_results():
    @uopc.jit
    def step(state: State, sizes: Sizes) -> tuple[State, Pair]:
        w = state.weights["w"]
        for _ in range(sizes.repeats):
            w = w - w * state.rate
        return replace(state, weights={"w": w}, count=state.count + 1), Pair(w, w * 2)

    for k in range(1, 5):
        before = State({"w": Tensor([8.0 * k])}, Tensor(k), rate=0.5)
        after, pair = step(before, Sizes(2))
        assert isinstance(after, State) and isinstance(pair, Pair)
        assert (after.weights["w"].item(), after.count.item(), after.name) == (
            2.0 * k,
            k + 1,
            "sgd",
        )
        assert (pair.left.item(), pair.right.item()) == (2.0 * k, 4.0 * k)
        assert before.weights["w"].item() == 8.0 * k
    assert step.traces == 2
    assert step(before, Sizes(3))[0].weights["w"].item() == 4.0

    @uopc.jit
    def careless(state: State) -> Tensor:
        state.count = state.count + 1
        return state.count

    with pytest.raises(UopcError, match="puts something else into a list, dict or dataclass"):
        careless(before)


def test_donated_arguments_are_used_up_and_their_memory_is_used_again():
    from uopc.runtime.recycling import results

    @uopc.jit(donate_argnums=0)
    def step(state: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
        return {name: value + x for name, value in state.items()}

    x, n = Tensor([1.0]), 1 << 18
    state = {"a": Tensor.zeros(n).realize(), "b": Tensor.ones(n).realize()}
    places: set[int] = set()
    before = results.kept  # other tests leave blocks here too
    for k in range(12):
        old, kept = state, state["b"].clone()
        state = step(state, x)
        assert (state["a"][0].item(), state["b"][-1].item()) == (k + 1.0, k + 2.0)
        with pytest.raises(UopcError, match=r"was donated .*\[donated-tensor\]"):
            old["a"].numpy()
        with pytest.raises(UopcError, match="was donated"):
            (old["b"] + 1).numpy()
        with pytest.raises(UopcError, match="was donated"):
            step(old, x)
        assert kept[0].item() == k + 1.0  # whoever else holds the value keeps it
        del kept
        places |= {t.__array__().ctypes.data for t in state.values()}
    assert len(places) <= 8
    assert results.kept - before < 64 << 20
    with pytest.raises(UopcError, match="donates number 0"):
        step(state=state, x=x)
    with pytest.raises(UopcError, match="donate_argnums"):
        uopc.jit(lambda x: x, donate_argnums=(-1,))
