"""The arena of temporaries: one for all plans, as large as the largest of those alive needs."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from uopc.runtime.buffers import Workspaces, address

MIB = 1 << 20


@pytest.fixture(autouse=True)
def an_arena_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Workspaces, "_idle", [])
    yield


def test_plans_share_one():
    small, large = Workspaces(MIB), Workspaces(4 * MIB)
    first = small.take()
    small.give(first)
    second = large.take()
    assert second.nbytes == 4 * MIB
    large.give(second)
    third = small.take()
    assert address(third) == address(second)
    small.give(third)
    assert Workspaces.kept() == 4 * MIB


def test_calls_at_one_time_have_their_own():
    plan = Workspaces(MIB)
    taken = [plan.take() for _ in range(3)]
    assert len({address(each) for each in taken}) == 3
    for each in taken:
        plan.give(each)
    assert Workspaces.kept() == 3 * MIB


def test_the_largest_is_taken_first():
    plans = [Workspaces(n * MIB) for n in (2, 8, 1)]
    taken = [plan.take() for plan in plans]
    for plan, each in zip(plans, taken, strict=True):
        plan.give(each)
    assert plans[2].take().nbytes == 8 * MIB


def test_what_no_plan_needs_is_freed():
    small, large = Workspaces(MIB), Workspaces(64 * MIB)
    large.give(large.take())
    assert Workspaces.kept() == 64 * MIB
    del large
    gc.collect()
    assert Workspaces.kept() == 0
    small.give(small.take())
    assert Workspaces.kept() == MIB


def test_threads():
    plans = [Workspaces((n + 1) * 1000) for n in range(4)]
    wrong: list[str] = []

    def work(number: int) -> None:
        for step in range(500):
            plan = plans[(number + step) % 4]
            workspace = plan.take()
            if workspace.nbytes < plan.size:
                wrong.append("too small")
            workspace[: plan.size] = number
            if (workspace[: plan.size] != number).any():
                wrong.append("shared")
            plan.give(workspace)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
