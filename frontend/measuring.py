"""How long a kernel takes on this machine with one schedule or another.

The candidates of a round are functions of one C file, which is compiled once and run on random
arrays. Winners are kept in the cache's folder as KEY.schedule, under a checksum: a file that is
cut short, changed or not a schedule counts as missing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block

from uopc.dialects import kernel as k
from uopc.dialects.element_types import element_type, element_type_named
from uopc.dialects.errors import UopcError
from uopc.dialects.schedule_text import parse_schedule
from uopc.frontend.progress import counted
from uopc.passes.schedule_search import measure_with
from uopc.runtime.cache import open_cache
from uopc.runtime.compiler import CompileOptions, digest, processor
from uopc.runtime.debug import say_once

SUFFIX = ".schedule"
LONGEST = 4000
MOST_BYTES = 256 << 20
SECONDS_EACH = 0.02
"""A candidate is run for about so long, at least three times; the shortest time counts."""


def install() -> None:
    """Let the pass schedule measure by this module."""
    measure_with(KernelMeasurer)


class KernelMeasurer:
    """Measures kernels by compiling them for this very machine."""

    def find(self, key: str) -> str | None:
        """The schedule kept under a key; None, in words, for a file that is no schedule."""
        data = open_cache().read(_place(key), SUFFIX)
        if data is None:
            return None
        try:
            schedule = data.decode("utf-8")
            if len(schedule) > LONGEST:
                raise ValueError(f"{len(schedule)} characters")
            parse_schedule(schedule)
        except (ValueError, UopcError) as error:
            say_once(f"a kept schedule is ignored, and searched anew: {error}", level=1)
            return None
        return schedule

    def keep(self, key: str, schedule: str) -> None:
        open_cache().write(_place(key), SUFFIX, schedule.encode())

    def seconds(
        self, op: k.KernelOp, schedules: Sequence[str], what: str
    ) -> Sequence[float] | None:
        """See schedule_search.Measurer. None for symbolic sizes, and for more than 256 MiB."""
        types = [k.buffer_of(b) for b in op.buffers]
        if op.symbols.data or sum(_bytes(t) for t in types) > MOST_BYTES:
            return None
        try:
            return _run_all(op, schedules, what)
        except UopcError:
            # One that does not compile takes the others with it: each by itself.
            return [_alone(op, schedule) for schedule in counted(schedules, what)]


def _place(key: str) -> str:
    return digest("schedule", key, processor())


def _bytes(type_: Any) -> int:
    row = element_type(type_.element_type)
    return math.prod(type_.get_shape()) * (8 if row is None else row.bytes)


def _alone(op: k.KernelOp, schedule: str) -> float:
    try:
        return _run_all(op, [schedule], "")[0]
    except UopcError:
        return math.inf


def _run_all(op: k.KernelOp, schedules: Sequence[str], what: str) -> list[float]:
    """The time of each schedule. Raises UopcError if one of them does not compile."""
    from uopc.frontend.compile import CompileRequest, lower
    from uopc.runtime.executable import load_program

    module = ModuleOp([])
    for number, schedule in enumerate(schedules):
        copy = op.clone()
        copy.sym_name = StringAttr(f"candidate{number}")
        copy.properties.pop("schedule", None)
        if schedule:
            copy.properties["schedule"] = StringAttr(schedule)
        module.body.block.add_op(copy)
        module.body.block.add_op(_plan(copy, f"run{number}"))
    passes = "plan-memory,apply-schedule,linearize,lower-plan,expand-math"
    lowered = lower(module, CompileRequest(pipeline=passes, target_cpu="native"))
    program = lowered.program()
    times: list[float] = []
    for number in counted(range(len(schedules)), what):
        run = load_program(program, f"run{number}", options=CompileOptions(), debug=0)
        times.append(_time(run))
    return times


def _plan(op: k.KernelOp, name: str) -> k.PlanOp:
    """A plan that launches one kernel on buffers of its own."""
    inputs = op.buffers[: op.inputs_count]
    block = Block(arg_types=[b.type for b in inputs])
    outputs = [k.OutputOp.create(result_types=[b.type]) for b in op.buffers[op.inputs_count :]]
    block.add_ops(outputs)
    results = [o.results[0] for o in outputs]
    block.add_op(k.LaunchOp(op.sym_name.data, [], list(block.args), results))
    block.add_op(k.ReturnOp(results))
    sizes = [op.sizes_of_buffer(n) for n in range(op.inputs_count)]
    return k.PlanOp(name, [], sizes, block)


def _time(run: Any) -> float:
    rng = np.random.default_rng(0)
    arrays: list[Any] = []
    for buffer in run.plan.inputs:
        dtype = element_type_named(buffer.dtype).numpy
        values = rng.random(tuple(buffer.shape))
        arrays.append(values.astype(dtype))
    run(*arrays)
    best, spent, count = math.inf, 0.0, 0
    while spent < SECONDS_EACH or count < 3:
        start = time.perf_counter()
        run(*arrays)
        taken = time.perf_counter() - start
        best, spent, count = min(best, taken), spent + taken, count + 1
    return best
