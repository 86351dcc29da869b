"""The shortest way into a plan of fixed shapes: addresses in, fresh arrays out.

Who calls has checked the arguments: these are the right number of row-major arrays of the right
types and shapes, and they stay alive during the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uopc.lowering.plan import Plan
from uopc.runtime.buffers import ALIGNMENT, Array, Shape, Workspaces, address, fresh_output
from uopc.runtime.recycling import RECYCLED_FROM

_BYTE = np.dtype(np.uint8)


class PreparedCall:
    """A plan without symbols, ready to be called on addresses."""

    def __init__(
        self,
        plan: Plan,
        entry: Callable[..., object],
        workspaces: Workspaces | None,
        written: Sequence[tuple[int, Shape, np.dtype[Any], int]],
        shapes: Sequence[Shape],
        aliases: Sequence[tuple[int, str, int]],
        constant: Callable[[int, Shape], Array],
    ) -> None:
        self.plan = plan
        self._entry = entry
        self._workspaces = workspaces
        # fresh_output is written out in the call, which is that much shorter.
        self._written = [
            (position, shape, dtype, size + ALIGNMENT - 1, size)
            for position, shape, dtype, size in written
        ]
        self._count = len(shapes)
        self._shapes = shapes
        self._aliases = aliases
        self._constant = constant

    def __call__(self, inputs: Sequence[Array], pointers: list[int | None]) -> list[Array]:
        """The results. `pointers` are the addresses of `inputs`; the list is used up.

        An output that is an input unchanged is that array in its shape, not a copy.
        """
        outputs: list[Any] = [None] * self._count
        for position, shape, dtype, room, size in self._written:
            if room >= RECYCLED_FROM:
                outputs[position], start = fresh_output(shape, dtype, size)
                pointers.append(start)
                continue
            try:
                storage = np.empty(room, _BYTE)
            except MemoryError:
                fresh_output(shape, dtype, size)  # raises the same, in words
                raise
            start = address(storage) or 0
            offset = -start % ALIGNMENT
            outputs[position] = np.ndarray(shape, dtype, storage, offset)
            pointers.append(start + offset)
        workspaces = self._workspaces
        if workspaces is None:
            self._entry(*pointers)
        else:
            workspace = workspaces.take()
            pointers.append(address(workspace))
            self._entry(*pointers)
            workspaces.give(workspace)
        for position, kind, source in self._aliases:
            shape = self._shapes[position]
            if kind == "const":
                outputs[position] = self._constant(source, shape).reshape(shape)
            else:
                origin = inputs[source] if kind == "in" else outputs[source]
                outputs[position] = origin.reshape(shape)
        return outputs
