"""Reads the text of a pipeline: `a,b{x=1 flag}`, or MLIR's `builtin.module(a,func.func(b))`.

    pipeline ::= element (`,` element)* | <nothing>
    element  ::= name options? | anchor `(` pipeline `)` | `mlir-opt` `[` text `]`
    options  ::= `{` (key (`=` value (`,` value)*)?)* `}`
    anchor   ::= name of an op, such as builtin.module or func.func, or `any`
    value    ::= `"` characters `"` | characters other than blanks , { } "

Blanks may stand between any two of these. uopc's passes run on whole modules, so what an anchor
nests runs on the module too, in the order of the text. This is a superset of xDSL's own form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from uopc.dialects.errors import UopcError
from uopc.dialects.source_text import LineTable

_BLANK = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s,{}"]+)', re.DOTALL)
_BRACKETED = re.compile(r"\[((?:[^\]\\]|\\.)*)\]", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}

MLIR_OPT = "mlir-opt"
"""xDSL's pass that runs mlir-opt; its pipeline stands in square brackets."""


@dataclass(frozen=True)
class OptionValue:
    """One value as the text has it. Quoted, it is a string whatever it looks like."""

    text: str
    quoted: bool = False


@dataclass(frozen=True)
class PassRequest:
    """A pass asked for by name. `offset` is where the name starts in the text."""

    name: str
    options: dict[str, tuple[OptionValue, ...]] = field(
        default_factory=dict[str, "tuple[OptionValue, ...]"]
    )
    offset: int = 0


def parse_pipeline_text(text: str) -> list[PassRequest]:
    """The passes that a pipeline's text asks for, in order; anchors are flattened.

    Raises UopcError [bad-pipeline] that shows the place in the text.
    """
    return _PipelineReader(text).read_pipeline()


def parse_single(text: str) -> PassRequest:
    """One name with options, as `-t NAME{...}` has it. Raises UopcError [bad-pipeline]."""
    requests = parse_pipeline_text(text)
    if len(requests) != 1:
        raise UopcError("bad-pipeline", f"one name with options is expected, got {text!r}")
    return requests[0]


def pipeline_error(kind: str, message: str, text: str, offset: int, hint: str = "") -> UopcError:
    """An error that shows the pipeline's text with a caret at `offset`."""
    lines = LineTable(text, "pass-pipeline")
    return UopcError(
        kind,
        message,
        location=lines.location(offset),
        excerpt=lines.excerpt(offset, _end_of_name(text, offset)) if text.strip() else "",
        hint=hint,
    )


def _end_of_name(text: str, offset: int) -> int:
    match = _NAME.match(text, offset)
    return match.end() if match else offset + 1


class _PipelineReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self._skip_blanks()

    def read_pipeline(self) -> list[PassRequest]:
        requests: list[PassRequest] = []
        open_anchors: list[int] = []
        expects_element = True
        while self.offset < len(self.text):
            if self._take(")"):
                if not open_anchors:
                    self._fail("this `)` closes nothing", self.offset - 1)
                open_anchors.pop()
                expects_element = False
            elif not expects_element:
                if not self._take(","):
                    self._fail("`,` is expected between passes")
                expects_element = True
            else:
                start = self.offset
                name = self._take_name("the name of a pass is expected")
                if self._take("("):
                    self._check_anchor(name, start)
                    open_anchors.append(start)
                    continue
                requests.append(PassRequest(name, self._read_options(name), start))
                expects_element = False
        if open_anchors:
            self._fail("the `(` of this anchor is not closed", open_anchors[-1])
        return requests

    def _check_anchor(self, name: str, start: int) -> None:
        if name != "any" and "." not in name:
            self._fail(
                f"options of pass '{name}' stand in braces: {name}{{option=value}}; only the name "
                "of an op (builtin.module, func.func, any) nests passes in parentheses",
                start,
            )

    def _read_options(self, name: str) -> dict[str, tuple[OptionValue, ...]]:
        if name == MLIR_OPT and (match := _BRACKETED.match(self.text, self.offset)):
            self.offset = match.end()
            self._skip_blanks()
            arguments = (
                "--mlir-print-op-generic",
                "--allow-unregistered-dialect",
                "-p",
                f"builtin.module({match.group(1)})",
            )
            return {"arguments": tuple(OptionValue(each, quoted=True) for each in arguments)}
        options: dict[str, tuple[OptionValue, ...]] = {}
        opening = self.offset
        if not self._take("{"):
            return options
        while not self._take("}"):
            if self.offset >= len(self.text):
                self._fail("the `{` of these options is not closed", opening)
            start = self.offset
            key = self._take_name("the name of an option, or `}`, is expected")
            key = key.replace("-", "_")
            if key in options:
                self._fail(f"option '{key}' is given twice", start)
            options[key] = self._read_values() if self._take("=") else ()
        return options

    def _read_values(self) -> tuple[OptionValue, ...]:
        values = [self._read_value()]
        while self._take(","):
            values.append(self._read_value())
        return tuple(values)

    def _read_value(self) -> OptionValue:
        match = _VALUE.match(self.text, self.offset)
        if match is None:
            self._fail("a value is expected; text with blanks, commas or braces needs quotes")
        self.offset = match.end()
        self._skip_blanks()
        quoted, bare = match.groups()
        if quoted is None:
            return OptionValue(bare)
        unescaped = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), quoted, flags=re.DOTALL)
        return OptionValue(unescaped, quoted=True)

    def _take_name(self, otherwise: str) -> str:
        match = _NAME.match(self.text, self.offset)
        if match is None:
            self._fail(otherwise)
        self.offset = match.end()
        self._skip_blanks()
        return match.group()

    def _take(self, character: str) -> bool:
        if not self.text.startswith(character, self.offset):
            return False
        self.offset += 1
        self._skip_blanks()
        return True

    def _skip_blanks(self) -> None:
        match = _BLANK.match(self.text, self.offset)
        self.offset = match.end() if match else self.offset

    def _fail(self, message: str, offset: int | None = None) -> NoReturn:
        raise pipeline_error(
            "bad-pipeline",
            message,
            self.text,
            self.offset if offset is None else offset,
            hint="a pipeline reads: first-pass,second-pass{option=1 flag=true}",
        )
