"""Text that a user feeds in, checked before the parser sees it.

What a file can hold that a recursive parser cannot: bytes that are no text, brackets nested
deeper than Python's stack. Both are refused here, with the place told as file:line:col.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path

from uopc.dialects.errors import SourceLocation, UopcError

NESTING_LIMIT = 80
"""How deep brackets may nest. The parser takes up to 10 Python frames for a bracket (measured: 4.5
for `({`, 7 for `{` and `[`, 10 for nested dictionaries), and Python stops at 1000 frames."""

EXCERPT_WIDTH = 100
"""How many columns of a source line an error shows."""

_BYTECODE_MAGIC = b"ML\xefR"
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|[(\[{<>}\])]')
_OPENING = frozenset("([{<")
_CLOSING = frozenset(")]}>")


class LineTable:
    """Turns offsets into text into lines and columns, in logarithmic time.

    `first_line` is the line number of the text's first line: a chunk of a larger file
    starts further down.
    """

    def __init__(self, text: str, name: str, first_line: int = 1) -> None:
        self.text = text
        self.name = name
        self.first_line = first_line
        self._starts = [0]
        self._starts.extend(match.end() for match in re.finditer("\n", text))

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1; columns count characters."""
        index = bisect_right(self._starts, offset) - 1
        return index + self.first_line, offset - self._starts[index] + 1

    def location(self, offset: int) -> SourceLocation:
        """The place of an offset, for an error message."""
        return SourceLocation(self.name, *self.line_and_column(offset))

    def excerpt(self, start: int, end: int) -> str:
        """The line that holds `start`, with carets under start..end.

        A long line is cut around the carets, and what a terminal must not get is replaced.
        """
        index = bisect_right(self._starts, start) - 1
        line_start = self._starts[index]
        line_end = self.text.find("\n", line_start)
        line_end = len(self.text) if line_end < 0 else line_end
        window_start = line_start
        if start - line_start > EXCERPT_WIDTH * 3 // 4:
            window_start = start - EXCERPT_WIDTH // 2
        window_end = min(line_end, window_start + EXCERPT_WIDTH)
        line = printable(self.text[window_start:window_end])
        width = max(1, min(end, window_end) - start)
        return f"  {line}\n  {' ' * (start - window_start)}{'^' * width}"


def printable(text: str) -> str:
    """`text` with every control character replaced by `?`, so that it is safe to show."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else " " if character == "\t" else "?"
        for character in text
    )


def decode_source(data: bytes, name: str, first_line: int = 1) -> str:
    """The text of UTF-8 bytes.

    Raises UopcError [not-text] for anything else, with the place of the first wrong byte.
    """
    if data.startswith(_BYTECODE_MAGIC):
        raise UopcError(
            "not-text",
            f"{name} is MLIR bytecode; only MLIR text is read",
            hint="convert it: mlir-opt FILE -o FILE.mlir",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        location = LineTable(before, name, first_line).location(len(before))
        raise UopcError(
            "not-text",
            f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8 text",
            location=location,
            hint="MLIR text in UTF-8 is expected; is this the right file?",
        ) from error


def read_source(path: str) -> bytes:
    """The bytes of a file. Raises UopcError [cannot-read], which says why."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise UopcError("cannot-read", f"cannot read {printable(path)!r}: {reason}") from error


def check_nesting(lines: LineTable) -> None:
    """Refuse brackets nested deeper than NESTING_LIMIT. Raises UopcError [nesting-too-deep].

    Strings, comments and arrows are skipped; `<` and `>` count as brackets, since they are for
    types. One pass over the text.
    """
    text = lines.text
    if sum(map(text.count, _OPENING)) <= NESTING_LIMIT:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in _OPENING:
            depth += 1
            if depth > NESTING_LIMIT:
                start = match.start()
                raise UopcError(
                    "nesting-too-deep",
                    f"brackets nest deeper than {NESTING_LIMIT} levels",
                    location=lines.location(start),
                    excerpt=lines.excerpt(start, start + 1),
                    hint="split the program into functions, or the value into several attributes",
                )
        elif token in _CLOSING and depth:
            depth -= 1
