"""Writes an output file whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from uopc.dialects.errors import UopcError
from uopc.dialects.source_text import printable


def write_output(path: str | None, text: str) -> None:
    """Write text to a file, or to standard output for None and `-`.

    A file appears, or changes, at once when all is written: nobody reads half of it, and a failed
    run leaves the old one. Devices and pipes are written to as they are.

    Raises UopcError [cannot-write].
    """
    if path is None or path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_text(text, encoding="utf-8")
        else:
            _replace(target, text)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise UopcError("cannot-write", f"cannot write {printable(path)!r}: {reason}") from error


def _replace(target: Path, text: str) -> None:
    if target.is_dir():
        raise IsADirectoryError(21, "Is a directory")
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, mode)  # noqa: PTH101 -- a name from mkstemp
        os.replace(temporary, target)  # noqa: PTH105 -- a name from mkstemp
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108 -- a name from mkstemp
        raise


def _umask() -> int:
    """The process's file mode mask, which Python can read only by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
