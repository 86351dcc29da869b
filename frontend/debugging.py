"""The debug level of the lazy frontend.

    with uopc.debug(2):
        y.realize()

Levels are those of runtime/debug.py; outside of such a block UOPC_DEBUG decides.
"""

from __future__ import annotations

import threading
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
