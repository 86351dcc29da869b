"""What the tensor frontend costs beside the kernels: calls, scheduling, cold starts, memory.

    python benchmarks/frontend.py [--only calls,lazy,step,cold,memory] [--peers] [--steps 1000]

Each figure is the best of many and stands beside its bound. With --peers torch, jax and tinygrad
are measured in the same run, where they are installed. On a busy machine only ratios count.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]


def best(call: Callable[[], Any], runs: int, inner: int = 1) -> float:
    """The least seconds of one call."""
    found = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(inner):
            call()
        found = min(found, (time.perf_counter() - start) / inner)
    return found


def line(what: str, value: float, unit: str, bound: float | None = None) -> None:
    verdict = "" if bound is None else "holds" if value < bound else "MISSED"
    told = "" if bound is None else f"  bound {bound:g} {unit}: {verdict}"
    print(f"{what:44s}{value:10.2f} {unit}{told}", flush=True)


def doubled(x: Any) -> Any:
    return x * 2 + 1


def softmax(x: Any) -> Any:
    return x.softmax(-1)


def calls(peers: bool) -> None:
    """Warm calls of jitted functions."""
    import uopc
    from uopc import Tensor

    vector = np.arange(16, dtype=np.float32)
    matrix = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    functions: dict[str, tuple[Any, Any, float]] = {
        "one kernel, 16 elements": (doubled, vector, 5.0),
        "softmax 4x8": (softmax, matrix, 6.0),
    }
    for name, (function, data, bound) in functions.items():
        jitted, x = uopc.jit(function), Tensor(data)
        for _ in range(5):
            jitted(x)
        line(f"jitted {name}", best(lambda j=jitted, x=x: j(x), 300, 100) * 1e6, "us", bound)
        if peers:
            peer_calls(name, function, data)


def peer_calls(name: str, function: Any, data: np.ndarray) -> None:
    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")
        t = torch.from_numpy(data)
        with torch.inference_mode():
            line(f"  torch eager, {name}", best(lambda: function(t), 100, 100) * 1e6, "us")
    if importlib.util.find_spec("jax"):
        jax: Any = importlib.import_module("jax")
        g = jax.jit(jax.nn.softmax if function is softmax else doubled)
        j = jax.numpy.asarray(data)
        g(j).block_until_ready()
        line(f"  jax.jit, {name}", best(lambda: g(j).block_until_ready(), 100, 100) * 1e6, "us")
    if importlib.util.find_spec("tinygrad"):
        try:
            tiny: Any = importlib.import_module("tinygrad")
            device = tiny.Device[tiny.Device.DEFAULT]

            def realized(x: Any) -> Any:
                return function(x).realize()

            h = tiny.TinyJit(realized)
            y = tiny.Tensor(data).realize()
            for _ in range(5):
                h(y)
            seconds = best(lambda: (h(y), device.synchronize()), 50, 20)
            line(f"  TinyJit, {name}", seconds * 1e6, "us")
        except Exception as error:  # a peer that does not run here is told, not fatal
            print(f"  tinygrad did not run: {str(error).splitlines()[:1]}")


def lazy() -> None:
    """Scheduling of a lazy, warm softmax: graph and look-up, without the C call."""
    from uopc import Tensor
    from uopc.frontend import realize
    from uopc.frontend.graph import evaluation_order

    x = Tensor(np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32))
    x.softmax(-1).numpy()

    def schedule() -> None:
        root = x.softmax(-1).node
        realize.find_plan(evaluation_order([root]), [root])

    line("lazy softmax 4x8, scheduling", best(schedule, 200, 20) * 1e3, "ms", 0.3)


def gpt_training(layers: int = 2, context: int = 64, dim: int = 64) -> Any:
    sys.path.insert(0, str(ROOT / "examples"))
    gpt: Any = importlib.import_module("gpt")
    text = np.random.default_rng(1).integers(0, 65, 20_000).astype(np.int32)
    return gpt.Training(gpt.Config(65, context, dim, 2, layers), 1000, 16, 1e-3, text, 0)


def step() -> None:
    """The Python of one lazy training step: forward, backward, AdamW, look-up."""
    from uopc.frontend import realize

    training = gpt_training(layers=4, context=8, dim=8)
    x, y = training.batch_at(0)
    sizes: list[int] = []
    spent: list[float] = []
    plain, find = realize.run_plan, realize.find_plan

    def timed(*arguments: Any) -> Any:
        start = time.thread_time()
        try:
            return plain(*arguments)
        finally:
            spent.append(time.thread_time() - start)

    def sized(order: Any, roots: Any) -> Any:
        sizes.append(len(order))
        return find(order, roots)

    realize.find_plan, realize.run_plan = sized, timed  # what runs in C is not Python's
    found = float("inf")
    try:
        for _ in range(12):
            spent.clear()
            start = time.thread_time()
            training._step(x, y)
            found = min(found, time.thread_time() - start - sum(spent))
    finally:
        realize.find_plan, realize.run_plan = find, plain
    line(f"lazy GPT step of {sizes[-1]} nodes, Python", found * 1e3, "ms", 30.0)


COLD = """
import time; start = time.perf_counter()
import sys; sys.path.insert(0, {benchmarks!r})
import frontend
training = frontend.gpt_training()
training.step(*training.batch_at(0)).item()
print(time.perf_counter() - start)
"""


def cold() -> None:
    """The first step of the tiny GPT in a fresh process: empty cache, then a warm one."""
    program = COLD.format(benchmarks=str(Path(__file__).parent))
    empty: list[float] = []
    warm: list[float] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            for found in (empty, warm, warm):
                done = subprocess.run(
                    [sys.executable, "-c", program], capture_output=True, text=True, check=True,
                    env={**os.environ, "UOPC_CACHE": folder},
                )  # fmt: skip
                found.append(float(done.stdout))
    line("first GPT step, empty cache", min(empty), "s", 6.0)
    line("first GPT step, warm disk cache", min(warm), "s", 2.0)


def resident() -> int:
    """Bytes of memory this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory(steps: int) -> None:
    """Nodes and bytes over many steps, jitted and lazy."""
    from uopc.frontend.graph import node_count

    training = gpt_training(layers=1, context=8, dim=8)
    for name, function in (("jitted", training.step), ("lazy", training._step)):
        seen: list[tuple[int, int]] = []
        for number in range(steps):
            function(*training.batch_at(number)).item()
            if number % (steps // 4) == steps // 8:
                gc.collect()
                seen.append((node_count(), resident()))
        nodes, size = (seen[-1][k] - seen[0][k] for k in (0, 1))
        line(f"{name}, {steps} steps: nodes more", nodes, "", 1)
        line(f"{name}, {steps} steps: memory more", size / 2**20, "MiB", 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description="What the tensor frontend costs.")
    parser.add_argument("--only", default="calls,lazy,step,memory,cold")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "calls": lambda: calls(options.peers),
        "lazy": lazy,
        "step": step,
        "memory": lambda: memory(options.steps),
        "cold": cold,
    }
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    for name in options.only.split(","):
        parts[name]()


if __name__ == "__main__":
    main()
