"""The pool: every part once, the same bits with any number of threads, and safe forks."""

from __future__ import annotations

import ast
import ctypes
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from uopc.runtime import environment, threads
from uopc.runtime.library import load_library

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)

HOST = r"""
#include <stdint.h>
typedef void (*part_body)(void *, int64_t);
typedef void (*part_runner)(int64_t, part_body, void *);
static part_runner run;
void use_threads(part_runner runner) { run = runner; }
"""

COUNTING = (
    HOST
    + r"""
static void add_one(void *context, int64_t part) { ((int32_t *)context)[part] += 1; }
void count_parts(int64_t count, int32_t *out)
{
    if (run)
        run(count, add_one, out);
    else
        for (int64_t part = 0; part < count; part++)
            add_one(out, part);
}
"""
)

WHO_RAN = (
    "#include <pthread.h>\n"
    + HOST
    + r"""
static void note(void *context, int64_t part)
{
    for (volatile int k = 0; k < 50000; k++)
        ;
    ((uint64_t *)context)[part] = (uint64_t)pthread_self();
}
void who_ran(int64_t count, uint64_t *out)
{
    if (run)
        run(count, note, out);
    else
        for (int64_t part = 0; part < count; part++)
            note(out, part);
}
"""
)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UOPC_THREADS", "3")
    loaded = load_library(COUNTING)
    threads.use_pool(loaded, "use_threads")
    return loaded


def counted(library, count: int) -> np.ndarray:
    out = np.zeros(count, np.int32)
    library.function("count_parts", 1, 1)(count, out.ctypes.data)
    return out


def test_each_part_runs_once(library) -> None:
    for count in (0, 1, 2, 3, 7, 100, 5000):
        for _ in range(50):
            assert (counted(library, count) == 1).all(), count


def test_the_number_of_threads_may_fall_and_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (8, 2, 3, 1, 5):
        monkeypatch.setenv("UOPC_THREADS", str(count))
        loaded = load_library(WHO_RAN)
        threads.use_pool(loaded, "use_threads")
        who = np.zeros(64, np.uint64)
        seen: set[int] = set()
        for _ in range(20):
            loaded.function("who_ran", 1, 1)(len(who), who.ctypes.data)
            assert len(set(who.tolist())) <= count
            seen |= set(who.tolist())
        assert 1 <= len(seen) <= count
        assert count == 1 or len(seen) > 1


def test_python_threads_share_the_pool(library) -> None:
    wrong: list[int] = []

    def run() -> None:
        for _ in range(200):
            if not (counted(library, 500) == 1).all():
                wrong.append(1)

    workers = [threading.Thread(target=run) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_forked_child_runs_alone(library) -> None:
    counted(library, 100)
    pid = os.fork()
    if pid == 0:
        good = (counted(library, 1000) == 1).all() and threads.pool_runner() is not None
        good = good and (counted(library, 1000) == 1).all()
        os._exit(0 if good else 1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_one_thread_needs_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UOPC_THREADS", "1")
    assert threads.pool_runner() is None


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    """A product, a softmax and a sum, 20 runs each with 1, 2, 3 and 8 threads (C27)."""
    script = textwrap.dedent("""
        import hashlib, numpy as np, uopc
        from pathlib import Path
        rng = np.random.default_rng(3)
        seen = hashlib.sha256()
        for name in ("matmul_chain", "softmax", "attention"):
            exe = uopc.compile(Path("examples") / f"{name}.mlir")
            shapes = [tuple(b.shape) for b in exe.plan.inputs]
            inputs = [rng.standard_normal(s).astype(np.float32) for s in shapes]
            results = {np.asarray(exe(*inputs)).tobytes() for _ in range(20)}
            assert len(results) == 1, name
            seen.update(results.pop())
        print(seen.hexdigest())
    """)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=root,
            env={**os.environ, "UOPC_THREADS": str(n)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for n in (1, 2, 3, 8)
    }
    assert len(digests) == 1


WHERE = """
import os
import numpy as np
import uopc

x = uopc.Tensor(np.ones((256, 256), np.float32))
before = set(os.listdir("/proc/self/task"))
product = uopc.jit(lambda a: a @ a)
for _ in range(5):
    product(x).numpy()
workers = set(os.listdir("/proc/self/task")) - before
print([len(os.sched_getaffinity(0)) - len(os.sched_getaffinity(int(t))) for t in workers])
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processors are Linux's to tell")
def test_workers_keep_off_the_callers_processor() -> None:
    """A worker that wakes on it would wait there until the caller has done it all."""
    processors = len(os.sched_getaffinity(0))
    if processors < 2:
        pytest.skip("one processor")
    setting = {**os.environ, "UOPC_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WHERE], env=setting, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    missing = ast.literal_eval(done.stdout)
    assert 1 in missing, missing  # the worker's; others have all of them


def test_as_many_workers_as_processors_go_everywhere() -> None:
    processors = environment.available_processors()
    setting = {**os.environ, "UOPC_THREADS": str(processors + 1), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WHERE], env=setting, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not any(ast.literal_eval(done.stdout)), done.stdout
