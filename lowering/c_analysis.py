"""What one function's printer wants to know beforehand: which ops matter, and who uses what.

An op matters if it has an effect, or if a value that matters needs it. Loop-carried values and
region results are followed position by position, so that a carried value nobody reads costs no
variable (compilers warn about those). One visit an op; no recursion.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, math, memref, scf, vector
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from uopc.dialects.memref_extensions import PrefetchOp
from uopc.lowering.c_idioms import Idiom, idiom

_LAST_OF_IDIOMS = frozenset((arith.MulfOp, arith.SelectOp))

_EFFECTS: frozenset[type[Operation]] = frozenset(
    {
        func.CallOp,
        func.ReturnOp,
        memref.StoreOp,
        memref.CopyOp,
        memref.DeallocOp,
        memref.AtomicRMWOp,
        PrefetchOp,
        vector.StoreOp,
        vector.MaskedStoreOp,
    }
)
_PURE: frozenset[type[Operation]] = frozenset(
    {*arith.Arith.operations, *math.Math.operations, *memref.MemRef.operations}
    | {*vector.Vector.operations, *scf.Scf.operations}
) - (_EFFECTS | {vector.PrintOp, memref.DmaStartOp, memref.DmaWaitOp})
"""Without an effect of its own: a region op matters for what is inside."""

_BY_POSITION: frozenset[type[Operation]] = frozenset(
    {scf.YieldOp, scf.ConditionOp, scf.ReduceOp, scf.ReduceReturnOp, memref.AllocaScopeReturnOp}
)
"""Terminators whose operands matter one by one, with what receives them."""

_POSITIONAL: frozenset[type[Operation]] = frozenset(
    {scf.IfOp, scf.IndexSwitchOp, scf.ExecuteRegionOp, memref.AllocaScopeOp}
)
"""Ops whose regions yield their results, each to the result of its position."""

_ADDRESS_ARITHMETIC: frozenset[type[Operation]] = frozenset(
    {
        *(arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp),
        *(arith.SelectOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp),
        *(arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp),
    }
)
_ADDRESSING: frozenset[type[Operation]] = frozenset(
    {
        *(memref.LoadOp, memref.StoreOp, vector.LoadOp, vector.StoreOp),
        *(vector.MaskedLoadOp, vector.MaskedStoreOp, memref.ViewOp, memref.SubviewOp),
        PrefetchOp,
        *(memref.ReinterpretCastOp, memref.AllocOp, memref.AllocaOp, memref.DimOp),
        *(scf.ForOp, scf.ParallelOp, vector.CreateMaskOp),
    }
)
"""Ops whose index operands are places in memory, sizes or loop bounds."""


class Liveness:
    """Facts about one function body.

    `uses[v]` counts the uses of v by ops that matter, `where[v]` is the block of the last one
    found, `live` holds the ops that matter, and `data` the index values that are more than
    addresses: compared, stored, passed on or converted. `idioms` are the ops that end one.
    """

    def __init__(self, body: Block) -> None:
        self.uses: dict[SSAValue, int] = {}
        self.where: dict[SSAValue, Block | None] = {}
        self.live: set[Operation] = set()
        self.data: set[SSAValue] = set()
        self.idioms: dict[Operation, Idiom] = {}
        self._work: list[Operation] = []
        self._carried: set[tuple[Operation, int]] = set()
        self._collect(body)
        while self._work:
            self._visit(self._work.pop())
        self._spread_data()

    def _collect(self, body: Block) -> None:
        blocks = [body]
        while blocks:
            for op in blocks.pop().ops:
                if type(op) not in _PURE:
                    self._activate(op)
                for region in op.regions:
                    blocks.extend(region.blocks)

    def _activate(self, op: Operation) -> None:
        current: Operation | None = op
        while current is not None and current not in self.live:
            if isinstance(current, func.FuncOp):
                return
            self.live.add(current)
            self._work.append(current)
            current = current.parent_op()

    def _need(self, value: SSAValue, user: Operation, address: bool = False) -> None:
        count = self.uses.get(value, 0)
        self.uses[value] = count + 1
        self.where[value] = user.parent
        if not address and isinstance(value.type, IndexType):
            self.data.add(value)
        if count:
            return
        if isinstance(value, OpResult):
            self._activate(value.op)
            self._need_result(value.op, value.index)
        elif isinstance(value, BlockArgument):
            self._need_argument(value, value.owner.parent_op())

    def _need_argument(self, value: BlockArgument, loop: Operation | None) -> None:
        if isinstance(loop, scf.ForOp):
            if value.index:
                self._carry(loop, value.index - 1)
        elif isinstance(loop, scf.WhileOp):
            if value.owner is loop.after_region.block:
                self._forward(loop, value.index)
            elif (loop, value.index) not in self._carried:
                self._carried.add((loop, value.index))
                self._need(loop.arguments[value.index], loop)
                self._need_last(loop.after_region.block, value.index)

    def _need_result(self, op: Operation, index: int) -> None:
        kind = type(op)
        if kind is scf.ForOp:
            self._carry(op, index)
        elif kind in _POSITIONAL:
            for region in op.regions:
                for block in region.blocks:
                    self._need_last(block, index)
        elif isinstance(op, scf.WhileOp):
            self._forward(op, index)
        elif isinstance(op, scf.ParallelOp):
            self._need(op.initVals[index], op)
            last = self._need_last(op.body.block, index)
            if isinstance(last, scf.ReduceOp) and index < len(last.regions):
                self._need_last(last.regions[index].block, 0)

    def _need_last(self, block: Block, index: int) -> Operation | None:
        """Need operand number `index` of the block's terminator, which is returned."""
        last = block.last_op
        if last is not None and index < len(last.operands):
            self._need(last.operands[index], last)
        return last

    def _carry(self, loop: Operation, index: int) -> None:
        if (loop, index) in self._carried:
            return
        self._carried.add((loop, index))
        self._need(loop.operands[3 + index], loop)
        self._need_last(loop.regions[0].block, index)

    def _forward(self, loop: scf.WhileOp, index: int) -> None:
        """What scf.condition hands on: to the second region and to the result."""
        if (loop, -1 - index) not in self._carried:
            self._carried.add((loop, -1 - index))
            self._need_last(loop.before_region.block, index + 1)

    def is_forwarded(self, loop: scf.WhileOp, index: int) -> bool:
        """Whether value number `index` of a while loop's scf.condition is read at all."""
        return (loop, -1 - index) in self._carried

    def is_carried(self, loop: Operation, index: int) -> bool:
        """Whether the loop's carried value number `index` is read by anything that matters."""
        return (loop, index) in self._carried

    def _visit(self, op: Operation) -> None:
        kind = type(op)
        operands: Sequence[SSAValue] = tuple(op.operands)
        if kind in _LAST_OF_IDIOMS and (found := idiom(op)) is not None:
            self.idioms[op] = found
            operands = found.operands
        if kind in _BY_POSITION:
            return
        if kind is scf.ForOp:
            operands = operands[:3]
        elif isinstance(op, scf.WhileOp):
            operands = operands[:0]
            self._need_last(op.before_region.block, 0)
        elif isinstance(op, scf.ParallelOp):
            operands = operands[: 3 * len(op.lowerBound)]
        is_address = kind in _ADDRESSING or kind in _ADDRESS_ARITHMETIC
        for operand in operands:
            self._need(operand, op, is_address)
        if isinstance(op, memref.StoreOp) and isinstance(op.value.type, IndexType):
            self.data.add(op.value)

    def _spread_data(self) -> None:
        work = list(self.data)
        while work:
            value = work.pop()
            op = value.owner
            if isinstance(op, Operation) and type(op) in _ADDRESS_ARITHMETIC:
                for operand in op.operands:
                    if operand not in self.data and isinstance(operand.type, IndexType):
                        self.data.add(operand)
                        work.append(operand)
