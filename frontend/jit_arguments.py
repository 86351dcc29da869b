"""Nested arguments of jitted functions: their leaves, their nesting, and the key of a call."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from uopc.dialects.errors import UopcError
from uopc.frontend.captured import by_identity
from uopc.frontend.graph import Array
from uopc.frontend.node_types import value_type
from uopc.frontend.tensor import Tensor


@dataclass(frozen=True)
class TreeSpec:
    """How tuples, lists and dicts nest, `*` for each leaf; other values stand for themselves, by a
    weak reference if they are compared by identity: a model is not to live as long as its traces.
    """

    shape: Any

    def build(self, leaves: list[Any]) -> Any:
        """The nested structure with these leaves."""
        if self.shape == "*":
            return leaves[0]
        word, parts = self.shape
        if word == "tuple" and parts == ("*",) * len(leaves):
            return tuple(leaves)
        return _built(self.shape, iter(leaves))


def _built(shape: Any, rest: Any) -> Any:
    if shape == "*":
        return next(rest)
    word, parts = shape
    if word == "dict":
        return {name: _built(part, rest) for name, part in parts}
    if word == "value":
        return parts
    if word == "object":
        return parts()
    if word == "dataclass":
        cls, fields = parts
        return _with_fields(cls, [(name, _built(part, rest)) for name, part in fields])
    built = [_built(part, rest) for part in parts]
    if isinstance(word, type):
        return word(*built)
    return built if word == "list" else tuple(built)


def _with_fields(cls: Any, fields: list[tuple[str, Any]]) -> Any:
    """An object without its __init__, which may have checks that hold for numbers only."""
    made = object.__new__(cls)
    for name, value in fields:
        object.__setattr__(made, name, value)  # frozen ones as well
    return made


_LEAF = TreeSpec("*")


def flatten(value: Any) -> tuple[TreeSpec, list[Any]]:
    """The leaves of nested tuples, lists, dicts and dataclasses: tensors, arrays and numbers.

    Of the dataclasses that compare by value, that is, those that change and those with tensors in
    them; the others (of settings, say) are hashed like other values. None, truth values, text and
    whatever else can be hashed belong to the structure.
    """
    if type(value) is Tensor:
        return _LEAF, [value]
    leaves: list[Any] = []
    return TreeSpec(_shape(value, leaves)), leaves


def _shape(value: Any, leaves: list[Any]) -> Any:
    if isinstance(value, Tensor | np.ndarray | np.generic):
        leaves.append(value)
        return "*"
    if isinstance(value, int | float) and not isinstance(value, bool):
        leaves.append(value)
        return "*"
    if isinstance(value, tuple | list):
        word: Any = "list" if isinstance(value, list) else "tuple"
        if hasattr(cast(Any, value), "_fields"):  # a named tuple
            word = cast(Any, type)(value)
        return (word, tuple([_shape(v, leaves) for v in cast(Sequence[Any], value)]))
    if isinstance(value, dict):
        items = cast(dict[Any, Any], value).items()
        return ("dict", tuple([(k, _shape(v, leaves)) for k, v in items]))
    if _is_tree(value):
        cls = cast(Any, type(cast(Any, value)))
        fields = [f.name for f in dataclasses.fields(cls) if hasattr(value, f.name)]
        parts = tuple([(name, _shape(getattr(value, name), leaves)) for name in fields])
        return ("dataclass", (cls, parts))
    if by_identity(value):
        with suppress(TypeError):  # not all can be referred to weakly
            return ("object", weakref.ref(value))
    try:
        hash(value)
    except TypeError:
        raise UopcError(
            "wrong-type",
            f"an argument of a jitted function is a {type(value).__name__}",
            hint="expected tensors, arrays, numbers, text, and tuples, lists, dicts "
            "and dataclasses of them",
        ) from None
    return ("value", value)


def objects_in(shape: Any) -> Generator[Any]:
    """The objects that a spec's shape refers to weakly, those that are alive."""
    pending = [shape]
    while pending:
        part = pending.pop()
        if isinstance(part, weakref.ref):
            if (value := cast(Any, part)()) is not None:
                yield value
        elif isinstance(part, tuple):
            pending += cast("tuple[Any, ...]", part)


def _is_tree(value: Any) -> bool:
    cls = cast(Any, type(value))
    settings = getattr(cls, "__dataclass_params__", None)
    if settings is None or not settings.eq:
        return False
    if cls.__hash__ is None:
        return True
    return any(
        isinstance(getattr(value, f.name, None), Tensor | np.ndarray | list | dict)
        or _is_tree(getattr(value, f.name, None))
        for f in dataclasses.fields(cls)
    )


Shapes: TypeAlias = Mapping[int, Any]
"""The shapes of arguments that have symbolic sizes, by their leaves' places; of an int that is a
size itself the size."""
NO_SHAPES: Shapes = {}


def key_of(spec: TreeSpec, leaves: list[Any], plain: set[int], shapes: Shapes = NO_SHAPES) -> Any:
    """What a trace depends on: nesting, shapes, types, which tensors are one, plain numbers."""
    key: list[Any] = [spec.shape]
    seen: dict[int, int] = {}
    for place, value in enumerate(leaves):
        if type(value) is Tensor:
            node = value._node  # pyright: ignore[reportPrivateUsage] (the jit is the tensor's friend)
            key.append(value_type(shapes[place], node.type) if place in shapes else node.value)
            if node.tracked:
                key.append("grad" if value._grad is None else "grad too")  # pyright: ignore[reportPrivateUsage] (as above)
            if len(leaves) > 1:
                key.append(seen.setdefault(id(value), place))
        elif isinstance(value, np.ndarray | np.generic):
            array = cast(Array, value)
            key.append((shapes.get(place, array.shape), array.dtype))
        elif place in shapes:
            key.append(shapes[place])
        elif place in plain or not fits(value):
            key.append((type(value), repr(value)))
        else:
            key.append(type(value))
    return tuple(key)


def fast_key(args: tuple[Any, ...], plain: set[int]) -> Any:
    """A key for different tensors without gradients, arrays and numbers that are data; None for
    other arguments."""
    key: list[Any] = []
    tensors: list[int] = []
    for value in args:
        kind = cast("type[Any]", type(value))
        if kind is Tensor:
            node = value._node  # pyright: ignore[reportPrivateUsage] (the jit is the tensor's friend)
            if node.tracked:
                return None
            key.append(node.value)
            tensors.append(id(value))
        elif kind is np.ndarray:
            key.append((value.shape, value.dtype))
        elif kind is float or (kind is int and _LOWEST <= value <= _HIGHEST):
            if plain:
                return None
            key.append(kind)
        else:
            return None
    if len(tensors) > 1 and len(set(tensors)) < len(tensors):
        return None
    return tuple(key)


_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


def fits(value: int | float) -> bool:
    """Whether a number can be data: floats, and integers of 64 bits."""
    return isinstance(value, float) or _LOWEST <= value <= _HIGHEST
