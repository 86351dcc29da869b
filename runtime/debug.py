"""What the debug levels print, all of it to standard error.

    0  nothing
    1  a line a run:            softmax: 3 kernels, schedule 0.1 ms, run 4.4 ms
    2  and a line a kernel:       r_512        0.680 ms     0.39 GFLOP/s
    3  and a warm second run:     r_512        0.680 ms     0.39 GFLOP/s  (again: 0.523 ms)
    4  and the C of each kernel, when it is loaded for the first time

"Schedule" is all that precedes the run: compiling or finding the code, checking the arguments,
allocating. GFLOP/s comes from the plan's estimate, which takes symbolic sizes at their upper bound.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass

from uopc.runtime import environment

_said: set[str] = set()
_said_lock = threading.Lock()


@dataclass(frozen=True)
class KernelTime:
    """How long one kernel took, in seconds; `again` is its second run, or None."""

    name: str
    flops: int
    seconds: float
    again: float | None = None


def printable(text: str) -> str:
    """`text` with every control character spelled out: names come from anywhere."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def kernel_line(kernel: KernelTime) -> str:
    """The line of level 2, or of level 3 where there was a second run."""
    rate = kernel.flops / max(kernel.seconds, 1e-9) / 1e9
    line = f"  {printable(kernel.name):30s} {kernel.seconds * 1e3:8.3f} ms  {rate:7.2f} GFLOP/s"
    if kernel.again is not None:
        line += f"  (again: {kernel.again * 1e3:.3f} ms)"
    return line


def run_line(name: str, kernels: int, schedule_seconds: float, run_seconds: float) -> str:
    """The line of level 1."""
    count = f"{kernels} kernel{'' if kernels == 1 else 's'}"
    return (
        f"{printable(name)}: {count}, schedule {schedule_seconds * 1e3:.1f} ms, "
        f"run {run_seconds * 1e3:.1f} ms"
    )


def say(*lines: str) -> None:
    """Write lines to standard error in one piece, so that threads do not mix theirs."""
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] (None under pythonw)
        sys.stderr.write("".join(f"{line}\n" for line in lines))


def say_once(line: str, level: int | None = None) -> None:
    """Write a line the first time it comes up in this process, at debug level 1 and above."""
    if (environment.debug_level() if level is None else level) < 1:
        return
    with _said_lock:
        if line in _said:
            return
        _said.add(line)
    say(line)


def kernel_source(source: str, function: str) -> str:
    """The definition of one C function with the comment above it, or empty if there is none."""
    position = 0
    while (position := source.find(function, position)) >= 0:
        end = position + len(function)
        before, after = source[position - 1 : position], source[end : end + 1]
        if not _in_name(before) and after == "(":
            brace, semicolon = source.find("{", end), source.find(";", end)
            # A declaration or a call ends in a semicolon before any brace opens.
            if brace >= 0 and (semicolon < 0 or brace < semicolon):
                close = source.find("\n}", brace)
                close = len(source) if close < 0 else close + 2
                return source[_definition_start(source, position) : close]
        position = end
    return ""


def _definition_start(source: str, position: int) -> int:
    # Back over the lines that belong to it: attributes, the return type, and the comment above.
    start = source.rfind("\n", 0, position) + 1
    while start > 0:
        previous = source.rfind("\n", 0, start - 1) + 1
        line = source[previous : start - 1]
        if not line.strip() or line.startswith(("#", "}")) or line.rstrip().endswith(";"):
            break
        start = previous
    return start


def _in_name(character: str) -> bool:
    return character.isalnum() or character == "_"
