"""Memory that jitted functions write over: only what nobody else holds, or could read meanwhile."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any

import numpy as np
import pytest

import uopc
from uopc import Tensor


def address_of(x: Tensor) -> int:
    return np.asarray(x).ctypes.data


def test_a_donated_argument_is_written_over():
    @uopc.jit(donate_argnums=0)
    def add(state: Tensor, x: Tensor) -> Tensor:
        return state * 2 + x

    state, x = Tensor(np.ones((60, 80), np.float32)), Tensor(np.full((60, 80), 3, np.float32))
    place = address_of(state)
    for _ in range(4):
        state = add(state, x)
        assert address_of(state) == place
    np.testing.assert_array_equal(state.numpy(), 2**4 + 3 * 15)


@pytest.mark.parametrize(
    "keep",
    [
        lambda state: state.detach(),
        lambda state: state.clone(),
        lambda state: state + 0.0,  # lazy: reads it later
        lambda state: state.reshape(80, 60),
        lambda state: np.asarray(state),
        lambda state: np.asarray(state)[3:5],
        lambda state: memoryview(np.asarray(state)),
        lambda state: np.from_dlpack(state),
    ],
)
def test_what_is_held_elsewhere_is_not_written_over(keep: Any):
    @uopc.jit(donate_argnums=0)
    def add(state: Tensor, x: Tensor) -> Tensor:
        return state * 2 + x

    state, x = Tensor(np.ones((60, 80), np.float32)), Tensor(np.full((60, 80), 3, np.float32))
    for step in range(3):
        value = 2**step + 3 * (2**step - 1)
        kept = keep(state)
        state = add(state, x)
        assert (np.asarray(kept) == value).all()
        np.testing.assert_array_equal(state.numpy(), 2 * value + 3)


def test_the_caller_s_array_is_not_written_over():
    @uopc.jit(donate_argnums=0)
    def add(state: Any, x: Tensor) -> Tensor:
        return state * 2 + x

    mine = np.ones((60, 80), np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(add(mine, Tensor(mine)).numpy(), 3)
        assert (mine == 1).all()


def test_state_that_a_function_replaces_is_written_over():
    state, other = Tensor(np.ones((60, 80), np.float32)), Tensor(np.ones((60, 80), np.float32))

    @uopc.jit
    def step(x: Tensor) -> Tensor:
        nonlocal state
        state.assign(state + x)
        return (other * x).sum()

    x = Tensor(np.full((60, 80), 2, np.float32))
    place = address_of(state)
    for count in range(1, 5):
        step(x)
        assert address_of(state) == place
        np.testing.assert_array_equal(state.numpy(), 1 + 2 * count)
    copy = state.detach()
    step(x)
    np.testing.assert_array_equal(copy.numpy(), 9)
    np.testing.assert_array_equal(state.numpy(), 11)
    assert (other.numpy() == 1).all()


def test_two_arguments_with_one_value_do_not_disturb_each_other():
    @uopc.jit(donate_argnums=(0, 1))
    def swap(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a + 1, b * 3

    one = Tensor(np.full((80, 80), 5, np.float32))
    for _ in range(3):
        a, b = swap(one.detach(), one.detach())
        assert (a.numpy() == 6).all() and (b.numpy() == 15).all()
        assert (one.numpy() == 5).all()
    x = Tensor(np.full((80, 80), 5, np.float32))
    a, b = swap(x, x)
    assert (a.numpy() == 6).all() and (b.numpy() == 15).all()


def test_a_gradient_that_is_kept_stays_what_it_was():
    weight = Tensor([5.0])
    weight.requires_grad = True

    @uopc.jit
    def add_gradient(x: Tensor) -> None:
        (weight * x).sum().backward()

    kept: list[Tensor] = []
    mine = Tensor([100.0])
    weight.grad = mine
    for _ in range(6):
        add_gradient(Tensor(1.0))
        assert weight.grad is not None
        kept.append(weight.grad)
    assert [grad.item() for grad in kept] == [101.0, 102.0, 103.0, 104.0, 105.0, 106.0]
    assert mine.item() == 100.0


def test_nothing_is_written_over_that_another_thread_might_read():
    state = Tensor(np.zeros(50_000, np.float32))

    @uopc.jit
    def step() -> Tensor:
        state.assign(state + 1)
        return state.sum()

    for _ in range(3):
        step()
    done = threading.Event()
    torn: list[tuple[float, float]] = []

    def read() -> None:
        while not done.is_set():
            values = state.numpy()
            if values.min() != values.max():
                torn.append((values.min(), values.max()))

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(200):
        step()
    done.set()
    thread.join()
    assert not torn
    assert (state.numpy() == 203).all()


@pytest.mark.parametrize("share", [lambda y: y.clone(), lambda y: y.detach()])
def test_a_value_computed_for_two_tensors_is_nobody_s_alone(share: Any):
    @uopc.jit(donate_argnums=0)
    def double(x: Tensor) -> Tensor:
        return x * 2

    y = Tensor(np.ones(8000, np.float32)) + 1  # lazy, then computed once for both
    z = share(y)
    y.numpy()
    double(z)
    assert (y.numpy() == 2).all()
    leaf = Tensor(np.ones(8000, np.float32), requires_grad=True)
    leaf.realize()
    other = leaf.detach().realize()
    double(leaf)
    assert (other.numpy() == 1).all()


def test_memory_from_elsewhere_is_not_written_over():
    @uopc.jit(donate_argnums=0)
    def double(x: Tensor) -> Tensor:
        return x * 2

    raw = bytearray(np.ones(4096, np.float32).tobytes())
    double(Tensor.from_numpy(np.frombuffer(raw, np.float32)[:]))
    assert (np.frombuffer(raw, np.float32) == 1).all()
    mine = np.ones(4096, np.float32)
    double(Tensor.from_numpy(mine[:]))
    double(Tensor.from_dlpack(mine).reshape(64, 64))
    assert (mine == 1).all()


def test_an_array_that_comes_back_is_not_the_caller_s():
    @uopc.jit
    def same(x: Any) -> tuple[Tensor, Tensor]:
        return x, x.reshape(2, 3)

    mine = np.arange(6, dtype=np.float32)
    for _ in range(3):
        flat, square = same(mine)
        mine[0] = 50
        assert flat.numpy()[0] == 0 and square.numpy()[0, 0] == 0
        mine[0] = 0


def test_an_interrupt_comes_before_or_after_a_step_never_within():
    """Results change places with what they write over: half a step would mix them up."""
    first, second = (Tensor(np.full(300_000, value, np.float32)) for value in (0, 1))

    @uopc.jit
    def step() -> None:
        a, b = first * 1, second * 1
        first.assign(b + 1)
        second.assign(a + 1)

    def alarm(*_: object) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        step()
    before = signal.signal(signal.SIGALRM, alarm)
    try:
        for _ in range(60):
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0)
            with contextlib.suppress(KeyboardInterrupt):
                while True:
                    step()
            a, b = first.numpy(), second.numpy()
            assert a.min() == a.max() and b.min() == b.max() and abs(a[0] - b[0]) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_results_of_one_kernel_do_not_write_over_what_another_needs():
    def both(x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        return z * z, z * z - x

    x = np.arange(4900, dtype=np.float32).reshape(70, 70)
    z = np.ones((70, 70), np.float32)
    jitted = uopc.jit(both, donate_argnums=0)
    for _ in range(3):
        for got, expected in zip(
            jitted(Tensor(x), Tensor(z)), both(Tensor(x), Tensor(z)), strict=True
        ):
            np.testing.assert_array_equal(got.numpy(), expected.numpy())
