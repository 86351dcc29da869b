"""Lists passes for people: name, summary, options."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.passes import ModulePass

from uopc.dialects.errors import UopcError
from uopc.passes.options import options_of
from uopc.passes.pipelines import PIPELINES, pipeline_text
from uopc.passes.resolve import PassTable, did_you_mean, find_name, load_pass


def list_passes(available: PassTable, first: Iterable[str]) -> str:
    """Every pass with a one-line summary and its options; the names of `first` come first.

    Imports all passes (about a second for xDSL's). One that needs a package that is not there
    is listed as such.
    """
    own = [name for name in first if name in available]
    rest = sorted(set(available) - set(own) - set(PIPELINES))
    lines = ["pipelines:"]
    for name in PIPELINES:
        lines.append(f"  {name}: {pipeline_text(name)}")
    for title, names in (("passes of uopc:", sorted(own)), ("passes of others:", rest)):
        lines.append(title)
        for name in names:
            lines.extend(_describe(name, available))
    return "\n".join(lines) + "\n"


def summary_of(pass_class: type[ModulePass]) -> str:
    """The first sentence of the class's docstring; empty without one."""
    text = (pass_class.__doc__ or "").strip()
    if text.startswith(f"{pass_class.__name__}("):
        return ""  # written by @dataclass
    sentence, _, _ = " ".join(text.partition("\n\n")[0].split()).partition(". ")
    return sentence.removesuffix(".")


def show_pipeline(name: str) -> str:
    """The passes of a named pipeline as `-p` takes them. Raises UopcError [unknown-pipeline]."""
    found = find_name(name, PIPELINES)
    if found is None:
        raise UopcError(
            "unknown-pipeline",
            f"there is no pipeline named '{name}'",
            hint=f"{did_you_mean(name, PIPELINES)} There are: {', '.join(PIPELINES)}".strip(),
        )
    return pipeline_text(found)


def _describe(name: str, available: PassTable) -> Iterable[str]:
    try:
        pass_class = load_pass(name, available)
    except UopcError as error:
        yield f"  {name}: not available ({error.message})"
        return
    summary = summary_of(pass_class)
    yield f"  {name}: {summary}" if summary else f"  {name}"
    for option in options_of(pass_class):
        yield f"      {option}"
