"""What uopc adds to every xDSL tool in the environment (entry point `xdsl.universe`)."""

from __future__ import annotations

from xdsl.universe import Universe

from uopc.dialects.registry import dialect_factories
from uopc.lowering.registry import target_factories
from uopc.passes.pipelines import pipeline_factories
from uopc.passes.registry import pass_factories

UOPC_UNIVERSE = Universe(
    all_dialects=dialect_factories(),
    all_passes={**pass_factories(), **pipeline_factories()},
    all_targets=target_factories(),
)
