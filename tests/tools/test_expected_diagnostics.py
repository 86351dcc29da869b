"""Annotations of --verify-diagnostics: what they expect and where."""

import pytest

from uopc.dialects.errors import SourceLocation, UopcError
from uopc.tools.expected_diagnostics import check_expectations, find_expectations


def error(line, file="f"):
    place = None if line is None else SourceLocation(file, line, 5)
    return UopcError("bad-axis", "axis 2 is out of range", location=place, hint="axes count from 0")


def problems(text, *errors, first_line=1):
    found = check_expectations(find_expectations(text, "f", first_line), errors, "f")
    return [each.kind for each in found]


@pytest.mark.parametrize(
    ("annotation", "line"),
    [
        ("// expected-error {{axis 2}}", 2),
        ("  op() // expected-error@+0 {{axis 2}}", 2),
        ("// expected-error@+1 {{axis 2}}", 3),
        ("// expected-error@+12 {{out of range}}  ", 14),
        ("// expected-error@-1 {{axis 2}}", 1),
        ("// expected-error@above {{[bad-axis]}}", 1),
        ("// expected-error@below {{axes count from 0}}", 3),
        ("// expected-error@unknown {{axis}}", None),
        ("// expected-error-re@+1 {{axis {{[0-9]+}} is}}", 3),
        ("// expected-error-re {{axis {{2|3}} is out{{.*}}e}}", 2),
        ("// expected-error {{axis 2}}\r", 2),
    ],
)
def test_matches(annotation, line):
    text = f"first\n{annotation}\n"
    assert problems(text, error(line)) == []
    assert problems(text) == ["missing-diagnostic"]
    assert problems(text, error(99)) == ["unexpected-error", "missing-diagnostic"]
    other = UopcError("other", "words", location=error(line).location)
    assert problems(text, other) == ["unexpected-error", "missing-diagnostic"]


def test_text_is_no_pattern_and_must_occur():
    assert problems("// expected-error {{axis . is}}", error(1)) != []
    assert problems("// expected-error-re {{axis . is}}", error(1)) != []
    assert problems("// expected-error {{}}", error(1)) == []


def test_each_annotation_takes_one_error():
    text = "// expected-error {{axis}}"
    assert problems(text, error(1), error(1)) == ["unexpected-error"]
    assert problems(text + "\n// expected-error@-1 {{axis}}", error(1), error(1)) == []


def test_errors_of_other_files_have_no_line_here():
    text = "// expected-error {{axis}}"
    assert problems(text, error(1, file="other")) == ["unexpected-error", "missing-diagnostic"]
    assert problems("// expected-error@unknown {{axis}}", error(1, file="other")) == []


def test_lines_count_from_the_start_of_the_file():
    assert problems("\n// expected-error@+1 {{axis}}", error(12), first_line=10) == []


def test_other_kinds_are_never_produced():
    assert problems("// expected-warning {{axis}}", error(1)) == [
        "unexpected-error",
        "missing-diagnostic",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "// expected-error axis",
        "// expected-error@+ {{axis}}",
        "// expected-error {{axis",
        "// expected-error-re {{a{{(}}}}",
    ],
)
def test_annotations_that_cannot_be_understood(text):
    with pytest.raises(UopcError) as caught:
        find_expectations("\n" + text, "f")
    assert caught.value.kind == "bad-annotation"
    assert caught.value.location.line == 2
