from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from uopc.dialects.errors import UopcError
from uopc.runtime import environment

ROOT = Path(environment.__file__).parents[1]


def test_at_most_eight_variables_each_once():
    names = [variable.name for variable in environment.VARIABLES]
    assert len(names) <= 8
    assert len(set(names)) == len(names)
    assert all(name.startswith("UOPC_") for name in names)


def test_no_other_module_looks_up_a_variable_of_ours():
    folders = ("dialects", "passes", "lowering", "runtime", "frontend", "interpreters", "tools")
    modules = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(modules) > 5
    for path in modules:
        if path.name == "environment.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            named = isinstance(text, str) and re.fullmatch(r"UOPC_[A-Z0-9_]+", text)
            # Include guards and macros of emitted text are no variables.
            assert not named or text in ("UOPC_UNIVERSE", "UOPC_EMULATOR"), f"{path} names {text}"


@pytest.mark.parametrize(("text", "level"), [("", 0), ("0", 0), (" 2 ", 2), ("4", 4)])
def test_debug_level(monkeypatch: pytest.MonkeyPatch, text: str, level: int):
    monkeypatch.setenv("UOPC_DEBUG", text)
    assert environment.debug_level() == level


@pytest.mark.parametrize("text", ["5", "-1", "1.0", "yes", "1_0", "٣", "9" * 5000])
def test_wrong_debug_level(monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv("UOPC_DEBUG", text)
    with pytest.raises(UopcError) as caught:
        environment.debug_level()
    assert caught.value.kind == "bad-environment"
    assert caught.value.message.endswith("expected a number from 0 to 4")


def test_thread_count(monkeypatch: pytest.MonkeyPatch):
    assert environment.thread_count() == environment.available_processors() >= 1
    monkeypatch.setenv("UOPC_THREADS", "3")
    assert environment.thread_count() == 3
    monkeypatch.setenv("UOPC_THREADS", "0")
    with pytest.raises(UopcError):
        environment.thread_count()


def test_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("UOPC_CACHE", str(tmp_path / "a b"))
    assert environment.cache_directory() == tmp_path / "a b"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("UOPC_CACHE", "~/kept")
    assert environment.cache_directory() == tmp_path / "kept"


def test_cuda_choice(monkeypatch: pytest.MonkeyPatch):
    assert environment.cuda_choice() == "auto"
    monkeypatch.setenv("UOPC_CUDA", " emulator ")
    assert environment.cuda_choice() == "emulator"
    monkeypatch.setenv("UOPC_CUDA", "/opt/cuda")
    with pytest.raises(UopcError) as caught:
        environment.cuda_choice()
    assert caught.value.message == "UOPC_CUDA is '/opt/cuda'; expected auto, driver, emulator"
