"""The bar of a long compile: in a terminal only, not before it is long, and gone at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import TextIO

import pytest

from uopc.frontend import progress as module
from uopc.frontend.progress import counted, progress

pytestmark = pytest.mark.usefixtures("cache_folder")


class Terminal:
    """A pseudo terminal: what is written to `stream` comes out of `written`."""

    def __init__(self) -> None:
        self._ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        self.stream = os.fdopen(theirs, "w")
        os.set_blocking(self._ours, False)

    def written(self) -> str:
        self.stream.flush()
        found = b""
        with suppress(BlockingIOError):
            while True:  # one read gives some thousand bytes at most
                found += os.read(self._ours, 1 << 16)
        return found.decode()

    def close(self) -> None:
        self.stream.close()
        os.close(self._ours)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    made = Terminal()
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    monkeypatch.setattr(module, "INTERVAL", 0.02)
    yield made
    made.close()


def a_long_compile(stream: TextIO | None = None) -> None:
    with redirect_stderr(stream or sys.stderr), progress("7 nodes", stages=4) as shown:
        for stage in ("kernelize", "rangeify", "schedule"):
            shown.enter(stage)
        time.sleep(0.2)
        for _ in counted(range(3), "r_4_8"):
            time.sleep(0.1)


def test_a_bar_shows_stages_and_is_wiped(terminal: Terminal):
    pytest.importorskip("tqdm")
    a_long_compile(terminal.stream)
    text = terminal.written()
    assert "compiling 7 nodes:  50%|" in text
    assert ", schedule" in text and "schedule, r_4_8 2/3" in text
    assert text.rsplit("\r", 2)[-2].strip() == "" and text.endswith("\r")


def test_without_tqdm_it_is_a_line(terminal: Terminal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    a_long_compile(terminal.stream)
    text = terminal.written()
    assert text.startswith("\r\x1b[Kcompiling 7 nodes: 0 s, schedule")
    assert text.endswith("\r\x1b[K")


def test_what_is_quick_writes_nothing(terminal: Terminal):
    with redirect_stderr(terminal.stream), progress("7 nodes"):
        pass
    assert terminal.written() == ""


def test_a_bar_waits_two_seconds():
    assert module.PATIENCE == 2.0


def test_nothing_is_written_into_a_pipe(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    a_long_compile()
    assert capfd.readouterr() == ("", "")


SCRIPT = """
import sys
from uopc import Tensor
from uopc.frontend import progress
progress.PATIENCE, progress.INTERVAL = float(sys.argv[1]), 0.02
print((Tensor([1.0, 2.0]).exp().sum(0) * float(sys.argv[2])).item())
assert float(sys.argv[1]) < 9 or not {"tqdm"} & set(sys.modules)
"""


@pytest.mark.parametrize(("patience", "shows"), [("0", True), ("60", False)])
def test_a_compile_shows_its_passes(tmp_path: Path, patience: str, shows: bool):
    """A real one, of a fresh process with an empty cache, with a terminal as its error output."""
    terminal = Terminal()
    environment = {**os.environ, "UOPC_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT, patience, "3.5"]
    ran = subprocess.run(command, env=environment, stdout=-1, stderr=terminal.stream, text=True)
    text = terminal.written()
    terminal.close()
    assert ran.returncode == 0
    assert float(ran.stdout) > 3.5
    if shows:
        assert "compiling 5 nodes" in text and "the C compiler" in text
    else:
        assert text == ""
    piped = subprocess.run([*command[:-1], "4.5"], env=environment, capture_output=True, text=True)
    assert (piped.returncode, piped.stderr) == (0, "")
