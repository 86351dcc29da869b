"""How a tool ends: every outcome of a run as words on standard error and an exit status.

0    all went well
1    the input, the arguments or a file is at fault; the message says what to do
2    a bug in the compiler (never hidden; --show-traceback shows where)
130  interrupted from the keyboard
141  the reader of our output went away
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from uopc.dialects.errors import UopcError

USER_ERROR = 1
INTERNAL_ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def report(error: BaseException, show_traceback: bool = False) -> int:
    """Write an exception to standard error and return the exit status for it."""
    if show_traceback:
        traceback.print_exception(error, file=sys.stderr)
    if isinstance(error, UopcError):
        print(error, file=sys.stderr)
        return USER_ERROR
    from uopc.passes.manager import InternalError

    if not isinstance(error, InternalError):
        error = InternalError("the tool itself", error)
    print(error, file=sys.stderr)
    return INTERNAL_ERROR


def run_guarded(tool: Callable[[], int], show_traceback: bool = False) -> int:
    """Run a tool's body and turn whatever it raises into an exit status.

    `SystemExit` (from --help, say) passes through.
    """
    try:
        status = tool()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _detach_standard_output()
        return BROKEN_PIPE
    except OSError as error:
        # Files are opened with their own messages; what is left is standard output.
        print(f"error: cannot write the output: {error.strerror} [cannot-write]", file=sys.stderr)
        _detach_standard_output()
        return USER_ERROR
    except MemoryError:
        print("error: memory ran out [out-of-memory]", file=sys.stderr)
        return USER_ERROR
    except Exception as error:
        return report(error, show_traceback)
    return status


def use_utf8() -> None:
    """Write UTF-8 whatever the locale says: MLIR text is UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _detach_standard_output() -> None:
    """Python flushes standard output once more at exit; let it go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
