"""A part of ONNX's own node tests, through the interpreter and through C.

All of them: tests/conformance/run_onnx.py.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")

KNOWN_TO_DIFFER = ("_bf16", "causal_fp16")
"""Rounded at other places than onnx's reference does it, within the type's own precision."""


@pytest.fixture(scope="module")
def runner() -> Any:
    path = Path(__file__).with_name("run_onnx.py")
    spec = importlib.util.spec_from_file_location("run_onnx", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cases(runner) -> dict[str, Any]:
    return runner.collect()


@pytest.mark.parametrize(("target", "every", "least"), [("interpreter", 11, 100), ("c", 90, 12)])
def test_node_tests_pass_or_are_refused_in_words(runner, cases, cache_folder, target, every, least):
    names = sorted(name for name in cases if not any(w in name for w in KNOWN_TO_DIFFER))[::every]
    verdicts = {name: runner.run_case(cases[name], {"target": target}) for name in names}
    wrong = {n: v for n, v in verdicts.items() if v[0] not in ("pass", "unsupported")}
    assert not wrong
    assert sum(verdict == "pass" for verdict, _ in verdicts.values()) >= least
