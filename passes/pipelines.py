"""The named pipelines, as data: read one from top to bottom to know what a compile does.

A name stands wherever the name of a pass may stand (`uopc-opt -p uopc-cpu`), and
`uopc-opt --show-pipeline uopc-cpu` prints what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline

_ON_TENSORS = ("uopc-canonicalize", "stage-broadcast-compute", "stage-shared-reads")
_ON_PLANS = ("prune-parameters", "plan-memory")
_TO_LOOPS = ("linearize", "lower-plan", "expand-math")

_PLAIN = (*_ON_TENSORS, "kernelize", "dedupe-kernels", "rangeify", *_ON_PLANS)
"""One kernel a reduction."""
_FUSED = (
    "uopc-canonicalize",
    "scatter-rows",
    "split-reductions",
    "stage-broadcast-compute{rows=false}",
    "stage-shared-reads",
    "kernelize{fuse-reduce=auto multi-output=true donated=true}",
    "dedupe-kernels",
    "rangeify{tile-rows=true}",
    "prune-parameters",
    "write-in-place",
    "plan-memory",
)
"""A row's reductions in one kernel, which keeps what they share."""

PIPELINES: dict[str, tuple[str, ...]] = {
    # From tensors to plain loops for one CPU core, ready for `-t c`: C for any machine.
    "uopc-cpu": (*_PLAIN, *_TO_LOOPS),
    # The same with kernels shaped for this machine's vectors and caches; what uopc.compile runs.
    "uopc-cpu-native": (*_FUSED, "schedule", "apply-schedule", *_TO_LOOPS),
    # From tensors to kernels of blocks and threads, ready for `-t cuda`.
    "uopc-cuda": (*_PLAIN, "gpu-map", "apply-schedule", *_TO_LOOPS, "group-accesses"),
}


def pipeline_text(name: str) -> str:
    """The passes of a named pipeline, as `-p` takes them."""
    return ",".join(PIPELINES[name])


def pipeline_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """Each pipeline as one pass, for tools that know passes only (plain xdsl-opt).

    uopc-opt does not use these: it expands the name, so as to verify and time every pass.
    """
    return {name: _as_one_pass(name) for name in PIPELINES}


def _as_one_pass(pipeline_name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        class NamedPipeline(ModulePass):
            __doc__ = f"Run {pipeline_text(pipeline_name)}."
            name = pipeline_name

            def apply(self, ctx: Context, op: ModuleOp) -> None:
                from uopc.passes.registry import pass_factories

                passes = PassPipeline.parse_spec(pass_factories(), pipeline_text(pipeline_name))
                passes.apply(ctx, op)

        return NamedPipeline

    return load
