"""From the text of a pipeline to passes ready to run: names found, pipelines expanded."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping

from xdsl.passes import ModulePass

from uopc.dialects.errors import UopcError
from uopc.passes.options import instantiate, options_of
from uopc.passes.pipeline_text import (
    PassRequest,
    parse_pipeline_text,
    parse_single,
    pipeline_error,
)
from uopc.passes.pipelines import PIPELINES

PassTable = Mapping[str, Callable[[], type[ModulePass]]]


def resolve_pipeline(text: str, available: PassTable) -> list[ModulePass]:
    """The passes that a pipeline's text names, with their options, named pipelines expanded.

    A name is taken with `-` or `_`. The options of a named pipeline go to each of its passes
    that has an option of that name.

    Raises UopcError: [bad-pipeline], [unknown-pass], [unknown-option], [bad-option-value],
    [missing-option], or [missing-dependency] if a pass needs a package that is not there.
    """
    passes: list[ModulePass] = []
    for request in parse_pipeline_text(text):
        for each in expand_request(request, available, text):
            name = find_name(each.name, available)
            if name is None:
                raise _unknown_pass(each, available, text)
            try:
                passes.append(instantiate(load_pass(name, available), each))
            except UopcError as error:
                raise _at_request(error, each, text) from error
    return passes


def with_defaults(passes: Iterable[ModulePass], name: str, **options: object) -> list[ModulePass]:
    """Passes with other defaults for the options of those of a name: what is given stays."""
    found: list[ModulePass] = []
    for each in passes:
        if each.name == name:
            defaults = {f.name: f.default for f in dataclasses.fields(each)}
            left = {k: v for k, v in options.items() if getattr(each, k) == defaults[k]}
            found.append(dataclasses.replace(each, **left))
        else:
            found.append(each)
    return found


def expand_request(request: PassRequest, available: PassTable, text: str) -> list[PassRequest]:
    """A named pipeline as its passes; anything else as it is."""
    pipeline = find_name(request.name, PIPELINES)
    if pipeline is None:
        return [request]
    steps = [parse_single(each) for each in PIPELINES[pipeline]]
    missing = [step.name for step in steps if step.name not in available]
    if missing:
        raise pipeline_error(
            "unknown-pass",
            f"pipeline '{pipeline}' names passes that are not there: {', '.join(missing)}",
            text,
            request.offset,
        )
    taken: set[str] = set()
    passes: list[PassRequest] = []
    for step in steps:
        own = _option_names(step.name, available) if request.options else set[str]()
        options = {key: value for key, value in request.options.items() if key in own}
        taken.update(options)
        passes.append(PassRequest(step.name, step.options | options, request.offset))
    unknown = [key for key in request.options if key not in taken]
    if unknown:
        everything = sorted({key for step in steps for key in _option_names(step.name, available)})
        raise pipeline_error(
            "unknown-option",
            f"no pass of pipeline '{pipeline}' has option {unknown[0].replace('_', '-')!r}",
            text,
            request.offset,
            hint=did_you_mean(
                unknown[0].replace("_", "-"), [k.replace("_", "-") for k in everything]
            )
            or "options of its passes: " + ", ".join(k.replace("_", "-") for k in everything),
        )
    return passes


def find_name(name: str, table: Iterable[str]) -> str | None:
    """The key of `table` that `name` means: itself, or with dashes for underscores."""
    for candidate in (name, name.replace("_", "-")):
        if candidate in table:
            return candidate
    return None


def load_pass(name: str, available: PassTable) -> type[ModulePass]:
    """Import a pass. Raises UopcError [missing-dependency] if it needs what is not installed."""
    try:
        return available[name]()
    except ImportError as error:
        raise UopcError(
            "missing-dependency",
            f"pass '{name}' cannot be loaded: {error}",
            hint="install what it needs, or leave the pass out",
        ) from error


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question with the nearest names, or nothing if none is near."""
    near = difflib.get_close_matches(name, list(names), 3, cutoff=0.55)
    return f"did you mean {' or '.join(near)}?" if near else ""


def _option_names(pass_name: str, available: PassTable) -> set[str]:
    options = options_of(load_pass(pass_name, available))
    return {option.name.replace("-", "_") for option in options}


def _unknown_pass(request: PassRequest, available: PassTable, text: str) -> UopcError:
    guess = did_you_mean(request.name.replace("_", "-"), [*available, *PIPELINES])
    return pipeline_error(
        "unknown-pass",
        f"there is no pass named '{request.name}'",
        text,
        request.offset,
        hint=f"{guess} --list-passes lists all".strip(),
    )


def _at_request(error: UopcError, request: PassRequest, text: str) -> UopcError:
    """The same error, with the place in the pipeline's text."""
    placed = pipeline_error(error.kind, error.message, text, request.offset, hint=error.hint)
    return placed if error.location is None else error
