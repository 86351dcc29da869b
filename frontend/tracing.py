"""Whether a function is being traced in this thread, and by what. See jit.py."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from uopc.frontend.graph import Array, Node, Shape


class Trace(Protocol):
    """What tensors made outside of a trace ask it for: inside, they have another value."""

    def node_of(self, tensor: Any) -> Node:
        """The value of a tensor from outside."""
        ...

    def set_node(self, tensor: Any, node: Node) -> None:
        """Give it another value, as far as the traced function can see."""
        ...

    def gradient_of(self, tensor: Any) -> Any:
        """Its gradient, a tensor or None."""
        ...

    def set_gradient(self, tensor: Any, value: Any) -> None:
        """Give it another gradient."""
        ...

    def drawn(self, make: Callable[[], Array], shape: Shape, type_: str) -> Node:
        """A random input, drawn by `make` at every call."""
        ...

    def read(self, node: Node) -> None:
        """A value is wanted while tracing. Raises unless it is known and stays what it is."""
        ...


class _State(threading.local):
    trace: Trace | None = None
    gradients: bool = True


state = _State()

active: int = 0
"""How many functions are being traced, in all threads."""
_lock = threading.Lock()


def current() -> Trace | None:
    """The trace of this thread, if there is one."""
    return state.trace if active else None


@contextmanager
def traced_by(trace: Trace) -> Generator[None]:
    """Inside of the block, tensors of this thread tell `trace` what happens."""
    global active
    before = state.trace
    with _lock:
        active += 1
    state.trace = trace
    try:
        yield
    finally:
        state.trace = before
        with _lock:
            active -= 1


@contextmanager
def untraced() -> Generator[None]:
    """Inside of the block this thread computes as if it traced nothing."""
    before, state.trace = state.trace, None
    try:
        yield
    finally:
        state.trace = before
