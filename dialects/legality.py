"""Which ops may stand at which level of the way down: the table, and its check.

    utensor   values on tensors: uopc's tensor ops, func, and whatever else a caller mixes in
    ukernel   plans that launch kernels; tensor ops are left in kernel bodies only
    uloop     the kernel bodies are loads, stores and scalar ops over ranges
    linear    upstream MLIR only: what the emitters print and any MLIR tool reads

A pass that brings a module to a level declares `level_after: ClassVar[str] = "linear"`, and the
pass manager then checks the level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation

UPSTREAM = frozenset(
    {"builtin", "func", "scf", "memref", "arith", "math", "vector", "gpu", "cf", "x86vector"}
)
"""The dialects of the linear form."""


@dataclass(frozen=True)
class Level:
    """The ops that are legal at one level.

    `dialects` are legal everywhere, `within` maps a dialect to the op in whose regions alone
    it is legal, and `foreign` tells whether ops of dialects that this table does not know may
    still be there (they are somebody's who has not lowered yet).
    """

    dialects: frozenset[str]
    within: Mapping[str, str] = field(default_factory=dict[str, str])
    foreign: bool = False


LEVELS: dict[str, Level] = {
    "utensor": Level(UPSTREAM | {"utensor"}, foreign=True),
    "ukernel": Level(UPSTREAM | {"ukernel"}, within={"utensor": "ukernel.kernel"}),
    "uloop": Level(UPSTREAM | {"ukernel", "uloop"}),
    "linear": Level(UPSTREAM),
}

OWN_DIALECTS = frozenset({"utensor", "ukernel", "uloop"})


def why_illegal(operation: Operation, level_name: str) -> str:
    """Why the op may not stand at the level, in words; empty if it may.

    Raises KeyError for a level that the table does not have.
    """
    level = LEVELS[level_name]
    name = _full_name(operation)
    dialect, dot, _ = name.partition(".")
    if dot and dialect in level.dialects:
        return ""
    if (home := level.within.get(dialect)) is not None:
        if _is_within(operation, home):
            return ""
        return f"is legal at level {level_name} inside {home} only"
    if level.foreign and dialect not in OWN_DIALECTS:
        return ""
    legal = sorted(level.dialects | level.within.keys())
    return f"is not legal at level {level_name}, which has only {', '.join(legal)}"


def _full_name(operation: Operation) -> str:
    """The op's name, also of one that no dialect registers."""
    if operation.name == "builtin.unregistered":
        return getattr(operation, "op_name").data  # noqa: B009 -- not a field of Operation
    return operation.name


def _is_within(operation: Operation, home: str) -> bool:
    parent = operation.parent_op()
    while parent is not None:
        if parent.name == home:
            return True
        parent = parent.parent_op()
    return False
