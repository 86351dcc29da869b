"""The equations by which canonicalize simplifies elementwise ops.

Each holds for every value of the types it names, bit for bit, NaN and -0.0 included (only which
NaN is left open): x*0 = 0 is true of integers, not of floats, where NaN*0 is NaN and -1*0 is
-0. An equation must not make the program longer. The tests evaluate both sides of every row.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from uopc.dialects.element_types import ElementType
from uopc.dialects.numbers import known_element
from uopc.dialects.tensor_elementwise import BitcastOp, CastOp, tensor_of
from uopc.passes.rewrite_rows import Builder, Row, RowTable, defining

FLOAT = ("float",)
INTEGER = ("signed", "unsigned")
NUMBER = (*FLOAT, *INTEGER)
BOOL = ("bool",)
BITS = (*INTEGER, *BOOL)
ANY = (*NUMBER, *BOOL)

_ROUNDINGS = ("floor", "ceil", "trunc", "round")

ROWS: tuple[Row, ...] = (
    # Neutral elements. x + 0.0 is not x for x = -0.0; x + -0.0 is.
    Row("add(x, 0) = x", BITS),
    Row("add(x, -0.0) = x", FLOAT),
    Row("sub(x, 0) = x", NUMBER),
    Row("mul(x, 1) = x", ANY),
    Row("div(x, 1) = x", FLOAT),
    Row("floordiv(x, 1) = x", INTEGER),
    Row("truncdiv(x, 1) = x", INTEGER),
    Row("pow(x, 1) = x", INTEGER),
    Row("max(x, lowest) = x", ANY),
    Row("min(x, highest) = x", ANY),
    Row("and(x, -1) = x", BITS),
    Row("or(x, 0) = x", BITS),
    Row("xor(x, 0) = x", BITS),
    Row("shl(x, 0) = x", INTEGER),
    Row("shr(x, 0) = x", INTEGER),
    # Absorbing elements.
    Row("mul(x, 0) = 0", BITS),
    Row("mod(x, 1) = 0", INTEGER),
    Row("rem(x, 1) = 0", INTEGER),
    Row("pow(x, 0) = 1", INTEGER),
    Row("max(x, highest) = highest", BITS),
    Row("min(x, lowest) = lowest", BITS),
    Row("and(x, 0) = 0", BITS),
    Row("or(x, -1) = -1", BITS),
    Row("shl(0, x) = 0", INTEGER),
    Row("shr(0, x) = 0", INTEGER),
    # The same value twice.
    Row("sub(x, x) = 0", INTEGER),
    Row("xor(x, x) = 0", BITS),
    Row("add(x, x) = false", BOOL),
    Row("mul(x, x) = x", BOOL),
    Row("and(x, x) = x", BITS),
    Row("or(x, x) = x", BITS),
    Row("max(x, x) = x", ANY),
    Row("min(x, x) = x", ANY),
    Row("max(max(x, y), y) = max(x, y)", ANY),
    Row("min(min(x, y), y) = min(x, y)", ANY),
    Row("and(and(x, y), y) = and(x, y)", BITS),
    Row("or(or(x, y), y) = or(x, y)", BITS),
    # What cancels.
    Row("not(not(x)) = x", BITS),
    Row("neg(neg(x)) = x", NUMBER),
    Row("xor(xor(x, y), y) = x", BITS),
    Row("xor(x, -1) = not(x)", BITS),
    Row("sub(add(x, y), y) = x", INTEGER),
    Row("add(sub(x, y), y) = x", INTEGER),
    # Signs.
    Row("sub(0, x) = neg(x)", INTEGER),
    Row("add(x, neg(y)) = sub(x, y)", NUMBER),
    Row("sub(x, neg(y)) = add(x, y)", NUMBER),
    Row("neg(sub(x, y)) = sub(y, x)", INTEGER),
    Row("mul(neg(x), neg(y)) = mul(x, y)", NUMBER),
    Row("abs(neg(x)) = abs(x)", (*FLOAT, "signed")),
    Row("abs(x) = x", ("unsigned",)),
    Row("abs(abs(x)) = abs(x)", NUMBER),
    Row("sign(sign(x)) = sign(x)", NUMBER),
    *(Row(f"{f}({g}(x)) = {g}(x)", FLOAT) for f in _ROUNDINGS for g in _ROUNDINGS),
    # Constants meet. Sums and products of floats round, so theirs do not.
    Row("add(add(x, C), D) = add(x, add(C, D))", BITS),
    Row("sub(x, C) = add(x, neg(C))", INTEGER),
    Row("add(sub(C, x), D) = sub(add(C, D), x)", INTEGER),
    Row("sub(C, add(x, D)) = sub(sub(C, D), x)", INTEGER),
    Row("neg(add(x, C)) = sub(neg(C), x)", INTEGER),
    Row("mul(mul(x, C), D) = mul(x, mul(C, D))", BITS),
    Row("max(max(x, C), D) = max(x, max(C, D))", ANY),
    Row("min(min(x, C), D) = min(x, min(C, D))", ANY),
    Row("and(and(x, C), D) = and(x, and(C, D))", BITS),
    Row("or(or(x, C), D) = or(x, or(C, D))", BITS),
    Row("xor(xor(x, C), D) = xor(x, xor(C, D))", BITS),
    Row("xor(not(x), C) = xor(x, not(C))", BITS),
    Row("not(xor(x, C)) = xor(x, not(C))", BITS),
    # Comparisons. x == x is false for NaN; x < y and y <= x both are.
    Row("cmplt(x, x) = false", ANY),
    Row("cmple(x, x) = true", BITS),
    Row("cmpeq(x, x) = true", BITS),
    Row("cmpne(x, x) = false", BITS),
    Row("cmplt(x, lowest) = false", ANY),
    Row("cmplt(highest, x) = false", ANY),
    Row("cmple(x, highest) = true", BITS),
    Row("cmple(lowest, x) = true", BITS),
    Row("cmpeq(x, true) = x", BOOL),
    Row("cmpne(x, false) = x", BOOL),
    Row("cmpeq(x, false) = not(x)", BOOL),
    Row("cmpne(x, true) = not(x)", BOOL),
    Row("not(cmpeq(x, y)) = cmpne(x, y)", BOOL),
    Row("not(cmpne(x, y)) = cmpeq(x, y)", BOOL),
    Row("not(cmplt(x, y)) = cmple(y, x)", BOOL, x=BITS),
    Row("not(cmple(x, y)) = cmplt(y, x)", BOOL, x=BITS),
    # Choices.
    Row("where(true, x, y) = x", ANY),
    Row("where(false, x, y) = y", ANY),
    Row("where(c, x, x) = x", ANY),
    Row("where(not(c), x, y) = where(c, y, x)", ANY),
    Row("where(c, where(c, x, y), z) = where(c, x, z)", ANY),
    Row("where(c, x, where(c, y, z)) = where(c, x, z)", ANY),
    Row("where(c, true, false) = c", BOOL),
    Row("where(c, false, true) = not(c)", BOOL),
)

ELEMENTWISE_RULES = RowTable(ROWS)

_PRECISION = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def holds_all(wide: ElementType, narrow: ElementType) -> bool:
    """Whether every value of `narrow` is a value of `wide`, infinities and NaN included."""
    if wide is narrow or narrow.is_bool:
        return True
    if wide.is_float:
        if narrow.is_float:
            return wide.name == "f64" or (wide.name == "f32" and narrow.bits == 16)
        magnitude = narrow.bits - (narrow.kind == "signed")
        return magnitude <= _PRECISION[wide.name]
    if narrow.is_float or wide.is_bool:
        return False
    low, high = narrow.limits
    return wide.limits[0] <= low and high <= wide.limits[1]


def may_skip(first: ElementType, middle: ElementType, last: ElementType) -> bool:
    """Whether casting first -> middle -> last gives what first -> last gives, for every value."""
    integers = not (first.is_float or middle.is_float or last.is_float)
    if integers and not last.is_bool and not middle.is_bool and last.bits <= middle.bits:
        return True  # both wrap, and the last one decides
    if not holds_all(middle, first):
        return False
    if last.is_bool or first.is_bool or last is first:
        return True
    # The number arrives in the middle as it was. From there an integer wraps and a float
    # saturates on its way to an integer, so the middle must be of the first one's sort, unless
    # the last type has the number too. To floats both round once.
    return first.is_float == middle.is_float or last.is_float or holds_all(last, first)


def merge_casts(builder: Builder, op: Operation) -> SSAValue | None:
    """cast(x : T -> T) = x, and cast(cast(x)) = cast(x) where the inner one loses nothing."""
    (value,) = op.operands
    result = op.results[0].type
    if value.type == result:
        return value
    inner = defining(value, CastOp)
    if inner is None:
        return None
    source = inner.operands[0]
    rows = [known_element(tensor_of(v).element_type) for v in (source, value, op.results[0])]
    return builder.emit(CastOp, [source], result) if may_skip(*rows) else None


def merge_bitcasts(builder: Builder, op: Operation) -> SSAValue | None:
    """bitcast(x : T -> T) = x, and bitcast(bitcast(x)) = bitcast(x)."""
    (value,) = op.operands
    result = op.results[0].type
    if value.type == result:
        return value
    inner = defining(value, BitcastOp)
    return None if inner is None else builder.emit(BitcastOp, [inner.operands[0]], result)
