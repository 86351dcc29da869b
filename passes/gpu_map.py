"""gpu-map: chooses how each kernel over ranges lies on a GPU, as its schedule attribute.

    ukernel.kernel @r_64 ins(%x : memref<64x128xf32>) outs(%o : memref<64xf32>) {
      %i = uloop.range 64
      %j = uloop.range 128 reduce
      %0 = uloop.load %x[%i, %j] : memref<64x128xf32>
      %1 = uloop.reduce add %0 over (%j) : f32
      uloop.store %1, %o[%i] : memref<64xf32>
    }

gets

    attributes {target = "cuda", schedule =
      "split i = ib:block iw:4:lane; split j = j0 jt:32:lane; order ib iw"}

which a person may edit, and apply-schedule carries out. What a kernel is is read off its index
maps, never off names:

    elementwise           all elements flat, blocks of 256 threads; of 16,384 elements and more a
                          thread takes up to four neighbours, which are loaded at once
    sum of products       a tile of the output a block, its factors' panels in shared memory
                          (gpu_map_products.py)
    reduction along rows  a warp a row up to 1,024 elements, a block a row beyond; a tree of
                          shuffles at the end; argreduce alike
    other reductions      a thread an element of the output, which reduces by itself
    scatter               one block copies, one thread updates: updates have an order

A kernel that has a schedule keeps it, and one for another target is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from uopc.dialects import kernel, loop
from uopc.dialects.element_types import element_type
from uopc.dialects.errors import UnsupportedError
from uopc.dialects.kernel import buffer_of
from uopc.dialects.kernel_control import IfOp, WhileOp
from uopc.dialects.locations import nearest_location
from uopc.dialects.schedule_text import Command, Mark, Merge, Order, Part, Split, schedule_text
from uopc.passes.alignment import MOST
from uopc.passes.apply_schedule import name_values
from uopc.passes.gpu_map_products import MOST_BLOCKS, can_merge, product_schedule
from uopc.passes.loop_dag import LoopDag, own_ranges
from uopc.passes.range_input import check_module_over_ranges
from uopc.passes.reductions import is_argreduce
from uopc.passes.schedule_facts import (
    in_order,
    is_fixed,
    is_neighbours,
    length,
    loads_of,
    name_of,
)
from uopc.passes.schedule_names import FreshNames, ranges_by_name

THREADS = 256
THREADS_OF_A_LONG_ROW = 512
"""Where few rows have to fill the GPU. Of 1,024 threads each would have 64 registers at most."""
WARP = 32
ROW_OF_A_WARP = 1024
"""Elements of a row that one warp reduces; longer rows get a block."""
ROWS_OF_A_BLOCK = 4
FEW_ROWS = 2048
"""Up to so many results a GPU has idle threads, so that one reduction may take many."""


@dataclass(frozen=True)
class GpuMapPass(ModulePass):
    """Choose a GPU schedule for each kernel over ranges."""

    name = "gpu-map"
    level_after: ClassVar[str] = "uloop"

    products: bool = True
    """Whether sums of products use shared memory; if not, each thread sums by itself."""
    rows: bool = True
    """Whether threads share a reduction; if not, each thread reduces by itself."""
    vectors_from: int = 1 << 14
    """From so many elements on a thread takes neighbours, as fewer threads still fill a GPU."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_module_over_ranges(op, self.name)
        _refuse_control(op)
        for kernel_op in op.body.block.ops:
            if not isinstance(kernel_op, kernel.KernelOp):
                continue
            if kernel_op.target is not None and kernel_op.target.data != "cuda":
                continue
            kernel_op.properties["target"] = StringAttr("cuda")
            if kernel_op.schedule is None:
                name_values(kernel_op)
                commands = choose_gpu_schedule(
                    kernel_op,
                    products=self.products,
                    rows=self.rows,
                    vectors_from=self.vectors_from,
                )
                if commands:
                    kernel_op.properties["schedule"] = StringAttr(schedule_text(commands))


def _refuse_control(module: ModuleOp) -> None:
    """A GPU's launches are in a sequence that is known before the first."""
    for plan in module.body.block.ops:
        if isinstance(plan, kernel.PlanOp):
            for op in plan.body.walk():
                if isinstance(op, WhileOp | IfOp):
                    raise UnsupportedError(
                        "unsupported-op",
                        f"'{op.name}' runs on the CPU only: what a GPU is given to do is known "
                        "before it starts",
                        location=nearest_location(op),
                        hint="compile for target c",
                    )


def choose_gpu_schedule(
    op: kernel.KernelOp, *, products: bool = True, rows: bool = True, vectors_from: int = 1 << 14
) -> list[Command]:
    """The commands for one kernel over ranges; none where a single thread runs it."""
    dag = LoopDag(op)
    if dag.guard_ranges or any(isinstance(o, loop.TileOp) for o in op.block.ops):
        return []  # someone has shaped it already
    stores = [o for o in dag.statements if isinstance(o, loop.StoreOp)]
    if any(isinstance(o, loop.UpdateOp) for o in dag.statements):
        return [c for store in stores for c in _one_block(dag, store)]
    if products:
        commands = product_schedule(dag, stores)
        if commands:
            return commands
    if rows:
        commands = _rows(dag, stores)
        if commands:
            return commands
    return [c for store in stores for c in _elements(dag, store, vectors_from)]


def merged(ranges: Sequence[loop.RangeOp]) -> tuple[str, list[Command]]:
    """The commands that make one range of several, and its name: that of the first."""
    first, *others = map(name_of, ranges)
    return first, [Merge(first, other, first) for other in others]


def count(dag: LoopDag, ranges: Sequence[loop.RangeOp]) -> int:
    """The largest number of elements that some ranges have together."""
    result = 1
    for r in ranges:
        result *= length(dag, r)
    return result


def threads_for(elements: int, most: int = THREADS) -> int:
    """Threads of a block for so many elements: whole warps, a power of two."""
    threads = WARP
    while threads < min(elements, most):
        threads *= 2
    return threads


def _elements(dag: LoopDag, store: loop.StoreOp, vectors_from: int) -> list[Command]:
    """A thread an element."""
    ranges = in_order(dag, dag.free_of_statement[store])
    if not ranges or count(dag, ranges) == 0:
        return []
    if can_merge(dag, ranges):
        name, commands = merged(ranges)
    else:
        name, commands = name_of(ranges[-1]), list[Command]()
        outer = [r for r in ranges[-3:-1] if length(dag, r) <= MOST_BLOCKS]
        commands += [Mark(name_of(r), "block") for r in outer]
        ranges = ranges[-1:]
    names = FreshNames(ranges_by_name(dag.kernel))
    elements = count(dag, ranges)
    copies = _neighbours(dag, store, ranges) if elements >= vectors_from else 1
    block, lane = names.fresh(f"{name}b"), names.fresh(f"{name}t")
    if copies > 1:
        whole = names.fresh(f"{name}0")
        parts = (Part(whole, None, None), Part(names.fresh(f"{name}u"), copies, "unroll"))
        commands.append(Split(name, parts))
        name = whole
    threads = threads_for(elements // copies)
    return [*commands, Split(name, (Part(block, None, "block"), Part(lane, threads, "lane")))]


def _neighbours(dag: LoopDag, store: loop.StoreOp, ranges: Sequence[loop.RangeOp]) -> int:
    """How many neighbours a thread computes, so that all accesses are of 16 bytes at most."""
    last = ranges[-1]
    accesses: list[loop.AccessOp] = [store, *loads_of(dag, [store.value])]
    accesses = [a for a in accesses if not is_fixed(dag, a, last)]
    if not all(is_neighbours(dag, a, last) for a in accesses) or dag.conditions(store):
        return 1
    widest = max(bytes_of(a) for a in accesses)
    for copies in (4, 2):
        if copies * widest <= MOST and _divided(last, copies):
            return copies
    return 1


def bytes_of(access: loop.AccessOp) -> int:
    """Bytes of an element."""
    row = element_type(buffer_of(access.buffer).element_type)
    return 1 if row is None else row.bytes


def _divided(op: loop.RangeOp, copies: int) -> bool:
    return op.constant_end is not None and op.constant_end % copies == 0


def _one_block(dag: LoopDag, store: loop.StoreOp) -> list[Command]:
    """The threads of a single block take turns."""
    ranges = in_order(dag, dag.free_of_statement[store])
    if not ranges or count(dag, ranges) == 0:
        return []
    if not can_merge(dag, ranges):
        ranges = ranges[-1:]
    name, commands = merged(ranges)
    threads = threads_for(count(dag, ranges))
    names = FreshNames(ranges_by_name(dag.kernel))
    outer, lane = names.fresh(f"{name}0"), names.fresh(f"{name}t")
    return [*commands, Split(name, (Part(outer, None, None), Part(lane, threads, "lane")))]


# -- rows ------------------------------------------------------------------------------------------


def _rows(dag: LoopDag, stores: Sequence[loop.StoreOp]) -> list[Command]:
    """Threads that share reductions, where the kernel has rows to reduce."""
    reductions = [o for o in dag.statements if isinstance(o, loop.ReduceOp)]
    if len(stores) != 1 or not reductions:
        return []
    outputs = dag.free_of_statement[stores[0]]
    bound: frozenset[loop.RangeOp] = frozenset()
    for reduction in reductions:
        free = dag.free[reduction.results[0]]
        if reduction.kind is None and not is_argreduce(reduction):
            return []  # its steps have one order
        if not free <= outputs or own_ranges(reduction) & outputs:
            return []
        bound |= free
    rows, rest = in_order(dag, bound), in_order(dag, outputs - bound)
    if count(dag, [*rows, *rest]) == 0 or not can_merge(dag, rows):
        return []
    longest = max(count(dag, list(own_ranges(r))) for r in reductions)
    if not rest and not any(_worth_sharing(dag, r, count(dag, rows)) for r in reductions):
        return []
    return _share(dag, reductions, rows, rest, longest)


def _worth_sharing(dag: LoopDag, op: loop.ReduceOp, rows: int) -> bool:
    own = in_order(dag, own_ranges(op))
    steps = count(dag, own)
    if rows < FEW_ROWS and steps >= 2 * WARP:
        return True
    loads = loads_of(dag, op.values)
    return steps >= WARP and any(is_neighbours(dag, load, own[-1]) for load in loads)


def _share(
    dag: LoopDag,
    reductions: Sequence[loop.ReduceOp],
    rows: Sequence[loop.RangeOp],
    rest: Sequence[loop.RangeOp],
    longest: int,
) -> list[Command]:
    commands: list[Command] = []
    names = FreshNames(ranges_by_name(dag.kernel))
    order: list[str] = []
    few = count(dag, rows) < FEW_ROWS // 8
    lanes = threads_for(longest, THREADS_OF_A_LONG_ROW if few else THREADS)
    if rows:
        row, commands = merged(rows)
        if longest <= ROW_OF_A_WARP and count(dag, rows) > 1:
            lanes = WARP
            several = min(ROWS_OF_A_BLOCK, count(dag, rows))
            order = [names.fresh(f"{row}b"), names.fresh(f"{row}w")]
            parts = (Part(order[0], None, "block"), Part(order[1], several, "lane"))
            commands.append(Split(row, parts))
        else:
            commands.append(Mark(row, "block"))
            order = [row]
    for reduction in reductions:
        own = in_order(dag, own_ranges(reduction))
        commands += _over_lanes(dag, own, lanes, names)
    if rest:
        commands += _over_lanes(dag, rest, lanes, names)
    if order:
        commands.append(Order(tuple(order)))
    return commands


def _over_lanes(
    dag: LoopDag, ranges: Sequence[loop.RangeOp], lanes: int, names: FreshNames
) -> list[Command]:
    """Steps that lanes take in turn: along the last range if it is long enough, else along all."""
    commands: list[Command] = []
    name = name_of(ranges[-1])
    if length(dag, ranges[-1]) < lanes and can_merge(dag, ranges):
        name, commands = merged(ranges)
    outer, lane = names.fresh(f"{name}0"), names.fresh(f"{name}t")
    return [*commands, Split(name, (Part(outer, None, None), Part(lane, lanes, "lane")))]
