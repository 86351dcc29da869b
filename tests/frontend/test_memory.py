"""What nobody holds is freed, in bytes: graphs, data, gradients, optimizers, jitted functions."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import uopc
from uopc import Tensor, UopcError, nn
from uopc.frontend import graph

pytestmark = pytest.mark.usefixtures("cache_folder")

SIZE = 128
DATA = np.ones((SIZE, SIZE), np.float32)
LABELS = np.zeros(SIZE, np.int32)
ALLOWED = 24_000
"""Bytes: what Python and the caches of structures allot in their own time. One array that stays
is 65,536."""


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Linear(SIZE, SIZE)
        self.norm = nn.LayerNorm(SIZE)
        self.rest = [nn.Linear(SIZE, 4)]
        self.whole = self  # in a cycle, as a model that knows its trainer is

    def __call__(self, x: Tensor) -> Tensor:
        return self.rest[0](self.norm(self.first(x)).relu())

    @uopc.jit
    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return self(x).cross_entropy(y)


class Tree(Net):
    def __init__(self) -> None:
        super().__init__()
        del self.whole


@uopc.jit
def doubled(x: Tensor) -> Tensor:
    return x * 2


@uopc.jit(donate_argnums=0)
def used_up(x: Tensor) -> Tensor:
    return x * 2


def a_lazy_graph():
    return (Tensor(DATA) * 2 + 1).exp().sum(0)


def a_computed_graph():
    x = Tensor(DATA)
    y = (x * 3 + 1).realize()
    return x, y, y.sum().item(), y.reshape(-1).numpy()


def gradients():
    w, x = Tensor(DATA, requires_grad=True), Tensor(DATA)
    loss = (x @ w).relu().sum()
    loss.backward()
    assert w.grad is not None
    Tensor.realize_all(loss, w.grad)
    return w, loss


def lazy_gradients():
    w = Tensor(DATA, requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    loss.item()
    return w, loss


def second_derivatives():
    w = Tensor(DATA, requires_grad=True)
    (first,) = (w**3).sum().gradient(w)
    (second,) = first.sum().gradient(w)
    return w, second.realize()


def an_optimizer():
    net = Tree()
    opt = nn.AdamW(net.parameters(), lr=0.01)
    for _ in range(2):
        loss = net(Tensor(DATA)).cross_entropy(Tensor(LABELS))
        opt.zero_grad()
        loss.backward()
        opt.step(loss)
    return net, opt, loss


def a_jitted_step():
    net = Tree()
    opt = nn.AdamW(net.parameters(), lr=0.01)

    @uopc.jit
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = net(x).cross_entropy(y)
        loss.backward()
        opt.step(loss)
        opt.zero_grad()
        return loss

    for _ in range(3):
        loss = step(Tensor(DATA), Tensor(LABELS))
    return net, opt, step, loss


def a_jitted_method():
    net = Tree()
    for _ in range(3):
        loss = net.loss(Tensor(DATA), Tensor(LABELS))
    return net, loss


def a_jitted_method_in_a_cycle():
    net = Net()
    for _ in range(3):
        net.loss(Tensor(DATA), Tensor(LABELS))
    return net


def a_jitted_function_that_stays():
    return [doubled(Tensor(DATA)) for _ in range(3)]


@uopc.jit(sizes=[(uopc.size("rows", 1, SIZE), SIZE)])
def of_any_length(x: Tensor) -> Tensor:
    return x * 2


def symbolic_sizes():
    return [of_any_length(Tensor(DATA[:n])) for n in (SIZE, 3, 100)]


def donated_arguments():
    x = Tensor(DATA)
    for _ in range(3):
        x = used_up(x)
    return x


def changes():
    x = Tensor(DATA)
    x[1:] = x[:-1]
    x += 1
    return x.realize()


def random_numbers():
    return Tensor.randn(SIZE, SIZE).realize(), nn.Dropout(0.5)(Tensor(DATA)).realize()


def a_state_dict():
    net = Tree()
    state = nn.get_state_dict(net)
    nn.load_state_dict(net, state)
    return net, state


def an_error():
    x = Tensor(DATA) * 2
    with pytest.raises(UopcError):
        x @ Tensor(DATA[:3])
    return x


def an_error_in_a_trace():
    @uopc.jit
    def reads(x: Tensor) -> Tensor:
        return x if x.sum().item() > 0 else -x

    with pytest.raises(UopcError, match="not known yet"):
        reads(Tensor(DATA))
    return reads


AT_ONCE: list[Callable[[], object]] = [
    a_lazy_graph, a_computed_graph, gradients, lazy_gradients, second_derivatives, an_optimizer,
    a_jitted_step, a_jitted_method, a_jitted_function_that_stays, donated_arguments, changes,
    symbolic_sizes, random_numbers, a_state_dict,
]  # fmt: skip
BY_THE_COLLECTOR = [a_jitted_method_in_a_cycle, an_error, an_error_in_a_trace]
"""Python itself makes cycles there: of objects, and of an exception with its frames."""


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every byte counts: none is kept for later results."""
    monkeypatch.setenv("UOPC_RECYCLE", "0")
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def left_by(action: Callable[[], object], *, collect: bool) -> tuple[int, int]:
    """The bytes and nodes that stay of what an action made, when what it returned is dropped."""

    def once() -> None:
        action()
        if collect:
            gc.collect()

    for _ in range(3):  # what is compiled, and kept of it, is for all times
        once()
    bytes_before, nodes_before = tracemalloc.get_traced_memory()[0], graph.node_count()
    once()
    once()
    return (
        tracemalloc.get_traced_memory()[0] - bytes_before,
        graph.node_count() - nodes_before,
    )


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("action", AT_ONCE, ids=lambda f: f.__name__)
def test_all_is_freed_at_once(action: Callable[[], object]):
    """Without the garbage collector: there are no cycles."""
    size, nodes = left_by(action, collect=False)
    assert nodes == 0
    assert size < ALLOWED


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("action", BY_THE_COLLECTOR, ids=lambda f: f.__name__)
def test_all_is_freed_by_the_collector(action: Callable[[], object]):
    size, nodes = left_by(action, collect=True)
    assert nodes == 0
    assert size < ALLOWED


@pytest.mark.usefixtures("measured")
def test_what_is_held_is_seen():
    """The scales weigh: one array that stays, and one lazy node."""
    held: list[Tensor] = []
    size, _ = left_by(lambda: held.append(Tensor(DATA).exp().realize()), collect=True)
    assert size > 2 * DATA.nbytes
    _, nodes = left_by(lambda: held.append(Tensor(DATA).exp()), collect=True)
    assert nodes == 2


def test_a_trace_goes_with_the_model_it_was_made_of():
    kept, net = Tree(), Tree()
    x, y = Tensor(DATA), Tensor(LABELS)
    for _ in range(3):
        kept.loss(x, y)
        net.loss(x, y)
    replays = len(Net.loss._replays)
    weight = weakref.ref(net.first.weight.node)
    del net
    assert weight() is None
    assert len(Net.loss._replays) == replays - 1
    traces = Net.loss.traces
    assert kept.loss(x, y).item() > 0
    assert Net.loss.traces == traces
