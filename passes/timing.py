"""Where the time of a run goes: a table of phases and passes with milliseconds and op counts."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from uopc.dialects.verification import walk_operations
from uopc.passes.manager import Instrument


@dataclass
class Row:
    """Seconds spent in one phase; `ops` counts the module's ops after it, if it changes them."""

    label: str
    seconds: float = 0.0
    ops: int | None = None


class Timing(Instrument):
    """Collects the seconds of phases (`with timing.phase("parse")`) and of passes.

    Counting ops and the instruments' own work are not counted as time of a phase. Rows of the
    same place and label add up, so the chunks of a split file share one table.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], Row] = {}
        self._place = 0
        self._start = 0.0

    def start_module(self) -> None:
        """Begin with a module: the next rows are the first again."""
        self._place = 0

    @contextmanager
    def phase(self, label: str) -> Generator[Row]:
        """Time a block as one row."""
        row = self._next_row(label)
        start = time.perf_counter()
        try:
            yield row
        finally:
            row.seconds += time.perf_counter() - start

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def after_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Stop the clock and count ops."""
        row = self._next_row(module_pass.name)
        row.seconds += time.perf_counter() - self._start
        row.ops = (row.ops or 0) + count_ops(module)

    def before_verify(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Start the verifier's clock."""
        self._start = time.perf_counter()

    def after_verify(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Stop the verifier's clock."""
        self._next_row("  verify").seconds += time.perf_counter() - self._start

    def write_table(self, stream: IO[str]) -> None:
        """Write the rows in order, with each one's share of the sum."""
        rows = list(self._rows.values())
        total = sum(row.seconds for row in rows)
        stream.write("// -----// Timing: wall time, ops after the phase //----- //\n")
        stream.write(f"{'ms':>10}  {'%':>5}  {'ops':>8}  phase\n")
        for row in [*rows, Row("total", total)]:
            share = 100 * row.seconds / total if total else 0.0
            ops = "" if row.ops is None else str(row.ops)
            stream.write(f"{1000 * row.seconds:10.2f}  {share:5.1f}  {ops:>8}  {row.label}\n")
        stream.flush()

    def _next_row(self, label: str) -> Row:
        row = self._rows.setdefault((self._place, label), Row(label))
        self._place += 1
        return row


class TimePasses(Instrument):
    """xDSL's --time-passes: a line for each pass, to standard output."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self._start = 0.0

    def before_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def after_pass(self, module_pass: ModulePass, module: ModuleOp) -> None:
        """Write the line."""
        seconds = time.perf_counter() - self._start
        self.stream.write(f"Pass {module_pass.name} took {seconds} seconds\n")


def count_ops(module: Operation) -> int:
    """The number of ops inside the module."""
    return sum(1 for _ in walk_operations(module)) - 1
