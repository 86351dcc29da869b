"""Which passes uopc brings, by name. Add a row, and every tool has the pass.

A row is text, imported when the pass is asked for. A name that another xDSL project uses breaks
every tool in the environment, so common names carry the prefix `uopc-`.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass

from uopc.dialects.registry import lazy_factories

PASSES: dict[str, str] = {
    "apply-schedule": "uopc.passes.apply_schedule:ApplySchedulePass",
    "convert-linalg-to-utensor": (
        "uopc.passes.convert_linalg_to_utensor:ConvertLinalgToUtensorPass"
    ),
    "convert-stablehlo-to-utensor": (
        "uopc.passes.convert_stablehlo_to_utensor:ConvertStablehloToUtensorPass"
    ),
    "convert-utensor-to-stablehlo": (
        "uopc.passes.convert_utensor_to_stablehlo:ConvertUtensorToStablehloPass"
    ),
    "dedupe-kernels": "uopc.passes.dedupe_kernels:DedupeKernelsPass",
    "differentiate": "uopc.passes.differentiate:DifferentiatePass",
    "expand-math": "uopc.passes.expand_math:ExpandMathPass",
    "gpu-map": "uopc.passes.gpu_map:GpuMapPass",
    "group-accesses": "uopc.passes.group_accesses:GroupAccessesPass",
    "kernelize": "uopc.passes.kernelize:KernelizePass",
    "linearize": "uopc.passes.linearize:LinearizePass",
    "lower-plan": "uopc.passes.lower_plan:LowerPlanPass",
    "plan-memory": "uopc.passes.plan_memory:PlanMemoryPass",
    "prune-parameters": "uopc.passes.prune_parameters:PruneParametersPass",
    "scatter-rows": "uopc.passes.scatter_rows:ScatterRowsPass",
    "write-in-place": "uopc.passes.write_in_place:WriteInPlacePass",
    "rangeify": "uopc.passes.rangeify:RangeifyPass",
    "schedule": "uopc.passes.schedule:SchedulePass",
    "split-reductions": "uopc.passes.split_reductions:SplitReductionsPass",
    "stage-broadcast-compute": ("uopc.passes.stage_broadcast_compute:StageBroadcastComputePass"),
    "stage-shared-reads": "uopc.passes.stage_shared_reads:StageSharedReadsPass",
    "uopc-canonicalize": "uopc.passes.canonicalize:CanonicalizePass",
    "uopc-cse": "uopc.passes.cse:CommonSubexpressionEliminationPass",
    "uopc-dce": "uopc.passes.dce:DeadCodeEliminationPass",
}


def pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """uopc's passes, each as a factory that imports the pass when it is called."""
    return lazy_factories(PASSES)
