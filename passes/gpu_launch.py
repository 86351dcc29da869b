"""The op that launches a gpu.func that linearize made, over the grid that it wrote down.

gpu.launch_func @kernels::@e_n blocks in (%g, 1, 1) threads in (256, 1, 1) args(%n, %x, %o)
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, gpu
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import SSAValue

from uopc.dialects.gpu_kernels import block_of, grid_candidates
from uopc.dialects.index_expr import Expr
from uopc.passes.index_arith import IndexArith


def launch_op(
    kernel: gpu.FuncOp,
    container: str,
    sizes: Sequence[Expr],
    operands: Sequence[SSAValue],
    index: IndexArith,
) -> gpu.LaunchFuncOp:
    """The launch of a kernel on values; `index` makes values of its extents."""
    candidates = [[index.index(e) for e in grid] for grid in grid_candidates(kernel, sizes)]
    grid: list[SSAValue] = []
    for values in zip(*candidates, strict=True):
        largest = values[0]
        for value in values[1:]:
            if value is not largest:
                largest = index.builder.op(arith.MaxSIOp, largest, value)
        grid.append(largest)
    block = [index.constant(n) for n in block_of(kernel)]
    symbol = SymbolRefAttr(container, [kernel.sym_name.data])
    return gpu.LaunchFuncOp(symbol, grid, block, kernelOperands=list(operands))
