"""What a run of `beside.py` found, as a table for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ceilings import Ceilings
from works import Work

OURS = "uopc"
JSON, MARKDOWN = "results.json", "results.md"


@dataclass
class Result:
    """One library on one work. `failed` says why there are no times."""

    failed: str = ""
    error: float = 0.0
    first: float = 0.0
    """Seconds until the first result was there: compiling, and one call."""
    rounds: list[dict[str, float]] = field(default_factory=list[dict[str, float]])

    @property
    def least(self) -> float:
        """The shortest seconds of a call; infinite where there are none."""
        if self.failed:
            return math.inf
        return min((r["least"] for r in self.rounds), default=math.inf)


@dataclass
class Row:
    """All libraries on one work."""

    work: Work
    results: dict[str, Result] = field(default_factory=dict[str, Result])
    kernels: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def best(self) -> str:
        """The fastest of the others; empty where none has times."""
        others = {name: r.least for name, r in self.results.items() if name != OURS}
        best = min(others, key=lambda name: others[name], default="")
        return best if best and others[best] < math.inf else ""

    @property
    def ratio(self) -> tuple[float, float, float] | None:
        """The best other's least time over ours, and the least and the largest such ratio of a
        single round; None where one of both has no times."""
        ours = self.results.get(OURS)
        if ours is None or ours.least == math.inf or not self.best:
            return None
        other = self.results[self.best]
        each = [a["least"] / b["least"] for a, b in zip(other.rounds, ours.rounds, strict=True)]
        return other.least / ours.least, min(each), max(each)


@dataclass
class Run:
    """A whole run: libraries with their versions, what is missing, and a row for each work."""

    versions: dict[str, str]
    missing: list[str]
    threads: int
    ceilings: Ceilings | str
    rows: list[Row] = field(default_factory=list[Row])

    def failures(self) -> list[str]:
        """A line for each library that failed on a work."""
        return [
            f"{name} failed on {row.work.name}: {result.failed}"
            for row in self.rows
            for name, result in row.results.items()
            if result.failed
        ]

    def mean_ratio(self) -> float | None:
        """The geometric mean of the ratios; None where there are none."""
        logs = [math.log(row.ratio[0]) for row in self.rows if row.ratio]
        return math.exp(sum(logs) / len(logs)) if logs else None

    def others(self) -> float:
        """The most processors that other processes kept busy in the middle one of the turns."""
        turns = [t["others"] for row in self.rows for r in row.results.values() for t in r.rounds]
        return sorted(turns)[len(turns) // 2] if turns else 0.0


def _time(result: Result | None) -> str:
    if result is None:
        return "-"
    return "failed" if result.failed else f"{result.least * 1e3:.4g}"


def table(run: Run) -> list[list[str]]:
    """Cells as text: a head, then a row for each work; times in milliseconds."""
    names = list(run.versions)
    rows = [["work", *names, "ratio", "spread", "against", "rate"]]
    for row in run.rows:
        cells = [row.work.name, *(_time(row.results.get(name)) for name in names)]
        if row.ratio:
            middle, low, high = row.ratio
            cells += [f"{middle:.2f}", f"{low:.2f}-{high:.2f}", row.best]
        else:
            cells += ["-", "-", row.best or "-"]
        ours = row.results.get(OURS)
        rows.append([*cells, row.work.rate(ours.least) if ours and not ours.failed else ""])
    return rows


def notes(run: Run) -> list[str]:
    """What is to be known of the figures."""
    lines = [
        "Times are the least of many calls, in ms. The ratio is the best other library's time over "
        "ours: above 1 uopc is faster. Spread: of single rounds. Rate: of uopc."
    ]
    mean = run.mean_ratio()
    if mean is not None:
        lines.append(f"Geometric mean of the ratios: {mean:.2f}.")
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    lines.append(f"{processor()}, {run.threads} threads; {versions}.")
    if isinstance(run.ceilings, str):
        lines.append(f"Ceilings were not measured: {run.ceilings}")
    else:
        c = run.ceilings
        lines.append(f"Ceilings: {c.gflops:.0f} GFLOP/s of f32, {c.memory:.0f} GB/s from memory, "
                     f"{c.cache:.0f} GB/s from the cores' caches.")  # fmt: skip
    if run.others() > 0.1:
        lines.append(f"Other processes kept {run.others():.1f} processors busy meanwhile: measure "
                     "again on a quiet machine.")  # fmt: skip
    return lines


def processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _text_columns(run: Run) -> Sequence[bool]:
    """Which columns are aligned to the left."""
    return [True, *(False for _ in run.versions), False, False, True, True]


def as_text(run: Run) -> str:
    """The table with aligned columns, and the notes under it."""
    rows, left = table(run), _text_columns(run)
    widths = [max(len(row[k]) for row in rows) for k in range(len(left))]
    lines = [
        "  ".join(
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, "", *notes(run)])


def as_markdown(run: Run) -> str:
    """The same as Markdown, with a table of what a first call costs."""
    head, *rows = table(run)
    rule = ["---" if text else "---:" for text in _text_columns(run)]
    lines = ["# uopc beside other libraries", ""]
    lines += [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]
    lines += ["", *(f"{line}\n" for line in [*notes(run), *run.missing, *run.failures()])]
    lines += ["## Seconds to the first result", ""]
    lines.append("Compiling and one call, in a process that runs; caches on disk may be warm.\n")
    names = list(run.versions)
    lines += [f"| {' | '.join(['work', *names])} |", f"|---|{'---:|' * len(names)}"]
    for row in run.rows:
        found = [row.results.get(name) for name in names]
        cells = ["-" if r is None or r.failed else f"{r.first:.3g}" for r in found]
        lines.append(f"| {' | '.join([row.work.name, *cells])} |")
    return "\n".join(lines) + "\n"


def as_data(run: Run) -> dict[str, Any]:
    """Everything, as JSON has it."""
    rows: list[dict[str, Any]] = []
    for row in run.rows:
        work = {name: getattr(row.work, name) for name in ("name", "kind", "operations", "bytes")}
        ratio = row.ratio
        named = dict(zip(("ratio", "low", "high"), ratio, strict=True)) if ratio else {}
        results = {name: asdict(result) for name, result in row.results.items()}
        rows.append(work | named | {"best": row.best, "results": results, "kernels": row.kernels})
    ceilings = run.ceilings if isinstance(run.ceilings, str) else asdict(run.ceilings)
    return {"processor": processor(), "threads": run.threads, "versions": run.versions,
            "missing": run.missing, "ceilings": ceilings, "others": run.others(),
            "rows": rows}  # fmt: skip


def write(run: Run, folder: Path) -> None:
    """results.json and results.md."""
    text = json.dumps(as_data(run), indent=1)
    (folder / JSON).write_text(f"{text}\n", encoding="utf-8")
    (folder / MARKDOWN).write_text(as_markdown(run), encoding="utf-8")
