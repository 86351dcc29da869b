"""An op on one line, for an error message."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.printer import Printer

from uopc.dialects.source_text import printable

OP_TEXT_WIDTH = 200
"""How many characters of an op a message shows."""


class _LineFull(Exception):
    """The printer wrote all that is wanted."""


class _ShortStream(StringIO):
    """Stops the printer as soon as enough is written: a function may hold a million ops."""

    def write(self, text: str, /) -> int:
        written = super().write(text)
        if self.tell() > 2 * OP_TEXT_WIDTH:
            raise _LineFull
        return written


def op_text(operation: Operation) -> str:
    """The op in generic form on one line of at most OP_TEXT_WIDTH characters.

    Never fails: an op too broken to be printed is given by its name.
    """
    stream = _ShortStream()
    try:
        Printer(stream=stream, print_generic_format=True).print_op(operation)
    except _LineFull:
        pass
    except Exception:
        # Broken IR is what this function has to describe; what was written before says most.
        stream.truncate(min(stream.tell(), OP_TEXT_WIDTH))
    text = printable(" ".join(stream.getvalue().split()))
    if not text:
        return f'"{op_name(operation)}"'
    return text if len(text) <= OP_TEXT_WIDTH else text[: OP_TEXT_WIDTH - 2] + " …"


def op_name(operation: Operation) -> str:
    """The op's name; of an unregistered op, the name the text gave it."""
    if isinstance(operation, UnregisteredOp):
        return printable(operation.op_name.data)
    return operation.name


def value_text(value: SSAValue) -> str:
    """A value in words: its name if it has one, else what makes it."""
    if value.name_hint:
        return f"%{value.name_hint}"
    if isinstance(value, OpResult):
        return f"result {value.index} of '{op_name(value.op)}'"
    owner = value.owner
    if isinstance(owner, Block) and (parent := owner.parent_op()) is not None:
        return f"a block argument of '{op_name(parent)}'"
    return "a value"
