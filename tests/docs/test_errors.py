"""docs/errors.md has every kind of error that the code can raise, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("dialects", "passes", "lowering", "runtime", "frontend", "interpreters", "tools")
KIND = re.compile(r"[a-z]+(-[a-z0-9*]+)+")
BRACKETED = re.compile(rf"\[({KIND.pattern})\]\s*$")
NOT_RAISED: set[str] = set()


def modules() -> list[tuple[Path, ast.Module]]:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def called_name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def patterns(node: ast.expr) -> list[str] | None:
    """The kinds that an expression may be, `*` for a part that is computed; None if unknown."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        first, second = patterns(node.body), patterns(node.orelse)
        return None if first is None or second is None else [*first, *second]
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "*" for part in node.values]
        return ["".join(map(str, parts))]
    return None


def kind_argument(call: ast.Call, position: int) -> ast.expr | None:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "kind"]
    if named:
        return named[0]
    return call.args[position] if len(call.args) > position else None


def constructors(trees: list[tuple[Path, ast.Module]]) -> dict[str, int]:
    """UopcError and the functions that hand their parameter `kind` on: the parameter's place."""
    found = {"UopcError": 0}
    grown = True
    while grown:
        grown = False
        for _, tree in trees:
            for function in ast.walk(tree):
                if not isinstance(function, ast.FunctionDef) or function.name in found:
                    continue
                names = [a.arg for a in (*function.args.args, *function.args.kwonlyargs)]
                if "kind" in names and any(
                    isinstance(call, ast.Call)
                    and called_name(call) in found
                    and isinstance(
                        argument := kind_argument(call, found[called_name(call)]), ast.Name
                    )
                    and argument.id == "kind"
                    for call in ast.walk(function)
                ):
                    found[function.name] = names.index("kind")
                    grown = True
    return found


@cache
def raised() -> frozenset[tuple[str, str]]:
    """Every kind in the code with where it stands."""
    return frozenset(search(modules()))


def search(trees: list[tuple[Path, ast.Module]]) -> Iterator[tuple[str, str]]:
    takers = constructors(trees)
    for path, tree in trees:
        for node in ast.walk(tree):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.FunctionDef) and node.name in takers:
                arguments = (*node.args.args, *node.args.kwonlyargs)
                defaults = [*[None] * (len(node.args.args) - len(node.args.defaults))]
                for argument, default in zip(
                    arguments, [*defaults, *node.args.defaults, *node.args.kw_defaults], strict=True
                ):
                    if argument.arg == "kind" and default is not None:
                        yield from ((kind, where) for kind in patterns(default) or ())
            if isinstance(node, ast.Call) and called_name(node) in takers:
                argument = kind_argument(node, takers[called_name(node)])
                if argument is not None:
                    yield from ((kind, where) for kind in patterns(argument) or ())
            if isinstance(node, ast.Call) and called_name(node) == "__init__":
                # The subclasses of UopcError.
                first = patterns(node.args[0]) if node.args else None
                yield from ((kind, where) for kind in first or () if KIND.fullmatch(kind))
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and "\n\n" not in node.value
                and (match := BRACKETED.search(node.value))
            ):
                yield match[1], where


def documented() -> list[str]:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    return re.findall(r"^### (.*)$", text, re.MULTILINE)


def test_the_search_finds_what_is_there():
    found = {kind for kind, _ in raised()}
    # A plain call, a helper's default, a subclass, an f-string, a conditional, a plain message.
    assert found >= {
        "parse-error", "verify-failed", "illegal-op", "cuda-error", "unknown-*", "too-large",
        "wrong-shape", "internal-error", "unknown-pass", "cannot-write", "missing-dependency",
    }  # fmt: skip


def test_every_kind_is_documented_once():
    kinds = documented()
    assert len(kinds) == len(set(kinds))
    missing = {
        f"{kind} ({where})"
        for kind, where in raised()
        if kind not in NOT_RAISED and not any(fnmatchcase(each, kind) for each in kinds)
    }
    assert not missing, f"docs/errors.md lacks: {', '.join(sorted(missing))}"


def test_every_documented_kind_is_raised():
    found = {kind for kind, _ in raised()}
    stale = [kind for kind in documented() if not any(fnmatchcase(kind, each) for each in found)]
    assert not stale, f"no code raises: {', '.join(stale)}"


def test_kinds_are_short_kebab_case_names():
    for kind in documented():
        assert KIND.fullmatch(kind), kind
        assert len(kind) <= 30, kind


def test_every_entry_says_what_it_means():
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for entry in text.split("\n### ")[1:]:
        title, _, body = entry.partition("\n")
        assert len(body.partition("\n## ")[0].split()) >= 5, title
