"""Every row of the tables of dialects, passes, pipelines and targets is what it says."""

from dataclasses import is_dataclass

import pytest
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.target import Target

from uopc.dialects.legality import LEVELS
from uopc.dialects.registry import DIALECTS, dialect_factories, make_context
from uopc.lowering.registry import TARGETS, target_factories
from uopc.passes.pipeline_text import parse_single
from uopc.passes.pipelines import PIPELINES, pipeline_factories, pipeline_text
from uopc.passes.registry import PASSES, pass_factories
from uopc.passes.resolve import resolve_pipeline
from uopc.universe import UOPC_UNIVERSE


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects(name):
    dialect = dialect_factories()[name]()
    assert isinstance(dialect, Dialect) and dialect.name == name
    assert make_context().get_optional_dialect(name) is not None


@pytest.mark.parametrize("name", PASSES)
def test_passes(name):
    pass_class = pass_factories()[name]()
    assert issubclass(pass_class, ModulePass) and is_dataclass(pass_class)
    assert pass_class.name == name
    assert getattr(pass_class, "level_after", "") in {"", *LEVELS}


@pytest.mark.parametrize("name", TARGETS)
def test_targets(name):
    target_class = target_factories()[name]()
    assert issubclass(target_class, Target) and target_class.name == name


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(name):
    passes = resolve_pipeline(name, pass_factories())
    assert [each.name for each in passes] == [parse_single(step).name for step in PIPELINES[name]]
    assert resolve_pipeline(pipeline_text(name), pass_factories()) == passes
    assert pipeline_factories()[name]().name == name


def test_no_name_is_taken_by_xdsl():
    everything = Universe.get_multiverse()  # raises if a name is there twice
    for kind in ("all_dialects", "all_passes", "all_targets"):
        own, theirs = getattr(UOPC_UNIVERSE, kind), getattr(XDSL_UNIVERSE, kind)
        assert not own.keys() & theirs.keys()
        assert own.keys() <= getattr(everything, kind).keys()
