"""Kernels for a GPU: gpu.launch, gpu.launch_func, and what their threads do.

    "gpu.launch_func"(%g, %c1, %c1, %c256, %c1, %c1, %x, %out) <{kernel = @kernels::@e_n, …}>

Blocks run one after another or together, as many as there is room for; the threads of a block are
lanes that take each step together (gpu_blocks.py). What a GPU leaves open is an error: a barrier or
a shuffle that not all threads reach, threads that touch one element of shared memory between two
barriers of which one writes it, a shuffle from a thread that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import gpu
from xdsl.ir import Block, Operation

from uopc.dialects.gpu_extensions import ShuffleModeEnum, ShuffleOp, is_workgroup
from uopc.dialects.rounding import Array
from uopc.interpreters.gpu_blocks import WARP, Blocks, Extents
from uopc.interpreters.lanes import LANE_LIMIT, Context, Frame, spread
from uopc.interpreters.linear_control import Lazy, run_function
from uopc.interpreters.linear_core import (
    Compiler,
    Handler,
    Machine,
    NotTogetherError,
    Step,
    bad_program,
    rank_of,
    uniform_int,
)
from uopc.interpreters.linear_memory import allocation, copied, nothing
from uopc.interpreters.memory import row_of_memref
from uopc.interpreters.speculation import Conflict

MOST_THREADS = 1024
DIMENSIONS = tuple(gpu.DimensionEnum)


# ---- launches


def _extents(frame: Frame, slots: Sequence[int], op: Operation) -> Extents:
    x, y, z = (uniform_int(frame, s, op) for s in slots)
    return x, y, z


def _sizes(c: Compiler, op: gpu.LaunchOp | gpu.LaunchFuncOp) -> tuple[list[int], list[int]]:
    return (
        c.all([op.gridSizeX, op.gridSizeY, op.gridSizeZ]),
        c.all([op.blockSizeX, op.blockSizeY, op.blockSizeZ]),
    )


def _run(
    machine: Machine, sizes: tuple[Extents, Extents], kernel: Operation, op: Operation,
    body: Callable[[Blocks], None],
) -> None:  # fmt: skip
    """Run a kernel's body for all blocks of a launch, as many at a time as there is room for."""
    grid, block = sizes
    threads = int(np.prod(block))
    if machine.blocks is not None:
        raise bad_program("not-interpreted", "a kernel launches a kernel", op)
    if min(grid) < 0 or min(block) < 1 or threads > MOST_THREADS:
        raise bad_program(
            "bad-launch",
            f"'{op.name}' asks for {_times(grid)} blocks of {_times(block)} threads",
            op,
            f"a block has 1 to {MOST_THREADS} threads",
        )
    unit, total = _smallest_element(kernel), int(np.prod(grid))
    most = max(1, LANE_LIMIT // threads)
    for first in range(0, total, most):
        blocks = Blocks(grid, block, first, min(most, total - first), unit)
        outside = len(machine.speculations)
        machine.blocks = blocks
        machine.speculations.append(blocks.races)
        try:
            body(blocks)
        except Conflict as conflict:
            if conflict.speculation is not blocks.races:
                raise
            raise _race(conflict.op or op) from conflict
        finally:
            machine.blocks = None
            del machine.speculations[outside:]


def _race(op: Operation) -> Exception:
    return bad_program(
        "data-race",
        f"'{op.name}' touches an element of shared memory that another thread touches too, and one "
        "of the two writes it",
        op,
        "a gpu.barrier between the two orders them",
    )


def _times(extents: Extents) -> str:
    return " x ".join(map(str, extents))


def _smallest_element(kernel: Operation) -> int:
    """Bytes of the smallest element of a kernel's shared memory."""
    types = [r.type for inner in kernel.walk() for r in inner.results if is_workgroup(r.type)]
    return min((row_of_memref(t).bytes for t in types), default=8)


def launch(c: Compiler, op: gpu.LaunchOp) -> Step:
    """The body, in all threads, sees what is around it."""
    if len(op.body.blocks) != 1:
        raise bad_program(
            "not-interpreted", f"'{op.name}' has {len(op.body.blocks)} blocks", op,
            "blocks that branch to each other are not interpreted: use scf",
        )  # fmt: skip
    sizes = _sizes(c, op)
    block: Block = op.body.blocks[0]
    arguments, lazy = c.all(block.args), Lazy(c, block)
    machine = c.machine

    def step(frame: Frame, context: Context) -> None:
        if context is not None:
            raise NotTogetherError(op)
        grid, threads = (_extents(frame, s, op) for s in sizes)

        def body(blocks: Blocks) -> None:
            # Block ids, thread ids, grid sizes, block sizes: the order of MLIR's gpu.launch.
            numbers: list[Any] = [blocks.block_index(k) for k in range(3)]
            numbers += [blocks.thread(k) for k in range(3)]
            numbers += [*grid, *threads]
            for slot, number in zip(arguments, numbers, strict=True):
                _set(frame, slot, number, blocks.lanes)
            lazy.body.run(frame, blocks.lanes)
            frame.leave(blocks.lanes)

        _run(machine, (grid, threads), op, op, body)

    return step


def launch_func(c: Compiler, op: gpu.LaunchFuncOp) -> Step:
    sizes, operands = _sizes(c, op), c.all(op.kernelOperands)
    machine, name = c.machine, _kernel_name(op)
    kernel = machine.functions.get(name)
    if not isinstance(kernel, gpu.FuncOp):
        raise bad_program("not-interpreted", f"there is no gpu.func {op.kernel} with a body", op)
    if len(kernel.function_type.inputs) != len(operands):
        raise bad_program(
            "bad-launch",
            f"{op.kernel} takes {len(kernel.function_type.inputs)} arguments, got {len(operands)}",
            op,
        )

    def step(frame: Frame, context: Context) -> None:
        if context is not None:
            raise NotTogetherError(op)
        grid, threads = (_extents(frame, s, op) for s in sizes)
        values = [(frame.get(s, None), True) for s in operands]
        run_kernel(machine, kernel, name, (grid, threads), [v for v, _ in values], op)
        if machine.on_call is not None:
            machine.on_call(kernel.sym_name.data, [value for value, _ in values])

    return step


def _kernel_name(op: gpu.LaunchFuncOp) -> str:
    return "::".join(
        [op.kernel.root_reference.data, *(n.data for n in op.kernel.nested_references)]
    )


def run_kernel(
    machine: Machine, kernel: gpu.FuncOp, name: str, sizes: tuple[Extents, Extents],
    values: Sequence[Any], op: Operation,
) -> None:  # fmt: skip
    """Run a kernel on memrefs and numbers over a grid of blocks. Raises UopcError."""
    given = [(value, True) for value in values]

    def body(blocks: Blocks) -> None:
        run_function(machine, name, given, blocks.lanes)

    _run(machine, sizes, kernel, op, body)


# ---- what a thread knows


def _blocks(machine: Machine, op: Operation) -> Blocks:
    if machine.blocks is None:
        raise bad_program("not-interpreted", f"'{op.name}' stands outside of a kernel", op)
    return machine.blocks


def _set(frame: Frame, slot: int, number: Any, context: Context) -> None:
    if np.ndim(number):
        frame.set(slot, number, context)
    else:
        frame.set(slot, np.int64(number), None)


def _number(find: Callable[[Blocks, int], Any]) -> Handler:
    """The handler of an op that tells a number of a thread; `find` gives it for each thread."""

    def handle(c: Compiler, op: Any) -> Step:
        (out,) = c.all(op.results)
        dimension = op.properties.get("dimension")
        axis = 0 if dimension is None else DIMENSIONS.index(dimension.data)
        machine = c.machine

        def step(frame: Frame, context: Context) -> None:
            blocks = _blocks(machine, op)
            number = find(blocks, axis)
            if np.ndim(number):
                number = number[blocks.threads_of(context)]
            _set(frame, out, number, context)

        return step

    return handle


# ---- what threads do together


def barrier(c: Compiler, op: gpu.BarrierOp) -> Step:
    machine = c.machine

    def step(frame: Frame, context: Context) -> None:
        blocks = _blocks(machine, op)
        if context is blocks.lanes:
            blocks.races.new_phase(None)
            return
        partial = blocks.whole(context, blocks.threads)
        if partial is not None:
            counts, first, size = partial
            raise bad_program(
                "divergent-barrier",
                f"{counts[first]} of {size} threads of block {blocks.first + first} reach "
                f"'{op.name}', and the others do not",
                op,
                "move it out of what the threads branch on",
            )
        blocks.races.new_phase(np.unique(blocks.threads_of(context) // blocks.threads))

    return step


def _partners(mode: ShuffleModeEnum, lane: Array, offset: Any, width: Any) -> Array:
    """The lane of its warp that each lane asks; itself where there is none (PTX's shfl.sync)."""
    start = lane & ~(width - 1)
    last = start + width - 1
    if mode is ShuffleModeEnum.Up:
        asked = lane - offset
        return np.where(asked >= start, asked, -1)
    if mode is ShuffleModeEnum.Idx:
        return start | (offset & (width - 1))
    asked = lane + offset if mode is ShuffleModeEnum.Down else lane ^ offset
    return np.where(asked <= last, asked, -1)


def shuffle(c: Compiler, op: ShuffleOp) -> Step:
    value, offset, width = c.slot(op.value), c.slot(op.offset), c.slot(op.width)
    out, valid = c.slot(op.shuffle_result), c.slot(op.valid)
    mode, rank, machine = op.mode.data, rank_of(op.value), c.machine

    def step(frame: Frame, context: Context) -> None:
        blocks = _blocks(machine, op)
        partial = blocks.whole(context, WARP)
        if partial is not None:
            counts, first, size = partial
            raise bad_program(
                "divergent-shuffle",
                f"{counts[first]} of {size} threads of a warp reach '{op.name}', and the others "
                "do not",
                op,
                "move it out of what the threads of a warp branch on",
            )
        threads = blocks.threads_of(context)
        lane = threads % blocks.threads % WARP
        asked = _partners(mode, lane, *(frame.get(s, context) for s in (offset, width)))
        found = asked >= 0
        source = threads + np.where(found, asked - lane, 0)
        if (source // blocks.threads != threads // blocks.threads).any():
            raise bad_program(
                "divergent-shuffle",
                f"'{op.name}' asks a thread beyond the {blocks.threads} of its block",
                op,
                "launch whole warps of 32 threads",
            )
        place = np.zeros(len(blocks.numbers), np.int64)
        place[threads] = np.arange(len(threads))
        held = spread(frame.get(value, context), len(threads), rank)
        frame.set(out, held[place[source]], context)
        frame.set(valid, found, context)

    return step


# ---- what the host does


def host_alloc(c: Compiler, op: gpu.AllocOp) -> Step:
    return allocation(c, op, op.result, op.dynamicSizes)


def host_copy(c: Compiler, op: gpu.MemcpyOp) -> Step:
    return copied(c, op, op.src, op.dst)


def wait(c: Compiler, op: Operation) -> None:
    """Whatever was started is done: nothing runs beside the host here."""


GPU_HANDLERS: Mapping[type[Operation], Handler] = {
    gpu.LaunchOp: launch,
    gpu.LaunchFuncOp: launch_func,
    gpu.ThreadIdOp: _number(lambda b, axis: b.thread(axis)),
    gpu.BlockIdOp: _number(lambda b, axis: b.block_index(axis)),
    gpu.BlockDimOp: _number(lambda b, axis: b.block[axis]),
    gpu.GridDimOp: _number(lambda b, axis: b.grid[axis]),
    gpu.GlobalIdOp: _number(lambda b, axis: b.block_index(axis) * b.block[axis] + b.thread(axis)),
    gpu.LaneIdOp: _number(lambda b, _: b.thread_number() % WARP),
    gpu.SubgroupIdOp: _number(lambda b, _: b.thread_number() // WARP),
    gpu.SubgroupSizeOp: _number(lambda b, _: WARP),
    gpu.NumSubgroupsOp: _number(lambda b, _: -(-b.threads // WARP)),
    gpu.BarrierOp: barrier,
    ShuffleOp: shuffle,
    gpu.AllocOp: host_alloc,
    gpu.MemcpyOp: host_copy,
    gpu.DeallocOp: nothing,
    gpu.WaitOp: wait,
}
"""How each op of gpu is run."""
