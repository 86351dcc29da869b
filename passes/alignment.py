"""Where an access of memory lies: its place as a linear form, and its alignment.

    %4 = muli %thread, 4;  %5 = addi %4, 3         x[%5] is at 4 * thread + 3

Elements of a buffer with an alignment are aligned as their offset is a multiple: of the factors of
the form, and of what the values in it are multiples of themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from uopc.dialects.gpu_extensions import is_workgroup

ALIGN = "llvm.align"
"""Of an argument: bytes that its address is a multiple of."""
NOALIAS = "llvm.noalias"
SHARED_ALIGNMENT = 16
"""Bytes: of shared arrays and of constants, as the CUDA emitter declares them."""
MOST = 16
"""The widest access of a GPU, in bytes."""

_SAME_MEMORY = (
    memref.CollapseShapeOp,
    memref.ExpandShapeOp,
    memref.CastOp,
    memref.MemorySpaceCastOp,
)


@dataclass(frozen=True)
class Place:
    """Which element of a buffer: the sum of factors times values, plus a number."""

    factors: frozenset[tuple[SSAValue, int]]
    number: int

    def multiple(self) -> int:
        """The largest power of two, up to 16, that divides all but the number."""
        found = MOST
        for value, factor in self.factors:
            found = math.gcd(found, factor * multiple_of(value))
        return found


def place_of(type_: Attribute, indices: Sequence[SSAValue]) -> Place | None:
    """Where an access lies; None where the buffer's layout or its row lengths are unknown."""
    if not isinstance(type_, MemRefType) or not isinstance(type_.layout, NoneAttr):
        return None
    shape = cast("MemRefType[Attribute]", type_).get_shape()
    if any(n < 0 for n in shape[1:]) or len(shape) != len(indices):
        return None
    factors: dict[SSAValue, int] = {}
    number, stride = 0, 1
    for size, index in zip(reversed(shape), reversed(indices), strict=True):
        own = _Form()
        own.add(index, stride)
        for value, factor in own.factors.items():
            factors[value] = factors.get(value, 0) + factor
        number += own.number
        stride *= size
    return Place(frozenset((v, f) for v, f in factors.items() if f), number)


class _Form:
    def __init__(self) -> None:
        self.factors: dict[SSAValue, int] = {}
        self.number = 0

    def add(self, value: SSAValue, factor: int) -> None:
        """Add a value times a number, taken apart as far as it is a sum."""
        match value.owner:
            case arith.ConstantOp():
                self.number += factor * _integer(value.owner)
            case arith.AddiOp(lhs=a, rhs=b):
                self.add(a, factor)
                self.add(b, factor)
            case arith.SubiOp(lhs=a, rhs=b):
                self.add(a, factor)
                self.add(b, -factor)
            case arith.MuliOp(lhs=a, rhs=b) if isinstance(b.owner, arith.ConstantOp):
                self.add(a, factor * _integer(b.owner))
            case _:
                self.factors[value] = self.factors.get(value, 0) + factor


def _integer(op: arith.ConstantOp) -> int:
    value = op.value
    return cast("IntegerAttr[Any]", value).value.data if isinstance(value, IntegerAttr) else 1


def multiple_of(value: SSAValue) -> int:
    """A power of two, up to 16, that an index is known to be a multiple of."""
    owner = value.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if isinstance(loop, scf.ForOp) and value is owner.args[0]:
            return math.gcd(multiple_of(loop.lb), multiple_of(loop.step))
        return 1
    match owner:
        case arith.ConstantOp():
            return math.gcd(MOST, _integer(owner))
        case arith.AddiOp() | arith.SubiOp() | arith.MinSIOp() | arith.MaxSIOp() | arith.RemUIOp():
            return math.gcd(*(multiple_of(o) for o in owner.operands))
        case arith.MuliOp():
            a, b = (multiple_of(o) for o in owner.operands)
            return min(a * b, MOST)
        case arith.SelectOp(lhs=a, rhs=b):
            return math.gcd(multiple_of(a), multiple_of(b))
        case _:
            return 1


def root_of(value: SSAValue) -> SSAValue:
    """The buffer whose memory, from its start on, a memref is."""
    while isinstance(value.owner, _SAME_MEMORY):
        value = value.owner.operands[0]
    return value


def alignment_of(value: SSAValue) -> int:
    """Bytes that a memref's first element is known to be aligned to, apart from its own size."""
    root = root_of(value)
    if isinstance(root.owner, memref.AllocaOp):
        return SHARED_ALIGNMENT if is_workgroup(root.type) else 1
    if isinstance(root.owner, memref.GetGlobalOp):
        return SHARED_ALIGNMENT
    stated = _argument_attributes(root).get(ALIGN)
    return cast("IntegerAttr[Any]", stated).value.data if isinstance(stated, IntegerAttr) else 1


def overlap(a: SSAValue, b: SSAValue) -> bool:
    """Whether two memrefs may have memory in common."""
    a, b = root_of(a), root_of(b)
    if a is b:
        return True
    own = (memref.AllocOp, memref.AllocaOp)
    if isinstance(a.owner, own) or isinstance(b.owner, own):
        return False
    known = isinstance(a, BlockArgument) and isinstance(b, BlockArgument)
    return not (
        known and (NOALIAS in _argument_attributes(a) or NOALIAS in _argument_attributes(b))
    )


def _argument_attributes(value: SSAValue) -> Mapping[str, Attribute]:
    if not isinstance(value, BlockArgument) or not isinstance(value.owner.parent_op(), Operation):
        return {}
    op = value.owner.parent_op()
    assert op is not None
    stated = op.properties.get("arg_attrs", op.attributes.get("arg_attrs"))
    if not isinstance(stated, ArrayAttr) or isinstance(op, gpu.LaunchOp):
        return {}
    entries = cast("ArrayAttr[DictionaryAttr]", stated).data
    return entries[value.index].data if value.index < len(entries) else {}
