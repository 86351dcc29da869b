"""Calls with more arguments than ctypes passes: they travel in two arrays.

A plan with a thousand weights is one C function of a thousand parameters. C has no trouble with
that; a few lines of it unpack the arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uopc.runtime.library import Library

MAX_ARGUMENTS = 1024
"""What ctypes takes (CTYPES_MAX_ARGCOUNT)."""

Entry = Callable[..., object]


def packed_name(entry: str, source: str) -> str:
    """A name for the function that unpacks, which the source does not have."""
    name = f"{entry}_packed"
    while name in source:
        name += "_"
    return name


def packed_source(name: str, entry: str, integers: int, pointers: int) -> str:
    """C to append to a source: `name` calls `entry` on what two arrays hold."""
    arguments = [f"sizes[{k}]" for k in range(integers)]
    arguments += [f"buffers[{k}]" for k in range(pointers)]
    head = f"void {name}(const int64_t *sizes, void *const *buffers)"
    unused = "" if integers else "    (void)sizes;\n"
    lines = ",\n        ".join(arguments)
    return f"\n{head};\n{head}\n{{\n{unused}    {entry}(\n        {lines});\n}}\n"


def packed_entry(library: Library, name: str, integers: int, pointers: int) -> Entry:
    """A Python function of all arguments that calls the C function `name` of two arrays."""
    function = library.function(name, 0, 2)
    sizes_type, buffers_type = ctypes.c_int64 * integers, ctypes.c_void_p * pointers

    def call(*arguments: int) -> None:
        sizes = sizes_type(*arguments[:integers])
        buffers = buffers_type(*arguments[integers:])
        function(ctypes.addressof(sizes), ctypes.addressof(buffers))

    return call
