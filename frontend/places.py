"""The Python lines at which tensor ops are made, for the comments of kernels.

They are kept at debug level 4 only, which shows the C: looking for them takes time, and programs
that are kept between processes are the same wherever they were written.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from uopc.frontend import debugging
from uopc.runtime.environment import MAX_DEBUG_LEVEL


class Place(NamedTuple):
    """A line of Python."""

    file: str
    line: int


def caller_place() -> Place | None:
    """The line outside of uopc that is being run; None where the C is not shown."""
    if not debugging.showing_c or debugging.debug_level() < MAX_DEBUG_LEVEL:
        return None
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith("uopc."):
            return Place(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None
