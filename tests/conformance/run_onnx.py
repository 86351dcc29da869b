"""Run the node tests of the onnx package, and print what passes.

    python tests/conformance/run_onnx.py [--names FILE] [--target interpreter|c] [--match RE]

FILE lists the tests' names, one a line; without it all are run that need no type or op that is
refused on purpose. A test is a model, inputs and outputs, compared as onnx itself does: equal
types and shapes, and numpy's allclose with the test's own tolerances. Exit status 1 if anything
but `pass` and `unsupported` is met.

Where onnx is not installed this says so and is no failure.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

VERDICTS = ("pass", "wrong", "unsupported", "error")


def collect() -> dict[str, Any]:
    """The node tests of onnx by name. Their building warns of many things: not ours to see."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in collect_testcases(None)}


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """Inputs or outputs of a test, which are arrays or protobuf tensors."""
    from onnx import numpy_helper

    return [
        v
        if isinstance(v, np.ndarray | np.generic)
        else numpy_helper.to_array(v)
        if hasattr(v, "dims")
        else v
        for v in values
    ]


def compare(got: Any, expected: Any, case: Any) -> str:
    """Why a result is not the expected one, or nothing."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)} for {expected.dtype}{list(expected.shape)}"
    if got.dtype.name == "bfloat16":
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    try:
        np.testing.assert_allclose(got, expected, case.rtol, case.atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:200]
    return ""


def run_case(case: Any, options: dict[str, Any]) -> tuple[str, str]:
    """The verdict of a test, and why."""
    import uopc

    try:
        program = uopc.from_onnx(case.model, **options)
        for inputs, outputs in case.data_sets:
            results = program(*arrays_of(inputs))
            results = results if isinstance(results, tuple) else (results,)
            for got, expected in zip(results, arrays_of(outputs), strict=True):
                if why := compare(np.asarray(got), np.asarray(expected), case):
                    return "wrong", why
    except NotImplementedError as error:
        return "unsupported", " ".join(str(error).split())[:300]
    except Exception as error:
        return "error", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return "pass", ""


_cases: dict[str, Any] = {}


def _job(job: tuple[str, dict[str, Any]]) -> tuple[str, tuple[str, str]]:
    if not _cases:
        _cases.update(collect())
    return job[0], run_case(_cases[job[0]], job[1])


def run_all(
    names: Sequence[str], options: dict[str, Any], jobs: int
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Verdicts as they come."""
    work = [(name, options) for name in names]
    if jobs == 1:
        yield from map(_job, work)
        return
    with get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(_job, work, 4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests that the arguments name; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", type=Path, help="a file of names, one a line")
    parser.add_argument("--match", default="", help="only names with this pattern in them")
    parser.add_argument("--target", default="interpreter", choices=("interpreter", "c"))
    parser.add_argument("--opt-level", "-O", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="only each N-th test")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="a line for each that did not pass")
    options = parser.parse_args(arguments)
    try:
        import onnx  # noqa: F401
    except ImportError:
        print("skipped: onnx is not installed (pip install 'uopc[onnx]')")
        return 0
    _cases.update(collect())
    names = options.names.read_text().split() if options.names else sorted(_cases)
    absent = [name for name in names if name not in _cases]
    if absent:
        print(f"{len(absent)} names are no tests of this version of onnx, as {absent[0]}")
    names = [n for n in names if n in _cases and re.search(options.match, n)][:: options.every]
    keywords: dict[str, Any] = {"target": options.target}
    if options.target == "c":
        keywords["opt_level"] = options.opt_level
    start, counts = time.perf_counter(), Counter[str]()
    for name, (verdict, why) in run_all(names, keywords, options.jobs):
        counts[verdict] += 1
        if verdict != "pass" and (options.verbose or verdict != "unsupported"):
            print(f"{verdict:12}{name}: {why}")
    seconds = time.perf_counter() - start
    print(
        f"{options.target}: {counts['pass']} of {len(names)} pass; "
        + ", ".join(f"{v} {counts[v]}" for v in VERDICTS[1:])
        + f"; {seconds:.0f} s"
    )
    return int(bool(counts["wrong"] or counts["error"]))


if __name__ == "__main__":
    sys.exit(main())
