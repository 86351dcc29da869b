"""From a pipeline's text to passes: names, options, named pipelines."""

from dataclasses import dataclass, field
from typing import Literal

import pytest
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_pipeline

from uopc.dialects.errors import UopcError
from uopc.passes import pipelines
from uopc.passes.listing import list_passes, show_pipeline, summary_of
from uopc.passes.pipeline_text import parse_pipeline_text
from uopc.passes.resolve import resolve_pipeline


@dataclass(frozen=True)
class Plain(ModulePass):
    """Does nothing. And does it well."""

    name = "plain-pass"

    def apply(self, ctx, op):
        pass


@dataclass(frozen=True)
class Rich(Plain):
    name = "rich"
    count: int = 1
    ratio: float = 0.5
    deep_search: bool = False
    label: str = ""
    kind: Literal["none", "all", "auto"] = "auto"
    tiles: tuple[int, ...] = (4, 8)
    pair: tuple[int, str] | None = None
    limit: int | None = None
    choice: int | str = 0
    names: tuple[str, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class Needy(Plain):
    """Needs a number."""

    name = "needy"
    count: int

    def __post_init__(self):
        if self.count < 0:
            raise ValueError("count must not be negative")


def missing():
    raise ModuleNotFoundError("No module named 'no_such_package'")


AVAILABLE = {
    "plain-pass": lambda: Plain,
    "rich": lambda: Rich,
    "needy": lambda: Needy,
    "absent": missing,
}


def resolve(text):
    return resolve_pipeline(text, AVAILABLE)


@pytest.mark.parametrize(
    "text",
    [
        "plain-pass,rich{count=3},plain-pass",
        "plain_pass,rich{count=3},plain_pass",
        " plain-pass , rich { count = 3 } ,\n plain-pass ",
        "builtin.module(plain-pass,rich{count=3},plain-pass)",
        "builtin.module(plain-pass,func.func(rich{count=3}),any(plain-pass))",
        "builtin.module(func.func(),plain-pass,func.func(rich{count=3},plain-pass))",
        "plain-pass,rich{count=0x3},plain-pass,",
    ],
)
def test_forms_of_a_pipeline(text):
    assert resolve(text) == [Plain(), Rich(count=3), Plain()]


def test_no_passes():
    assert resolve("") == resolve(" ") == resolve("builtin.module()") == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("count=-3", Rich(count=-3)),
        ("ratio=2", Rich(ratio=2.0)),
        ("ratio=1e-5", Rich(ratio=1e-5)),
        ("deep-search", Rich(deep_search=True)),
        ("deep_search=true label=x", Rich(deep_search=True, label="x")),
        ("label=12", Rich(label="12")),
        ('label="a b,{}\\"\\n"', Rich(label='a b,{}"\n')),
        ("kind=none", Rich(kind="none")),
        ("tiles=1,2,3", Rich(tiles=(1, 2, 3))),
        ("tiles=7", Rich(tiles=(7,))),
        ("pair=1,b", Rich(pair=(1, "b"))),
        ("limit=none", Rich()),
        ("limit=5", Rich(limit=5)),
        ("choice=5", Rich(choice=5)),
        ('choice="5"', Rich(choice="5")),
        ("names=a,b", Rich(names=("a", "b"))),
        ("count=2 ratio=0.25 kind=all", Rich(count=2, ratio=0.25, kind="all")),
    ],
)
def test_options(options, expected):
    assert resolve(f"rich{{{options}}}") == [expected]


def test_what_xdsl_reads_is_read_alike():
    text = 'rich{count=3 tiles=1,2 deep-search=true label="a b" ratio=0.25},plain-pass'
    theirs = [AVAILABLE[spec.name]().from_spec(spec) for spec in parse_pipeline(text)]
    assert resolve(text) == theirs
    (request,) = parse_pipeline_text('mlir-opt[cse,{}"x"]')
    assert request.options["arguments"][-1].text == 'builtin.module(cse,{}"x")'


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("plain_pas", "unknown-pass", "did you mean plain-pass?"),
        ("rich{cuont=3}", "unknown-option", "did you mean count?"),
        ("rich{x=3}", "unknown-option", "tiles: list of int (default 4,8)"),
        ("rich{x=3}", "unknown-option", "kind: one of none|all|auto (default auto)"),
        ("plain-pass{x}", "unknown-option", "plain-pass has no options"),
        ("rich{count=many}", "bad-option-value", "'count' of pass 'rich' expects int, got 'many'"),
        ("rich{count=1.5}", "bad-option-value", "expects int, got '1.5'"),
        ("rich{count=1,2}", "bad-option-value", "expects int, got '1,2'"),
        ("rich{count}", "bad-option-value", "expects int, got 'nothing'"),
        ('rich{count="1"}', "bad-option-value", "expects int, got '1'"),
        ("rich{count=" + "1" * 5000 + "}", "bad-option-value", "expects int"),
        ("rich{deep-search=yes}", "bad-option-value", "expects bool, got 'yes'"),
        ("rich{kind=some}", "bad-option-value", "expects one of none|all|auto, got 'some'"),
        ("rich{tiles=1,x}", "bad-option-value", "expects list of int"),
        ("rich{pair=1}", "bad-option-value", "2 values (int, str) or none"),
        ("needy", "missing-option", "pass 'needy' needs option 'count'"),
        ("needy{count=-1}", "bad-option-value", "count must not be negative"),
        ("rich{count=1 count=2}", "bad-pipeline", "given twice"),
        ("rich{count=}", "bad-pipeline", "a value is expected"),
        ("rich{count=1", "bad-pipeline", "not closed"),
        ("rich{=1}", "bad-pipeline", "the name of an option"),
        ("plain-pass,,rich", "bad-pipeline", "the name of a pass is expected"),
        ("plain-pass rich", "bad-pipeline", "`,` is expected"),
        ("builtin.module(rich", "bad-pipeline", "not closed"),
        ("rich)", "bad-pipeline", "closes nothing"),
        ("é", "bad-pipeline", "the name of a pass is expected"),
        ("absent", "missing-dependency", "No module named 'no_such_package'"),
        ("(" * 20000, "bad-pipeline", "the name of a pass"),
        ("any(" * 20000, "bad-pipeline", "not closed"),
    ],
)
def test_mistakes(text, kind, words):
    with pytest.raises(UopcError) as caught:
        resolve(text)
    error = caught.value
    assert error.kind == kind
    assert words in str(error)
    assert error.location.file == "pass-pipeline" and error.location.line == 1


def test_the_caret_stands_under_the_name():
    with pytest.raises(UopcError) as caught:
        resolve("plain-pass, nope{x=1}")
    assert caught.value.location.column == 13
    assert caught.value.excerpt == "  plain-pass, nope{x=1}\n              ^^^^"


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setitem(pipelines.PIPELINES, "my-pipeline", ("plain-pass", "rich", "needy"))
    monkeypatch.setitem(pipelines.PIPELINES, "my-broken", ("plain-pass", "gone"))


def test_named_pipelines(named):
    expected = [Plain(), Plain(), Rich(count=2, label="x"), Needy(count=2)]
    assert resolve("plain-pass,my_pipeline{count=2 label=x}") == expected
    with pytest.raises(UopcError, match="no pass of pipeline 'my-pipeline' has option 'conut'"):
        resolve("my-pipeline{conut=2}")
    with pytest.raises(UopcError, match="names passes that are not there: gone"):
        resolve("my-broken")
    assert show_pipeline("my_pipeline") == "plain-pass,rich,needy"
    with pytest.raises(UopcError, match=r"did you mean my-pipeline"):
        show_pipeline("my-pipelin")


def test_listing(named):
    lines = list_passes(AVAILABLE, ["rich"]).splitlines()
    assert "  my-pipeline: plain-pass,rich,needy" in lines
    assert lines.index("  rich") < lines.index("  plain-pass: Does nothing")
    assert "      limit: int or none (default none)" in lines
    assert "      count: int (required)" in lines
    assert "  absent: not available (pass 'absent' cannot be loaded: No module named" in "\n".join(
        lines
    )
    assert summary_of(Needy) == "Needs a number"
