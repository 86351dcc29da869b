"""Random small programs of utensor ops, built through the ops' constructors.

    program = build_program(draw, "p0")       # draw(low, high): a number, from hypothesis or a seed
    program.function, program.inputs, program.sizes

Every op of the dialect, all element types, ranks 0 to 4, sizes 0, 1, odd and even, symbolic sizes,
values used several times, several results, inputs and constants as results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Operation, Region, SSAValue

from uopc.dialects import tensor as t
from uopc.dialects import tensor_elementwise as e
from uopc.dialects import tensor_movement as m
from uopc.dialects.element_types import ELEMENT_TYPES, ElementType, element_type_named
from uopc.dialects.index_expr import symbol
from uopc.dialects.numbers import dense_of_array
from uopc.dialects.sizes import (
    Size,
    element_count_upper,
    size,
    size_upper,
    sizes_of,
    tensor_type,
)
from uopc.dialects.tensor_elementwise import element_of, tensor_of

Draw = Callable[[int, int], int]
"""A number between two, both included."""

MAX_ELEMENTS = 1024
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 16, 19, 32)
COMMON = ("f32", "f32", "f32", "f64", "f16", "bf16", "i32", "i32", "i8", "ui8", "i1", "i64")
HEAVY = {"f64": (e.PowOp, e.Atan2Op)}


@dataclass
class RandomProgram:
    """A function, arrays for its arguments, and values for its symbolic sizes."""

    function: func.FuncOp
    inputs: list[np.ndarray]
    sizes: dict[str, int]


class Builder:
    """Draws a program op by op."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.block = Block()
        self.pool: list[SSAValue] = []
        self.inputs: list[np.ndarray] = []
        self.symbols: dict[str, Size] = {}
        self.sizes: dict[str, int] = {}
        self.random = np.random.default_rng(draw(0, 1 << 30))
        if draw(0, 3) == 0:
            for name in ("n", "m")[: draw(1, 2)]:
                low, high = draw(0, 2), draw(3, 9)
                self.symbols[name] = symbol(name, low, high)
                self.sizes[name] = draw(low, high)

    # Drawing.

    def pick(self, values: Sequence[object]):
        return values[self.draw(0, len(values) - 1)]

    def chance(self, percent: int) -> bool:
        return self.draw(0, 99) < percent

    def value(self, suits: Callable[[SSAValue], bool] = lambda v: True) -> SSAValue | None:
        """A value of the pool, rather a late one."""
        suitable = [v for v in self.pool if suits(v)]
        if not suitable:
            return None
        last = len(suitable) - 1
        return suitable[max(self.draw(0, last), self.draw(0, last))]

    def element(self) -> ElementType:
        if self.chance(60):
            return element_type_named(self.pick(COMMON))
        return self.pick(ELEMENT_TYPES)

    def size(self) -> Size:
        if self.symbols and self.chance(50):
            n = self.pick(list(self.symbols.values()))
            return size(self.pick((n, n, n + 1, n * 2)))
        return self.pick(SIZES)

    def shape(self, rank: int | None = None) -> tuple[Size, ...]:
        rank = self.pick((0, 1, 1, 2, 2, 2, 3, 3, 4)) if rank is None else rank
        sizes = tuple(self.size() for _ in range(rank))
        return sizes if fits(sizes) else self.shape(rank)

    def array(self, row: ElementType, shape: tuple[int, ...]) -> np.ndarray:
        """Numbers near one, small whole numbers, or anything that the type holds."""
        rng, style = self.random, self.draw(0, 4)
        count = int(np.prod(shape, dtype=np.int64))
        if row.is_bool:
            return rng.integers(0, 2, shape).astype(np.bool_)
        if row.is_float:
            plain = rng.standard_normal(count) if style == 1 else rng.integers(-8, 9, count) / 2
            if style in (2, 3):
                plain = rng.choice(float_edges(row), count)
            with np.errstate(all="ignore"):
                return np.asarray(plain, np.float64).reshape(shape).astype(row.numpy)
        low, high = row.limits
        if style in (2, 3):
            edges = [low, low + 1, high, high - 1, high // 2, 0, 1, max(low, -1), 2, 3, row.bits]
            numbers = rng.choice(np.array(edges, object), count)
            return np.array([int(x) for x in numbers], row.numpy).reshape(shape)
        return rng.integers(max(low, -9), 10, shape).astype(row.numpy)

    # Building.

    def add(self, op: Operation) -> SSAValue:
        op.verify()
        self.block.add_op(op)
        result = op.results[0]
        self.pool.append(result)
        return result

    def input(self, row: ElementType, sizes: tuple[Size, ...]) -> SSAValue:
        type_ = tensor_type(row.attribute, sizes)
        value = self.block.insert_arg(type_, len(self.block.args))
        shape = tuple(self.number(s) for s in sizes)
        self.inputs.append(self.array(row, shape))
        self.pool.append(value)
        return value

    def number(self, value: Size) -> int:
        return value if isinstance(value, int) else value.evaluate_named(self.sizes)

    def constant(self, row: ElementType, sizes: tuple[Size, ...]) -> SSAValue:
        type_ = tensor_type(row.attribute, sizes)
        static = all(isinstance(s, int) for s in sizes)
        if static and self.chance(40) and 0 < element_count_upper(sizes) <= 64:
            return self.add(t.ConstantOp(dense_of_array(self.array(row, sizes)), type_))
        number = self.array(row, ())[()]
        return self.add(t.ConstantOp(number.item() if row.name != "bf16" else float(number), type_))

    def like(self, row: ElementType, sizes: tuple[Size, ...]) -> SSAValue:
        """A value of this type: one that is there, one made of it, or a new one."""
        if self.chance(70):
            found = self.value(lambda v: v.type == tensor_type(row.attribute, sizes))
            if found is not None:
                return found
        if self.chance(60):
            found = self.value(lambda v: sizes_of(tensor_of(v)) == sizes)
            if found is not None:
                return self.converted(found, row)
        if self.chance(50):
            found = self.value(lambda v: expandable(sizes_of(tensor_of(v)), sizes))
            if found is not None:
                before = sizes_of(tensor_of(found))
                if len(before) < len(sizes):
                    ones = (1,) * (len(sizes) - len(before))
                    found = self.add(m.ReshapeOp(found, (*ones, *before)))
                if sizes_of(tensor_of(found)) != sizes:
                    found = self.add(m.ExpandOp(found, sizes))
                return self.converted(found, row)
        if len(self.inputs) < 5 and self.chance(50):
            return self.input(row, sizes)
        if sizes and row.kind != "bool" and self.chance(30):
            axis = self.draw(0, len(sizes) - 1)
            return self.add(t.IotaOp(axis, tensor_type(row.attribute, sizes)))
        return self.constant(row, sizes)

    def converted(self, x: SSAValue, row: ElementType) -> SSAValue:
        return x if element_of(tensor_of(x)) == row else self.add(e.CastOp(x, row.attribute))

    def step(self) -> None:
        """One op more, and what it needs."""
        x = self.value()
        assert x is not None
        makers = (
            (self.unary, 18), (self.binary, 26), (self.where, 7), (self.cast, 9),
            (self.bitcast, 4), (self.movement, 34), (self.reduce, 16), (self.argreduce, 6),
            (self.gather, 6), (self.scatter, 6), (self.fresh, 4), (self.stage, 5),
        )  # fmt: skip
        chosen = self.draw(0, sum(weight for _, weight in makers) - 1)
        for make, weight in makers:
            if chosen < weight:
                make(x)
                return
            chosen -= weight

    def unary(self, x: SSAValue) -> None:
        kind = element_of(tensor_of(x)).kind
        ops = [op for op in e.UNARY_OPS if kind in op.KINDS]
        self.add(self.pick(ops)(x))

    def binary(self, x: SSAValue) -> None:
        row = element_of(tensor_of(x))
        ops = [op for op in e.BINARY_OPS if row.kind in op.KINDS]
        op = self.pick(ops)
        if op in HEAVY.get(row.name, ()) and self.chance(50):
            op = e.AddOp
        y = self.like(row, sizes_of(tensor_of(x)))
        self.add(op(y, x) if self.chance(30) else op(x, y))

    def where(self, x: SSAValue) -> None:
        sizes = sizes_of(tensor_of(x))
        condition = self.like(element_type_named("i1"), sizes)
        y = self.like(element_of(tensor_of(x)), sizes)
        self.add(e.WhereOp(condition, x, y) if self.chance(50) else e.WhereOp(condition, y, x))

    def cast(self, x: SSAValue) -> None:
        self.add(e.CastOp(x, self.element().attribute))

    def bitcast(self, x: SSAValue) -> None:
        row = element_of(tensor_of(x))
        targets = [r for r in ELEMENT_TYPES if r.bits == row.bits and r != row]
        if not targets:
            return
        if row.is_float:  # the bits of a NaN are not specified
            zero = self.add(t.ConstantOp(0.0, tensor_of(x)))
            x = self.add(e.WhereOp(self.add(e.CmpeqOp(x, x)), x, zero))
        self.add(e.BitcastOp(x, self.pick(targets).attribute))

    def movement(self, x: SSAValue) -> None:
        makers = (self.reshape, self.permute, self.expand, self.flip, self.shrink, self.pad)
        for _ in range(self.draw(1, 3)):
            x = self.pick(makers)(x)

    def reshape(self, x: SSAValue) -> SSAValue:
        sizes = [list(sizes_of(tensor_of(x)))][0]
        for _ in range(self.draw(1, 3)):
            choice = self.draw(0, 2)
            if choice == 0:
                at = self.draw(0, len(sizes))
                if len(sizes) < 4:
                    sizes.insert(at, 1)
            elif choice == 1 and len(sizes) > 1:
                at = self.draw(0, len(sizes) - 2)
                if all(isinstance(s, int) or s.bounds[0] > 0 for s in sizes):
                    sizes[at : at + 2] = [size(sizes[at] * sizes[at + 1])]
            elif sizes and len(sizes) < 4:
                at = self.draw(0, len(sizes) - 1)
                n = sizes[at]
                if isinstance(n, int) and n > 1:
                    factor = self.pick([k for k in range(1, n + 1) if n % k == 0])
                    sizes[at : at + 1] = [factor, n // factor]
                elif n == 0:
                    sizes[at : at + 1] = self.pick(([0, 3], [2, 0], [0, 0]))
        if sum(1 for s in sizes if s != 1) != len(sizes) and self.chance(40):
            sizes = [s for s in sizes if s != 1]
        return self.add(m.ReshapeOp(x, sizes))

    def permute(self, x: SSAValue) -> SSAValue:
        order = list(range(len(sizes_of(tensor_of(x)))))
        for k in range(len(order) - 1, 0, -1):
            other = self.draw(0, k)
            order[k], order[other] = order[other], order[k]
        return self.add(m.PermuteOp(x, order))

    def expand(self, x: SSAValue) -> SSAValue:
        sizes = sizes_of(tensor_of(x))
        if 1 not in sizes and len(sizes) < 4:
            at = self.draw(0, len(sizes))
            sizes = (*sizes[:at], 1, *sizes[at:])
            x = self.add(m.ReshapeOp(x, sizes))
        wide = tuple(self.size() if s == 1 and self.chance(70) else s for s in sizes)
        return self.add(m.ExpandOp(x, wide)) if fits(wide) else x

    def flip(self, x: SSAValue) -> SSAValue:
        axes = [k for k in range(len(sizes_of(tensor_of(x)))) if self.chance(50)]
        return self.add(m.FlipOp(x, axes))

    def shrink(self, x: SSAValue) -> SSAValue:
        begins: list[Size] = []
        ends: list[Size] = []
        for n in sizes_of(tensor_of(x)):
            low = n if isinstance(n, int) else n.bounds[0]
            begin = self.draw(0, min(low, 3)) if self.chance(60) else 0
            begins.append(begin)
            if isinstance(n, int):
                ends.append(self.draw(begin, n) if self.chance(60) else n)
            else:
                ends.append(size(n - self.draw(0, min(1, low - begin))))
        steps = [self.draw(1, 3) if self.chance(40) else 1 for _ in begins]
        return self.add(m.ShrinkOp(x, begins, ends, steps))

    def pad(self, x: SSAValue) -> SSAValue:
        row, sizes = element_of(tensor_of(x)), sizes_of(tensor_of(x))
        amounts = [(self.draw(0, 2) if self.chance(60) else 0, self.pad_amount()) for _ in sizes]
        if not fits([size(n + a + b) for n, (a, b) in zip(sizes, amounts, strict=True)]):
            return x
        number = self.array(row, ())[()] if self.chance(50) else row.numpy.type(0)
        value = float(number) if row.is_float else number.item()
        low, high = [a for a, _ in amounts], [b for _, b in amounts]
        return self.add(m.PadOp(x, low, high, value))

    def pad_amount(self) -> Size:
        if self.symbols and self.chance(20):
            return self.pick(list(self.symbols.values()))
        return self.draw(0, 2) if self.chance(60) else 0

    def reduce(self, x: SSAValue) -> None:
        tensor = tensor_of(x)
        axes = [k for k in range(len(sizes_of(tensor))) if self.chance(50)]
        bits = element_of(tensor).kind != "float"
        kinds = t.REDUCE_KINDS if bits else ("add", "add", "mul", "max", "min")
        self.add(t.ReduceOp(self.pick(kinds), x, axes))

    def argreduce(self, x: SSAValue) -> None:
        axes = [k for k, n in enumerate(sizes_of(tensor_of(x))) if lower(n) > 0]
        if axes:
            index = element_type_named(self.pick(("i32", "i64"))).attribute
            self.add(t.ArgreduceOp(self.pick(("max", "min")), x, self.pick(axes), index))

    def indices(self, shape: tuple[Size, ...]) -> SSAValue:
        rows = [r for r in ELEMENT_TYPES if r.is_integer]
        return self.like(self.pick(rows), shape)

    def gather(self, x: SSAValue) -> None:
        sizes = sizes_of(tensor_of(x))
        axes = [k for k, n in enumerate(sizes) if lower(n) > 0]
        if not axes:
            return
        axis, shape = self.pick(axes), self.shape(self.draw(0, 2))
        result = (*sizes[:axis], *shape, *sizes[axis + 1 :])
        if len(result) <= 4 and fits(result):
            self.add(t.GatherOp(x, self.indices(shape), axis))

    def scatter(self, x: SSAValue) -> None:
        sizes, row = sizes_of(tensor_of(x)), element_of(tensor_of(x))
        if not sizes:
            return
        axis, shape = self.draw(0, len(sizes) - 1), self.shape(self.draw(0, 2))
        updates = (*sizes[:axis], *shape, *sizes[axis + 1 :])
        if len(updates) > 4 or not fits(updates):
            return
        kinds = t.SCATTER_KINDS if row.kind != "float" else ("set", "add", "mul", "max", "min")
        positions, added = self.indices(shape), self.like(row, updates)
        self.add(t.ScatterOp(self.pick(kinds), x, positions, added, axis))

    def fresh(self, x: SSAValue) -> None:
        self.like(self.element(), self.shape())

    def stage(self, x: SSAValue) -> None:
        self.add(t.StageOp(x, self.pick(t.STAGE_KINDS)))

    def program(self, name: str) -> RandomProgram:
        for _ in range(self.draw(1, 3)):
            self.input(self.element(), self.shape())
        for _ in range(self.draw(1, 9)):
            self.step()
        results = [self.pool[-1]]
        for _ in range(self.draw(0, 2)):
            results.append(self.value())
        self.block.add_op(func.ReturnOp(*results))
        types = FunctionType.from_lists(
            [a.type for a in self.block.args], [r.type for r in results]
        )
        function = func.FuncOp(name, types, Region(self.block))
        return RandomProgram(function, self.inputs, self.sizes)


def build_program(draw: Draw, name: str) -> RandomProgram:
    """A random program, verified op by op."""
    return Builder(draw).program(name)


def fits(sizes: Sequence[Size]) -> bool:
    return element_count_upper(sizes) <= MAX_ELEMENTS and all(size_upper(s) <= 64 for s in sizes)


def lower(n: Size) -> int:
    return n if isinstance(n, int) else n.bounds[0]


def expandable(before: tuple[Size, ...], after: tuple[Size, ...]) -> bool:
    padded = (1,) * (len(after) - len(before)) + before
    return len(before) <= len(after) and all(
        a in (1, b) for a, b in zip(padded, after, strict=True)
    )


def float_edges(row: ElementType) -> list[float]:
    limits = {"f64": (-1022, 1.7e308), "f32": (-126, 3.4e38), "f16": (-14, 65504.0)}
    low, largest = limits.get(row.name, (-126, 3.3e38))
    tiny = [2.0**low, 2.0 ** (low - 3), 2.0**low * 1.5]
    positive = [0.0, *tiny, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 127.5, 300.0, largest, np.inf]
    return [*positive, *(-x for x in positive), np.nan]
