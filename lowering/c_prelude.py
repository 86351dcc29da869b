"""Helper functions that the C text may need, each written only if something uses it.

A helper is asked for by name. `Prelude.text` prints those asked for, each after the helpers it
needs, so a program that uses none has none.
"""

from __future__ import annotations

from collections.abc import Callable

Writer = Callable[["Prelude"], str]


class Prelude:
    """The helpers of one C file, in the order they were first asked for."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._typedefs: dict[str, str] = {}
        self.headers: set[str] = set()
        """Standard headers beside <stdint.h>."""
        self.has_arrays = False
        """Whether a function has local arrays, which start without values."""

    def need(self, name: str, write: Writer) -> str:
        """Make sure that the helper `name` is defined; `write` gives its text. Returns `name`."""
        if name not in self._texts:
            text = write(self)  # first what it needs itself
            self._texts[name] = text
        return name

    def typedef(self, name: str, text: str) -> str:
        """Make sure that the type `name` is defined, as `text`."""
        self._typedefs.setdefault(name, text)
        return name

    def header(self, name: str) -> None:
        """Make sure that the standard header `name` (`math.h`) is included."""
        self.headers.add(name)

    def names(self) -> list[str]:
        """The helpers and types defined."""
        return [*self._typedefs, *self._texts]

    def type_lines(self) -> list[str]:
        """The type definitions, one a line."""
        return list(self._typedefs.values())

    def helpers(self) -> dict[str, str]:
        """The function definitions by their names."""
        return dict(self._texts)
