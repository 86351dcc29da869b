"""The tensors of a model by name: collected, loaded, and kept in safetensors files.

    names = nn.get_state_dict(model)           # {"first.weight": Tensor, ...}
    nn.save(names, "model.safetensors")
    nn.load_state_dict(model, nn.load("model.safetensors"))

A name is the path of attributes, list positions and dict keys that leads to a tensor. What torch
saves of the same layers has the same names and shapes. Files need the `safetensors` package
(`pip install 'uopc[safetensors]'`).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.frontend import tracing
from uopc.frontend.core import bad, tensor
from uopc.frontend.tensor import Tensor
from uopc.runtime.buffers import numpy_dtype


def _children(value: object) -> Iterator[tuple[str, Any]]:
    """What a value holds, by name. Classes that name it otherwise define `state_children`."""
    own: Any = getattr(value, "state_children", None)
    if own is not None and not isinstance(value, type):
        yield from own()
    elif isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        yield from ((str(k), v) for k, v in items)
    elif isinstance(value, list | tuple):
        yield from ((str(k), v) for k, v in enumerate(cast("Sequence[Any]", value)))
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not _is_code(value):
        attributes: dict[str, Any] = vars(value)
        yield from attributes.items()


def _is_code(value: Any) -> bool:
    """Whether a value is a function or module of Python: their insides are not a model's."""
    return type(value).__name__ in ("function", "builtin_function_or_method", "method", "module")


def walk(root: Any, prefix: str = "") -> Iterator[Any]:
    """Every object below one, each once, itself first."""
    return (value for _, value in named_objects(root, prefix))


def named_objects(root: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every object below one with the name that leads to it; each object once."""
    stack: list[tuple[str, Any]] = [(prefix, root)]
    seen: dict[int, Any] = {}
    while stack:
        name, value = stack.pop()
        if isinstance(value, str | bytes | int | float | np.ndarray | None) or id(value) in seen:
            continue
        seen[id(value)] = value  # kept, so that no other object gets its id
        yield name, value
        if not isinstance(value, Tensor):
            below = [(f"{name}.{k}" if name else k, v) for k, v in _children(value)]
            stack += reversed(below)


def get_state_dict(model: Any, prefix: str = "") -> dict[str, Tensor]:
    """All tensors below an object by name; one that is held twice stands under its first name."""
    return {n: v for n, v in named_objects(model, prefix) if isinstance(v, Tensor)}


def get_parameters(model: Any) -> list[Tensor]:
    """The tensors below an object that require gradients, each once."""
    return [t for t in walk(model) if isinstance(t, Tensor) and t.requires_grad]


def load_state_dict(model: Any, tensors: Mapping[str, Any], strict: bool = True) -> None:
    """Give the tensors below an object the values of the same name, in their own types.

    Values are tensors or arrays. Nothing is changed if something is wrong. Raises UopcError
    [wrong-state] for names that are missing or too many, unless `strict` is false, and for
    another shape.
    """
    objects = dict(named_objects(model))
    own = {n: v for n, v in objects.items() if isinstance(v, Tensor)}
    missing = [name for name in own if name not in tensors]
    extra = [name for name in tensors if name not in own]
    if strict and (missing or extra):
        told = [f"{w} {_listed(n)}" for w, n in (("lacks", missing), ("has unknown", extra)) if n]
        raise bad(
            "wrong-state",
            f"the state {' and '.join(told)}",
            "strict=False takes the names that fit",
        )
    values = {name: tensor(tensors[name]) for name in own if name in tensors}
    for name, value in values.items():
        if value.shape != own[name].shape:
            raise bad(
                "wrong-state",
                f"{name} has shape {list(value.shape)}, expected {list(own[name].shape)}",
            )
    for name, value in values.items():
        own[name].assign(value.detach())
    Tensor.realize_all(*[own[name] for name in values])
    for each in objects.values():
        if (loaded := getattr(each, "state_loaded", None)) is not None:
            loaded()


# -- state that layers change ----------------------------------------------------------------------

_deferred: dict[int, weakref.ref[Tensor]] = {}


def defer(changed: Tensor) -> None:
    """Note a tensor whose new value nobody has asked for: the next optimizer step computes it.

    Else the graphs of all batches would hang on a running mean that is read at the end only.
    """
    if tracing.current() is None:
        _deferred[id(changed)] = weakref.ref(changed)


def take_deferred() -> list[Tensor]:
    """The tensors noted so far, which are noted no longer."""
    found: list[Tensor] = []
    while _deferred:
        alive = _deferred.popitem()[1]()
        if alive is not None:
            found.append(alive)
    return found[::-1]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


# -- files -----------------------------------------------------------------------------------------

_SPELLED = {
    "F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16", "I64": "i64", "I32": "i32",
    "I16": "i16", "I8": "i8", "U64": "ui64", "U32": "ui32", "U16": "ui16", "U8": "ui8",
    "BOOL": "i1",
}  # fmt: skip
"""Element types as the file spells them."""


def _safetensors() -> tuple[Any, Any]:
    """What reads bytes and what makes them."""
    try:
        reads, makes = import_module("safetensors"), import_module("safetensors.numpy")
    except ModuleNotFoundError:
        raise UopcError(
            "missing-dependency",
            "the package safetensors is not installed",
            hint="pip install 'uopc[safetensors]'",
        ) from None
    return reads.deserialize, makes.save


def save(
    tensors: Mapping[str, Any],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors by name to a safetensors file, which other libraries read.

    The file is whole or not there: it is written beside and moved. Raises UopcError
    [missing-dependency], [cannot-write].
    """
    _, serialize = _safetensors()
    values = {name: tensor(value) for name, value in tensors.items()}
    Tensor.realize_all(*values.values())
    arrays = {name: value.numpy() for name, value in values.items()}
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(serialize(arrays, dict(metadata) if metadata else None))
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UopcError("cannot-write", f"cannot write {target}: {error.strerror}") from None


def load(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name.

    Raises UopcError [missing-dependency], [cannot-read], and [unknown-dtype] for an element type
    that uopc has not.
    """
    deserialize, _ = _safetensors()
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UopcError("cannot-read", f"cannot read {path}: {error.strerror}") from None
    try:
        entries = deserialize(data)
    except Exception as error:  # the library's own class, or a plain Exception in older ones
        raise UopcError("cannot-read", f"{path} is no safetensors file: {error}") from None
    found: dict[str, Tensor] = {}
    for name, entry in entries:
        if entry["dtype"] not in _SPELLED:
            raise bad("unknown-dtype", f"{name} has element type {entry['dtype']}")
        type_ = _SPELLED[entry["dtype"]]
        flat = np.frombuffer(bytes(entry["data"]), numpy_dtype(type_))
        found[name] = Tensor(flat.reshape(entry["shape"]), dtype=type_)
    return found
