"""Runs what the documents show, and compares what comes out with what they say.

    python docs/check_examples.py                 check every document; status 1 if one differs
    python docs/check_examples.py --update        write what came out into the documents
    python docs/check_examples.py docs/tutorial.md

In a document

* a code block under `<!-- file: NAME -->` is a file of the folder in which the rest runs;
* a `console` block holds commands after `$ `, each with its output, standard error included;
* a `pycon` block is a Python session; all of a document's blocks are one session;
* `…` in an output stands for any text, on a line of its own for any number of lines.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (
    "README.md",
    "docs/tutorial.md",
    "docs/schedules.md",
    "docs/training.md",
    "docs/errors.md",
    "docs/c.md",
)

_BLOCK = re.compile(
    r"(?:<!-- file: (?P<file>[\w.-]+) -->\n)?```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where its body stands in the document, and what it is."""

    start: int
    end: int
    line: int
    language: str
    file: str | None
    body: str


@dataclass(frozen=True)
class Difference:
    """A block whose output is not what the document says."""

    block: Block
    expected: str
    actual: str

    def __str__(self) -> str:
        lines = difflib.unified_diff(
            self.expected.splitlines(), self.actual.splitlines(), "document", "run", lineterm=""
        )
        return f"block at line {self.block.line}:\n" + "\n".join(lines)


def blocks(text: str) -> Iterator[Block]:
    """All fenced blocks of a document."""
    for match in _BLOCK.finditer(text):
        start, end = match.span("body")
        line = text.count("\n", 0, start) + 1
        yield Block(start, end, line, match["language"], match["file"], match["body"])


def check(text: str, folder: Path) -> list[Difference]:
    """Run a document's blocks in a folder; those whose output differs."""
    differences: list[Difference] = []
    session: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for block in blocks(text):
            actual = block.body
            if block.file is not None:
                Path(block.file).write_text(block.body, encoding="utf-8")
            elif block.language == "console":
                actual = _run_console(block.body)
            elif block.language == "pycon":
                actual = _run_python(block.body, session)
            if not agree(block.body, actual):
                differences.append(Difference(block, block.body, actual))
    return differences


def agree(expected: str, actual: str) -> bool:
    """Whether an output is as expected, where `…` stands for any text."""
    pieces: list[str] = []
    for line in expected.splitlines():
        if line.strip() == "…":
            pieces.append("(?:.*\n)*?")
        else:
            pieces.append("[^\n]*?".join(map(re.escape, line.rstrip().split("…"))) + "\n")
    text = "".join(line.rstrip() + "\n" for line in actual.splitlines())
    return re.fullmatch("".join(pieces), text) is not None


def _run_console(body: str) -> str:
    """The block with each command's output as it is now."""
    lines: list[str] = []
    commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    for command in commands:
        output = _run_command(command)
        lines += [f"$ {command}", *(line.rstrip() for line in output.rstrip("\n").splitlines())]
    return "\n".join(lines) + "\n"


def _run_command(command: str) -> str:
    """The output of a command. Our own tools run in this process: it saves their start."""
    first, *rest = command.split(" | ", 1)
    words = shlex.split(first)
    if words[0] not in ("uopc-opt", "uopc-run") or set(first) & set("<>&;$`"):
        return _run_shell(command, "")
    output = _run_tool(words)
    return _run_shell(rest[0], output) if rest else output


def _run_tool(words: Sequence[str]) -> str:
    from uopc.tools import opt, run

    output = io.StringIO()
    main = {"uopc-opt": opt.main, "uopc-run": run.main}[words[0]]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        main(list(words[1:]))
    return output.getvalue()


def _run_shell(command: str, stdin: str) -> str:
    places = [str(ROOT / "tools"), str(Path(sys.executable).parent), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-c", command],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PATH": os.pathsep.join(places)},
    )
    return done.stdout


def _run_python(body: str, session: dict[str, object]) -> str:
    """The block with each statement's output as it is now."""
    lines: list[str] = []
    for example in doctest.DocTestParser().get_examples(body):
        source = example.source.rstrip("\n").split("\n")
        lines += [f">>> {source[0]}", *(f"... {line}".rstrip() for line in source[1:])]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                exec(compile(example.source, "<document>", "single"), session)
            except Exception as error:
                print("Traceback (most recent call last):\n  ...")
                print(f"{type(error).__module__}.{type(error).__qualname__}: {error}")
        lines += [line.rstrip() for line in output.getvalue().splitlines()]
    return "\n".join(lines) + "\n"


def updated(text: str, differences: Sequence[Difference]) -> str:
    """The document with the new outputs. Blocks that hold `…` are left for a person."""
    for each in sorted(differences, key=lambda d: -d.block.start):
        if "…" not in each.expected:
            text = text[: each.block.start] + each.actual + text[each.block.end :]
    return text


def main() -> int:
    """Check or update documents; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write what came out")
    parser.add_argument("documents", nargs="*", default=DOCUMENTS)
    options = parser.parse_args()
    status = 0
    for name in options.documents:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            differences = check(text, Path(folder))
        if options.update and differences:
            path.write_text(updated(text, differences), encoding="utf-8")
            differences = [each for each in differences if "…" in each.expected]
        for each in differences:
            status = 1
            print(f"{name}: {each}\n")
    return status


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main())
