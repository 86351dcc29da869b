"""make bench: that it measures, compares and writes; not how fast anything is."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SHAPES = {
    "matmul": ((8, 8), (8, 8)),
    "ln_matmul": ((4, 8), (8, 8)),
    "attn": ((1, 2, 8, 4),) * 3,
    "attn_causal": ((1, 2, 8, 4),) * 3,
    "resblock": ((1, 3, 6, 6), *((3, 3, 3, 3), (3,), (3,)) * 2),
    "argmax1": ((4, 8),),
    "transpose": ((4, 8),),
}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that imports a module of benchmarks/ by name."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    return importlib.import_module


def test_a_quick_run_writes_its_table(tmp_path: Path):
    command = [sys.executable, str(BENCHMARKS / "beside.py"), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(
        [*command, "--libraries", "uopc", "numpy"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    head, first, second = done.stdout.splitlines()[:3]
    assert head.split() == ["work", "uopc", "numpy", "ratio", "spread", "against", "rate"]
    assert (first[:11], second[:11]) == ("product 128", "softmax 4x8")
    assert not done.stderr  # no bar where there is no terminal
    found = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert set(found["versions"]) == {"uopc", "numpy"}
    for row in found["rows"]:
        assert row["best"] == "numpy"
        assert 0 < row["low"] <= row["high"]
        assert row["kernels"][0]["seconds"] > 0
        for result in row["results"].values():
            assert (result["failed"], len(result["rounds"])) == ("", 2)
    markdown = (tmp_path / "results.md").read_text("utf-8")
    assert "\n| product 128 | " in markdown
    assert "\n## Seconds to the first result\n" in markdown


def test_a_work_that_is_not_there(tmp_path: Path):
    command = [sys.executable, str(BENCHMARKS / "beside.py"), "nothing", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("no work begins so; there are: product 128; ")


@pytest.mark.parametrize("kind", SHAPES)
def test_programs_compute_what_numpy_does(module: Any, kind: str):
    from uopc import Tensor

    work = module("works").Work("small", kind, SHAPES[kind])
    found = module("programs").FUNCTIONS[kind](*map(Tensor, work.inputs())).numpy()
    assert module("worker").error_of(found, module("library_numpy").expected(work)) < 1e-5


def small_gpt(module: Any) -> Any:
    return module("works").GPT(11, 8, 8, 2, 1, 2, ())


def test_decoding_computes_what_numpy_does(module: Any):
    gpt, numpy = small_gpt(module), module("library_numpy")
    step = module("programs").gpt_decoding(gpt.parameters(), gpt)
    expected = numpy.first_scores(gpt, numpy.decoding(gpt, np.float64))
    assert module("worker").error_of(numpy.first_scores(gpt, step), expected) < 1e-5


def test_one_head_sees_what_was_before(module: Any):
    rng = np.random.default_rng(0)
    wq, wk, wv, wo = (rng.standard_normal((4, 4), np.float32) for _ in range(4))
    x = rng.standard_normal((3, 4), np.float32)
    step = module("programs").head_decoding((wq, wk, wv, wo), 3)
    found = np.concatenate([step(x[i : i + 1], i) for i in range(3)])
    seen = module("library_numpy").causal_attention(x @ wq, x @ wk, x @ wv)
    assert module("worker").error_of(found, seen @ wo) < 1e-5


def test_training_computes_what_torch_does(module: Any):
    pytest.importorskip("torch")
    gpt = small_gpt(module)
    tokens, targets = gpt.data()
    step = module("programs").gpt_training(gpt.parameters(), tokens, targets, gpt)
    other = module("library_torch").training(gpt)
    np.testing.assert_allclose([step() for _ in range(3)], [other() for _ in range(3)], rtol=1e-5)


def run_of(module: Any, ours: list[float], other: list[float], failed: str = "") -> Any:
    """A run of one work by uopc and numpy, from the least seconds of each round."""
    report, works = module("report"), module("works")
    row = report.Row(works.WORKS["product 128"])
    for name, times in (("uopc", ours), ("numpy", other)):
        rounds = [{"least": t, "median": t, "samples": 1, "others": 0.0} for t in times]
        row.results[name] = report.Result(rounds=rounds)
    row.results["numpy"].failed = failed
    row.kernels = [{"kernel": "r_128_128", "computes": "mul, reduce add [2]", "seconds": 1e-3,
                    "operations": 2 * 128**3, "bytes": 3 * 4 * 128**2}]  # fmt: skip
    ceilings = module("ceilings").Ceilings(100.0, 20.0, 100.0)
    return report.Run({"uopc": "1", "numpy": "2"}, [], 2, ceilings, [row])


def test_the_ratio_is_of_least_times_and_its_spread_of_rounds(module: Any):
    run = run_of(module, [1e-3, 2e-3], [4e-3, 3e-3])
    assert run.rows[0].ratio == pytest.approx((3.0, 1.5, 4.0))
    assert run.mean_ratio() == pytest.approx(3.0)
    text = module("report").table(run)[1]
    assert text == ["product 128", "1", "3", "3.00", "1.50-4.00", "numpy", "4 GFLOP/s"]


def test_what_is_wrong_is_no_best(module: Any):
    run = run_of(module, [1e-3], [1e-4], failed="wrong by 1 of the largest number")
    assert run.rows[0].ratio is None
    assert run.mean_ratio() is None
    assert module("report").table(run)[1][1:6] == ["1", "failed", "-", "-", "-"]
    line = "numpy failed on product 128: wrong by 1 of the largest number"
    assert run.failures() == [line]
    assert line in module("report").as_markdown(run)


def test_wrong_values_are_seen(module: Any):
    error_of = module("worker").error_of
    assert error_of([1.0, 2.5], np.array([1.0, 2.0])) == pytest.approx(0.25)
    assert error_of([1.0, np.nan], np.array([1.0, 2.0])) == np.inf
    assert error_of([1.0], np.array([1.0, 2.0])) == np.inf


def test_pictures(module: Any, tmp_path: Path):
    pytest.importorskip("matplotlib")
    data = module("report").as_data(run_of(module, [1e-3, 2e-3], [4e-3, 3e-3]))
    written = module("plots").draw(data, tmp_path)
    assert written == [str(tmp_path / "ratios.png"), str(tmp_path / "roofline.png")]
    assert all(Path(name).read_bytes().startswith(b"\x89PNG") for name in written)
    data["ceilings"] = "no compiler"
    del data["rows"][0]["ratio"]
    assert module("plots").draw(data, tmp_path) == []
