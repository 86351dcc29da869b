"""Arrays on their way into and out of compiled code: checks, copies, addresses, workspaces.

Compiled code takes plain addresses of contiguous row-major data in the machine's byte order. An
array that is not of that form, but has the right dtype and shape, is copied; anything else is
refused in words.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar
from weakref import WeakSet, finalize

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.lowering.plan import Buffer
from uopc.runtime.debug import printable
from uopc.runtime.recycling import RECYCLED_FROM, results

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]

_BYTE: np.dtype[Any] = np.dtype(np.uint8)

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

C_CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100
"""In `flags.num`, as numpy's C interface numbers the flags."""

_NUMPY_NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i1": "bool"} | {
    f"{ours}{bits}": f"{theirs}{bits}"
    for ours, theirs in (("i", "int"), ("ui", "uint"))
    for bits in (8, 16, 32, 64)
}


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The dtype of an element type, in the machine's byte order. Raises `unknown-dtype`."""
    if name == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    if name not in _NUMPY_NAMES:
        raise UopcError("unknown-dtype", f"no array type is known for elements of type {name!r}")
    return np.dtype(_NUMPY_NAMES[name])


# -- addresses -------------------------------------------------------------------------------------


def _slow_address(array: Array) -> int:
    return array.ctypes.data


_pointer_at = ctypes.c_void_p.from_address
_DATA_FIELD = object.__basicsize__


def _fast_address(array: Array) -> int | None:
    # The first field of numpy's public array struct, right after the object's head, is its data
    # pointer. A tenth of the time of `array.ctypes.data`.
    return _pointer_at(id(array) + _DATA_FIELD).value


def _choose_address() -> Callable[[Array], int | None]:
    samples = [np.empty(shape, np.float32) for shape in ((), (3,), (2, 5))]
    samples.append(samples[2][1:, 2:])
    if all(_fast_address(sample) == _slow_address(sample) for sample in samples):
        return _fast_address
    return _slow_address


address: Callable[[Array], int | None] = _choose_address()
"""Where an array's first element lies."""


# -- allocating ------------------------------------------------------------------------------------


def empty_aligned(shape: Shape, dtype: np.dtype[Any]) -> Array:
    """A fresh row-major array whose first element lies on a 64-byte boundary.

    Raises `out-of-memory`.
    """
    return fresh_output(shape, dtype, math.prod(shape) * dtype.itemsize)[0]


def fresh_output(shape: Shape, dtype: np.dtype[Any], size: int) -> tuple[Array, int]:
    """Such an array of `size` bytes, and its address. Raises `out-of-memory`."""
    room = size + ALIGNMENT - 1
    try:
        storage = np.empty(room, _BYTE) if room < RECYCLED_FROM else results.storage(room)
    except (MemoryError, ValueError, OverflowError):
        raise UopcError(
            "out-of-memory",
            f"an array of {describe(dtype, shape)} needs {size} bytes, "
            "which this machine does not give",
            hint="smaller sizes, or a machine with more memory",
        ) from None
    start = address(storage) or 0
    offset = -start % ALIGNMENT
    return np.ndarray(shape, dtype, storage, offset), start + offset


class Workspaces:
    """Storage for a plan's temporaries, in an arena that all plans share.

    A call takes a workspace and puts it back, so that calls which run at the same time each have
    their own, and as many exist as there ever were calls at one time. One that is too small for a
    plan is let go, so plans that run one after the other use one arena, as large as the largest
    of them needs; when that plan is dropped, so is what the others do not need. No lock is
    needed: taking from and adding to a list are single steps of the interpreter.
    """

    _idle: ClassVar[list[Array]] = []
    """The largest at the end."""
    _sizes: ClassVar[WeakSet[Workspaces]] = WeakSet()

    def __init__(self, size: int) -> None:
        self.size = size
        self._sizes.add(self)
        finalize(self, _trim_workspaces).atexit = False

    def take(self) -> Array:
        """A workspace that no other call uses. Raises `out-of-memory`."""
        try:
            found = self._idle.pop()
        except IndexError:
            return empty_aligned((self.size,), _BYTE)
        if found.nbytes >= self.size:
            return found
        del found  # before there is a larger one
        return empty_aligned((self.size,), _BYTE)

    def give(self, workspace: Array) -> None:
        """Put a workspace back."""
        idle = self._idle
        if idle and idle[-1].nbytes > workspace.nbytes:
            idle.insert(0, workspace)
        else:
            idle.append(workspace)

    @classmethod
    def trim(cls) -> None:
        """Let go of what is larger than any plan needs."""
        needed = max((each.size for each in list(cls._sizes)), default=0)
        cls._idle[:] = [each for each in cls._idle if each.nbytes <= needed]

    @classmethod
    def kept(cls) -> int:
        """Bytes that no call uses now."""
        return sum(each.nbytes for each in cls._idle)


def _trim_workspaces() -> None:
    Workspaces.trim()


# -- checking --------------------------------------------------------------------------------------


def describe(dtype: np.dtype[Any], shape: tuple[object, ...]) -> str:
    """`float32[4, n]`: how messages name an array's form."""
    return f"{dtype.name}[{', '.join(map(str, shape))}]"


def input_name(buffer: Buffer) -> str:
    """How messages name a buffer."""
    return f"`{printable(buffer.name)[:100]}`"


def admitted_input(value: object, buffer: Buffer) -> Array:
    """`value` as an array of the buffer's dtype that C can read; copied where it must be.

    The shape is not looked at. Takes numpy arrays and scalars and whatever converts itself by
    `__array__`; Python numbers and lists have no dtype of their own and are refused.

    Raises `wrong-type`, `wrong-dtype`, `byte-order`.
    """
    array = _as_array(value, buffer)
    check_dtype(array, buffer, "input")
    if array.flags.num & C_CONTIGUOUS_AND_ALIGNED != C_CONTIGUOUS_AND_ALIGNED:
        array = aligned_copy(array)
    if buffer.dtype == "i1":
        array = _zeros_and_ones(array)
    return array


def check_dtype(array: Array, buffer: Buffer, role: str) -> None:
    """Raises `wrong-dtype` or `byte-order` unless the array has the buffer's dtype."""
    expected = numpy_dtype(buffer.dtype)
    # Equality, not identity: a dtype may carry metadata.
    if array.dtype == expected:
        return
    name = input_name(buffer)
    if array.dtype.kind == expected.kind and array.dtype.newbyteorder("=") == expected:
        raise UopcError(
            "byte-order",
            f"{role} {name} has its bytes in the other order ({array.dtype.str}); "
            f"expected {expected.name} in this machine's order",
            hint=f'convert it: array.astype("{expected.name}")',
        )
    raise UopcError(
        "wrong-dtype",
        f"{role} {name} has dtype {array.dtype.name}; expected {expected.name}",
        hint=_dtype_hint(array.dtype, expected),
    )


def _dtype_hint(got: np.dtype[Any], expected: np.dtype[Any]) -> str:
    if expected.name == "bfloat16":
        # What numpy.load makes of saved bfloat16 is a void type of two bytes.
        if got.itemsize == 2 and got.kind in "uV":
            return "if these are bfloat16 bits: array.view(ml_dtypes.bfloat16)"
        return "convert it: array.astype(ml_dtypes.bfloat16)"
    return f'no dtype is converted silently; convert it: array.astype("{expected.name}")'


def _as_array(value: object, buffer: Buffer) -> Array:
    if isinstance(value, np.ma.MaskedArray):
        raise UopcError(
            "wrong-type",
            f"input {input_name(buffer)} is a masked array, whose mask would be lost",
            hint="array.filled(value) gives a plain one",
        )
    # Arrays and numpy's own scalars have it as well.
    if hasattr(value, "__array__") and not isinstance(value, type):
        try:
            return np.asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            # Frameworks explain here why data on another device, say, has no numpy form.
            reason = printable(str(error))[:300]
            raise UopcError(
                "wrong-type",
                f"input {input_name(buffer)} is a {type(value).__name__} that gives no array: "
                f"{reason}",
            ) from None
    expected = numpy_dtype(buffer.dtype)
    module = "ml_dtypes" if expected.name == "bfloat16" else "numpy"
    scalar = "bool_" if expected.name == "bool" else expected.name
    raise UopcError(
        "wrong-type",
        f"input {input_name(buffer)} is a Python {type(value).__name__}; "
        f"expected a numpy array of {expected.name}",
        hint=f"numpy.asarray(value, {module}.{scalar})",
    )


def aligned_copy(array: Array) -> Array:
    """A row-major copy that begins on a 64-byte boundary. Raises `out-of-memory`."""
    copy = empty_aligned(array.shape, array.dtype)
    copy[...] = array
    return copy


def _zeros_and_ones(array: Array) -> Array:
    # A view can make booleans of other bytes than 0 and 1, which C would compute with.
    raw = array.view(np.uint8)
    if raw.size and raw.max() > 1:
        return np.asarray(raw != 0)
    return array
