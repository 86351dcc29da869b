"""uopc-dce: removes ops that nobody needs.

An op goes if nothing uses its results and it does nothing else: no side effect, no terminator,
no symbol. Then what only it used goes too. One walk from the last op to the first, linear.

    %0 = utensor.exp %x : tensor<4xf32>                  // removed second
    %1 = utensor.neg %0 : tensor<4xf32>                  // removed first
    %2 = utensor.abs %x : tensor<4xf32>                  %0 = utensor.abs %x : tensor<4xf32>
    func.return %2 : tensor<4xf32>                  =>   func.return %0 : tensor<4xf32>
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from uopc.passes.value_numbering import may_be_numbered


def erase_dead_ops(root: Operation) -> int:
    """Erase the ops inside `root` that nobody needs; how many. Linear in ops and operands."""
    # Uses stand after definitions, nested ops after the op around them: seen from the end, users
    # come first. Where blocks are in another order, an op comes up again when a user has gone.
    pending = list(root.walk())
    erased = 0
    while pending:
        op = pending.pop()
        block = op.parent
        if block is None or op is root or any(r.first_use is not None for r in op.results):
            continue
        if not (may_be_numbered(op) or would_be_trivially_dead(op)):  # the first is the fast one
            continue
        pending.extend(v.op for v in dict.fromkeys(op.operands) if isinstance(v, OpResult))
        block.erase_op(op)
        erased += 1
    return erased


@dataclass(frozen=True)
class DeadCodeEliminationPass(ModulePass):
    """Remove ops whose results nobody uses and that do nothing else."""

    name = "uopc-dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        erase_dead_ops(op)
