"""How ops are printed in CUDA that C does not have, or has otherwise: gpu, shared storage, NaNs."""

from __future__ import annotations

import math
import struct
from typing import Any

from xdsl.dialects import arith, gpu, memref
from xdsl.ir import Operation

from uopc.dialects.gpu_extensions import ShuffleModeEnum, ShuffleOp, is_workgroup
from uopc.dialects.memref_extensions import PrefetchOp
from uopc.lowering.c import HANDLERS as C_HANDLERS
from uopc.lowering.c_address import strides_of
from uopc.lowering.c_buffers import alloca as local_array
from uopc.lowering.c_calls import constant
from uopc.lowering.c_float import float_literal
from uopc.lowering.c_style import FunctionPrinter, Handler, combine
from uopc.lowering.c_types import INDEX, PRIMARY, UNARY, Buffer, Expr, Scalar

MOST_THREADS = 1024
MOST_BLOCKS = (1 << 31) - 1
ALIGNMENT = 16
"""Bytes of a shared array's alignment: whole vectors can be read from it."""


# ---- threads and blocks


def _number(text: str, name: str, high: int) -> Handler:
    """The handler of an op that tells a number of this thread or of the launch."""

    def handle(p: FunctionPrinter, op: Any) -> None:
        (result,) = op.results
        if not p.live.uses.get(result):
            return
        dimension = op.properties.get("dimension")
        axis = "" if dimension is None else str(dimension.data)
        made = Expr(p.new_name(result, f"{name}{axis}"), PRIMARY, INDEX, 0, high)
        made.sizelike = True
        ctype = p.variable_type(INDEX)
        p.declaration(made.text, f"{ctype} {made.text} = {text.format(axis=axis)};")
        p.values[result] = made

    return handle


_FLAT = "(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))"
_THREADS = "(blockDim.x * blockDim.y * blockDim.z)"


def barrier(p: FunctionPrinter, op: gpu.BarrierOp) -> None:
    """gpu.barrier: all threads of the block come here, and see what the others wrote."""
    p.flush_reads()
    p.statement("__syncthreads();")


_SHUFFLES = {
    ShuffleModeEnum.Xor: "__shfl_xor_sync",
    ShuffleModeEnum.Up: "__shfl_up_sync",
    ShuffleModeEnum.Down: "__shfl_down_sync",
    ShuffleModeEnum.Idx: "__shfl_sync",
}


def shuffle(p: FunctionPrinter, op: ShuffleOp) -> None:
    """gpu.shuffle: a statement of its own, as all threads have to reach it."""
    t = p.scalar(op.value.type, op)
    value, offset, width = p.expr(op.value), p.expr(op.offset), p.expr(op.width)
    if not width.is_literal or width.low not in (2, 4, 8, 16, 32):
        p.fail(op, "the width is no constant power of two up to 32", "use the constant 32")
    if p.live.uses.get(op.valid):
        p.fail(op, "nobody can tell whether a shuffle is valid", "do not use the second result")
    narrow = t.size < 4
    text = f"(int)({value.text})" if narrow else value.text
    call = f"{_SHUFFLES[op.mode.data]}(0xffffffffu, {text}, {offset.text}"
    call += f", {width.text})" if width.low != 32 else ")"
    if narrow:
        call = f"({t.ctype}){call}"
    name = p.new_name(op.shuffle_result, "other")
    p.statement(f"{t.ctype} {name} = {call};")
    low, high = (0, 0) if t.is_float else (t.low, t.high)
    p.values[op.shuffle_result] = Expr(name, PRIMARY, t, low, high)


def all_reduce(p: FunctionPrinter, op: gpu.AllReduceOp) -> None:
    """gpu.all_reduce leaves the order of its sum open, which this printer does not choose."""
    p.fail(
        op,
        "says nothing of the order in which it combines values",
        "write the tree out in gpu.shuffle and gpu.barrier, as linearize does",
    )


def prefetch(p: FunctionPrinter, op: PrefetchOp) -> None:
    """memref.prefetch: CUDA C has no word for it, and other warps run while one waits."""
    p.fail(op, "has no form in CUDA", "leave the prefetch out of the kernel's schedule")


# ---- storage


def alloca(p: FunctionPrinter, op: memref.AllocaOp) -> None:
    """memref.alloca: a thread's own array, or one that the block shares (memory space 3)."""
    t = op.memref.type
    if not is_workgroup(t):
        local_array(p, op)
        return
    shape = tuple(t.get_shape())
    if op.dynamic_sizes or min(shape, default=0) < 0:
        p.fail(op, "shared memory of a size known at run time only", "give it a static size")
    element = p.scalar(t.element_type, op)
    name = p.new_name(op.memref, "shared")
    count = max(math.prod(shape), 1)
    place = p.shared_places.get(op) if isinstance(p, CudaPrinter) else None
    if place is None:
        p.statement(f"__shared__ __align__({ALIGNMENT}) {element.ctype} {name}[{count}];")
    else:
        at = f"shared_memory + {place}" if place else "shared_memory"
        p.statement(f"{element.ctype} *{name} = ({element.ctype} *)({at});")
    p.values[op.memref] = Buffer(name, element, shape, strides_of(shape, p))


class CudaPrinter(FunctionPrinter):
    """Prints one kernel or device function."""

    shared_places: dict[Operation, int]
    """Where each shared array lies in dynamic shared memory, if they do not fit as static ones."""
    narrow = False
    """Whether 32 bits hold every index."""

    def variable_type(self, t: Scalar) -> str:
        return "int32_t" if self.narrow and t is INDEX else t.ctype


def index_cast(p: FunctionPrinter, op: arith.IndexCastOp) -> None:
    """arith.index_cast: an index of 32 bits is widened before anything is computed from it."""
    source, target = p.scalar(op.input.type, op), p.scalar(op.result.type, op)
    if p.variable_type(source) == source.ctype or target.bits < 64:
        C_HANDLERS[arith.IndexCastOp](p, op)
        return
    e = p.expr(op.input)
    text = f"({target.ctype}){e.at(UNARY)}"
    p.define(op.result, combine(text, UNARY, target, (e,), e.low, e.high))


# ---- constants


def float_constant(p: FunctionPrinter, op: arith.ConstantOp) -> None:
    """arith.constant: NaNs by their bits."""
    value: Any = op.value
    if type(value).__name__ == "FloatAttr":
        t = p.scalar(op.result.type, op)
        number = value.value.data
        p.values[op.result] = (
            nan_literal(number, t)
            if math.isnan(number) and not t.is_half
            else float_literal(p, number, t)
        )
    else:
        constant(p, op)


def nan_literal(value: float, t: Scalar) -> Expr:
    """A NaN with its sign and payload."""
    if t.bits == 64:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return Expr(f"__longlong_as_double((long long)0x{bits:x}ull)", PRIMARY, t)
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return Expr(f"__int_as_float((int)0x{bits:x}u)", PRIMARY, t)


GPU_HANDLERS: dict[Any, Any] = {
    gpu.ThreadIdOp: _number("threadIdx.{axis}", "thread_", MOST_THREADS - 1),
    gpu.BlockIdOp: _number("blockIdx.{axis}", "block_", MOST_BLOCKS - 1),
    gpu.BlockDimOp: _number("blockDim.{axis}", "threads_", MOST_THREADS),
    gpu.GridDimOp: _number("gridDim.{axis}", "blocks_", MOST_BLOCKS),
    gpu.GlobalIdOp: _number(
        "(int64_t)blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}", "global_", 1 << 41
    ),
    gpu.LaneIdOp: _number(f"{_FLAT} % 32", "lane", 31),
    gpu.SubgroupIdOp: _number(f"{_FLAT} / 32", "warp", 31),
    gpu.NumSubgroupsOp: _number(f"({_THREADS} + 31) / 32", "warps", 32),
    gpu.SubgroupSizeOp: _number("32", "warp_size", 32),
    gpu.BarrierOp: barrier,
    gpu.AllReduceOp: all_reduce,
    ShuffleOp: shuffle,
    PrefetchOp: prefetch,
    memref.AllocaOp: alloca,
    arith.ConstantOp: float_constant,
    arith.IndexCastOp: index_cast,
}
"""How these ops are printed, by their class."""
