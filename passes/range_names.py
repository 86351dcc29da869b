"""Names for index ranges: i, j, k, … as a person writes loops."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

_LETTERS = "ijklmnpqrstuvw"


class RangeNames:
    """Gives i, j, k, …, then i1, j1, …; never a name that is taken."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._names = (letter + (str(n) if n else "") for n in count() for letter in _LETTERS)

    def next(self) -> str:
        for name in self._names:
            if name not in self._taken:
                return name
        raise AssertionError("there is always another name")
