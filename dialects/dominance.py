"""Every operand is defined before its use: the check that xDSL's verifier does not make.

One walk without recursion. A value is visible from its definition to the end of its block, in
the regions nested there, and in the blocks that its block dominates. In the region of
`builtin.module` (a graph region, as MLIR calls it) order does not matter.

Unreachable blocks are left alone, as in MLIR: nothing dominates them.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, Region, SSAValue

from uopc.dialects.errors import UopcError
from uopc.dialects.locations import location_of, nearest_location
from uopc.dialects.op_text import op_name, op_text, value_text

GRAPH_REGION_OPS = frozenset({"builtin.module"})
"""Ops whose regions have no order. builtin.module is one by definition of MLIR."""


def check_dominance(root: Operation) -> None:
    """Check all ops in `root`. Raises UopcError [verify-failed] at the first wrong operand.

    Time is linear in the ops and operands, and in the edges of a region with several blocks
    (times the depth of its loops).
    """
    visible: set[SSAValue] = set()
    stack: list[_BlockWalk] = []
    for region in root.regions:
        stack.extend(_region_walks(region))
        while stack:
            walk = stack[-1]
            operation = walk.advance(visible)
            if operation is not None:
                for region_inside in reversed(operation.regions):
                    stack.extend(_region_walks(region_inside))
                continue
            if walk.children:
                stack.append(_BlockWalk(walk.children.pop(), walk.tree))
                continue
            visible.difference_update(walk.defined)
            stack.pop()


class _BlockWalk:
    """Where the walk stands in one block: the next op, and what the block defined so far."""

    def __init__(self, block: Block, tree: dict[Block, list[Block]]) -> None:
        self.block = block
        self.tree = tree
        self.children = list(tree.get(block, ()))
        self.defined: list[SSAValue] = []
        self._ops = iter(block.ops)
        self._entered = False
        self._open: Operation | None = None

    def advance(self, visible: set[SSAValue]) -> Operation | None:
        """Check ops up to the next one with regions, and return it; None at the block's end."""
        if not self._entered:
            self._entered = True
            self._define(self.block.args, visible)
            parent = self.block.parent_op()
            if parent is not None and parent.name in GRAPH_REGION_OPS:
                for operation in self.block.ops:
                    self._define(operation.results, visible)
        if self._open is not None:
            self._define(self._open.results, visible)
            self._open = None
        for operation in self._ops:
            for index, operand in enumerate(operation.operands):
                if operand not in visible:
                    raise _not_dominated(operation, index, operand)
            if operation.regions:
                self._open = operation
                return operation
            self._define(operation.results, visible)
        return None

    def _define(self, values: tuple[SSAValue, ...], visible: set[SSAValue]) -> None:
        self.defined.extend(values)
        visible.update(values)


def _region_walks(region: Region) -> Iterator[_BlockWalk]:
    """The walk of a region starts at its entry; other blocks follow as the entry's children."""
    entry = region.first_block
    if entry is None:
        return
    tree = {} if entry.next_block is None else _dominator_tree(entry)
    yield _BlockWalk(entry, tree)


def _dominator_tree(entry: Block) -> dict[Block, list[Block]]:
    """Blocks immediately dominated by each block (Cooper, Harvey, Kennedy: A Simple, Fast
    Dominance Algorithm, 2001). Blocks that cannot be reached from the entry are absent."""
    order = _reverse_postorder(entry)
    number = {block: index for index, block in enumerate(order)}
    predecessors: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in _successors(block):
            predecessors[successor].append(block)
    dominator: dict[Block, Block] = {entry: entry}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [other for other in predecessors[block] if other in dominator]
            closest = known[0]
            for other in known[1:]:
                closest = _meet(closest, other, dominator, number)
            if dominator.get(block) is not closest:
                dominator[block] = closest
                changed = True
    tree: dict[Block, list[Block]] = {}
    for block in order[1:]:
        tree.setdefault(dominator[block], []).append(block)
    return tree


def _meet(
    left: Block, right: Block, dominator: dict[Block, Block], number: dict[Block, int]
) -> Block:
    """The closest block that dominates both."""
    while left is not right:
        while number[left] > number[right]:
            left = dominator[left]
        while number[right] > number[left]:
            right = dominator[right]
    return left


def _reverse_postorder(entry: Block) -> list[Block]:
    finished: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, successors = stack[-1]
        for successor in successors:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(_successors(successor))))
                break
        else:
            finished.append(block)
            stack.pop()
    finished.reverse()
    return finished


def _successors(block: Block) -> tuple[Block, ...]:
    """The blocks control may go to, leaving out wrong ones (the op's own check names those)."""
    last = block.last_op
    if last is None:
        return ()
    return tuple(other for other in last.successors if other.parent is block.parent)


def _not_dominated(operation: Operation, index: int, operand: SSAValue) -> UopcError:
    definition = getattr(operand, "op", None)
    where = ""
    if isinstance(definition, Operation):
        place = location_of(definition)
        where = f", which '{op_name(definition)}' defines" + (f" at {place}" if place else "")
    return UopcError(
        "verify-failed",
        f"'{op_name(operation)}' op operand {index} ({value_text(operand)}) is used where it is "
        f"not defined{where}",
        location=nearest_location(operation),
        op_text=op_text(operation),
        hint="a value can be used after its definition, in the same block or in regions and "
        "blocks that come after it",
    )
