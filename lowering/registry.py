"""Which targets (`-t NAME`) uopc brings. Add a row, and every tool has the target."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.utils.target import Target

from uopc.dialects.registry import lazy_factories

TARGETS: dict[str, str] = {
    "c": "uopc.lowering.c_target:CTarget",
    "cuda": "uopc.lowering.cuda_target:CudaTarget",
}


def target_factories() -> dict[str, Callable[[], type[Target]]]:
    """uopc's targets, each as a factory that imports the target when it is called."""
    return lazy_factories(TARGETS)
