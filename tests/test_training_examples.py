"""The training examples at small sizes: they learn, they resume to the bit, they write."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from uopc import Tensor, cache_info

EXAMPLES = Path(__file__).parents[1] / "examples"

pytestmark = pytest.mark.usefixtures("cache_folder")


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SIZES = {"dim": 16, "layers": 1, "context": 8, "batch": 4, "steps": 12, "every": 4}
SMALL = [word for name, size in SIZES.items() for word in (f"--{name}", str(size))]


def test_the_gpt_learns_writes_and_resumes_to_the_bit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    pytest.importorskip("safetensors", reason="needs safetensors")
    gpt = example("gpt")
    curve, file = tmp_path / "loss.png", str(tmp_path / "gpt.safetensors")
    whole = gpt.main([*SMALL, "--sample", "20"])
    printed = capsys.readouterr().out
    assert "64,920 characters, 65 different" in printed
    assert "step    12  loss" in printed
    assert whole[-1][1] < whole[0][1]
    first = gpt.main([*SMALL, "--sample", "0", "--stop", "5", "--save", file])
    rest = gpt.main([*SMALL, "--sample", "0", "--resume", file])
    assert first + rest == whole
    if importlib.util.find_spec("matplotlib") is not None:
        gpt.plot(whole, str(curve))
        assert curve.read_bytes().startswith(b"\x89PNG")


def test_a_step_is_traced_as_often_however_many_there_are():
    gpt = example("gpt")
    config = gpt.Config(vocab=65, context=8, dim=16, heads=2, layers=1)
    numbers = np.arange(400, dtype=np.int32) % 65
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training = gpt.Training(config, 30, 4, 1e-3, numbers, 0)
        traces = [training.step.traces for _ in training.run(12)]
    assert traces[2:] == traces[2:3] * 10
    assert traces[-1] <= 3


def test_writing_from_a_cache_is_one_plan_and_agrees_with_the_whole_context():
    gpt = example("gpt")
    Tensor.manual_seed(1)
    model = gpt.GPT(gpt.Config(vocab=9, context=8, dim=8, heads=2, layers=2))
    for parameter in model.parameters():
        parameter.assign(parameter.numpy() * 10)
    tokens = np.array([3, 1, 4, 1, 5, 2, 6, 8], np.int32)
    expected = model(Tensor(tokens[None])).numpy()[0]
    writer = gpt.Writer(model)
    before = cache_info().compiles
    cache = model.empty_cache()
    for place, token in enumerate(tokens):
        scores, cache = writer.scores([token], cache, place)
        np.testing.assert_allclose(scores.numpy(), expected[place], rtol=1e-5, atol=1e-4)
    written = writer.write([3], 20)
    assert len(written) == 21
    assert set(written) <= set(range(9))
    assert cache_info().compiles == before + 1


def test_the_story_is_what_its_grammar_writes():
    text = (EXAMPLES / "story.txt").read_text(encoding="utf-8")
    assert text == example("write_story").story()
    assert len(set(text)) == 65


def test_the_digits_are_learned(capsys: pytest.CaptureFixture[str]):
    options = ["--steps", "60", "--hidden", "32", "--pictures", "600", "--lr", "0.01"]
    assert example("train_mlp").main(options) > 0.5
    assert "step   60  loss" in capsys.readouterr().out
