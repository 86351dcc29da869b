"""Checks `// expected-error@+1 {{text}}` annotations (--verify-diagnostics), as mlir-opt does.

An annotation expects an error on its own line, `@+N` or `@-N` lines away, `@above` or `@below`, or
without any place: `@unknown`. The text in braces must occur in the message, hint or kind of the
error; after `expected-error-re` the parts in double braces are regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uopc.dialects.errors import SourceLocation, UopcError

_ANNOTATION = re.compile(
    r"expected-(error|note|remark|warning)(-re)?[ \t]*"
    r"(?:@([+-][0-9]{1,9}|above|below|unknown))?[ \t]*\{\{(.*)\}\}[ \t\r]*$"
)
_STARTS = re.compile(r"//.*expected-(?:error|note|remark|warning)")


@dataclass(frozen=True)
class Expectation:
    """One annotation. `line` is the line where the error is expected, None for any place."""

    kind: str
    pattern: re.Pattern[str]
    text: str
    line: int | None
    written_at: SourceLocation

    def matches(self, error: UopcError, file: str) -> bool:
        """Whether this annotation expects the error."""
        here = error.location if error.location and error.location.file == file else None
        if self.kind != "error" or (here.line if here else None) != self.line:
            return False
        return self.pattern.search(message_text(error)) is not None


def message_text(error: UopcError) -> str:
    """What an annotation's text is searched in: the error as printed, without place and source."""
    return "\n".join((f"{error.message} [{error.kind}]", error.op_text, error.hint))


def find_expectations(text: str, file: str, first_line: int = 1) -> list[Expectation]:
    """All annotations in a text whose first line has the number `first_line`.

    Raises UopcError [bad-annotation] for one that cannot be understood.
    """
    expectations: list[Expectation] = []
    for number, line in enumerate(text.split("\n"), first_line):
        if _STARTS.search(line) is None:
            continue
        location = SourceLocation(file, number, 1)
        match = _ANNOTATION.search(line)
        if match is None:
            raise UopcError(
                "bad-annotation",
                "this annotation cannot be understood",
                location=location,
                hint="write // expected-error@+1 {{part of the message}}",
            )
        kind, regular, place, wanted = match.groups()
        try:
            pattern = _compile(wanted, regular is not None)
        except re.error as error:
            raise UopcError(
                "bad-annotation", f"wrong regular expression: {error}", location=location
            ) from error
        expectations.append(Expectation(kind, pattern, wanted, _line(place, number), location))
    return expectations


def check_expectations(
    expectations: Sequence[Expectation], errors: Sequence[UopcError], file: str
) -> Iterator[UopcError]:
    """What is wrong: errors that no annotation expects, and annotations without their error."""
    remaining = list(expectations)
    for error in errors:
        found = next((each for each in remaining if each.matches(error, file)), None)
        if found is None:
            yield UopcError(
                "unexpected-error",
                f"unexpected error: {error.message} [{error.kind}]",
                location=error.location,
                excerpt=error.excerpt,
                op_text=error.op_text,
                pass_name=error.pass_name,
                hint=error.hint,
            )
        else:
            remaining.remove(found)
    for each in remaining:
        where = "" if each.line is None else f" at line {each.line}"
        yield UopcError(
            "missing-diagnostic",
            f"expected {each.kind} {each.text!r} was not produced{where}",
            location=each.written_at,
            hint="" if each.kind == "error" else "this tool produces errors only",
        )


def _line(place: str | None, number: int) -> int | None:
    match place:
        case None:
            return number
        case "unknown":
            return None
        case "above":
            return number - 1
        case "below":
            return number + 1
        case _:
            return number + int(place)


def _compile(wanted: str, regular: bool) -> re.Pattern[str]:
    if not regular:
        return re.compile(re.escape(wanted))
    parts = re.split(r"\{\{(.*?)\}\}", wanted)
    return re.compile(
        "".join(f"(?:{part})" if i % 2 else re.escape(part) for i, part in enumerate(parts))
    )
