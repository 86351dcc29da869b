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

_BYTE = np.dtype(np.uint8)

TOGETHER_UP_TO = 1 << 12
"""Bytes: results up to this share one block of memory, as each block costs half a microsecond."""


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
        self._count = len(shapes)
        self._shapes = shapes
        self._aliases = aliases
        self._constant = constant
        self._written: list[tuple[int, Shape, np.dtype[Any], int, int]] = []
        """Each result that is written: last its place among those that share storage, or -1."""
        room = 0
        for position, shape, dtype, size in written:
            if size <= TOGETHER_UP_TO:
                self._written.append((position, shape, dtype, size, room))
                room += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
            else:
                self._written.append((position, shape, dtype, size, -1))
        self._room = room + ALIGNMENT - 1 if room else 0

    def __call__(self, inputs: Sequence[Array], pointers: list[int | None]) -> list[Array]:
        """The results. `pointers` are the addresses of `inputs`; the list is used up.

        An output that is an input, unchanged or written over, is that array in its shape, not a
        copy. Who calls gives away the inputs that are written over.
        """
        outputs: list[Any] = [None] * self._count
        storage: Array | None = None
        first = base = 0
        if self._room:
            storage = np.empty(self._room, _BYTE)
            start = address(storage) or 0
            first = -start % ALIGNMENT
            base = start + first
        for position, shape, dtype, size, offset in self._written:
            if offset < 0:
                outputs[position], start = fresh_output(shape, dtype, size)
                pointers.append(start)
            else:
                outputs[position] = np.ndarray(shape, dtype, storage, first + offset)
                pointers.append(base + offset)
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
                outputs[position] = origin if origin.shape == shape else origin.reshape(shape)
        return outputs
