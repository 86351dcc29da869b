"""The IR decides the bits: compilers at each level and numpy, op by op, agree on all of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, f32, f64
from xdsl.ir import Block, Operation

from uopc.passes.expand_math import EXPANSIONS

NAMES = [kind.name.removeprefix("math.") for kind in EXPANSIONS]
BINARY = ("atan2", "powf")

NUMPY_TYPES = {
    "f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "i1": np.bool_,
}  # fmt: skip
FLOAT_COMPARISONS: dict[int, Callable] = {
    1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal, 13: np.not_equal,
}  # fmt: skip
INT_COMPARISONS: dict[int, Callable] = {0: np.equal, 1: np.not_equal, 2: np.less, 4: np.greater}
NUMPY_CALLS: dict[str, Callable] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply,
    "arith.divf": np.divide, "arith.negf": np.negative, "math.absf": np.abs, "math.sqrt": np.sqrt,
    "math.roundeven": np.rint, "arith.addi": np.add, "arith.subi": np.subtract,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift, "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.select": np.where,
}  # fmt: skip


def exact_fma(a: float, b: float, c: float) -> Fraction | float:
    """a b + c: exact where it is a number other than zero, else what IEEE 754 says."""
    if not all(map(np.isfinite, (a, b, c))):
        return a * b + c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        return a * b + c if Fraction(a) * Fraction(b) == 0 or c == 0 else 0.0
    return total


def rounded(total: Fraction | float, fraction: int, least: int, top: int) -> float:
    """To nearest even with `fraction` stored bits; exponents from `least` to `top`."""
    if isinstance(total, float):
        return total
    size = abs(total)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - fraction)
    value = round(size / unit) * unit
    if value >= Fraction(2) ** (top + 1):
        value = float("inf")
    return float(value) if total > 0 else -float(value)


def numpy_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    limits = (23, -126, 127) if a.dtype == np.float32 else (52, -1022, 1023)
    results = [
        rounded(exact_fma(x, y, z), *limits)
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    return np.array(results, dtype=a.dtype)


def numpy_result(op: Operation, a: list[np.ndarray], target: type) -> np.ndarray:
    if op.name in NUMPY_CALLS:
        return NUMPY_CALLS[op.name](*a)
    match op.name:
        case "math.fma":
            return numpy_fma(*a)
        case "arith.cmpf":
            return FLOAT_COMPARISONS[op.properties["predicate"].value.data](*a)
        case "arith.cmpi":
            return INT_COMPARISONS[op.properties["predicate"].value.data](*a)
        case "arith.bitcast":
            return a[0].view(target)
        case "arith.divui":
            unsigned = f"u{a[0].dtype}"
            return (a[0].view(unsigned) // a[1].view(unsigned)).view(target)
        case "arith.sitofp" | "arith.extf" | "arith.truncf":
            return a[0].astype(target)
        case _:
            raise AssertionError(f"{op.name} is not allowed in an expansion")


def interpret(block: Block, *inputs: np.ndarray) -> np.ndarray:
    """The function with the body `block` on each place of the inputs, for any vector shape."""
    values: dict = dict(zip(block.args, inputs, strict=True))
    with np.errstate(all="ignore"):
        for op in block.ops:
            if isinstance(op, func.ReturnOp):
                return values[op.operands[0]]
            kind = op.results[0].type
            element = kind.element_type if isinstance(kind, VectorType) else kind
            target = NUMPY_TYPES[str(element)]
            if isinstance(op, arith.ConstantOp):
                splat = isinstance(op.value, DenseIntOrFPElementsAttr)
                scalar = op.value.get_values()[0] if splat else op.value.value.data
                values[op.results[0]] = np.full(inputs[0].shape, scalar, dtype=target)
            else:
                operands = [values[operand] for operand in op.operands]
                result = numpy_result(op, operands, target)
                assert result.dtype == target, op
                values[op.results[0]] = result
    raise AssertionError("a function without a return")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_same_bits_by_each_compiler_at_each_level_and_in_numpy(
    compiled, other_builds, expand, samples, same_bits, kind: type
) -> None:
    x = samples(kind, 5_000, 10)
    y = np.random.default_rng(11).permutation(x)
    few = slice(None, None, 307)
    for name in NAMES:
        inputs = (x, y) if name in BINARY else (x,)
        first = compiled.apply(name, *inputs)
        for other in other_builds:
            assert same_bits(first, other.apply(name, *inputs)).all(), name
        element = f32 if kind is np.float32 else f64
        got = interpret(expand(name, element, (8,)), *(i[few].copy() for i in inputs))
        assert same_bits(first[few].copy(), got).all(), name
