"""The cache of plans: what is structure and what is data, memory, threads, debug output."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest

import uopc
from uopc import Tensor, UopcError, cache_info
from uopc.frontend import graph, realize
from uopc.frontend.plan_cache import CachedPlan, PlanCache

pytestmark = pytest.mark.usefixtures("cache_folder")


def compiles_of(action) -> int:
    before = cache_info().compiles
    action()
    return cache_info().compiles - before


def test_data_is_no_structure_and_numbers_and_shapes_are():
    def scaled(x: np.ndarray, factor: object) -> list[float]:
        return (Tensor(x) * factor).tolist()

    x = np.arange(5, dtype=np.float32)
    assert compiles_of(lambda: scaled(x, 1.25)) == 1
    assert compiles_of(lambda: scaled(x + 1, 1.25)) == 0
    assert compiles_of(lambda: scaled(x, 1.375)) == 1
    assert "constant 1.375" in cache_info().last_miss and "constant 1.25" in cache_info().last_miss
    assert compiles_of(lambda: scaled(x[:4], 1.375)) == 1
    assert "shapes are structure" in cache_info().last_miss
    for k, expected in ((1.5, 1), (1.75, 0), (2.0, 0)):
        assert compiles_of(lambda k=k: scaled(x, Tensor(np.float32(k)))) == expected
    assert scaled(x, Tensor(np.float32(3))) == [0, 3, 6, 9, 12]


def test_zeros_of_both_signs_and_nan_are_told_apart():
    x = Tensor([1.0])
    assert str((x * 0.0 * 0 + -0.0).item()) != ""
    assert np.signbit(x.copysign(-0.0).item()) and not np.signbit(x.copysign(0.0).item())
    assert graph.constant(float("nan"), (2,), "f32") is graph.constant(-float("nan"), (2,), "f32")
    assert graph.constant(0.0, (2,), "f32") is not graph.constant(-0.0, (2,), "f32")
    assert compiles_of(lambda: (x * float("nan")).numpy()) == 1
    assert compiles_of(lambda: (Tensor([2.0]) * float("nan")).numpy()) == 0


def test_an_optimizer_compiles_no_plan_after_the_second_step():
    w = Tensor(np.ones((4, 2), np.float32), requires_grad=True)
    m, v = Tensor.zeros(4, 2), Tensor.zeros(4, 2)
    x = np.arange(32, dtype=np.float32).reshape(8, 4) / 32
    counts = []
    for t in range(1, 6):
        before = cache_info().compiles
        w.grad = None
        loss = (Tensor(x) @ w).square().mean()
        loss.backward()
        assert w.grad is not None
        c1, c2 = Tensor([0.01 / (1 - 0.9**t)]), Tensor([1 / (1 - 0.999**t)])
        m.assign(m * 0.9 + w.grad * 0.1)
        v.assign(v * 0.999 + w.grad.square() * 0.001)
        w.assign(w.detach() * 0.999 - m * c1 / ((v * c2).sqrt() + 1e-8))
        Tensor.realize_all(w, m, v, loss)
        counts.append(cache_info().compiles - before)
    assert counts[2:] == [0, 0, 0]
    assert sum(counts) <= 2


def test_nothing_stays_alive_that_nobody_holds():
    gc.collect()
    before = graph.node_count()
    x = Tensor(np.zeros(1 << 20, np.float32))
    data = weakref.ref(x.node)
    y = (x * 2 + 1).sum()
    y.realize()
    assert y.item() == 1 << 20
    del x
    assert data() is None
    z = y + 1
    assert z.item() == (1 << 20) + 1
    del y, z
    gc.collect()
    assert graph.node_count() <= before


def test_memory_is_flat_over_many_steps():
    def held() -> int:
        gc.collect()
        return sum(o.nbytes for o in gc.get_objects() if type(o) is Tensor) + graph.node_count()

    w = Tensor(np.ones(1000, np.float32), requires_grad=True)
    levels = []
    for step in range(60):
        w.grad = None
        loss = (w * w).mean()
        loss.backward()
        assert w.grad is not None
        w -= w.grad * 0.1
        w.realize()
        if step in (20, 59):
            levels.append(held())
    assert levels[0] == levels[1]


def test_deleted_reads_do_not_harm_the_input():
    t = Tensor(np.array([1, 2, 3], np.int32))
    assert (t * 0).tolist() == [0, 0, 0]
    assert t.tolist() == [1, 2, 3]


def test_views_of_buffers_are_no_kernels():
    x = Tensor(np.arange(6, dtype=np.float32)).realize()
    assert compiles_of(lambda: x.reshape(2, 3).numpy()) == 0
    assert x.reshape(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_deep_graphs_and_shared_ones():
    y = Tensor([1.0, 2.0])
    for _ in range(2000):
        y = y + 1.0
    assert y.tolist() == [2001.0, 2002.0]
    deep = Tensor([1.0])
    for _ in range(100_000):
        deep = deep * 2.0
    assert len(graph.evaluation_order([deep.node])) == 100_002
    del deep  # at Python's default recursion limit
    wide = Tensor([1.0])
    for _ in range(60):
        wide = wide * 0.5 + wide * 0.5
    assert wide.item() == 1.0


def test_many_threads_compile_one_plan():
    before = cache_info().compiles
    barrier = threading.Barrier(32)
    results: list[float] = []

    def work(k: int) -> None:
        barrier.wait()
        n = 11 + k % 4
        results.append((Tensor(np.full(n, k, np.float32)) * 3 - 1).sum().item() - (3 * k - 1) * n)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [0.0] * 32
    assert cache_info().compiles - before == 4


def test_the_cache_is_bounded_and_forgets_failures():
    cache = PlanCache(limit=3)
    made: list[int] = []

    def make(k: int):
        def action(_: str) -> CachedPlan:
            made.append(k)
            return CachedPlan(None, None)  # type: ignore[arg-type]

        return action

    for k in (0, 1, 2, 0, 3, 0, 1):
        cache.get((k,), make(k))
    assert made == [0, 1, 2, 3, 1]
    info = cache.info()
    assert (info.compiles, info.hits, info.plans) == (5, 2, 3)

    def fail(_: str) -> CachedPlan:
        raise UopcError("compile-failed", "no")

    for _ in range(2):
        with pytest.raises(UopcError):
            cache.get((9,), fail)
    assert cache.info().plans == 3


def test_debug_levels(capfd: pytest.CaptureFixture[str]):
    x = np.arange(35, dtype=np.float32).reshape(5, 7)

    def output(level: int) -> str:
        with uopc.debug(level):
            Tensor(x).softmax(-1).realize()
        return capfd.readouterr().err

    first = output(1)
    assert "compiling" in first and "realize: 1 kernel, schedule" in first
    assert output(0) == ""
    second = output(2)
    assert "compiling" not in second
    assert [line.split()[0] for line in second.splitlines()] == ["r_5_7", "realize:"]
    assert "GFLOP/s" in second
    assert output(3).count("(again:") == 1
    with pytest.raises(UopcError, match="debug level"), uopc.debug(5):
        pass


def test_a_warm_realize_is_fast():
    x = np.ones((4, 8), np.float32)
    times = []
    for _ in range(60):
        t = Tensor(x)
        start = time.perf_counter()
        t.softmax(-1).realize()
        times.append(time.perf_counter() - start)
    assert min(times) < 1e-3


@pytest.mark.parametrize(("name", "value"), [("UOPC_TARGET_CPU", "portable"), ("UOPC_BEAM", "1")])
def test_what_is_compiled_for_is_part_of_the_key(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
):
    """A change in mid-process takes effect, for lazy tensors and for functions jitted before."""
    x = np.ones((16, 32), np.float32)
    jitted = uopc.jit(lambda x: (x * 3 - 1).exp())

    def work() -> None:
        lazy = (Tensor(x) * 3 - 1).exp().numpy()
        np.testing.assert_array_equal(jitted(Tensor(x)).numpy(), lazy)

    work()
    work()
    assert compiles_of(work) == 0
    monkeypatch.setenv(name, value)
    assert compiles_of(work) == 1  # both share it
    assert "UOPC_TARGET_CPU or UOPC_BEAM is another" in cache_info().last_miss
    work()
    traces = jitted.traces
    assert compiles_of(work) == 0
    assert jitted.traces == traces == 4
    monkeypatch.delenv(name)
    assert compiles_of(work) == 0
    monkeypatch.setenv(name, "" if name == "UOPC_TARGET_CPU" else "nonsense")
    if name == "UOPC_BEAM":
        with pytest.raises(UopcError, match="UOPC_BEAM is 'nonsense'"):
            work()


def test_another_cpu_is_another_program(monkeypatch: pytest.MonkeyPatch):
    root = (Tensor(np.ones((64, 64), np.float32)) @ np.ones((64, 64), np.float32)).node

    def source() -> str:
        return realize.find_plan(graph.evaluation_order([root]), [root]).executable.source

    native = source()
    monkeypatch.setenv("UOPC_TARGET_CPU", "portable")
    assert source() != native
    monkeypatch.delenv("UOPC_TARGET_CPU")
    assert source() is native
