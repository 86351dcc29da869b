"""utensor: shaped values without memory.

A program is a `func.func` on builtin tensors. Element types and sizes: element_types.py, sizes.py.

    op       ::= unary x | binary x, y | where c, x, y       one type; compare ops give i1
               | cast x : T -> U | bitcast x : T -> U
               | reduce KIND x axes [k, …] : T -> U          axes are dropped
               | argreduce (max|min) x axis k : T -> U       i32 or i64 positions
               | reshape x : T -> U | expand x : T -> U | permute x [k, …] : T -> U
               | flip x [k, …] | shrink x [b, …] to [e, …] (step [s, …])?
               | pad x low [a, …] high [b, …] value v
               | gather x, i axis k : T, I -> U              x's rows at positions i, clamped
               | scatter KIND x, i, u axis k : T, I, U       x with u combined at i; others dropped
               | constant v : T | iota axis k : T
               | stage (contiguous|detach) x : T             the identity; a buffer is wanted here
    KIND     ::= add | mul | max | min | and | or | xor      (scatter: also set)
    unary    ::= see UNARY_OPS, binary ::= see BINARY_OPS in tensor_elementwise.py

A matrix product is movement ops, mul and reduce: it has no op of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
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

from uopc.dialects.numbers import (
    Dense,
    Scalar,
    number_text,
    parse_number,
    print_dense,
    scalar,
    scalar_of_text,
)
from uopc.dialects.sizes import Size, SizesAttr, sizes_of, tensor_type
from uopc.dialects.tensor_elementwise import (
    ELEMENTWISE_OPS,
    check_kind,
    check_same,
    check_tensor,
    parse_tensor_type,
    tensor_of,
)
from uopc.dialects.tensor_movement import (
    MOVEMENT_OPS,
    MovementOp,
    check_axes,
    int_values,
    ints,
    parse_ints,
    print_ints,
)

REDUCE_KINDS = ("add", "mul", "max", "min", "and", "or", "xor")
SCATTER_KINDS = ("set", *REDUCE_KINDS)
BIT_KINDS = ("and", "or", "xor")
STAGE_KINDS = ("contiguous", "detach")
NO_RESOURCES = "dense_resource blobs are not supported, write the elements as dense<…>"


def check_combine_kind(kind: str, kinds: Sequence[str], tensor: TensorType[Attribute]) -> None:
    """Verify a reduction's kind against its element type."""
    if kind not in kinds:
        raise VerifyException(f"unknown kind '{kind}': expected one of {', '.join(kinds)}")
    if kind in BIT_KINDS:
        check_kind(tensor, ("signed", "unsigned", "bool"), f"kind {kind}")


@irdl_op_definition
class ReduceOp(MovementOp):
    """`utensor.reduce add %x axes [1] : tensor<4x8xf32> -> tensor<4xf32>`: combine along axes.

    The axes are dropped. Over no elements the result is the kind's identity (for max and min of
    floats the infinities, of integers the limits). Half types accumulate in f32.
    """

    name = "utensor.reduce"
    kind = prop_def(StringAttr)
    axes = prop_def(DenseArrayBase.constr(i64))

    def __init__(self, kind: str, operand: SSAValue | Operation, axes: Sequence[int]):
        value = SSAValue.get(operand)
        super().__init__(
            operands=[value],
            result_types=[self.reduced(tensor_of(value), axes)],
            properties={"kind": StringAttr(kind), "axes": ints(sorted(axes))},
        )

    @staticmethod
    def reduced(source: TensorType[Attribute], axes: Sequence[int]) -> TensorType[Attribute]:
        sizes = sizes_of(source)
        check_axes(axes, len(sizes), "reduce")
        kept = tuple(n for k, n in enumerate(sizes) if k not in axes)
        return tensor_type(source.element_type, kept)

    def infer(self) -> TensorType[Attribute]:
        source = tensor_of(self.operand)
        check_combine_kind(self.kind.data, REDUCE_KINDS, source)
        return self.reduced(source, int_values(self.axes))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data}")
        super().print(printer)

    def print_options(self, printer: Printer) -> None:
        printer.print_string(" axes ")
        print_ints(printer, self.axes)

    @classmethod
    def parse(cls, parser: Parser) -> MovementOp:
        kind = parser.parse_identifier()
        return cls.parse_with(parser, {"kind": StringAttr(kind)})

    @classmethod
    def parse_options(cls, parser: Parser) -> dict[str, Any]:
        parser.parse_keyword("axes")
        return {"axes": parse_ints(parser)}


@irdl_op_definition
class ArgreduceOp(MovementOp):
    """`utensor.argreduce max %x axis 1 : tensor<4x8xf32> -> tensor<4xi32>`: the position of the
    first largest (smallest) element along an axis; of the first NaN if there is one."""

    name = "utensor.argreduce"
    kind = prop_def(StringAttr)
    axis = prop_def(IntegerAttr)

    def __init__(self, kind: str, operand: SSAValue | Operation, axis: int, index: Attribute = i32):
        value = SSAValue.get(operand)
        reduced = ReduceOp.reduced(tensor_of(value), (axis,))
        super().__init__(
            operands=[value],
            result_types=[tensor_type(index, sizes_of(reduced))],
            properties={"kind": StringAttr(kind), "axis": IntegerAttr(axis, i64)},
        )

    def infer(self) -> TensorType[Attribute]:
        source, result = tensor_of(self.operand), tensor_of(self.result)
        if self.kind.data not in ("max", "min"):
            raise VerifyException(f"unknown kind '{self.kind.data}': expected max or min")
        axis = self.axis.value.data
        reduced = ReduceOp.reduced(source, (axis,))
        length = sizes_of(source)[axis]
        if (length if isinstance(length, int) else length.bounds[0]) < 1:
            raise VerifyException(
                f"argreduce needs at least one element along axis {axis}, got size {length}"
            )
        if result is source:  # parsed without a result type
            return tensor_type(i32, sizes_of(reduced))
        if result.element_type not in (i32, i64):
            raise VerifyException(f"positions are i32 or i64, got {result.element_type}")
        return tensor_type(result.element_type, sizes_of(reduced))

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data}")
        super().print(printer)

    def print_options(self, printer: Printer) -> None:
        printer.print_string(f" axis {self.axis.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> MovementOp:
        kind = parser.parse_identifier()
        return cls.parse_with(parser, {"kind": StringAttr(kind)})

    @classmethod
    def parse_options(cls, parser: Parser) -> dict[str, Any]:
        parser.parse_keyword("axis")
        return {"axis": IntegerAttr(parser.parse_integer(allow_boolean=False), i64)}


@irdl_op_definition
class StageOp(MovementOp):
    """`utensor.stage contiguous %x : tensor<4xf32>`: the identity. `contiguous` asks for a buffer
    that consumers read; `detach` stops gradients and asks for nothing."""

    name = "utensor.stage"
    kind = prop_def(StringAttr)

    def __init__(self, operand: SSAValue | Operation, kind: str = "contiguous"):
        value = SSAValue.get(operand)
        super().__init__(
            operands=[value], result_types=[value.type], properties={"kind": StringAttr(kind)}
        )

    def infer(self) -> TensorType[Attribute]:
        if self.kind.data not in STAGE_KINDS:
            raise VerifyException(
                f"unknown kind '{self.kind.data}': expected {' or '.join(STAGE_KINDS)}"
            )
        return tensor_of(self.operand)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data} ")
        printer.print_ssa_value(self.operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)

    @classmethod
    def parse(cls, parser: Parser) -> MovementOp:
        kind = parser.parse_optional_identifier() or "contiguous"
        return cls.parse_with(parser, {"kind": StringAttr(kind)})


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """`utensor.constant 1.0 : tensor<4xf32>` (all elements) or
    `utensor.constant dense<[1, 2]> : tensor<2xi32>`."""

    name = "utensor.constant"
    value = prop_def(AnyAttr())
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self,
        value: float | int | DenseIntOrFPElementsAttr,
        tensor: TensorType[Attribute],
    ):
        attribute: Attribute = (
            value if isinstance(value, Attribute) else scalar(value, tensor.element_type)
        )
        super().__init__(result_types=[tensor], properties={"value": attribute})

    @property
    def splat(self) -> Scalar | None:
        """The value that all elements have, if the constant is written so."""
        value = self.value
        return cast(Scalar, value) if isinstance(value, FloatAttr | IntegerAttr) else None

    @property
    def dense(self) -> Dense | None:
        """The values of the elements, if the constant is not written as a splat."""
        value = self.value
        return cast(Dense, value) if isinstance(value, DenseIntOrFPElementsAttr) else None

    def verify_(self) -> None:
        tensor = check_tensor(self.result)
        if (splat := self.splat) is not None:
            check_same(tensor.element_type, splat.type, "the value of utensor.constant")
        elif (value := self.dense) is not None:
            check_same(tensor, value.type, "the value of utensor.constant")
            count = 1
            for n in tensor.get_shape():
                count *= n
            if len(value) not in (count, 1):
                raise VerifyException(
                    f"the value of utensor.constant: expected {count} elements, got {len(value)}"
                )
        else:
            raise VerifyException(
                f"expected a number or a dense attribute, got {self.value}; {NO_RESOURCES}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        if (splat := self.splat) is not None:
            printer.print_string(number_text(splat))
        elif (dense := self.dense) is not None:
            print_dense(printer, dense)
        else:
            printer.print_attribute(self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        if parser.parse_optional_keyword("dense"):
            value: Attribute = parser.parse_dense_int_or_fp_elements_attr(None)
            tensor: Attribute = value.type
        elif parser.parse_optional_keyword("dense_resource"):
            parser.raise_error(NO_RESOURCES, position, parser.pos)
        else:
            number = parse_number(parser)
            end = parser.pos
            parser.parse_punctuation(":")
            typed = tensor = parse_tensor_type(parser)
            try:
                value = scalar_of_text(number, typed.element_type)
            except VerifyException as error:
                parser.raise_error(str(error), position, end)
        return cls.create(result_types=[tensor], properties={"value": value}, attributes=attributes)


@irdl_op_definition
class IotaOp(IRDLOperation):
    """`utensor.iota axis 1 : tensor<4x8xi32>`: each element is its own position along an axis."""

    name = "utensor.iota"
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, axis: int, tensor: TensorType[Attribute]):
        super().__init__(result_types=[tensor], properties={"axis": IntegerAttr(axis, i64)})

    def verify_(self) -> None:
        tensor = check_tensor(self.result)
        check_axes((self.axis.value.data,), len(sizes_of(tensor)), "iota")
        check_kind(tensor, ("float", "signed", "unsigned"), "iota")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" axis {self.axis.value.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IotaOp:
        parser.parse_keyword("axis")
        axis = IntegerAttr(parser.parse_integer(allow_boolean=False), i64)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(
            result_types=[parser.parse_type()], properties={"axis": axis}, attributes=attributes
        )


def _check_indices(indices: SSAValue) -> tuple[Size, ...]:
    tensor = check_tensor(indices)
    check_kind(tensor, ("signed", "unsigned"), "the indices")
    return sizes_of(tensor)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """`utensor.gather %x, %i axis 0 : tensor<10x4xf32>, tensor<3xi32> -> tensor<3x4xf32>`.

    The axis is replaced by the shape of the indices, as numpy.take does. An index below 0 reads
    position 0, one beyond the end the last position.
    """

    name = "utensor.gather"
    operand = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue | Operation, indices: SSAValue | Operation, axis: int):
        value, positions = SSAValue.get(operand), SSAValue.get(indices)
        super().__init__(
            operands=[value, positions],
            result_types=[self.gathered(value, positions, axis)],
            properties={"axis": IntegerAttr(axis, i64)},
        )

    @staticmethod
    def gathered(operand: SSAValue, indices: SSAValue, axis: int) -> TensorType[Attribute]:
        source = tensor_of(operand)
        sizes = sizes_of(source)
        check_axes((axis,), len(sizes), "gather")
        length = sizes[axis]
        if (length if isinstance(length, int) else length.bounds[0]) < 1:
            raise VerifyException(f"gather needs elements along axis {axis}, got size {length}")
        result = (*sizes[:axis], *sizes_of(tensor_of(indices)), *sizes[axis + 1 :])
        return tensor_type(source.element_type, result)

    def verify_(self) -> None:
        check_tensor(self.operand)
        _check_indices(self.indices)
        expected = self.gathered(self.operand, self.indices, self.axis.value.data)
        check_same(expected, self.result.type, "result of utensor.gather")

    def print(self, printer: Printer) -> None:
        _print_indexed(printer, self, self.axis.value.data)

    @classmethod
    def parse(cls, parser: Parser) -> GatherOp:
        operands, properties, attributes, result = _parse_indexed(parser, 2)
        axis = int(properties["axis"].value.data)
        if result is None:
            try:
                result = cls.gathered(operands[0], operands[1], axis)
            except VerifyException as error:
                parser.raise_error(str(error))
        return cls.create(
            operands=operands, result_types=[result], properties=properties, attributes=attributes
        )


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """`utensor.scatter add %x, %i, %u axis 0 : tensor<10x4xf32>, tensor<3xi32>, tensor<3x4xf32>`.

    x with the updates combined at the positions i of an axis, in row-major order of the updates;
    a position outside the axis is dropped. The updates' shape is that of gather's result.
    """

    name = "utensor.scatter"
    operand = operand_def(TensorType)
    indices = operand_def(TensorType)
    updates = operand_def(TensorType)
    kind = prop_def(StringAttr)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(
        self,
        kind: str,
        operand: SSAValue | Operation,
        indices: SSAValue | Operation,
        updates: SSAValue | Operation,
        axis: int,
    ):
        value = SSAValue.get(operand)
        super().__init__(
            operands=[value, indices, updates],
            result_types=[value.type],
            properties={"kind": StringAttr(kind), "axis": IntegerAttr(axis, i64)},
        )

    def verify_(self) -> None:
        tensor = check_tensor(self.operand)
        check_combine_kind(self.kind.data, SCATTER_KINDS, tensor)
        sizes, axis = sizes_of(tensor), self.axis.value.data
        check_axes((axis,), len(sizes), "scatter")
        expected = (*sizes[:axis], *_check_indices(self.indices), *sizes[axis + 1 :])
        updates = tensor_type(tensor.element_type, expected)
        check_same(updates, self.updates.type, "the updates of utensor.scatter")
        check_same(tensor, self.result.type, "result of utensor.scatter")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data}")
        _print_indexed(printer, self, self.axis.value.data)

    @classmethod
    def parse(cls, parser: Parser) -> ScatterOp:
        kind = StringAttr(parser.parse_identifier())
        operands, properties, attributes, result = _parse_indexed(parser, 3)
        return cls.create(
            operands=operands,
            result_types=[result or operands[0].type],
            properties=properties | {"kind": kind},
            attributes=attributes,
        )


def _print_indexed(printer: Printer, op: GatherOp | ScatterOp, axis: int) -> None:
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    printer.print_string(f" axis {axis}")
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_list([o.type for o in op.operands], printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(op.results[0].type)


def _parse_indexed(
    parser: Parser, count: int
) -> tuple[list[SSAValue], dict[str, Any], dict[str, Attribute], Attribute | None]:
    unresolved = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_keyword("axis")
    axis = IntegerAttr(parser.parse_integer(allow_boolean=False), i64)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    if not len(unresolved) == len(types) == count:
        parser.raise_error(
            f"expected {count} operands and as many types, got {len(unresolved)} and {len(types)}"
        )
    operands: list[SSAValue] = [
        parser.resolve_operand(u, t) for u, t in zip(unresolved, types, strict=True)
    ]
    result = parser.parse_type() if parser.parse_optional_punctuation("->") else None
    return operands, {"axis": axis}, attributes, result


UTensor = Dialect(
    "utensor",
    [
        *ELEMENTWISE_OPS, *MOVEMENT_OPS, ReduceOp, ArgreduceOp, StageOp, ConstantOp, IotaOp,
        GatherOp, ScatterOp,
    ],
    [SizesAttr],
)  # fmt: skip
