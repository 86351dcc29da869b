"""The elementwise ops of utensor: one row an op, with the element types it takes.

Operands have equal shapes; nothing broadcasts or promotes by itself (reshape, expand and cast do
that in the open). docs/numerics.md says what each computes at the edges.
"""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, TypeVar, cast

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from uopc.dialects.element_types import ElementType, element_type
from uopc.dialects.sizes import sizes_of, tensor_type

FLOAT = ("float",)
INTEGER = ("signed", "unsigned")
NUMBER = ("float", "signed", "unsigned")
BITS = ("signed", "unsigned", "bool")
ANY = ("float", "signed", "unsigned", "bool")

_T = TypeVar("_T", bound="ElementwiseOp")

_KIND_WORDS = {"float": "float", "signed": "signed", "unsigned": "unsigned", "bool": "i1"}


def tensor_of(value: SSAValue) -> TensorType[Attribute]:
    """The tensor type of a value. Raises VerifyException for any other type."""
    if not isinstance(value.type, TensorType):
        raise VerifyException(f"expected a ranked tensor, got {value.type}")
    return cast("TensorType[Attribute]", value.type)


def element_of(tensor: TensorType[Attribute]) -> ElementType:
    """The element type's row. Raises VerifyException for a type that uopc does not have."""
    row = element_type(tensor.element_type)
    if row is None:
        raise VerifyException(
            f"element type {tensor.element_type} of {tensor} is not supported: expected f64, "
            "f32, f16, bf16, i1, i8, i16, i32, i64, ui8, ui16, ui32 or ui64"
        )
    return row


def check_tensor(value: SSAValue) -> TensorType[Attribute]:
    """Verify a value's tensor type: known element type, bounded sizes, not too large."""
    tensor = tensor_of(value)
    element_of(tensor)
    sizes_of(tensor)
    return tensor


def check_kind(tensor: TensorType[Attribute], kinds: tuple[str, ...], what: str) -> None:
    """Verify that the element type is of one of `kinds`."""
    if element_of(tensor).kind not in kinds:
        words = [_KIND_WORDS[k] for k in kinds]
        expected = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
        raise VerifyException(f"{what}: expected {expected} elements, got {tensor}")


def check_same(expected: Attribute, got: Attribute, what: str) -> None:
    """Verify that two types are equal."""
    if expected != got:
        raise VerifyException(f"{what}: expected {expected}, got {got}")


def parse_tensor_type(parser: Parser) -> TensorType[Attribute]:
    """Parse a tensor type that uopc takes: sizes bounded, elements known."""
    position = parser.pos
    tensor = parser.parse_type()
    if not isinstance(tensor, TensorType):
        parser.raise_error(f"expected a tensor type, got {tensor}", position, parser.pos)
    typed = cast("TensorType[Attribute]", tensor)
    try:
        element_of(typed)
        sizes_of(typed)
    except VerifyException as error:
        parser.raise_error(str(error), position, parser.pos)
    return typed


class ElementwiseOp(IRDLOperation, ABC):
    """An op that computes each element of its result from the same element of its operands.

    Printed as `%r = utensor.add %a, %b : tensor<4xf32>`; the type is that of the operands.
    """

    KINDS: ClassVar[tuple[str, ...]] = ANY
    """Kinds of element types that the operands may have."""

    traits = traits_def(Pure())

    @classmethod
    def infer(cls, operand: TensorType[Attribute]) -> TensorType[Attribute]:
        """The result's type for operands of this type."""
        return operand

    def verify_(self) -> None:
        first = check_tensor(self.operands[0])
        check_kind(first, self.KINDS, self.name)
        for position, operand in enumerate(self.operands[1:], 1):
            check_same(first, operand.type, f"operand {position} of {self.name}")
        check_same(self.infer(first), self.results[0].type, f"result of {self.name}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> ElementwiseOp:
        unresolved = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand_type = parse_tensor_type(parser)
        operands = [parser.resolve_operand(u, operand_type) for u in unresolved]
        arity = len(cls.get_irdl_definition().operands)
        if len(operands) != arity:
            parser.raise_error(f"{cls.name} expects {arity} operands, got {len(operands)}")
        return cls.create(
            operands=operands, result_types=[cls.infer(operand_type)], attributes=attributes
        )


class UnaryOp(ElementwiseOp, ABC):
    """An elementwise op of one operand."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, operand: SSAValue | Operation):
        value = SSAValue.get(operand)
        super().__init__(operands=[value], result_types=[self.infer(tensor_of(value))])


class BinaryOp(ElementwiseOp, ABC):
    """An elementwise op of two operands of one type."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        left = SSAValue.get(lhs)
        super().__init__(operands=[left, rhs], result_types=[self.infer(tensor_of(left))])


class CompareOp(BinaryOp, ABC):
    """A comparison: i1 elements. NaN compares unequal to everything and in no order."""

    @classmethod
    def infer(cls, operand: TensorType[Attribute]) -> TensorType[Attribute]:
        return tensor_type(i1, sizes_of(operand))


def _unary(name: str, kinds: tuple[str, ...], doc: str) -> type[UnaryOp]:
    return _define(UnaryOp, name, kinds, doc)


def _binary(name: str, kinds: tuple[str, ...], doc: str) -> type[BinaryOp]:
    return _define(BinaryOp, name, kinds, doc)


def _compare(name: str, doc: str) -> type[CompareOp]:
    return _define(CompareOp, name, ANY, doc)


def _define(base: type[_T], name: str, kinds: tuple[str, ...], doc: str) -> type[_T]:
    members = {
        "__doc__": doc,
        "__module__": __name__,
        "__annotations__": {"KINDS": ClassVar[tuple[str, ...]]},
        "name": f"utensor.{name}",
        "KINDS": kinds,
    }
    class_name = "".join(part.capitalize() for part in name.split("_")) + "Op"
    return irdl_op_definition(cast("type[_T]", type(class_name, (base,), members)))


# Arithmetic. Integers wrap around.
AddOp = _binary("add", ANY, "a + b; on i1 it is exclusive or.")
SubOp = _binary("sub", NUMBER, "a - b.")
MulOp = _binary("mul", ANY, "a * b; on i1 it is and.")
DivOp = _binary("div", FLOAT, "a / b, rounded once.")
FloordivOp = _binary("floordiv", NUMBER, "floor(a / b), as Python's //.")
TruncdivOp = _binary("truncdiv", INTEGER, "a / b rounded toward zero, as C's /.")
ModOp = _binary("mod", NUMBER, "a - floor(a / b) * b, as Python's %: the divisor's sign.")
RemOp = _binary("rem", NUMBER, "The remainder of truncating division, as C's %: a's sign.")
PowOp = _binary("pow", NUMBER, "a to the power b; integer powers wrap, negative ones truncate.")
Atan2Op = _binary("atan2", FLOAT, "The angle of the point (b, a).")
MaxOp = _binary("max", ANY, "The larger; a NaN wins, and 0 beats -0.")
MinOp = _binary("min", ANY, "The smaller; a NaN wins, and -0 beats 0.")

# Bits.
AndOp = _binary("and", BITS, "Bitwise and.")
OrOp = _binary("or", BITS, "Bitwise or.")
XorOp = _binary("xor", BITS, "Bitwise exclusive or.")
ShlOp = _binary("shl", INTEGER, "a shifted left by b read as unsigned; 0 from the width on.")
ShrOp = _binary("shr", INTEGER, "a shifted right, filled with its sign if it has one.")
NotOp = _unary("not", BITS, "Bitwise complement; on i1 the negation.")
PopcountOp = _unary("popcount", INTEGER, "The number of bits that are one.")
ClzOp = _unary("clz", INTEGER, "The number of leading zero bits.")

# Comparisons.
CmpltOp = _compare("cmplt", "a < b.")
CmpleOp = _compare("cmple", "a <= b.")
CmpeqOp = _compare("cmpeq", "a == b.")
CmpneOp = _compare("cmpne", "a != b.")

# Sign and rounding.
NegOp = _unary("neg", NUMBER, "-a.")
AbsOp = _unary("abs", NUMBER, "The magnitude; the smallest integer wraps to itself.")
SignOp = _unary("sign", NUMBER, "-1, 0 or 1; floats keep NaN and the sign of zero.")
FloorOp = _unary("floor", FLOAT, "Rounded down.")
CeilOp = _unary("ceil", FLOAT, "Rounded up.")
TruncOp = _unary("trunc", FLOAT, "Rounded toward zero.")
RoundOp = _unary("round", FLOAT, "Rounded to nearest, ties to even.")

# Roots, exponentials, logarithms.
SqrtOp = _unary("sqrt", FLOAT, "Square root, rounded once.")
RsqrtOp = _unary("rsqrt", FLOAT, "1 / sqrt(a).")
RecipOp = _unary("recip", FLOAT, "1 / a, rounded once.")
CbrtOp = _unary("cbrt", FLOAT, "Cube root.")
ExpOp = _unary("exp", FLOAT, "e to the power a.")
Exp2Op = _unary("exp2", FLOAT, "2 to the power a.")
Expm1Op = _unary("expm1", FLOAT, "e to the power a, less 1.")
LogOp = _unary("log", FLOAT, "Natural logarithm.")
Log2Op = _unary("log2", FLOAT, "Logarithm to base 2.")
Log10Op = _unary("log10", FLOAT, "Logarithm to base 10.")
Log1pOp = _unary("log1p", FLOAT, "Natural logarithm of 1 + a.")

# Trigonometric and related.
SinOp = _unary("sin", FLOAT, "Sine of a in radians.")
CosOp = _unary("cos", FLOAT, "Cosine.")
TanOp = _unary("tan", FLOAT, "Tangent.")
AsinOp = _unary("asin", FLOAT, "Inverse sine.")
AcosOp = _unary("acos", FLOAT, "Inverse cosine.")
AtanOp = _unary("atan", FLOAT, "Inverse tangent.")
SinhOp = _unary("sinh", FLOAT, "Hyperbolic sine.")
CoshOp = _unary("cosh", FLOAT, "Hyperbolic cosine.")
TanhOp = _unary("tanh", FLOAT, "Hyperbolic tangent.")
AsinhOp = _unary("asinh", FLOAT, "Inverse hyperbolic sine.")
AcoshOp = _unary("acosh", FLOAT, "Inverse hyperbolic cosine.")
AtanhOp = _unary("atanh", FLOAT, "Inverse hyperbolic tangent.")
ErfOp = _unary("erf", FLOAT, "The error function.")

UNARY_OPS: tuple[type[UnaryOp], ...] = (
    NotOp, PopcountOp, ClzOp, NegOp, AbsOp, SignOp, FloorOp, CeilOp, TruncOp, RoundOp, SqrtOp,
    RsqrtOp, RecipOp, CbrtOp, ExpOp, Exp2Op, Expm1Op, LogOp, Log2Op, Log10Op, Log1pOp, SinOp,
    CosOp, TanOp, AsinOp, AcosOp, AtanOp, SinhOp, CoshOp, TanhOp, AsinhOp, AcoshOp, AtanhOp,
    ErfOp,
)  # fmt: skip
COMPARE_OPS: tuple[type[CompareOp], ...] = (CmpltOp, CmpleOp, CmpeqOp, CmpneOp)
BINARY_OPS: tuple[type[BinaryOp], ...] = (
    AddOp, SubOp, MulOp, DivOp, FloordivOp, TruncdivOp, ModOp, RemOp, PowOp, Atan2Op, MaxOp,
    MinOp, AndOp, OrOp, XorOp, ShlOp, ShrOp, *COMPARE_OPS,
)  # fmt: skip


@irdl_op_definition
class WhereOp(ElementwiseOp):
    """`utensor.where %c, %a, %b : tensor<4xf32>`: a where c is true, else b."""

    name = "utensor.where"
    condition = operand_def(TensorType)
    on_true = operand_def(TensorType)
    on_false = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        condition: SSAValue | Operation,
        on_true: SSAValue | Operation,
        on_false: SSAValue | Operation,
    ):
        value = SSAValue.get(on_true)
        super().__init__(operands=[condition, value, on_false], result_types=[value.type])

    def verify_(self) -> None:
        tensor = check_tensor(self.on_true)
        check_same(tensor, self.on_false.type, "operand 2 of utensor.where")
        check_same(tensor_type(i1, sizes_of(tensor)), self.condition.type, "the condition")
        check_same(tensor, self.result.type, "result of utensor.where")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.on_true.type)

    @classmethod
    def parse(cls, parser: Parser) -> WhereOp:
        unresolved = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        if len(unresolved) != 3:
            parser.raise_error(f"utensor.where expects 3 operands, got {len(unresolved)}")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        tensor = parse_tensor_type(parser)
        mask = tensor_type(i1, sizes_of(tensor))
        operands = [
            parser.resolve_operand(u, t)
            for u, t in zip(unresolved, (mask, tensor, tensor), strict=True)
        ]
        return cls.create(operands=operands, result_types=[tensor], attributes=attributes)


class ConvertOp(IRDLOperation, ABC):
    """An elementwise op whose result has another element type: `%r = utensor.cast %x : t -> u`."""

    operand = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue | Operation, element: Attribute):
        value = SSAValue.get(operand)
        result = tensor_type(element, sizes_of(tensor_of(value)))
        super().__init__(operands=[value], result_types=[result])

    def verify_(self) -> None:
        source, result = check_tensor(self.operand), check_tensor(self.result)
        expected = tensor_type(result.element_type, sizes_of(source))
        check_same(expected, result, f"result of {self.name}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> ConvertOp:
        unresolved = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(unresolved, parser.parse_type())
        parser.parse_punctuation("->")
        return cls.create(
            operands=[operand], result_types=[parser.parse_type()], attributes=attributes
        )


@irdl_op_definition
class CastOp(ConvertOp):
    """The same number in another type: floats round to nearest even, integers wrap, floats go to
    integers truncated and saturated (NaN to 0), anything but zero is true."""

    name = "utensor.cast"


@irdl_op_definition
class BitcastOp(ConvertOp):
    """The same bits in another type of the same width."""

    name = "utensor.bitcast"

    def verify_(self) -> None:
        super().verify_()
        source, result = element_of(tensor_of(self.operand)), element_of(tensor_of(self.result))
        if source.bits != result.bits:
            raise VerifyException(
                f"bitcast keeps the width: expected {source.bits} bits, got {result.name}"
            )


ELEMENTWISE_OPS: tuple[type[IRDLOperation], ...] = (
    *UNARY_OPS, *BINARY_OPS, WhereOp, CastOp, BitcastOp,
)  # fmt: skip
