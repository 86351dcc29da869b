from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

from uopc.dialects.errors import UopcError
from uopc.runtime import environment
from uopc.runtime.buffers import fresh_output
from uopc.runtime.recycling import RECYCLED_FROM, Recycler, results, rounded_size

MIB = 1 << 20
F32 = np.dtype(np.float32)


def where(array: np.ndarray) -> int:
    return array.ctypes.data


def test_memory_comes_back_when_the_last_view_is_gone():
    recycler = Recycler(8 * MIB)
    array = recycler.storage(MIB)
    place = where(array)
    view = array[100:].view(np.float32)[::3]
    del array
    assert recycler.kept == 0
    assert where(recycler.storage(MIB)) != place
    recycler.clear()
    del view
    assert recycler.kept == MIB
    again = recycler.storage(MIB - 1)
    assert where(again) == place
    assert recycler.kept == 0


def test_no_more_than_the_limit_is_kept_and_the_oldest_goes_first():
    recycler = Recycler(3 * MIB)
    arrays = [recycler.storage(size * MIB) for size in (1, 2, 1, 4)]
    places = [where(array) for array in arrays]
    for _ in range(4):
        arrays.pop(0)
        assert recycler.kept <= 3 * MIB
    assert recycler.kept == 3 * MIB  # 4 MiB never fit
    kept = {where(recycler.storage(MIB)), where(recycler.storage(2 * MIB))}
    assert kept <= set(places[:3])


def test_nothing_is_kept_where_the_variable_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UOPC_RECYCLE", "0")
    recycler = Recycler()
    del_me = recycler.storage(MIB)
    del del_me
    assert recycler.kept == 0
    monkeypatch.setenv("UOPC_RECYCLE", "2")
    assert environment.recycled_bytes() == 2 * MIB
    monkeypatch.setenv("UOPC_RECYCLE", "lots")
    with pytest.raises(UopcError, match="UOPC_RECYCLE is 'lots'"):
        environment.recycled_bytes()


def test_large_results_lie_in_recycled_memory_and_small_ones_do_not():
    results.clear()
    large = RECYCLED_FROM // 4
    array, place = fresh_output((large,), F32, large * 4)
    assert place == where(array)
    assert place % 64 == 0
    del array
    kept = results.kept
    assert kept >= large * 4
    small, _ = fresh_output((8,), F32, 32)
    del small
    assert results.kept == kept
    results.clear()


def test_threads_never_share_a_block():
    recycler = Recycler(64 * MIB)
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            array = recycler.storage(MIB // 4)
            array[:64] = number
            array[-64:] = number
            if not ((array[:64] == number).all() and (array[-64:] == number).all()):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not wrong
    assert recycler.kept <= 4 * rounded_size(MIB // 4)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_forked_while_a_thread_is_busy_recycles():
    recycler = Recycler(8 * MIB)
    assert recycler._lock.acquire()
    assert recycler._take(MIB) is None  # somebody is busy: new memory, no waiting
    recycler.after_fork()
    array = recycler.storage(MIB)
    del array
    assert recycler.kept == MIB


def test_sizes_are_rounded_by_less_than_an_eighth():
    for size in (1, 7, 8, 9, 1000, 262_144, 262_145, 67_108_927, 3 << 40):
        rounded = rounded_size(size)
        assert size <= rounded <= size + size // 8
        assert rounded_size(rounded) == rounded
