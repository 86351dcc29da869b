"""uopc beside the libraries that people would use instead, in one run: make bench.

    python benchmarks/beside.py [WORK ...] [--out build/bench] [--quick]

WORK is the beginning of a name: "product" measures all products. Libraries are those installed
here; numpy always is. Each runs in a process of its own, and they take turns, several rounds a
work, so that what else the machine does meets all of them. The ratio of a row is the least time of
the best other library over ours, its spread that of the single rounds. Every value is compared.

Writes a table to the terminal, and to the folder results.json, results.md and, where matplotlib is
installed, ratios.png and roofline.png. Exits with 1 if a value was wrong or a library failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import report
import worker
from ceilings import Ceilings, higher, measured_ceilings
from library_numpy import expected
from works import WORKS, Work

from uopc.frontend.progress import counted


class Process:
    """A library in a process of its own; see worker.py."""

    def __init__(self, name: str, threads: int, log: Any) -> None:
        """Start it. Its `version` is None where it could not be imported."""
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, worker.__file__, name, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        self.version: str | None = self._answer().get("version")

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request, {"failed": why} if the process has ended."""
        assert self._process.stdin is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except OSError:
            return {"failed": "the process ended"}
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"failed": "the process ended"}

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def measure(
    work: Work, processes: Sequence[Process], options: argparse.Namespace, folder: Path
) -> report.Row:
    """All libraries on one work, in turns."""
    file = folder / "expected.npy"
    np.save(file, expected(work))
    row = report.Row(work)
    ready: list[Process] = []
    for process in processes:
        answer = process.ask(do="prepare", work=work.name, expected=str(file))
        if "lacks" in answer:
            continue
        result = row.results[process.name] = report.Result(answer.get("failed", ""))
        if result.failed:
            continue
        result.error, result.first = answer["error"], answer["first"]
        if result.error > work.tolerance:
            result.failed = f"wrong by {result.error:.2g} of the largest number"
        else:
            ready.append(process)
    for _ in range(options.rounds):
        for process in ready:
            answer = process.ask(do="measure", seconds=options.seconds, tries=options.tries)
            if "failed" in answer:
                row.results[process.name].failed = answer["failed"]
            else:
                row.results[process.name].rounds.append(answer)
    row.kernels = kernels_of(ready, options.seconds)
    return row


def kernels_of(ready: Sequence[Process], seconds: float) -> list[dict[str, Any]]:
    """uopc's kernels, if it is among those that are ready."""
    for process in ready:
        if process.name == "uopc":
            return process.ask(do="kernels", seconds=seconds).get("kernels", [])
    return []


def started(names: Sequence[str], threads: int, log: Any) -> tuple[list[Process], list[str]]:
    """A process for each library that is installed, and a line for each that is not."""
    processes: list[Process] = []
    missing: list[str] = []
    for name in names:
        if importlib.util.find_spec(name) is None:
            missing.append(f"{name} is not installed: pip install -e '.[bench]' has it")
            continue
        process = Process(name, threads, log)
        if process.version is None:
            missing.append(f"{name} is installed, but does not import: see libraries.log")
        else:
            processes.append(process)
    return processes, missing


def chosen_works(beginnings: Sequence[str], quick: bool) -> list[Work]:
    """Works by the beginning of their names; all, or the small ones, where none is given."""
    if not beginnings:
        return [work for work in WORKS.values() if work.small or not quick]
    found = [work for name, work in WORKS.items() if name.startswith(tuple(beginnings))]
    if not found:
        raise SystemExit(f"no work begins so; there are: {'; '.join(WORKS)}")
    return found


def run(options: argparse.Namespace) -> report.Run:
    """Everything that is measured."""
    works = chosen_works(options.works, options.quick)
    log_file = options.out / "libraries.log"
    with log_file.open("w") as log, tempfile.TemporaryDirectory() as folder:
        processes, missing = started(options.libraries, options.threads, log)
        result = report.Run({p.name: p.version or "" for p in processes}, missing,
                            options.threads, ceilings_of(options))  # fmt: skip
        try:
            for work in counted(works, "works"):
                result.rows.append(measure(work, processes, options, Path(folder)))
        finally:
            for process in processes:
                process.stop()
    result.ceilings = higher(result.ceilings, ceilings_of(options))
    return result


def ceilings_of(options: argparse.Namespace) -> Ceilings | str:
    """What the machine reaches now."""
    return measured_ceilings(options.threads, *((0.3, 256) if options.quick else (3.0, 512)))


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure uopc beside other libraries.")
    parser.add_argument("works", nargs="*", metavar="WORK", help="the beginning of a work's name")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="a folder")
    parser.add_argument("--quick", action="store_true", help="two small works, briefly")
    parser.add_argument("--rounds", type=int, help="turns that each library has (3)")
    parser.add_argument("--seconds", type=float, help="how long a turn measures (0.2)")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--threads", type=int, default=usable, help="of each library (%(default)s)")
    parser.add_argument("--libraries", nargs="+", choices=worker.LIBRARIES,
                        default=list(worker.LIBRARIES), help="all that are installed")  # fmt: skip
    options = parser.parse_args(arguments)
    options.tries = 1 if options.quick else 3
    options.rounds = options.rounds or (2 if options.quick else 3)
    options.seconds = options.seconds or (0.02 if options.quick else 0.2)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write as the command line says; the exit status."""
    options = parsed(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    result = run(options)
    print(report.as_text(result))
    report.write(result, options.out)
    for line in [*draw(options.out), *result.missing, *result.failures()]:
        print(line)
    return 1 if result.failures() else 0


def draw(folder: Path) -> list[str]:
    """Draw the pictures; a line that says where they are, or why there are none."""
    if importlib.util.find_spec("matplotlib") is None:
        return ["matplotlib is not installed: no pictures; pip install -e '.[bench]' has it"]
    import plots

    result = json.loads((folder / report.JSON).read_text(encoding="utf-8"))
    return [f"wrote {name}" for name in plots.draw(result, folder)]


if __name__ == "__main__":
    sys.exit(main())
