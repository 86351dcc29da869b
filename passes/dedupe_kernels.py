"""dedupe-kernels: kernels that do the same are one.

    ukernel.launch @r_16 ins(%a) outs(%x)           ukernel.launch @r_16 ins(%a) outs(%x)
    ukernel.launch @r_16$1 ins(%b) outs(%y)    =>   ukernel.launch @r_16 ins(%b) outs(%y)
    ukernel.kernel @r_16 … { body }                 ukernel.kernel @r_16 … { body }
    ukernel.kernel @r_16$1 … { body }

Two kernels do the same if their bodies are equal op for op, on buffers of equal types in equal
places, for the same target and schedule. Names, descriptions and locations do not count. It is
worth running early: what is merged is lowered, printed and compiled once. Twelve equal layers
then cost as much as one. Linear in the size of the kernels.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects.kernel import KernelOp, LaunchOp, PlanOp
from uopc.dialects.verification import walk_operations

_NOT_COUNTED = frozenset({"sym_name", "doc", "flops", "bytes"})
"""Properties of a kernel that are names, or follow from its body."""


@dataclass(frozen=True)
class DedupeKernelsPass(ModulePass):
    """Merge kernels with equal bodies, and launch the one that stays.

    A module without kernels stays as it is.
    """

    name = "dedupe-kernels"
    level_after: ClassVar[str] = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        keys = KernelKeys()
        first: dict[Hashable, KernelOp] = {}
        merged: dict[str, KernelOp] = {}
        for kernel in [k for k in op.body.block.ops if isinstance(k, KernelOp)]:
            kept = first.setdefault(keys.key(kernel), kernel)
            if kept is not kernel:
                merged[kernel.sym_name.data] = kept
                kernel.detach()
                kernel.erase()
        if merged:
            _retarget(op, merged)


def _retarget(module: ModuleOp, merged: dict[str, KernelOp]) -> None:
    for plan in module.body.block.ops:
        if not isinstance(plan, PlanOp):
            continue
        for launch in plan.body.walk():
            if isinstance(launch, LaunchOp):
                kept = merged.get(launch.kernel.string_value())
                if kept is not None:
                    launch.properties["kernel"] = SymbolRefAttr(kept.sym_name)


class KernelKeys:
    """Makes keys that are equal for kernels that do the same, and for no others.

    Values are numbered in order of appearance, so names do not matter. Attributes are numbered
    too: hashing one costs more than all the rest.
    """

    def __init__(self) -> None:
        self._attributes: dict[Hashable, int] = {}

    def key(self, kernel: KernelOp) -> Hashable:
        """The key of a kernel. Costs about 5 us an op."""
        values: dict[SSAValue, int] = {}
        blocks: dict[Block, int] = {}
        own = {k: v for k, v in kernel.properties.items() if k not in _NOT_COUNTED}
        parts: list[Hashable] = [
            self._dictionary(own),
            self._dictionary(kernel.attributes),
            self._block(kernel.block, values, blocks),
        ]
        operations = walk_operations(kernel)
        next(operations)  # the kernel itself
        parts.extend(self._operation(op, values, blocks) for op in operations)
        return tuple(parts)

    def _operation(
        self, op: Operation, values: dict[SSAValue, int], blocks: dict[Block, int]
    ) -> Hashable:
        return (
            op.name,
            tuple(values.setdefault(o, len(values)) for o in op.operands),
            tuple(self._number(r.type) for r in op.results),
            tuple(values.setdefault(r, len(values)) for r in op.results),
            self._dictionary(op.properties),
            self._dictionary(op.attributes),
            tuple(blocks.setdefault(b, len(blocks)) for b in op.successors),
            tuple(
                tuple(self._block(b, values, blocks) for b in region.blocks)
                for region in op.regions
            ),
        )

    def _block(
        self, block: Block, values: dict[SSAValue, int], blocks: dict[Block, int]
    ) -> Hashable:
        """What stands at a block's head, and how many ops follow."""
        return (
            blocks.setdefault(block, len(blocks)),
            tuple(self._number(a.type) for a in block.args),
            tuple(values.setdefault(a, len(values)) for a in block.args),
            sum(1 for _ in block.ops),
        )

    def _dictionary(self, attributes: dict[str, Attribute]) -> Hashable:
        return tuple((name, self._number(attributes[name])) for name in sorted(attributes))

    def _number(self, attribute: Attribute) -> int:
        return self._attributes.setdefault(attribute_key(attribute), len(self._attributes))


def attribute_key(attribute: Attribute) -> Hashable:
    """A key that tells apart what == of attributes does not: 0.0 and -0.0."""
    match attribute:
        case FloatAttr():
            return ("float", attribute.type, struct.pack("<d", attribute.value.data))
        case StringAttr():
            return attribute
        case ArrayAttr():
            return ("array", tuple(map(attribute_key, attribute)))
        case DictionaryAttr():
            return ("dictionary", tuple((k, attribute_key(v)) for k, v in attribute.data.items()))
        case _:
            return attribute
