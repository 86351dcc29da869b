"""The body of one kernel: what its values are computed from, cloned down to the nearest buffers.

Ops stand in depth-first order from the kernel's values, operands left to right, so the body (and
with it the order of the kernel's inputs) depends on the computation and not on how the ops of
several kernels were mixed in the function. Costs one clone an op of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from uopc.dialects.element_types import element_type
from uopc.dialects.index_expr import SymbolVar, atom_expr
from uopc.dialects.kernel import KernelOp, ReadOp, WriteOp
from uopc.dialects.kernel_signature import buffer_type
from uopc.dialects.locations import fused_location
from uopc.dialects.sizes import Size, element_count_upper, sizes_of, symbols_in
from uopc.dialects.tensor import ArgreduceOp, ConstantOp, ReduceOp, ScatterOp
from uopc.dialects.tensor_elementwise import ELEMENTWISE_OPS
from uopc.passes.kernel_cut.graph import TensorBlock, sizes_attributes
from uopc.passes.kernel_cut.splat import splat_form

NAME_LIMIT = 64
"""How long a kernel's display name may get: sizes are expressions of any length."""
DOC_LIMIT = 12
"""How many ops a kernel's description lists."""

_ELEMENTWISE = frozenset[type[Operation]](ELEMENTWISE_OPS)
_REDUCTIONS = frozenset[type[Operation]]((ReduceOp, ArgreduceOp))
_WORDS = {"+": "_plus_", "-": "_minus_", "*": "_times_"}


class NameHint(Protocol):
    """Gives the name, for people, of the buffer that a value is read from or written to."""

    def __call__(self, value: SSAValue, *, written: bool) -> str | None: ...


@dataclass
class Kernel:
    """A kernel with the values it reads from buffers, in order of its inputs."""

    op: KernelOp
    inputs: tuple[SSAValue, ...]
    symbols: tuple[SymbolVar, ...]


def build_kernel(
    function: TensorBlock,
    roots: Sequence[SSAValue],
    in_buffers: Container[SSAValue],
    hint_of: NameHint,
    unique: Callable[[str], str],
    *,
    copies: bool = False,
    in_place: bool = False,
) -> Kernel:
    """The kernel that computes values of equal sizes from buffers and writes each to one.

    `in_buffers` has the other values that are read, `hint_of` their names in the plan's text, and
    `unique` makes a symbol of a display name. One that `copies` reads its value itself. For a
    scatter `in_place`, the buffer that is written has the operand.
    """
    body = _Body(function, roots, in_buffers, copies, in_place)
    block = body.block
    sizes = _sizes(roots[0])
    inputs = tuple(body.reads)
    written = [_sizes(root) for root in roots]
    symbols = _used_symbols(function, body, (*map(_sizes, inputs), *written))
    for source, argument in body.reads.items():
        argument.name_hint = hint_of(source, written=False)
    writes: list[Operation] = []
    for root, output in zip(roots, block.args[len(inputs) :], strict=True):
        output.name_hint = hint_of(root, written=True)
        write = WriteOp.create(operands=[body.values[root], output])
        write.location = cast(Operation, body.values[root].owner).location
        writes.append(write)
    for position, symbol in enumerate(symbols):
        block.insert_arg(IndexType(), position).name_hint = symbol.name
    block.add_ops([*body.ops, *writes])
    kernel = KernelOp(
        unique(_display_name(body.ops, sizes)),
        [atom_expr(s) for s in symbols],
        [*map(_sizes, inputs), *written],
        len(roots),
        block,
    )
    # What the kernel writes comes first: errors tell that place.
    computed = [op for op in body.ops if not isinstance(op, ReadOp)]
    kernel.location = fused_location(op.location for op in (*writes, *computed))
    # In place, what the updates do not touch is neither read nor written.
    touched = [cast(ScatterOp, roots[0].owner).updates] if in_place else roots
    _describe(kernel, body.ops, (*inputs, *touched))
    return Kernel(kernel, inputs, symbols)


class _Body:
    """The cloned ops of a body, and the reads that stand before the first use of each buffer."""

    def __init__(
        self,
        function: TensorBlock,
        roots: Sequence[SSAValue],
        in_buffers: Container[SSAValue],
        copies: bool,
        in_place: bool,
    ) -> None:
        self.block = Block(arg_types=[_buffer(root) for root in roots])
        self.values: dict[SSAValue, SSAValue] = {}
        self.ops: list[Operation] = []
        self.reads: dict[SSAValue, BlockArgument] = {}
        unstaged = function.unstaged
        if in_place:
            operand, output = cast(ScatterOp, roots[0].owner).operand, self.block.args[0]
            self._append(ReadOp.create(operands=[output], result_types=[operand.type]), operand)
            self.values[unstaged.get(operand, operand)] = self.values[operand]
        pending: list[tuple[SSAValue, bool]] = [(root, False) for root in reversed(roots)]
        while pending:
            value, operands_done = pending.pop()
            if value in self.values:
                continue
            # The roots are computed here, though their buffers serve others; a constant is not.
            if value in in_buffers and (
                copies or value not in roots or isinstance(value.owner, ConstantOp)
            ):
                self._read(value)
            elif operands_done:
                self._clone(cast(Operation, value.owner), unstaged)
            else:
                pending.append((value, True))
                operands = cast(Operation, value.owner).operands
                pending.extend((unstaged.get(o, o), False) for o in reversed(operands))

    def _read(self, value: SSAValue) -> None:
        argument = self.block.insert_arg(_buffer(value), len(self.reads))
        self.reads[value] = argument
        read = ReadOp.create(operands=[argument], result_types=[value.type])
        if isinstance(value.owner, Operation):
            read.location = value.owner.location
        self._append(read, value)

    def _clone(self, op: Operation, unstaged: dict[SSAValue, SSAValue]) -> None:
        if isinstance(op, ConstantOp):
            self._append(splat_form(op) or op.clone(), op.result)
            return
        clone = type(op).create(
            operands=[self.values[unstaged.get(o, o)] for o in op.operands],
            result_types=op.result_types,
            properties=op.properties.copy(),
            attributes=op.attributes.copy(),
            location=op.location,
        )
        self._append(clone, op.results[0])

    def _append(self, op: Operation, value: SSAValue) -> None:
        op.results[0].name_hint = value.name_hint
        self.ops.append(op)
        self.values[value] = op.results[0]


def _sizes(value: SSAValue) -> tuple[Size, ...]:
    return sizes_of(cast("TensorType[Attribute]", value.type))


def _buffer(value: SSAValue) -> Attribute:
    return buffer_type(cast("TensorType[Attribute]", value.type).element_type, _sizes(value))


def _used_symbols(
    function: TensorBlock, body: _Body, buffers: Sequence[Sequence[Size]]
) -> tuple[SymbolVar, ...]:
    """The function's symbols that the kernel's buffers or ops mention, in the function's order."""
    if not function.symbols:
        return ()
    used = {s for sizes in buffers for s in symbols_in(sizes)}
    for op in body.ops:
        for sizes in sizes_attributes(op):
            used.update(symbols_in(sizes.data))
    return tuple(s for s in function.symbols if s in used)


def _display_name(ops: Sequence[Operation], sizes: Sequence[Size]) -> str:
    """`r_4_8` with a reduction in the body, `e_4_8` without one; `e_1` for rank 0."""
    letter = "r" if any(type(op) in _REDUCTIONS for op in ops) else "e"
    name = "_".join([letter, *(map(size_name, sizes) if sizes else ("1",))])
    return name if len(name) <= NAME_LIMIT else f"{name[: NAME_LIMIT - 4]}_etc"


def size_name(size: Size) -> str:
    """A size as part of an identifier: `8`, `n`, `n_plus_1`."""
    if isinstance(size, int):
        return str(size)
    text = "".join(_WORDS.get(c, c if c.isascii() and c.isalnum() else "_") for c in str(size))
    return "_".join(filter(None, text.split("_")))


def _describe(kernel: KernelOp, ops: Sequence[Operation], buffers: Sequence[SSAValue]) -> None:
    """Set the counts and the description.

    Operations: one an element that an elementwise op computes, and one an element that a
    reduction reads. Bytes: each buffer once. Both at the symbols' upper bounds.
    """
    flops = 0
    for op in ops:
        if type(op) in _ELEMENTWISE:
            flops += element_count_upper(_sizes(op.results[0]))
        elif type(op) in _REDUCTIONS:
            flops += element_count_upper(_sizes(op.operands[0]))
    moved = 0
    for buffer in buffers:
        row = element_type(cast("TensorType[Attribute]", buffer.type).element_type)
        assert row is not None
        moved += element_count_upper(_sizes(buffer)) * row.bytes
    kernel.properties["flops"] = IntegerAttr(flops, i64)
    kernel.properties["bytes"] = IntegerAttr(moved, i64)
    kernel.properties["doc"] = StringAttr(describe_ops(ops))


def describe_ops(ops: Sequence[Operation]) -> str:
    """What a kernel computes, in the order of its ops: `sub, exp, reduce add [1]`.

    Movement ops are told only where there is nothing else.
    """
    words = [w for op in ops if (w := _word(op, movement=False))]
    words = words or [w for op in ops if (w := _word(op, movement=True))]
    if len(words) > DOC_LIMIT:
        half = DOC_LIMIT // 2
        words = [*words[:half], f"{len(words) - DOC_LIMIT} more", *words[-half:]]
    return ", ".join(words) or "copy"


def _word(op: Operation, *, movement: bool) -> str:
    word = op.name.partition(".")[2]
    if isinstance(op, ReduceOp):
        axes = ", ".join(map(str, op.axes.get_values()))
        return f"reduce {op.kind.data} [{axes}]"
    if isinstance(op, ArgreduceOp):
        return f"argreduce {op.kind.data} [{op.axis.value.data}]"
    if type(op) in _ELEMENTWISE or word in ("gather", "scatter", "iota"):
        return word
    if movement and not isinstance(op, ReadOp):
        return word
    return ""
