"""The thread pool that runs the parts of kernels: pool/pool.c, one a process.

How many threads there are is UOPC_THREADS, or the processors that this process may use, as it is
when a program is loaded; programs that are there already run on as many from then on. A forked
child has no workers; its kernels run on the caller until the pool is started again there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from pathlib import Path

from uopc.dialects.errors import UopcError
from uopc.runtime import environment
from uopc.runtime.cache import open_cache
from uopc.runtime.compiler import find_compiler
from uopc.runtime.library import Library, load_library

_SOURCE = Path(__file__).parent / "pool" / "pool.c"

_lock = threading.Lock()
_pool: Library | None = None
_started: tuple[int, int] = (0, 0)
"""The process that started workers, and how many threads were asked for last: they take part."""


def pool_runner() -> int | None:
    """The address of the pool's C function that runs parts; None where one thread is all.

    Raises what `load_library` raises, and `bad-environment` for a wrong UOPC_THREADS.
    """
    global _pool, _started
    wanted = environment.thread_count()
    if wanted < 2:
        return None
    with _lock:
        if _pool is None:
            _pool = load_library(_SOURCE.read_text(encoding="utf-8"))
        if _started[0] != os.getpid() or _started[1] != wanted:
            start = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(_pool.address("uopc_pool_start"))
            start(wanted)
            _started = (os.getpid(), wanted)
        return _pool.address("uopc_pool_run")


def use_pool(library: Library, setter: str) -> None:
    """Let the code of a library run its parts on the pool, if there are threads for it."""
    runner = pool_runner()
    plug_in = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address(setter))
    plug_in(runner)


def warm_up() -> None:
    """In the background, find the compiler and have the pool ready: a plan is about to need both.

    What fails here fails again, and is told, where it is needed.
    """
    global _warming
    if _warming is None:
        _warming = threading.Thread(target=_warm_up, name="uopc warm-up", daemon=True)
        _warming.start()


_warming: threading.Thread | None = None


def _warm_up() -> None:
    with contextlib.suppress(UopcError):
        find_compiler(open_cache())
        pool_runner()


def _after_fork() -> None:
    # The thread that held the lock does not exist in the child.
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
