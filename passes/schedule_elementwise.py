"""Schedules of elementwise kernels whose functions have lanes of their own.

What C compilers turn into vectors by themselves they do as well as it can be done, also where rows
are odd; but an exponential's last step is one instruction on vectors (lowering/c_idioms.py) that
they do not find. So where a kernel computes one, and rows are whole vectors:

    split j = j0 j1:2:unroll j2:16:vector
"""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import Operation

from uopc.dialects import loop
from uopc.dialects.element_types import element_type
from uopc.dialects.schedule_text import Command
from uopc.passes.cpu_targets import CpuTarget
from uopc.passes.loop_dag import LoopDag
from uopc.passes.schedule_facts import split_in_lanes, stores
from uopc.passes.schedule_streams import neighbours_along

_GAIN = frozenset[type[Operation]]((math.ExpOp, math.Exp2Op, math.TanhOp))
_COPIES = 2


def elementwise_schedule(dag: LoopDag, target: CpuTarget) -> list[Command]:
    """The commands for a kernel without reductions; none where compilers do as well."""
    written = stores(dag)
    if not any(type(op) in _GAIN for op in dag.position) or len(dag.statements) != len(written):
        return []
    if any(isinstance(s, loop.UpdateOp) for s in dag.statements):
        return []
    along = neighbours_along(dag, written)
    row = element_type(written[0].value.type) if written else None
    if along is None or row is None or row.is_bool:
        return []
    lanes, length = target.vector_bytes // row.bytes, along.constant_end or 0
    if not length or length % lanes:
        return []
    return [split_in_lanes(along, _COPIES if length % (lanes * _COPIES) == 0 else 1, lanes)]
