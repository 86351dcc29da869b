"""Every row of the table holds for every type it names, at the edges, and is applied."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from uopc.dialects.element_types import ELEMENT_TYPES, ElementType, element_type_named
from uopc.dialects.sizes import tensor_type
from uopc.dialects.tensor import ConstantOp
from uopc.dialects.tensor_elementwise import CastOp
from uopc.interpreters.tensor import run_function
from uopc.passes.canonicalize import simplify
from uopc.passes.rewrite_rows import (
    Call,
    Constant,
    Literal,
    Row,
    Variable,
    literal_number,
    parse_equation,
)
from uopc.passes.tensor_rules import ROWS, holds_all, may_skip

COMPARISONS = ("cmplt", "cmple", "cmpeq", "cmpne")


def edges(row: ElementType, few: bool) -> list[float | int]:
    if row.is_bool:
        return [0, 1]
    if row.is_float:
        values = [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, math.inf, -math.inf, math.nan]
        return values if few else [*values, 1e-45, 3.0, 65504.0, -7.5, 1e30]
    low, high = row.limits
    values = [0, 1, 2, low, high, high // 2, -1 if low < 0 else 200]
    return values if few else [*values, low + 1, high - 1, 3, row.bits, *((-7, -2) if low else ())]


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Elementwise: equal bits, or both NaN."""
    unsigned = f"u{a.dtype.itemsize}"
    with np.errstate(all="ignore"):
        return (a.view(unsigned) == b.view(unsigned)) | ((a != a) & (b != b))


def leaves(term) -> list[str]:
    """Variables and constants, in order, each once."""
    if isinstance(term, Call):
        return list(dict.fromkeys(n for each in term.arguments for n in leaves(each)))
    return [] if isinstance(term, Literal) else [term.name]


class Side:
    """One side of an equation as a function of its variables."""

    def __init__(self, row: Row, element: ElementType, numbers, count: int):
        self.element = element
        self.shape = (count,)
        left, _ = row.sides
        self.names = leaves(left)
        self.variables = [n for n in self.names if n.islower()]
        types = [self.tensor(i1 if n == "c" else element.attribute) for n in self.variables]
        self.block = Block(arg_types=types)
        self.values = dict(zip(self.variables, self.block.args, strict=True))
        for name, number in numbers.items():
            self.values[name] = self.add(ConstantOp(number, self.tensor(element.attribute)))

    def tensor(self, attribute):
        return tensor_type(attribute, self.shape)

    def add(self, op):
        self.block.add_op(op)
        return op.results[0]

    def build(self, term, attribute):
        """A term whose elements are of type `attribute`."""
        if isinstance(term, Variable | Constant):
            return self.values[term.name]
        if isinstance(term, Literal):
            number = literal_number(term.text, attribute)
            return self.add(ConstantOp(number, self.tensor(attribute)))
        inner = self.element.attribute if term.name in COMPARISONS else attribute
        types = [inner] * len(term.arguments)
        if term.name == "where":
            types[0] = i1
        operands = [self.build(t, a) for t, a in zip(term.arguments, types, strict=True)]
        return self.add(term.op(*operands))

    def module(self, term, attribute) -> ModuleOp:
        result = self.build(term, attribute)
        self.block.add_op(ReturnOp(result))
        function = FuncOp("f", ((*self.block.arg_types,), (result.type,)), Region(self.block))
        module = ModuleOp([function])
        module.verify()
        return module


def root_type(row: Row, element: ElementType):
    left, _ = row.sides
    return i1 if left.name in COMPARISONS or row.kinds == ("bool",) else element.attribute


def cases():
    for row in ROWS:
        left, _ = row.sides
        inner = left.arguments[0]
        kinds = row.x or row.kinds
        if isinstance(inner, Call) and inner.name in COMPARISONS and row.x is None:
            kinds = ("float", "signed", "unsigned", "bool")
        for element in ELEMENT_TYPES:
            if element.kind in kinds and element.name not in ("i16", "ui16", "i64", "ui32"):
                yield pytest.param(row, element, id=f"{row.equation}-{element.name}")


@pytest.mark.parametrize(("row", "element"), list(cases()))
def test_both_sides_are_equal_and_the_left_becomes_the_right(row: Row, element: ElementType):
    left, right = row.sides
    names = leaves(left)
    variables = [n for n in names if n.islower()]
    constants = [n for n in names if n.isupper()]
    few = len(names) > 1
    attribute = root_type(row, element)
    choices = [edges(element, few=True) for _ in constants]
    for numbers in itertools.islice(itertools.product(*choices), 12):
        given = dict(zip(constants, numbers, strict=True))
        points = list(
            itertools.product(*([0, 1] if n == "c" else edges(element, few) for n in variables))
        )
        with np.errstate(all="ignore"):
            arrays = [
                np.array(column).astype(bool if n == "c" else element.numpy)
                for n, column in zip(variables, zip(*points, strict=True), strict=True)
            ]
        before = Side(row, element, given, len(points)).module(left, attribute)
        after = Side(row, element, given, len(points)).module(right, attribute)
        expected, got = (run_function(m, "f", arrays)[0] for m in (before, after))
        same = same_bits(expected, got)
        assert same.all(), [(p, e, g) for p, e, g in zip(points, expected, got, strict=True)]
        simplify(before)
        simplify(after)
        before.verify()
        assert str(before) == str(after)


def test_floats_keep_what_is_not_an_equation():
    for equation in ("mul(x, 0) = 0", "sub(x, x) = 0", "add(x, 0) = x", "cmpeq(x, x) = true"):
        assert not [r for r in ROWS if r.equation == equation and "float" in r.kinds]


@pytest.mark.parametrize(
    "text", ["add(x, 0)", "add(x, 0) = ", "plus(x, y) = x", "add(x, 0) = x y", "add(xy, 0) = x"]
)
def test_text_that_is_no_equation(text: str):
    with pytest.raises((ValueError, IndexError)):
        parse_equation(text)


def every_value(row: ElementType) -> np.ndarray:
    """All values of a narrow type, edges and many others of a wide one."""
    if row.is_bool:
        return np.array([False, True])
    if row.bits <= 16:
        return np.arange(1 << row.bits).astype(f"u{row.bytes}").view(row.numpy)
    generator = np.random.default_rng(7)
    random = generator.integers(0, 1 << 32, 4000, np.uint64) * generator.integers(
        0, 1 << 32, 4000, np.uint64
    )
    edge = np.array(edges(row, few=False)).astype(row.numpy)
    around = np.array([2**k + d for k in range(row.bits - 1) for d in (-1, 0, 1)], np.uint64)
    storage = around.astype(row.numpy)
    return np.concatenate([random.astype(f"u{row.bytes}").view(row.numpy), edge, storage])


@pytest.mark.parametrize("first", ELEMENT_TYPES, ids=lambda t: t.name)
def test_casts_are_skipped_only_where_nothing_changes(first: ElementType):
    skipped = 0
    with np.errstate(all="ignore"):
        values = every_value(first)
    for middle, last in itertools.product(ELEMENT_TYPES, repeat=2):
        if not may_skip(first, middle, last):
            continue
        skipped += 1
        results = []
        for path in ((middle, last), (last,)):
            block = Block(arg_types=[tensor_type(first.attribute, values.shape)])
            value = block.args[0]
            for step in path:
                op = CastOp(value, step.attribute)
                block.add_op(op)
                value = op.result
            block.add_op(ReturnOp(value))
            function = FuncOp("f", ((*block.arg_types,), (value.type,)), Region(block))
            results.append(run_function(ModuleOp([function]), "f", [values])[0])
        same = same_bits(*results)
        assert same.all(), (first.name, middle.name, last.name, values[~same][:5])
    assert skipped >= len(ELEMENT_TYPES), "each type can pass through itself"


def test_casts_that_must_stay():
    def types(*names: str):
        return [element_type_named(n) for n in names]

    assert not may_skip(*types("i16", "f32", "i8"))  # saturates, not wraps
    assert not may_skip(*types("f32", "f16", "f32"))
    assert not may_skip(*types("i32", "i8", "i1"))
    assert not may_skip(*types("f64", "f32", "f16"))  # rounds twice
    assert may_skip(*types("f16", "f32", "f16"))
    assert may_skip(*types("i32", "i16", "i8"))
    assert holds_all(*types("f32", "bf16")) and not holds_all(*types("f16", "bf16"))
