"""The state of a conversion: what each value became, and the rules by the ops' names.

A region that computes one element (a reduction's body, a comparator) is converted **lifted**: each
scalar in it stands for a tensor of one shape, so that one run of the body computes all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.element_types import ElementType, element_type
from uopc.dialects.errors import UnsupportedError, UopcError
from uopc.dialects.locations import nearest_location
from uopc.dialects.op_text import op_text
from uopc.dialects.source_text import printable
from uopc.dialects.stablehlo_attributes import StructAttr, WordAttr, int_list
from uopc.dialects.stablehlo_text import integer_of
from uopc.passes.stablehlo_conversion.builder import Builder, Shape, shape_of

Rule = Callable[["Conversion", Operation, list[SSAValue]], Sequence[SSAValue]]
"""From an op and its operands' new values to its results' new values."""

MAX_CALL_DEPTH = 100
"""Calls and regions nest no deeper than this."""


def unsupported(op: Operation, reason: str) -> UnsupportedError:
    """An op that has no conversion, and why."""
    return UnsupportedError(
        "unsupported-op",
        f"{op.name}: {printable(reason)}",
        location=nearest_location(op),
        op_text=op_text(op),
        hint="write it with ops that are converted: passes/stablehlo_conversion/ has the rules",
    )


def invalid(op: Operation, reason: str) -> UopcError:
    """An op that StableHLO's specification does not allow."""
    return UopcError(
        "verify-failed",
        f"'{op.name}' op {printable(reason)}",
        location=nearest_location(op),
        op_text=op_text(op),
    )


def static_type(op: Operation, type_: Attribute) -> tuple[Attribute, Shape]:
    """The element type and the shape of a tensor type. Raises UnsupportedError for others."""
    if not isinstance(type_, TensorType):
        raise unsupported(op, f"type {type_} is no ranked tensor")
    tensor = cast("TensorType[Attribute]", type_)
    if element_type(tensor.element_type) is None:
        raise unsupported(op, f"element type {tensor.element_type}")
    shape = tuple(tensor.get_shape())
    if DYNAMIC_INDEX in shape:
        raise unsupported(op, f"{type_} has a size that is not known")
    return tensor.element_type, shape


def result_type(op: Operation, position: int = 0) -> tuple[Attribute, Shape]:
    """The element type and the shape of a result."""
    return static_type(op, op.results[position].type)


def row(element: Attribute) -> ElementType:
    """The row of an element type that static_type let through."""
    found = element_type(element)
    assert found is not None
    return found


class Conversion:
    """Converts blocks of StableHLO to utensor ops that `build` appends."""

    def __init__(
        self, rules: Mapping[str, Rule], liftable: frozenset[str], functions: Mapping[str, FuncOp]
    ) -> None:
        self.rules = rules
        self.liftable = liftable
        self.functions = functions
        self.build = Builder(Block())
        self.lift: Shape | None = None
        self._values: dict[SSAValue, SSAValue] = {}
        self._calls: list[Operation] = []

    def value(self, old: SSAValue) -> SSAValue:
        """What a value became; in a lifted region spread over the region's shape."""
        new = self._values[old]
        if self.lift is None or shape_of(new) == self.lift:
            return new
        if shape_of(new):
            return new  # a rule that cannot use it says so
        return self.build.spread(new, self.lift)

    def run(self, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Convert a block's ops; the values that its terminator takes."""
        if len(block.args) != len(arguments):
            parent = block.parent_op()
            assert parent is not None
            raise invalid(
                parent, f"has a block of {len(block.args)} arguments, expected {len(arguments)}"
            )
        self._values.update(zip(block.args, arguments, strict=True))
        taken: list[SSAValue] = []
        for op in block.ops:
            if op.name in ("func.return", "stablehlo.return"):
                return [self.value(operand) for operand in op.operands]
            self._convert(op)
        return taken

    def run_lifted(
        self, block: Block, arguments: Sequence[SSAValue], shape: Shape
    ) -> list[SSAValue]:
        """Convert a block of scalars for all elements of a shape at once."""
        outer, self.lift = self.lift, shape or None
        results = self.run(block, arguments)
        self.lift = outer
        for each in results:
            if shape_of(each) not in ((), shape):
                raise invalid(self._calls[-1], f"has a body that gives {each.type}, no scalar")
        return [self.build.spread(v, shape) if not shape_of(v) else v for v in results]

    def _convert(self, op: Operation) -> None:
        rule = self.rules.get(op.name)
        if rule is None:
            raise unsupported(op, "there is no conversion of this op")
        if self.lift is not None and op.name not in self.liftable:
            raise unsupported(op, "in a region that computes one element")
        self.build.location = op.location
        operands = [self.value(operand) for operand in op.operands]
        for operand in op.operands:
            static_type(op, operand.type)
        try:
            results = rule(self, op, operands)
        except VerifyException as error:
            raise invalid(op, str(error)) from error
        if len(results) != len(op.results):
            raise invalid(op, f"has {len(op.results)} results, expected {len(results)}")
        for old, new in zip(op.results, results, strict=True):
            self._check(op, old, new)
            new.name_hint = new.name_hint or old.name_hint
            self._values[old] = new

    def _check(self, op: Operation, old: SSAValue, new: SSAValue) -> None:
        element, shape = static_type(op, old.type)
        got = cast("TensorType[Attribute]", new.type)
        expected = shape if self.lift is None else self.lift
        if got.element_type != element or shape_of(new) not in (expected, shape):
            raise invalid(op, f"gives {got}, but its result is of type {old.type}")

    def call(self, op: Operation, name: str, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Convert a function's body in place of a call."""
        function = self.functions.get(name)
        if function is None or not function.body.blocks:
            raise unsupported(op, f"there is no function @{name} with a body")
        if function in self._calls:
            raise unsupported(op, f"@{name} calls itself")
        return self.nested(function, function.body.block, arguments)

    def nested(self, op: Operation, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Convert a block of an op that stands inside of others."""
        if len(self._calls) >= MAX_CALL_DEPTH:
            raise unsupported(op, f"calls and regions nest deeper than {MAX_CALL_DEPTH}")
        self._calls.append(op)
        results = self.run(block, arguments)
        self._calls.pop()
        return results


# What ops say of themselves.


def axes_of(op: Operation, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """A property that lists integers. Raises UopcError if it is missing and has no default."""
    value = op.get_attr_or_prop(name)
    if value is None:
        if default is None:
            raise invalid(op, f"lacks {name}")
        return tuple(default)
    return int_list(value)


def number(op: Operation, name: str, default: int | None = None) -> int:
    """A property that is an integer or a flag."""
    value = op.get_attr_or_prop(name)
    if value is None and default is None:
        raise invalid(op, f"lacks {name}")
    return integer_of(value, default or 0)


def word(op: Operation, name: str, default: str = "") -> str:
    """A property that is a word of an enumeration."""
    value = op.get_attr_or_prop(name)
    return value.word.data if isinstance(value, WordAttr) else default


def struct(op: Operation, name: str) -> StructAttr:
    """A property that is a struct."""
    value: Any = op.get_attr_or_prop(name)
    if not isinstance(value, StructAttr):
        raise invalid(op, f"lacks {name}")
    return value


def body(op: Operation, position: int = 0, arguments: int | None = None) -> Block:
    """The one block of a region, which has so many arguments. Raises UopcError."""
    if len(op.regions) <= position or len(op.regions[position].blocks) != 1:
        raise invalid(op, f"needs a region of one block at place {position}")
    block = op.regions[position].block
    if arguments is not None and len(block.args) != arguments:
        raise invalid(op, f"has a block of {len(block.args)} arguments, expected {arguments}")
    return block
