"""Kernels of a module's gpu.modules, and what linearize wrote down of their grids.

"gpu.func"() … {sym_name = "e_n", gpu.known_block_size = array<i32: 256, 1, 1>,
                uopc.grids = [affine_map<()[n] -> (n ceildiv 256, 1, 1)>]}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import gpu
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, ModuleOp

from uopc.dialects.affine import from_affine_map
from uopc.dialects.index_expr import Expr, as_expr, maximum

GRIDS = "uopc.grids"
"""Maps from a kernel's sizes to extents of the grid, which is the largest of them."""

INDEX_BITS = "uopc.index_bits"
"""32 on a kernel of which no index, nor a part of its computation, needs more."""


def gpu_modules(module: ModuleOp) -> list[gpu.ModuleOp]:
    """The gpu.modules of a module."""
    return [op for op in module.body.block.ops if isinstance(op, gpu.ModuleOp)]


def gpu_kernels(module: ModuleOp) -> dict[str, tuple[str, gpu.FuncOp]]:
    """The kernels in a module's gpu.modules by symbol, with the name of the gpu.module."""
    return {
        inner.sym_name.data: (op.sym_name.data, inner)
        for op in gpu_modules(module)
        for inner in op.body.block.ops
        if isinstance(inner, gpu.FuncOp) and inner.kernel is not None
    }


def grid_candidates(kernel: gpu.FuncOp, sizes: Sequence[Expr]) -> list[tuple[Expr, Expr, Expr]]:
    """The extents that the parts of a kernel ask for, over the values of its sizes."""
    maps = kernel.attributes.get(GRIDS)
    if not isinstance(maps, ArrayAttr):
        return [(as_expr(1), as_expr(1), as_expr(1))]
    found: list[tuple[Expr, Expr, Expr]] = []
    for entry in cast("ArrayAttr[AffineMapAttr]", maps):
        x, y, z = from_affine_map(entry.data, list(sizes))
        found.append((x, y, z))
    return found


def grid_of(kernel: gpu.FuncOp, sizes: Sequence[Expr]) -> tuple[Expr | int, ...]:
    """The three extents of a kernel's grid."""
    result: list[Expr | int] = []
    for extents in zip(*grid_candidates(kernel, sizes), strict=True):
        first, *others = dict.fromkeys(extents)
        largest = maximum(first, *others) if others else first
        constant = largest.as_int()
        result.append(largest if constant is None else constant)
    return tuple(result)


def block_of(kernel: gpu.FuncOp) -> tuple[int, int, int]:
    """Threads of a block."""
    known = kernel.known_block_size
    if not isinstance(known, DenseArrayBase):
        return (1, 1, 1)
    x, y, z = (int(n) for n in known.get_values())
    return (x, y, z)
