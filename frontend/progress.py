"""How far a long compile has come, in a terminal.

    with progress("2300 nodes") as shown:
        run_passes(context, module, passes, instruments=passes_watched(len(passes)))
        shown.enter("the C compiler")

Nothing is written in the first PATIENCE seconds, nor where the error output is no terminal. After
that it is a bar of tqdm, or where that is not installed one line with the seconds; both are wiped
at the end. tqdm is looked for only then: no program that compiles quickly waits for it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from uopc.passes.manager import Instrument

PATIENCE = 2.0
"""Seconds a compile may take before a terminal is told."""
INTERVAL = 0.5
"""Seconds from one look at the stage to the next."""
BAR = "{desc}: {percentage:3.0f}%|{bar:24}| {elapsed}{postfix}"
_WIPE = "\r\x1b[K"

_T = TypeVar("_T")


class Progress:
    """How many of a compile's stages are done, and which is at work."""

    def __init__(self, what: str, stages: int) -> None:
        self.what = what
        self.stages = stages
        self.entered = 0
        self.stage = ""

    def enter(self, stage: str) -> None:
        """A stage begins, and the one before it has ended."""
        self.entered += 1
        self.stage = stage

    @property
    def done(self) -> int:
        """How many stages have ended."""
        return max(0, self.entered - 1)


_current: ContextVar[Progress | None] = ContextVar("uopc_progress", default=None)


@contextmanager
def progress(what: str, stages: int = 1) -> Generator[Progress]:
    """Show how a compile comes along while the block runs; `passes_watched` adds stages."""
    shown = Progress(what, stages)
    token = _current.set(shown)
    stream = sys.stderr
    try:
        if stream is None or not stream.isatty():  # pyright: ignore[reportUnnecessaryComparison] (None under pythonw)
            yield shown
        else:
            with _watched(shown, stream):
                yield shown
    finally:
        _current.reset(token)


@contextmanager
def _watched(shown: Progress, stream: TextIO) -> Generator[None]:
    ended = threading.Event()
    start = time.time()

    def watch() -> None:
        if ended.wait(PATIENCE):
            return
        draw, wipe = _bar(shown, stream, start)
        while True:
            draw()
            if ended.wait(INTERVAL):
                break
        wipe()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _bar(
    shown: Progress, stream: TextIO, start: float
) -> tuple[Callable[[], None], Callable[[], None]]:
    """What draws the bar or line as it is now, and what wipes it."""
    try:
        from tqdm import tqdm  # pyright: ignore[reportMissingModuleSource]
    except ImportError:
        return _line(shown, stream, start)
    bar: Any = tqdm(
        total=shown.stages, desc=f"compiling {shown.what}", file=stream, leave=False, bar_format=BAR
    )
    bar.start_t = start

    def draw() -> None:
        bar.n = min(shown.done, shown.stages)
        bar.set_postfix_str(shown.stage, refresh=False)
        bar.refresh()

    return draw, bar.close


def _line(
    shown: Progress, stream: TextIO, start: float
) -> tuple[Callable[[], None], Callable[[], None]]:
    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    def draw() -> None:
        stage = f", {shown.stage}" if shown.stage else ""
        write(f"{_WIPE}compiling {shown.what}: {time.time() - start:.0f} s{stage}")

    return draw, lambda: write(_WIPE)


def passes_watched(count: int) -> list[Instrument]:
    """What `count` passes are to be run with to be stages of the compile under way."""
    shown = _current.get()
    if shown is None:
        return []
    shown.stages += count
    from uopc.passes.manager import Instrument

    class PassesWatched(Instrument):
        """Tells the progress of each pass."""

        def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
            shown.enter(module_pass.name)

    return [PassesWatched()]


def counted(items: Sequence[_T], what: str) -> Iterable[_T]:
    """Items one by one: inside of a compile as part of its stage, else with a bar of their own on
    a terminal from the third second on, where tqdm is installed."""
    shown = _current.get()
    if shown is not None:
        return _counted_within(shown, items, what)
    try:
        from tqdm import tqdm  # pyright: ignore[reportMissingModuleSource]
    except ImportError:
        return items
    return tqdm(items, desc=what, delay=PATIENCE, disable=None, leave=False)


def _counted_within(shown: Progress, items: Sequence[_T], what: str) -> Generator[_T]:
    stage = shown.stage
    for number, item in enumerate(items):
        shown.stage = f"{stage}, {what} {number + 1}/{len(items)}"
        yield item
    shown.stage = stage
