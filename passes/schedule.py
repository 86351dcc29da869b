"""schedule: chooses how each kernel over ranges runs on a CPU, as its schedule attribute.

    ukernel.kernel @r_512_512 ins(%a : …, %b : …) outs(%o : …) {
      … %2 = uloop.reduce add %1 over (%k) : f32 …

gets

    attributes {schedule = "contract; split j = j0 jj:16; tile b_at over k jj as pk pj; …"}

which a person may edit, and apply-schedule carries out. What a kernel is is read off its index
maps, never off names:

    sum of products         register tile of rows by vectors, and one packed panel of the second
                            factor for as many columns, at full depth
    attention               lanes across the rows of a block, whose scores stay in the cache
    reduction of neighbours lanes and copies along it, each with its own accumulator
    reduction across them   lanes and copies across the neighbours, in registers
    reads another way       squares that are exchanged in registers, as a transpose needs
      than it writes
    exponentials            vectors along the neighbours
    anything else           plain loops, which C compilers turn into vectors themselves; vectors
                            past the caches for results that these do not hold

A kernel that has a schedule keeps it. docs/schedules.md teaches the language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from uopc.dialects import kernel, loop
from uopc.dialects.element_types import element_type
from uopc.dialects.errors import UopcError
from uopc.dialects.locations import location_of
from uopc.dialects.schedule_text import Capture, Command, Split, schedule_text
from uopc.passes.apply_schedule import apply_schedule, name_values
from uopc.passes.cpu_targets import CpuTarget, cpu_target
from uopc.passes.loop_dag import LoopDag, length_of, own_ranges
from uopc.passes.range_input import check_module_over_ranges
from uopc.passes.schedule_attention import attention_schedule
from uopc.passes.schedule_blocks import block_schedule
from uopc.passes.schedule_elementwise import elementwise_schedule
from uopc.passes.schedule_facts import name_of, stores
from uopc.passes.schedule_merged import merged_ranges
from uopc.passes.schedule_products import product_schedule
from uopc.passes.schedule_reductions import reduction_schedule
from uopc.passes.schedule_rows import row_schedule
from uopc.passes.schedule_search import best_schedule, check_beam, measurer
from uopc.passes.schedule_streams import stream_commands
from uopc.passes.schedule_threads import thread_commands

SEARCHING_BEAM = 4


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """Choose a schedule for each kernel over ranges."""

    name = "schedule"
    level_after: ClassVar[str] = "uloop"

    target: str = "native"
    """A CPU family: native, avx512bf16, avx512, avx2, sse2, neon or portable."""
    level: int = 1
    """0 leaves kernels as plain loops, 1 chooses by rule, 2 searches as well: a beam of 4 unless
    `beam` says how wide."""
    threads: bool = True
    """Whether threads may share the outermost loop of a kernel that has work enough."""
    beam: int = 0
    """Search by measuring, with so many of the best varied again in each round; 0 does not."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_module_over_ranges(op, self.name)
        if self.level not in (0, 1, 2):
            raise UopcError("bad-option", f"level is {self.level}", hint="expected 0, 1 or 2")
        check_beam(self.beam)
        target = cpu_target(self.target)
        beam = self.beam or (SEARCHING_BEAM if self.level == 2 else 0)
        who = measurer() if beam else None
        kernels = [o for o in op.body.block.ops if isinstance(o, kernel.KernelOp)]
        for kernel_op in kernels:
            if kernel_op.schedule is not None:
                check_vectors(kernel_op, target)
        if self.level == 0 or target.vector_bytes == 0:
            return
        for kernel_op in kernels:
            if kernel_op.schedule is None:
                chosen = schedule_text(self._chosen(kernel_op, target))
                if who is not None:
                    chosen = best_schedule(kernel_op, chosen, target, beam, who)
                if chosen:
                    kernel_op.properties["schedule"] = StringAttr(chosen)

    def _chosen(self, op: kernel.KernelOp, target: CpuTarget) -> list[Command]:
        name_values(op)
        plain = dag = LoopDag(op)
        merges = merged_ranges(dag)
        if merges:
            shaped = op.clone()
            apply_schedule(shaped, schedule_text(merges))
            dag = LoopDag(shaped)
        commands = _that_fit(dag, choose_schedule(dag, target))
        if not commands:
            merges, dag = [], plain
        commands += stream_commands(dag, commands, target)
        if self.threads:
            commands += thread_commands(dag, commands)
        return merges + commands


def _that_fit(dag: LoopDag, commands: list[Command]) -> list[Command]:
    """The commands, or none where a row that the kernel keeps would be kept for each of the copies
    or lanes that they make of a loop around it."""
    if not any(isinstance(o, loop.TileOp) for o in dag.statements):
        return commands
    cut = {c.range for c in commands if isinstance(c, Split) and any(p.kind for p in c.parts[1:])}
    captured = {c.range for c in commands if isinstance(c, Capture)}
    for tile in dag.statements:
        if isinstance(tile, loop.TileOp):
            around = dag.free[tile.value] - own_ranges(tile)
            if not (cut - captured).isdisjoint(map(name_of, around)):
                return []
    return commands


def check_vectors(op: kernel.KernelOp, target: CpuTarget) -> None:
    """Raise UopcError [bad-schedule] for a schedule, written by hand, with vectors wider than the
    target's, or one that cannot be applied. Targets without vectors leave that to compilers."""
    assert op.schedule is not None
    if op.target is not None or target.vector_bytes == 0:
        return
    trial = op.clone()
    apply_schedule(trial, op.schedule.data)
    dag = LoopDag(trial)
    for value, ranges in dag.free.items():
        row = element_type(value.type)
        if row is None or row.is_bool or isinstance(value.owner, loop.IndexOp | loop.RangeOp):
            continue
        for along in ranges:
            wide = length_of(along) * row.bits // 8 if along.kind.data == "vector" else 0
            if wide > target.vector_bytes:
                name = along.result.name_hint
                raise UopcError(
                    "bad-schedule",
                    f"kernel @{op.sym_name.data}: {length_of(along)} lanes of {row.name} along "
                    f"'{name}' are {wide} bytes; a vector of {target.name} has "
                    f"{target.vector_bytes}",
                    hint=f"expected at most {target.vector_bytes * 8 // row.bits} lanes, or a "
                    "target that is wider",
                    location=location_of(op),
                )
    trial.erase(safe_erase=False)


def choose_schedule(dag: LoopDag, target: CpuTarget) -> list[Command]:
    """The commands for one kernel over ranges; none where plain loops are best."""
    if dag.guard_ranges:
        return []  # someone has shaped it already
    reductions = [o for o in dag.statements if isinstance(o, loop.ReduceOp)]
    if not reductions:
        return block_schedule(dag, target) or elementwise_schedule(dag, target)
    if commands := attention_schedule(dag, target):
        return commands
    nested = [r for r in reductions if _reads_reduction_in_loop(dag, r)]
    if nested:
        return []
    if len(reductions) == 1:
        commands = product_schedule(dag, reductions[0], target)
        if commands:
            return commands
        written = stores(dag)
        if len(written) == 1 and (
            dag.free_of_statement[written[0]] == dag.free[reductions[0].results[0]]
        ):
            return reduction_schedule(dag, reductions[0], target)
    return row_schedule(dag, target)


def _reads_reduction_in_loop(dag: LoopDag, op: loop.ReduceOp) -> bool:
    """Whether a reduction computes another one inside of its own loop."""
    own = own_ranges(op)
    stack = list(op.values)
    seen: set[Operation] = set()
    while stack:
        owner = stack.pop().owner
        if not isinstance(owner, Operation) or owner in seen:
            continue
        seen.add(owner)
        if isinstance(owner, loop.ReduceOp):
            if dag.free[owner.results[0]] & own:
                return True
            continue
        stack.extend(owner.operands)
    return False
