"""Keywords of methods as other libraries spell them: `x.sum(dim=1, keepdims=True)`.

Methods take `axis` and `keepdim`. torch says `dim` and `dims` for the one, numpy `keepdims` for the
other: those are taken as well, by the methods that have the argument.
"""

from __future__ import annotations

import functools
import inspect
from types import FunctionType
from typing import Any, TypeVar

from uopc.frontend.core import bad

_OWN = {"dim": "axis", "dims": "axis", "keepdims": "keepdim"}
"""The names that methods have, by those of others."""

C = TypeVar("C", bound=type)


def takes_other_spellings(methods: C) -> C:
    """A class whose methods take the keywords of others, too."""
    for name, function in list(vars(methods).items()):
        if isinstance(function, FunctionType) and _OWN.keys() & _other_names(function):
            setattr(methods, name, _spelled(function, name))
    return methods


def _other_names(function: FunctionType) -> set[str]:
    """What the arguments of a function may be called besides."""
    code = inspect.unwrap(function).__code__
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {other for other, own in _OWN.items() if own in taken and other not in taken}


def _spelled(function: FunctionType, name: str) -> Any:
    names = _other_names(function)
    others = [other for other in _OWN if other in names]
    code = inspect.unwrap(function).__code__
    places = {own: code.co_varnames.index(own) for own in _OWN.values() if own in code.co_varnames}

    @functools.wraps(function)
    def spelled(*args: Any, **kwargs: Any) -> Any:
        given: dict[str, str] = {}
        for other in others:
            if other not in kwargs:
                continue
            own = _OWN[other]
            by_place = places[own] < min(len(args), code.co_argcount)
            if own in kwargs or own in given or by_place:
                first = given.get(own, own)
                raise bad(
                    "wrong-argument", f"{name} is given {first} and {other}", "give one of them"
                )
            given[own] = other
        for own, other in given.items():
            kwargs[own] = kwargs.pop(other)
        return function(*args, **kwargs)

    return spelled
