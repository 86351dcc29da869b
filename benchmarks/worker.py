"""One library in a process of its own, told what to do by lines of JSON.

    python benchmarks/worker.py LIBRARY THREADS

    {"do": "prepare", "work": NAME, "expected": FILE}   compile, run, compare with the file's array
    {"do": "measure", "seconds": S, "tries": N}         the times of calls of what was prepared
    {"do": "kernels", "seconds": S}                     of uopc: its kernels one by one

Each is answered by one line, after one that has the library's version. The process stays, so that
libraries take turns within a second, and none is imported again. Between turns it waits for a line.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

LIBRARIES = {
    "uopc": "library_uopc:Uopc",
    "numpy": "library_numpy:Numpy",
    "torch": "library_torch:Torch",
    "jax": "library_jax:Jax",
}
SAMPLE = 1e-4
"""Seconds of a sample at least: shorter calls are repeated, so that the clock does not count."""
BUSY, PAUSE = 0.2, 0.3
"""A turn is measured again if others kept more processors busy than that, after so many seconds."""
TICKS = 0.08
"""Seconds below which nothing is said of others: the kernel counts in hundredths."""
STEPS = 4
"""Of a training run, whose losses are compared."""


class Library(Protocol):
    """What a library is asked for; None where it has no way to compute something."""

    version: str

    def function(self, work: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]] | None:
        """A call that computes and waits for the result, and from its result to numpy."""
        ...

    def training(self, gpt: Any) -> Callable[[], float] | None:
        """A call that takes a step and gives the loss before it."""
        ...

    def decoding(self, gpt: Any) -> Callable[[int, int], Any] | None:
        """A call from a token and a position to scores."""
        ...


def set_threads(count: int) -> None:
    """For whatever is imported from here on."""
    names = ("OMP", "OPENBLAS", "MKL")
    os.environ |= {f"{name}_NUM_THREADS": str(count) for name in names}
    os.environ["UOPC_THREADS"] = str(count)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # numpy picks its best kernels itself
        os.environ.pop(name, None)
    if hasattr(os, "sched_setaffinity"):  # what JAX goes by
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def busy_seconds() -> tuple[float, float]:
    """Seconds of processors spent on anything, by /proc, and on this process; 0 where unknown."""
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return 0.0, 0.0
    fields = [int(field) for field in line.split()[1:]]
    ticks = sum(fields) - fields[3] - fields[4]  # all but idle and waiting for disks
    return ticks / os.sysconf("SC_CLK_TCK"), time.process_time()


def measured(call: Callable[[], Any], seconds: float, tries: int) -> dict[str, float]:
    """The least and the median seconds of a call, and how many processors others kept busy.

    Where others disturb, it is measured again, and the try with the shortest time counts.
    """
    best = _measured_once(call, seconds)
    for _ in range(tries - 1):
        if best["others"] < BUSY or best["least"] > seconds:
            break  # a long call has met all there is
        time.sleep(PAUSE)
        again = _measured_once(call, seconds)
        if again["others"] < BUSY or again["least"] < best["least"]:
            best = again | {"least": min(again["least"], best["least"])}
    return best


def _measured_once(call: Callable[[], Any], seconds: float) -> dict[str, float]:
    start = time.perf_counter()
    call()
    inner = max(1, int(SAMPLE / max(time.perf_counter() - start, 1e-9)))
    samples: list[float] = []
    before, begun = busy_seconds(), time.perf_counter()
    while not samples or time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        samples.append((time.perf_counter() - start) / inner)
    taken, after = time.perf_counter() - begun, busy_seconds()
    others = (after[0] - before[0]) - (after[1] - before[1])
    if taken < TICKS:
        others = 0.0
    return {"least": min(samples), "median": statistics.median(samples),
            "samples": len(samples), "others": round(max(0.0, others / taken), 2)}  # fmt: skip


def error_of(result: Any, expected: Any) -> float:
    """The largest difference, as a part of the largest number expected."""
    import numpy as np

    found = np.asarray(result, np.float64)
    if found.shape != expected.shape:
        return float("inf")
    error = float(np.abs(found - expected).max() / max(float(np.abs(expected).max()), 1e-30))
    return error if error == error else float("inf")


class Worker:
    """Answers requests about one library."""

    def __init__(self, name: str) -> None:
        module, _, kind = LIBRARIES[name].partition(":")
        self.library: Library = getattr(__import__(module), kind)()
        self.call: Callable[[], Any] | None = None

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compile and run a work, and compare what comes out."""
        import numpy as np
        from works import WORKS

        self.call = None
        gc.collect()
        work, expected = WORKS[request["work"]], np.load(request["expected"])
        start = time.perf_counter()
        made = self._made(work)
        if made is None:
            return {"lacks": True}
        self.call, checked = made
        result = checked()
        return {"error": error_of(result, expected), "first": time.perf_counter() - start}

    def _made(self, work: Any) -> tuple[Callable[[], Any], Callable[[], Any]] | None:
        """What is timed, and a call whose result is compared."""
        from library_numpy import first_scores
        from works import POSITION

        if work.kind == "train":
            step = self.library.training(work.gpt)
            return None if step is None else (step, lambda: [step() for _ in range(STEPS)])
        if work.kind == "decode":
            token = self.library.decoding(work.gpt)
            if token is None:
                return None
            return lambda: token(1, POSITION), lambda: first_scores(work.gpt, token)
        made = self.library.function(work)
        if made is None:
            return None
        call, value = made
        return call, lambda: value(call())

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Of one request."""
        if request["do"] == "prepare":
            return self.prepare(request)
        assert self.call is not None
        if request["do"] == "measure":
            return measured(self.call, request["seconds"], request["tries"])
        from library_uopc import kernels

        return {"kernels": kernels(self.call, request["seconds"])}


def serve(name: str, threads: int) -> None:
    """Answer line by line until there are no more."""
    # Whatever a library prints goes elsewhere: standard output is for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(value: Any) -> None:
        print(json.dumps(value), file=answers, flush=True)

    set_threads(threads)
    worker = Worker(name)
    reply({"version": worker.library.version})
    for line in sys.stdin:
        try:
            reply(worker.answer(json.loads(line)))
        except Exception as error:  # one library's failure on one work is a row of the table
            traceback.print_exc(limit=-4)
            reply({"failed": f"{type(error).__name__}: {str(error)[:200]}"})


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
