"""Which names the code that runs looks up: what no such name leads to, it does not read."""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

ANY_NAME = "*"
"""Stands for all names, where it is not known by which one a value is read."""
CALLED = "()"
"""Ends the names that are looked up to be called, as that of a method."""


def is_ours(module: str | None) -> bool:
    """Whether a module is one of uopc's."""
    return (module or "").startswith("uopc.")


_BY_ANY_NAME = frozenset(
    ("getattr", "vars", "__dict__", "__getattribute__", "attrgetter", "eval", "exec", "globals")
)
_READS_ATTRIBUTES = frozenset(("copy", "dataclasses", "operator"))
"""Modules of the standard library that read attributes of any object they are given."""


@contextmanager
def names_read() -> Generator[set[str]]:
    """The names that the code which runs inside of the block looks up, there after the block.

    All names where a profiler is at work, since this needs its hook. The method of `x.step()` is
    there as `step()`: what is called is no plain value.
    """
    read: set[str] = set()
    if sys.getprofile() is not None:
        read.add(ANY_NAME)
        yield read
        return
    codes: dict[types.CodeType, Any] = {}

    def note(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes[frame.f_code] = frame.f_globals.get("__name__")

    sys.setprofile(note)
    try:
        yield read
    finally:
        sys.setprofile(None)
    for code, module in codes.items():
        if _may_read(module or ""):
            read |= _looked_up(code, any_name=not is_ours(module))


def _may_read(module: str) -> bool:
    top = module.partition(".")[0]
    if top in ("uopc", "numpy"):
        return module.startswith("uopc.frontend.nn")
    return top in _READS_ATTRIBUTES or top not in sys.stdlib_module_names or top == "__main__"


def _looked_up(code: types.CodeType, *, any_name: bool) -> set[str]:
    found: set[str] = set()
    for step in dis.get_instructions(code):
        if not step.opname.startswith("LOAD_") or not isinstance(step.argval, str):
            if step.opname == "MATCH_CLASS" and any_name:
                found.add(ANY_NAME)
            continue
        called = step.opname == "LOAD_METHOD" or (
            step.opname == "LOAD_ATTR" and sys.version_info >= (3, 12) and (step.arg or 0) & 1
        )
        if any_name and step.argval in _BY_ANY_NAME:
            found.add(ANY_NAME)
        if step.opname not in ("LOAD_CONST", "LOAD_FAST"):
            found.add(step.argval + CALLED if called else step.argval)
    return found
