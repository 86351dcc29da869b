"""The options of passes and targets: what there is, and text turned into values of their types.

Options are the fields of the frozen dataclass that a pass is: int, float, bool, str, a Literal
of choices, tuples of these, or None. Names are shown with `-` and taken with `-` or `_`.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible, ParameterListType

from uopc.dialects.errors import UopcError
from uopc.passes.pipeline_text import OptionValue, PassRequest

SpecT = TypeVar("SpecT", bound=ArgSpecConvertible)

_INTEGER = re.compile(r"[-+]?(0x[0-9a-fA-F]+|[0-9]+)")
_FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?inf|nan")
_DIGIT_LIMIT = 4000
"""Python refuses to read longer decimal numbers."""


@dataclass(frozen=True)
class Option:
    """One option: its name as shown, its type and default in words."""

    name: str
    type_text: str
    default: str | None

    def __str__(self) -> str:
        default = "required" if self.default is None else f"default {self.default}"
        return f"{self.name}: {self.type_text} ({default})"


class _NoMatchError(Exception):
    """The text is no value of the type."""


def options_of(spec_class: type[ArgSpecConvertible]) -> list[Option]:
    """All options of a pass or target class, in the order of its fields."""
    hints = get_type_hints(spec_class)
    options: list[Option] = []
    for each in _fields(spec_class):
        default: str | None = None
        if each.default is not dataclasses.MISSING:
            default = _value_text(each.default)
        elif each.default_factory is not dataclasses.MISSING:
            default = _value_text(each.default_factory())
        elif each.name not in spec_class.required_fields():
            default = "none"
        options.append(Option(_shown(each.name), type_text(hints[each.name]), default))
    return options


def instantiate(spec_class: type[SpecT], request: PassRequest, what: str = "pass") -> SpecT:
    """A pass (or target) with the options that the request gives it.

    Raises UopcError: [unknown-option] with the nearest names and all options, [bad-option-value]
    with the type expected and the text got, [missing-option].
    """
    title = f"{what} '{spec_class.name}'"
    known = {each.name: each for each in _fields(spec_class)}
    hints = get_type_hints(spec_class)
    parameters: dict[str, ParameterListType] = {}
    for key, values in request.options.items():
        name = key.replace("-", "_")
        if name not in known:
            raise _unknown_option(spec_class, key, title)
        try:
            parameters[name] = _as_parameter(_convert(values, hints[name]))
        except _NoMatchError:
            got = ",".join(value.text for value in values) or "nothing"
            raise UopcError(
                "bad-option-value",
                f"option '{_shown(name)}' of {title} expects {type_text(hints[name])}, got {got!r}",
                hint=_all_options(spec_class),
            ) from None
    missing = sorted(spec_class.required_fields() - parameters.keys())
    if missing:
        raise UopcError(
            "missing-option",
            f"{title} needs option {', '.join(repr(_shown(name)) for name in missing)}",
            hint=f"write {spec_class.name}{{{' '.join(_shown(name) + '=…' for name in missing)}}}; "
            + _all_options(spec_class),
        )
    try:
        return spec_class.from_spec(ArgSpec(spec_class.name, parameters))
    except ValueError as error:
        raise UopcError(
            "bad-option-value", f"{title}: {error}", hint=_all_options(spec_class)
        ) from error


def type_text(hint: Any) -> str:
    """A type in words: `int`, `one of all|auto`, `list of int`, `int or none`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(type_text(each) for each in arguments)
    if origin is Literal:
        return "one of " + "|".join(_value_text(each) for each in arguments)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return f"list of {type_text(arguments[0])}"
        return f"{len(arguments)} values ({', '.join(type_text(each) for each in arguments)})"
    if hint is NoneType:
        return "none"
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _fields(spec_class: type[ArgSpecConvertible]) -> list[dataclasses.Field[Any]]:
    return [f for f in dataclasses.fields(spec_class) if f.init and f.name != "name"]


def _shown(name: str) -> str:
    return name.replace("_", "-")


def _value_text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_value_text, cast("tuple[object, ...]", value))) or "empty"
    if isinstance(value, str):
        return value or '""'
    return "none" if value is None else str(value).lower()


def _unknown_option(spec_class: type[ArgSpecConvertible], key: str, title: str) -> UopcError:
    names = [_shown(each.name) for each in _fields(spec_class)]
    near = difflib.get_close_matches(_shown(key), names, 3)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    return UopcError(
        "unknown-option",
        f"{title} has no option '{_shown(key)}'",
        hint=guess + _all_options(spec_class),
    )


def _all_options(spec_class: type[ArgSpecConvertible]) -> str:
    options = options_of(spec_class)
    if not options:
        return f"{spec_class.name} has no options"
    return f"options of {spec_class.name}: " + "; ".join(str(option) for option in options)


def _as_parameter(value: Any) -> ParameterListType:
    """The form in which xDSL takes a value: a tuple, empty for None."""
    if value is None:
        return ()
    return cast(ParameterListType, value if isinstance(value, tuple) else (value,))


def _convert(values: Sequence[OptionValue], hint: Any) -> Any:
    """The value of type `hint` that the text stands for. Raises _NoMatchError."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for each in arguments:
            try:
                return _convert(values, each)
            except _NoMatchError:
                continue
        raise _NoMatchError
    if origin is tuple:
        return _convert_tuple(values, arguments)
    if hint is NoneType:
        if not values or [value.text for value in values] == ["none"]:
            return None
        raise _NoMatchError
    if hint is bool and not values:
        return True
    if len(values) != 1:
        raise _NoMatchError
    return _convert_one(values[0], hint, origin, arguments)


def _convert_tuple(values: Sequence[OptionValue], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_convert((value,), arguments[0]) for value in values)
    if len(values) != len(arguments):
        raise _NoMatchError
    return tuple(_convert((value,), each) for value, each in zip(values, arguments, strict=True))


def _convert_one(value: OptionValue, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Any:
    text = value.text
    if origin is Literal:
        for choice in arguments:
            if _value_text(choice) == text or (isinstance(choice, str) and choice == text):
                return choice
    elif hint is str:
        return text
    elif value.quoted or len(text) > _DIGIT_LIMIT:
        pass
    elif hint is bool and text in ("true", "false"):
        return text == "true"
    elif hint is int and _INTEGER.fullmatch(text):
        return int(text, 16 if "x" in text else 10)
    elif hint is float and _FLOAT.fullmatch(text):
        return float(text)
    raise _NoMatchError
