"""Repairs of xDSL 0.75's arith dialect, so that vectors can be compared, selected and cast.

MLIR defines these ops on vectors; xDSL 0.75 states their types for scalars only:

    %m = arith.cmpf olt, %a, %b : vector<8xf32>            result was i1, is vector<8xi1>
    %v = arith.select %m, %a, %b : vector<8xi1>, vector<8xf32>     a mask of lanes was refused
    %f = arith.sitofp %i : vector<8xi32> to vector<8xf32>          so were casts of vectors
    %c = arith.constant dense<0xFF800000> : vector<4xf32>          read as 4286578688, not -inf

`install()` corrects the definitions in place, once, for the whole process: ops cannot be
subclassed and keep their names. What was accepted before still is. Each repair is a candidate for
sending upstream, and is to be dropped when the pinned version has it.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    AnyFloatConstr,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    VectorType,
    container_of,
    i1,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import AttrConstraint, RangeOf, base
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self, have_compatible_shape

_MASKS = container_of(i1)
_INTEGERS = container_of(base(IntegerType))
_INTEGERS_AND_INDEX = container_of(base(IntegerType) | base(IndexType))
_FLOATS = container_of(AnyFloatConstr)


@functools.cache
def install() -> None:
    """Make the repairs. A second call does nothing."""
    for comparison in (arith.CmpiOp, arith.CmpfOp):
        _allow(comparison, "results", "result", _MASKS)
        _shape_result(comparison)
    _allow(arith.SelectOp, "operands", "cond", _MASKS)
    _set(arith.SelectOp, "parse", classmethod(_parse_select))
    _set(arith.SelectOp, "print", _print_select)
    for cast, source, target in _CASTS:
        _allow(cast, "operands", "input", source)
        _allow(cast, "results", "result", target)
        _set(cast, "verify_", _verify_cast)
    _read_hexadecimal_floats()


_CASTS: tuple[tuple[type[Any], AttrConstraint, AttrConstraint], ...] = (
    (arith.SIToFPOp, _INTEGERS, _FLOATS),
    (arith.UIToFPOp, _INTEGERS, _FLOATS),
    (arith.FPToSIOp, _FLOATS, _INTEGERS),
    (arith.FPToUIOp, _FLOATS, _INTEGERS),
    (arith.ExtSIOp, _INTEGERS, _INTEGERS),
    (arith.ExtUIOp, _INTEGERS, _INTEGERS),
    (arith.TruncIOp, _INTEGERS, _INTEGERS),
    (arith.IndexCastOp, _INTEGERS_AND_INDEX, _INTEGERS_AND_INDEX),
)


def _set(cls: Any, name: str, value: Any) -> None:
    setattr(cls, name, value)


def _allow(cls: type[Any], kind: str, name: str, constraint: AttrConstraint) -> None:
    """Widen what one operand or result of an op may be."""
    for field, definition in getattr(cls.get_irdl_definition(), kind):
        if field == name:
            definition.constr = RangeOf(constraint).of_length(definition.constr.length)


def mask_type(operand: Attribute) -> Attribute:
    """The type of a comparison of such operands: i1, or a vector of as many."""
    if isinstance(operand, VectorType):
        return VectorType(i1, operand.shape, operand.scalable_dims)
    return i1


def _shape_result(cls: Any) -> None:
    """Give comparisons built in Python, and so those parsed, a result of their operands' shape."""
    initialize = cls.__init__

    @functools.wraps(initialize)
    def shaped(self: Any, *arguments: Any, **options: Any) -> None:
        initialize(self, *arguments, **options)
        wanted = mask_type(self.operands[0].type)
        if self.results[0].type != wanted:
            Rewriter.replace_value_with_new_type(self.results[0], wanted)

    cls.__init__ = shaped
    _set(cls, "verify_", _verify_comparison)


def _verify_comparison(self: Any) -> None:
    left: Attribute = self.lhs.type
    right: Attribute = self.rhs.type
    result: Attribute = self.results[0].type
    if left != right:
        raise VerifyException(f"operands have types {left} and {right}; they must be the same")
    if result not in (i1, mask_type(left)):
        raise VerifyException(f"result has type {result}, expected {mask_type(left)}")


def _verify_cast(self: Any) -> None:
    source: Any = self.input.type
    target: Any = self.result.type
    if not have_compatible_shape(source, target):
        raise VerifyException(f"{source} and {target} have different shapes")
    a: Any = get_element_type_or_self(source)
    b: Any = get_element_type_or_self(target)
    if isinstance(self, arith.IndexCastOp):
        if isinstance(a, IndexType) == isinstance(b, IndexType):
            raise VerifyException(f"casts {a} to {b}; exactly one of them must be index")
    elif isinstance(self, arith.ExtSIOp | arith.ExtUIOp | arith.TruncIOp):
        narrower = isinstance(self, arith.TruncIOp)
        if not (b.bitwidth < a.bitwidth if narrower else b.bitwidth > a.bitwidth):
            word = "smaller" if narrower else "larger"
            raise VerifyException(f"Destination bit-width must be {word} than the input bit-width")


def _parse_select(cls: type[arith.SelectOp], parser: Parser) -> arith.SelectOp:
    names = [parser.parse_unresolved_operand()]
    for _ in range(2):
        parser.parse_punctuation(",")
        names.append(parser.parse_unresolved_operand())
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    condition: Attribute = i1
    value = parser.parse_type()
    if parser.parse_optional_punctuation(","):
        condition, value = value, parser.parse_type()
    operands: list[SSAValue] = [
        parser.resolve_operand(name, t)
        for name, t in zip(names, (condition, value, value), strict=True)
    ]
    op = cls(*operands)
    op.attributes.update(attributes)
    return op


def _print_select(self: arith.SelectOp, printer: Printer) -> None:
    printer.print_string(" ")
    printer.print_list(self.operands, printer.print_operand)
    printer.print_op_attributes(self.attributes)
    printer.print_string(" : ")
    if self.cond.type != i1:
        printer.print_attribute(self.cond.type)
        printer.print_string(", ")
    printer.print_attribute(self.result.type)


_FORMATS: dict[type[Attribute], tuple[str, str]] = {
    Float64Type: ("<Q", "<d"),
    Float32Type: ("<I", "<f"),
    Float16Type: ("<H", "<e"),
}


def _read_hexadecimal_floats() -> None:
    """In a dense constant of floats, a hexadecimal integer stands for a float's bits."""
    element: Any = AttrParser._TensorLiteralElement  # pyright: ignore[reportPrivateUsage] -- the only place where the digits are still known
    to_type = element.to_type

    def read(self: Any, parser: AttrParser, type: Any) -> Any:
        if isinstance(type, AnyFloat) and self.span.text[:2] in ("0x", "0X"):
            return float_of_bits(int(self.value), type)
        return to_type(self, parser, type)

    element.to_type = read


def float_of_bits(bits: int, type: Any) -> float:
    """The float whose bits in `type` are given. Raises VerifyException for too many bits."""
    if bits >> type.bitwidth:
        raise VerifyException(f"0x{bits:X} has more bits than {type}")
    if type.__class__ in _FORMATS:
        integer, form = _FORMATS[type.__class__]
        return struct.unpack(form, struct.pack(integer, bits))[0]
    if type.name == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    raise VerifyException(f"bits of {type} cannot be given in hexadecimal")
