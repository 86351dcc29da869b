"""Value numbering: pure ops that compute the same get one value. What cse and canonicalize share.

Two ops are the same if their class, operands, properties, discardable attributes and result
types are. Commutative tensor ops do not mind the order of their operands. A value is known where
its op dominates: in its block from there on, and in the regions nested there, unless an op
(func.func, ukernel.kernel) is isolated from above. A block's values are not known to the other
blocks of its region.

Replaced values are collected in a map that is applied when an op is met, each op's operands
being set at most once; nothing is erased here, for the ids of values stand in the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsolatedFromAbove, Pure

from uopc.dialects.dominance import GRAPH_REGION_OPS

COMMUTATIVE = frozenset(
    f"utensor.{name}" for name in ("add", "mul", "max", "min", "and", "or", "xor", "cmpeq", "cmpne")
)

DISTINCT = frozenset({"uloop.range"})
"""Ops without side effects of which two never are the same value, however alike they look."""

LARGE_CONSTANT = 1 << 20
"""Dense constants of more bytes are compared by identity: hashing them takes time."""

Key = tuple[object, ...]

_numbered_classes: dict[type[Operation], bool] = {}


def may_be_numbered(op: Operation) -> bool:
    """Whether equal ops of this class, with no regions and successors, give equal values."""
    cls = type(op)
    known = _numbered_classes.get(cls)
    if known is None:
        pure = op.has_trait(Pure, value_if_unregistered=False)
        known = _numbered_classes[cls] = pure and op.name not in DISTINCT
    return known and bool(op.results) and not op.regions and not op.successors


def _is_large(attribute: Attribute) -> bool:
    return (
        isinstance(attribute, DenseIntOrFPElementsAttr)
        and len(attribute.data.data) > LARGE_CONSTANT
    )


class Numbering:
    """The values known at one point of a walk, by what computes them."""

    def __init__(self) -> None:
        self.replaced: dict[SSAValue, SSAValue] = {}
        """Each replaced value, with the value that takes its place."""
        self._known: dict[Key, Operation] = {}
        self._added: list[Key] = []
        self._numbers: dict[Attribute, int] = {}
        self._number_of_id: dict[int, tuple[int, Attribute]] = {}

    def number(self, attribute: Attribute) -> int:
        """A number that equal attributes share."""
        found = self._number_of_id.get(id(attribute))
        if found is not None:
            return found[0]
        if _is_large(attribute):
            number = -1 - len(self._number_of_id)
        else:
            number = self._numbers.setdefault(attribute, len(self._numbers))
        self._number_of_id[id(attribute)] = (number, attribute)  # kept, so that the id stays its
        return number

    def key(self, op: Operation) -> Key:
        """What the op computes. Its operands must have been mapped."""
        operands = [id(operand) for operand in op.operands]
        if op.name in COMMUTATIVE:
            operands.sort()
        number = self.number
        parts: list[object] = [type(op), len(operands), *operands]
        parts += [number(result.type) for result in op.results]
        for name in sorted(op.properties):
            parts += (name, number(op.properties[name]))
        if op.attributes:
            parts.append(None)
            for name in sorted(op.attributes):
                parts += (name, number(op.attributes[name]))
        return tuple(parts)

    def find_or_add(self, op: Operation) -> Operation:
        """An op known here that computes the same, or the op itself, known from now on."""
        key = self.key(op)
        known = self._known.get(key)
        if known is None:
            self._known[key] = op
            self._added.append(key)
            return op
        return known

    def replace(self, op: Operation, values: list[SSAValue]) -> None:
        """Have `values` stand for the op's results; names move to values that have none."""
        for old, new in zip(op.results, map(self.resolve, values), strict=True):
            if new is old:  # in a graph region a value may depend on itself
                continue
            self.replaced[old] = new
            if new.name_hint is None and old.name_hint is not None:
                new.name_hint = old.name_hint

    def map_operands(self, op: Operation) -> None:
        """Let the op use the values that stand for its operands now."""
        replaced = self.replaced
        operands = op.operands
        for operand in operands:
            if operand in replaced:
                op.operands = [self.resolve(each) for each in operands]
                return

    def resolve(self, value: SSAValue) -> SSAValue:
        """The value that stands for `value`; itself if it was not replaced."""
        replaced = self.replaced
        while (new := replaced.get(value)) is not None:
            value = new
        return value

    def enter(self) -> int:
        """Open a scope; `leave` with the mark forgets what became known since."""
        return len(self._added)

    def leave(self, mark: int) -> None:
        while len(self._added) > mark:
            del self._known[self._added.pop()]

    def isolate(self) -> dict[Key, Operation]:
        """Forget everything for a while; `restore` with what this returns brings it back."""
        outside, self._known = self._known, {}
        return outside

    def restore(self, outside: dict[Key, Operation]) -> None:
        self._known = outside


def walk_in_scopes(
    root: Operation, numbering: Numbering, visit: Callable[[Operation], None]
) -> None:
    """Call `visit` for each op inside `root`, operands mapped, with what is known at its place.

    `visit` may insert ops before the op and report replacements to the numbering. Afterwards no
    op uses a replaced value, save replaced ops themselves. Linear, and without recursion.
    """
    unordered: list[Operation] = []
    stack = [_walk_inside(root, numbering, visit, unordered)]
    while stack:
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
        else:
            stack.append(_walk_inside(inner, numbering, visit, unordered))
    if unordered and numbering.replaced:
        for op in root.walk():
            numbering.map_operands(op)


def _walk_inside(
    parent: Operation,
    numbering: Numbering,
    visit: Callable[[Operation], None],
    unordered: list[Operation],
) -> Iterator[Operation]:
    """Visit the ops of the regions; yield each that has regions, to be walked before the next.

    Adds `parent` to `unordered` if a use may stand before the definition.
    """
    isolated = parent.has_trait(IsolatedFromAbove, value_if_unregistered=False)
    outside = numbering.isolate() if isolated else None
    graph = parent.name in GRAPH_REGION_OPS
    for region in parent.regions:
        block: Block | None = region.first_block
        if block is not region.last_block:
            unordered.append(parent)
        while block is not None:
            mark = numbering.enter()
            following = block.first_op
            while following is not None:
                op = following
                following = op.next_op
                numbering.map_operands(op)
                if graph and op.operands:
                    unordered.append(parent)
                visit(op)
                if op.regions:
                    yield op
            numbering.leave(mark)
            block = block.next_block
    if outside is not None:
        numbering.restore(outside)
