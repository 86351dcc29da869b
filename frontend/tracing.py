"""Whether a function is being traced in this thread, and by what. See jit.py."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from uopc.frontend.graph import Array, Node, Shape


class Trace(Protocol):
    """What tensors tell the trace of a function about."""

    def seen(self, tensor: Any) -> None:
        """A tensor is about to be read."""
        ...

    def changed(self, tensor: Any) -> None:
        """A tensor is about to get another value."""
        ...

    def gradient_changed(self, tensor: Any) -> None:
        """A tensor is about to get another gradient."""
        ...

    def drawn(self, make: Callable[[], Array], shape: Shape, type_: str) -> Node:
        """A random input, drawn by `make` at every call."""
        ...


class _State(threading.local):
    trace: Trace | None = None
    gradients: bool = True


state = _State()

_active = 0
_lock = threading.Lock()


def current() -> Trace | None:
    """The trace of this thread, if there is one."""
    return state.trace if _active else None


@contextmanager
def traced_by(trace: Trace) -> Generator[None]:
    """Inside of the block, tensors of this thread tell `trace` what happens."""
    global _active
    before = state.trace
    with _lock:
        _active += 1
    state.trace = trace
    try:
        yield
    finally:
        state.trace = before
        with _lock:
            _active -= 1
