"""What a traced function can see besides its arguments: plain values that someone may change.

`captured(function, arguments)` finds numbers, text, truth values and numpy arrays in the function's
closure, in the globals that it names, in the attributes of objects reached from there, and in those
of objects among the arguments. A trace holds as long as all of them are what they were.

Most of them the function never reads. `names_read` says which names the code that ran looks up:
where a value changed, the trace came out the same, and no such name leads to it, it can be let be.
"""

from __future__ import annotations

import dis
import sys
import types
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from uopc.frontend.tensor import Tensor

LIMIT = 4096
"""So many objects are looked at; what lies beyond is not watched."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MISSING = object()

Check = Callable[[], str]
"""Says how a value has changed; empty if it has not."""


ANY_NAME = "*"
"""Stands for all names, where it is not known by which one a value is read."""


@dataclass(eq=False)
class Holder:
    """Something that holds values, and the ways to it: what holds it, and under which name."""

    is_root: bool
    """Whether it is the function itself, or an argument."""
    ways: list[tuple[Holder, str]]


@dataclass(eq=False)
class Watch:
    """A place that holds a plain value."""

    path: str
    """How one gets there from the function: the same in each trace."""
    way: tuple[Holder, str]
    check: Check

    def is_read(self, read: set[str]) -> bool:
        """Whether code that looks up these names may come by here."""
        pending, done = [self.way], set[Holder]()
        while pending:
            holder, name = pending.pop()
            if holder not in done and (name in read or ANY_NAME in (name, *read)):
                if holder.is_root:
                    return True
                done.add(holder)
                pending += holder.ways
        return False


def captured(function: Any, arguments: Iterable[Any]) -> list[Watch]:
    """One watch for each place that holds a plain value now."""
    watches: list[Watch] = []
    holders: dict[int, Holder] = {}
    pending: list[tuple[Any, str, tuple[Holder, str] | None]] = [(function, "", None)]
    pending += [(value, f"{k}", None) for k, value in enumerate(arguments)]
    while pending and len(holders) < LIMIT:
        value, path, way = pending.pop()
        if isinstance(value, (*_PLAIN, Tensor, type, types.ModuleType)):
            continue
        known = id(value) in holders
        holder = holders.setdefault(id(value), Holder(False, []))
        if way is None:
            holder.is_root = True
        else:
            holder.ways.append(way)
        if known:
            continue
        for get, label, key in _places(value):
            found = get()
            here, there = (holder, key), f"{path} {label}"
            if isinstance(found, _PLAIN):
                watches.append(Watch(there, here, _same(get, found, label)))
            elif isinstance(found, np.ndarray):
                array = cast("np.ndarray[Any, Any]", found)
                watches.append(Watch(there, here, _same_array(get, array, label)))
            else:
                pending.append((found, there, here))
    return watches


Place = tuple[Callable[[], Any], str, str]
"""How to get at a thing, what it is called, and the name that code reads it by."""


def _places(value: Any) -> list[Place]:
    """All that a value holds."""
    if isinstance(value, types.MethodType):
        return [
            (lambda: value.__self__, "self", ANY_NAME),
            (lambda: value.__func__, "the method", ANY_NAME),
        ]
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return [(_getter(items, key), f"[{key!r}]", ANY_NAME) for key in items]
    if isinstance(value, list | tuple):
        sequence = cast("list[Any]", value)
        return [(_item(sequence, k), f"[{k}]", ANY_NAME) for k in range(len(sequence))]
    inner = getattr(value, "_function", None)
    if inner is not None and type(value).__module__ == "uopc.frontend.jit":
        return [(lambda: inner, "the function", ANY_NAME)]
    attributes: Any = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict) or isinstance(value, np.ndarray):
        return []
    own = cast("dict[str, Any]", attributes)
    reference = _weakly(value)
    found: list[Place] = [
        (_getter(own, key) if reference is None else _attribute(reference, key), f".{key}", key)
        for key in own
    ]
    if not _is_ours(type(value).__module__):
        for cls in type(value).__mro__[:-1]:
            for key in vars(cls):
                if not key.startswith("__") and key not in own:
                    found.append((_getter(vars(cls), key), f".{key}", key))
    return found


def _of_function(function: types.FunctionType) -> list[Place]:
    found: list[Place] = []
    if _is_ours(function.__module__):
        return found
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        found.append((_cell(cell), name, name))
    scope = function.__globals__
    for name in _names(function.__code__):
        value = scope.get(name, _MISSING)
        if isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in sys.stdlib_module_names:
                module = vars(value)
                for each in _names(function.__code__):
                    if isinstance(module.get(each), _PLAIN):
                        found.append((_getter(module, each), f"{name}.{each}", each))
        elif value is not _MISSING:
            found.append((_getter(scope, name), name, name))
    return found


_BY_ANY_NAME = frozenset(
    ("getattr", "vars", "__dict__", "__getattribute__", "attrgetter", "eval", "exec", "globals")
)
_READS_ATTRIBUTES = frozenset(("copy", "dataclasses", "operator"))
"""Modules of the standard library that read attributes of any object they are given."""


@contextmanager
def names_read() -> Generator[set[str]]:
    """The names that the code which runs inside of the block looks up, there after the block.

    All names where a profiler is at work, since this needs its hook. The method of `x.step()` does
    not count: what is called is no plain value.
    """
    read: set[str] = set()
    if sys.getprofile() is not None:
        read.add(ANY_NAME)
        yield read
        return
    codes: dict[types.CodeType, Any] = {}

    def note(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call":
            codes[frame.f_code] = frame.f_globals.get("__name__")

    sys.setprofile(note)
    try:
        yield read
    finally:
        sys.setprofile(None)
    for code, module in codes.items():
        if _may_read(module or ""):
            read |= _looked_up(code, any_name=not _is_ours(module))


def _may_read(module: str) -> bool:
    top = module.partition(".")[0]
    if top in ("uopc", "numpy"):
        return module.startswith("uopc.frontend.nn")
    return top in _READS_ATTRIBUTES or top not in sys.stdlib_module_names or top == "__main__"


def _looked_up(code: types.CodeType, *, any_name: bool) -> set[str]:
    found: set[str] = set()
    for step in dis.get_instructions(code):
        if not step.opname.startswith("LOAD_") or not isinstance(step.argval, str):
            if step.opname == "MATCH_CLASS" and any_name:
                found.add(ANY_NAME)
            continue
        called = step.opname == "LOAD_METHOD" or (
            step.opname == "LOAD_ATTR" and sys.version_info >= (3, 12) and (step.arg or 0) & 1
        )
        if any_name and step.argval in _BY_ANY_NAME:
            found.add(ANY_NAME)
        if not called and step.opname not in ("LOAD_CONST", "LOAD_FAST"):
            found.add(step.argval)
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


def by_identity(value: Any) -> bool:
    """Whether equal means the same object: then nobody can come with another one for it."""
    cls = type(value)
    return cls.__hash__ is object.__hash__ and cls.__eq__ is object.__eq__


def _weakly(value: Any) -> Callable[[], Any] | None:
    if not by_identity(value):
        return None  # an equal one may come when this one is gone
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def _attribute(reference: Callable[[], Any], key: str) -> Callable[[], Any]:
    """Of an object that the watch does not keep alive: what it holds may be a large model."""

    def get() -> Any:
        value = reference()
        return _MISSING if value is None else value.__dict__.get(key, _MISSING)

    return get


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
