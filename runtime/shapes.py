"""From the shapes of a call's arrays to the values of a plan's symbols, and back.

A size that is a bare symbol, among an input's extents, sets the symbol; every other extent is then
checked against what its expression gives. A symbol that is no input's extent by itself is *free*
and is passed by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Buffer, Plan, Size, Symbol
from uopc.runtime.buffers import Shape, describe, input_name, numpy_dtype
from uopc.runtime.debug import printable

MAX_BYTES = 1 << 62
KEPT_BINDINGS = 64


@dataclass(frozen=True)
class Binding:
    """What one call's shapes mean: the values of the symbols and the shape of every output."""

    sizes: tuple[int, ...]
    """One a symbol of the plan, in the plan's order."""
    outputs: tuple[Shape, ...]
    written: tuple[tuple[int, Shape, np.dtype[Any], int], ...]
    """Of each output that is no alias: its position, shape, dtype and bytes."""


class ShapeBinder:
    """Checks the shapes of a plan's inputs; keeps the results for shapes that come again."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        names = {symbol.name for symbol in plan.symbols}
        self._bare = [
            (position, axis, str(size))
            for position, buffer in enumerate(plan.inputs)
            for axis, size in enumerate(buffer.shape)
            if not isinstance(size, int) and str(size) in names
        ]
        bound = {name for _, _, name in self._bare}
        self.free = tuple(symbol.name for symbol in plan.symbols if symbol.name not in bound)
        self._known: dict[object, Binding] = {}

    def bind(self, shapes: Sequence[Shape], given: Mapping[str, int] | None = None) -> Binding:
        """The binding for these input shapes and symbols given by name.

        Raises `wrong-shape`, `size-out-of-bounds`, `size-mismatch`, `missing-size`, `too-large`.
        """
        key = (*shapes, *sorted(given.items())) if given else tuple(shapes)
        if (known := self._known.get(key)) is not None:
            return known
        binding = self._bound(shapes, given or {})
        if len(self._known) >= KEPT_BINDINGS:
            self._known.clear()
        self._known[key] = binding
        return binding

    def _bound(self, shapes: Sequence[Shape], given: Mapping[str, int]) -> Binding:
        for buffer, shape in zip(self._plan.inputs, shapes, strict=True):
            if len(shape) != len(buffer.shape):
                raise _wrong_shape(buffer, shape, f"rank {len(buffer.shape)} was expected")
        values = self._symbol_values(shapes, given)
        for buffer, shape in zip(self._plan.inputs, shapes, strict=True):
            if (expected := _evaluated(buffer, values)) != shape:
                raise _wrong_shape(buffer, shape, _expectation(buffer, expected, values))
        outputs = tuple(_evaluated(buffer, values) for buffer in self._plan.outputs)
        for buffer, shape in zip(self._plan.outputs, outputs, strict=True):
            _check_extents(buffer, shape, values)
        written = tuple(
            (position, shape, numpy_dtype(buffer.dtype), _byte_count(buffer, shape))
            for position, (buffer, shape) in enumerate(
                zip(self._plan.outputs, outputs, strict=True)
            )
            if not buffer.alias
        )
        sizes = tuple(values[symbol.name] for symbol in self._plan.symbols)
        return Binding(sizes, outputs, written)

    def _symbol_values(self, shapes: Sequence[Shape], given: Mapping[str, int]) -> dict[str, int]:
        values = dict(given)
        origin = {name: f"given as {value}" for name, value in given.items()}
        for position, axis, name in self._bare:
            value = shapes[position][axis]
            here = f"{value} along axis {axis} of {input_name(self._plan.inputs[position])}"
            if values.setdefault(name, value) != value:
                raise UopcError(
                    "size-mismatch",
                    f"size `{printable(name)}` is {origin[name]} but {here}",
                    hint="one symbol stands for one value in a call",
                )
            origin.setdefault(name, here)
        for symbol in self._plan.symbols:
            if symbol.name not in values:
                raise _missing_size(symbol)
            if not symbol.lower <= values[symbol.name] <= symbol.upper:
                raise UopcError(
                    "size-out-of-bounds",
                    f"size `{printable(symbol.name)}` is {origin[symbol.name]}; "
                    f"it may be {symbol.lower} to {symbol.upper}",
                    hint="the bounds were set when the program was written",
                )
        return values


def _evaluated(buffer: Buffer, values: dict[str, int]) -> Shape:
    return tuple(_value(size, values) for size in buffer.shape)


def _value(size: Size, values: dict[str, int]) -> int:
    return size if isinstance(size, int) else int(size.evaluate_named(values))


def _byte_count(buffer: Buffer, shape: Shape) -> int:
    return math.prod(shape) * numpy_dtype(buffer.dtype).itemsize


def _wrong_shape(buffer: Buffer, shape: Shape, expectation: str) -> UopcError:
    dtype = numpy_dtype(buffer.dtype)
    return UopcError(
        "wrong-shape",
        f"input {input_name(buffer)} has shape {list(shape)}; "
        f"expected {describe(dtype, buffer.shape)}",
        hint=expectation,
    )


def _expectation(buffer: Buffer, expected: Shape, values: dict[str, int]) -> str:
    if all(isinstance(size, int) for size in buffer.shape):
        return "this program was compiled for this one shape; reshape or slice the array"
    with_values = ", ".join(f"{printable(name)} = {value}" for name, value in values.items())
    return f"that is {list(expected)} with {with_values}"


def _missing_size(symbol: Symbol) -> UopcError:
    name = printable(symbol.name)
    return UopcError(
        "missing-size",
        f"size `{name}` is no input's extent by itself, so it must be given",
        hint=f"pass it by name: {name}=N, {symbol.lower} to {symbol.upper}",
    )


def _check_extents(buffer: Buffer, shape: Shape, values: dict[str, int]) -> None:
    size = _byte_count(buffer, shape)
    if min(shape, default=0) >= 0 and size <= MAX_BYTES:
        return
    with_values = ", ".join(f"{printable(name)} = {value}" for name, value in values.items())
    raise UopcError(
        "too-large" if size > MAX_BYTES else "wrong-shape",
        f"output {input_name(buffer)} would have shape {list(shape)}",
        hint=f"with {with_values}" if with_values else "the program's sizes are wrong",
    )
