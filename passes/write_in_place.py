"""write-in-place: a kernel writes its result over an input that nobody reads any more.

    %tmp1 = ukernel.temp : memref<64xf32>
    launch @e_64 ins(%tmp0, %b) outs(%tmp1)                launch @e_64 ins(%b) outs(%tmp0)
    launch @r_1 ins(%tmp1) outs(%out0)                     launch @r_1 ins(%tmp0) outs(%out0)
    kernel @e_64 ins(%tmp0, %b) outs(%tmp1) {        =>    kernel @e_64 ins(%b) outs(%tmp1) {
      %0 = uloop.load %tmp0[%i]                              %0 = uloop.load %tmp1[%i]
      uloop.store %2, %tmp1[%i]                              uloop.store %2, %tmp1[%i]
    }                                                      }

The result needs no storage of its own, and its lines are in the cache already. It is done where
the input is a temporary, or an input of the plan that is `donated`; where this launch is the last
that reads it, and the first that touches the result's buffer; where both are of one type and size,
and the kernel reads the input at the very places, and in the loops, where it writes, so that
whatever its schedule each element is read before it is written; and where all launches of the
kernel admit it. The result of a donated input is then that input. What loops and branches use is
left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects import loop
from uopc.dialects.kernel import KernelOp, LaunchOp, OutputOp, PlanOp, TempOp
from uopc.dialects.kernel_control import IfOp, WhileOp
from uopc.passes.loop_dag import LoopDag
from uopc.passes.plan_storage import donated_inputs, storages_of
from uopc.passes.prune_parameters import keep_operands, keep_parameters
from uopc.passes.range_input import check_module_over_ranges

Pair = tuple[int, int]
"""An input's and an output's position among the kernel's buffers."""


@dataclass(frozen=True)
class WriteInPlacePass(ModulePass):
    """Let kernels write over inputs that are not read again."""

    name = "write-in-place"
    level_after: ClassVar[str] = "uloop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_module_over_ranges(op, self.name)
        plans = [_Lives(p) for p in op.body.block.ops if isinstance(p, PlanOp)]
        launches: dict[str, list[tuple[_Lives, LaunchOp]]] = {}
        for lives in plans:
            for launch in lives.plan.body.walk():
                if isinstance(launch, LaunchOp):
                    launches.setdefault(launch.kernel.string_value(), []).append((lives, launch))
        for kernel in list(op.body.block.ops):
            if isinstance(kernel, KernelOp) and kernel.schedule is None:
                _write_in_place(kernel, launches.get(kernel.sym_name.data, ()))


def _write_in_place(kernel: KernelOp, launches: Sequence[tuple[_Lives, LaunchOp]]) -> None:
    """Merge each output of a kernel with an input, where that may be."""
    if not launches or kernel.symbols.data:
        return
    chosen: dict[int, int] = {}

    def admitted(read: int, written: int) -> bool:
        return all(lives.admits(launch, read, written) for lives, launch in launches)

    pairs = [pair for pair in _alike(kernel) if admitted(*pair)]
    pairs = same_places(kernel, pairs) if pairs else []
    # What the caller gives away first: temporaries find storage otherwise.
    pairs.sort(key=lambda pair: not all(each.is_donated(at, pair[0]) for each, at in launches))
    for read, written in pairs:
        if read in chosen or written in chosen.values():
            continue
        if admitted(read, written):  # still, after what is merged
            # One launch after the other: a buffer may be in several.
            for lives, launch in launches:
                lives.merge(launch, read, written)
            chosen[read] = written
    if not chosen:
        return
    block = kernel.block
    for read, written in chosen.items():
        block.args[read].replace_all_uses_with(block.args[written])
    used = [k for k in range(len(block.args)) if k not in chosen]
    moved = kernel.bytes
    keep_parameters(kernel, used)
    kernel.properties["bytes"] = moved  # what is written over is read all the same
    for _, launch in launches:
        keep_operands(launch, used)


def _alike(kernel: KernelOp) -> list[Pair]:
    """The inputs and outputs of one type and size."""
    buffers = list(kernel.buffers)
    return [
        (read, written)
        for written in range(kernel.inputs_count, len(buffers))
        for read in range(kernel.inputs_count)
        if buffers[read].type == buffers[written].type
        and kernel.sizes_of_buffer(read) == kernel.sizes_of_buffer(written)
    ]


def same_places(kernel: KernelOp, pairs: Sequence[Pair]) -> list[Pair]:
    """Those of some inputs and outputs of which each element of the one is read in the loops, and
    at the place, where that of the other is written, and nowhere else."""
    dag = LoopDag(kernel)
    if dag.guard_ranges:
        return []
    buffers = list(kernel.buffers)
    found: list[Pair] = []
    for read, written in pairs:
        uses = [use.operation for use in buffers[written].uses]
        store = uses[0] if len(uses) == 1 else None
        if (
            isinstance(store, loop.StoreOp)
            and store.where is None
            and _is_read_as_written(dag, buffers[read], store)
        ):
            found.append((read, written))
    return found


def _is_read_as_written(dag: LoopDag, source: SSAValue, store: loop.StoreOp) -> bool:
    """Whether what is stored is made of all that is read of a buffer, at the place of the store.

    Another result may be made of it too: it finds the element loaded.
    """
    places = dag.expressions(store.map, store.indices)
    leaves = [e.leaf for e in places if e.as_int() is None]
    if None in leaves or len(set(leaves)) < len(leaves):
        return False  # not one place for each step
    if dag.free_in(places) != dag.free_of_statement[store]:
        return False
    loads = dag.loads_of(source)
    if not loads or not all(isinstance(use.operation, loop.LoadOp) for use in source.uses):
        return False
    if any(dag.expressions(load.map, load.indices) != places for load in loads):
        return False
    return _made_of(store.value).issuperset(loads)


def _made_of(value: SSAValue) -> set[Operation]:
    """The ops that a value is computed by."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found.add(owner)
            pending.extend(owner.operands)
    return found


class _Lives:
    """When the buffers of a plan are touched first and last, while some become one."""

    def __init__(self, plan: PlanOp) -> None:
        self.plan = plan
        self.position: dict[Operation, int] = {}
        self.first: dict[SSAValue, int] = {}
        self.last: dict[SSAValue, int] = {}
        self.same: dict[SSAValue, SSAValue] = {}
        self.donated = {plan.buffers[k] for k in donated_inputs(plan)}
        self.fixed: set[SSAValue] = set()
        """Buffers that loops and branches use."""
        for number, op in enumerate(plan.block.ops):
            self.position[op] = number
            for inner in op.walk() if isinstance(op, WhileOp | IfOp) else (op,):
                for operand in inner.operands:
                    for storage in storages_of(operand):
                        self.first.setdefault(storage, number)
                        self.last[storage] = number
                        if isinstance(op, WhileOp | IfOp):
                            self.fixed.add(storage)

    def _now(self, buffer: SSAValue) -> SSAValue:
        while buffer in self.same:
            buffer = self.same[buffer]
        return buffer

    def _operands(self, launch: LaunchOp, read: int, written: int) -> tuple[SSAValue, SSAValue]:
        buffers = (*launch.inputs, *launch.outputs)
        return self._now(buffers[read]), self._now(buffers[written])

    def is_donated(self, launch: LaunchOp, read: int) -> bool:
        """Whether a launch reads an input of the plan that may be written over."""
        return self._now(launch.inputs[read]) in self.donated

    def admits(self, launch: LaunchOp, read: int, written: int) -> bool:
        """Whether a launch may write over what it reads."""
        at = self.position.get(launch)
        if at is None:
            return False  # in a loop or a branch
        source, target = self._operands(launch, read, written)
        if source is target or source in self.fixed or target in self.fixed:
            return False
        if source.type != target.type or not isinstance(target.owner, TempOp | OutputOp):
            return False
        touched = [self._now(s) for o in launch.operands for s in storages_of(o)]
        if touched.count(source) != 1 or touched.count(target) != 1:
            return False
        if self.last[source] != at or self.first[target] != at:
            return False
        if isinstance(source, BlockArgument):
            return source in self.donated and isinstance(target.owner, OutputOp)
        return isinstance(source.owner, TempOp)

    def merge(self, launch: LaunchOp, read: int, written: int) -> None:
        """Let the two be one buffer: the caller's, or else the one that is there first."""
        source, target = self._operands(launch, read, written)
        kept, gone = (source, target)
        if isinstance(target.owner, OutputOp) and not isinstance(source, BlockArgument):
            kept, gone = target, source
        self.first[kept] = min(self.first[source], self.first[target])
        self.last[kept] = max(self.last[source], self.last[target])
        self.same[gone] = kept
        owner = cast(Operation, gone.owner)
        gone.replace_all_uses_with(kept)
        owner.detach()
        owner.erase()
