"""Run StableHLO's own test programs, where they are at hand, and print what passes.

    python tests/conformance/run_conformance.py FOLDER [--target interpreter|c|cuda] [--match RE]
                                                       [--every N]

FOLDER holds suites, each a folder with cases.json (per case: family, ops, MLIR types, the kind of
each check), NAME.mlir, NAME.pretty.mlir, and NAME.npz with inputs in_0, … and results exp_0, …;
bf16 stands there as its bits. Exit status 1 if anything but `pass` and `unsupported` is met.

`--every N` runs a sample: of the cases, family by family, each N-th. `--target cuda` runs where
UOPC_CUDA says; UOPC_CUDA=emulator needs no GPU and is slow, so a sample is for it.

pass: the suite's own check holds (equal; at most 3 ulp; 1e-3; a tolerance of the case's own).
close: only a looser relative one does. unsupported: UnsupportedError, which names op and reason.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

VERDICTS = ("pass", "close", "wrong", "unsupported", "error", "crash", "timeout")
MAX_ULP = 3
ALMOST = 1e-3
LOOSE = {"f64": 1e-10, "f32": 1e-4, "f16": 1e-2, "bf16": 4e-2}
"""Relative tolerances of `close`."""
UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def compare(got: Array, expected: Array, element: str, check: str) -> tuple[str, str]:
    """The verdict of one result, and why."""
    if element == "bf16":
        expected = expected.view(ml_dtypes.bfloat16)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return "wrong", f"{got.dtype}{list(got.shape)} for {expected.dtype}{list(expected.shape)}"
    if element not in LOOSE:
        bad = int((got != expected).sum())
        return ("wrong", f"{bad} of {got.size} differ") if bad else ("pass", "")
    a, b = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        finite, apart = np.isfinite(a) & np.isfinite(b), np.abs(a - b)
        near = same | (finite & (apart <= LOOSE[element] * np.maximum(1e-3, np.abs(b))))
        if check == "expect_eq":
            good = same
        elif check == "expect_almost_eq":
            good = same | (apart <= ALMOST)
        elif check.startswith("allclose:"):
            relative, absolute = map(float, check.split(":")[1:])
            good = same | (finite & (apart <= absolute + relative * np.abs(b)))
        else:
            good = same | (finite & (ulps(got, expected) <= MAX_ULP))
    if good.all():
        return "pass", ""
    at = np.unravel_index(int(np.argmin(good)), good.shape)
    why = f"{int((~good).sum())} of {good.size} differ: {a[at]!r} for {b[at]!r}"
    return ("close" if near.all() else "wrong"), why


def ulps(got: Array, expected: Array) -> Array:
    """How many floats lie between two."""
    unsigned = UNSIGNED[got.dtype.itemsize]
    top = unsigned(1 << (8 * got.dtype.itemsize - 1))
    bits = [np.ascontiguousarray(v).reshape(v.shape).view(unsigned) for v in (got, expected)]
    sign = [(v & top) != 0 for v in bits]
    size = [(v & ~top).astype(np.uint64) for v in bits]
    between = np.where(size[0] > size[1], size[0] - size[1], size[1] - size[0])
    return np.where(sign[0] == sign[1], between, size[0] + size[1])


def run_case(folder: Path, name: str, facts: dict[str, Any], options: Options) -> tuple[str, str]:
    """The verdict of a case, and why. Raises what the compiler raises."""
    from uopc.frontend import stablehlo

    ending = ".pretty.mlir" if options.form == "pretty" else ".mlir"
    text = (folder / f"{name}{ending}").read_text(encoding="utf-8")
    arrays = np.load(folder / f"{name}.npz")
    inputs = [arrays[f"in_{k}"] for k in range(len(facts["in_types"]))]
    results = stablehlo.run_once(text, inputs, options.target, opt_level=options.opt_level)
    if len(results) != len(facts["checks"]):
        return "wrong", f"{len(results)} results for {len(facts['checks'])}"
    verdicts: list[tuple[str, str]] = []
    for k, (got, check, type_) in enumerate(
        zip(results, facts["checks"], facts["out_types"], strict=True)
    ):
        element = re.sub(r"^(?:\d+x)*", "", type_[len("tensor<") : -1])
        verdicts.append(compare(np.asarray(got), arrays[f"exp_{k}"], element, check))
    return max(verdicts, key=lambda v: VERDICTS.index(v[0]), default=("pass", ""))


@dataclass(frozen=True)
class Options:
    """What is the same for all cases."""

    target: str
    form: str
    timeout: float
    opt_level: int


def worker(pipe: Connection, folder: Path, options: Options) -> None:
    """Run the cases that come through a pipe. A process of its own: a crash costs one case."""
    while (job := pipe.recv()) is not None:
        name, facts = job
        try:
            verdict = run_case(folder, name, facts, options)
        except NotImplementedError as error:
            verdict = ("unsupported", " ".join(str(error).split())[:300])
        except Exception as error:
            verdict = ("error", " ".join(repr(error).split())[:300])
        pipe.send(verdict)


class Worker:
    """A process, and the case that it runs."""

    def __init__(self, folder: Path, options: Options) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=worker, args=(there, folder, options), daemon=True)
        self.process.start()
        there.close()
        self.case = ""
        self.since = time.monotonic()

    def give(self, name: str, facts: dict[str, Any]) -> None:
        self.case, self.since = name, time.monotonic()
        self.pipe.send((name, facts))

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


def run_suite(
    folder: Path, cases: dict[str, Any], options: Options, jobs: int
) -> dict[str, tuple[str, str]]:
    """The verdict of each case."""
    verdicts: dict[str, tuple[str, str]] = {}
    pending = sorted(cases, reverse=True)
    workers = [Worker(folder, options) for _ in range(min(jobs, len(pending)))]
    for each in workers:
        name = pending.pop()
        each.give(name, cases[name])
    while len(verdicts) < len(cases):
        ready = set(wait([w.pipe for w in workers], timeout=0.5))
        for position, each in enumerate(workers):
            if not each.case:
                continue
            late = time.monotonic() - each.since > options.timeout
            if each.pipe in ready:
                try:
                    verdicts[each.case] = each.pipe.recv()
                except EOFError:
                    each.process.join()
                    verdicts[each.case] = ("crash", f"exit status {each.process.exitcode}")
                    each = workers[position] = Worker(folder, options)
            elif late:
                verdicts[each.case] = ("timeout", f"{options.timeout} s")
                each.stop()
                each = workers[position] = Worker(folder, options)
            else:
                continue
            each.case = ""
            if pending:
                name = pending.pop()
                each.give(name, cases[name])
    for each in workers:
        each.stop()
    return verdicts


def report(cases: dict[str, Any], verdicts: dict[str, tuple[str, str]], seconds: float) -> bool:
    """Print families and shares; whether nothing is wrong, in error, crashed or late."""
    families: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, (verdict, _) in verdicts.items():
        families[cases[name]["family"]][verdict] += 1
    print(f"{'family':28}{'cases':>7}" + "".join(f"{v:>12}" for v in VERDICTS))
    total: Counter[str] = Counter()
    for family, counts in sorted(families.items()):
        total += counts
        columns = "".join(f"{counts[v] or '':>12}" for v in VERDICTS)
        print(f"{family:28}{counts.total():7}{columns}")
    print(f"{'all':28}{total.total():7}" + "".join(f"{total[v]:>12}" for v in VERDICTS))
    share = np.mean([c["pass"] / c.total() for c in families.values()]) if families else 0.0
    print(
        f"strict pass {total['pass']} of {total.total()} "
        f"({100 * total['pass'] / max(1, total.total()):.1f}%), mean family share {share:.3f}, "
        f"{seconds:.1f} s"
    )
    for name, (verdict, why) in sorted(verdicts.items()):
        if verdict != "pass":
            print(f"{verdict}\t{name}\t{why}")
    return not any(total[v] for v in ("wrong", "error", "crash", "timeout"))


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the suites are")
    parser.add_argument("--target", choices=("interpreter", "c", "cuda"), default="interpreter")
    parser.add_argument("--form", choices=("generic", "pretty"), default="generic")
    parser.add_argument("-O", dest="opt_level", type=int, default=2, help="the C compiler's -O")
    parser.add_argument("--match", default="", help="only cases whose name has this pattern")
    parser.add_argument("--every", type=int, default=1, help="only each so-manieth case")
    parser.add_argument("--suite", action="append", help="only these suites")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60, help="seconds a case may take")
    options = parser.parse_args(arguments)
    suites = sorted(path.parent for path in options.folder.glob("*/cases.json"))
    suites = [s for s in suites if not options.suite or s.name in options.suite]
    if not suites:
        print(f"no suites in {options.folder}: nothing is run; CONFORMANCE=FOLDER names others")
        return 0
    good = True
    for suite in suites:
        every = json.loads((suite / "cases.json").read_text(encoding="utf-8"))
        cases = {n: facts for n, facts in every.items() if re.search(options.match, n)}
        ordered = sorted(cases, key=lambda n: (cases[n]["family"], n))
        cases = {name: cases[name] for name in ordered[:: options.every]}
        print(f"{suite.name}, {options.target}", flush=True)
        start = time.monotonic()
        given = Options(options.target, options.form, options.timeout, options.opt_level)
        verdicts = run_suite(suite, cases, given, options.jobs)
        good &= report(cases, verdicts, time.monotonic() - start)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
