"""Values with operators, so that an expansion reads like its formula and works on vectors too.

`Float`, `Int` and `Bool` wrap an SSA value; `+`, `*`, `<`, `>>` and the like make the arith op
before the operation being expanded. A plain number on either side becomes a constant. Every
value of one expansion has the shape of the operation it stands for: a scalar or one vector type.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsolatedFromAbove

Number: TypeAlias = "Float | float"
Whole: TypeAlias = "Int | int"
Scalar: TypeAlias = "FloatAttr[AnyFloat] | IntegerAttr[IntegerType]"

_NO_FASTMATH = arith.FastMathFlagsAttr("none")
_NO_OVERFLOW_FLAGS = arith.IntegerOverflowAttr("none")
_FLOAT_PREDICATES = {
    name: IntegerAttr(number, i64)
    for name, number in {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "une": 13}.items()
}
_INT_PREDICATES = {
    name: IntegerAttr(number, i64)
    for name, number in {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5}.items()
}


@dataclass(frozen=True)
class Format:
    """An IEEE binary format that expansions compute in."""

    name: str
    """Its row in coefficients.py."""
    bits: int
    precision: int
    """Significant bits, the hidden one included."""
    float_type: Float32Type | Float64Type
    int_type: IntegerType
    packing: str

    @property
    def fraction(self) -> int:
        """Stored significant bits: where the exponent field begins."""
        return self.precision - 1

    @property
    def bias(self) -> int:
        """Added to an exponent in its field; also the largest exponent of a number."""
        return (1 << (self.bits - self.precision - 1)) - 1

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def rounder(self) -> float:
        """1.5 * 2^fraction: the sum with a small number rounds that to a whole one.

        The whole one then stands in the low bits of the sum.
        """
        return 1.5 * 2.0**self.fraction

    def round(self, value: float) -> float:
        """`value` to the nearest number of this format."""
        return struct.unpack(self.packing, struct.pack(self.packing, value))[0]

    def bits_of(self, value: float) -> int:
        """The encoding of `value`, as an unsigned integer."""
        return int.from_bytes(struct.pack(self.packing, value), "little")


F32 = Format("f32", 32, 24, f32, i32, "<f")
F64 = Format("f64", 64, 53, f64, i64, "<d")


def format_of(value_type: Attribute) -> Format | None:
    """The format of a float type, or of the lanes of a vector type."""
    shape = vector_type(value_type)
    scalar = value_type if shape is None else shape.element_type
    return next((f for f in (F32, F64) if f.float_type == scalar), None)


def constant_number(value: SSAValue) -> float | int | None:
    """The number that a constant is, in all lanes; None for any other value."""
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    attribute = value.owner.value
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        if not attribute.is_splat():
            return None
        return cast("float | int", attribute.get_values()[0])
    return cast("IntegerAttr | FloatAttr", attribute).value.data


@dataclass
class ConstantPool:
    """Constants at the start of a function's entry block, each made once."""

    known: dict[tuple[Block, Attribute], dict[int, SSAValue]] = field(default_factory=dict)
    last: dict[Block, Operation] = field(default_factory=dict)

    def of_type(self, block: Block, value_type: Attribute) -> dict[int, SSAValue]:
        """The constants of one type in one block, by their encoding or number."""
        return self.known.setdefault((block, value_type), {})

    def insert(self, block: Block, value_type: Attribute, scalar: Scalar) -> SSAValue:
        """Makes a constant of `value_type` with `scalar` in each place, after those before it."""
        value: Attribute = scalar
        shape = vector_type(value_type)
        if shape is not None:
            # An integer type comes here too: the overloads of from_list cannot say either.
            floats = cast(VectorType[AnyFloat], shape)
            value = DenseIntOrFPElementsAttr.from_list(floats, [scalar.value.data])
        op = arith.ConstantOp.create(result_types=[value_type], properties={"value": value})
        last = self.last.get(block)
        if last is not None:
            block.insert_op_after(op, last)
        elif block.first_op is not None:
            block.insert_op_before(op, block.first_op)
        self.last[block] = op
        return op.results[0]


def vector_type(candidate: Attribute) -> VectorType[Attribute] | None:
    """`candidate` where it is a vector type."""
    return cast(VectorType[Attribute], candidate) if isinstance(candidate, VectorType) else None


def entry_block(op: Operation) -> Block:
    """The first block of the function around `op`, or of the nearest op closed to outer values."""
    inner = op
    while True:
        region, outer = inner.parent_region(), inner.parent_op()
        assert region is not None and outer is not None, "a math operation stands in a block"
        if outer.has_trait(IsolatedFromAbove):
            return region.blocks[0]
        inner = outer


class Emitter:
    """Makes operations before `anchor`, in `format`, shaped like `shape` (None: scalars)."""

    def __init__(
        self,
        anchor: Operation,
        pool: ConstantPool,
        shape: VectorType[Attribute] | None,
        format: Format,
    ) -> None:
        block = anchor.parent_block()
        assert block is not None
        self.anchor = anchor
        self.block = block
        self.pool = pool
        self.entry = entry_block(anchor)
        self.shape = shape
        self.format = format
        self.float_type = self.shaped(format.float_type)
        self.int_type = self.shaped(format.int_type)
        self.bool_type = self.shaped(i1)
        self.floats = pool.of_type(self.entry, self.float_type)
        self.integers = pool.of_type(self.entry, self.int_type)

    def at(self, format: Format) -> Emitter:
        """The same place and shape in another format."""
        return Emitter(self.anchor, self.pool, self.shape, format)

    def shaped(self, scalar: AnyFloat | IntegerType) -> Attribute:
        if self.shape is None:
            return scalar
        return VectorType(scalar, self.shape.shape, self.shape.scalable_dims)

    def create(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute],
    ) -> SSAValue:
        op = kind.create(operands=operands, result_types=[result_type], properties=dict(properties))
        self.block.insert_op_before(op, self.anchor)
        return op.results[0]

    def number(self, value: Number) -> Float:
        """A number as a value; rounded to the format where it is a plain one."""
        if isinstance(value, Float):
            return value
        bits = self.format.bits_of(value)
        constant = self.floats.get(bits)
        if constant is None:
            attribute = FloatAttr(self.format.round(value), self.format.float_type)
            constant = self.pool.insert(self.entry, self.float_type, attribute)
            self.floats[bits] = constant
        return Float(self, constant)

    def integer(self, value: Whole) -> Int:
        """A whole number as a value; a plain one is taken modulo 2^bits."""
        if isinstance(value, Int):
            return value
        half = 1 << (self.format.bits - 1)
        signed = (value + half) % (2 * half) - half
        constant = self.integers.get(signed)
        if constant is None:
            attribute = IntegerAttr(signed, self.format.int_type)
            constant = self.integers[signed] = self.pool.insert(
                self.entry, self.int_type, attribute
            )
        return Int(self, constant)

    def floating(self, kind: type[Operation], *operands: Number) -> Float:
        """A floating-point operation whose operands and result have one type."""
        values = [self.number(operand).value for operand in operands]
        return Float(self, self.create(kind, values, self.float_type, {"fastmath": _NO_FASTMATH}))

    def fma(self, a: Number, b: Number, c: Number) -> Float:
        """a * b + c, rounded once."""
        return self.floating(math.FmaOp, a, b, c)

    def polynomial(self, x: Float, coefficients: Sequence[float]) -> Float:
        """Sum of coefficients[k] x^k by Horner's rule, one fma a power."""
        total = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, coefficient)
        return total

    def where(self, condition: Bool, then: Number, otherwise: Number) -> Float:
        operands = [condition.value, self.number(then).value, self.number(otherwise).value]
        return Float(self, self.create(arith.SelectOp, operands, self.float_type, {}))

    def where_int(self, condition: Bool, then: Whole, otherwise: Whole) -> Int:
        operands = [condition.value, self.integer(then).value, self.integer(otherwise).value]
        return Int(self, self.create(arith.SelectOp, operands, self.int_type, {}))


@dataclass(frozen=True, eq=False)
class Float:
    """A floating-point value of its emitter's format and shape."""

    e: Emitter
    value: SSAValue

    def __add__(self, other: Number) -> Float:
        return self.e.floating(arith.AddfOp, self, other)

    def __radd__(self, other: float) -> Float:
        return self.e.floating(arith.AddfOp, other, self)

    def __sub__(self, other: Number) -> Float:
        return self.e.floating(arith.SubfOp, self, other)

    def __rsub__(self, other: float) -> Float:
        return self.e.floating(arith.SubfOp, other, self)

    def __mul__(self, other: Number) -> Float:
        return self.e.floating(arith.MulfOp, self, other)

    def __rmul__(self, other: float) -> Float:
        return self.e.floating(arith.MulfOp, other, self)

    def __truediv__(self, other: Number) -> Float:
        return self.e.floating(arith.DivfOp, self, other)

    def __rtruediv__(self, other: float) -> Float:
        return self.e.floating(arith.DivfOp, other, self)

    def __neg__(self) -> Float:
        return self.e.floating(arith.NegfOp, self)

    def __abs__(self) -> Float:
        return self.e.floating(math.AbsFOp, self)

    def __lt__(self, other: Number) -> Bool:
        return self._compare("olt", other)

    def __le__(self, other: Number) -> Bool:
        return self._compare("ole", other)

    def __gt__(self, other: Number) -> Bool:
        return self._compare("ogt", other)

    def __ge__(self, other: Number) -> Bool:
        return self._compare("oge", other)

    def equals(self, other: Number) -> Bool:
        """False where either is NaN."""
        return self._compare("oeq", other)

    def differs(self, other: Number) -> Bool:
        """True where either is NaN."""
        return self._compare("une", other)

    def _compare(self, predicate: str, other: Number) -> Bool:
        e = self.e
        properties = {"predicate": _FLOAT_PREDICATES[predicate], "fastmath": _NO_FASTMATH}
        operands = [self.value, e.number(other).value]
        return Bool(e, e.create(arith.CmpfOp, operands, e.bool_type, properties))

    def at_most(self, bound: float) -> Float:
        """The lesser of the two; NaN where self is."""
        return self.e.where(self > bound, bound, self)

    def at_least(self, bound: float) -> Float:
        """The greater of the two; NaN where self is."""
        return self.e.where(self < bound, bound, self)

    def sqrt(self) -> Float:
        return self.e.floating(math.SqrtOp, self)

    def round_even(self) -> Float:
        """To a whole number, halves to the even one."""
        return self.e.floating(math.RoundEvenOp, self)

    def bits(self) -> Int:
        """The encoding."""
        return Int(self.e, self.e.create(arith.BitcastOp, [self.value], self.e.int_type, {}))

    def sign_bits(self) -> Int:
        """The encoding with all but the sign bit cleared."""
        return self.bits() & (1 << (self.e.format.bits - 1))

    def with_sign_bits(self, signs: Int) -> Float:
        """The sign flipped where `signs`, which has no other bit, has the sign bit."""
        return (self.bits() ^ signs).floats()

    def converted(self, e: Emitter) -> Float:
        """In the format of `e`, rounded to nearest where that is the narrower one."""
        kind = arith.ExtFOp if e.format.bits > self.e.format.bits else arith.TruncFOp
        return Float(e, e.create(kind, [self.value], e.float_type, {}))


@dataclass(frozen=True, eq=False)
class Int:
    """An integer value, as wide as a float of its emitter's format; arithmetic wraps."""

    e: Emitter
    value: SSAValue

    def _make(self, kind: type[Operation], a: Whole, b: Whole, flags: bool = False) -> Int:
        e = self.e
        properties: dict[str, Attribute] = {"overflowFlags": _NO_OVERFLOW_FLAGS} if flags else {}
        return Int(
            e, e.create(kind, [e.integer(a).value, e.integer(b).value], e.int_type, properties)
        )

    def __add__(self, other: Whole) -> Int:
        return self._make(arith.AddiOp, self, other, flags=True)

    def __sub__(self, other: Whole) -> Int:
        return self._make(arith.SubiOp, self, other, flags=True)

    def __rsub__(self, other: int) -> Int:
        return self._make(arith.SubiOp, other, self, flags=True)

    def __lshift__(self, places: int) -> Int:
        return self._make(arith.ShLIOp, self, places, flags=True)

    def __rshift__(self, places: int) -> Int:
        """Copies of the sign bit come in from the left."""
        return self._make(arith.ShRSIOp, self, places)

    def unsigned_quotient(self, divisor: int) -> Int:
        return self._make(arith.DivUIOp, self, divisor)

    def __and__(self, other: Whole) -> Int:
        return self._make(arith.AndIOp, self, other)

    def __or__(self, other: Whole) -> Int:
        return self._make(arith.OrIOp, self, other)

    def __xor__(self, other: Whole) -> Int:
        return self._make(arith.XOrIOp, self, other)

    def __lt__(self, other: Whole) -> Bool:
        return self._compare("slt", other)

    def __gt__(self, other: Whole) -> Bool:
        return self._compare("sgt", other)

    def equals(self, other: Whole) -> Bool:
        return self._compare("eq", other)

    def differs(self, other: Whole) -> Bool:
        return self._compare("ne", other)

    def _compare(self, predicate: str, other: Whole) -> Bool:
        e = self.e
        operands = [self.value, e.integer(other).value]
        properties = {"predicate": _INT_PREDICATES[predicate]}
        return Bool(e, e.create(arith.CmpiOp, operands, e.bool_type, properties))

    def floats(self) -> Float:
        """The float with this encoding."""
        return Float(self.e, self.e.create(arith.BitcastOp, [self.value], self.e.float_type, {}))

    def to_float(self) -> Float:
        """The nearest float to the signed number."""
        return Float(self.e, self.e.create(arith.SIToFPOp, [self.value], self.e.float_type, {}))


@dataclass(frozen=True, eq=False)
class Bool:
    """A truth value a place."""

    e: Emitter
    value: SSAValue

    def __and__(self, other: Bool) -> Bool:
        operands = [self.value, other.value]
        return Bool(self.e, self.e.create(arith.AndIOp, operands, self.e.bool_type, {}))

    def __or__(self, other: Bool) -> Bool:
        operands = [self.value, other.value]
        return Bool(self.e, self.e.create(arith.OrIOp, operands, self.e.bool_type, {}))
