"""The movement ops of utensor: new shapes over the same elements, free of arithmetic.

They are index maps and never a kernel by themselves, unless their result is a program's output.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.index_expr import as_expr, at_least
from uopc.dialects.numbers import Scalar, number_text, parse_number, scalar, scalar_of_text
from uopc.dialects.sizes import (
    Size,
    SizesAttr,
    element_count,
    parse_sizes,
    print_sizes,
    shape_text,
    size,
    sizes_of,
    tensor_type,
)
from uopc.dialects.tensor_elementwise import check_same, check_tensor, tensor_of

Ints = DenseArrayBase[IntegerType]
"""Axes, orders and steps: an array of i64."""


def ints(values: Sequence[int]) -> Ints:
    """A dense array of i64."""
    return DenseArrayBase.from_list(i64, values)


def int_values(attribute: Ints) -> tuple[int, ...]:
    """The integers of a dense array."""
    return tuple(attribute.get_values())


def print_ints(printer: Printer, attribute: Ints) -> None:
    printer.print_string("[" + ", ".join(map(str, int_values(attribute))) + "]")


def parse_ints(parser: Parser) -> Ints:
    return ints(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)
        )
    )


def parse_typed_operand(parser: Parser, unresolved: object) -> tuple[SSAValue, Attribute | None]:
    """Parse `: T` or `: T -> U`; the operand resolved with T, and U if it is given."""
    parser.parse_punctuation(":")
    operand = parser.resolve_operand(unresolved, parser.parse_type())  # pyright: ignore[reportArgumentType]  # the parser's own opaque type
    result = parser.parse_type() if parser.parse_optional_punctuation("->") else None
    return operand, result


def check_axes(axes: Sequence[int], rank: int, what: str) -> None:
    """Verify that axes are in range and distinct."""
    for axis in axes:
        if not 0 <= axis < rank:
            raise VerifyException(
                f"{what}: axis {axis} is out of range, expected 0 to {rank - 1} for rank {rank}"
                if rank
                else f"{what}: axis {axis} is out of range, a tensor of rank 0 has no axes"
            )
    if len(set(axes)) != len(axes):
        raise VerifyException(f"{what}: expected distinct axes, got {list(axes)}")


class MovementOp(IRDLOperation, ABC):
    """A movement op of one operand; see `print_options` for what stands after it."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def print_options(self, printer: Printer) -> None:
        """Print what stands between the operand and its type."""

    def infer(self) -> TensorType[Attribute]:
        """The result's type. Raises VerifyException for options that do not fit."""
        return tensor_of(self.result)

    def verify_(self) -> None:
        check_tensor(self.operand)
        check_tensor(self.result)
        check_same(self.infer(), self.result.type, f"result of {self.name}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        self.print_options(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse_options(cls, parser: Parser) -> dict[str, Any]:
        """Parse what `print_options` prints, as properties (see `complete`)."""
        return {}

    @classmethod
    def complete(cls, properties: dict[str, Any], operand: Attribute) -> None:
        """Turn what could not be typed before the operand's type was known into properties."""

    @classmethod
    def parse(cls, parser: Parser) -> MovementOp:
        return cls.parse_with(parser, {})

    @classmethod
    def parse_with(cls, parser: Parser, leading: dict[str, Any]) -> MovementOp:
        """Parse from the operand on; `leading` are the properties that stood before it."""
        unresolved = parser.parse_unresolved_operand()
        properties = leading | cls.parse_options(parser)
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        operand, result = parse_typed_operand(parser, unresolved)
        try:
            cls.complete(properties, operand.type)
        except VerifyException as error:
            parser.raise_error(str(error), position, parser.pos)
        op = cls.create(
            operands=[operand],
            result_types=[result or operand.type],
            properties=properties,
            attributes=attributes,
        )
        if result is None:
            try:
                inferred = op.infer()
            except VerifyException as error:
                parser.raise_error(str(error), position, parser.pos)
            op.drop_all_references()  # or it would stay a user of the operand
            op = cls.create(
                operands=[operand],
                result_types=[inferred],
                properties=properties,
                attributes=attributes,
            )
        return op


@irdl_op_definition
class ReshapeOp(MovementOp):
    """`utensor.reshape %x : tensor<4x8xf32> -> tensor<32xf32>`: the same elements in row-major
    order, in another shape."""

    name = "utensor.reshape"

    def __init__(self, operand: SSAValue | Operation, sizes: Sequence[Size]):
        value = SSAValue.get(operand)
        result = tensor_type(tensor_of(value).element_type, tuple(sizes))
        super().__init__(operands=[value], result_types=[result])

    def infer(self) -> TensorType[Attribute]:
        source, result = tensor_of(self.operand), tensor_of(self.result)
        before, after = element_count(sizes_of(source)), element_count(sizes_of(result))
        if before != after:
            raise VerifyException(
                f"reshape keeps the number of elements: expected {before}, got {after} in "
                f"{shape_text(sizes_of(result))}"
            )
        return tensor_type(source.element_type, sizes_of(result))


@irdl_op_definition
class PermuteOp(MovementOp):
    """`utensor.permute %x [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>`: result axis k is operand
    axis order[k]."""

    name = "utensor.permute"
    order = prop_def(DenseArrayBase.constr(i64))

    def __init__(self, operand: SSAValue | Operation, order: Sequence[int]):
        value = SSAValue.get(operand)
        super().__init__(
            operands=[value],
            result_types=[self.permuted(tensor_of(value), order)],
            properties={"order": ints(order)},
        )

    @staticmethod
    def permuted(source: TensorType[Attribute], order: Sequence[int]) -> TensorType[Attribute]:
        sizes = sizes_of(source)
        if len(order) != len(sizes):
            raise VerifyException(
                f"permute needs each axis once: expected {len(sizes)} axes, got {list(order)}"
            )
        check_axes(order, len(sizes), "permute")
        return tensor_type(source.element_type, tuple(sizes[k] for k in order))

    def infer(self) -> TensorType[Attribute]:
        return self.permuted(tensor_of(self.operand), int_values(self.order))

    def print_options(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_ints(printer, self.order)

    @classmethod
    def parse_options(cls, parser: Parser) -> dict[str, Any]:
        return {"order": parse_ints(parser)}


@irdl_op_definition
class ExpandOp(MovementOp):
    """`utensor.expand %x : tensor<4x1xf32> -> tensor<4x8xf32>`: axes of size 1 repeated."""

    name = "utensor.expand"

    def __init__(self, operand: SSAValue | Operation, sizes: Sequence[Size]):
        value = SSAValue.get(operand)
        result = tensor_type(tensor_of(value).element_type, tuple(sizes))
        super().__init__(operands=[value], result_types=[result])

    def infer(self) -> TensorType[Attribute]:
        source, result = tensor_of(self.operand), tensor_of(self.result)
        before, after = sizes_of(source), sizes_of(result)
        if len(before) != len(after):
            raise VerifyException(
                f"expand keeps the rank: expected {len(before)}, got {len(after)}; reshape first"
            )
        for axis, (a, b) in enumerate(zip(before, after, strict=True)):
            if a not in (1, b):
                raise VerifyException(
                    f"expand repeats axes of size 1: axis {axis} has size {a}, got {b}"
                )
        return tensor_type(source.element_type, after)


@irdl_op_definition
class FlipOp(MovementOp):
    """`utensor.flip %x [1] : tensor<4x8xf32>`: the order along some axes reversed."""

    name = "utensor.flip"
    axes = prop_def(DenseArrayBase.constr(i64))

    def __init__(self, operand: SSAValue | Operation, axes: Sequence[int]):
        value = SSAValue.get(operand)
        super().__init__(
            operands=[value], result_types=[value.type], properties={"axes": ints(axes)}
        )

    def infer(self) -> TensorType[Attribute]:
        source = tensor_of(self.operand)
        check_axes(int_values(self.axes), len(sizes_of(source)), "flip")
        return source

    def print_options(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_ints(printer, self.axes)

    @classmethod
    def parse_options(cls, parser: Parser) -> dict[str, Any]:
        return {"axes": parse_ints(parser)}


@irdl_op_definition
class ShrinkOp(MovementOp):
    """`utensor.shrink %x [1, 0] to [3, 8] step [1, 2] : tensor<4x8xf32> -> tensor<2x4xf32>`: the
    elements from begin up to, without, end along each axis, each step-th of them."""

    name = "utensor.shrink"
    begins = prop_def(SizesAttr)
    ends = prop_def(SizesAttr)
    steps = prop_def(DenseArrayBase.constr(i64))

    def __init__(
        self,
        operand: SSAValue | Operation,
        begins: Sequence[Size],
        ends: Sequence[Size],
        steps: Sequence[int] | None = None,
    ):
        value = SSAValue.get(operand)
        steps = tuple(steps) if steps is not None else (1,) * len(begins)
        super().__init__(
            operands=[value],
            result_types=[self.shrunk(tensor_of(value), begins, ends, steps)],
            properties={
                "begins": SizesAttr(tuple(map(size, begins))),
                "ends": SizesAttr(tuple(map(size, ends))),
                "steps": ints(steps),
            },
        )

    @staticmethod
    def shrunk(
        source: TensorType[Attribute],
        begins: Sequence[Size],
        ends: Sequence[Size],
        steps: Sequence[int],
    ) -> TensorType[Attribute]:
        sizes = sizes_of(source)
        if not len(begins) == len(ends) == len(steps) == len(sizes):
            raise VerifyException(
                f"shrink needs a begin, an end and a step an axis: expected {len(sizes)} of each, "
                f"got {len(begins)}, {len(ends)} and {len(steps)}"
            )
        result: list[Size] = []
        for axis, (n, begin, end, step) in enumerate(zip(sizes, begins, ends, steps, strict=True)):
            if step < 1:
                raise VerifyException(f"shrink: step {step} of axis {axis}: expected at least 1")
            inside = (
                at_least(as_expr(begin), as_expr(0))
                and at_least(as_expr(end), as_expr(begin))
                and at_least(as_expr(n), as_expr(end))
            )
            if not inside:
                raise VerifyException(
                    f"shrink: axis {axis} of size {n} has no elements {begin} to {end}: expected "
                    "0 <= begin <= end <= size"
                )
            result.append(size((as_expr(end) - begin + (step - 1)) // step))
        return tensor_type(source.element_type, tuple(result))

    def infer(self) -> TensorType[Attribute]:
        return self.shrunk(
            tensor_of(self.operand), self.begins.data, self.ends.data, int_values(self.steps)
        )

    def print_options(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_sizes(printer, self.begins.data)
        printer.print_string(" to ")
        print_sizes(printer, self.ends.data)
        if any(s != 1 for s in int_values(self.steps)):
            printer.print_string(" step ")
            print_ints(printer, self.steps)

    @classmethod
    def parse_options(cls, parser: Parser) -> dict[str, Any]:
        begins = SizesAttr(parse_sizes(parser))
        parser.parse_keyword("to")
        ends = SizesAttr(parse_sizes(parser))
        if parser.parse_optional_keyword("step"):
            steps = parse_ints(parser)
        else:
            steps = ints((1,) * len(begins.data))
        return {"begins": begins, "ends": ends, "steps": steps}


@irdl_op_definition
class PadOp(MovementOp):
    """`utensor.pad %x low [1, 0] high [0, 2] value 0.0 : tensor<4x8xf32> -> tensor<5x10xf32>`:
    elements of one value added before and after each axis."""

    name = "utensor.pad"
    low = prop_def(SizesAttr)
    high = prop_def(SizesAttr)
    value = prop_def(FloatAttr | IntegerAttr)

    def __init__(
        self,
        operand: SSAValue | Operation,
        low: Sequence[Size],
        high: Sequence[Size],
        value: float | int | Attribute = 0,
    ):
        source = SSAValue.get(operand)
        tensor = tensor_of(source)
        constant = value if isinstance(value, Attribute) else scalar(value, tensor.element_type)
        super().__init__(
            operands=[source],
            result_types=[self.padded(tensor, low, high)],
            properties={
                "low": SizesAttr(tuple(map(size, low))),
                "high": SizesAttr(tuple(map(size, high))),
                "value": constant,
            },
        )

    @staticmethod
    def padded(
        source: TensorType[Attribute], low: Sequence[Size], high: Sequence[Size]
    ) -> TensorType[Attribute]:
        sizes = sizes_of(source)
        if not len(low) == len(high) == len(sizes):
            raise VerifyException(
                f"pad needs a low and a high an axis: expected {len(sizes)} of each, got "
                f"{len(low)} and {len(high)}"
            )
        for axis, amount in [*enumerate(low), *enumerate(high)]:
            if not at_least(as_expr(amount), as_expr(0)):
                raise VerifyException(
                    f"pad: axis {axis} is padded by {amount}: expected at least 0; shrink removes"
                )
        result = tuple(size(as_expr(n) + a + b) for n, a, b in zip(sizes, low, high, strict=True))
        return tensor_type(source.element_type, result)

    def infer(self) -> TensorType[Attribute]:
        source = tensor_of(self.operand)
        check_same(source.element_type, self.value.type, "the value of utensor.pad")
        return self.padded(source, self.low.data, self.high.data)

    def print_options(self, printer: Printer) -> None:
        printer.print_string(" low ")
        print_sizes(printer, self.low.data)
        printer.print_string(" high ")
        print_sizes(printer, self.high.data)
        printer.print_string(f" value {number_text(cast(Scalar, self.value))}")

    @classmethod
    def parse_options(cls, parser: Parser) -> dict[str, Any]:
        parser.parse_keyword("low")
        low = SizesAttr(parse_sizes(parser))
        parser.parse_keyword("high")
        high = SizesAttr(parse_sizes(parser))
        parser.parse_keyword("value")
        return {"low": low, "high": high, "value": parse_number(parser)}

    @classmethod
    def complete(cls, properties: dict[str, Any], operand: Attribute) -> None:
        if isinstance(operand, TensorType):
            element = cast("TensorType[Attribute]", operand).element_type
            properties["value"] = scalar_of_text(properties["value"], element)


MOVEMENT_OPS: tuple[type[MovementOp], ...] = (
    ReshapeOp, PermuteOp, ExpandOp, FlipOp, ShrinkOp, PadOp,
)  # fmt: skip
