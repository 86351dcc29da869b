"""group-accesses: loads and stores of neighbours in a GPU's kernels become accesses of vectors.

    %0 = muli %thread, 4                          %0 = muli %thread, 4
    %a = memref.load %x[%0]                       %v = vector.load %x[%0] : vector<4xf32>
    %1 = addi %0, 1                         =>    %a = vector.extract %v[0]
    %b = memref.load %x[%1]                       %b = vector.extract %v[1]
    …                                             …

Two or four neighbours of at most 16 bytes, where the first is proven to be aligned to all of them
(alignment.py): the kernel's buffers by `llvm.align`, which linearize states, shared arrays and
constants by themselves. All of the accesses happen anyway, nothing between them writes what is
read, or reads what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects import arith, gpu, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, ModuleOp, VectorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from uopc.dialects.element_types import element_type
from uopc.dialects.gpu_extensions import ShuffleOp
from uopc.dialects.gpu_kernels import gpu_modules
from uopc.passes.alignment import MOST, Place, alignment_of, overlap, place_of

WIDTHS = (4, 2)


@dataclass(frozen=True)
class GroupAccessesPass(ModulePass):
    """Load and store neighbours at once, where that is aligned."""

    name = "group-accesses"
    level_after: ClassVar[str] = "linear"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for container in gpu_modules(op):
            for kernel in container.body.block.ops:
                if isinstance(kernel, gpu.FuncOp):
                    blocks = [b for o in kernel.walk() for r in o.regions for b in r.blocks]
                    for block in blocks:
                        _Block(block).rewrite()
                    for inner in reversed(list(kernel.walk())):
                        if isinstance(inner, _INDEX_OPS) and not inner.results[0].uses:
                            Rewriter.erase_op(inner)


Access = memref.LoadOp | memref.StoreOp


@dataclass
class Group:
    """Accesses of one buffer that differ in a number only, and that may happen at one time."""

    buffer: SSAValue
    place: Place
    ops: dict[int, list[Access]] = field(default_factory=dict[int, list[Access]])
    """By that number, in order."""


class _Block:
    def __init__(self, block: Block) -> None:
        self.ops = list(block.ops)
        self.position = {op: k for k, op in enumerate(self.ops)}
        self.loads: list[Group] = []
        self.stores: list[Group] = []

    def rewrite(self) -> None:
        for op in self.ops:
            if isinstance(op, memref.LoadOp):
                self.close(self.stores, lambda g, op=op: overlap(g.buffer, op.memref))
                self.note(self.loads, op)
            elif isinstance(op, memref.StoreOp):
                self.close(self.loads, lambda g, op=op: overlap(g.buffer, op.memref))
                own = self.note(self.stores, op)
                self.close(
                    self.stores,
                    lambda g, op=op, own=own: g is not own and overlap(g.buffer, op.memref),
                )
            elif op.regions or isinstance(op, _TOUCHING) or op.name.startswith("func."):
                self.close(self.loads, lambda g: True)
                self.close(self.stores, lambda g: True)
        self.close(self.loads, lambda g: True)
        self.close(self.stores, lambda g: True)

    def note(self, groups: list[Group], op: Access) -> Group | None:
        place = place_of(op.memref.type, list(op.indices))
        if place is None:
            return None
        for group in groups:
            if group.buffer is op.memref and group.place.factors == place.factors:
                group.ops.setdefault(place.number, []).append(op)
                return group
        groups.append(Group(op.memref, place, {place.number: [op]}))
        return groups[-1]

    def close(self, groups: list[Group], which: Callable[[Group], bool]) -> None:
        """What has come together in these groups is made of vectors, and no more is added."""
        for group in [g for g in groups if which(g)]:
            groups.remove(group)
            for run in runs(group):
                first = run[0][0]
                # The indices of the first element have to be there.
                if isinstance(first, memref.LoadOp):
                    if all(self.position[first] <= self.position[o] for ops in run for o in ops):
                        group_loads(first, run)
                elif all(len(ops) == 1 for ops in run):
                    group_stores(max((ops[0] for ops in run), key=self.position.__getitem__), run)


_INDEX_OPS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ConstantOp)
"""What the places of accesses were computed by, that are no more."""
_TOUCHING = (
    gpu.BarrierOp, ShuffleOp, memref.CopyOp, memref.AtomicRMWOp,
    vector.LoadOp, vector.StoreOp, vector.MaskedLoadOp, vector.MaskedStoreOp,
)  # fmt: skip


def runs(group: Group) -> list[list[list[Access]]]:
    """The parts of a group that are neighbours, aligned together: widest first."""
    row = element_type(_element(group.buffer))
    if row is None or row.is_bool:
        return []
    found: list[list[list[Access]]] = []
    left: Mapping[int, list[Access]] = dict(group.ops)
    for width in WIDTHS:
        size = width * row.bytes
        if size > MOST or alignment_of(group.buffer) % size or group.place.multiple() % width:
            continue
        for start in sorted(n for n in left if n % width == 0):
            numbers = range(start, start + width)
            if all(n in left for n in numbers):
                found.append([left[n] for n in numbers])
                left = {n: ops for n, ops in left.items() if n not in numbers}
    return found


def _element(buffer: SSAValue) -> Attribute:
    return cast("MemRefType[Attribute]", buffer.type).element_type


def group_loads(first: memref.LoadOp, run: Sequence[Sequence[Access]]) -> None:
    type_ = VectorType(first.res.type, [len(run)])
    whole = vector.LoadOp.create(operands=[first.memref, *first.indices], result_types=[type_])
    made: list[Operation] = [whole]
    parts: list[SSAValue] = []
    for lane in range(len(run)):
        part = vector.ExtractOp.create(
            operands=[whole.result],
            result_types=[first.res.type],
            properties={"static_position": DenseArrayBase.from_list(i64, [lane])},
        )
        made.append(part)
        parts.append(part.result)
    whole.result.name_hint = first.res.name_hint
    _insert(made, first)
    for part, ops in zip(parts, run, strict=True):
        for op in ops:
            assert isinstance(op, memref.LoadOp)
            part.name_hint = part.name_hint or op.res.name_hint
            Rewriter.replace_op(op, [], [part])


def group_stores(last: Access, run: Sequence[Sequence[Access]]) -> None:
    stores = [op for (op,) in run if isinstance(op, memref.StoreOp)]
    type_ = VectorType(stores[0].value.type, [len(run)])
    whole: Operation = vector.BroadcastOp.create(operands=[stores[0].value], result_types=[type_])
    made: list[Operation] = [whole]
    for lane, op in enumerate(stores[1:], 1):
        whole = vector.InsertOp.create(
            operands=[op.value, whole.results[0]],
            result_types=[type_],
            properties={"static_position": DenseArrayBase.from_list(i64, [lane])},
        )
        made.append(whole)
    target = [stores[0].memref, *stores[0].indices]
    made.append(vector.StoreOp.create(operands=[whole.results[0], *target]))
    _insert(made, last)
    for op in stores:
        Rewriter.erase_op(op)


def _insert(made: Sequence[Operation], before: Operation) -> None:
    for op in made:
        op.location = before.location
    Rewriter.insert_op(made, InsertPoint.before(before))
