"""uopc-canonicalize: simplifies tensor programs, without changing a bit of what they compute.

One walk with a map from old values to new ones. Each op, its operands mapped, is
  * a constant, if its result has no elements or its operands are constants (passes/fold.py),
  * or what an equation makes of it (passes/tensor_rules.py, passes/movement_rules.py),
  * or, if an equal op is known, the value of that one (passes/value_numbering.py),
and stays as it is otherwise. Dead ops go at the end. Linear, whatever is shared.

Constants are splats, and stand second in commutative ops. `stage detach`, which only the
gradient pass reads, is dropped unless keep-detach is set. Sums and products of floats are not
reassociated, x*0 and x-x not folded.

    %zero = utensor.constant 0 : tensor<4xi32>
    %one = utensor.constant 1.0 : tensor<2x2xf32>
    %0 = utensor.mul %i, %zero : tensor<4xi32>
    %1 = utensor.reshape %x : tensor<4xf32> -> tensor<2x2xf32>
    %2 = utensor.mul %one, %1 : tensor<2x2xf32>
    %3 = utensor.reshape %2 : tensor<2x2xf32> -> tensor<4x1xf32>
    func.return %0, %3 : tensor<4xi32>, tensor<4x1xf32>
  =>
    %0 = utensor.constant 0 : tensor<4xi32>
    %1 = utensor.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
    func.return %0, %1 : tensor<4xi32>, tensor<4x1xf32>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from uopc.dialects.numbers import known_element, scalar
from uopc.dialects.sizes import size_upper, sizes_of
from uopc.dialects.tensor import ConstantOp, UTensor
from uopc.dialects.tensor_elementwise import ELEMENTWISE_OPS, tensor_of
from uopc.passes.dce import erase_dead_ops
from uopc.passes.fold import Number, fold
from uopc.passes.movement_rules import SHAPE_RULES
from uopc.passes.rewrite_rows import operand_classes, splat_of
from uopc.passes.tensor_rules import ELEMENTWISE_RULES
from uopc.passes.value_numbering import COMMUTATIVE, Numbering, may_be_numbered, walk_in_scopes

_ELEMENTWISE: dict[type[Operation], str] = {op: op.name.partition(".")[2] for op in ELEMENTWISE_OPS}
_TENSOR_OPS = frozenset(UTensor.operations)


@dataclass(frozen=True)
class _TypeFacts:
    tensor: TensorType[Attribute]  # kept, so that its id stays its own
    kind: str
    empty: bool


class Simplifier:
    """The state of one run; the Builder that the rules get."""

    def __init__(self, keep_detach: bool = False) -> None:
        self.keep_detach = keep_detach
        self.numbering = Numbering()
        self._anchor: Operation | None = None
        self._facts: dict[int, _TypeFacts] = {}

    def visit(self, op: Operation) -> None:
        """Simplify an op of the program, its operands being mapped."""
        self._anchor = op
        if type(op) in _TENSOR_OPS:
            value = self._simplify(op)
            if value is not None:
                self.numbering.replace(op, [value])
                return
        if may_be_numbered(op):
            known = self.numbering.find_or_add(op)
            if known is not op:
                self.numbering.replace(op, list(known.results))

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        result: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """The result of such an op: simplified, known, or of a new op before the one at hand."""
        op = cls.create(operands=operands, result_types=[result], properties=properties or {})
        value = self._simplify(op)
        if value is None:
            known = self.numbering.find_or_add(op)
            if known is op:
                self._insert(op)
                return op.results[0]
            value = known.results[0]
        op.drop_all_references()
        return value

    def constant(self, value: Number, tensor: TensorType[Attribute]) -> SSAValue:
        """A tensor whose elements are all `value`."""
        op = ConstantOp.create(result_types=[tensor], properties={"value": value})
        known = self.numbering.find_or_add(op)
        if known is op:
            self._insert(op)
        return known.results[0]

    def _insert(self, op: Operation) -> None:
        anchor = self._anchor
        assert anchor is not None and anchor.parent is not None
        op.location = anchor.location
        anchor.parent.insert_op_before(op, anchor)

    def _simplify(self, op: Operation) -> SSAValue | None:
        """The value that the op's result is equal to, None if the op is needed."""
        cls = type(op)
        result = tensor_of(op.results[0])
        facts = self._facts_of(result)
        if facts.empty:
            if cls is ConstantOp and splat_of(op.results[0]) is not None:
                return None
            return self.constant(scalar(0, result.element_type), result)
        name = _ELEMENTWISE.get(cls)
        if name is not None:
            value = self._simplify_elementwise(op, name, result)
            if value is not None:
                return value
        for rule in SHAPE_RULES.get(cls, ()):
            value = rule(self, op)
            if value is not None:
                return value
        return None

    def _simplify_elementwise(
        self, op: Operation, name: str, result: TensorType[Attribute]
    ) -> SSAValue | None:
        classes = operand_classes(op)
        if ConstantOp in classes:
            operands = op.operands
            numbers = [splat_of(operand) for operand in operands]
            if None not in numbers:
                folded = fold(name, cast("list[Number]", numbers), result.element_type)
                return None if folded is None else self.constant(folded, result)
            if op.name in COMMUTATIVE and numbers[0] is not None:
                op.operands = [operands[1], operands[0]]
                classes = (classes[1], classes[0])
        kind = self._facts_of(tensor_of(op.operands[-1])).kind
        return ELEMENTWISE_RULES.apply(self, op, kind, classes)

    def _facts_of(self, tensor: TensorType[Attribute]) -> _TypeFacts:
        facts = self._facts.get(id(tensor))
        if facts is None:
            shape = tensor.get_shape()
            empty = 0 in shape or (
                DYNAMIC_INDEX in shape and any(size_upper(n) == 0 for n in sizes_of(tensor))
            )
            facts = _TypeFacts(tensor, known_element(tensor.element_type).kind, empty)
            self._facts[id(tensor)] = facts
        return facts


def simplify(root: Operation, keep_detach: bool = False) -> None:
    """Simplify the tensor ops inside `root`, share what is equal, erase what is dead."""
    simplifier = Simplifier(keep_detach)
    walk_in_scopes(root, simplifier.numbering, simplifier.visit)
    erase_dead_ops(root)


@dataclass(frozen=True)
class CanonicalizePass(ModulePass):
    """Fold, simplify and merge tensor ops, share equal ones, and drop dead ones."""

    name = "uopc-canonicalize"

    keep_detach: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        simplify(op, self.keep_detach)
