"""plan-memory: temps that live together never overlap, and the workspace is small."""

import random
from itertools import pairwise

import pytest
from xdsl.dialects.builtin import f32, f64, i8
from xdsl.ir import Block

from uopc.dialects import kernel as ukernel
from uopc.dialects.errors import UopcError
from uopc.passes.plan_memory import PlanMemoryPass, live_spans, place_spans


def random_plan(seed: int, temps: int, reach: int = 1000) -> ukernel.PlanOp:
    """A plan of launches that each write a temp and read some of the last that were written."""
    rng = random.Random(seed)
    block = Block()
    made = []
    for _ in range(temps):
        temp = ukernel.TempOp(rng.choice([f32, f64, i8]), [rng.randrange(0, 300)])
        near = made[-reach:]
        read = rng.sample(near, min(len(near), rng.randrange(0, 4)))
        launch = ukernel.LaunchOp("k", [], [b.result for b in read], [temp.result])
        block.add_ops([temp, launch])
        made.append(temp)
    block.add_op(ukernel.ReturnOp([]))
    return ukernel.PlanOp("f", [], [], block)


@pytest.mark.parametrize("seed", range(20))
def test_temps_that_live_together_do_not_overlap(seed):
    spans = live_spans(random_plan(seed, 40), 64)
    total = place_spans(spans)
    peak = 0
    for time in range(40):
        living = sorted(
            (s for s in spans if s.first <= time <= s.last), key=lambda s: (s.offset, s.size)
        )
        for a, b in pairwise(living):
            assert a.offset + a.size <= b.offset
        peak = max(peak, sum(s.size for s in living))
    assert all(s.offset % 64 == 0 and s.offset >= 0 for s in spans)
    assert peak <= total <= 1.25 * peak


def test_five_thousand_temps_take_no_time():
    spans = live_spans(random_plan(0, 5000, reach=20), 64)
    total = place_spans(spans)
    assert len(spans) == 5000
    assert total < sum(s.size for s in spans) / 50


@pytest.mark.parametrize("alignment", [0, -64, 4, 100])
def test_a_bad_alignment_is_an_error(alignment, graph):
    with pytest.raises(UopcError, match="alignment: expected a power of two"):
        PlanMemoryPass(alignment=alignment).apply(None, graph.module())


def test_a_workspace_without_bounds_is_an_error(graph, run_pipeline):
    x = graph.input("x", (1 << 20, 1 << 20), "f64")
    y = x
    for k in range(9):
        y = graph.stage(graph.op("add", y, graph.op("exp", x) if k else x))
    kept = [graph.op("neg", graph.input(f"y{k}", (1 << 20, 1 << 20), "f64")) for k in range(9)]
    total = y
    for each in [graph.stage(k) for k in kept]:
        total = graph.op("add", total, each)
    with pytest.raises(UopcError, match="more than") as caught:
        run_pipeline(graph.module(total), "kernelize,plan-memory")
    assert caught.value.kind == "workspace-too-large"
    assert caught.value.pass_name == "plan-memory"


def test_running_it_again_changes_nothing(graph, run_pipeline):
    module = run_pipeline(graph.module(graph.softmax(graph.input("x", (4, 8)))), "kernelize")
    first = str(run_pipeline(module, "plan-memory"))
    assert str(run_pipeline(module, "plan-memory")) == first
