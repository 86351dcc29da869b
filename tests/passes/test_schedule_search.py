"""Search: with a measurer that a test makes up, so that what comes out is known; and one real."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import uopc
from uopc.dialects.errors import UopcError
from uopc.dialects.kernel import KernelOp
from uopc.dialects.locations import parse_text
from uopc.frontend.measuring import KernelMeasurer
from uopc.passes.cpu_targets import cpu_target
from uopc.passes.pipeline_text import parse_pipeline_text
from uopc.passes.schedule import SchedulePass
from uopc.passes.schedule_search import best_schedule, fits, measure_with, variations

PRODUCT = """
ukernel.kernel @product ins(%a : memref<64x32xf32>, %b : memref<32x96xf32>) outs(%c : memref<64x96xf32>) attributes {flops = 393216 : i64, bytes = 45056 : i64} {
  %i = uloop.range 64
  %j = uloop.range 96
  %k = uloop.range 32 reduce
  %x = uloop.load %a[%i, %k] : memref<64x32xf32>
  %y = uloop.load %b[%k, %j] : memref<32x96xf32>
  %p = arith.mulf %x, %y : f32
  %s = uloop.reduce add %p over (%k) : f32
  uloop.store %s, %c[%i, %j] : memref<64x96xf32>
}
"""  # noqa: E501
RULE = (
    "contract; split j = j0 jj:48; tile y over k jj as pk pj; split jj = j1:unroll j2:16:vector; "
    "split pj = pj1:unroll pj2:16:vector; split i = i0 i1:8:unroll; order j0 pk i0 k"
)


@dataclass
class Fake:
    """A machine on which a schedule takes as long as a test says."""

    cost: Callable[[str], float]
    kept: dict[str, str] = field(default_factory=dict)
    rounds: list[list[str]] = field(default_factory=list)

    def find(self, key: str) -> str | None:
        return self.kept.get(key)

    def keep(self, key: str, schedule: str) -> None:
        self.kept[key] = schedule

    def seconds(self, op: KernelOp, schedules: Sequence[str], what: str) -> list[float]:
        self.rounds.append(list(schedules))
        return [self.cost(s) for s in schedules]


@pytest.fixture(autouse=True)
def nobody_measures() -> Iterator[None]:
    measure_with(None)
    yield
    measure_with(None)


def product() -> KernelOp:
    (op,) = parse_text(PRODUCT).body.block.ops
    assert isinstance(op, KernelOp)
    return op


def search(machine: Fake, beam: int = 2) -> str:
    return best_schedule(product(), RULE, cpu_target("avx512"), beam, machine)


def test_what_is_fastest_is_found_and_kept() -> None:
    def four_rows(schedule: str) -> float:
        return 1.0 - 0.5 * ("i1:4:unroll" in schedule) - 0.3 * ("tile" not in schedule)

    machine = Fake(four_rows)
    found = search(machine)
    assert "i1:4:unroll" in found and "tile" not in found and "contract" in found
    assert list(machine.kept.values()) == [found]
    count = len(machine.rounds)
    assert search(machine) == found and len(machine.rounds) == count  # from what is kept
    assert search(Fake(four_rows)) == found  # and the same from nothing


def test_ties_go_to_the_rule_and_the_beam_bounds_what_is_measured() -> None:
    machine = Fake(lambda schedule: 1.0)
    assert search(machine, beam=1) == RULE
    assert machine.rounds[0] == [RULE, ""]
    assert all(len(r) <= 12 for r in machine.rounds) and len(machine.rounds) <= 3
    assert search(Fake(lambda schedule: 0.0 if schedule == "" else 1.0)) == ""


def test_every_candidate_fits_and_is_new() -> None:
    machine = Fake(len)
    search(machine, beam=3)
    measured = [s for r in machine.rounds for s in r]
    assert len(measured) == len(set(measured)) > 10
    assert all(fits(product(), s) for s in measured)
    vectors = {p for s in measured for p in s.split() if p.endswith(":vector")}
    assert vectors <= {"j2:16:vector", "pj2:16:vector"}  # never wider than the target's


def test_a_kept_schedule_that_does_not_fit_is_searched_anew() -> None:
    machine = Fake(len)
    first = search(machine)
    machine.kept = dict.fromkeys(machine.kept, "split z = a b:2")
    assert search(machine) == first


def test_variations() -> None:
    assert list(variations("split k = k0 k1:4:unroll k2:8:vector")) == [
        "split k = k0 k1:2:unroll k2:8:vector",
        "split k = k0 k1:8:unroll k2:8:vector",
    ]
    assert list(variations("tile v over k as p; split p = p0 p1:4; order p0 k")) == [
        "order k",
        "tile v over k as p; split p = p0 p1:2; order p0 k",
        "tile v over k as p; split p = p0 p1:8; order p0 k",
        "tile v over k as p; split p = p0 p1:4; order k p0",
    ]
    assert list(variations("prefetch v along i; mark i thread")) == ["mark i thread"]


def test_nobody_to_measure() -> None:
    from uopc.dialects.registry import make_context

    with pytest.raises(UopcError) as caught:
        SchedulePass(beam=2).apply(make_context(), parse_text(PRODUCT))
    assert caught.value.kind == "no-measurer"
    assert "uopc.compile, uopc-run or uopc-opt" in caught.value.hint
    with pytest.raises(UopcError, match="beam is 65"):
        SchedulePass(beam=65).apply(make_context(), parse_text(PRODUCT))
    assert parse_pipeline_text("schedule{beam=2}")


def test_hostile_files_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path))
    who = KernelMeasurer()
    assert who.find("k") is None
    who.keep("k", RULE)
    assert who.find("k") == RULE
    (path,) = tmp_path.glob("*.schedule")
    whole = path.read_bytes()
    for data in (b"", whole[:-1], whole[:20] + b"!" + whole[21:], b"\xff" * 500):
        path.write_bytes(data)
        assert who.find("k") is None
    who.keep("k", "rm -rf everything")
    assert who.find("k") is None
    assert "a kept schedule is ignored" in capsys.readouterr().err


def test_a_small_search_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path))
    monkeypatch.setattr("uopc.passes.schedule_search.ROUNDS", 2)
    monkeypatch.setattr("uopc.passes.schedule_search.MOST_CANDIDATES", 3)
    program = """
func.func @rows(%x: tensor<64x512xf32>) -> tensor<64xf32> {
  %r = utensor.reduce add %x axes [1] : tensor<64x512xf32>
  func.return %r : tensor<64xf32>
}"""
    x = np.random.default_rng(0).standard_normal((64, 512)).astype(np.float32)
    found = uopc.compile(program, beam=1)
    np.testing.assert_allclose(found(x), x.sum(1), rtol=1e-4, atol=1e-4)
    kept = {p.name: p.read_bytes() for p in tmp_path.glob("*.schedule")}
    assert len(kept) == 1
    monkeypatch.setenv("UOPC_BEAM", "1")
    assert uopc.compile(program).source == found.source
    assert {p.name: p.read_bytes() for p in tmp_path.glob("*.schedule")} == kept


def test_level_two_searches():
    module = parse_text(PRODUCT)
    machine = Fake(lambda schedule: -float(len(schedule)))
    measure_with(lambda: machine)
    SchedulePass(target="avx512", level=2).apply(None, module)  # type: ignore[arg-type]
    assert machine.rounds
    (kernel,) = (o for o in module.body.block.ops if isinstance(o, KernelOp))
    assert kernel.schedule is not None


def test_hand_written_vectors_fit_the_target():
    wide = "split j = j0 j1:16:vector; order i j0 k"
    for target in ("avx512", "portable"):
        module = parse_text(PRODUCT.replace("{flops", f'{{schedule = "{wide}", flops'))
        SchedulePass(target=target).apply(None, module)  # type: ignore[arg-type]
        (kernel,) = (o for o in module.body.block.ops if isinstance(o, KernelOp))
        assert kernel.schedule is not None
        assert kernel.schedule.data == wide
    module = parse_text(PRODUCT.replace("{flops", f'{{schedule = "{wide}", flops'))
    with pytest.raises(UopcError) as caught:
        SchedulePass(target="avx2").apply(None, module)  # type: ignore[arg-type]
    assert caught.value.kind == "bad-schedule"
    assert caught.value.message == (
        "kernel @product: 16 lanes of f32 along 'j1' are 64 bytes; a vector of avx2 has 32"
    )
