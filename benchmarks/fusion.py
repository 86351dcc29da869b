"""What fusing reductions costs and gains: (A @ B) @ C and softmax, by where they are cut.

    python benchmarks/fusion.py

The textbook's figure for (A @ B) @ C at N = 128 is a factor over 100 between two kernels and one
nest of N**4 steps; the times are the best of several calls, in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import uopc

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def best(call: Callable[[], object], repeats: int) -> float:
    """The shortest of some calls, in seconds."""
    shortest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def compare(example: str, shapes: list[tuple[int, ...]], repeats: int) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    print(example)
    times: dict[str, float] = {}
    for fuse in ("none", "auto", "all"):
        exe = uopc.compile(EXAMPLES / f"{example}.mlir", pipeline="uopc-cpu", fuse_reduce=fuse)

        def call(run: Callable[..., object] = exe) -> object:
            return run(*inputs)

        times[fuse] = best(call, repeats)
        kernels = len(exe.plan.kernels)
        ratio = times[fuse] / times["none"]
        print(
            f"  fuse-reduce {fuse:5s} {kernels} kernels {times[fuse] * 1e3:10.3f} ms  x{ratio:.2f}"
        )


def main() -> None:
    compare("matmul_chain", [(128, 128)] * 3, 3)
    compare("softmax", [(64, 128)], 200)


if __name__ == "__main__":
    main()
