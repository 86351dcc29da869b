"""The debug level of the lazy frontend, and a sign of life while a long compile runs.

    with uopc.debug(2):
        y.realize()

Levels are those of runtime/debug.py; outside of such a block UOPC_DEBUG decides.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from uopc.dialects.errors import UopcError
from uopc.runtime import environment

_level: ContextVar[int | None] = ContextVar("uopc_debug_level", default=None)

showing_c: int = int(environment.shows_c())
"""Above 0 where some thread may be at the level that shows the C: quicker to ask than the level.
UOPC_DEBUG counts as it was when this module was imported."""
_lock = threading.Lock()

PATIENCE = 2.0
"""Seconds a compile may take before a terminal is told."""


@contextmanager
def debug(level: int) -> Generator[None]:
    """Set the debug level, 0 to 4, inside of a block, for this thread.

    Raises UopcError [bad-option] for another level.
    """
    if not 0 <= level <= environment.MAX_DEBUG_LEVEL:
        raise UopcError(
            "bad-option",
            f"the debug level is {level}",
            hint=f"expected 0 to {environment.MAX_DEBUG_LEVEL}",
        )
    global showing_c
    shows = int(level == environment.MAX_DEBUG_LEVEL)
    with _lock:
        showing_c += shows
    token = _level.set(level)
    try:
        yield
    finally:
        _level.reset(token)
        with _lock:
            showing_c -= shows


def debug_level() -> int:
    """The level that holds here: of the innermost `debug` block, or of UOPC_DEBUG."""
    level = _level.get()
    return environment.debug_level() if level is None else level


def chosen_level() -> int | None:
    """The level of the innermost `debug` block, if there is one."""
    return _level.get()


@contextmanager
def sign_of_life(what: str) -> Generator[None]:
    """While the block runs, tell a terminal after PATIENCE seconds, and from then on each second,
    how long it has been; wipe the line at the end. Nothing is printed where there is no terminal.
    """
    stream = sys.stderr
    if stream is None or not stream.isatty():  # pyright: ignore[reportUnnecessaryComparison] (None under pythonw)
        yield
        return
    ended = threading.Event()
    start = time.monotonic()

    def watch() -> None:
        if ended.wait(PATIENCE):
            return
        while True:
            stream.write(f"\r\x1b[Kcompiling {what}: {time.monotonic() - start:.0f} s")
            stream.flush()
            if ended.wait(1.0):
                break
        stream.write("\r\x1b[K")
        stream.flush()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
