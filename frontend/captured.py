"""What a traced function can see besides its arguments: plain values that someone may change.

`captured(function, arguments)` finds numbers, text, truth values and numpy arrays in the function's
closure, in the globals that it names, in the attributes of objects reached from there, and in those
of objects among the arguments. A trace holds as long as all of them are what they were.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from uopc.frontend.tensor import Tensor

LIMIT = 4096
"""So many objects are looked at; what lies beyond is not watched."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MISSING = object()

Check = Callable[[], str]
"""Says how a value has changed; empty if it has not."""


def captured(function: Any, arguments: Iterable[Any]) -> list[Check]:
    """One check for each place that holds a plain value now."""
    checks: list[Check] = []
    seen: set[int] = set()
    pending: list[Any] = [function, *arguments]
    while pending and len(seen) < LIMIT:
        value = pending.pop()
        if id(value) in seen or isinstance(value, (*_PLAIN, Tensor, type, types.ModuleType)):
            continue
        seen.add(id(value))
        for get, name in _places(value):
            found = get()
            if isinstance(found, _PLAIN):
                checks.append(_same(get, found, name))
            elif isinstance(found, np.ndarray):
                checks.append(_same_array(get, cast("np.ndarray[Any, Any]", found), name))
            else:
                pending.append(found)
    return checks


def _places(value: Any) -> list[tuple[Callable[[], Any], str]]:
    """How to get at each thing that a value holds, and what it is called."""
    if isinstance(value, types.MethodType):
        return [(lambda: value.__self__, "self"), (lambda: value.__func__, "the method")]
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return [(_getter(items, key), f"[{key!r}]") for key in items]
    if isinstance(value, list | tuple):
        sequence = cast("list[Any]", value)
        return [(_item(sequence, k), f"[{k}]") for k in range(len(sequence))]
    inner = getattr(value, "_function", None)
    if inner is not None and type(value).__module__ == "uopc.frontend.jit":
        return [(lambda: inner, "the function")]
    attributes: Any = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict) or isinstance(value, np.ndarray):
        return []
    own = cast("dict[str, Any]", attributes)
    found = [(_getter(own, key), f".{key}") for key in own]
    if not _is_ours(type(value).__module__):
        for cls in type(value).__mro__[:-1]:
            for key in vars(cls):
                if not key.startswith("__") and key not in own:
                    found.append((_getter(vars(cls), key), f".{key}"))
    return found


def _of_function(function: types.FunctionType) -> list[tuple[Callable[[], Any], str]]:
    found: list[tuple[Callable[[], Any], str]] = []
    if _is_ours(function.__module__):
        return found
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        found.append((_cell(cell), name))
    scope = function.__globals__
    for name in _names(function.__code__):
        value = scope.get(name, _MISSING)
        if isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in sys.stdlib_module_names:
                module = vars(value)
                for each in _names(function.__code__):
                    if isinstance(module.get(each), _PLAIN):
                        found.append((_getter(module, each), f"{name}.{each}"))
        elif value is not _MISSING:
            found.append((_getter(scope, name), name))
    return found


def _names(code: types.CodeType) -> set[str]:
    """The names that a function's code, and functions inside of it, look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _is_ours(module: str | None) -> bool:
    return (module or "").startswith("uopc.")


def _getter(items: Any, key: Any) -> Callable[[], Any]:
    return lambda: items.get(key, _MISSING)


def _item(items: list[Any], at: int) -> Callable[[], Any]:
    return lambda: items[at] if at < len(items) else _MISSING


def _cell(cell: types.CellType) -> Callable[[], Any]:
    def get() -> Any:
        try:
            return cell.cell_contents
        except ValueError:  # not yet assigned
            return _MISSING

    return get


def _same(get: Callable[[], Any], value: Any, name: str) -> Check:
    def check() -> str:
        now = get()
        if now is value or (type(now) is type(value) and repr(now) == repr(value)):
            return ""
        return f"{name} was {value!r:.60}, is {now!r:.60}"

    return check


def _same_array(get: Callable[[], Any], array: np.ndarray[Any, Any], name: str) -> Check:
    kept = (array.shape, array.dtype, array.tobytes())

    def check() -> str:
        now = get()
        if isinstance(now, np.ndarray):
            other = cast("np.ndarray[Any, Any]", now)
            if (other.shape, other.dtype) == kept[:2] and other.tobytes() == kept[2]:
                return ""
        return f"the array {name} has changed"

    return check
