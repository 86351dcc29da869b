"""How the repository is laid out: who may import whom, and where tests are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from uopc.passes.registry import PASSES

ROOT = Path(__file__).parents[1]

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "dialects": (),
    "passes": ("dialects",),
    "interpreters": ("dialects",),
    "lowering": ("dialects", "passes"),
    # The runtime works from plain data: no IR.
    "runtime": ("dialects.errors", "lowering.plan"),
    "frontend": ("dialects", "passes", "interpreters", "lowering", "runtime"),
    "tools": ("dialects", "passes", "interpreters", "lowering", "runtime", "frontend"),
}
LINES = 600
"""No module is longer."""

NOT_YET_TESTED = {"gpu-map", "linearize", "rangeify"}
"""Passes without a file of tests of their own. To be empty."""


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """The modules of uopc that a file imports, wherever in it: `dialects.errors`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"{path}: imports from other folders are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name.removeprefix("uopc.") for name in names if name.startswith("uopc."))


def test_every_folder_has_a_rule():
    links = {link.name for link in (ROOT / "src" / "uopc").iterdir() if link.is_symlink()}
    assert links == set(MAY_IMPORT)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_folders_import_those_below_them_only(folder: str):
    allowed = (folder, *MAY_IMPORT[folder])
    paths = modules(folder)
    assert paths
    for path in paths:
        for name in imported(path):
            fits = any(name == each or name.startswith(f"{each}.") for each in allowed)
            assert fits, f"{path.relative_to(ROOT)} imports uopc.{name}"


def test_runtime_does_not_import_xdsl():
    for path in modules("runtime"):
        assert "xdsl" not in {
            name.partition(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }, path


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_modules_are_short(folder: str):
    for path in modules(folder):
        count = len(path.read_text(encoding="utf-8").splitlines())
        assert count <= LINES, f"{path.relative_to(ROOT)} has {count} lines"


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_modules_say_what_they_are(folder: str):
    for path in modules(folder):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), f"{path.relative_to(ROOT)} says nothing of itself"


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_is_a_file_of_its_name_and_has_tests(name: str):
    module = PASSES[name].partition(":")[0].rpartition(".")[2]
    assert name.removeprefix("uopc-").replace("-", "_") == module
    assert (ROOT / "passes" / f"{module}.py").exists()
    tests = [f"tests/passes/test_{module}.py", f"tests/filecheck/passes/{module}.mlir"]
    assert any((ROOT / test).exists() for test in tests), f"none of {', '.join(tests)}"


@pytest.mark.parametrize("folder", ["dialects", "passes", "lowering", "tools"])
def test_lit_tests_mirror_the_tree(folder: str):
    for path in sorted((ROOT / "tests" / "filecheck" / folder).glob("*.mlir")):
        stems = [each.stem for each in modules(folder)]
        assert any(path.stem == s or path.stem.startswith(f"{s}_") for s in stems), path


def test_no_merge_is_left_half_done():
    """Text files, which nothing compiles, too."""
    for path in ROOT.rglob("*"):
        if path.suffix not in {".md", ".mlir", ".py", ".toml", ".cu", ".c", ".h", ".cpp"}:
            continue
        if any(part.startswith(".") or part == "build" for part in path.relative_to(ROOT).parts):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        left = [k for k, line in enumerate(lines, 1) if line.startswith(("<" * 7, ">" * 7))]
        assert not left, f"{path}: a conflict's marks at lines {left}"
