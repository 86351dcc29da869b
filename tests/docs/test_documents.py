"""Documents say what is so: examples run, links lead somewhere, tables equal the code's."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import uopc
from uopc.runtime.environment import VARIABLES

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def script(path: str) -> Any:
    """A script of docs/ as a module."""
    name = "docs_" + Path(path).stem
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


check_examples = script("check_examples.py")
generate_reference = script("generate_reference.py")
draw = script("pictures/draw.py")


@pytest.mark.parametrize("name", check_examples.DOCUMENTS)
def test_examples_print_what_the_document_says(name: str, tmp_path: Path):
    text = (ROOT / name).read_text(encoding="utf-8")
    differences = check_examples.check(text, tmp_path)
    assert not differences, "\n\n".join(map(str, differences)) + "\n\nmake docs writes them anew"


def test_the_documents_that_show_something_are_run():
    shown = re.compile(r"^```(console|pycon)$", re.MULTILINE)
    pages = {str(page.relative_to(ROOT)) for page in PAGES if shown.search(page.read_text("utf-8"))}
    assert pages == set(check_examples.DOCUMENTS)


@pytest.mark.parametrize(
    ("expected", "actual", "agree"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("a\n…\nd\n", "a\nb\n", False),
        ("took … ms\n", "took 17 ms\n", True),
        ("took … ms\n", "took 1\n7 ms\n", False),
        ("a.b\n", "axb\n", False),
        ("a\n", "a  \n", True),
    ],
)
def test_what_agrees(expected: str, actual: str, agree: bool):
    assert check_examples.agree(expected, actual) is agree


def test_a_wrong_output_is_found_and_can_be_written_anew(tmp_path: Path):
    text = "```pycon\n>>> 6 * 7\n41\n```\n\n```console\n$ echo a; echo b >&2\na\n```\n"
    differences = check_examples.check(text, tmp_path)
    assert [each.block.line for each in differences] == [2, 7]
    new = check_examples.updated(text, differences)
    assert new == text.replace("41", "42").replace("\na\n", "\na\nb\n")
    assert not check_examples.check(new, tmp_path)


def test_the_reference_is_current():
    written = generate_reference.pages()
    folder = ROOT / "docs" / "reference"
    assert {path.name for path in folder.iterdir()} == set(written)
    stale = [n for n, text in written.items() if (folder / n).read_text("utf-8") != text]
    assert not stale, f"make docs writes {', '.join(stale)} anew"


def test_the_reference_says_what_each_option_of_compile_means():
    page = (ROOT / "docs" / "reference" / "uopc.md").read_text("utf-8")
    assert "CompileRequest" not in page
    options = list(inspect.signature(uopc.compile).parameters)[1:]
    assert re.findall(r"^\| `(\w+)` \| `.+` \| .{9,} \|$", page, re.MULTILINE) == options


@pytest.mark.parametrize("name", draw.PICTURES)
def test_pictures_show_the_plans_of_today(name: str):
    from uopc.lowering.plan_text import plan_table

    picture = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text("utf-8")
    found = re.search(r"<dc:description>(.*?)</dc:description>", picture, re.DOTALL)
    assert found is not None
    described = found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
    assert described == plan_table(draw.example_plan(name)), "make pictures draws it anew"


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make on the web."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in LINK.findall(text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.is_relative_to(ROOT) and found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_files_that_the_architecture_names_exist():
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    modules = {path.name for path in ROOT.glob("*/**/*.py") if ".venv" not in path.parts}
    named = set(re.findall(r"\b([a-z_]+\.py)\b", text))
    assert len(named) > 20
    assert named <= modules, named - modules


def test_the_readme_has_the_environment_variables():
    text = (ROOT / "README.md").read_text("utf-8")
    section = text.partition("\n## Environment variables\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{v.name}` | {v.default} | {v.meaning} |" for v in VARIABLES]


def test_every_dependency_is_explained():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras = [each for group in project["optional-dependencies"].values() for each in group]
    text = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    for requirement in (*project["dependencies"], *extras):
        name = re.split(r"[^\w-]", requirement)[0]
        assert name in text, f"docs/dependencies.md lacks {name}"
