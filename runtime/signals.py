"""Signals that wait: so that what belongs together is done before an interrupt is.

    before = hold_signals()
    try:
        …
    finally:
        release_signals(before)

As signal.pthread_sigmask, which takes 50 us for a mask of all signals, by the C library itself.
Signals that tell of a fault are not held back, and the pool's threads take none at all.
"""

from __future__ import annotations

import ctypes
import signal

_libc = ctypes.CDLL(None)
_mask = _libc.pthread_sigmask
_mask.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

SignalSet = ctypes.Array[ctypes.c_char]
_SET_BYTES = 128
"""A sigset_t of Linux; other systems have smaller ones."""


def _all_but_faults() -> SignalSet:
    held = ctypes.create_string_buffer(_SET_BYTES)
    _libc.sigfillset(held)
    for fault in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP"):
        _libc.sigdelset(held, int(getattr(signal, fault)))
    return held


_held = _all_but_faults()
_BLOCK, _SET = int(signal.SIG_BLOCK), int(signal.SIG_SETMASK)


def hold_signals() -> SignalSet:
    """Hold this thread's signals back; what to release with."""
    before = ctypes.create_string_buffer(_SET_BYTES)
    _mask(_BLOCK, _held, before)
    return before


def release_signals(before: SignalSet) -> None:
    """Let signals through as before; those that came meanwhile come now."""
    _mask(_SET, before, None)
