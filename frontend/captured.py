"""What a traced function can see besides its arguments: values that someone may change.

`captured(function, arguments)` finds what the function's closure, the globals that it names, and
the objects among its arguments hold, and what these hold in turn: numbers, text, truth values and
numpy arrays by value; tensors, functions and other objects by identity; the lengths of lists, the
keys of dicts. A trace holds as long as all of it is what it was.

Most of it the function never reads. `names_read` says which names the code that ran looks up:
where a value changed, the trace came out the same, and no such name leads to it, it can be let be.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from uopc.frontend.names_read import ANY_NAME, CALLED, is_ours
from uopc.frontend.tensor import Tensor

LIMIT = 4096
"""So many objects are looked at; what lies beyond is not watched."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MISSING = object()

Get = Callable[[], Any]
Check = Callable[[], str]
"""Says how a value has changed; empty if it has not."""


@dataclass(eq=False)
class Holder:
    """Something that holds values, and the ways to it: what holds it, and under which name."""

    is_root: bool
    """Whether it is the function itself, or an argument."""
    ways: list[tuple[Holder, str]]


@dataclass(eq=False)
class Watch:
    """A place that holds a value."""

    path: str
    """How one gets there from the function: the same in each trace."""
    way: tuple[Holder, str]
    check: Check
    plain: bool = True
    """Whether it is a number, text or the like, which cannot be called."""

    def is_read(self, read: set[str]) -> bool:
        """Whether code that looks up these names may come by here."""

        def is_named(name: str, *, plain: bool) -> bool:
            if ANY_NAME in (name, *read) or name in read:
                return True
            return not plain and name + CALLED in read

        if not is_named(self.way[1], plain=self.plain):
            return False
        pending, done = [self.way[0]], set[Holder]()
        while pending:
            holder = pending.pop()
            if holder.is_root:
                return True
            done.add(holder)
            pending += [
                other
                for other, name in holder.ways
                if other not in done and is_named(name, plain=False)
            ]
        return False


def captured(function: Any, arguments: Iterable[Any]) -> list[Watch]:
    """Watches for all places that hold a value now."""
    watches: list[Watch] = []
    holders: dict[int, Holder] = {}
    pending: list[tuple[Any, str, tuple[Holder, str] | None]] = [(function, "", None)]
    pending += [(value, f"{k}", None) for k, value in enumerate(arguments)]
    while pending and len(holders) < LIMIT:
        value, path, way = pending.pop()
        known = id(value) in holders
        holder = holders.setdefault(id(value), Holder(False, []))
        if way is None:
            holder.is_root = True
        else:
            holder.ways.append(way)
        if known:
            continue
        cls = _class_of(value)
        if not _is_foreign(cls.__module__):
            pending.append((cls, f"{path} class", (holder, ANY_NAME)))
        contents = _same_contents(value, path.rpartition(" ")[2])
        if contents is not None:
            watches.append(Watch(f"{path} contents", (holder, ANY_NAME), contents, False))
        hides = _hides_nothing(value)
        if hides is not None:
            watches.append(Watch(f"{path} class attributes", (holder, ANY_NAME), hides, False))
        for get, label, key in _places(value):
            found = get()
            here, there = (holder, key), f"{path} {label}"
            plain = _is_plain(found)
            if not plain and not isinstance(found, Tensor | np.ndarray):
                pending.append((found, there, here))
            if contents is None or _is_by_value(found):
                watches.append(Watch(there, here, _check(get, found, label, plain=plain), plain))
    return watches


def _is_by_value(value: Any) -> bool:
    return isinstance(value, np.ndarray) or _is_plain(value)


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, cast("tuple[Any, ...]", value)))
    return isinstance(value, _PLAIN)


def _class_of(value: object) -> type:
    return type(value)


def by_identity(value: Any) -> bool:
    """Whether equal means the same object: then nobody can come with another one for it."""
    cls = _class_of(value)
    return cls.__hash__ is object.__hash__ and cls.__eq__ is object.__eq__


# -- what things hold ------------------------------------------------------------------------------

Place = tuple[Get, str, str]
"""How to get at a thing, what it is called, and the name that code reads it by."""


def _places(value: Any) -> Iterable[Place]:
    """All that a value holds."""
    if isinstance(value, types.ModuleType | Tensor | np.ndarray):
        return []
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, type):
        return _of_class(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return [(_getter(items, key), f"[{key!r}]", ANY_NAME) for key in items]
    if isinstance(value, list | tuple):
        sequence = cast("list[Any]", value)
        return [(_item(sequence, k), f"[{k}]", ANY_NAME) for k in range(len(sequence))]
    inside = _INSIDE.get(_class_of(value))
    if inside is not None:
        return [(_inner(value, name), name, ANY_NAME) for name in inside]
    inner = getattr(value, "_function", None)
    if inner is not None and is_ours(type(value).__module__):
        return [(lambda: inner, "the function", ANY_NAME)]
    return _of_object(value)


_INSIDE: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__self__", "__func__"),
    functools.partial: ("func", "args", "keywords"),
    property: ("fget",),
    functools.cached_property: ("func",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
"""What these hold that is no attribute in a dict."""


_CLOSED = frozenset(("builtins", "numpy", "logging", "threading", "asyncio", "re", "_io", "random"))
"""Of objects of these modules nothing that they hold is watched: nothing one computes with, and
much."""


def _of_object(value: Any) -> list[Place]:
    """The attributes of an object."""
    cls = _class_of(value)
    if cls.__module__.partition(".")[0] in _CLOSED:
        return []
    reference = _weakly(value)
    attributes: Any = getattr(value, "__dict__", None)
    own = cast("dict[str, Any]", attributes) if isinstance(attributes, dict) else {}
    found: list[Place] = [
        (_getter(own, key) if reference is None else _attribute(reference, key), f".{key}", key)
        for key in own
    ]
    if is_ours(cls.__module__):
        return found
    for name in _slots(cls):
        found.append((_slot(reference or (lambda: value), name), f".{name}", name))
    return found


def _hides_nothing(value: Any) -> Check | None:
    """Whether an object still has none of its own for what it reads of its class, all at once; None
    for what has no attributes, or cannot hide any."""
    cls = _class_of(value)
    own: Any = getattr(value, "__dict__", None)
    if not isinstance(own, dict) or isinstance(value, type | types.FunctionType | Tensor):
        return None
    hidden = _hideable(cls) - cast("dict[str, Any]", own).keys()
    reference = _weakly(value)
    if not hidden or reference is None:
        return None

    def check() -> str:
        now = reference()
        if now is None or hidden.isdisjoint(now.__dict__):
            return ""
        return (
            f"a {cls.__name__} has got {', '.join(sorted(hidden & now.__dict__.keys()))} of its own"
        )

    return check


def _hideable(cls: type) -> set[str]:
    """The attributes of a class that an object's own would hide: all but those of the language's
    classes and the methods of ours."""
    found: set[str] = set()
    for each in cls.__mro__[:-1]:
        ours = is_ours(each.__module__)
        if _is_foreign(each.__module__) and not ours:
            continue
        for key, value in vars(each).items():
            is_data = not hasattr(cast("object", value), "__get__")
            is_method = isinstance(value, types.FunctionType) and not ours
            if not key.startswith("__") and (is_data or is_method):
                found.add(key)
    return found


def _of_class(cls: type) -> list[Place]:
    """What the user's classes among a class and its bases have, functions and values."""
    found: list[Place] = []
    for each in cls.__mro__[:-1]:
        if _is_foreign(each.__module__):
            continue
        for key, value in vars(each).items():
            if not key.startswith("__") or isinstance(value, types.FunctionType):
                found.append((_getter(vars(each), key), f".{key}", key))
    return found


def _slots(cls: type) -> Iterator[str]:
    for each in cls.__mro__[:-1]:
        for key, value in vars(each).items():
            if isinstance(value, types.MemberDescriptorType):
                yield key


def _of_function(function: types.FunctionType) -> list[Place]:
    found: list[Place] = []
    if is_ours(function.__module__):
        return found
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        found.append((_cell(cell), name, name))
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    found += [(_item(defaults, k), f"default {k}", ANY_NAME) for k in range(len(defaults))]
    names = _names(function.__code__)
    scope = function.__globals__
    found += _of_names(scope, names, "")
    return found


def _of_names(scope: dict[str, Any], names: set[str], prefix: str) -> Iterator[Place]:
    """The globals of these names, and those of modules among them: `settings.scale`."""
    pending, done = [(scope, prefix)], set[int]()
    while pending:
        scope, prefix = pending.pop()
        done.add(id(scope))
        for name in sorted(names & scope.keys()):
            value = scope[name]
            yield _getter(scope, name), prefix + name, name
            if not isinstance(value, types.ModuleType) or _is_foreign(value.__name__):
                continue
            if id(vars(value)) not in done:
                pending.append((vars(value), f"{prefix}{name}."))


def _is_foreign(module: str) -> bool:
    """Whether a module is the language's, numpy's or ours: nobody changes what it holds."""
    top = module.partition(".")[0]
    return top in ("uopc", "numpy") or (top in sys.stdlib_module_names and top != "__main__")


def _names(code: types.CodeType) -> set[str]:
    """The names that a function's code, and functions inside of it, look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


# -- how to get at it ------------------------------------------------------------------------------


def _weakly(value: Any) -> Get | None:
    if not by_identity(value):
        return None  # an equal one may come when this one is gone
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def _attribute(reference: Get, key: str) -> Get:
    """Of an object that the watch does not keep alive: what it holds may be a large model."""

    def get() -> Any:
        value = reference()
        return _MISSING if value is None else value.__dict__.get(key, _MISSING)

    return get


def _slot(reference: Get, key: str) -> Get:
    return lambda: getattr(reference(), key, _MISSING)


def _getter(items: Any, key: Any) -> Get:
    return lambda: items.get(key, _MISSING)


def _item(items: list[Any], at: int) -> Get:
    return lambda: items[at] if at < len(items) else _MISSING


def _inner(value: Any, name: str) -> Get:
    return lambda: getattr(value, name)


def _cell(cell: types.CellType) -> Get:
    def get() -> Any:
        try:
            return cell.cell_contents
        except ValueError:  # not yet assigned
            return _MISSING

    return get


# -- whether it is what it was ---------------------------------------------------------------------


def _check(get: Get, value: Any, name: str, *, plain: bool) -> Check:
    if plain:
        return _same(get, value, name)
    if isinstance(value, np.ndarray):
        return _same_array(get, cast("np.ndarray[Any, Any]", value), name)
    return _same_object(get, value, name)


def _same(get: Get, value: Any, name: str) -> Check:
    def check() -> str:
        now = get()
        if now is value or (type(now) is type(value) and repr(now) == repr(value)):
            return ""
        return f"{name} was {value!r:.60}, is {now!r:.60}"

    return check


def _same_array(get: Get, array: np.ndarray[Any, Any], name: str) -> Check:
    kept = (array.shape, array.dtype, array.tobytes())

    def check() -> str:
        now = get()
        if isinstance(now, np.ndarray):
            other = cast("np.ndarray[Any, Any]", now)
            if (other.shape, other.dtype) == kept[:2] and other.tobytes() == kept[2]:
                return ""
        return f"the array {name} has changed"

    return check


def _same_object(get: Get, value: Any, name: str) -> Check:
    reference = _reference(value)

    def check() -> str:
        now = get()
        if now is not None and now is reference():
            return ""
        return f"{name} is another {type(now).__name__}, or gone"

    return check


def _same_contents(value: Any, name: str) -> Check | None:
    """Of a list its length, of a dict its keys, of both the objects in them, in one go, since there
    are many of them at each call; of a set what it has. None for what has no contents."""
    if isinstance(value, set):
        members = cast("set[Any]", value)
        kept = set(members)
        return lambda: "" if members == kept else f"the set {name} has changed"
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        keys, same = list(entries), _same_objects(entries.values())
        return lambda: "" if list(entries) == keys and same() else f"the dict {name} has changed"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        length, same = len(items), _same_objects(items)
        return lambda: "" if len(items) == length and same() else f"the list {name} has changed"
    return None


def _same_objects(values: Collection[Any]) -> Callable[[], bool]:
    """Whether values at these places are what they were, by identity; what counts by value has a
    watch of its own."""
    references = [_anything if _is_by_value(value) else _reference(value) for value in values]
    if _anything in references:
        pairs = [k for k, reference in enumerate(references) if reference is not _anything]
        chosen = [references[k] for k in pairs]

        def same() -> bool:
            now = list(values)
            return all(now[k] is reference() for k, reference in zip(pairs, chosen, strict=True))

        return same
    return lambda: all(map(operator.is_, values, map(operator.call, references)))


def _anything() -> None:
    """Stands for a value that is compared elsewhere."""


def _reference(value: Any) -> Get:
    """Weakly where that is possible."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
