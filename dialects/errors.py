"""The one exception that a user's mistake may cause, and how it is printed.

A message says what is wrong, where, what was expected and got, and what to do next:

    softmax.mlir:3:8: error: axis 2 is out of range for a tensor of rank 2 [bad-axis]
      in pass: kernelize
      hint: axes count from 0 to 1
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A place in a file: line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class UopcError(Exception):
    """A mistake in what the user fed in, told in words.

    `kind` is a short kebab-case name with an anchor of the same name in docs/errors.md.
    `excerpt` holds the lines of the source that the message speaks of, with a caret under them.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        hint: str = "",
        location: SourceLocation | None = None,
        pass_name: str = "",
        op_text: str = "",
        excerpt: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.location = location
        self.pass_name = pass_name
        self.op_text = op_text
        self.excerpt = excerpt

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        lines = [f"{where}error: {self.message} [{self.kind}]"]
        if self.excerpt:
            lines.append(self.excerpt)
        if self.op_text:
            lines.append(f"  op: {self.op_text}")
        if self.pass_name:
            lines.append(f"  in pass: {self.pass_name}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class UnsupportedError(UopcError, NotImplementedError):
    """What is asked for is right, and not there yet: an op, a type, a form of an op."""
