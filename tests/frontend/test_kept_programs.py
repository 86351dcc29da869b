"""Programs of tensor graphs between processes: found by structure, made anew by other compilers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import uopc
from uopc import Tensor, UopcError
from uopc.frontend import kept_programs, realize
from uopc.frontend.graph import evaluation_order
from uopc.lowering.plan import Program
from uopc.passes.manager import InternalError


@pytest.fixture
def made(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """An empty cache folder; what is made from graphs is noted here."""
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path))
    programs: list[Program] = []
    lowered = realize._lowered

    def noted(*arguments: Any) -> Program:
        programs.append(lowered(*arguments))
        return programs[-1]

    monkeypatch.setattr(realize, "_lowered", noted)
    uopc.clear_cache()
    return programs


def softmax(rows: int = 3) -> list[float]:
    x = Tensor(np.arange(rows * 4, dtype=np.float32).reshape(rows, 4))
    return x.softmax(-1).numpy()[0].tolist()


def test_a_program_is_made_once_and_found_whole(made: list[Program]):
    expected = softmax()
    uopc.clear_cache()  # as a new process starts
    assert softmax() == expected
    assert len(made) == 1
    x = Tensor(np.zeros((3, 4), np.float32)).softmax(-1).node
    structure = (*realize.structure_key(evaluation_order([x]), [x]), ("donated",))
    key = kept_programs.program_key(structure, "realize")
    assert kept_programs.find_program(key) == made[0]
    softmax(5)
    assert len(made) == 2


def test_a_program_that_was_cut_short_is_made_again(made: list[Program], tmp_path: Any):
    expected = softmax()
    (file,) = tmp_path.glob("*.program")
    file.write_bytes(file.read_bytes()[:-100])
    uopc.clear_cache()
    assert softmax() == expected
    assert len(made) == 2


def test_numbers_are_told_apart_and_the_compiler_counts(
    made: list[Program], monkeypatch: pytest.MonkeyPatch
):
    x = Tensor(np.ones(3, np.float32))
    values = (0.0, -0.0, 1.0, math.inf, math.nan)
    got = [(x * v).numpy()[0] for v in values]
    uopc.clear_cache()
    again = [(x * v).numpy()[0] for v in values]
    assert np.array(got).tobytes() == np.array(again).tobytes()
    assert len(made) == 5
    monkeypatch.setattr(kept_programs, "_compiler", lambda: "a pass was changed")
    uopc.clear_cache()
    (x * 0.0).numpy()
    assert len(made) == 6


def test_kernels_of_a_found_program_can_be_timed(
    made: list[Program], capfd: pytest.CaptureFixture[str]
):
    softmax()
    uopc.clear_cache()
    with uopc.debug(3):
        softmax()
    lines = capfd.readouterr().err
    assert [line.split()[0] for line in lines.splitlines() if "GFLOP/s" in line] == ["r_3_4"]
    assert len(made) == 1


def test_a_program_that_is_shown_is_made_again_for_its_lines(
    made: list[Program], capfd: pytest.CaptureFixture[str]
):
    softmax()
    uopc.clear_cache()
    with uopc.debug(4):
        softmax()
    lines = capfd.readouterr().err
    assert "static void" not in lines
    assert "\nvoid r_3_4(" in lines
    assert "test_kept_programs.py:" in lines
    assert len(made) == 2


def test_a_pass_that_fails_is_named(made: list[Program], monkeypatch: pytest.MonkeyPatch):
    from uopc.passes.linearize import LinearizePass

    monkeypatch.setattr(LinearizePass, "apply", lambda *_: 1 / 0)
    with pytest.raises(InternalError, match="linearize"):
        softmax(7)
    monkeypatch.undo()
    with pytest.raises(UopcError, match="rank 2"):
        Tensor.ones(2, 2).softmax(4)
