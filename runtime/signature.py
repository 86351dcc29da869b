"""What a plan takes and gives: its arguments in order or by name, checked one by one."""

from __future__ import annotations

import contextlib
import difflib
import operator
from collections.abc import Mapping, Sequence

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Plan
from uopc.runtime.buffers import (
    C_CONTIGUOUS_AND_ALIGNED,
    Array,
    Shape,
    address,
    admitted_input,
    check_dtype,
    input_name,
    numpy_dtype,
)
from uopc.runtime.debug import printable
from uopc.runtime.shapes import Binding


class Signature:
    """The inputs, free sizes and outputs of a plan."""

    def __init__(self, plan: Plan, free: tuple[str, ...]) -> None:
        self._plan = plan
        self._free = free
        # With each input the dtype that needs no closer look. Booleans always get one, at their
        # bytes.
        self._inputs = [
            (buffer, None if buffer.dtype == "i1" else numpy_dtype(buffer.dtype))
            for buffer in plan.inputs
        ]

    def admit(self, values: Sequence[object]) -> tuple[list[Array], list[Shape], list[int | None]]:
        """The inputs as arrays that C can read, their shapes and their addresses.

        Raises `wrong-input-count` and what `admitted_input` raises.
        """
        slots = self._inputs
        if len(values) != len(slots):
            raise self._wrong_count(len(values))
        arrays: list[Array] = []
        shapes: list[Shape] = []
        pointers: list[int | None] = []
        for value, (buffer, quick_dtype) in zip(values, slots):  # noqa: B905 (checked; this is hot)
            # The common case first, in as few steps as tell it.
            if (
                type(value) is np.ndarray
                and value.dtype is quick_dtype
                and value.flags.num & C_CONTIGUOUS_AND_ALIGNED == C_CONTIGUOUS_AND_ALIGNED
            ):
                array: Array = value
            else:
                array = admitted_input(value, buffer)
            arrays.append(array)
            shapes.append(array.shape)
            pointers.append(address(array))
        return arrays, shapes, pointers

    def _wrong_count(self, got: int) -> UopcError:
        names = ", ".join(input_name(buffer) for buffer in self._plan.inputs[:20])
        expected = len(self._plan.inputs)
        return UopcError(
            "wrong-input-count",
            f"{printable(self._plan.name)} takes {expected} "
            f"input{'' if expected == 1 else 's'}{': ' if names else ''}{names}; got {got}",
        )

    def by_name(
        self, arrays: Sequence[object], named: Mapping[str, object]
    ) -> tuple[list[object], dict[str, int]]:
        """Positional and named arguments as the list of inputs, and the sizes.

        Raises `wrong-input-count`, `unknown-argument` and `wrong-type`.
        """
        # By ref too, which is the only name of an input that shares its name with another.
        positions = {buffer.ref: index for index, buffer in enumerate(self._plan.inputs)}
        positions |= {buffer.name: index for index, buffer in enumerate(self._plan.inputs)}
        symbols = {symbol.name for symbol in self._plan.symbols}
        values: dict[int, object] = dict(enumerate(arrays))
        sizes: dict[str, int] = {}
        for name, value in named.items():
            # A free size has no other way in, so it goes before an input of the same name.
            if name in self._free or (name in symbols and name not in positions):
                sizes[name] = _size_value(name, value)
            elif (index := positions.get(name)) is None:
                raise self._unknown_argument(
                    name, [*(buffer.name for buffer in self._plan.inputs), *symbols]
                )
            elif index in values:
                raise UopcError("unknown-argument", f"input `{name}` is given twice")
            else:
                values[index] = value
        expected = range(len(self._plan.inputs))
        if sorted(values) != list(expected):
            missing = [self._plan.inputs[index].name for index in expected if index not in values]
            error = self._wrong_count(len(values))
            error.hint = f"missing: {', '.join(missing)}" if missing else ""
            raise error
        return [values[index] for index in expected], sizes

    def _unknown_argument(self, name: str, known: list[str]) -> UopcError:
        near = difflib.get_close_matches(name, known, n=1)
        return UopcError(
            "unknown-argument",
            f"{printable(self._plan.name)} has no input or size `{name}`",
            hint=f"did you mean `{near[0]}`?" if near else f"it has: {', '.join(known)}",
        )

    def check_outputs(self, outputs: Sequence[Array], binding: Binding) -> None:
        """Raises unless results of this binding can be written into `outputs`."""
        buffers = self._plan.outputs
        if len(outputs) != len(buffers):
            raise UopcError(
                "wrong-output-count",
                f"{printable(self._plan.name)} has {len(buffers)} outputs; "
                f"got {len(outputs)} arrays to write to",
            )
        for array, buffer, shape in zip(outputs, buffers, binding.outputs, strict=True):
            name = input_name(buffer)
            if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may not check)
                raise UopcError(
                    "wrong-type",
                    f"output {name} is a {type(array).__name__}; expected a numpy array",
                )
            check_dtype(array, buffer, "output")
            if array.shape != shape:
                raise UopcError(
                    "wrong-output-shape",
                    f"output {name} has shape {list(array.shape)}; expected {list(shape)}",
                )
            if not array.flags.writeable:
                raise UopcError("read-only-output", f"output {name} is a read-only array")


def _size_value(name: str, value: object) -> int:
    if not isinstance(value, bool):
        with contextlib.suppress(TypeError):
            return operator.index(value)  # pyright: ignore[reportArgumentType] (it is the test)
    raise UopcError(
        "wrong-type", f"size `{name}` is a {type(value).__name__}; expected a whole number"
    )
