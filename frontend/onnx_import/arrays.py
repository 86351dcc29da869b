"""ONNX's tensors as numpy arrays, and its element types as ours."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from uopc.dialects.element_types import element_type_named
from uopc.dialects.errors import UnsupportedError, UopcError
from uopc.dialects.source_text import printable

Array = np.ndarray[Any, np.dtype[Any]]

ELEMENTS: dict[str, str] = {
    "DOUBLE": "f64", "FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16", "BOOL": "i1",
    "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64",
    "UINT8": "ui8", "UINT16": "ui16", "UINT32": "ui32", "UINT64": "ui64",
}  # fmt: skip
"""ONNX's name of each element type, and ours."""

_FIELDS = {
    "DOUBLE": "double_data", "FLOAT": "float_data", "INT64": "int64_data",
    "UINT32": "uint64_data", "UINT64": "uint64_data",
}  # fmt: skip
"""Where the elements stand that are not given as bytes; all others are in int32_data."""

MAX_BYTES = 1 << 40
"""Larger tensors are taken for damaged."""


def bad_model(message: str, hint: str = "") -> UopcError:
    """A model that is no correct ONNX."""
    return UopcError("bad-onnx-model", printable(message), hint=hint)


def type_word(code: int) -> str:
    """ONNX's name of an element type: FLOAT."""
    from onnx import TensorProto

    values = TensorProto.DataType.values()
    return TensorProto.DataType.Name(code) if code in values else f"type {code}"


def element_of_code(code: int, what: str) -> str:
    """Our name of an ONNX element type. Raises UnsupportedError for those that we have not."""
    word = type_word(code)
    if word not in ELEMENTS:
        raise UnsupportedError(
            "unsupported-op",
            f"{printable(what)} has elements of type {word}",
            hint=f"there are: {', '.join(ELEMENTS)}",
        )
    return ELEMENTS[word]


def code_of_element(element: str) -> int:
    """ONNX's number of one of our element types."""
    from onnx import TensorProto

    word = next(word for word, ours in ELEMENTS.items() if ours == element)
    return int(TensorProto.DataType.Value(word))


def array_of_tensor(proto: Any, folder: Path | None) -> Array:
    """The array of a TensorProto; data outside of the model is looked for below `folder`.

    Raises UopcError for sizes that do not fit the data, and for files outside of the folder.
    """
    from onnx import TensorProto

    name = printable(proto.name or "without a name")
    element = element_of_code(proto.data_type, f"tensor '{name}'")
    dtype = element_type_named(element).numpy
    shape = tuple(int(n) for n in proto.dims)
    if any(n < 0 for n in shape):
        raise bad_model(f"tensor '{name}' has sizes {list(shape)}")
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_BYTES:
        raise bad_model(f"tensor '{name}' of sizes {list(shape)} would take {size:,} bytes")
    if proto.data_location == TensorProto.EXTERNAL:
        return _external(proto, name, folder, size).view(dtype).reshape(shape)
    if proto.HasField("raw_data"):
        if len(proto.raw_data) != size:
            raise bad_model(
                f"tensor '{name}' of sizes {list(shape)} has {len(proto.raw_data)} bytes, "
                f"expected {size}"
            )
        return np.frombuffer(proto.raw_data, _little(dtype)).astype(dtype).reshape(shape)
    field = getattr(proto, _FIELDS.get(type_word(proto.data_type), "int32_data"))
    if len(field) != math.prod(shape):
        raise bad_model(
            f"tensor '{name}' of sizes {list(shape)} has {len(field)} elements, "
            f"expected {math.prod(shape)}"
        )
    if element in ("f16", "bf16"):  # as their bits
        bits = np.array(field, np.int64)
        return (bits & 0xFFFF).astype(np.uint16).view(dtype).reshape(shape)
    with np.errstate(over="ignore"):
        return np.array(field).astype(dtype).reshape(shape)


def _little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype


def _external(proto: Any, name: str, folder: Path | None, size: int) -> Array:
    """The bytes of a tensor that lies in a file next to the model."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise bad_model(
            f"tensor '{name}' lies in the file '{location}', and the model has no folder",
            "give the model as a path",
        )
    path = folder / location
    inside = bool(location) and path.resolve().is_relative_to(folder.resolve())
    if Path(location).is_absolute() or not inside:
        raise bad_model(
            f"tensor '{name}' lies in '{location}', which is outside of the model's folder",
            "only files in the folder of the model are read",
        )
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        raise bad_model(f"tensor '{name}' has an offset or a length that is no number") from None
    if length != size or offset < 0:
        raise bad_model(f"tensor '{name}' has {length} bytes in '{location}', expected {size}")
    if not path.is_file() or path.stat().st_size < offset + size:
        raise bad_model(
            f"tensor '{name}' of {size} bytes at {offset} is not in the file '{location}'",
            "the file is missing or too short: copy it next to the model",
        )
    if not size:
        return np.empty(0, np.uint8)
    return np.array(np.memmap(path, np.uint8, "r", offset, (size,)))
